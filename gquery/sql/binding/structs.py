"""Binding of structs and maps in expressions: ``{'a': x}``, ``struct_pack(a := x)``, ``MAP {'k': x}``, and fields: ``s.a``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from gquery.errors import BindError
from gquery.expression.expr import Expr, Literal
from gquery.expression.types import VARCHAR, Kind
from gquery.functions import call
from gquery.functions.opaque import refuse_opaque
from gquery.functions.structs import field, field_number, struct
from gquery.sql.names import outside
from gquery.sql.schemas import DATABASE
from gquery.sql.scope import Scope

Bind = Callable[[exp.Expr], Expr]


def of_struct(node: exp.Struct | exp.ToMap | exp.Tuple | exp.Dot, bind: Bind) -> Expr:
    """A struct or a map of what stands between braces, a row of values, or a field of a value: ``(s).a``, ``f(x).a.b``."""
    match node:
        case exp.Dot():
            return _field(bind(node.this), node.expression.name)
        case exp.Tuple():
            return call("row", *map(bind, node.expressions))
        case exp.Struct():
            return struct([_pair(e, bind) for e in node.expressions])
    if isinstance(node.this, exp.Bracket):  # sqlglot reads what is behind the braces as a part of them
        return bind(outside(node.this))
    entries = node.this.expressions
    keys, values = ([bind(getattr(e, part)) for e in entries] for part in ("this", "expression"))
    return call("map", call("list_value", *keys), call("list_value", *values))


def with_names(name: str, args: Sequence[exp.Expr], bind: Bind) -> Expr:
    """A call whose arguments are fields: a new struct, or one with further fields."""
    named = args if name == "struct_pack" else args[1:]
    if not named or not all(isinstance(a, exp.PropertyEQ) for a in named):
        raise BindError(f"{name} takes arguments with names: {name}({'' if name == 'struct_pack' else 's, '}a := x)")
    new = [_pair(a, bind) for a in named]
    if name == "struct_pack":
        return struct(new)
    of = bind(args[0])
    if not of.dtype.is_struct:
        raise BindError(f"{name} takes a struct, not a value of type {of.dtype}")
    kept = [(known, field_number(of, n)) for n, (known, _) in enumerate(of.dtype.fields)]
    if name == "struct_update":
        changed = {n.lower(): e for n, e in new}
        known_names = {n.lower() for n, _ in kept}
        kept = [(n, changed.get(n.lower(), e)) for n, e in kept]
        new = [(n, e) for n, e in new if n.lower() not in known_names]
    return struct([*kept, *new])


def _by_type(name: str, args: Sequence[exp.Expr], bind: Bind) -> Expr:
    from gquery.sql.binding.json_shapes import transformed  # few queries have one

    return transformed(name, args, bind)


OF_TREES: dict[str, Callable[[str, Sequence[exp.Expr], Bind], Expr]] = {
    **dict.fromkeys(("struct_pack", "struct_insert", "struct_update"), with_names),
    **dict.fromkeys(("json_transform", "from_json", "json_transform_strict", "from_json_strict"), _by_type),
}
"""Functions that are bound by the trees of their arguments: by names of these, or by a type that one describes."""


def _pair(node: exp.Expr, bind: Bind) -> tuple[str, Expr]:
    assert isinstance(node, exp.PropertyEQ)
    return node.this.name, bind(node.expression)


def of_column(node: exp.Column, scope: Scope) -> Expr | None:
    """A field of a column: ``s.a``, ``t.s.a.b``, or a column of a table whose schema is written; None where no column is meant
    so."""
    parts = [p.name for p in node.parts]
    for count in (4, 3, 2, 1):  # a table's column comes first
        if len(parts) < count or (count == 4 and parts[0].lower() != DATABASE):
            continue
        table, schema = parts[count - 2] if count > 1 else None, parts[count - 3].lower() if count > 2 else ""
        found = scope.search(parts[count - 1], table, schema)
        if found is not None:
            for name in parts[count:]:
                found = _field(found, name)
            return found
    return scope.search_row(parts[-1].lower(), parts[-2].lower()) if len(parts) > 1 else None


def _field(e: Expr, name: str) -> Expr:
    if e.dtype.is_struct:
        return field(e, name)
    if e.dtype.kind is Kind.MAP:  # DuckDB looks the name up
        return call("map_extract_value", e, Literal(name, VARCHAR))
    if e.dtype.kind is Kind.NULL:
        return e
    refuse_opaque((e,), f".{name}")
    raise BindError(f"a value of type {e.dtype} has no field {name!r}: it is no struct")


def struct_to_unnest(node: exp.Expr) -> exp.Expr | None:
    """The argument of a call of unnest that may be a struct."""
    if not (isinstance(node, exp.Anonymous) and node.name.lower() == "unnest" and len(node.expressions) == 1):
        return None
    (of,) = node.expressions
    return of if isinstance(of, exp.Column | exp.Dot | exp.Struct | exp.Tuple) else None
