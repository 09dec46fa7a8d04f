"""Grouping sets become groups of their own.

    Aggregate by a, b in sets (a, b), (a), ():        UnionAll a, b, n, s, mask
        n = count(*), s = sum(x)                        Project a, b, n, s, 0
      Scan t                                              Shared g (a, b, n, s)
                                              =>        Project a, NULL, n, s, 2
                                                          Aggregate by a: n = sum(n), s = sum(s)
                                                            Shared g (a, b, n, s)
                                                        Project NULL, NULL, coalesce(n, 0), s, 3
                                                          Aggregate: n = sum(n), s = sum(s)
                                                            ...
                                                      g: Aggregate by a, b: n = count(*), s = sum(x)
                                                           Scan t

The rows are grouped once, by all keys. A coarser set is made of the groups of the smallest set that holds it. Many sets are
one group by: each of the finest groups comes once for each set, with the set's mask, and the keys that are not in it are NULL.
Where results of parts do not tell that of the whole (DISTINCT), the rows themselves are what all sets share.

The set of no keys has a row, whatever the data: it is an aggregate without keys.
"""

from __future__ import annotations

from collections.abc import Sequence

from gquery import tuning
from gquery.expression.expr import TRUE, AggregateCall, Case, Column, Expr, Literal, new_column
from gquery.expression.types import BIGINT
from gquery.functions import call, may_give_null
from gquery.planner.logical.nodes import (
    Aggregate,
    Definition,
    GroupingSets,
    Join,
    JoinKind,
    Plan,
    Project,
    Query,
    UnionAll,
    Values,
)
from gquery.planner.logical.shared import new_definition, use
from gquery.planner.logical.tree import (
    free_columns,
    fresh_copy,
    remap_expr,
)
from gquery.planner.rules.merged_parts import merged_part, merged_value, merges, parts_of
from gquery.runtime.records import dataclass

Set = tuple[int, ...]
Calls = tuple[tuple[Column, AggregateCall], ...]
_Use = tuple[Plan, dict[int, Column], dict[int, Column]]


def expanded(plan: Aggregate, sets: GroupingSets) -> Plan:
    """What stands for an aggregate with grouping sets."""
    return _Sets(plan, sets).plan()


@dataclass(eq=False)
class _Groups:
    """A plan that several others read: what each of them gets has columns of its own. ``keys`` are its keys by their positions,
    ``parts`` its other columns by the ids that they have in the finest groups."""

    made: Plan
    keys: dict[int, Column]
    parts: dict[int, Column]
    definition: Definition | None = None

    def __post_init__(self) -> None:
        if not free_columns(self.made):
            columns = (*self.keys.values(), *self.parts.values())
            self.definition = new_definition(Query(self.made, columns, tuple(c.name for c in columns)), "groups")

    def use(self) -> _Use:
        """The plan, and what its keys and parts are called there."""
        if self.definition is None:
            plan, names = fresh_copy(self.made)
        else:
            plan = use(self.definition)
            names = {made.id: c for made, c in zip(self.definition.outputs, plan.columns, strict=True)}
        keys = {n: names[c.id] for n, c in self.keys.items()}
        return plan, keys, {i: names[c.id] for i, c in self.parts.items()}


