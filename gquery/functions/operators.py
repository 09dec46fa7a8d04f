"""The operators: arithmetic, comparisons, LIKE. Their types and bounds are declared here; the engine renders them.

Types follow DuckDB 1.5.5: integers keep their width (``TINYINT + TINYINT`` is TINYINT and may overflow), a decimal sum
has one digit more, a product the digits of both; results of two decimals of up to 18 digits stay within 18, checked.
Where DuckDB takes HUGEINT, which does not exist here, the result is a DECIMAL without fraction. Negating an unsigned
integer raises, where DuckDB wraps.
"""

from __future__ import annotations

from gquery.errors import BindError, NotSupportedError
from gquery.expression.expr import Call, Case, Cast, Expr, Literal
from gquery.expression.promotion import common_type, integer_as_decimal
from gquery.expression.slots import decided, derived
from gquery.expression.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    REAL,
    VARCHAR,
    Bounds,
    DType,
    Kind,
    decimal,
)
from gquery.functions import interval_parts, intervals
from gquery.functions.casts import cast, fits, is_integer_literal, is_text_literal, negated, unified
from gquery.functions.registry import BoundsRule, ScalarFunction, call, declare, is_null_literal, make, resolver


def _operator(
    name: str, doc: str, example: tuple[str, str], bounds: BoundsRule | None = None, nullable: bool = False
) -> None:
    declare(ScalarFunction(name, bounds=bounds, doc=doc, example=example, nullable=nullable))


# ---- bounds ----------------------------------------------------------------------------------------------------------


def _add_bounds(a: Bounds | None, b: Bounds | None) -> Bounds | None:
    return Bounds(a.low + b.low, a.high + b.high) if a and b else None


def _subtract_bounds(a: Bounds | None, b: Bounds | None) -> Bounds | None:
    return Bounds(a.low - b.high, a.high - b.low) if a and b else None


def _multiply_bounds(a: Bounds | None, b: Bounds | None) -> Bounds | None:
    if not (a and b):
        return None
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return Bounds(min(corners), max(corners))


def _int_divide_bounds(a: Bounds | None, b: Bounds | None) -> Bounds | None:
    if not (a and b):
        return None
    if b.low <= 0 <= b.high:
        return Bounds(-a.magnitude, a.magnitude)
    corners = [(abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1) for x in (a.low, a.high) for y in (b.low, b.high)]
    if a.low <= 0 <= a.high:
        corners.append(0)
    return Bounds(min(corners), max(corners))


def _modulo_bounds(a: Bounds | None, b: Bounds | None) -> Bounds | None:
    if not (a and b):
        return None
    most = max(0, b.magnitude - 1)
    return Bounds(-min(max(0, -a.low), most), min(max(0, a.high), most))


def _negate_bounds(a: Bounds | None) -> Bounds | None:
    return Bounds(-a.high, -a.low) if a else None


def _abs_bounds(a: Bounds | None) -> Bounds | None:
    if not a:
        return None
    return Bounds(0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high)), a.magnitude)


_operator("add", "Sum of two numbers of one type and scale.", ("1 + 2", "3"), _add_bounds)
_operator("subtract", "Difference of two numbers of one type and scale.", ("1 - 0.05", "0.95"), _subtract_bounds)
_operator("multiply", "Product; of decimals, scales add.", ("1.5 * 1.5", "2.25"), _multiply_bounds)
_operator("divide", "Quotient of floats: x / 0 is infinite or NaN.", ("7 / 2", "3.5"))
_operator("int_divide", "Quotient of integers, cut towards zero; NULL for a divisor of 0.", ("-7 // 2", "-3"),
          _int_divide_bounds, nullable=True)  # fmt: skip
_operator("modulo", "Remainder with the sign of the dividend; NULL for an exact divisor of 0, NaN for a float.",
          ("-7 % 3", "-1"), _modulo_bounds, nullable=True)  # fmt: skip
