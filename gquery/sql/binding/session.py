"""Functions of what a session has: the schema in use and its variables. A plan holds their values, and is made anew when these
are others: every change of them counts up the catalog's version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from gquery.errors import BindError, NotSupportedError
from gquery.expression.expr import Expr, Literal, new_column
from gquery.expression.nested_types import known_type
from gquery.expression.types import BIGINT, INTERVAL, NULL, VARCHAR, DType, Kind
from gquery.functions import call, cast
from gquery.functions.structs import struct
from gquery.planner.logical.nodes import Project, Query
from gquery.runtime.records import replace
from gquery.sql.noted import ALL, note
from gquery.sql.schemas import DATABASE, MAIN, split
from gquery.sql.types import parameter_value

if TYPE_CHECKING:
    from gquery.sql.catalog import Catalog


class Session(Protocol):
    """What a statement is bound in."""

    catalog: Catalog
    drawing: dict[str, str]


Rows = Callable[[Query], list[tuple[Any, ...]]]


def of_session(name: str, args: Sequence[Expr], query: Session) -> Expr:
    """The call of one of `sql.calls.SESSION`."""
    catalog = query.catalog
    note(ALL, catalog)
    if name == "current_schema":
        return call(name, *args) if args else Literal(catalog.schemas.entries[catalog.schemas.current], VARCHAR)
    if name in ("nextval", "currval"):
        return _of_sequence(name, args, query)
    if len(args) != 1 or args[0].dtype.kind not in (Kind.VARCHAR, Kind.NULL):
        raise BindError(f"{name} takes the name of a variable")
    if not isinstance(args[0], Literal):
        raise NotSupportedError(f"not supported: {name} of a name that is no constant")
    return catalog.variables.get(str(args[0].value).lower(), Literal(None, NULL))


def _of_sequence(name: str, args: Sequence[Expr], query: Session) -> Expr:
    """The next value of a sequence, or its last one."""
    if len(args) != 1 or args[0].dtype != VARCHAR:
        raise BindError(f"{name} takes the name of a sequence")
    if not isinstance(args[0], Literal):
        raise NotSupportedError(f"not supported: {name} of a name that is no constant")
    sequences = query.catalog.sequences
    sequence = sequences.get(_in_main(str(args[0].value)))
    if query.drawing.setdefault(sequence.name.lower(), name) != name:
        raise NotSupportedError("not supported: nextval and currval of one sequence in one statement")
    if name == "nextval":
        from gquery.sql.sequences import mark

        return mark(sequence)
    last = sequences.last(sequence)
    if last is None:
        raise BindError(f"currval: sequence {sequence.name!r} has given no value yet")
    return Literal(last, BIGINT)


def _in_main(name: str) -> str:
    """The name of a sequence as the catalog has it: without quotes, nor the schema that all are in."""
    *schema, own = split(name) or ("",)
    return own if [s.lower() for s in schema] in ([], [MAIN], [DATABASE, MAIN]) else name


def variable_of(query: Query, rows: Rows) -> Expr:
    """The value that SET VARIABLE gives a variable: that of a query's only row and column, as an expression of constants."""
    (column,) = query.outputs
    made = dict(query.plan.exprs).get(column) if isinstance(query.plan, Project) else None
    if isinstance(made, Literal):
        return Literal(made.value, made.dtype)
    if column.dtype == INTERVAL:  # whose months no value of Python has
        text = new_column(column.name, VARCHAR, column.nullable)
        shown = replace(query, plan=Project(query.plan, ((text, cast(column, VARCHAR)),)), outputs=(text,))
        return cast(_value(_only(rows(shown)), VARCHAR), INTERVAL)
    return _value(_only(rows(query)), known_type(column.dtype))


def _only(rows: list[tuple[Any, ...]]) -> Any:
    if len(rows) != 1:
        raise BindError(f"SET VARIABLE takes one value, {len(rows)} are given")
    return rows[0][0]


def _value(value: Any, dtype: DType) -> Expr:
    """A value of Python as an expression of a type."""
    if value is None:
        return Literal(None, dtype)
    match dtype.kind:
        case Kind.LIST:
            assert dtype.element is not None
            return cast(call("list_value", *[_value(v, dtype.element) for v in value]), dtype)
        case Kind.STRUCT:
            values = value.values() if isinstance(value, dict) else value
            return cast(struct([(n, _value(v, t)) for (n, t), v in zip(dtype.fields, values, strict=True)]), dtype)
        case Kind.MAP:
            (_, key), (_, of) = dtype.fields
            keys, values = ([_value(v, t) for v in vs] for vs, t in ((value, key), (value.values(), of)))
            return cast(call("map", call("list_value", *keys), call("list_value", *values)), dtype)
    return cast(parameter_value(value), dtype)
