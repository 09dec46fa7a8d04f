"""The build rows that a probe goes through: those of its key, of them those within bounds, of these those that reach far enough.

Rows of one key stand one after another in the table's ``order``. Where they are sorted by another column, a binary search finds
the range within the probe's bounds of it. An overlap of intervals bounds two columns from one side each: the rows that begin soon
enough are a range, and of these a reach tree gives those that end late enough, from the last to the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gquery.expression.types import Register
from gquery.kernels import ir
from gquery.kernels.bindings import BuildPart
from gquery.kernels.code import Code
from gquery.kernels.render import render
from gquery.kernels.values import Value
from gquery.operators.join_lookup import lookup
from gquery.planner.physical import Probe


class Candidates:
    """The candidates of the rows that may match, from ``begin`` to the one before ``end``."""

    def __init__(self, step: Probe, code: Code) -> None:
        self.step, self.code = step, code
        self.begin, self.end = _range(step, code)
        bounds = [render(b.expr, code) for b in step.bounds]
        is_known = code.both(*(v.ok for v in bounds))
        if is_known is not None:  # no row is less or more than NULL
            with code.when(ir.Not(is_known)):
                code.set(self.end, self.begin)
        values = [_ordinal(v, code) for v in bounds]
        for n, bound in enumerate(step.low):
            self._move(self.begin, "first_at_least" if bound.inclusive else "first_above", values[n])
        for n, bound in enumerate(step.high, len(step.low)):
            self._move(self.end, "first_above" if bound.inclusive else "first_at_least", values[n])
        self.reach = None if step.reach is None else code.let(values[-1])

    def _move(self, end: ir.Name, search: str, value: ir.Expression) -> None:
        """Set an end of the range to what a search within it finds."""
        code = self.code
        keys = code.pointer("i64", BuildPart(self.step.table.stage, "sorted_keys"), "b")
        low, high = code.call("i64", self.begin), code.call("i64", self.end)
        if self.step.table.layout != "sorted":
            code.set(end, code.call("row_index", code.call(search, keys, low, high, value)))
            return
        first, last = self._bucket(value)
        found = code.call(search, keys, first, last, value)
        code.set(end, code.call("row_index", code.call("max_i64", code.call("min_i64", found, high), low)))

    def _bucket(self, value: ir.Expression) -> tuple[ir.Name, ir.Name]:
        """Where among all keys a value's bucket begins and ends."""
        code, stage = self.code, self.step.table.stage
        scale = code.pointer("i64", BuildPart(stage, "key_scale"), "b")
        starts = code.pointer("u32", BuildPart(stage, "key_starts"), "b")
        bucket = code.let(code.call("key_bucket", scale, value))
        first = code.let(code.call("i64", ir.Load(starts, bucket)))
        return first, code.let(code.call("i64", ir.Load(starts, code.call("add_i64", bucket, code.integer(1)))))

    @contextmanager
    def each(self) -> Iterator[ir.Name]:
        """A block for each place."""
        code = self.code
        if self.reach is None:
            j = code.name("j", "row")
            with code.each(j, self.begin, self.end):
                yield j
            return
        j = self.first()
        with code.loop(self.is_one(j)):
            yield j
            self.go_on(j)

    @contextmanager
    def each_and_none(self) -> Iterator[tuple[ir.Name, ir.Name]]:
        """A block for each place and one more behind them, with whether it is a place."""
        code = self.code
        if self.reach is None:
            j = code.name("j", "row")
            with code.each(j, self.begin, code.call("next_index", self.end)):
                yield j, code.let(ir.Operation(j, "<", self.end))
            return
        j, goes_on = self.first(), code.let(ir.TRUE)
        with code.loop(goes_on):
            found = code.let(self.is_one(j))
            yield j, found
            code.set(goes_on, found)
            with code.when(found):
                self.go_on(j)

    def first(self) -> ir.Name:
        """A variable with the first place, if there is one."""
        if self.reach is None:
            return self.code.let(self.begin)
        return self.code.let(self._before(self.code.call("i64", self.end)))

    def is_one(self, j: ir.Name) -> ir.Expression:
        """Whether ``j`` is a place, and not behind the last one."""
        if self.reach is None:
            return ir.Operation(j, "<", self.end)
        return self.code.call("ge_i64", j, self.code.call("i64", self.begin))

    def go_on(self, j: ir.Name) -> None:
        """Set ``j`` to the next place."""
        self.code.set(j, self.code.call("next_index", j) if self.reach is None else self._before(j))

    def _before(self, end: ir.Expression) -> ir.Expression:
        """The last place before ``end`` that reaches far enough."""
        code, stage, reach = self.code, self.step.table.stage, self.step.reach
        assert reach is not None and self.reach is not None
        tree, leaves = (
            code.pointer("i64", BuildPart(stage, "reach_tree"), "b"),
            code.scalar(BuildPart(stage, "reach_leaves")),
        )
        return code.call("last_reaching" if reach.inclusive else "last_reaching_above", tree, leaves, end, self.reach)

    def set_row(self, row: ir.Name, j: ir.Expression) -> None:
        """Set a variable to the number of the row at place ``j``. Where the build's rows come in the order of their keys, that
        is a row number, and memory is not asked for it."""
        code, table = self.code, self.step.table
        code.set(row, code.call("i64", j))
        if table.layout == "loop":
            return
        gathers = code.scalar(BuildPart(table.stage, "gathers"))
        with code.when(code.call("ne_i64", gathers, code.integer(0))):
            order = code.pointer("u32", BuildPart(table.stage, "order"), "b")
            code.set(row, code.call("i64", ir.Load(order, j)))

    def row(self, j: ir.Name) -> ir.Name:
        """A variable with the number of the row at place ``j``."""
        row = self.code.variable()
        self.set_row(row, j)
        return row


def _range(step: Probe, code: Code) -> tuple[ir.Name, ir.Name]:
    """The range of positions that the probe's key has."""
    table = step.table
    if table.layout in ("loop", "sorted"):
        count = code.scalar(BuildPart(table.stage, "count"))
        return code.let(code.call("row_index", code.integer(0))), code.let(code.call("row_index", count))
    starts = code.pointer("u32", BuildPart(table.stage, "starts"), "b")
    where, inside = lookup(step, code)
    begin = code.let(code.call("row_index", code.integer(0)))
    end = code.let(begin)
    if inside is not None:
        code.open_if(inside)
    code.set(begin, code.call("row_index", ir.Load(starts, where)))
    following = code.call("add_i64", where, code.integer(1))
    code.set(end, code.call("row_index", ir.Load(starts, following)))
    if inside is not None:
        code.close()
    return begin, end


def _ordinal(value: Value, code: Code) -> ir.Expression:
    """The integer that compares as a value does: the build side's lie sorted as such."""
    return code.call("f64_order", value.var) if value.properties.register is Register.F64 else value.var
