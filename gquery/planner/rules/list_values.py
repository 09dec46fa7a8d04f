"""Functions of lists whose values are written out, as expressions that kernels compute; part of `simplify`.

    list_contains([a, b], v)      =>  CASE WHEN v IS NOT NULL THEN a = v OR b = v END      FALSE where a or b is NULL
    list_position([a, b], v)      =>  CASE WHEN a = v THEN 1 WHEN b = v THEN 2 END         NULL is equal to NULL
    list_max([a, b])              =>  greatest(a, b)
    len([a, b]), [a, b][2]        =>  2, b
    len(_list_kept(a, b, c, d))   =>  CASE WHEN c THEN 1 ELSE 0 END + CASE WHEN d THEN 1 ELSE 0 END
    [a, b] || [c]                 =>  [a, b, c]
    CAST([a, b] AS BIGINT[])      =>  [CAST(a AS BIGINT), CAST(b AS BIGINT)]

A list needs memory for its offsets and its values, and the host to make it; none of these does. Values that are left out cannot
fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gquery import tuning
from gquery.expression.expr import Call, Case, Cast, Expr, IsNull, Literal, Not, ScalarSubquery
from gquery.expression.traverse import disjunction
from gquery.expression.types import BIGINT, INTEGER, INTEGER_BOUNDS, DType, Kind
from gquery.functions import call
from gquery.functions.casts import cast
from gquery.functions.certain import never_fails
from gquery.functions.registry import make

_LIST, _KEPT = "list_value", "_list_kept"
_NOT_COMPARED = (Kind.NULL, Kind.INTERVAL, Kind.OPAQUE)


def of_list_values(e: Call) -> Expr:
    """A call in its simpler form; the same object where there is none."""
    rule = _RULES.get(e.function)
    values = _values(e.args[0]) if rule is not None and e.args else None
    made = None if rule is None or values is None else rule(e, values)
    return e if made is None or made.dtype != e.dtype else made


def cast_of_values(e: Cast) -> Expr:
    """The cast of a list by its values."""
    values, element = _values(e.arg), e.dtype.element
    if values is None or element is None or e.try_ or not e.dtype.is_list or _is_unknown(element):
        return e
    made = make(_LIST, tuple(cast(v, element) for v in values), e.dtype)
    return made if all(v.dtype == element for v in made.children) else e


def _values(e: Expr) -> tuple[Expr, ...] | None:
    """The values of a list that is written out, or that are kept by conditions behind them."""
    is_list = isinstance(e, Call) and e.function in (_LIST, _KEPT) and 0 < len(e.args) <= 2 * tuning.rewrites.most_written_values
    return e.children if is_list else None


def _is_unknown(dtype: DType) -> bool:
    return dtype.is_nested or dtype.kind in _NOT_COMPARED


def _is_sure(e: Expr) -> bool:
    """Whether no row is an error: integers that become wider ones are none either."""
    if isinstance(e, Cast):
        inner, outer = INTEGER_BOUNDS.get(e.arg.dtype.kind), INTEGER_BOUNDS.get(e.dtype.kind)
        is_wider = inner is not None and outer is not None and outer[0] <= inner[0] and inner[1] <= outer[1]
        return is_wider and _is_sure(e.arg)
    return never_fails(e)


def _is_list(e: Call) -> bool:
    (first, *_) = e.args
    return isinstance(first, Call) and first.function == _LIST and len(first.args) <= tuning.rewrites.most_written_values


def _equal(a: Expr, b: Expr) -> Expr:
    return call("is_not_distinct_from", a, b)


def _contains(e: Call, values: Sequence[Expr]) -> Expr | None:
    wanted = e.args[1]
    if not _is_list(e) or _is_unknown(wanted.dtype) or _is_costly(wanted) or not all(map(_is_sure, values)):
        return None  # what stands behind a value that is equal is not computed
    found = disjunction(tuple(_equal(v, wanted) for v in values))
    return found if _is_value(wanted) or not wanted.nullable else Case(((Not(IsNull(wanted)), found),), Literal(None, e.dtype))


def _position(e: Call, values: Sequence[Expr]) -> Expr | None:
    wanted = e.args[1]
    if not _is_list(e) or _is_unknown(wanted.dtype) or _is_costly(wanted) or not all(map(_is_sure, values)):
        return None  # the branches behind the first that is true are not computed
    tests = tuple((_equal(v, wanted), Literal(n, INTEGER)) for n, v in enumerate(values, 1))
    return Case(tests, Literal(None, INTEGER))


def _is_value(e: Expr) -> bool:
    return isinstance(e, Literal) and e.value is not None


def _is_costly(e: Expr) -> bool:
    """Whether an expression is better computed once."""
    return isinstance(e, ScalarSubquery) or len(e.children) > 2


def _extreme(function: str) -> Callable[[Call, Sequence[Expr]], Expr | None]:
    def extreme(e: Call, values: Sequence[Expr]) -> Expr | None:
        if not _is_list(e) or _is_unknown(e.dtype) or e.dtype.is_float:
            return None
        return values[0] if len(values) == 1 else call(function, *values)

    return extreme


def _length(e: Call, values: Sequence[Expr]) -> Expr | None:
    if _is_list(e):
        return Literal(len(values), BIGINT) if all(map(_is_sure, values)) else None
    count = len(values) // 2
    if not all(map(_is_sure, values[:count])):
        return None
    zero, one = Literal(0, BIGINT), Literal(1, BIGINT)
    made: Expr = zero
    for n, condition in enumerate(values[count:]):
        flag = Case(((condition, one),), zero)
        made = call("add", made, flag) if n else flag
    return made


def _extracted(e: Call, values: Sequence[Expr]) -> Expr | None:
    place = e.args[1]
    if not _is_list(e) or not _is_value(place) or not all(map(_is_sure, values)):
        return None
    assert isinstance(place, Literal)
    at = int(place.value) - 1 if int(place.value) > 0 else len(values) + int(place.value)
    return values[at] if int(place.value) and 0 <= at < len(values) else Literal(None, e.dtype)


def _joined(e: Call, values: Sequence[Expr]) -> Expr | None:
    lists = [a.args for a in e.args if isinstance(a, Call) and a.function == _LIST]
    every = tuple(v for own in lists for v in own)
    if len(lists) < len(e.args) or len(every) > tuning.rewrites.most_written_values or len({v.dtype for v in every}) > 1:
        return None
    return make(_LIST, every, e.dtype)


_RULES: dict[str, Callable[[Call, Sequence[Expr]], Expr | None]] = {
    "list_contains": _contains,
    "list_position": _position,
    "list_min": _extreme("least"),
    "list_max": _extreme("greatest"),
    "_list_len": _length,
    "list_extract": _extracted,
    "list_concat": _joined,
    "_list_concat_operator": _joined,
}
