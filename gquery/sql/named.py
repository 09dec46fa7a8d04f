"""Names in trees that no text has: taken as they stand, whatever letters they have."""

from __future__ import annotations

from sqlglot import exp

from gquery.sql.schemas import joined, split


def column_named(name: str, table: str = "") -> exp.Expr:
    """A column, of the table if one is named."""
    return exp.column(identifier(name), table=identifier(table) if table else None)


def table_named(name: str) -> exp.Table:
    """A table, with its schema where the name has one (`sql.schemas`)."""
    parts = split(name)
    return exp.Table(this=identifier(parts[-1]), db=identifier(parts[-2]) if len(parts) > 1 else None)


def table_name(node: exp.Table) -> str:
    """The name of a table, with its schema where it is written."""
    return joined([str(p.name) for p in node.parts])


def identifier(name: str) -> exp.Identifier:
    """A name in quotes."""
    return exp.to_identifier(name, quoted=True)
