"""Sums of one value plus, minus or times several constants become one sum and one count, and arithmetic over those.

    Aggregate by k: sum(x + 1), sum(x * 5), sum(2 - x)        Project k, s + 1 * n, s * 5, 2 * n - s
      Scan t                                            =>      Aggregate by k: s = sum(x), n = count(x)
                                                                  Scan t

A row that has no x counts in neither. Only for integers and decimals, whose sums are exact, and where no row's own arithmetic
can overflow, which would be an error: by the type of x, or by what its table knows of it. The sum of x may be greater than
that of x - 1: it has 38 digits, and what comes out is checked to fit the type of the call. Calls of one FILTER go together. A
group has two words of state then, whatever the number of sums; without keys sums are registers, and only many are worth it.
"""

from __future__ import annotations

from collections.abc import Iterator

from gquery import tuning
from gquery.expression.expr import AggregateCall, Call, Cast, Column, Expr, Literal, new_column
from gquery.expression.facts import MOST_PRECISION, power_of_ten
from gquery.expression.frozen import frozen_open
from gquery.expression.promotion import integer_as_decimal
from gquery.expression.slots import decided, derived
from gquery.expression.types import BIGINT, INT64, Bounds, DType, decimal, type_bounds
from gquery.functions import declaration
from gquery.functions.aggregate_record import Total
from gquery.kernels.arithmetic import interval_arithmetic
from gquery.planner.logical.aggregate_joins import Calls
from gquery.planner.logical.nodes import Aggregate, Plan, Project, Scan
from gquery.planner.logical.tree import transform_up, used_columns, walk


@frozen_open
class _Linear:
    """A value and a constant joined by an operation, whose call stands in a sum; ``is_left``: the constant stands on the left."""

    base: Expr
    call: Call
    constant: Literal
    is_left: bool


_Family = list[tuple[Column, _Linear]]


def linear_sums(plan: Plan) -> Plan | None:
    """Sums over one value are computed of its sum."""
    new = transform_up(plan, lambda n: _node(n) if isinstance(n, Aggregate) and len(n.aggregates) > 1 else n)
    return None if new is plan else new


def _node(plan: Aggregate) -> Plan:
    made: dict[int, Expr] = {}
    parts: Calls = ()
    for (base, only), family in _families(plan).items():
        if len(family) < _fewest(plan, counts_itself=base.nullable or only is not None):
            continue
        total = new_column("sum", decimal(MOST_PRECISION, base.dtype.scale), any(c.nullable for c, _ in family))
        count = new_column("count", BIGINT, False)
        parts += (
            (total, AggregateCall("sum", (base,), total.dtype, filter=only)),
            (count, AggregateCall("count", (_counted(base),), BIGINT, filter=only)),
        )
        made |= {c.id: _over(one, c, total, count) for c, one in family}
    if not made:
        return plan
    kept = tuple(x for x in plan.aggregates if x[0].id not in made)
    source = Aggregate(plan.source, plan.keys, kept + parts)
    return Project(source, tuple((c, made.get(c.id, c)) for c in plan.columns))


def _fewest(plan: Aggregate, counts_itself: bool) -> int:
    """How many sums of a value are worth it."""
    limits = tuning.rewrites
    return limits.sums_of_groups - counts_itself if plan.keys else limits.sums_of_all


def _families(plan: Aggregate) -> dict[tuple[Expr, Expr | None], _Family]:
    """The sums that differ in constants alone, by the value and the filter that they share."""
    families: dict[tuple[Expr, Expr | None], _Family] = {}
    for c, a in plan.aggregates:
        one = _linear(a)
        if one is not None:
            families.setdefault((one.base, a.filter), []).append((c, one))
    ranges = {base: _range(base, plan.source) for (base, _), family in families.items() if len(family) > 1}
    return {
        key: fitting
        for key, family in families.items()
        if (known := ranges.get(key[0])) is not None
        and (fitting := [(c, one) for c, one in family if _always_fits(one, known)])
    }


def _linear(a: AggregateCall) -> _Linear | None:
    if not isinstance(declaration(a).only, Total) or a.distinct:
        return None
    match a.args:
        case (Call(function="add" | "subtract" | "multiply", args=(x, y), dtype=dtype) as call,):
            if not (dtype.is_integer or dtype.is_decimal):
                return None
            is_left = isinstance(x, Literal)
            base, constant = (y, x) if is_left else (x, y)
            if isinstance(constant, Literal) and not constant.is_null and used_columns(base):
                return _Linear(base, call, constant, is_left)
    return None


def _counted(e: Expr) -> Expr:
    """What has a value in the same rows, without casts that change nothing of that."""
    while isinstance(e, Cast) and _is_lossless(e.arg.dtype, e.dtype):
        e = e.arg
    return e


def _over(one: _Linear, result: Column, total: Column, count: Column) -> Expr:
    """The sum, of that of the value and how many values there are."""
    function = one.call.function
    constant = derived(_itself, decimal(MOST_PRECISION, one.constant.dtype.scale), (one.constant,))
    if function == "multiply":
        return Call(function, (total, constant), result.dtype, total.nullable)
    rows = Cast(count, integer_as_decimal(BIGINT))
    added = Call("multiply", (constant, rows), constant.dtype, False)
    return Call(function, (added, total) if one.is_left else (total, added), result.dtype, total.nullable)


def _itself(value: int) -> int:
    return value


# ---- that no row's arithmetic overflows ------------------------------------------------------------------------------


def _always_fits(one: _Linear, known: Bounds) -> bool:
    return decided(_stays, (one.constant,), one.call.function, one.is_left, known, _within_words(one.call.dtype))


def _stays(constant: int, function: str, is_left: bool, known: Bounds, limit: Bounds) -> bool:
    """Whether the results for all values of a range lie in another one."""
    sides = known, Bounds(constant, constant)
    return interval_arithmetic(function, *(sides[::-1] if is_left else sides)).within(limit)


def _within_words(dtype: DType) -> Bounds:
    """The values of a type of at most 64 bits: few enough of them have a sum of 38 digits."""
    limit = type_bounds(dtype)
    assert limit is not None
    return Bounds(max(limit.low, INT64.low), min(limit.high, INT64.high))


def _range(e: Expr, plan: Plan) -> Bounds | None:
    """In which range all values of an expression over a plan's rows lie, if that is one of 64 bits."""
    known = type_bounds(e.dtype)
    match e:
        case Column():
            known = next(_known(e, plan), known)
        case Cast(arg=arg, dtype=dtype) if _is_lossless(arg.dtype, dtype) and (inner := _range(arg, plan)) is not None:
            factor = power_of_ten(dtype.scale - arg.dtype.scale)
            known = Bounds(inner.low * factor, inner.high * factor)
        case _:
            pass
    return known if known is not None and known.within(INT64) else None


def _is_lossless(source: DType, target: DType) -> bool:
    """Whether a cast between exact numbers gives every value itself."""
    if not all(t.is_integer or t.is_decimal for t in (source, target)) or target.scale < source.scale:
        return False
    inner, outer, factor = type_bounds(source), type_bounds(target), power_of_ten(target.scale - source.scale)
    assert inner is not None and outer is not None
    return Bounds(inner.low * factor, inner.high * factor).within(outer)


def _known(column: Column, plan: Plan) -> Iterator[Bounds]:
    """What the table that a column comes from knows of its values, if it is a table's."""
    for node in walk(plan):
        if isinstance(node, Scan):
            for c, field in zip(node.columns, node.fields, strict=True):
                bounds = node.source.statistics(field).bounds if c.id == column.id else None
                if bounds is not None:
                    yield bounds
