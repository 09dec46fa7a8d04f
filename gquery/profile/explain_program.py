"""Programs as text: the stages of a query ("physical"), what each fused pipeline does row by row and where it will run
("pipelines"), and the text of its kernels ("code")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, assert_never

from gquery.execution import ExecutionContext
from gquery.execution.decision import Specialized
from gquery.execution.feedback import RunFeedback
from gquery.execution.prepare import forecast
from gquery.expression.expr import Column
from gquery.kernels.bindings import TextMatches
from gquery.kernels.patterns import ANY
from gquery.kernels.targets.capabilities import capabilities
from gquery.operators import accumulate
from gquery.operators.codegen import behind_selection, kernels, units
from gquery.operators.join_build import is_speculated
from gquery.operators.joined_text import joins_text
from gquery.operators.materialize import materialize_mode
from gquery.planner.physical import (
    AggregateSegment,
    Build,
    Compute,
    ConcatRows,
    DistinctRows,
    FilterRows,
    Group,
    HostRows,
    JoinTable,
    Materialize,
    OrderedGroups,
    Pipeline,
    PipelineBreaker,
    Probe,
    Program,
    RankDecode,
    RankEncode,
    ReadOne,
    ReadRange,
    ReadStage,
    ReadTable,
    RecursiveRows,
    Reduce,
    RoundRows,
    SegmentHeads,
    SegmentRows,
    Sink,
    SliceRows,
    SortRows,
    Source,
    Step,
    UnmatchedRows,
    UnnestRows,
    WindowRows,
)
from gquery.planner.stage_columns import stage_columns
from gquery.profile.explain import Printer
from gquery.profile.ranks import placement_texts

COMPACTED = "; rows that get here are compacted into a selection vector"
ProgramLevel = Literal["physical", "pipelines", "code"]


def explain_program(
    program: Program, context: ExecutionContext, level: ProgramLevel | str, feedback: RunFeedback | None = None
) -> str:
    """The program as it runs next, as far as estimates tell, and exactly where ``feedback`` is that of an earlier run."""
    printer = printer_of(program)
    runs = specialized(program, context, feedback)
    placed = placement_texts(program, context, feedback or RunFeedback())
    lines: list[str] = []
    for stage in program.stages:
        work = stage.work
        if not isinstance(work, Pipeline):
            lines.append(f"stage {stage.number}: {_breaker(work, printer)}")
            lines += [f"  {text}" for text in placed[stage.number : stage.number + 1]]
            continue
        where = runs[stage.number]
        lines.append(f"stage {stage.number}: {stage.label}" + ("" if level == "physical" else f"  [{_where(where)}]"))
        lines += [f"  {text}" for text in placed[stage.number : stage.number + 1]]
        if level == "physical":
            continue
        lines += ["  " + text for text in _pipeline(where.pipeline, where.target, printer)]
        if level == "code":
            for kernel in kernels(where.pipeline, where.target):
                lines += ["", *("    " + line for line in kernel.text.splitlines()), ""]
                if unrolled := kernel.unrolled:
                    lines += [*("    " + line if line else "" for line in unrolled.text), ""]
    if program.fetch is not None:
        lines.append(program.fetch.text)
    return "\n".join(lines) + "\n"


def specialized(program: Program, context: ExecutionContext, feedback: RunFeedback | None) -> dict[int, Specialized]:
    """The pipelines of a program as they run next, by stage."""
    found = forecast(program, context, feedback, asks_kernels=True)
    return {f.stage.number: f.runs for f in found}


def printer_of(program: Program) -> Printer:
    """Names for the columns of a program."""
    return Printer.of(_columns(program))


def describe_work(work: Pipeline | PipelineBreaker, target: str, printer: Printer) -> Iterator[tuple[str, str]]:
    """The parts of a stage in order, source first and sink last: the name of the node, and what it does."""
    if not isinstance(work, Pipeline):
        yield type(work).__name__, _breaker(work, printer)
        return
    parts = (work.source, *work.steps, work.sink)
    for part, text in zip(parts, _pipeline(work, target, printer), strict=True):
        yield type(part).__name__, text


def _columns(program: Program) -> Iterator[Column]:
    for stage in program.stages:
        work = stage.work
        if isinstance(work, Pipeline | HostRows):
            yield from _read_columns(work.source)
        if isinstance(work, Pipeline):
            for step in work.steps:
                yield from _made_columns(step)
        yield from (s.column for s in stage_columns(work))


def _read_columns(source: Source) -> Iterator[Column]:
    match source:
        case ReadTable(columns=columns):
            yield from (s.column for s in columns)
        case ReadStage(columns=columns, numbered=numbered):
            yield from (s.column for s in columns)
            if numbered is not None:
                yield numbered.column
        case ReadRange(column=column):
            yield column
        case ReadOne():
            pass
        case _:
            assert_never(source)


def _made_columns(step: Step) -> Iterator[Column]:
    match step:
        case Compute(exprs):
            yield from (c for c, _ in exprs)
        case Probe(table=table, mark=mark):
            yield from (s.column for s in table.columns)
            if mark is not None:
                yield mark
        case AggregateSegment(aggregates=aggregates):
            yield from (c for c, _ in aggregates)
        case FilterRows() | SegmentHeads() | SegmentRows():
            pass
        case _:
            assert_never(step)


def _where(runs: Specialized) -> str:
    target, reason, _ = runs.choice
    return f"{target}: {reason}" if reason else target


def _pipeline(work: Pipeline, target: str, printer: Printer) -> Iterator[str]:
    yield _source(work.source, printer) + _text_scans(work, target, printer)
    for number, step in enumerate(work.steps, 1):
        yield _step(step, printer) + (COMPACTED if number == work.selection_steps else "")
    yield _sink(work, work.sink, target, printer)


def _text_scans(work: Pipeline, target: str, printer: Printer) -> str:
    """The patterns that are looked for in whole columns before the kernels run."""
    if not capabilities(target).scans_text or not isinstance(work.source, ReadTable):
        return ""
    bound = [b for unit in units(work, target) for b in unit.bindings.values() if isinstance(b, TextMatches)]
    columns = {s.column.id: printer.column(s.column) for s in work.source.columns}
    found = dict.fromkeys(f"{columns[b.column]} LIKE {_quoted(b.pattern.prepared)}" for b in bound)
    return f"; text scan for {', '.join(found)}" if found else ""


def _quoted(prepared: bytes) -> str:
    """A prepared pattern as it is written where ! escapes."""
    pieces = [piece.decode().replace("'", "''") for piece in prepared.split(bytes([ANY]))]
    escaped = [piece.replace("!", "!!").replace("%", "!%").replace("_", "!_") for piece in pieces]
    return f"'{'%'.join(escaped)}' ESCAPE '!'" if escaped != pieces else f"'{'%'.join(pieces)}'"


def _names(columns: Iterable[Column], printer: Printer) -> str:
    return ", ".join(printer.column(c) for c in columns)


def _source(source: Source, printer: Printer) -> str:
    match source:
        case ReadTable(table, _, columns):
            shown = ", ".join(f"{printer.column(s.column)} {_physical_type(s)}" for s in columns)
            return f"read {table.name} ({shown})"
        case ReadRange(column, _, start, step, rows):
            return f"range {printer.column(column)} from {start} by {step}, {rows:,} rows"
        case ReadStage(stage, columns, numbered=numbered):
            shown = ", ".join(f"{printer.column(s.column)} {_physical_type(s)}" for s in columns)
            by_row = "" if numbered is None else f"{printer.column(numbered.column)} by position, "
            return f"read stage {stage} ({by_row}{shown})"
        case ReadOne():
            return "one row"
        case _:
            assert_never(source)


def _physical_type(stored: object) -> str:
    from gquery.planner.physical import Stored

    assert isinstance(stored, Stored)
    codes = " codes" if stored.properties.dictionary is not None else ""
    return f"{stored.physical_type.value}{codes}{'?' if stored.properties.nullable else ''}"


def _step(step: Step, printer: Printer) -> str:
    match step:
        case FilterRows(predicate):
            return f"select {printer.expr(predicate)}"
        case Compute(exprs):
            return f"compute {', '.join(printer.named(c, e) for c, e in exprs)}"
        case Probe(table, kind, keys, residual, filter=made):
            on = f" by ({', '.join(printer.expr(k) for k in keys)})" if keys else ""
            tested = f", testing {printer.expr(residual)}" if residual is not None else ""
            first = "" if made is None else ", in shared memory" if made.is_table else ", key filter first"
            return f"probe stage {table.stage}, {kind.value}{on}{_bounds(step, printer)}{first}{tested}"
        case SegmentHeads(key):
            return f"first rows of the segments of {printer.column(key.column)}"
        case SegmentRows(key):
            return f"rows of the segment of {printer.column(key.column)}"
        case AggregateSegment(accumulators, aggregates):
            results = _names((c for c, _ in aggregates), printer)
            return f"aggregate the segment to ({results}), {len(accumulators)} words in registers"
        case _:
            assert_never(step)


def _bounds(step: Probe, printer: Printer) -> str:
    """The range of rows that a probe looks for in a sorted table."""
    by, reach = step.table.sorted_by, step.table.reach_of
    if by is None:
        return ""
    terms = [f"{printer.column(by)} {'>=' if b.inclusive else '>'} {printer.expr(b.expr)}" for b in step.low]
    terms += [f"{printer.column(by)} {'<=' if b.inclusive else '<'} {printer.expr(b.expr)}" for b in step.high]
    if reach is not None and step.reach is not None:
        terms.append(f"{printer.column(reach)} {'>=' if step.reach.inclusive else '>'} {printer.expr(step.reach.expr)}")
    return f", {' and '.join(terms)}"


def _layout(table: JoinTable, printer: Printer) -> str:
    inside = "" if table.sorted_by is None else f" sorted by {printer.column(table.sorted_by)}"
    if table.reach_of is not None:
        inside += f", reach tree of {printer.column(table.reach_of)}"
    match table.layout:
        case "sorted":
            return f"rows{inside}"
        case "one":
            return "one row"
        case "loop":
            return "all rows, in a loop"
        case "direct-address":
            assert table.key_encoding is not None
            what = "bitmap" if table.exists else f"array of {_held(table, printer)}"
            return f"direct-address {what}{inside}, {table.key_encoding.size:,} slots"
        case "hash":
            if table.exists:
                return "hash table of keys" if table.inline_keys else "hash table"
            return f"hash table of {'keys and ' if table.inline_keys else ''}{_held(table, printer)}{inside}"
        case _:
            assert_never(table.layout)


def _filter(table: JoinTable) -> str:
    """The bitmap that is made beside a table."""
    if table.filter is None or table.filter.is_table:
        return ""
    return f", key filter of {table.filter.bits:,} bits for {1 << table.filter.shift:,} keys each"


def _held(table: JoinTable, printer: Printer) -> str:
    """What a table holds for a key."""
    entry = (
        "rows"
        if table.inline_payload is None
        else f"({_names((f.column for f in table.inline_payload.fields), printer)})"
    )
    if is_speculated(table):
        return f"{entry} if keys are unique, else row ranges"
    return entry if table.unique else "row ranges"


def _sink(work: Pipeline, sink: Sink, target: str, printer: Printer) -> str:
    match sink:
        case Materialize(columns, limit=limit, few=few):
            mode = {
                "dense": "one row each", "compact_morsels": "per-morsel compaction", "selection_bitmap": "selection bitmap",
                "count_then_scatter": "count, then scatter", "bounded_morsels": "per-morsel compaction if there is room",
            }  # fmt: skip
            first = "" if limit is None else f", until {limit:,} are there"
            how = mode[materialize_mode(behind_selection(work).steps, capabilities(target).has_warps, few)]
            return f"materialize ({_names((s.column for s in columns), printer)}), {how}{first}"
        case Reduce(accumulators, aggregates):
            return f"reduce to ({_names((c for c, _ in aggregates), printer)}), {len(accumulators)} words"
        case Group(layout, keys, key_encoding, accumulators, aggregates):
            by = ", ".join(printer.named(c, e) for c, e, _ in keys)
            size = f", {key_encoding.size:,} slots" if key_encoding is not None and layout == "direct-address" else ""
            places = {
                "private": "private columns",
                "block": "shared columns" if layout == "direct-address" else "shared hash table",
            }
            where = accumulate.state_location(sink, target)
            how = places.get(where) or {"direct-address": "direct-address arrays"}.get(layout, f"{layout} table")
            how += {
                "clustered": " for all threads", "cached": " for all threads, each with a cache",
                "partitioned": " for each part of the keys",
            }.get(where, "")  # fmt: skip
            how += f", filled in {sink.windows} windows" if sink.windows > 1 else ""
            return f"group by {by} to ({_names((c for c, _ in aggregates), printer)}), {how}{size}, {len(accumulators)} words"
        case Build(table):
            return f"build ({_names(table.keys, printer)}): {_layout(table, printer)}{_filter(table)}"
        case _:
            assert_never(sink)


def _breaker(work: PipelineBreaker, printer: Printer) -> str:
    match work:
        case SortRows(stage, keys, _, limit, offset):
            by = ", ".join(printer.expr(k.expr) + (" desc" if k.descending else "") for k in keys)
            return f"sort stage {stage} by {by}" + ("" if limit is None else f", first {limit + offset}")
        case SliceRows(stage, _, _, limit, offset):
            return f"slice stage {stage}: {'all' if limit is None else limit} rows after {offset}"
        case ConcatRows(stages):
            return f"concatenate stages {', '.join(map(str, stages))}"
        case RankEncode(stage, pairs, keys=keys):
            within = f" by {_names(keys, printer)}" if keys else ""
            return f"rank-encode {_names((s.column for s, _ in pairs), printer)} of stage {stage}{within}"
        case RankDecode(stage, ranked):
            return f"rank-decode stage {stage} by stage {ranked}"
        case RoundRows(columns):
            return f"rows of a round ({_names((s.column for s in columns), printer)})"
        case RecursiveRows(stage, _, program, columns):
            steps = "; ".join(f"{s.number}: {s.label}" for s in program.stages if not isinstance(s.work, RoundRows))
            return (
                f"recursion from stage {stage} to ({_names((s.column for s in columns), printer)}), each round {steps}"
            )
        case WindowRows(stage, partition, order, windows, first=first, sort=sort):
            by = f" by {_names(partition, printer)}" if partition else ""
            inside = f" order {', '.join(map(printer.key, order))}" if order else ""
            values = ", ".join(f"{printer.column(s.column)} = {printer.window(call)}" for s, call in windows)
            top = "" if first is None else f" top {first}"
            shared = f" in one sort by {', '.join(map(printer.key, sort))}" if sort else ""
            return f"windows of stage {stage}{top}{by}{inside}{shared}: {values}"
        case UnnestRows(stage, lists, ordinal):
            numbered = "" if ordinal is None else f", numbered {printer.column(ordinal.column)}"
            made = ", ".join(f"{printer.column(s.column)} of {printer.expr(c)}" for s, c in lists)
            return f"elements of lists in stage {stage}: {made}{numbered}"
        case UnmatchedRows(table, probe_stage):
            return f"rows of stage {table.stage} that stage {probe_stage} did not match"
        case DistinctRows(stage, source, _, counted):
            return f"{'count' if counted else 'take'} the different values of {printer.expr(source)} in stage {stage}"
        case OrderedGroups(stage, keys, made_in_order):
            by = _names((c for c, _ in keys), printer)
            return f"group stage {stage} by {by} in order to ({_names((s.column for s, _ in made_in_order), printer)})"
        case HostRows(source, made):
            calls = ", ".join(printer.named(s.column, e) for s, e in made)
            does = "join texts" if joins_text(work) else "call on the host"
            return f"{does}: {calls}; {_source(source, printer)}"
        case _:
            assert_never(work)
