"""Semi-join reduction (sideways information passing): a SEMI join keeps the rows that the other side will ask for.

Groups that no one joins with are not computed:

    Join inner on id = k                    Join inner on id = k
      Filter items                            Filter items
      Aggregate by k = item           =>      Aggregate by k = item
        Scan sales                              Join semi on item = id
                                                  Scan sales
                                                  Filter items

Correlated aggregates come to this shape after decorrelation, and there it matters most: the outer query asks for a few
groups out of all. Done where the estimate says that most input rows go.

Rows that no one probes for are not built into a table:

    Join semi on k = j and x <> y           Join semi on k = j and x <> y
      Join inner (few rows)                   Join inner (few rows)
      Scan big                          =>    Join semi on k = key
                                                Scan big
                                                Project key = k
                                                  Join inner (few rows)

A SEMI or ANTI join with a condition besides its equalities keeps all rows of its right side, in lists by key: the dearest
kind of table. Where the left side holds few of the keys, it pays to compute the left side's keys first. `join_order` asks
for this when it has put the left side together; the keys are a common subplan, computed once however many joins ask.
"""

from __future__ import annotations

from gquery import tuning
from gquery.expression.expr import Call, Column, Expr, new_column
from gquery.expression.traverse import conjuncts
from gquery.expression.types import BOOLEAN
from gquery.planner.logical.cardinality import Estimator
from gquery.planner.logical.nodes import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    Scan,
    sources,
)
from gquery.planner.logical.properties import key_pairs
from gquery.planner.logical.tree import column_ids, fresh_copy, walk, with_sources
from gquery.planner.rules.infer_predicates import equal_columns


def semi_join_reduction(plan: Plan) -> Plan | None:
    """Aggregates that are joined with a selective relation read only that relation's groups."""
    new = _walk(plan, Estimator())
    return None if new is plan else new


def _walk(plan: Plan, estimator: Estimator) -> Plan:
    if isinstance(plan, Join) and plan.kind is JoinKind.INNER:
        terms: list[Expr] = []
        relations: list[Plan] = []
        _flatten(plan, terms, relations)
        if any(_aggregate(r) is not None for r in relations):
            classes = equal_columns(tuple(terms))
            alike: dict[int, Plan] = {}
            new = {id(r): _reduced(r, relations, classes, estimator, alike) for r in relations}
            return _replace(plan, new | alike)
    return with_sources(plan, tuple(_walk(s, estimator) for s in sources(plan)))


def _flatten(plan: Plan, terms: list[Expr], relations: list[Plan]) -> None:
    if isinstance(plan, Join) and plan.kind is JoinKind.INNER:
        _flatten(plan.left, terms, relations)
        _flatten(plan.right, terms, relations)
        terms.extend(conjuncts(plan.condition))
    else:
        relations.append(plan)


def _replace(plan: Plan, new: dict[int, Plan]) -> Plan:
    if isinstance(plan, Join) and plan.kind is JoinKind.INNER:
        return with_sources(plan, (_replace(plan.left, new), _replace(plan.right, new)))
    return new[id(plan)]


def _aggregate(plan: Plan) -> Aggregate | None:
    """The aggregate with keys under filters and projections."""
    while isinstance(plan, Filter | Project):
        plan = plan.source
    return plan if isinstance(plan, Aggregate) and plan.keys else None