_operator("negate", "The negative.", ("-(5)", "-5"), _negate_bounds)
_operator("abs", "The absolute value.", ("abs(-5)", "5"), _abs_bounds)
_operator(
    "add_days", "A date some days later: add_days(DATE, BIGINT).", ("DATE '1995-02-27' + 2", "1995-03-01"), _add_bounds
)
_operator("days_between", "Days from the second date to the first.", ("DATE '1995-03-01' - DATE '1995-02-27'", "2"),
          _subtract_bounds)  # fmt: skip
_operator("add_interval", "A timestamp plus an interval literal: months (the day cut to the month's length), days, "
          "microseconds.", ("DATE '1995-01-31' + INTERVAL 1 MONTH", "1995-02-28 00:00:00"))  # fmt: skip


# ---- arithmetic types ------------------------------------------------------------------------------------------------


def _integer_result(a: Expr, b: Expr) -> DType | None:
    """The type of integer arithmetic: literals take on the other side's type; mixed signs meet in the signed side's type if
    that holds both, else in BIGINT."""
    if is_integer_literal(a) != is_integer_literal(b):
        literal, other = (a, b) if is_integer_literal(a) else (b, a)
        if other.dtype.is_integer and fits(literal, other.dtype):
            return other.dtype
    common = common_type(a.dtype, b.dtype)
    if common is None or common.is_decimal or a.dtype == b.dtype or is_integer_literal(a) or is_integer_literal(b):
        return common
    unsigned = [d.kind.value.startswith("U") for d in (a.dtype, b.dtype)]
    return BIGINT if unsigned[0] != unsigned[1] and common not in (a.dtype, b.dtype) else common


def _as_decimal(dtype: DType) -> DType:
    return dtype if dtype.is_decimal else integer_as_decimal(dtype)


def _within(width: int, *args: DType) -> int:
    """DuckDB does not let arithmetic of 64-bit decimals grow into 128 bits: it checks instead."""
    return 18 if width > 18 and max(a.precision for a in args) <= 18 else min(width, 38)


def sum_type(a: DType, b: DType) -> DType:
    """The type of the sum of two decimals.

    >>> str(sum_type(decimal(15, 2), decimal(10, 0))), str(sum_type(decimal(18, 0), decimal(18, 0)))
    ('DECIMAL(16,2)', 'DECIMAL(18,0)')
    """
    scale = max(a.scale, b.scale)
    width = max(scale + max(a.precision - a.scale, b.precision - b.scale), a.precision, b.precision) + 1
    return decimal(max(_within(width, a, b), scale), scale)


def product_type(a: DType, b: DType) -> DType:
    """The type of the product of two decimals.

    >>> str(product_type(decimal(15, 2), decimal(15, 2)))
    'DECIMAL(18,4)'
    """
    scale = a.scale + b.scale
    if scale > 38:
        raise BindError(f"the product of {a} and {b} needs scale {scale}, and DECIMAL has at most 38; CAST an operand")
    width = a.precision + b.precision
    cut = _within(width, a, b)
    return decimal(cut if cut >= scale else min(38, width), scale)


def _remainder_type(a: DType, b: DType) -> DType:
    """The decimal that holds both sides of ``%``, or DOUBLE where none does."""
    scale = max(a.scale, b.scale)
    whole = max(a.precision - a.scale, b.precision - b.scale)
    return decimal(whole + scale, scale) if whole + scale <= 38 else DOUBLE


def _arithmetic(name: str, a: Expr, b: Expr) -> Expr | None:
    """+, -, * and % of two numbers."""
    if is_null_literal(a) or is_null_literal(b):
        if is_null_literal(a) and is_null_literal(b):
            return Literal(None, BIGINT)
        dtype = b.dtype if is_null_literal(a) else a.dtype
        return Literal(None, dtype) if dtype.is_numeric else None
    if not (a.dtype.is_numeric and b.dtype.is_numeric):
        return None
    if a.dtype.is_float or b.dtype.is_float:
        dtype = common_type(a.dtype, b.dtype) or DOUBLE
        return make(name, (cast(a, dtype), cast(b, dtype)), dtype)
    integers = _integer_result(a, b) if a.dtype.is_integer and b.dtype.is_integer else None
    if integers is not None and integers.is_integer:
        return make(name, (cast(a, integers), cast(b, integers)), integers)
    x, y = _as_decimal(a.dtype), _as_decimal(b.dtype)
    if name == "multiply":
        return make(name, (cast(a, x), cast(b, y)), product_type(x, y))
    dtype = sum_type(x, y) if name != "modulo" else _remainder_type(x, y)
    return make(name, (cast(a, dtype), cast(b, dtype)), dtype)


