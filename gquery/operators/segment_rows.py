"""The rows of a segment whose head comes from a selection vector, several at once.

Threads whose segments lie apart have memory of their own under way, more than the caches hold: what a thread loads for one row
is gone when it comes to the next, which lies in the same sectors. So the columns of a few rows are loaded before the first of
them is looked at, also those behind the end of the segment or behind a filter. It is made from the statements of a single row.
Where all segments are there, their neighbours have the rest of a sector, and a loop over single rows does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from gquery import tuning
from gquery.expression.frozen import frozen_open
from gquery.kernels import ir
from gquery.kernels.bindings import ColumnPart, StatePart
from gquery.kernels.code import Code
from gquery.kernels.ir.expressions import Leaf, LeafMap
from gquery.kernels.ir.statements import line_count
from gquery.kernels.ir.walk import assigned, over
from gquery.kernels.stored import element_type
from gquery.kernels.unroll import loads_at, split_loads
from gquery.operators.read import read
from gquery.planner.physical import SegmentRows, Source, Stored


@frozen_open
class RowsOfSegment:
    """Where the rows of a segment come from: it begins at row ``head`` of the source. ``kept`` are variables that outlive a row;
    as soon as the one of them called ``stops`` is true, if there is one, the rest of the rows is left out."""

    rows: SegmentRows
    source: Source
    head: ir.Name
    kept: tuple[ir.Name, ...]
    stops: ir.Name | None


def emit_rows(segment: RowsOfSegment, code: Code, write: Callable[[], None]) -> None:
    """The loops over the rows of a segment; ``write`` writes what is done for one."""
    if segment.rows.to_next_head:
        _up_to_next_head(segment, code, write)
    else:
        _by_key(segment, code, write)
    read(segment.source, code, segment.head)


def _up_to_next_head(segment: RowsOfSegment, code: Code, write: Callable[[], None]) -> None:
    """The first row, and a loop over the others: no row waits for the key of the one before."""
    end = code.let(code.scalar(StatePart("rows")))
    following = code.let(code.call("add_i64", code.call("i64", ir.ROW), code.integer(1)))
    with code.when(code.call("lt_i64", following, code.scalar(StatePart("compacted")))):
        code.set(end, code.call("i64", ir.Load(code.pointer("u32", StatePart("selection"), "s"), following)))
    write()
    member = code.let(code.call("add_i64", segment.head, code.integer(1)))
    with code.another_row(), code.loop(_unless(segment.stops, code.call("lt_i64", member, end))):
        read(segment.source, code, member)
        write()
        code.set(member, code.call("add_i64", member, code.integer(1)))


def _by_key(segment: RowsOfSegment, code: Code, write: Callable[[], None]) -> None:
    """Loops over several rows and over single ones, as long as their key is that of the segment."""
    key, rows = code.column(segment.rows.key.column).var, code.scalar(StatePart("rows"))
    member, going = code.let(code.call("i64", segment.head)), code.let(ir.TRUE)
    with code.another_row(), code.loop(going):
        read(segment.source, code, member)
        write()
    row = code.body.pop()
    assert isinstance(row, ir.While)
    _several(segment, row.body, _Position(key, rows, member, going), code)
    _single(segment, row.body, _Position(key, rows, member, going), code)


@frozen_open
class _Position:
    """The key of the segment, how many rows there are, the one at hand, and whether it may be one of the segment."""

    key: ir.Expression
    rows: ir.Expression
    member: ir.Name
    going: ir.Name


def _several(segment: RowsOfSegment, row: ir.Block, position: _Position, code: Code) -> None:
    """The loop over several rows at once, as long as the source has as many."""
    count, member, going = tuning.loops.segment_rows, position.member, position.going
    loads, rest = split_loads(row, loads_at(row, member), (member,))
    if line_count(rest) > tuning.loops.segment_lines or len(loads) > tuning.loops.segment_loads:
        return
    fits = code.call("le_i64", code.call("add_i64", member, code.integer(count)), position.rows)
    with code.loop(_unless(segment.stops, going, fits)):
        members = [member, *[code.let(code.call("add_i64", member, code.integer(n))) for n in range(1, count)]]
        keys = [_load_key(segment.rows.key, m, code) for m in members]
        each = [_names_of_row(n, member, m, assigned(row), segment.kept) for n, m in enumerate(members)]
        for load in loads:
            code.body += [s for names in each for s in over((load,), names)]
        for n, names in enumerate(each):
            same = code.call("eq_i64", position.key, keys[n])
            code.set(going, ir.And((going, same)) if n else same)
            with code.when(going):
                code.body += over(rest, names)
        code.set(member, code.call("add_i64", member, code.integer(count)))


def _single(segment: RowsOfSegment, row: ir.Block, position: _Position, code: Code) -> None:
    """The loop over one row after another."""
    member, going = position.member, position.going
    with code.loop(_unless(segment.stops, going)):
        code.set(going, code.call("lt_i64", member, position.rows))
        with code.when(going):
            code.set(going, code.call("eq_i64", position.key, _load_key(segment.rows.key, member, code)))
        with code.when(going):
            code.body += row
        code.set(member, code.call("add_i64", member, code.integer(1)))


def _unless(stops: ir.Name | None, *tests: ir.Expression) -> ir.Expression:
    all_tests = tests if stops is None else (*tests, ir.Not(stops))
    return all_tests[0] if len(all_tests) == 1 else ir.And(all_tests)


def _load_key(key: Stored, row: ir.Name, code: Code) -> ir.Name:
    data = code.pointer(element_type(key.physical_type), ColumnPart(None, key.column.id, "data"), "c")
    return code.let(code.call("i64", ir.Load(data, row)))


def _names_of_row(
    number: int, member: ir.Name, position: ir.Name, own: Collection[ir.Name], kept: Collection[ir.Name]
) -> LeafMap:
    """Gives the names of one row of several: its own variables are numbered, its position is another one."""

    def renamed(leaf: Leaf) -> Leaf:
        if leaf == member:
            return position
        if isinstance(leaf, ir.Name) and leaf.role == "row" and leaf in own and leaf not in kept:
            return ir.Name(f"{leaf.id}_{number}", "row")
        return leaf

    return renamed
