"""COPY ... FROM: an INSERT of a file's rows. CSV is read as what the table's columns
are, JSON by their names, Parquet by place."""

from __future__ import annotations

from sqlglot import exp

from gquery.columns.table import TableSource
from gquery.errors import BindError, NotSupportedError, did_you_mean
from gquery.expression.nested_types import known_type
from gquery.runtime.records import replace
from gquery.sql.grammar.tokens import Form

_ENDS = {".parquet": "parquet", ".pq": "parquet", ".json": "json", ".jsonl": "json", ".ndjson": "json"}


def rows_of_file(form: Form, table: TableSource) -> tuple[Form, exp.Select]:
    """The INSERT that a COPY is, and the query of its rows."""
    options = dict(form.options)
    kind = str(options.pop("format", "") or _kind_of(form.text)).lower()
    if kind not in ("csv", "json", "parquet"):
        raise NotSupportedError(f"not supported: COPY ... FROM with FORMAT {kind}; csv, json and parquet are")
    given: list[exp.Expr] = [exp.Literal.string(form.text)]
    columns = _columns(form, table)
    if kind == "csv":
        types = [_named(name, exp.Literal.string(dtype)) for name, dtype in columns]
        given.append(_named("columns", exp.Struct(expressions=types)))
    given += [_named(name, _value(value)) for name, value in options.items()]
    source = exp.Table(this=exp.Anonymous(this=f"read_{kind}", expressions=given))
    insert = (("by_name", False), ("default", False), ("marked", False), ("conflict", None))
    rows = (
        exp.select("*") if kind != "json" else exp.Select(expressions=[exp.column(n, quoted=True) for n, _ in columns])
    )
    return replace(form, kind="insert", options=insert), rows.from_(source)


def _kind_of(path: str) -> str:
    low = path.lower().removesuffix(".gz").removesuffix(".zst")
    return next((kind for end, kind in _ENDS.items() if low.endswith(end)), "csv")


def _columns(form: Form, table: TableSource) -> list[tuple[str, str]]:
    """The columns that are filled, with their types."""
    fields = {f.name.lower(): f for f in table.schema.fields}
    for name in form.names:
        if name.lower() not in fields:
            hint = did_you_mean(name, tuple(table.schema.names))
            raise BindError(f"COPY: table {form.name!r} has no column {name!r}.{hint}")
    kept = [fields[n.lower()] for n in form.names] if form.names else table.schema.fields
    return [(f.name, str(known_type(f.dtype))) for f in kept]


def _named(name: str, value: exp.Expr) -> exp.Expr:
    return exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=value)


def _value(value: object) -> exp.Expr:
    """The value of an option, which is a text, several, or TRUE."""
    if isinstance(value, tuple):
        return exp.Array(expressions=[_value(v) for v in value])
    text = str(value).replace("\\t", "\t")
    return exp.Literal.number(text) if text.isdecimal() else exp.Literal.string(text)
