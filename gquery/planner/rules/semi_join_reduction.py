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
from gquery.expression.expr import Column, Expr, Literal, new_column
from gquery.expression.traverse import conjuncts
from gquery.planner.logical.cardinality import Estimator
from gquery.planner.logical.equal_columns import EqualColumns, equal, equal_columns
from gquery.planner.logical.nodes import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    Scan,
    UnionAll,
    Window,
)
from gquery.planner.logical.properties import equality, key_pair
from gquery.planner.logical.shared import kinds, kinds_of
from gquery.planner.logical.tree import column_ids, fresh_copy, walk, with_sources
from gquery.planner.rules.sink_semi_join import sunk

_COMPUTED = kinds_of(Aggregate, UnionAll, Window)


def semi_join_reduction(plan: Plan, estimator: Estimator) -> Plan | None:
    """Aggregates that are joined with a selective relation read only that relation's groups."""
    new = _walk(plan, estimator)
    return None if new is plan else new


def _walk(plan: Plan, estimator: Estimator) -> Plan:
    if not kinds(plan) & _COMPUTED:
        return plan
    if isinstance(plan, Join) and plan.kind is JoinKind.INNER:
        terms: list[Expr] = []
        relations: list[Plan] = []
        _flatten(plan, terms, relations)
        if any(_computed(r) is not None for r in relations):
            classes = equal_columns(tuple(terms))
            alike: dict[int, Plan] = {}
            new = {id(r): _reduced(r, relations, classes, estimator, alike) for r in relations}
            return _replace(plan, new | alike)
    if isinstance(plan, Join) and plan.kind is JoinKind.SEMI and isinstance(_computed(plan.left), UnionAll):
        pair = equality(plan.condition)
        if pair is not None and _simple(plan.right):
            key, by = pair if pair[0].id in column_ids(plan.left) else pair[::-1]
            return sunk(_walk(plan.left, estimator), key, plan.right, by)
    return with_sources(plan, tuple([_walk(s, estimator) for s in plan.sources]))


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


def _computed(plan: Plan) -> Aggregate | UnionAll | Window | None:
    """What under filters and projections computes rows from others, or writes them."""
    while isinstance(plan, Filter | Project):
        plan = plan.source
    if isinstance(plan, Aggregate):
        return plan if plan.keys else None
    return plan if isinstance(plan, UnionAll | Window) else None


def _reduced(
    plan: Plan,
    relations: list[Plan],
    classes: dict[int, EqualColumns],
    estimator: Estimator,
    alike: dict[int, Plan],
) -> Plan:
    """A relation that is computed from fewer rows, where that pays. ``alike`` takes up the scans of the same table that
    are joined by the same key, reduced in the same way: `common_subplans` then reads the table once for both."""
    computed = _computed(plan)
    new = with_sources(plan, tuple([_walk(s, estimator) for s in plan.sources]))
    if computed is None:
        return new
    read = computed if isinstance(computed, UnionAll) else computed.source
    rows = estimator.rows(read)
    if rows < tuning.semi_joins.aggregate_least_rows:
        return new
    best: tuple[float, Plan, Column, Column] | None = None
    for key in plan.columns:
        origin = _origin(plan, key, computed)
        for other in classes[key.id].columns if origin is not None and key.id in classes else ():
            home = next((r for r in relations if r is not plan and other.id in column_ids(r)), None)
            if home is None or not _simple(home):
                continue
            assert origin is not None
            selectivity = estimator.match_selectivity([(origin, other)], estimator.rows(home))
            if selectivity < tuning.semi_joins.aggregate_selectivity and (best is None or selectivity < best[0]):
                best = selectivity, home, key, other
    if best is None:
        return new
    _, home, key, other = best
    if isinstance(computed, Aggregate):
        origin = _origin(plan, key, computed)
        assert origin is not None
        alike.update(_alike(computed.source, origin, home, other, relations, classes))
    return sunk(new, key, home, other, classes[key.id].null_safe)


def _origin(plan: Plan, key: Column, computed: Aggregate | UnionAll | Window) -> Column | None:
    """The column of what is computed from, whose rows with one value make all rows here with that value of ``key``."""
    column: Expr = key
    while isinstance(plan, Filter | Project):
        if isinstance(plan, Project):
            column = next((e for c, e in plan.exprs if c == column), column)
        plan = plan.source
    match computed:
        case Aggregate(keys=keys):
            column = next((e for c, e in keys if c == column), Literal(None, key.dtype))
            return column if isinstance(column, Column) else None
        case Window(partition=partition):
            return column if isinstance(column, Column) and column in partition else None
        case UnionAll():
            return column if isinstance(column, Column) else None


def _alike(
    source: Plan,
    key: Column,
    home: Plan,
    other: Column,
    relations: list[Plan],
    classes: dict[int, EqualColumns],
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
            if mine in classes[other.id].columns:
                copy, names = fresh_copy(home)
                on = equal(mine, names[other.id], classes[other.id].null_safe)
                out[id(r)] = Join(r, copy, JoinKind.SEMI, on)
    return out


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
    terms = conjuncts(join.condition)
    pairs = [(t, pair) for t in terms if (pair := key_pair(t, column_ids(left), column_ids(right))) is not None]
    plain = [(t, a, b) for t, (a, b) in pairs if isinstance(a, Column) and isinstance(b, Column)]
    rows = estimator.rows(right)
    if join.kind not in (JoinKind.SEMI, JoinKind.ANTI) or len(pairs) == len(terms):
        return right  # only whether a key is there is asked: a bitmap will do
    if (
        rows < tuning.semi_joins.build_least_rows
        or not plain
        or rows < tuning.semi_joins.build_reading * _read_rows(left)
    ):
        return right
    candidates = [(estimator.match_selectivity([(b, a)], estimator.rows(left)), t, a, b) for t, a, b in plain]
    selectivity, term, mine, theirs = min(candidates, key=lambda s: s[0])
    if selectivity > tuning.semi_joins.build_selectivity:
        return right
    copy, names = fresh_copy(left)
    key = new_column(mine.name, mine.dtype, mine.nullable)
    found = names[mine.id]
    found = Column(found.id, found.name, found.dtype, mine.nullable)
    keys = Project(copy, ((key, found),))
    return Join(right, keys, JoinKind.SEMI, equal(theirs, key, equality(term) is None))


def _read_rows(plan: Plan) -> float:
    return float(sum(n.source.rows for n in walk(plan) if isinstance(n, Scan)))