@resolver("add", "$(numeric, numeric)", "$(DATE, INTEGER) -> DATE", "$(DATE or TIMESTAMP, INTERVAL) -> TIMESTAMP")
def _add(a: Expr, b: Expr) -> Expr | None:
    if (a.dtype.kind is Kind.INTERVAL and b.dtype.kind is not Kind.INTERVAL) or (b.dtype.is_temporal and not a.dtype.is_temporal):
        a, b = b, a
    if a.dtype.kind is b.dtype.kind is Kind.INTERVAL:
        return intervals.added(a, b)
    if intervals.is_time(a) and b.dtype.kind is Kind.INTERVAL:
        return intervals.plus(a, b, 1)
    if a.dtype.kind is Kind.DATE and _is_small_integer(b):
        return make("add_days", (a, cast(b, BIGINT)), DATE)
    return _arithmetic("add", a, b)


@resolver("subtract", "$(numeric, numeric)", "$(DATE, INTEGER) -> DATE", "$(DATE, DATE) -> BIGINT",
          "$(DATE or TIMESTAMP, INTERVAL) -> TIMESTAMP")  # fmt: skip
def _subtract(a: Expr, b: Expr) -> Expr | None:
    if a.dtype.kind is b.dtype.kind is Kind.INTERVAL:
        return intervals.added(a, intervals.minus(b))
    if intervals.is_time(a) and b.dtype.kind is Kind.INTERVAL:
        return intervals.plus(a, b, -1)
    if a.dtype.kind is Kind.DATE and _is_small_integer(b):
        days = cast(b, BIGINT)
        if isinstance(days, Literal) and not days.is_null:
            minus: Expr = derived(negated, BIGINT, (days,))
        else:
            minus = make("negate", (days,), BIGINT)
        return make("add_days", (a, minus), DATE)
    if b.dtype.kind is Kind.DATE and (a.dtype.kind is Kind.DATE or is_text_literal(a)):
        return make("days_between", (cast(a, DATE), b), BIGINT)
    if intervals.is_time(a) and intervals.is_time(b):
        return intervals.between(a, b)
    return _arithmetic("subtract", a, b)


def _is_small_integer(e: Expr) -> bool:
    return e.dtype.is_integer and common_type(e.dtype, DType(e.dtype.kind)) is not None and (
        e.dtype.kind.value in ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT")
    )  # fmt: skip


@resolver("multiply", "$(numeric, numeric)", "$(INTERVAL, numeric) -> INTERVAL")
def _multiply(a: Expr, b: Expr) -> Expr | None:
    for one, other in ((a, b), (b, a)):
        if one.dtype.kind is Kind.INTERVAL and (other.dtype.is_integer or is_null_literal(other)):
            return intervals.scaled(one, other)
        if one.dtype.kind is Kind.INTERVAL and other.dtype.is_numeric:
            return interval_parts.scaled_by_fraction(one, cast(other, DOUBLE), "multiply")
    return _arithmetic("multiply", a, b)


@resolver("divide", "$(numeric, numeric) -> DOUBLE or FLOAT", "$(INTERVAL, numeric) -> INTERVAL")
def _divide(a: Expr, b: Expr) -> Expr | None:
    if a.dtype.kind is Kind.INTERVAL and (b.dtype.is_numeric or is_null_literal(b)):
        return interval_parts.scaled_by_fraction(a, cast(b, DOUBLE), "divide")
    if not all(e.dtype.is_numeric or is_null_literal(e) for e in (a, b)):
        return None
    common = common_type(a.dtype, b.dtype)
    dtype = REAL if common == REAL else DOUBLE
    if is_null_literal(a) or is_null_literal(b):
        return Literal(None, dtype)
    return make("divide", (cast(a, dtype), cast(b, dtype)), dtype)


