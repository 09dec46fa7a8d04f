"""The names of DuckDB's functions that errors speak of are those that it has."""

from __future__ import annotations

import duckdb

from gquery.functions.known import AGGREGATES, WINDOWS
from tests.duckdb_names import missing, names


def test_aggregates_and_window_functions() -> None:
    found = duckdb.sql(
        "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'aggregate' AND internal"
    ).fetchall()
    assert {name for (name,) in found} == AGGREGATES | WINDOWS
    assert not AGGREGATES & WINDOWS


def test_few_names_of_functions_are_missing() -> None:
    """As docs/reference/duckdb.md says, or fewer."""
    left = missing()
    assert len(left) <= 56, left
    assert len(list(names())) == 449
