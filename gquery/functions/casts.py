"""CAST: which pairs of types it takes, which of them are implicit, and the exact folding of casts of literals.

Folding is done here rather than by a rule because literals take part in typing: ``d = '1995-01-01'`` must be a
comparison of dates, and a decimal literal must reach its column's scale, before any rule looks at the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from gquery.errors import BindError, ConversionError
from gquery.expression.expr import Call, Cast, Expr, Literal
from gquery.expression.facts import MICROS_PER_DAY
from gquery.expression.nested_types import field_at, has_names, inner_types
from gquery.expression.promotion import common_type, comparison_type
from gquery.expression.slots import decided, derived
from gquery.expression.types import (
    BIGINT,
    BOOLEAN,
    INTEGER,
    JSON,
    TIMESTAMP,
    UUID,
    VARCHAR,
    DType,
    Kind,
    decimal,
    type_bounds,
)
from gquery.functions.opaque import refuse_opaque
from gquery.functions.texts import text_of, value_of

_F64_WHOLE = 2**53  # up to which a double holds all integers


def castable(source: DType, target: DType) -> bool:
    """Whether CAST takes a value of ``source`` to ``target`` (it may still fail on some value)."""
    if (source.is_numeric and target.is_numeric) or source == target or source.kind is Kind.NULL:
        return True
    if source.is_nested and target.is_nested:
        return source.kind is target.kind and _castable_inside(source, target)
    if source.is_nested and target.is_string:
        return True
    if source.is_string and target.is_nested:
        return all(castable(source, t) and (source == JSON or t != JSON) for t in inner_types(target))
    if source.is_opaque or target.is_opaque:
        return False
    if source.kind is Kind.INTERVAL or target.kind in (Kind.INTERVAL, Kind.NULL):
        return (source.is_string and target.kind is Kind.INTERVAL) or (
            target.is_string and source.kind is Kind.INTERVAL
        )
    if Kind.TIME in (source.kind, target.kind):
        other = target if source.kind is Kind.TIME else source
        return other.is_string or (other.kind is Kind.TIMESTAMP and target.kind is Kind.TIME)
    if source.kind is Kind.TIMESTAMPTZ or target.kind is Kind.TIMESTAMPTZ:
        other = target if source.kind is Kind.TIMESTAMPTZ else source
        return other.is_string or other.is_temporal
    if source.is_string or target.is_string:
        return True
    if source.is_temporal or target.is_temporal:
        return source.is_temporal and target.is_temporal
    return True  # numbers and booleans


def is_named_text(dtype: DType) -> bool:
    """Whether values are texts of one kind, which not all texts are: JSON and UUID."""
    return dtype.kind is Kind.VARCHAR and dtype.name != ""


def _is_looked_at(source: DType, target: DType) -> bool:
    """Whether a cast within others finds texts that are none of a kind: of JSON nobody looks."""
    if source == target or source.kind is Kind.NULL:
        return True
    if UUID in (source, target):
        return VARCHAR in (source, target)
    return not is_named_text(target)


def _castable_inside(source: DType, target: DType) -> bool:
    if not all(_is_looked_at(s, t) for s, t in zip(inner_types(source), inner_types(target), strict=False)):
        return False
    if not source.is_struct:
        return all(map(castable, inner_types(source), inner_types(target)))
    pairs = [(source.fields[place][1], t) for place, (_, t) in zip(fields_in(source, target), target.fields, strict=True)
             if place is not None]  # fmt: skip
    is_whole = all(has_names(t) for t in (source, target)) or len(source.fields) == len(target.fields)
    return bool(pairs) and is_whole and all(castable(s, t) for s, t in pairs)


def fields_in(source: DType, target: DType) -> list[int | None]:
    """For each field of a struct the place of that field in another: of its name, or its own place where one has no names."""
    if has_names(source) and has_names(target):
        return [field_at(source, name) for name, _ in target.fields]
    return [n if n < len(source.fields) else None for n in range(len(target.fields))]


def cast(expr: Expr, dtype: DType, try_: bool = False) -> Expr:
    """``CAST(expr AS dtype)``: the expression itself where it has the type; a cast of a literal is done at once where
    it is exact and cannot fail later.

    Raises BindError for types that no CAST joins, ConversionError for a string literal that is no such value.
    """
    if expr.dtype is dtype or expr.dtype == dtype:
        return expr
    if isinstance(expr, Literal) and expr.is_null:
        return Literal(None, dtype)
    if (is_named_text(dtype) or is_named_text(expr.dtype)) and expr.dtype.kind is not Kind.NULL:
        module, name = ("uuid", "cast_uuid") if UUID in (dtype, expr.dtype) and dtype != JSON else ("tojson", "cast_json")
        late = import_module(f"gquery.functions.{module}")  # which rests on casts
        made: Expr = getattr(late, name)(expr, dtype, try_)
        return made
    if not castable(expr.dtype, dtype):
        refuse_opaque((expr,), f"CAST to {dtype}")
        raise BindError(f"cannot CAST {expr.dtype} to {dtype}")
    if Kind.TIMESTAMPTZ in (expr.dtype.kind, dtype.kind):
        return _by_utc(expr, dtype, try_)
    if isinstance(expr, Literal):
        folded = fold_cast(expr, dtype, try_)
        if folded is not None:
            return folded
    if expr.dtype.kind is Kind.TIMESTAMP and dtype.kind is Kind.TIME:
        return Call("_time_of_day", (expr,), dtype, expr.nullable)
    if expr.dtype.kind is Kind.NULL:  # an expression, such as CASE with NULLs alone
        return Literal(None, dtype)
    return Cast(expr, dtype, try_)


def _by_utc(expr: Expr, dtype: DType, try_: bool) -> Expr:
    """A cast from or to moments, by the clock of UTC (`functions.zones`)."""
    if expr.dtype.kind is Kind.TIMESTAMPTZ:
        local = _moved(expr, TIMESTAMP)
        return (
            Call("_text_of_moment", (local,), VARCHAR, expr.nullable) if dtype.is_string else cast(local, dtype, try_)
        )
    if not expr.dtype.is_string:
        return _moved(cast(expr, TIMESTAMP, try_), dtype)
    if isinstance(expr, Literal):
        folded = fold_cast(expr, dtype, try_)
        if folded is not None:
            return folded
    name, nullable = ("_moment_or_null", True) if try_ else ("_moment_of_text", expr.nullable)
    return _moved(Call(name, (expr,), TIMESTAMP, nullable), dtype)


def _moved(expr: Expr, dtype: DType) -> Expr:
    """A moment as the time of UTC, or that as the moment: the same number."""
    if not isinstance(expr, Literal):
        return Cast(expr, dtype)
    return Literal(None, dtype) if expr.is_null else derived(_same, dtype, (expr,))


def _same(value: Any) -> Any:
    return value


def fold_cast(literal: Literal, dtype: DType, try_: bool) -> Literal | None:
    """The literal that a cast of a literal gives; None where it has to be left to the engine (which raises, if it
    must)."""
    source = literal.dtype
    if literal.is_null:
        return Literal(None, dtype)
    if dtype.is_nested:
        return None
    if source.is_string:
        try:
            return derived(from_text, dtype, (literal,), dtype)
        except ConversionError:  # of which a row may never ask: CASE WHEN a > 5 THEN CAST('x' AS INTEGER) END
            return Literal(None, dtype) if try_ else None
    if source.kind is Kind.BOOLEAN and dtype.is_integer:
        return Literal(int(literal.value), dtype)
    if source.kind is Kind.DATE and dtype.kind is Kind.TIMESTAMP:
        stamp = derived(_start_of_day, dtype, (literal,))
        return stamp if fits(stamp, dtype) else None
    if source.kind is Kind.TIMESTAMP and dtype.kind is Kind.DATE:
        return derived(_day_of, dtype, (literal,))
    if source.kind is Kind.TIMESTAMP and dtype.kind is Kind.TIME:
        return derived(_time_of, dtype, (literal,))
    if source.kind in (Kind.INTERVAL, Kind.TIME):
        return derived(text_of, dtype, (literal,), source)
    if source.is_integer or source.is_decimal:
        exact = derived(_from_unscaled, dtype, (literal,), source, dtype)
        return None if exact.is_null else exact
    if source.kind is Kind.REAL and dtype.kind is Kind.DOUBLE:
        return Literal(literal.value, dtype)
    return None


def _start_of_day(days: int) -> int:
    return days * MICROS_PER_DAY


def _day_of(micros: int) -> int:
    return micros // MICROS_PER_DAY


def _time_of(micros: int) -> int:
    return micros % MICROS_PER_DAY


def _from_unscaled(value: int, source: DType, dtype: DType) -> Any:
    """An integer (scale 0) or decimal as the physical value of another type; None where it does not fit or is not
    exact."""
    if dtype.kind is Kind.DOUBLE:
        return value / 10**source.scale if abs(value) <= _F64_WHOLE else None
    if dtype.kind is Kind.VARCHAR:
        return text_of(value, source)
    if dtype.kind is Kind.BOOLEAN:
        return int(value != 0)
    if dtype.is_integer or dtype.is_decimal:
        rescaled = rescale(value, source.scale, dtype.scale)
        bounds = type_bounds(dtype)
        assert bounds is not None
        return rescaled if bounds.low <= rescaled <= bounds.high else None
    return None


def rescale(value: int, scale: int, to: int) -> int:
    """An unscaled decimal at another scale, rounded half away from zero.

    >>> rescale(-125, 2, 1), rescale(5, 0, 2)
    (-13, 500)
    """
    if to >= scale:
        return value * int(10 ** (to - scale))
    divisor = 10 ** (scale - to)
    rounded = int((abs(value) + divisor // 2) // divisor)
    return rounded if value >= 0 else -rounded


def from_text(text: str, dtype: DType) -> Any:
    """The physical value that a string stands for; ConversionError where it stands for none.

    >>> from gquery.expression.types import DATE
    >>> from_text("1995-01-02", DATE), from_text(" 12.5 ", decimal(5, 2)), from_text("12.7", BIGINT)
    (9132, 1250, 13)
    """
    value = value_of(text, dtype)
    if value is None:
        raise ConversionError(f"could not convert string {text!r} to {dtype}")
    return value


# ---- implicit casts --------------------------------------------------------------------------------------------------


def is_integer_literal(e: Expr) -> bool:
    """A literal integer of the type that its size gives it: it takes on the integer type that it meets, if it fits."""
    if not (isinstance(e, Literal) and (e.dtype.is_integer or e.dtype.is_decimal)) or e.is_null:
        return False
    return decided(integer_literal_type, (e,), e.dtype) == e.dtype


def bare(e: Expr) -> Expr:
    """The literal in a cast to its own type, which a literal has that takes on no other; else the expression."""
    return e.arg if isinstance(e, Cast) and isinstance(e.arg, Literal) and e.arg.dtype == e.dtype else e


def integer_literal_type(value: Any, dtype: DType) -> DType | None:
    """The type of an integer literal of this value: INTEGER, BIGINT, or a DECIMAL above; None for other types."""
    if not (dtype.is_integer or (dtype.is_decimal and dtype.scale == 0)):
        return None
    if -(2**31) < value < 2**31:
        return INTEGER
    return BIGINT if -(2**63) <= value < 2**63 else decimal(min(38, len(str(abs(value)))), 0)


def is_text_literal(e: Expr) -> bool:
    """A string literal: it takes on the type that it meets."""
    return isinstance(e, Literal) and e.dtype == VARCHAR and not e.is_null


def implicit_cost(e: Expr, target: DType) -> int | None:
    """How far an argument is from a parameter's type; None where SQL asks for an explicit CAST."""
    source = e.dtype
    if source == target:
        return 0
    if source.kind is Kind.NULL or (source == JSON and target == VARCHAR):
        return 1
    if is_text_literal(e) and target.kind is not Kind.INTERVAL:
        return 20
    if source.is_integer and target.is_integer:
        if is_integer_literal(e) and fits(e, target):
            return 1
        return 2 if common_type(source, target) == target else None
    if source.is_integer and target.is_decimal:
        return 4 if common_type(source, target) == target else None
    if target.is_float:
        if source.is_integer or source.is_decimal:
            return 6 if target.kind is Kind.DOUBLE else 7
        return 3 if source.kind is Kind.REAL and target.kind is Kind.DOUBLE else None
    if target.kind is Kind.TIMESTAMPTZ:
        return 4 if source.is_temporal else None
    return 3 if source.kind is Kind.DATE and target.kind is Kind.TIMESTAMP else None


