"""Aggregates that look for a row, or at rows in an order: what they are made of, and what their constants may be.

The value of an argument where another one is least is the first one among the rows where that has its least value, which is
known before: a pivot (`aggregate_parts`). The distance from the median, too, needs the median first. Entropy and distinct
counts look at each value once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gquery.errors import BindError, NotSupportedError
from gquery.expression.expr import Case, Expr, IsNull, Literal, SortKey
from gquery.expression.nested_types import list_of
from gquery.expression.traverse import pinned
from gquery.expression.types import BIGINT, DOUBLE, TIMESTAMP, VARCHAR, DType, Kind, decimal
from gquery.functions.aggregate_parts import Parts, is_there
from gquery.functions.aggregate_record import Checked, Resolved
from gquery.functions.casts import cast
from gquery.functions.comparison_keys import comparable
from gquery.functions.list_picks import N_GREATEST, N_LEAST
from gquery.functions.registry import call, make

Order = tuple[SortKey, ...]
_REVERSED = ("quantile_cont", "quantile_disc", "percentile_cont", "percentile_disc")
# ---- constants -------------------------------------------------------------------------------------------------------


def quantile_constants(name: str, args: Sequence[Expr], order: Order) -> Checked:
    """A fraction from -1 to 1; counted from the greatest value where an order of one key begins there, as in DuckDB whatever the
    key is, and not where the function has another name."""
    if len(args) != 2:
        return tuple(args), (), order
    value = pinned(args[1])
    if not isinstance(value, Literal) or not (value.dtype.is_numeric or value.dtype.kind is Kind.NULL):
        raise BindError(f"the fraction of {name} has to be a constant number")
    if value.value is None:
        raise BindError(f"the fraction of {name} is NULL")
    if value.dtype.is_integer:
        value = Literal(int(value.value) * 10, DType(Kind.DECIMAL, 3, 1)) if abs(value.value) <= 1 else value
    share = value.value / 10**value.dtype.scale if value.dtype.is_decimal else float(value.value)
    if not -1 <= share <= 1:
        raise BindError(f"the fraction of {name} is not within -1 and 1")
    if name in _REVERSED and len(order) == 1 and order[0].descending:
        value = Literal(-value.value, value.dtype) if share else Literal(-1.0, DOUBLE)
    return (args[0],), (value,), ()


def sample_constants(name: str, args: Sequence[Expr], order: Order) -> Checked:
    """A fraction, and the size of a sample, which is not needed: all values are looked at."""
    if len(args) == 3 and isinstance(pinned(args[2]), Literal) and args[2].dtype.is_integer:
        args = args[:2]
    return quantile_constants(name, args, order)


def separator(name: str, args: Sequence[Expr], order: Order) -> Checked:
    """A text that comes between others; a comma where none is given."""
    if len(args) not in (1, 2):
        return tuple(args), (), order
    value = pinned(args[1]) if len(args) == 2 else Literal(",", VARCHAR)
    if not isinstance(value, Literal) or value.dtype not in (VARCHAR, DType(Kind.NULL)):
        raise BindError(f"the separator of {name} has to be a constant text")
    if value.value is None:  # then so is all that is joined
        return (
            (Case(((IsNull(args[0]), Literal(None, VARCHAR)),), Literal(None, VARCHAR)),),
            (Literal("", VARCHAR),),
            (),
        )
    return (cast(args[0], VARCHAR),), (value,), order


def own_order(name: str, args: Sequence[Expr], order: Order) -> Checked:
    """No constant; an order can only be that of the argument."""
    if any(k.expr != args[0] for k in order[:1]):
        raise NotSupportedError(f"not supported: {name} with an ORDER BY of anything but its argument")
    return tuple(args), (), order[:1]


def of_itself(_: str, args: Sequence[Expr], order: Order) -> Checked:
    """Values are compared by themselves."""
    return (args[0], *args), (), order


# ---- types -----------------------------------------------------------------------------------------------------------


def continuous(types: Sequence[DType]) -> Resolved | None:
    match list(types):
        case [t] if t.is_integer:
            return [DOUBLE], DOUBLE
        case [t] if t.is_numeric or t.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TIME):
            return [t], t
        case [t] if t.kind is Kind.DATE:
            return [TIMESTAMP], TIMESTAMP
        case _:
            return None


def median_type(types: Sequence[DType]) -> Resolved | None:
    found = continuous(types)
    if found is None and len(types) == 1 and types[0].kind in (Kind.VARCHAR, Kind.BOOLEAN, Kind.INTERVAL):
        return types, types[0]
    return found


def deviation(types: Sequence[DType]) -> Resolved | None:
    found = continuous(types)
    return found if found is not None and found[1].is_numeric else None


def text(types: Sequence[DType]) -> Resolved | None:
    return (types, VARCHAR) if list(types) == [VARCHAR] else None


def list_type(types: Sequence[DType]) -> Resolved | None:
    """Of what is computed with, and of lists of that."""
    return (types, list_of(types[0])) if len(types) == 1 and types[0].kind is not Kind.OPAQUE else None


def by_another(types: Sequence[DType]) -> Resolved | None:
    return (types, types[0]) if len(types) == 2 else None


def several_type(types: Sequence[DType]) -> Resolved | None:
    """Of values, of what they are compared by, and of how many."""
    is_number = len(types) == 3 and (types[2].is_integer or types[2].kind is Kind.NULL)
    return ([*types[:2], BIGINT], list_of(types[0])) if is_number else None


def weighted(types: Sequence[DType]) -> Resolved | None:
    return (types, DOUBLE) if len(types) == 2 and all(t.is_numeric for t in types) else None


def of_any(result: DType) -> Callable[[Sequence[DType]], Resolved | None]:
    return lambda types: (types, result) if len(types) == 1 else None


# ---- what they are made of -------------------------------------------------------------------------------------------

HALF = Literal(0.5, DOUBLE)


def _quantile_of(dtype: DType) -> str:
    return "quantile_disc" if dtype.kind in (Kind.VARCHAR, Kind.BOOLEAN, Kind.INTERVAL) else "quantile_cont"


def median(p: Parts, x: Expr) -> Expr:
    return p.part(_quantile_of(x.dtype), x.dtype, x, HALF)


def mad(p: Parts, x: Expr) -> Expr:
    p.only(x)
    middle = p.pivot("quantile_cont", x.dtype, x, HALF)
    away = call("abs", cast(call("subtract", x, middle), x.dtype))
    return p.part("quantile_cont", x.dtype, away, HALF)


def at_extreme(extreme: str, takes_null: bool) -> Callable[[Parts, Expr, Expr], Expr]:
    """The value of x in the first row where y is least or greatest."""

    def result(p: Parts, x: Expr, y: Expr) -> Expr:
        p.only(*((y,) if takes_null else (x, y)))
        return p.at_extreme(extreme, x, y)

    return result


def several_at(extreme: str, takes_null: bool) -> Callable[[Parts, Expr, Expr, Expr], Expr]:
    """The values of x in the n rows where y is least or greatest: a function of both as lists, of the same rows in one order."""

    def result(p: Parts, x: Expr, y: Expr, n: Expr) -> Expr:
        p.only(*(() if takes_null else (x, y)))
        key = comparable(y)
        listed = [p.part("list", list_of(e.dtype), e, in_order=True) for e in (x, key)]
        count = n if isinstance(n, Literal) else p.part("list", list_of(BIGINT), n, in_order=True)
        return make(N_LEAST if extreme == "min" else N_GREATEST, (*listed, count), list_of(x.dtype))

    return result


def first_by(extreme: str) -> Callable[[Parts, Expr, Expr], Expr]:
    """The value of x in the first row where y is least or greatest; of the first row of all where y is nowhere."""

    def result(p: Parts, x: Expr, y: Expr) -> Expr:
        first, count = p.part("first", x.dtype, x, in_order=True), p.part("count", BIGINT, y)
        p.only(y)
        return Case(((call("eq", count, Literal(0, BIGINT)), first),), p.at_extreme(extreme, x, y))

    return result


def weighted_mean(p: Parts, x: Expr, weight: Expr) -> Expr:
    """DuckDB's macro: the weight of a row without a value does not count."""
    counted = Case(((IsNull(x), cast(Literal(0, BIGINT), weight.dtype)),), weight) if x.nullable else weight
    totals = [p.part("sum", _sum_type(e.dtype), e) for e in (call("multiply", x, weight), counted)]
    return cast(call("divide", *totals), DOUBLE)


def _sum_type(dtype: DType) -> DType:
    if dtype.is_float:
        return DOUBLE
    return decimal(38, dtype.scale) if dtype.is_decimal else BIGINT


def entropy(p: Parts, x: Expr) -> Expr:
    p.only(x)
    n = p.regrouped((x,), "count", BIGINT)
    p.where = is_there("gt", n, Literal(0, BIGINT))
    count = cast(call("greatest", n, Literal(1, BIGINT)), DOUBLE)
    total = p.part("sum", DOUBLE, count)
    weighted = p.part("sum", DOUBLE, call("multiply", count, make("log2", (count,), DOUBLE)))
    made = call("subtract", make("log2", (total,), DOUBLE), make("_ratio", (weighted, total), DOUBLE))
    none = Literal(0.0, DOUBLE)  # of one value, too, to the last bit
    return Case(((IsNull(total), none), (is_there("eq", p.count(), Literal(1, BIGINT)), none)), made)
