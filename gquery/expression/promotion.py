"""The types that expressions of several types have: what DuckDB promotes integers, decimals and temporals to."""

from __future__ import annotations

from gquery.expression.nested_types import has_names, inner_types, struct_of, with_types
from gquery.expression.types import DOUBLE, INTEGER_BOUNDS, REAL, TIMESTAMP, DType, Kind, decimal

_SIGNED = (Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)


_UNSIGNED = (Kind.UTINYINT, Kind.USMALLINT, Kind.UINTEGER, Kind.UBIGINT)


_DECIMAL_DIGITS = {  # digits that a decimal needs to hold every value of an integer type, as DuckDB counts them
    Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INTEGER: 10, Kind.BIGINT: 19,
    Kind.UTINYINT: 3, Kind.USMALLINT: 5, Kind.UINTEGER: 10, Kind.UBIGINT: 20, Kind.BOOLEAN: 1,
}  # fmt: skip


def integer_as_decimal(dtype: DType) -> DType:
    """The DECIMAL that holds every value of an integer type.

    >>> from gquery.expression.types import INTEGER
    >>> str(integer_as_decimal(INTEGER))
    'DECIMAL(10,0)'
    """
    return decimal(_DECIMAL_DIGITS[dtype.kind], 0)


def common_type(a: DType, b: DType) -> DType | None:
    """The type that both sides of a comparison, a CASE or a UNION are cast to; None where SQL asks for an explicit CAST.

    >>> from gquery.expression.types import BIGINT, INTEGER
    >>> str(common_type(INTEGER, decimal(15, 2)))
    'DECIMAL(15,2)'
    >>> str(common_type(BIGINT, decimal(15, 2)))
    'DECIMAL(21,2)'
    """
    if a is b or a == b or b.kind is Kind.NULL:
        return a
    if a.kind is Kind.NULL:
        return b
    if a.kind is Kind.BOOLEAN and b.is_numeric:
        return b
    if b.kind is Kind.BOOLEAN and a.is_numeric:
        return a
    if a.is_float or b.is_float:
        if not (a.is_numeric and b.is_numeric):
            return None
        other = b if a.is_float else a
        if a.kind is Kind.DOUBLE or b.kind is Kind.DOUBLE:
            return DOUBLE
        return REAL if other.is_float or other.is_integer or other.is_decimal else None
    if a.is_integer and b.is_integer:
        return _common_integer(a, b)
    if (a.is_decimal or a.is_integer) and (b.is_decimal or b.is_integer):
        x = a if a.is_decimal else integer_as_decimal(a)
        y = b if b.is_decimal else integer_as_decimal(b)
        scale = max(x.scale, y.scale)
        whole = max(x.precision - x.scale, y.precision - y.scale)
        return decimal(min(38, whole + scale), min(scale, 38 - whole))  # whole digits win over places, as in DuckDB
    if a.is_string and b.is_string:  # one is JSON or UUID
        return a if not b.name else b if not a.name else None
    if a.is_temporal and b.is_temporal:
        return TIMESTAMP
    if Kind.TIMESTAMPTZ in (a.kind, b.kind) and (a.is_temporal or b.is_temporal):
        return a if a.kind is Kind.TIMESTAMPTZ else b
    return _common_nested(a, b) if a.is_nested and a.kind is b.kind else None


def _common_nested(a: DType, b: DType) -> DType | None:
    """The type of both lists, maps or structs; structs with names have the fields of both."""
    is_named = has_names(a) and has_names(b)
    if a.is_struct and is_named:
        places = {name.lower(): t for name, t in b.fields}
        types = [(name, common_type(t, places.get(name.lower(), t))) for name, t in a.fields]
        mine = {name.lower() for name, _ in a.fields}
        fields = [*types, *((name, t) for name, t in b.fields if name.lower() not in mine)]
        known = [(name, t) for name, t in fields if t is not None]
        return struct_of(known) if len(known) == len(fields) else None
    inner = inner_types(a), inner_types(b)
    if len(inner[0]) != len(inner[1]):
        return None
    both = [t for x, y in zip(*inner, strict=True) if (t := common_type(x, y)) is not None]
    return with_types(a if has_names(a) else b, both) if len(both) == len(inner[0]) else None


def comparison_type(a: DType, b: DType) -> DType | None:
    """The type that both sides of a comparison are cast to: as `common_type`, but no decimal place is lost.

    >>> str(common_type(decimal(12, 2), decimal(38, 0))), str(comparison_type(decimal(12, 2), decimal(38, 0)))
    ('DECIMAL(38,0)', 'DECIMAL(38,2)')
    """
    common = common_type(a, b)
    scale = max(a.scale, b.scale)
    return decimal(38, scale) if common is not None and common.is_decimal and common.scale < scale else common


def _common_integer(a: DType, b: DType) -> DType:
    bounds_a, bounds_b = INTEGER_BOUNDS[a.kind], INTEGER_BOUNDS[b.kind]
    low, high = min(bounds_a[0], bounds_b[0]), max(bounds_a[1], bounds_b[1])
    for kind in _SIGNED if low < 0 else _UNSIGNED:
        if INTEGER_BOUNDS[kind][0] <= low and high <= INTEGER_BOUNDS[kind][1]:
            return DType(kind)
    return decimal(20, 0)  # BIGINT with UBIGINT: DuckDB takes HUGEINT; a decimal holds every value of both