def _reduced(
    plan: Plan,
    relations: list[Plan],
    classes: dict[int, tuple[Column, ...]],
    estimator: Estimator,
    alike: dict[int, Plan],
) -> Plan:
    """A relation that is an aggregate over fewer rows, where that pays. ``alike`` takes up the scans of the same table that
    are joined by the same key, reduced in the same way: `common_subplans` then reads the table once for both."""
    aggregate = _aggregate(plan)
    if aggregate is None:
        return _walk(plan, estimator)
    source = _walk(aggregate.source, estimator)
    rows = estimator.rows(source)
    best: tuple[float, Plan, Column, Column] | None = None
    for key, e in aggregate.keys:
        if not isinstance(e, Column) or rows < tuning.semi_joins.aggregate_least_rows:
            continue
        for other in classes.get(key.id, ()):
            home = next((r for r in relations if r is not plan and other.id in column_ids(r)), None)
            if home is None or not _simple(home):
                continue
            selectivity = estimator.match_selectivity([(e, other)], rows, estimator.rows(home))
            if selectivity < tuning.semi_joins.aggregate_selectivity and (best is None or selectivity < best[0]):
                best = selectivity, home, e, other
    if best is not None:
        copy, names = fresh_copy(best[1])
        mine, theirs = best[2], names[best[3].id]
        on = Call("eq", (mine, theirs), BOOLEAN, mine.nullable or theirs.nullable)
        alike.update(_alike(source, mine, best[1], best[3], relations, classes))
        source = Join(source, copy, JoinKind.SEMI, on)
    return _rebuilt(plan, aggregate, source)


def _alike(
    source: Plan,
    key: Column,
    home: Plan,
    other: Column,
    relations: list[Plan],
    classes: dict[int, tuple[Column, ...]],
) -> dict[int, Plan]:
    """The scans among the relations of the table that makes ``key``, joined by the same field, as SEMI joins with ``home``."""
    scan = next((n for n in walk(source) if isinstance(n, Scan) and key.id in column_ids(n)), None)
    if scan is None:
        return {}
    field = scan.fields[scan.columns.index(key)]
    out: dict[int, Plan] = {}
    for r in relations:
        if isinstance(r, Scan) and r.source is scan.source and field in r.fields:
            mine = r.columns[r.fields.index(field)]
            if mine in classes.get(other.id, ()):
                copy, names = fresh_copy(home)
                theirs = names[other.id]
                on = Call("eq", (mine, theirs), BOOLEAN, mine.nullable or theirs.nullable)
                out[id(r)] = Join(r, copy, JoinKind.SEMI, on)
    return out


def _rebuilt(plan: Plan, aggregate: Aggregate, source: Plan) -> Plan:
    if plan is aggregate:
        return with_sources(plan, (source,))
    return with_sources(plan, tuple(_rebuilt(s, aggregate, source) for s in sources(plan)))


def _simple(plan: Plan) -> bool:
    """Cheap to compute twice: a filtered scan, perhaps under SEMI joins with others."""
    match plan:
        case Scan():
            return True
        case Filter(source=s):
            return _simple(s)
        case Join(left=a, right=b, kind=JoinKind.SEMI):
            return _simple(a) and _simple(b)
        case _:
            return False


# ---- build sides -------------------------------------------------------------------------------------------------------


def reduced_build_side(left: Plan, join: Join, right: Plan, estimator: Estimator) -> Plan:
    """The right side of a SEMI or ANTI join with ``left``, without the rows whose key the left side does not hold."""
    pairs = key_pairs(join.condition, column_ids(left), column_ids(right))
    plain = [(a, b) for a, b in pairs if isinstance(a, Column) and isinstance(b, Column)]
    rows = estimator.rows(right)
    if join.kind not in (JoinKind.SEMI, JoinKind.ANTI) or len(pairs) == len(conjuncts(join.condition)):
        return right  # only whether a key is there is asked: a bitmap will do
    if (
        rows < tuning.semi_joins.build_least_rows
        or not plain
        or rows < tuning.semi_joins.build_reading * _read_rows(left)
    ):
        return right
    candidates = [(estimator.match_selectivity([(b, a)], rows, estimator.rows(left)), a, b) for a, b in plain]
    selectivity, mine, theirs = min(candidates, key=lambda s: s[0])
    if selectivity > tuning.semi_joins.build_selectivity:
        return right
    copy, names = fresh_copy(left)
    key = new_column(mine.name, mine.dtype, mine.nullable)
    found = names[mine.id]
    found = Column(found.id, found.name, found.dtype, mine.nullable)
    keys = Project(copy, ((key, found),))
    condition = Call("eq", (theirs, key), BOOLEAN, theirs.nullable or key.nullable)
    return Join(right, keys, JoinKind.SEMI, condition)


def _read_rows(plan: Plan) -> float:
    return float(sum(n.source.rows for n in walk(plan) if isinstance(n, Scan)))
