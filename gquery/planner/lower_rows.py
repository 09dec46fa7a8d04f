"""Lowering of what works on whole frames: VALUES, ORDER BY, LIMIT, UNION ALL."""

from __future__ import annotations

from gquery.columns.store import TableStore
from gquery.columns.table import Dictionary, Table
from gquery.expression.expr import Column, Literal, SortKey, new_column
from gquery.expression.facts import UNBOUNDED
from gquery.expression.types import BIGINT, Field, Schema
from gquery.kernels.convert import merge
from gquery.kernels.dictionaries import code_properties
from gquery.kernels.values import ValueProperties
from gquery.planner.late_materialization import before, deferred_probes, resumed
from gquery.planner.layouts import range_properties
from gquery.planner.logical.nodes import Limit, Scan, Sort, UnionAll, Values
from gquery.planner.logical.tree import used_columns
from gquery.planner.lower_stream import Stream, stored_of
from gquery.planner.lowering import Lowering
from gquery.planner.physical import (
    ConcatRows,
    Materialize,
    ReadOne,
    ReadRange,
    ReadStage,
    SliceRows,
    SortRows,
    Step,
    Stored,
)
from gquery.planner.stage_columns import stage_columns


def values(lowering: Lowering, plan: Values) -> Stream:
    """The stream of constant rows."""
    one = Stream(ReadOne(), {}, 1, 1, 1)
    if not plan.columns:  # every column was pruned: only the number of rows is left
        only = new_column("row", BIGINT, False)
        known = range_properties(0, 1, len(plan.rows))
        return Stream(ReadRange(only, known, 0, 1, len(plan.rows)), {}, len(plan.rows), len(plan.rows), len(plan.rows))
    if len(plan.rows) == 1:
        return lowering.compute(one, tuple(zip(plan.columns, plan.rows[0], strict=True)))
    if not plan.rows:
        none = ReadRange(new_column("none", BIGINT, False), range_properties(0, 1, 0), 0, 1, 0)
        stream = Stream(none, {none.column.id: none.properties}, 0, 0, 0)
        return lowering.compute(stream, tuple((c, Literal(None, c.dtype)) for c in plan.columns))
    source = _constant_table(plan)
    scan = Scan(source, plan.columns, tuple(range(len(plan.columns))))
    lowering.load(scan)
    return lowering.scan(scan)


def sort(lowering: Lowering, plan: Sort, wanted: frozenset[int]) -> Stream:
    """The stream of an ORDER BY."""
    below = wanted | frozenset(i for k in plan.keys for i in used_columns(k.expr))
    stream = lowering.plan(plan.source, below)
    keys, made = [], []
    for k in plan.keys:
        column = k.expr if isinstance(k.expr, Column) else new_column("key", k.expr.dtype)
        if column is not k.expr:
            made.append((column, k.expr))
        keys.append(SortKey(column, k.descending, k.nulls_first))
    stream = lowering.compute(stream, tuple(made))
    whole = stream
    later: tuple[Step, ...] = ()
    if plan.limit is not None:
        stream, later = deferred_probes(stream, frozenset(i for k in keys for i in used_columns(k.expr)))
        wanted, below = before(later, wanted), before(later, below)
    carried = [stream.by_id[i] for i in sorted(below) if i in stream.by_id] + [c for c, _ in made]
    kept = [c for c in carried if c.id in wanted]
    stream = lowering.materialized(stream, carried, "input of a sort")
    stage = lowering.renamed_frame(stream)
    kept_ids = {c.id for c in kept}
    stored = tuple([s for s in stored_of(stream) if s.column.id in kept_ids])
    number = lowering.stage(SortRows(stage, tuple(keys), stored, plan.limit, plan.offset), "sort")
    rows = stream.rows if plan.limit is None else min(stream.rows, plan.limit)
    stream = lowering.read(number, kept, rows, stream.limit if plan.limit is None else plan.limit)
    return resumed(stream, later, whole)


def limit(lowering: Lowering, stream: Stream, plan: Limit, wanted: frozenset[int]) -> Stream:
    """The stream of a LIMIT over ``stream``."""
    most, offset = plan.limit, plan.offset
    columns = tuple(stream.by_id[i] for i in sorted(wanted) if i in stream.columns)
    enough = None if most is None else most + offset
    stream = lowering.materialized(stream, columns, "input of a limit", enough=enough)
    assert isinstance(stream.source, ReadStage)
    pairs = [(s, o) for s, o in zip(stream.source.columns, stream.source.origins, strict=True) if s.column in columns]
    work = SliceRows(stream.source.stage, tuple(s for s, _ in pairs), tuple(o for _, o in pairs), most, offset)
    number = lowering.stage(work, "limit")
    rows = stream.rows if most is None else min(stream.rows, most)
    return lowering.read(number, columns, rows, stream.limit if most is None else most)


