"""Lowering: the optimized logical plan becomes a program of pipelines.

Tables are loaded first (a column that a query first touches is read, encoded and kept), so that every decision rests on
what is known of the data: physical types, bounds, dictionaries, uniqueness. A `Stream` is a pipeline under
construction; an operator that needs all rows first ends it in a sink and starts another. Joins, groups and whole frames
are lowered in the modules beside this one; equal subplans are computed once.
"""

from __future__ import annotations

from typing import assert_never

from gquery import tuning
from gquery.device.profile import DeviceProfile, profile_for
from gquery.errors import NotSupportedError
from gquery.expression.expr import Column, Expr
from gquery.planner import lower_aggregate
from gquery.planner.common_builds import common_builds
from gquery.planner.layouts import range_properties
from gquery.planner.logical.nodes import (
    Aggregate,
    Apply,
    Filter,
    Fixpoint,
    Join,
    Limit,
    Plan,
    Project,
    Query,
    Range,
    Scan,
    Shared,
    Sort,
    UnionAll,
    Unnest,
    Values,
    Window,
    WorkingTable,
)
from gquery.planner.logical.shared import definitions
from gquery.planner.logical.tree import used_columns
from gquery.planner.logical.verify import is_verifying
from gquery.planner.lower_stream import Stream
from gquery.planner.lowering import Lowering
from gquery.planner.physical import (
    Program,
    ReadRange,
    ReadStage,
    RoundRows,
    Stored,
)
from gquery.runtime.interrupt import check
from gquery.runtime.records import replace


class PlanLowering(Lowering):
    """Takes a plan node by node, each to the module that lowers it."""

    def __init__(self, target: str, profile: DeviceProfile) -> None:
        super().__init__(target, profile)
        # stages by recursion and level; the rows of the round before have none
        self.working: dict[tuple[int, int | None], tuple[int, tuple[Stored, ...]]] = {}

    def query(self, query: Query) -> Program:
        self.load(query.plan)
        for d in definitions(query.plan):  # those that others use first
            stream = self.plan(d.plan, frozenset(c.id for c in d.outputs))
            self.shared[d.number] = self.materialized(stream, d.outputs, "shared subplan")
        wanted = frozenset(c.id for c in query.outputs)
        stream = self.materialized(self.plan(query.plan, wanted), query.outputs, "result")
        assert isinstance(stream.source, ReadStage)
        at = {s.column.id: (s, o) for s, o in zip(stream.source.columns, stream.source.origins, strict=True)}
        outputs = []
        for c in query.outputs:
            stored, origin = at[c.id]
            outputs.append(Stored(Column(origin, c.name, c.dtype), stored.properties, stored.physical_type))
        program = Program(common_builds(self.stages), tuple(outputs), query.names)
        if is_verifying():
            from gquery.planner.verify_program import verify_program

            verify_program(program)
        return program

    def round_program(self, step: Query, number: int, columns: tuple[Stored, ...]) -> Program:
        from gquery.planner import lower_recursion

        inner = PlanLowering(self.target, self.profile)
        given = ["rows of the round before", *(f"level {n} of all rows" for n in range(tuning.recursion.levels))]
        for level, label in zip((None, *range(tuning.recursion.levels)), given, strict=True):
            inner.working[number, level] = inner.stage(RoundRows(columns), label), columns
        inner.load(step.plan)
        for d in definitions(step.plan):
            inner.shared[d.number] = inner.materialized(
                inner.plan(d.plan, frozenset(c.id for c in d.outputs)), d.outputs, "shared subplan"
            )
        stream = inner.plan(step.plan, frozenset(c.id for c in step.outputs))
        _, outputs = lower_recursion.as_stored(inner, stream, step.outputs, "rows of a round")
        return Program(common_builds(inner.stages), outputs, step.names)

    def _working(self, plan: WorkingTable) -> Stream:
        """The rows that a round is given, under the names of one use."""
        found = self.working.get((plan.number, plan.level))
        if found is None:
            raise NotSupportedError("a recursive query whose recursive part has another one that reads its rows")
        stage, stored = found
        made = [replace(stored[f], column=c) for c, f in zip(plan.columns, plan.fields, strict=True)]
        source = ReadStage(stage, tuple(made), tuple(stored[f].column.id for f in plan.fields))
        rows = self.estimate(plan)
        return Stream(source, {s.column.id: s.properties for s in made}, int(rows), rows, None)

    def plan(self, plan: Plan, wanted: frozenset[int]) -> Stream:
        """The stream of a plan; ``wanted`` are the columns that are used above it."""
        check()
        if isinstance(plan, (Sort, Limit, UnionAll, Values)):
            return self._named(plan, self._rows(plan, wanted))
        match plan:
            case Scan():
                stream = self.scan(plan)
            case Range():
                known = range_properties(plan.start, plan.step, plan.rows)
                source = ReadRange(plan.column, known, plan.start, plan.step, plan.rows)
                stream = Stream(source, {plan.column.id: known}, plan.rows, plan.rows, plan.rows)
            case Shared():
                stream = self.use(plan)
            case Filter(source, predicate):
                stream = self.filter(
                    self.plan(source, wanted | used_columns(predicate)), predicate, self.estimate(plan)
                )
            case Project(source, exprs):
                kept = tuple((c, e) for c, e in exprs if c.id in wanted)
                below = frozenset(i for _, e in kept for i in used_columns(e))
                stream = self.compute(self.plan(source, below), kept)
            case Join():
                from gquery.planner import lower_join  # with eight modules more, which other queries do without

                stream = lower_join.join(self, plan, wanted)
            case Aggregate():
                stream = lower_aggregate.aggregate(self, plan, wanted)
            case Window():
                from gquery.planner import lower_window  # as above

                stream = lower_window.window(self, plan, wanted)
            case Unnest():
                from gquery.planner import lower_unnest

                stream = lower_unnest.unnest(self, plan, wanted)
            case WorkingTable():
                stream = self._working(plan)
            case Fixpoint():
                from gquery.planner import lower_recursion

                stream = lower_recursion.fixpoint(self, plan)
            case Apply():
                raise NotSupportedError("a correlated subquery of this shape")
            case _:
                assert_never(plan)
        return self._named(plan, stream)

    def _named(self, plan: Plan, stream: Stream) -> Stream:
        for column in plan.columns:
            stream.by_id.setdefault(column.id, column)
        return stream

    def _rows(self, plan: Sort | Limit | UnionAll | Values, wanted: frozenset[int]) -> Stream:
        from gquery.planner import lower_rows  # which a query of one row does without

        match plan:
            case Values():
                return lower_rows.values(self, plan)
            case Sort():
                return lower_rows.sort(self, plan, wanted)
            case Limit(UnionAll() as source, limit, offset):
                enough = None if limit is None else limit + offset
                return lower_rows.limit(self, lower_rows.union(self, source, wanted, enough), plan, wanted)
            case Limit(source, limit, offset):
                return lower_rows.limit(self, self.plan(source, wanted), plan, wanted)
            case UnionAll():
                return lower_rows.union(self, plan, wanted)
            case _:
                assert_never(plan)

    def on_host(self, stream: Stream, exprs: tuple[tuple[Column, Expr], ...]) -> Stream:
        from gquery.planner import lower_host

        return lower_host.on_host(self, stream, exprs)


def lower(query: Query, target: str, profile: DeviceProfile | None = None) -> Program:
    """The program of an optimized query, for pipelines that compile for ``target``; for the device of ``profile``, or a usual
    one of the target's."""
    return PlanLowering(target, profile or profile_for(target)).query(query)
