"""Scans read the parts of their sources that the query needs: rows that a filter may keep, the first ones below a LIMIT.

    Filter day = DATE '2024-05-01'            Filter day = DATE '2024-05-01'
      Scan trips                        =>      Scan trips, 1 of 100 row groups
    Limit 3
      Scan trips                        =>    Limit 3 of the first 3 rows of the first row group

All scans of one source read one part of it, which has what any of them needs, so that nothing is read twice. Below a LIMIT, how
many rows a filter keeps is not known before it runs: so a few parts are tried, and more where they gave too few rows.
Runs behind the optimizer's rules, when filters lie on scans. Constants are looked at without pinning their slots; a plan rests on
them only where a part of a source was chosen: the whole of it serves all constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gquery.columns.domain import DivisibleSource, Restriction, ScanUse, is_divisible
from gquery.expression.expr import Column, Expr
from gquery.planner.logical.domains import Domains, both, domains
from gquery.planner.logical.nodes import Filter, Limit, Plan, Project, Query, Scan, UnionAll
from gquery.planner.logical.shared import definitions, each, scans
from gquery.planner.logical.tree import transform_up
from gquery.planner.rebind import without_slots
from gquery.runtime.records import dataclass, replace


@dataclass(frozen=True)
class PartialQuery:
    """A query over parts of its sources. ``enough``: where the result has fewer rows than that, rows may be missing, and more
    parts have to be tried; None where it is certain to have all."""

    query: Query
    enough: int | None = None


@dataclass(frozen=True)
class _Above:
    """What is above a node: how many of its first rows are enough, and in which domains they may lie; how many parts to try."""

    rows: int | None = None
    domains: Callable[[bool], Domains] = lambda pins: {}  # whether the slots that it looks at are pinned
    parts: int | None = None


_NOTHING = _Above()


def partial_scans(query: Query, parts: int) -> PartialQuery:
    """The query, reading no more than it needs; ``parts`` of a source are tried where a LIMIT ends the query."""
    read = {id(scan.source): scan.source for scan in scans(query.plan)}
    if not any(is_divisible(s) for s in read.values()):
        return PartialQuery(query)
    limit = _limited(query.plan)
    uses: dict[int, list[ScanUse]] = {}
    looked_at: dict[int, list[Callable[[bool], Domains]]] = {}
    sources: dict[int, DivisibleSource] = {}

    waiting = [(query.plan, _NOTHING if limit is None else _Above(parts=parts))]
    waiting += [(d.plan, _NOTHING) for d in reversed(definitions(query.plan))]
    while waiting:
        plan, above = waiting.pop()
        if isinstance(plan, Scan) and is_divisible(plan.source):
            sources[id(plan.source)] = plan.source
            uses.setdefault(id(plan.source), []).append(_use(plan, above))
            looked_at.setdefault(id(plan.source), []).append(above.domains)
        waiting += _below(plan, above)[::-1]
    chosen = {key: sources[key].restricted(uses[key]) for key in sources}
    restricted = {key: r for key, r in chosen.items() if id(r.source) != key}
    if not restricted:
        return PartialQuery(query)
    for key in restricted:
        for found in looked_at[key]:
            found(True)
    made = each(query, lambda q: replace(q, plan=_over(q.plan, restricted)))
    return PartialQuery(made or query, limit if any(r.is_cut for r in restricted.values()) else None)


def _over(plan: Plan, restricted: Mapping[int, Restriction]) -> Plan:
    def node(p: Plan) -> Plan:
        if isinstance(p, Scan) and id(p.source) in restricted:
            return replace(p, source=restricted[id(p.source)].source)
        return p

    return transform_up(plan, node)


def _limited(plan: Plan) -> int | None:
    """How many rows a query is limited to, if filters of a single scan are all that lies below the LIMIT."""
    while isinstance(plan, Project):
        plan = plan.source
    if not isinstance(plan, Limit):
        return None
    limit, plan = plan.limit, plan.source
    while isinstance(plan, Project | Filter):
        plan = plan.source
    return limit if isinstance(plan, Scan) else None


def _below(plan: Plan, above: _Above) -> list[tuple[Plan, _Above]]:
    """The plans below a node, each with what the node and all above it need of it."""
    match plan:
        case Limit(source, limit, offset):
            rows = above.rows if limit is None or above.rows is None else min(limit, above.rows)
            rows = limit if rows is None else rows
            return [(source, _Above(None if rows is None else rows + offset, parts=above.parts))]
        case Project(source, exprs):
            return [(source, replace(above, domains=lambda pins: _renamed(exprs, above.domains(pins))))]
        case Filter(source, predicate):
            return [(source, _Above(None, lambda pins: both(_of(predicate, pins), above.domains(pins)), above.parts))]
        case UnionAll(sources):
            return [(source, _Above(above.rows)) for source in sources]
        case _:
            return [(source, _NOTHING) for source in plan.sources]


def _of(predicate: Expr, pins: bool) -> Domains:
    return domains(predicate if pins else without_slots(predicate))


def _renamed(exprs: tuple[tuple[Column, Expr], ...], above: Domains) -> Domains:
    """The domains of the columns that a projection passes on."""
    return {e.id: above[c.id] for c, e in exprs if isinstance(e, Column) and c.id in above}


def _use(plan: Scan, above: _Above) -> ScanUse:
    by_id = {c.id: f for c, f in zip(plan.columns, plan.fields, strict=True)}
    return ScanUse(
        plan.fields,
        lambda: {by_id[i]: d for i, d in above.domains(False).items() if i in by_id},
        above.rows,
        above.parts,
    )