class _Sets:
    """One aggregate with its sets."""

    def __init__(self, plan: Aggregate, sets: GroupingSets) -> None:
        self.old, self.sets, self.mask = plan, sets.sets, sets.mask
        self.merges = all(merges(a) for _, a in plan.aggregates)
        self.whole = tuple(range(len(plan.keys)))

    def plan(self) -> Plan:
        """The groups of all sets, one after another."""
        finest = self._finest()
        branches = [self._branch(self._coarser(finest, ()), ()) for s in self.sets if not s]
        left = [s for s in self.sets if s]
        if self.merges:
            branches += [self._branch(finest.use(), s) for s in left if s == self.whole]
            left = [s for s in left if s != self.whole]
        if len(left) > tuning.rewrites.sets_by_themselves:
            branches.append(self._together(finest, left))
        else:
            branches += self._one_by_one(finest, left)
        if len(branches) == 1:  # under the names that are read above
            rows = branches[0]
            exprs = tuple((c, made) for c, made in zip(self.old.columns, rows.columns, strict=True))
            return Project(rows, exprs)
        return UnionAll(tuple(branches), tuple(b.columns for b in branches), self.old.columns)

    # ---- what all sets share -----------------------------------------------------------------------------------------

    def _finest(self) -> _Groups:
        """The groups by all keys with mergeable parts of the aggregates; the rows where these are of no use."""
        keys = tuple((new_column(c.name, e.dtype, e.nullable), e) for c, e in self.old.keys)
        named = {n: c for n, (c, _) in enumerate(keys)}
        self.inner: list[Calls] = []
        if self.merges:
            parts: list[tuple[Column, AggregateCall]] = []
            for _, a in self.old.aggregates:
                own = tuple((new_column(p.function, p.dtype, may_give_null(p, bool(keys))), p) for p in parts_of(a))
                self.inner.append(own)
                parts += own
            return _Groups(Aggregate(self.old.source, keys, tuple(parts)), named, {c.id: c for c, _ in parts})
        exprs = list(keys)
        values: dict[Expr, Column] = {}
        for _, a in self.old.aggregates:
            for e in a.expressions:
                if e not in values and not isinstance(e, Literal):  # a fraction or a separator stays one
                    values[e] = new_column("value", e.dtype, e.nullable)
                    exprs.append((values[e], e))
            moved = a.mapped(lambda e: values.get(e, e))
            self.inner.append(((new_column(a.function, a.dtype, a.nullable), moved),))
        return _Groups(Project(self.old.source, tuple(exprs)), named, {c.id: c for c in values.values()})

    def _calls(self, names: dict[int, Column], has_keys: bool) -> tuple[Calls, dict[int, Column]]:
        """The aggregates over what is called ``names``, and the columns that they make by what those of the finest groups are
        called, or by the aggregate."""
        calls: list[tuple[Column, AggregateCall]] = []
        made: dict[int, Column] = {}
        for c, part in (pair for own in self.inner for pair in own):
            if self.merges:
                again = merged_part(part, names[c.id])
            else:
                again = part.mapped(lambda e: remap_expr(e, names))
            made[c.id] = new_column(c.name, again.dtype, may_give_null(again, has_keys))
            calls.append((made[c.id], again))
        return tuple(calls), made

    # ---- sets --------------------------------------------------------------------------------------------------------

    def _one_by_one(self, finest: _Groups, sets: Sequence[Set]) -> list[Plan]:
        """Each set from the smallest that holds it."""
        known: dict[Set, _Groups] = {self.whole: finest}
        branches: list[Plan] = []
        for s in sorted(sets, key=len, reverse=True):
            if self.merges and s in known:  # once more
                branches.append(self._branch(known[s].use(), s))
                continue
            below = finest
            if self.merges:
                below = known[min((k for k in known if set(k) >= set(s)), key=len)]
            groups = self._coarser(below, s)
            if self.merges and any(set(t) <= set(s) and t is not s for t in sets):
                known[s] = _Groups(*groups)
                groups = known[s].use()
            branches.append(self._branch(groups, s))
        return branches

    def _coarser(self, below: _Groups, positions: Set) -> _Use:
        """The groups by some of the keys."""
        plan, columns, names = below.use()
        calls, made = self._calls(names, bool(positions))
        keys = {n: new_column(columns[n].name, columns[n].dtype, columns[n].nullable) for n in positions}
        return Aggregate(plan, tuple((keys[n], columns[n]) for n in positions), calls), keys, made

    def _branch(self, groups: _Use, positions: Set) -> Plan:
        """The groups of one set as they are asked for."""
        return self._output(*groups, Literal(self._bits(positions), BIGINT))

    def _together(self, finest: _Groups, sets: Sequence[Set]) -> Plan:
        """Many sets in one group by, or in two: the first leaves out keys of the first half alone."""
        plan, columns, names = finest.use()
        mask = None
        if self.merges and len(sets) > tuning.rewrites.sets_at_once:
            half = set(self.whole[len(self.whole) // 2 :])
            coarse = list(dict.fromkeys(tuple(n for n in self.whole if n in half or n in s) for s in sets))
            (plan, columns, names), mask = self._masked(
                (plan, columns, names), None, [(0, self._bits(s), 0) for s in coarse]
            )
            marks = [self._bits(tuple(n for n in self.whole if n in half or n in s)) for s in sets]
        else:
            marks = [0] * len(sets)
        times = [sum(1 for t in sets[:n] if t == s) for n, s in enumerate(sets)]
        rows = [(m, self._bits(s), n) for m, s, n in zip(marks, sets, times, strict=True)]
        made, mask = self._masked((plan, columns, names), mask, rows)
        return self._output(*made, mask)

    def _masked(self, groups: _Use, before: Column | None, rows: Sequence[tuple[int, int, int]]) -> tuple[_Use, Column]:
        """Each group once for each of the ``rows`` whose first value is its mask ``before``, grouped by the second, the mask from
        here on, by the third, which tells equal sets apart, and by the keys that the mask leaves."""
        plan, columns, names = groups
        old, mask, number = (new_column(n, BIGINT, False) for n in ("before", "mask", "number"))
        values = tuple(tuple(Literal(v, BIGINT) for v in row) for row in rows)
        condition = TRUE if before is None else call("eq", before, old)
        both = Join(plan, Values((old, mask, number), values), JoinKind.INNER, condition)
        masked: list[tuple[Column, Expr]] = []
        for n, c in columns.items():
            there = call("eq", call("_bit_and", mask, Literal(1 << n, BIGINT)), Literal(0, BIGINT))
            masked.append((new_column(c.name, c.dtype, True), Case(((there, c),), Literal(None, c.dtype))))
        calls, parts = self._calls(names, has_keys=True)
        made = new_column("mask", BIGINT, False)
        again = ((new_column("number", BIGINT, False), number),) if any(n for _, _, n in rows) else ()
        grouped = Aggregate(both, ((made, mask), *again, *masked), calls)
        return (grouped, dict(zip(columns, (c for c, _ in masked), strict=True)), parts), made

    def _bits(self, keys: Set) -> int:
        return sum(1 << n for n in self.whole if n not in keys)

    def _output(self, plan: Plan, keys: dict[int, Column], made: dict[int, Column], mask: Expr) -> Plan:
        """The columns of the aggregate in their order, under names of this branch's own."""
        values: list[Expr] = [keys.get(n, Literal(None, c.dtype)) for n, (c, _) in enumerate(self.old.keys)]
        for (_, a), own in zip(self.old.aggregates, self.inner, strict=True):
            parts = [made[c.id] for c, _ in own]
            values.append(merged_value(a, parts) if self.merges else parts[0])
        exprs = (
            (new_column(c.name, c.dtype, e.nullable), e) for c, e in zip(self.old.columns, (*values, mask), strict=True)
        )
        return Project(plan, tuple(exprs))
