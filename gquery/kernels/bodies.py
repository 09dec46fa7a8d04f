"""Which expressions surely have a body in a kernel, found out without rendering them."""

from __future__ import annotations

from gquery.expression.expr import Call, Cast, Expr, Literal
from gquery.expression.traverse import walk
from gquery.kernels import interval_values
from gquery.kernels.compare import COMPARISONS

ARITHMETIC = {"add", "subtract", "multiply", "divide", "int_divide", "modulo", "negate", "abs"}
EXTREMES = {"greatest": "gt", "least": "lt"}
_WRITTEN = frozenset([*ARITHMETIC, *COMPARISONS, *EXTREMES, "add_days", "days_between", *interval_values.FUNCTIONS])
"""Functions that `render` writes itself, for all arguments."""
_MATCHES = ("like", "ilike")


def has_body(e: Expr) -> bool:
    """Whether `render` surely writes an expression. Where that is not sure, rendering it tells (`NeedsHostError`, or what is
    wrong with it): a function may have a body for some arguments, or need none, as it is looked up in a dictionary."""
    return all(_is_written(x) for x in walk(e))


def _is_written(e: Expr) -> bool:
    match e:
        case Call(function=function, args=args) if function in _MATCHES:
            return all(isinstance(a, Literal) for a in args[1:])
        case Call(function=function):
            return function in _WRITTEN
        case Cast(arg=arg, dtype=dtype):
            is_text = arg.dtype.is_string or dtype.is_string
            return (arg.dtype.is_string and dtype.is_string) if is_text else not (arg.dtype.is_nested or dtype.is_nested)
        case _:
            return True