@resolver("int_divide", "$(numeric, numeric)")
def _int_divide(a: Expr, b: Expr) -> Expr | None:
    """The quotient of integers, cut towards zero; of anything else that of floats. By zero it is NULL."""
    if all(e.dtype.is_integer or _is_huge(e) for e in (a, b)):
        dtype = _integer_result(a, b) or common_type(a.dtype, b.dtype)
        assert dtype is not None
        return _nonzero("int_divide", make("int_divide", (cast(a, dtype), cast(b, dtype)), dtype))
    if all(e.dtype.is_integer or is_null_literal(e) for e in (a, b)):
        return _arithmetic("int_divide", a, b)
    for e in (a, b):
        if _may_be_huge(e):
            raise NotSupportedError(
                f"not supported: // of a {e.dtype} that may stand for an integer of 128 bits: CAST it to BIGINT or DOUBLE"
            )
    quotient = _divide(a, b)
    if isinstance(quotient, Call):
        return Call("int_divide", quotient.args, quotient.dtype, True)
    return quotient


@resolver("modulo mod", "$(numeric, numeric)")
def _modulo(a: Expr, b: Expr) -> Expr | None:
    e = _arithmetic("modulo", a, b)
    if e is not None and e.dtype.kind is Kind.DOUBLE and not (a.dtype.is_float or b.dtype.is_float):
        # of decimals that no decimal holds
        return Case(((call("eq", b, Literal(0, INTEGER)), Literal(None, DOUBLE)),), e)
    return None if e is None else _nonzero("modulo", e)


def _is_huge(e: Expr) -> bool:
    """Whether a DECIMAL is surely an integer of DuckDB's HUGEINT: a literal, and a quotient of such."""
    if isinstance(e, Call) and e.function in ("int_divide", "negate", "abs") and e.dtype.is_decimal:
        return e.function == "int_divide" or _is_huge(e.args[0])
    return is_integer_literal(e)


def _may_be_huge(e: Expr) -> bool:
    """Whether a DECIMAL is a HUGEINT in DuckDB where its integers were not cast to DECIMAL by the user."""
    if not (isinstance(e, Call) and e.function in ("add", "subtract", "multiply", "modulo") and e.dtype.is_decimal):
        return False
    args = [a.arg if isinstance(a, Cast) else a for a in e.args]
    return not e.dtype.scale and all(a.dtype.is_integer or isinstance(a, Literal) or _may_be_huge(a) for a in args)


def _is_nonzero(value: float) -> bool:
    return value != 0


def _nonzero(name: str, e: Expr) -> Expr:
    """The call, not nullable where the divisor is a constant other than 0, or a float (which gives NaN)."""
    if isinstance(e, Call):
        a, b = e.args
        sure = e.dtype.is_float or (isinstance(b, Literal) and not b.is_null and decided(_is_nonzero, (b,)))
        return Call(name, e.args, e.dtype, a.nullable or b.nullable or not sure)
    return e


@resolver("negate", "$(numeric)", "$(INTERVAL)")
def _negate(a: Expr) -> Expr | None:
    if a.dtype.kind is Kind.INTERVAL:
        return intervals.minus(a)
    if is_null_literal(a):
        return Literal(None, BIGINT)
    if isinstance(a, Literal) and not a.is_null and a.dtype.is_numeric:
        minus = derived(negated, a.dtype, (a,))
        if not a.dtype.is_integer or fits(minus, a.dtype):
            return minus
    return make("negate", (a,), a.dtype) if a.dtype.is_numeric else None