def fits(e: Expr, dtype: DType) -> bool:
    """Whether an exact literal lies in the range of a type of the same scale."""
    bounds = type_bounds(dtype)
    return isinstance(e, Literal) and bounds is not None and decided(is_between, (e,), bounds.low, bounds.high)


def is_between(value: int, low: int, high: int) -> bool:
    """Whether an integer lies in a range, its ends included."""
    return low <= value <= high


def unify(exprs: Sequence[Expr], comparing: bool = False, ordering: bool = False) -> DType | None:
    """The one type that expressions meeting in a CASE, UNION, IN or comparison are cast to; None where there is none.

    Integer literals take on the other integer types if they fit, string literals any other type. ``comparing``: strings
    that are not literals are cast to the other side's type too, but where the values are put in order (``ordering``) or
    become one column: what is meant then would be a guess, as for BOOLEAN and a number with a fraction. Values of any type
    that become one column with JSON are JSON.
    """
    first = exprs[0].dtype if exprs else DType(Kind.NULL)
    for e in exprs:
        if isinstance(e, Literal) or not (e.dtype is first or e.dtype == first):
            break
    else:
        if comparing and first.is_opaque:
            refuse_opaque(exprs, "a comparison")
        return first
    if not (comparing or ordering) and any(e.dtype == JSON for e in exprs):
        return JSON
    if (ordering or not comparing) and _is_mixed(exprs, ordering):
        return None
    if comparing:
        refuse_opaque(exprs, "a comparison")
    flexible: list[Expr] = []
    has_text = has_varchar = False
    meet = comparison_type if comparing else common_type
    firm: DType | None = None
    for e in exprs:
        if is_integer_literal(e):
            flexible.append(e)
        elif is_text_literal(e):
            has_text = True
        elif comparing and e.dtype == VARCHAR:
            has_varchar = True
        elif e.dtype.kind is not Kind.NULL:
            firm = e.dtype if firm is None else meet(firm, e.dtype)
            if firm is None:
                return None
    for e in flexible:
        if firm is None or not (firm.is_integer and fits(e, firm)):
            firm = e.dtype if firm is None else meet(firm, e.dtype)
            if firm is None:
                return None
    if firm is None:
        return VARCHAR if has_text or has_varchar else DType(Kind.NULL)
    if has_text and firm.kind is Kind.BOOLEAN and not comparing:
        return BOOLEAN
    return firm


def _is_mixed(exprs: Sequence[Expr], ordering: bool) -> bool:
    """Whether types meet that DuckDB takes together in no order."""
    firm = [e.dtype for e in exprs if not is_text_literal(e) and e.dtype.kind is not Kind.NULL]
    has_truth = any(t.kind is Kind.BOOLEAN for t in firm)
    has_text = ordering and any(t.kind is Kind.VARCHAR for t in firm)
    return (has_truth and any(t.is_float or t.is_decimal for t in firm)) or (
        has_text and any(t.kind is not Kind.VARCHAR for t in firm)
    )


def unified(exprs: Sequence[Expr], what: str, comparing: bool = False, ordering: bool = False) -> list[Expr]:
    """The expressions cast to their common type; BindError, naming ``what`` they meet in, where there is none."""
    dtype = unify(exprs, comparing, ordering)
    if dtype is None:
        names = " and ".join(dict.fromkeys(str(e.dtype) for e in exprs if e.dtype.kind is not Kind.NULL))
        raise BindError(f"cannot mix values of type {names} in {what}; an explicit CAST is required")
    return [e if e.dtype is dtype else cast(e, dtype) for e in exprs]


def negated(value: Any) -> Any:
    """The negative of a literal's physical value."""
    return -value
