"""What there is, as tables: ``information_schema.tables``, ``.columns`` and ``.schemata``, ``duckdb_tables()``,
``duckdb_columns()``, ``duckdb_schemas()``, ``duckdb_views()``, ``duckdb_sequences()`` and ``pragma_table_info('t')``.

They are constant rows, written while a statement is bound: a plan is used only while the catalog is as it was. Columns are
DuckDB's, in its order; those of its functions that number objects or hold their SQL are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from gquery.errors import BindError, CatalogError, Error
from gquery.expression.expr import Literal, new_column
from gquery.expression.nested_types import known_type
from gquery.expression.types import BIGINT, BOOLEAN, INTEGER, VARCHAR, DType, Kind
from gquery.planner.logical.nodes import Query, Values
from gquery.sql.ctes import Ctes, Queries
from gquery.sql.named import table_named
from gquery.sql.schemas import DATABASE, INFORMATION, MAIN, SYSTEM, joined, last, schema_of, split

_TEXTS = dict.fromkeys
_OF_TABLE = _TEXTS(("table_catalog", "table_schema", "table_name"), VARCHAR)
_NUMERIC = _TEXTS(("numeric_precision", "numeric_precision_radix", "numeric_scale"), INTEGER)
_COLUMNS: dict[str, dict[str, DType]] = {
    "information_schema.tables": _OF_TABLE | _TEXTS((
        "table_type", "self_referencing_column_name", "reference_generation", "user_defined_type_catalog",
        "user_defined_type_schema", "user_defined_type_name", "is_insertable_into", "is_typed", "commit_action",
        "TABLE_COMMENT",
    ), VARCHAR),
    "information_schema.columns": _OF_TABLE | {"column_name": VARCHAR, "ordinal_position": INTEGER} | _TEXTS((
        "column_default", "is_nullable", "data_type",
    ), VARCHAR) | _TEXTS(("character_maximum_length", "character_octet_length"), INTEGER) | _NUMERIC | {
        "datetime_precision": INTEGER, "interval_type": VARCHAR, "interval_precision": INTEGER
    } | _TEXTS((
        "character_set_catalog", "character_set_schema", "character_set_name", "collation_catalog", "collation_schema",
        "collation_name", "domain_catalog", "domain_schema", "domain_name", "udt_catalog", "udt_schema", "udt_name",
        "scope_catalog", "scope_schema", "scope_name",
    ), VARCHAR) | {
        "maximum_cardinality": BIGINT, "dtd_identifier": VARCHAR, "is_self_referencing": BOOLEAN, "is_identity": BOOLEAN
    } | _TEXTS((
        "identity_generation", "identity_start", "identity_increment", "identity_maximum", "identity_minimum",
    ), VARCHAR) | {
        "identity_cycle": BOOLEAN, "is_generated": VARCHAR, "generation_expression": VARCHAR, "is_updatable": BOOLEAN,
        "COLUMN_COMMENT": VARCHAR,
    },
    "duckdb_tables": _TEXTS(("database_name", "schema_name", "table_name", "comment"), VARCHAR) | _TEXTS(
        ("internal", "temporary", "has_primary_key"), BOOLEAN
    ) | _TEXTS(("estimated_size", "column_count", "index_count", "check_constraint_count"), BIGINT),
    "information_schema.schemata": _TEXTS((
        "catalog_name", "schema_name", "schema_owner", "default_character_set_catalog", "default_character_set_schema",
        "default_character_set_name", "sql_path",
    ), VARCHAR),
    "duckdb_schemas": _TEXTS(("database_name", "schema_name", "comment"), VARCHAR) | {"internal": BOOLEAN, "sql": VARCHAR},
    "duckdb_views": _TEXTS(("database_name", "schema_name", "view_name", "comment"), VARCHAR) | _TEXTS(
        ("internal", "temporary"), BOOLEAN
    ) | {"column_count": BIGINT, "sql": VARCHAR},
    "duckdb_sequences": _TEXTS(("database_name", "schema_name", "sequence_name", "comment"), VARCHAR) | {
        "temporary": BOOLEAN
    } | _TEXTS(("start_value", "min_value", "max_value", "increment_by"), BIGINT) | {
        "cycle": BOOLEAN, "last_value": BIGINT, "sql": VARCHAR
    },
    "duckdb_columns": _TEXTS(("database_name", "schema_name", "table_name", "column_name"), VARCHAR) | {
        "column_index": INTEGER, "comment": VARCHAR, "internal": BOOLEAN, "column_default": VARCHAR,
        "is_nullable": BOOLEAN, "data_type": VARCHAR, "character_maximum_length": INTEGER,
    } | _NUMERIC,
    "pragma_table_info": {
        "cid": INTEGER, "name": VARCHAR, "type": VARCHAR, "notnull": BOOLEAN, "dflt_value": VARCHAR, "pk": BOOLEAN
    },
}  # fmt: skip
FUNCTIONS = ("duckdb_tables", "duckdb_columns", "duckdb_schemas", "duckdb_views", "duckdb_sequences", "pragma_table_info")
_BITS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64, Kind.REAL: 24, Kind.DOUBLE: 53}
_Row = dict[str, Any]


def schema_table(query: Queries, name: str) -> Query:
    """A table of the schema; CatalogError where it has none of that name."""
    full = f"{INFORMATION}.{name.lower()}"
    if full not in _COLUMNS:
        raise CatalogError(f"table {INFORMATION}.{name} does not exist; there are {INFORMATION}.tables, .columns and .schemata")
    match name.lower():
        case "tables":
            return _rows(full, _tables(query))
        case "schemata":
            return _rows(full, _schemata(query))
    return _rows(full, _columns(query, query.catalog.names()))


def table_function(query: Queries, name: str, args: Sequence[Literal]) -> Query:
    """The rows of one of `FUNCTIONS`."""
    if name == "pragma_table_info":
        if len(args) != 1 or not isinstance(args[0].value, str):
            raise BindError(f"{name} takes the name of a table")
        table = joined(split(args[0].value))
        if query.catalog.view(table) is not None:
            query.query(_star_of(table), None, Ctes())  # for its errors
        query.catalog.get(table)
        return _rows(name, _columns(query, [table]))
    if args:
        raise BindError(f"{name} takes no arguments")
    match name:
        case "duckdb_columns":
            return _rows(name, _columns(query, query.catalog.names()))
        case "duckdb_schemas":
            return _rows(name, _schemata(query))
        case "duckdb_views":
            return _rows(name, _views(query))
        case "duckdb_sequences":
            return _rows(name, _sequences(query))
    return _rows(name, [_sized(query, t) for t in query.catalog.tables()])


def _rows(name: str, rows: Sequence[_Row]) -> Query:
    """Constant rows; what a row says nothing of is NULL."""
    types = _COLUMNS[name]
    columns = tuple(new_column(n, dtype, True) for n, dtype in types.items())
    values = tuple(tuple(Literal(_written(row.get(n), t), t) for n, t in types.items()) for row in rows)
    return Query(Values(columns, values), columns, tuple(types))


def _written(value: Any, dtype: DType) -> Any:
    """A value, of which some tables have a text."""
    return {True: "YES", False: "NO"}[value] if isinstance(value, bool) and dtype == VARCHAR else value


def _named(table: str) -> _Row:
    """The names of a table, under all names that they have here."""
    schema = schema_of(table)
    return {
        "table_catalog": DATABASE, "table_schema": schema, "table_name": last(table), "internal": False,
        "database_name": DATABASE, "schema_name": schema,
    }  # fmt: skip


def _tables(query: Queries) -> list[_Row]:
    rows: list[_Row] = []
    for name in query.catalog.names():
        is_view = query.catalog.view(name) is not None
        kind = {"table_type": "VIEW" if is_view else "BASE TABLE", "is_insertable_into": "NO" if is_view else "YES"}
        rows.append(_named(name) | kind | {"is_typed": "NO"})
    return rows


def _schemata(query: Queries) -> list[_Row]:
    """The schemas that were made, and those that are always there."""
    names = dict.fromkeys((*sorted(query.catalog.schemas.entries.values(), key=str.lower), *SYSTEM))
    of = {"catalog_name": DATABASE, "database_name": DATABASE, "schema_owner": "duckdb"}
    return [of | {"schema_name": n, "internal": n == MAIN or n in SYSTEM} for n in names]


def _views(query: Queries) -> list[_Row]:
    rows: list[_Row] = []
    for name in query.catalog.names():
        view = query.catalog.view(name)
        if view is not None:
            has = {"view_name": view.name, "temporary": False, "column_count": len(columns_in(query, name)), "sql": view.sql}
            rows.append(_named(name) | has)
    return rows


def _sequences(query: Queries) -> list[_Row]:
    sequences = query.catalog.sequences
    rows: list[_Row] = []
    for _, s in sorted(sequences.entries.items()):
        has: _Row = {"sequence_name": s.name, "temporary": False, "start_value": s.start, "min_value": s.least}
        has |= {"max_value": s.most, "increment_by": s.increment, "cycle": s.cycle, "last_value": sequences.last(s)}
        rows.append({"database_name": DATABASE, "schema_name": MAIN} | has)
    return rows


def _sized(query: Queries, name: str) -> _Row:
    table = query.catalog.table(name)
    asked = query.catalog.constraints(name)
    has: _Row = {"temporary": False, "has_primary_key": any(k.is_primary for k in asked.keys)}
    has |= {"index_count": len(asked.keys), "check_constraint_count": len(asked.checks)}
    return _named(name) | has | {"estimated_size": table.rows, "column_count": len(table.schema.fields)}


def _columns(query: Queries, tables: Sequence[str]) -> list[_Row]:
    rows: list[_Row] = []
    for table in tables:
        asked = query.catalog.constraints(table)
        for n, (name, dtype) in enumerate(columns_in(query, table), 1):
            is_nullable, default = name.lower() not in asked.not_null, asked.default(name)
            flags: _Row = {"pk": asked.is_primary(name), "notnull": not is_nullable, "is_nullable": is_nullable}
            flags |= {"column_default": default, "dflt_value": default}
            written = str(known_type(dtype))
            of = {"column_name": name, "name": name, "data_type": written, "type": written}
            at = {"ordinal_position": n, "column_index": n, "cid": n - 1}
            rows.append(_named(table) | flags | of | at | _precision(dtype))
    return rows


def _star_of(table: str) -> exp.Expr:
    return exp.select("*").from_(table_named(table))


def columns_in(query: Queries, table: str) -> list[tuple[str, DType]]:
    """Names and types of a table's columns, none of a view that cannot be bound any more."""
    if query.catalog.view(table) is None:
        return [(f.name, f.dtype) for f in query.catalog.shape(table).schema.fields]
    try:
        found = query.query(_star_of(table), None, Ctes())
    except Error:
        return []
    return [(n, c.dtype) for n, c in zip(found.names, found.outputs, strict=True)]


def _precision(dtype: DType) -> _Row:
    if dtype.kind is Kind.DECIMAL:
        found: tuple[int | None, ...] = (dtype.precision, 10, dtype.scale)
    else:
        bits = _BITS.get(dtype.kind)
        found = (None, None, None) if bits is None else (bits, 2, 0)
    return dict(zip(_NUMERIC, found, strict=True))