def union(lowering: Lowering, plan: UnionAll, wanted: frozenset[int], enough: int | None = None) -> Stream:
    """The stream of a UNION ALL; with ``enough`` the first so many rows of each part will do."""
    streams, positions = [], [n for n, c in enumerate(plan.columns) if c.id in wanted]
    for source, columns in zip(plan.sources, plan.inputs, strict=True):
        streams.append(lowering.plan(source, frozenset(columns[n].id for n in positions)))
    merged = [
        merge_properties([s.columns[i[n].id] for s, i in zip(streams, plan.inputs, strict=True)]) for n in positions
    ]
    stages, inputs = [], []
    for stream, columns in zip(streams, plan.inputs, strict=True):
        stream, given = _each_once(lowering, stream, [columns[n] for n in positions])
        stored = tuple([Stored(c, w, w.physical_type) for c, w in zip(given, merged, strict=True)])
        stages.append(lowering.sink(stream, Materialize(stored, ordered=True, limit=enough), "part of a union"))
        inputs.append(tuple(s for s in stage_columns(lowering.stages[-1].work)))
    made = tuple(
        Stored(plan.columns[n], i.properties, i.physical_type) for n, i in zip(positions, inputs[0], strict=True)
    )
    number = lowering.stage(ConcatRows(tuple(stages), tuple(inputs), made), "union all")
    limits = [s.limit for s in streams]
    most = None if any(v is None for v in limits) else sum(v for v in limits if v is not None)
    most = None if most is not None and most > UNBOUNDED else most
    return lowering.read(number, tuple(plan.columns[n] for n in positions), sum(s.rows for s in streams), most)


def _each_once(lowering: Lowering, stream: Stream, columns: list[Column]) -> tuple[Stream, list[Column]]:
    """The stream with columns that are all different: a frame has each once, and a part of a union may give one several times."""
    met: set[int] = set()
    given, again = [], []
    for c in columns:
        if c.id in met:
            again.append((new_column(c.name, c.dtype, c.nullable), c))
        given.append(again[-1][0] if c.id in met else c)
        met.add(c.id)
    return lowering.compute(stream, tuple(again)) if again else stream, given


def merge_properties(known: list[ValueProperties]) -> ValueProperties:
    """What is known of a column that several inputs feed: dictionaries are merged where all have one."""
    what = merge(known)
    several = [k.dictionary for k in known if isinstance(k.dictionary, Dictionary)]
    if what.dtype.is_string and what.dictionary is None and len(several) == len(known):
        from gquery.columns.dictionary_codes import union_dictionary

        return code_properties(union_dictionary(several), what.nullable)
    return what


def _constant_table(plan: Values) -> TableStore:
    """VALUES of several rows as a table in memory."""
    import pyarrow as pa

    from gquery.columns.arrow import arrow_type, dtype_of
    from gquery.columns.arrow_intervals import of_physical
    from gquery.columns.import_arrow import import_columns
    from gquery.expression.types import INTERVAL, Kind, python_value
    from gquery.kernels.host import evaluate_or_raise
    from gquery.kernels.registers import array_of_registers
    from gquery.runtime.value_arrays import value_array

    arrays: list[pa.ChunkedArray] = []
    fields: list[Field] = []
    for n, column in enumerate(plan.columns):
        values, dtype = [evaluate_or_raise(row[n]).value for row in plan.rows], column.dtype
        if dtype == INTERVAL:  # Python's have no months, and days below zero for what is less than one
            array = of_physical(values)
        elif dtype.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):  # Python's years are 1 to 9999
            array = array_of_registers(values, dtype).cast(arrow_type(dtype))
        else:
            array = value_array([python_value(dtype, v) for v in values], arrow_type(dtype))
        arrays.append(pa.chunked_array([array]))
        fields.append(Field(f"column{n}", dtype if dtype == INTERVAL else dtype_of(array.type), array.null_count > 0))
    return TableStore("values", Table(Schema(tuple(fields)), tuple(import_columns(arrays, fields)), len(plan.rows)))
