"""The 22 queries in the DataFrame API give what they give in SQL: names, types and rows, in order."""

from __future__ import annotations

from functools import cache

import pytest

import gquery
from tests.support.dataframe_tpch import QUERIES
from tpch import queries
from tpch.engines import GQueryEngine, Options
from tpch.generate import generate
from tpch.validate import difference, order_columns


@cache
def connection() -> gquery.Connection:
    return GQueryEngine(generate(0.01), Options("python", 1, None, None)).connection


@pytest.mark.parametrize("number", queries.NUMBERS)
def test_as_in_sql(number: int) -> None:
    sql = queries.sql(number)
    want, have = connection().sql(sql), QUERIES[number](connection())
    assert have.columns == want.columns
    assert [str(t) for t in have.types] == [str(t) for t in want.types]
    assert difference(have.fetchall(), want.fetchall(), order_columns(sql, want.columns)) is None