@resolver("+", "$(numeric)", example=("+(5)", "5"))
def _plus(a: Expr) -> Expr | None:
    """The number itself."""
    if is_null_literal(a):
        return Literal(None, BIGINT)
    return Cast(a, a.dtype) if a.dtype.is_numeric else None  # another expression than a: a key of GROUP BY, say


@resolver("abs", "$(numeric)")
def _abs(a: Expr) -> Expr | None:
    if is_null_literal(a):
        return Literal(None, BIGINT)
    return make("abs", (a,), a.dtype) if a.dtype.is_numeric else None


# ---- comparisons -----------------------------------------------------------------------------------------------------

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "is_distinct_from", "is_not_distinct_from")
_SQL = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


def _declare_comparison(name: str, symbol: str) -> None:
    distinct = "distinct" in name
    truth = name in ("lt", "le", "ne", "is_distinct_from")
    null_rule = "NULL is a value equal to itself." if distinct else "NULL with a NULL."
    doc = f"``a {symbol} b`` of two values of one type; {null_rule} NaN equals NaN and is the greatest."
    declare(ScalarFunction(name, doc=doc, strict=not distinct, example=(f"1 {symbol} 2", str(truth))))

    @resolver(name, "$(any, any) of comparable types -> BOOLEAN")
    def compare(a: Expr, b: Expr) -> Expr:
        x, y = unified(
            (a, b), f"the comparison {symbol}", comparing=True, ordering=symbol[0] in "<>" and symbol != "<>"
        )
        if is_null_literal(x):  # NULL = NULL: of any type
            x, y = cast(x, BIGINT), cast(y, BIGINT)
        if x.dtype.kind is Kind.INTERVAL:
            return intervals.compared(name, x, y)
        return make(name, (x, y), BOOLEAN)


for _name, _symbol in zip(COMPARISONS, _SQL, strict=True):
    _declare_comparison(_name, _symbol)


# ---- LIKE ------------------------------------------------------------------------------------------------------------

_operator("like", "Whether a string matches a constant pattern: % any characters, _ one.",
          ("'gquery' LIKE 'g%r_'", "True"))  # fmt: skip
_operator("ilike", "LIKE that ignores letter case.", ("'gQuery' ILIKE 'GQ%'", "True"))


def _like(name: str, text: Expr, pattern: Expr, escape: Expr | None) -> Expr | None:
    if not all(e is None or e.dtype.kind is Kind.VARCHAR or is_null_literal(e) for e in (text, pattern, escape)):
        return None
    if not isinstance(pattern, Literal) or not (escape is None or isinstance(escape, Literal)):
        text, pattern, escape = (cast(e, VARCHAR) for e in (text, pattern, escape or Literal("", VARCHAR)))
        if name == "ilike":
            text, pattern = (make("lower", (e,), VARCHAR) for e in (text, pattern))
        return make("_like_prepared", (text, make("_like_pattern", (pattern, escape), VARCHAR)), BOOLEAN)
    if pattern.is_null or is_null_literal(text) or (escape is not None and escape.is_null):
        return Literal(None, BOOLEAN)
    if escape is not None and len(escape.value) > 1:
        raise BindError("the ESCAPE of LIKE is one character")
    if name == "ilike":  # letters beyond ASCII have two cases, too
        from gquery.functions.vectors import lower_case

        text, pattern = make("lower", (cast(text, VARCHAR),), VARCHAR), Literal(lower_case(pattern.value), VARCHAR)
    return make("like", (text, pattern, escape or Literal("", VARCHAR)), BOOLEAN)


@resolver("like", "$(VARCHAR, pattern)", "$(VARCHAR, pattern, escape)")
def _like_sensitive(text: Expr, pattern: Expr, escape: Expr | None = None) -> Expr | None:
    return _like("like", text, pattern, escape)


@resolver("ilike", "$(VARCHAR, pattern)", "$(VARCHAR, pattern, escape)")
def _like_insensitive(text: Expr, pattern: Expr, escape: Expr | None = None) -> Expr | None:
    return _like("ilike", text, pattern, escape)
