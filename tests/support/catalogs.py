"""Binding without an engine: a catalog of empty tables made from DDL that DuckDB runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
from sqlglot import exp

from gquery.columns.table import ColumnStatistics
from gquery.expression.types import Field, Schema
from gquery.sql.catalog import Catalog
from gquery.sql.types import sql_type


@dataclass(eq=False)
class EmptySource:
    """A table of which the schema is known and nothing else."""

    name: str
    schema: Schema
    rows: int = 0
    version: int = 1

    def statistics(self, field: int) -> ColumnStatistics:
        return ColumnStatistics()

    def has_nulls(self, field: int) -> bool:
        return self.statistics(field).null_count != 0

    def is_unique(self, field: int) -> bool:
        return self.statistics(field).is_unique

    def load(self, fields: Sequence[int]) -> Any:
        raise AssertionError("binding reads no data")


def catalog(connection: duckdb.DuckDBPyConnection) -> Catalog:
    """The tables of a DuckDB connection, by name and type alone."""
    found = Catalog()
    for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
        rows = connection.execute(f"DESCRIBE {name}").fetchall()
        fields = tuple(Field(r[0], sql_type(exp.DataType.build(r[1], "duckdb")), r[2] == "YES") for r in rows)
        found.register(name, EmptySource(name, Schema(fields)))
    return found
