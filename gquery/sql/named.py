"""Names in trees that no text has: taken as they stand, whatever letters they have."""

from __future__ import annotations

from sqlglot import exp


def column_named(name: str, table: str = "") -> exp.Expr:
    """A column, of the table if one is named."""
    return exp.column(identifier(name), table=identifier(table) if table else None)


def table_named(name: str) -> exp.Table:
    """A table."""
    return exp.Table(this=identifier(name))


def identifier(name: str) -> exp.Identifier:
    """A name in quotes."""
    return exp.to_identifier(name, quoted=True)
