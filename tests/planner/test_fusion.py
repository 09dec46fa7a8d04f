"""Fusion: what one kernel does. The golden files show it; here it is asserted.

Over TPC-H at SF0.01, planned for the CPU and for a GPU that need not be here.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.kernels import ir
from gquery.kernels.bindings import BuildPart, ColumnPart, StatePart
from gquery.kernels.ir.walk import expressions, statements, values
from gquery.operators import selection
from gquery.operators.codegen import Unit, units
from gquery.planner.physical import (
    Build,
    Compute,
    FilterRows,
    Group,
    Materialize,
    Pipeline,
    Probe,
    Program,
    ReadStage,
    ReadTable,
    Reduce,
    Source,
    Stage,
    Step,
)
from tests.support import programs
from tests.support.programs import Target
from tests.support.tuned import Tune
from tpch import queries

TARGETS: tuple[Target, ...] = ("cpu", "cuda")


def _reads(program: Program, table: str) -> list[Stage]:
    """The stages whose source is a table."""
    found = []
    for stage in program.stages:
        match stage.work:
            case Pipeline(source=ReadTable(source=source)) if source.name == table:
                found.append(stage)
            case _:
                pass
    return found


def _lineitem(program: Program) -> Pipeline:
    """The pipeline over lineitem: one, as nothing else reads the table."""
    (stage,) = _reads(program, "lineitem")
    assert isinstance(stage.work, Pipeline)
    return stage.work


def _kernel(pipeline: Pipeline, target: Target) -> Unit:
    """The kernel of a pipeline that has one."""
    (unit,) = units(pipeline, target)
    return unit


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("number", [1, 6])
def test_scan_filter_aggregate_is_one_kernel(number: int, target: Target) -> None:
    program = programs.program(f"q{number:02d}", target)
    pipeline = _lineitem(program)
    assert [s.number for s in program.stages if isinstance(s.work, Pipeline)] == [0], "no other stage has a kernel"
    assert isinstance(pipeline.sink, Group if number == 1 else Reduce)
    assert all(isinstance(s, FilterRows) for s in pipeline.steps)
    unit = _kernel(pipeline, target)
    assert unit.kernel.text.count("for i in rows") == 1
    assert len(_columns(unit, None)) == len(set(_columns(unit, None))) == (7 if number == 1 else 4), (
        "each column is one parameter, and no column of the table more than is needed"
    )


def _only_looks_up(pipeline: Pipeline) -> bool:
    return isinstance(pipeline.sink, Materialize) and all(
        isinstance(s, Compute) or _is_late_probe(s) for s in pipeline.steps
    )


def _is_late_probe(step: Step) -> bool:
    return isinstance(step, Probe) and step.always


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("number", [3, 5, 9])
def test_joins_and_aggregates_are_one_kernel(number: int, target: Target) -> None:
    """Scan, filter, every probe, aggregate: the steps stand in one loop, and it ends in the groups."""
    program = programs.program(f"q{number:02d}", target)
    pipeline = _lineitem(program)
    probes = [s for s in pipeline.steps if isinstance(s, Probe)]
    assert len(probes) >= (1 if number == 3 else 2)
    assert isinstance(pipeline.sink, Group)
    unit = _kernel(pipeline, target)
    assert unit.kernel.text.count("for i in rows") == 1
    assert {p.table.stage for p in probes} == {b.build for b in unit.bindings.values() if isinstance(b, BuildPart)}
    pipelines = [s.work for s in program.stages if isinstance(s.work, Pipeline)]
    at = pipelines.index(pipeline)
    assert all(_only_looks_up(p) for p in pipelines[at + 1 :]), "what stands behind it only looks up and sorts"
    assert all(isinstance(p.sink, Build | Materialize) for p in pipelines[:at]), "what stands before it only builds"


def _columns(unit: Unit, owner: int | None) -> list[tuple[int, str]]:
    """Parts of columns that a kernel loads: of its source (None), or of a join's build side."""
    bound = unit.bindings.values()
    return [(b.column, b.part) for b in bound if isinstance(b, ColumnPart) and b.owner == owner]


def _stages_read(pipeline: Pipeline) -> set[int]:
    own = {pipeline.source.stage} if isinstance(pipeline.source, ReadStage) else set()
    return own | {s.table.stage for s in pipeline.steps if isinstance(s, Probe)}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("number", queries.NUMBERS)
def test_no_step_reads_what_its_own_pipeline_wrote(number: int, target: Target) -> None:
    """A kernel's parameters say all that it touches: source columns and earlier stages are read, states and new columns
    belong to the sink. Between the steps of a pipeline there is no memory, but variables."""
    program = programs.tpch().program(queries.sql(number), target)
    for stage in program.stages:
        if not isinstance(stage.work, Pipeline):
            continue
        pipeline = stage.work
        assert all(n < stage.number for n in _stages_read(pipeline))
        for unit in units(pipeline, target):
            read = {b.build for b in unit.bindings.values() if isinstance(b, BuildPart)}
            read |= {b.owner for b in unit.bindings.values() if isinstance(b, ColumnPart) and b.owner is not None}
            assert read <= _stages_read(pipeline), stage.label
            written = [n for n, b in unit.bindings.items() if isinstance(b, StatePart)]
            assert written, "a sink keeps what it made"
            if isinstance(pipeline.sink, Materialize):
                outputs = [n for n in written if n.startswith("o")]
                assert not [e for e in loads(unit.kernel.body) if e.pointer.id in outputs]


