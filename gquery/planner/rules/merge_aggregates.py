"""Aggregates over one table that differ in their filters become copies of one, each call with a filter of its own.

    Join inner                                  Join inner
      Aggregate: n = count(*)                     Aggregate: n = count(*) where q <= 20, m' = max(p) where q > 80
        Filter q <= 20                              Filter q <= 20 or q > 80
          Scan t                          =>          Scan t
      Aggregate: m = max(p)                       Aggregate: n' = count(*) where q <= 20, m = max(p) where q > 80
        Filter q > 80                               Filter q <= 20 or q > 80
          Scan t                                      Scan t

Both are the same plan now, which `common_subplans` makes one of: the table is read once. Several scalar subqueries of a
table come to this shape, and EXISTS beside NOT EXISTS, whose aggregates group by the correlated column. Right

- without keys, where there is one row whatever the filters keep, and
- with equal keys under SEMI and ANTI joins whose condition is not TRUE for a group of NULLs: a group that an aggregate's
  own filter would have left out is such a group.

Late, as pruning would take away from each what only the other asks for.
"""

from __future__ import annotations

from collections.abc import Hashable

from gquery import tuning
from gquery.expression.expr import AggregateCall, And, Column, Expr, Or, new_column
from gquery.expression.traverse import conjunction, conjuncts, disjunction
from gquery.expression.traverse import walk as walk_expr
from gquery.functions import declaration, is_ordered
from gquery.planner.logical.aggregate_joins import moved
from gquery.planner.logical.canonical import canonical, expression_key
from gquery.planner.logical.nodes import Aggregate, Filter, Join, JoinKind, Plan, Scan
from gquery.planner.logical.tree import remap_expr, walk, with_sources
from gquery.planner.rules.reduce_outer_joins import null_if_null
from gquery.runtime.records import dataclass, replace


def merge_aggregates(plan: Plan) -> Plan | None:
    """Aggregates of one table as copies of one, where their filters allow it."""
    groups: dict[tuple[int, tuple[int, ...], int], list[_Part]] = {}
    for node in walk(plan):
        part = _part(node) if isinstance(node, Join | Aggregate) else None
        if part is not None:
            groups.setdefault((id(part.scan.source), part.key_fields, len(part.joins)), []).append(part)
    merged: dict[int, Aggregate] = {}
    for parts in groups.values():
        calls = sum(len(p.aggregate.aggregates) for p in parts)
        if (
            len(parts) > 1
            and calls <= tuning.rewrites.most_merged_calls
            and len({canonical(p.aggregate) for p in parts}) > 1
        ):
            alike = _alike(parts)
            new = [_with_all(p, parts, alike) for p in parts]
            if len({canonical(a) for a in new}) == 1:
                merged.update({id(p.aggregate): a for p, a in zip(parts, new, strict=True)})
    return _replaced(plan, merged) if merged else None


def _replaced(plan: Plan, merged: dict[int, Aggregate]) -> Plan:
    if id(plan) in merged:
        return merged[id(plan)]
    return with_sources(plan, tuple(_replaced(s, merged) for s in plan.sources))


@dataclass(frozen=True)
class _Part:
    """An aggregate of a table's rows: which it takes by predicates of its own, which by SEMI and ANTI joins."""

    aggregate: Aggregate
    joins: tuple[Join, ...]
    terms: tuple[Expr, ...]
    scan: Scan

    @property
    def fields(self) -> dict[int, int]:
        return {c.id: f for c, f in zip(self.scan.columns, self.scan.fields, strict=True)}

    @property
    def filter_key(self) -> Hashable:
        """Equal for parts that have the same predicates over the table's fields."""
        fields = self.fields
        return tuple([expression_key(t, lambda c: fields[c.id]) for t in self.terms])

    @property
    def key_fields(self) -> tuple[int, ...]:
        fields = self.fields
        return tuple(fields[e.id] for _, e in self.aggregate.keys if isinstance(e, Column))


