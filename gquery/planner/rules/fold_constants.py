"""Calls and casts of constants become their value.

The engine's own interpreter computes it (injected as `Evaluate`: rules know nothing of kernels), so a constant has the
value that the query would have computed. What raises stays: ``CASE WHEN a <> 0 THEN 1 // 0 END`` may never get there.
"""

from __future__ import annotations

from collections.abc import Callable

from gquery.errors import Error
from gquery.expression.expr import Call, Cast, Expr, Literal

Evaluate = Callable[[Expr], Literal]


def folded(e: Call | Cast, evaluate: Evaluate | None) -> Expr:
    """The literal for a call or cast over literals, or the expression itself."""
    args = e.args if isinstance(e, Call) else (e.arg,)
    if evaluate is None or not all(isinstance(a, Literal) for a in args):
        return e
    try:
        return evaluate(e)
    except Error:
        return e