def loads(block: ir.Block) -> list[ir.Load]:
    """The elements of arrays that statements load."""
    found = (e for s in statements(block) for value in values(s) for e in expressions(value))
    return [e for e in found if isinstance(e, ir.Load)]


def _loads_once(source: Source, unit: Unit) -> bool:
    assert isinstance(source, ReadTable | ReadStage)
    found = [e for e in loads(unit.kernel.body) if e.pointer.role == "column" and e.index == ir.ROW]
    return len(found) == len(set(found))


@pytest.mark.parametrize("number", [1, 3, 5, 6, 9])
def test_a_column_is_loaded_once_a_row(number: int) -> None:
    pipeline = _lineitem(programs.program(f"q{number:02d}", "cuda"))
    assert _loads_once(pipeline.source, _kernel(pipeline, "cuda"))


# ---- one kernel for many queries ------------------------------------------------------------------------------------


def _digests(connection: gquery.Connection, sql: str, target: Target) -> list[str]:
    return [k.digest for k in connection.kernels(sql, target)]


@pytest.mark.parametrize("target", TARGETS)
def test_constants_share_kernels(target: Target) -> None:
    tpch = programs.tpch()
    for number, old, new in [
        (1, "90", "85"),
        (3, "BUILDING", "MACHINERY"),
        (5, "ASIA", "EUROPE"),
        (6, "1994", "1995"),
        (9, "green", "blue"),
    ]:
        sql = queries.sql(number)
        assert old in sql
        assert _digests(tpch, sql, target) == _digests(tpch, sql.replace(old, new), target), number


@pytest.mark.parametrize("target", TARGETS)
def test_literals_of_every_type_are_parameters(target: Target) -> None:
    small = programs.small()
    for template, one, other in [
        ("SELECT count(*) FROM t WHERE x < {}", "500", "501"),
        ("SELECT count(*) FROM t WHERE f * {} > 3", "1.5e0", "2.5e0"),
        ("SELECT count(*) FROM t WHERE d < {}", "DATE '2020-05-05'", "DATE '2020-06-06'"),
        ("SELECT count(*) FROM t WHERE s = {}", "'a'", "'c'"),
        ("SELECT count(*) FROM t WHERE note = {}", "'a'", "'a much longer text'"),
        ("SELECT count(*) FROM t WHERE note LIKE {}", "'%special%'", "'%nothing%'"),
        ("SELECT sum(x + {}) FROM t", "3", "4"),
    ]:
        first, second = (_digests(small, template.format(value), target) for value in (one, other))
        assert first == second, template


@pytest.mark.parametrize("target", TARGETS)
def test_more_rows_share_kernels(target: Target) -> None:
    """Rows are appended, bounds stay: every kernel is there already."""
    before, more = programs.small(), gquery.connect(device="cpu")
    for name, table in programs.tables().items():
        appended = table if name == "u" else pa.concat_tables([table, table.slice(0, 200)])
        if name == "t":  # its id stays unique and within the bounds of its physical type
            ids = pa.array(range(table.num_rows, appended.num_rows), pa.int32())
            column = pa.chunked_array([*table.column("id").chunks, ids])
            appended = appended.set_column(0, "id", column)
        more.register(name, appended)
    for name in ("filter_nulls", "left_join_residual", "group_direct", "group_hash", "inner_join_duplicates"):
        sql = programs.SMALL[name]
        assert _digests(before, sql, target) == _digests(more, sql, target), name


def test_a_column_name_is_not_in_the_code() -> None:
    for target in TARGETS:
        for name in ("q01", "q09"):
            for stage in programs.program(name, target).stages:
                if isinstance(stage.work, Pipeline):
                    assert not any(re.search(r"\bl_", u.kernel.text) for u in units(stage.work, target))


@pytest.mark.parametrize("number", [8, 9])
def test_few_rows_of_many_are_found_first(number: int, tune: Tune) -> None:
    """Where a first step drops most rows, a kernel finds the others, and a second has a thread for each of them."""
    tune(tuning.materialization, compacted_least_rows=1)
    pipeline = selection.compacted(_lineitem(programs.program(f"q{number:02d}", "cuda")), 60_000, {})
    assert pipeline.selection_steps == 1
    select, main = units(pipeline, "cuda")
    assert select.role == "select" and "ballot" in select.kernel.text
    assert len(_columns(select, None)) == 1, "only the key of the first probe is read of every row"
    assert "r = i64(s" in main.kernel.text and "[r]" in main.kernel.text
    assert not selection.compacted(_lineitem(programs.program("q01", "cuda")), 60_000, {}).selection_steps, (
        "no probe to gain by"
    )
