"""Plan properties: what is certain of a plan's rows: unique keys, one row at most, functional dependencies.

Rules and lowering rely on them, so they must never be wrong. They rest on what the source checked at load and on what the
operators keep. Estimates stand in `planner.logical.cardinality`.
"""

from __future__ import annotations

from itertools import product
from typing import assert_never

from gquery import tuning
from gquery.expression.expr import Call, Column, Expr, Literal
from gquery.expression.traverse import conjuncts
from gquery.expression.types import DType, Kind
from gquery.planner.logical.nodes import (
    Aggregate,
    Apply,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Limit,
    Plan,
    Project,
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
from gquery.planner.logical.tree import cached, column_ids, used_columns

# ---- conditions ------------------------------------------------------------------------------------------------------


def equality(e: Expr) -> tuple[Column, Column] | None:
    """The two columns of ``column = column``."""
    return same_columns(e) if isinstance(e, Call) and e.function == "eq" else None


def same_columns(e: Expr) -> tuple[Column, Column] | None:
    """The two columns of ``column = column`` or ``column IS NOT DISTINCT FROM column``: the same value wherever that is TRUE."""
    if isinstance(e, Call) and e.function in ("eq", "is_not_distinct_from"):
        a, b = e.args
        if isinstance(a, Column) and isinstance(b, Column):
            return a, b
    return None


def equal_is_same(dtype: DType) -> bool:
    """Whether values of a type that are equal cannot be told apart. 0.0 and -0.0 can, by their texts and by what they divide, and
    so can '1 month' and '30 days': what rests on one of several equal values may hold for that one alone."""
    return not (dtype.is_float or dtype.is_nested or dtype.kind is Kind.INTERVAL)


def key_pair(term: Expr, left: frozenset[int], right: frozenset[int]) -> tuple[Expr, Expr] | None:
    """The (left expression, right expression) that a term of a join condition asks to be equal."""
    if isinstance(term, Call) and term.function in ("eq", "is_not_distinct_from"):
        a, b = term.args
        used_a, used_b = used_columns(a), used_columns(b)
        if used_a and used_b:
            if used_a <= left and used_b <= right:
                return a, b
            if used_b <= left and used_a <= right:
                return b, a
    return None


def key_pairs(condition: Expr, left: frozenset[int], right: frozenset[int]) -> list[tuple[Expr, Expr]]:
    """The pairs of all terms of a join condition that ask for equality."""
    return [pair for e in conjuncts(condition) if (pair := key_pair(e, left, right)) is not None]


def join_pairs(plan: Join) -> list[tuple[Expr, Expr]]:
    """The pairs of a join."""
    return cached(plan, "_pairs", lambda: key_pairs(plan.condition, column_ids(plan.left), column_ids(plan.right)))


# ---- unique keys -----------------------------------------------------------------------------------------------------

Keys = tuple[frozenset[int], ...]


def unique_keys(plan: Plan) -> Keys:
    """Sets of columns that no two rows agree on (NULLs taken as equal); the empty set says "at most one row"."""
    return cached(plan, "_unique_keys", lambda: _minimal(_unique_keys(plan)))


def is_unique(plan: Plan, columns: frozenset[int]) -> bool:
    """Whether no two rows agree on these columns."""
    return any(key <= columns for key in unique_keys(plan))


def one_row_at_most(plan: Plan) -> bool:
    return is_unique(plan, frozenset())


def one_row_exactly(plan: Plan) -> bool:
    """Whether the plan has one row whatever the data: an aggregate without keys, or a constant row."""
    match plan:
        case Aggregate(keys=keys, sets=sets):
            return not keys and sets is None
        case Values(rows=rows):
            return len(rows) == 1
        case Project(source=s) | Window(source=s) | Sort(source=s, limit=None, offset=0):
            return one_row_exactly(s)
        case Shared(definition=d):
            return one_row_exactly(d.plan)
        case Join(left=a, right=b, kind=JoinKind.INNER, condition=Literal(value=1)):
            return one_row_exactly(a) and one_row_exactly(b)
        case Join(left=a, kind=JoinKind.MARK):
            return one_row_exactly(a)
        case Join(left=a, right=b, kind=JoinKind.LEFT):
            return one_row_exactly(a) and one_row_at_most(b)
        case _:
            return False


def _minimal(keys: list[frozenset[int]]) -> Keys:
    out: list[frozenset[int]] = []
    for k in sorted(set(keys), key=lambda k: (len(k), sorted(k))):
        if not any(o <= k for o in out):
            out.append(k)
    return tuple(out[: tuning.rewrites.most_keys])


def _unique_keys(plan: Plan) -> list[frozenset[int]]:
    match plan:
        case Scan():
            found = [
                frozenset((c.id,)) for c, f in zip(plan.columns, plan.fields, strict=True) if plan.source.is_unique(f)
            ]
            return [frozenset()] if plan.source.rows <= 1 else found
        case Values(rows=rows):
            return [frozenset()] if len(rows) <= 1 else []
        case Range(column=c):
            return [frozenset((c.id,))]
        case Shared():
            return _defined_keys(plan)
        case Filter(source=s, predicate=p):
            fixed = {
                e.args[i].id  # type: ignore[union-attr]
                for e in conjuncts(p)
                if isinstance(e, Call) and e.function == "eq"
                for i in (0, 1)
                if isinstance(e.args[i], Column) and isinstance(e.args[1 - i], Literal)
            }
            return [key - fixed for key in unique_keys(s)]
        case Window(source=s, partition=partition, calls=calls):
            numbers = [c.id for c, call in calls if call.function == "row_number"]
            ids = [e.id for e in partition if isinstance(e, Column)]
            of_numbers = [frozenset((*ids, n)) for n in numbers] if len(ids) == len(partition) else []
            return [*unique_keys(s), *of_numbers]
        case Sort(source=s, limit=limit) | Limit(source=s, limit=limit):
            return [frozenset()] if limit is not None and limit <= 1 else list(unique_keys(s))
        case Project(source=s, exprs=exprs):
            names: dict[int, list[int]] = {}
            for c, e in exprs:
                if isinstance(e, Column):
                    names.setdefault(e.id, []).append(c.id)
            out: list[frozenset[int]] = []
            for key in unique_keys(s):
                if all(c in names for c in key):
                    out.extend(frozenset(choice) for choice in product(*(names[c][:2] for c in sorted(key))))
            return out
        case Aggregate(keys=keys, sets=sets):
            return [frozenset(c.id for c, _ in keys)] if sets is None else []
        case Join():
            return _join_keys(plan)
        case Unnest(source=s, ordinal=ordinal):
            return [] if ordinal is None else [key | {ordinal.id} for key in unique_keys(s)]
        case Apply() | UnionAll() | WorkingTable() | Fixpoint():
            return []
        case _:
            assert_never(plan)


def _defined_keys(plan: Shared) -> list[frozenset[int]]:
    """The keys of a definition whose columns this use has."""
    if "_unique_keys" not in plan.definition.plan.__dict__:
        for d in definitions(plan):  # those that it uses first: a long chain is no deep recursion
            unique_keys(d.plan)
    names = {made.id: c.id for c, made in zip(plan.columns, plan.outputs, strict=True)}
    keys = unique_keys(plan.definition.plan)
    return [frozenset(names[i] for i in key) for key in keys if key <= names.keys()]


# a left row comes once at most
_LEFT_ALONE = (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK, JoinKind.SINGLE, JoinKind.ASOF)


def _join_keys(plan: Join) -> list[frozenset[int]]:
    left = unique_keys(plan.left)
    if plan.kind in _LEFT_ALONE:
        return list(left)
    right = unique_keys(plan.right)
    pairs = join_pairs(plan)
    left_columns = frozenset(a.id for a, _ in pairs if isinstance(a, Column))
    right_columns = frozenset(b.id for _, b in pairs if isinstance(b, Column))
    out: list[frozenset[int]] = []
    if plan.kind is not JoinKind.FULL:
        if any(k <= right_columns for k in right):
            out.extend(left)
        if plan.kind is JoinKind.INNER and any(k <= left_columns for k in left):
            out.extend(right)
        out.extend(a | b for a in left for b in right)
    return out


def many_to_one(plan: Join) -> bool:
    """Whether a left row has one match at most."""
    pairs = join_pairs(plan)
    return is_unique(plan.right, frozenset(b.id for _, b in pairs if isinstance(b, Column)))


def determined(plan: Plan, columns: frozenset[int]) -> frozenset[int]:
    """The columns whose values are the same in all rows that agree on ``columns`` (functional dependencies).

    A unique key determines every column of the relation it belongs to; an equality carries that on to other relations.
    """
    equal, relations = cached(plan, "_dependencies", lambda: _all_dependencies(plan))  # asked for each key of a GROUP BY
    known = set(columns)
    while True:
        size = len(known)
        for a, b in equal:
            if (a in known) != (b in known):
                known |= {a, b}
        for keys, all_columns in relations:
            if not all_columns <= known and any(map(known.issuperset, keys)):
                known |= all_columns
        if len(known) == size:
            return frozenset(known) & column_ids(plan) | columns


def _all_dependencies(plan: Plan) -> tuple[list[tuple[int, int]], list[tuple[Keys, frozenset[int]]]]:
    """The pairs of equal columns in a plan, and of each relation below its keys and its columns."""
    equal: list[tuple[int, int]] = []
    relations: list[tuple[Keys, frozenset[int]]] = []
    _dependencies(plan, equal, relations)
    return equal, relations


def _dependencies(plan: Plan, equal: list[tuple[int, int]], relations: list[tuple[Keys, frozenset[int]]]) -> None:
    keys = unique_keys(plan)
    if keys:
        relations.append((keys, column_ids(plan)))
    match plan:
        case Filter(source=s, predicate=p):
            equal.extend((a.id, b.id) for e in conjuncts(p) if (pair := same_columns(e)) for a, b in (pair,))
            _dependencies(s, equal, relations)
        case Sort(source=s) | Limit(source=s) | Window(source=s) | Unnest(source=s):
            _dependencies(s, equal, relations)
        case Project(source=s, exprs=exprs):
            equal.extend((c.id, e.id) for c, e in exprs if isinstance(e, Column) and e.id != c.id)
            _dependencies(s, equal, relations)
        case Join(kind=JoinKind.INNER):
            equal.extend((a.id, b.id) for e in conjuncts(plan.condition) if (pair := same_columns(e)) for a, b in (pair,))
            _dependencies(plan.left, equal, relations)
            _dependencies(plan.right, equal, relations)
        case Join(kind=JoinKind.FULL):
            pass  # NULLs stand in for values on both sides: what held below says nothing here
        case Join() | Apply():
            _dependencies(plan.left, equal, relations)
        case Scan() | Values() | Range() | Shared() | WorkingTable() | Aggregate() | UnionAll() | Fixpoint():
            pass
        case _:
            assert_never(plan)
