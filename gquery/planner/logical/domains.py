"""Which values columns have where a predicate is TRUE, as far as comparisons with constants tell.

    day >= DATE '2024-01-01' AND (k = 3 OR k = 7)    day: from 2024-01-01 on; k: 3, 7

A domain may be too large, never too small: what says nothing about a column leaves it out.
"""

from __future__ import annotations

from array import array

from gquery.columns.domain import NOTHING, ONLY_NULL, VALUES, Domain, Interval, Value
from gquery.expression.expr import And, Call, Cast, Column, Expr, In, IsNull, Literal, Not, Or
from gquery.expression.facts import BEHIND_SURROGATES, FIRST_SURROGATE
from gquery.expression.types import DType, Kind

_FLIPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}

Domains = dict[int, Domain]  # by the id of a column


def domains(predicate: Expr) -> Domains:
    """The domains of columns that a predicate speaks of.

    >>> from gquery.expression.expr import new_column
    >>> from gquery.expression.types import BIGINT, BOOLEAN
    >>> k = new_column("k", BIGINT)
    >>> domains(Call("lt", (k, Literal(7, BIGINT)), BOOLEAN, True))[k.id]
    Domain(intervals=(Interval(low=None, high=6),), null=False)
    """
    match predicate:
        case And(args=args):
            out: Domains = {}
            for found in map(domains, args):
                out = both(out, found)
            return out
        case Or(args=args):
            return _of_any(args)
        case Not(arg=arg):
            return _of_not(arg)
        case IsNull(arg=Column(id=i)):
            return {i: ONLY_NULL}
        case In(arg=arg, values=values):
            column = _column(arg)
            if (
                column is None
                or column.dtype.is_float
                or any(not _speaks_of(column.dtype, Literal(v, arg.dtype)) for v in values)
            ):
                return {}
            return {column.id: Domain.of(Interval(v, v) for v in values)}
        case Column(id=i, dtype=dtype) if dtype.kind is Kind.BOOLEAN:
            return {i: Domain.point(1)}
        case Call(function="like" | "starts_with"):
            return _of_prefix(predicate)
        case Call(function=function) if function in _FLIPPED:
            return _of_comparison(predicate)
        case _:
            return {}


def both(a: Domains, b: Domains) -> Domains:
    """The domains of rows that are in ``a`` and in ``b``."""
    return a | {i: a[i].intersection(domain) if i in a else domain for i, domain in b.items()}


def _of_any(args: tuple[Expr, ...]) -> Domains:
    """Of a disjunction: what each branch says something about."""
    out = domains(args[0])
    for arg in args[1:]:
        if not out:
            break
        found = domains(arg)
        out = {i: domain.union(found[i]) for i, domain in out.items() if i in found}
    return out


def _of_not(arg: Expr) -> Domains:
    match arg:
        case IsNull(arg=Column(id=i)):
            return {i: VALUES}
        case Column(id=i, dtype=dtype) if dtype.kind is Kind.BOOLEAN:
            return {i: Domain.point(0)}
        case _:
            return {}


def _of_comparison(e: Call) -> Domains:
    left, right = e.args
    function = e.function
    if isinstance(left, Literal):
        left, right, function = right, left, _FLIPPED[function]
    column = _column(left)
    if column is None or not isinstance(right, Literal):
        return {}
    if right.value is None:
        return {column.id: NOTHING}
    if not _speaks_of(column.dtype, right):
        return {}
    value = right.value
    if right.dtype.kind is Kind.REAL:
        value = array("f", [value])[0]  # as a column holds it
    return {column.id: _compared(function, value, column.dtype)}


def _compared(function: str, value: Value, dtype: DType) -> Domain:
    """The values that compare so with one. Only integers have a next one: elsewhere the end itself stays in."""
    if isinstance(value, float) and value != value:  # NaN
        return VALUES
    below = above = value
    if dtype.is_exact:
        assert isinstance(value, int)
        below, above = value - 1, value + 1
    match function:
        case "lt":
            return Domain((Interval(None, below),), False)
        case "le":
            return Domain((Interval(None, value),), False)
        case "gt":
            return Domain((Interval(above, None),), False)
        case "ge":
            return Domain((Interval(value, None),), False)
        case "eq":
            return Domain.point(value)
        case _:
            return Domain((Interval(None, below), Interval(above, None)), False) if dtype.is_exact else VALUES


def _of_prefix(e: Call) -> Domains:
    """Of LIKE and starts_with: text that begins with the fixed beginning of a constant pattern."""
    text, pattern, *escape = e.args
    if escape and not isinstance(escape[0], Literal):
        return {}
    if not (isinstance(text, Column) and text.dtype.is_string and isinstance(pattern, Literal)):
        return {}
    if not isinstance(pattern.value, str):
        return {text.id: NOTHING} if pattern.value is None else {}
    ends = len(pattern.value)
    if e.function == "like":
        special = {"%", "_", *(str(x.value) for x in escape if isinstance(x, Literal))}
        ends = next((n for n, c in enumerate(pattern.value) if c in special), ends)
    low = pattern.value[:ends]
    return {text.id: Domain((Interval(low, _behind(low)),), False)}


def _behind(prefix: str) -> str | None:
    """A text that is greater than any that begins with ``prefix``; None where there is none.

    >>> _behind("ab")
    'ac'
    """
    kept = prefix.rstrip("\U0010ffff")
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    return kept[:-1] + chr(BEHIND_SURROGATES if following == FIRST_SURROGATE else following)


def _column(e: Expr) -> Column | None:
    """The column whose values an expression has: itself, or as DOUBLE in place of REAL."""
    if isinstance(e, Cast) and e.dtype.kind is Kind.DOUBLE and e.arg.dtype.kind is Kind.REAL:
        e = e.arg
    return e if isinstance(e, Column) else None


def _speaks_of(dtype: DType, literal: Literal) -> bool:
    """Whether a constant is a physical value in the unit that a column's are in."""
    other, value = literal.dtype, literal.value
    if dtype.is_float:
        return other.is_float and isinstance(value, float)
    if dtype.is_string:
        return other.is_string and isinstance(value, str)
    if not dtype.is_exact or not isinstance(value, int):
        return False
    if dtype.is_integer:
        return other.is_integer
    return other.kind is dtype.kind and other.scale == dtype.scale