def _part(node: Join | Aggregate) -> _Part | None:
    """An aggregate without keys, or the right side of a join, as a part; None where it can't be one."""
    aggregate = node if isinstance(node, Aggregate) else node.right
    if not isinstance(aggregate, Aggregate) or (aggregate is node) == bool(aggregate.keys):
        return None
    if isinstance(node, Join) and not _drops_null_groups(node, aggregate):
        return None
    if any(a.distinct or is_ordered(a) for _, a in aggregate.aggregates):
        return None
    joins: list[Join] = []
    terms: list[Expr] = []
    plan = aggregate.source
    while not isinstance(plan, Scan):
        match plan:
            case Filter(source=s, predicate=p):
                terms.extend(conjuncts(p))
                plan = s
            case Join(left=s, kind=JoinKind.SEMI | JoinKind.ANTI):
                joins.append(plan)
                plan = s
            case _:
                return None
    if sum(1 for t in terms for _ in walk_expr(t)) > tuning.rewrites.most_merged_parts:
        return None  # alone it leaves a row at its first test
    own = frozenset(c.id for c in plan.columns)
    if not all(isinstance(e, Column) and e.id in own for _, e in aggregate.keys):
        return None
    return _Part(aggregate, tuple(joins), tuple(terms), plan)


def _drops_null_groups(join: Join, aggregate: Aggregate) -> bool:
    """Whether a group whose aggregates are all NULL is as good as none to a join."""
    if join.kind not in (JoinKind.SEMI, JoinKind.ANTI):
        return False
    made = frozenset(c.id for c, _ in aggregate.aggregates)
    is_null = all(declaration(a).of_nothing is None for _, a in aggregate.aggregates)
    return is_null and _rejects_nulls(join.condition, made)


def _rejects_nulls(e: Expr, columns: frozenset[int]) -> bool:
    """Whether a predicate is not TRUE where all of these columns are NULL."""
    match e:
        case And(args):
            return any(_rejects_nulls(a, columns) for a in args)
        case Or(args):
            return all(_rejects_nulls(a, columns) for a in args)
        case _:
            return bool(null_if_null(e) & columns)


def _alike(parts: list[_Part]) -> list[int]:
    """For each part the first one whose predicates are the same, over fields of the table."""
    first: dict[Hashable, int] = {}
    return [first.setdefault(p.filter_key, n) for n, p in enumerate(parts)]


def _with_all(part: _Part, parts: list[_Part], alike: list[int]) -> Aggregate:
    """The part's aggregate, computing what all parts ask for, each from the rows that it takes. Parts that are ``alike`` have
    the same filter, the very object: three averages of each of five ranges have five."""
    columns = {f: c for c, f in zip(part.scan.columns, part.scan.fields, strict=True)}
    for other in parts:
        for c, f in zip(other.scan.columns, other.scan.fields, strict=True):
            if f not in columns:
                columns[f] = new_column(c.name, c.dtype, c.nullable)
    names = [{i: columns[f] for i, f in other.fields.items()} for other in parts]
    terms = {n: tuple([remap_expr(t, names[n]) for t in parts[n].terms]) for n in dict.fromkeys(alike)}
    common = tuple(t for t in terms[0] if all(t in ts for ts in terms.values()))
    rest = {n: tuple(t for t in ts if t not in common) for n, ts in terms.items()}
    wheres = {n: conjunction(ts) for n, ts in rest.items()}
    fields = sorted(columns)
    plan: Plan = Scan(part.scan.source, tuple(columns[f] for f in fields), tuple(fields))
    if all(rest.values()):
        common = (*common, disjunction(tuple(wheres[n] for n in alike)))
    if common:
        plan = Filter(plan, conjunction(common))
    for join in reversed(part.joins):
        plan = with_sources(join, (plan, join.right))
    calls: list[tuple[Column, AggregateCall]] = []
    for other, n, like in zip(parts, names, alike, strict=True):
        for c, a in other.aggregate.aggregates:
            where = wheres[like] if rest[like] else None
            if a.filter is not None:
                where = conjunction((*rest[like], remap_expr(a.filter, n)))
            call = replace(moved(a, n), filter=where)
            calls.append((c if other is part else new_column(c.name, c.dtype, c.nullable), call))
    return Aggregate(plan, part.aggregate.keys, tuple(calls))
