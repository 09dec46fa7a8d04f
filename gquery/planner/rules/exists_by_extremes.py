"""Whether a group holds a value other than x is seen from its least and its greatest value.

    Join semi on k = j and x <> y           Join semi on k = key and (x <> least or x <> greatest)
      Scan a                          =>      Scan a
      Scan b                                  Aggregate by key = j: least = min(y), greatest = max(y)
                                                Scan b

A SEMI or ANTI join with a comparison besides its equalities keeps all rows of its right side, in lists by key, and walks
through them. A row a key will do: for ``y > x`` the greatest, for ``y < x`` the least, for ``y <> x`` both. NULLs among
the y are skipped as they never compare; where there is nothing but NULLs, or x is NULL, the comparison of the extremes
is NULL too, which is no match either way.
"""

from __future__ import annotations

from gquery.expression.expr import AggregateCall, Call, Column, Expr, new_column
from gquery.expression.facts import INT64_DIGITS
from gquery.expression.traverse import conjunction, conjuncts, disjunction
from gquery.expression.types import BOOLEAN, DType, Kind
from gquery.planner.logical.nodes import Aggregate, Join, JoinKind, Plan
from gquery.planner.logical.properties import is_unique
from gquery.planner.logical.shared import kinds_of, transform_kinds
from gquery.planner.logical.tree import column_ids, used_columns

_MIRRORED = {"ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
_EXTREMES = {"ne": ("min", "max"), "lt": ("max",), "le": ("max",), "gt": ("min",), "ge": ("min",)}
_KINDS = kinds_of(JoinKind.SEMI, JoinKind.ANTI)


def exists_by_extremes(plan: Plan) -> Plan | None:
    """SEMI and ANTI joins with one comparison besides their equalities, over a row a key."""
    new = transform_kinds(plan, _KINDS, lambda n: _reduce(n) if isinstance(n, Join) else n)
    return None if new is plan else new


def _reduce(plan: Join) -> Plan:
    if plan.kind not in (JoinKind.SEMI, JoinKind.ANTI):
        return plan
    left, right = column_ids(plan.left), column_ids(plan.right)
    keys: list[tuple[Expr, Column]] = []
    tests: list[tuple[str, Expr, Column]] = []
    for term in conjuncts(plan.condition):
        found = _sides(term, left, right)
        if found is None:
            return plan
        function, outer, inner = found
        if function == "eq":
            keys.append((outer, inner))
        else:
            tests.append(found)
    if len(tests) != 1 or not keys or is_unique(plan.right, frozenset(b.id for _, b in keys)):
        return plan
    function, outer, inner = tests[0]
    if not _has_atomic_extremes(inner.dtype):
        return plan
    names = {b.id: new_column(b.name, b.dtype, b.nullable) for _, b in keys}
    calls = [AggregateCall(f, (inner,), inner.dtype) for f in _EXTREMES[function]]
    made = [new_column(c.function, c.dtype, True) for c in calls]
    grouped = tuple((names[b.id], b) for b in dict.fromkeys(b for _, b in keys))
    groups = Aggregate(plan.right, grouped, tuple(zip(made, calls, strict=True)))
    on = tuple(Call("eq", (a, names[b.id]), BOOLEAN, a.nullable or b.nullable) for a, b in keys)
    test = disjunction(tuple(Call(function, (outer, c), BOOLEAN, True) for c in made))
    return Join(plan.left, groups, plan.kind, conjunction((*on, test)))


def _sides(term: Expr, left: frozenset[int], right: frozenset[int]) -> tuple[str, Expr, Column] | None:
    """A term as (comparison, expression of the left side, column of the right side)."""
    if not isinstance(term, Call) or term.function not in ("eq", *_MIRRORED):
        return None
    function, (a, b) = term.function, term.args
    if isinstance(a, Column) and a.id in right:
        function, a, b = _MIRRORED.get(function, function), b, a
    if isinstance(b, Column) and b.id in right and used_columns(a) <= left:
        return function, a, b
    return None


def _has_atomic_extremes(dtype: DType) -> bool:
    """Whether least and greatest values are a word each: those of text and of 128 bits are found by sorting."""
    if dtype.kind in (Kind.BOOLEAN, Kind.UBIGINT):
        return False
    return dtype.is_exact and not (dtype.is_decimal and dtype.precision > INT64_DIGITS)
