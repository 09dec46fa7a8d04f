"""What is known of values and of the session before anything runs: types, names, a version."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from gquery.expression.expr import Expr, Literal
from gquery.expression.types import VARCHAR, Kind
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
    try:
        return _constant(f"gquery {version('gquery')}")
    except PackageNotFoundError:
        return _constant("gquery")


@resolver("current_schema", "$() -> VARCHAR", example=("current_schema()", "main"))
def _schema() -> Expr:
    """The schema of all tables: main."""
    return _constant("main")


@resolver("current_database current_catalog", "$() -> VARCHAR", example=("current_database()", "memory"))
def _database() -> Expr:
    """The catalog of all tables: memory."""
    return _constant("memory")
