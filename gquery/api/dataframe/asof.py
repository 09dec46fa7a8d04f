"""The query of a relation's `join_asof`: an ASOF JOIN, and its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from gquery.api.dataframe.build import column, columns_of, other_columns, select
from gquery.api.dataframe.expression import col
from gquery.errors import InterfaceError

if TYPE_CHECKING:
    from gquery.api.dataframe.verbs import Verbs

_COMPARED: dict[str, type[exp.Expr]] = {"backward": exp.GTE, "forward": exp.LTE}
_SIDES = {"left": "LEFT", "inner": ""}


def join_asof(
    sides: tuple[Verbs, Verbs], keys: tuple[str, str], by: Sequence[str], ways: tuple[str, str], suffix: str
) -> exp.Expr:
    """The query; ``keys`` are the names of the compared columns, ``ways`` the strategy and how rows without a match are kept."""
    left, right = sides
    strategy, how = ways
    if strategy not in _COMPARED or how not in _SIDES:
        raise InterfaceError(f"join_asof takes the strategy {' or '.join(_COMPARED)}, and how {' or '.join(_SIDES)}")
    own, theirs = left._known(keys[0]), right._known(keys[1])
    shared = [left._known(n) for n in by]
    test: exp.Expr = _COMPARED[strategy](this=column(own, "self"), expression=column(theirs, "other"))
    for n in shared:
        test = exp.And(this=test, expression=(col(n, of="self") == col(right._known(n), of="other")).node)
    join = exp.Join(this=exp.to_table("other"), method="ASOF", side=_SIDES[how], on=test)
    gone = {n.lower() for n in shared} | ({theirs.lower()} if own.lower() == theirs.lower() else set())
    names = left.bound_query().names
    others = other_columns(right.bound_query().names, names, gone, suffix)
    return select([*columns_of(names), *others], joins=[join])
