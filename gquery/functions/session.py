"""What is known of values and of the session before anything runs: types, names, a version."""

from __future__ import annotations

from gquery.expression.expr import Case, Expr, IsNull, Literal
from gquery.expression.traverse import disjunction
from gquery.expression.types import NULL, VARCHAR, Kind
from gquery.functions.casts import cast
from gquery.functions.registry import resolver


def _constant(text: str) -> Expr:
    return Literal(text, VARCHAR)


@resolver("typeof", "$(any) -> VARCHAR", example=("typeof(1.5)", "DECIMAL(2,1)"))
def _typeof(x: Expr) -> Expr:
    """The name of an expression's type."""
    return _constant('"NULL"' if x.dtype.kind is Kind.NULL else str(x.dtype))


@resolver("version", "$() -> VARCHAR")
def _version() -> Expr:
    """The version of gquery."""
    from importlib.metadata import PackageNotFoundError, version  # takes longer than all of this

    try:
        return _constant(f"gquery {version('gquery')}")
    except PackageNotFoundError:
        return _constant("gquery")


@resolver("current_schema", "$() -> VARCHAR", example=("current_schema()", "main"))
def _schema() -> Expr:
    """The schema of all tables: main."""
    return _constant("main")


@resolver("current_user user session_user current_role", "$() -> VARCHAR", example=("current_user", "duckdb"))
def _user() -> Expr:
    """The user, which is always that of DuckDB: duckdb."""
    return _constant("duckdb")


@resolver("pg_typeof", "$(any) -> VARCHAR", example=("pg_typeof(1)", "integer"))
def _pg_typeof(x: Expr) -> Expr:
    """The name of an expression's type in lower case."""
    return _constant('"null"' if x.dtype.kind is Kind.NULL else str(x.dtype).lower())


@resolver("constant_or_null", "$(any, any, ...)", example=("constant_or_null(1, NULL)", "None"))
def _constant_or_null(value: Expr, first: Expr, *more: Expr) -> Expr:
    """The first argument, NULL where another one is."""
    if any(e.dtype.kind is Kind.NULL for e in (first, *more)):
        return cast(Literal(None, NULL), value.dtype)
    missing = disjunction(tuple(IsNull(e) for e in (first, *more)))
    return Case(((missing, Literal(None, value.dtype)),), value)


@resolver("current_database current_catalog", "$() -> VARCHAR", example=("current_database()", "memory"))
def _database() -> Expr:
    """The catalog of all tables: memory."""
    return _constant("memory")
