"""Quantiles at several fractions: ``quantile_cont(x, [0.25, 0.5])`` is the list of one aggregate a fraction."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gquery.errors import BindError
from gquery.expression.expr import Call, Expr, IsNull, Literal
from gquery.functions import call, case

QUANTILES = frozenset((
    "quantile", "quantile_cont", "quantile_disc", "percentile_cont", "percentile_disc", "approx_quantile", "reservoir_quantile",
))  # fmt: skip


def at_fractions(name: str, args: Sequence[Expr], one: Callable[[Sequence[Expr]], Expr]) -> Expr:
    """An aggregate: ``one`` makes it of its arguments. NULL, and no list of NULLs, where there is no value."""
    if name.lower() not in QUANTILES or len(args) < 2 or not args[1].dtype.is_list:
        return one(args)
    fractions = args[1]
    if not isinstance(fractions, Call) or fractions.function != "list_value":
        raise BindError(f"the fractions of {name} have to be a list of constant numbers")
    if not fractions.args:
        raise BindError(f"{name} has a list without fractions")
    made = [one([args[0], f, *args[2:]]) for f in fractions.args]
    listed = call("list_value", *made)
    return case([(IsNull(made[0]), Literal(None, listed.dtype))], listed)
