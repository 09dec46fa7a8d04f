"""The query of a relation's `join`: what is compared, and the columns of both sides under names that differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from gquery.api.dataframe.build import column, columns_of, conjunction, expressions, other_columns, select
from gquery.api.dataframe.expression import Expression, col

if TYPE_CHECKING:
    from gquery.api.dataframe.verbs import Verbs

SIDES = {
    "inner": ("", ""), "left": ("LEFT", ""), "right": ("RIGHT", ""), "full": ("FULL", ""), "outer": ("FULL", ""),
    "semi": ("", "SEMI"), "anti": ("", "ANTI"), "cross": ("", "CROSS"),
    "asof": ("", ""),
}  # fmt: skip


def join(
    sides: tuple[Verbs, Verbs], on: Any, pairs: Sequence[tuple[str, str]], how: str, suffix: str
) -> tuple[exp.Expr, list[Expression]]:
    """The query and the expressions of its condition. ``on`` as `Verbs.join` is given it; without it the ``pairs`` of columns are
    equal, and where there are none, every row meets every other."""
    left, right = sides
    side, kind = SIDES[how]
    made = exp.Join(this=exp.to_table("other"), side=side, kind=kind, method="ASOF" if how == "asof" else None)
    given: list[Expression] = []
    names, shared = left.bound_query().names, _shared(left, on)
    if shared is not None:
        made.set("using", [exp.to_identifier(n, quoted=True) for n in shared])
    elif on is not None:
        given = expressions(on, ())
        made.set("on", conjunction([e.node for e in given]))
    elif pairs:
        made.set("on", conjunction([(col(a, of="self") == col(b, of="other")).node for a, b in pairs]))
    if kind in ("SEMI", "ANTI"):
        return select(columns_of(names), joins=[made]), given
    once = {n.lower() for n in shared or ()}
    own = [exp.column(exp.to_identifier(n, quoted=True)) if n.lower() in once else column(n, "self") for n in names]
    others = other_columns(right.bound_query().names, names, once, suffix)
    return select([*own, *others], joins=[made]), given


def _shared(left: Verbs, on: Any) -> list[str] | None:
    """The names of the columns that both sides have, where ``on`` is such names; None where it is a condition, or nothing."""
    if isinstance(on, str) and on.lower() in {n.lower() for n in left.bound_query().names}:
        return [on]
    if isinstance(on, list | tuple) and all(isinstance(n, str) for n in on):
        return [left._known(n) for n in on]
    return None
