"""What is known of an expression without computing it, so that nobody has to: that it cannot fail, that it is never NULL.

A rewrite that leaves a computation out loses its errors: ``CAST(s AS INTEGER) IS NOT NULL`` has to raise where a string is no
number. As in DuckDB, arithmetic of integers and doubles alone is not computed for the question whether it is NULL.
"""

from __future__ import annotations

from gquery.expression.expr import AggregateCall, And, Call, Case, Column, Expr, In, IsNull, Literal, Not, Or
from gquery.functions.operators import COMPARISONS
from gquery.runtime.records import replace

_SAFE = frozenset(COMPARISONS)
_ARITHMETIC = frozenset({"add", "subtract", "multiply", "negate", "abs"})


def never_fails(e: Expr, ignored: frozenset[str] = frozenset()) -> bool:
    """Whether no row is an error; those of the functions ``ignored`` do not count, unless they are of decimals."""
    match e:
        case Column() | Literal():
            return True
        case Call(function=function, dtype=dtype):
            is_safe = function in _SAFE or (function in ignored and not dtype.is_decimal)
            return is_safe and all(never_fails(a, ignored) for a in e.args)
        case And() | Or() | Not() | IsNull() | In() | Case():
            return all(never_fails(a, ignored) for a in e.children)
        case _:
            return False


def guarded(call: AggregateCall) -> AggregateCall:
    """The call over arguments that are computed before its filter is tested: what may fail is NULL where that is not TRUE."""
    if call.filter is None or all(never_fails(e) for e in call.args):
        return call
    only = call.filter
    args = tuple(e if never_fails(e) else Case(((only, e),), Literal(None, e.dtype)) for e in call.args)
    return replace(call, args=args)


def never_null(e: Expr) -> bool:
    """Whether every row has a value, which may be left uncomputed."""
    return not e.nullable and never_fails(e, _ARITHMETIC)
