"""Functions that are bound by the trees of their arguments: by names of these, or by a type that one describes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from gquery.expression.expr import Expr
from gquery.sql.binding import structs

Bind = Callable[[exp.Expr], Expr]


def _json(name: str, args: Sequence[exp.Expr], bind: Bind) -> Expr:
    from gquery.sql.binding.json_shapes import transformed  # few queries have one

    return transformed(name, args, bind)


OF_TREES: dict[str, Callable[[str, Sequence[exp.Expr], Bind], Expr]] = {
    **dict.fromkeys(structs.CALLS, structs.with_names),
    **dict.fromkeys(("json_transform", "from_json", "json_transform_strict", "from_json_strict"), _json),
}
