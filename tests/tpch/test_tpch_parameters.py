"""Random parameters of the 22 queries: drawn where the specification says, from its ranges; streams in its orders."""

from __future__ import annotations

import re
import string
from functools import cache

import duckdb
import pytest

from tpch import parameters, queries, streams, words
from tpch.engines import GQueryEngine, Options
from tpch.generate import files, generate
from tpch.validate import difference, order_columns

SEEDS = range(200)


def names(number: int) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(parameters.template(number)) if name}


@pytest.mark.parametrize("number", queries.NUMBERS)
def test_every_point_is_in_the_text_and_every_value_is_drawn(number: int) -> None:
    text = queries.sql(number)
    for old in parameters.POINTS[number]:
        assert re.search(rf"(?<!\w){re.escape(old)}(?!\w)", text), old
    assert names(number) == set(parameters.draw(number, 1, 1.0))


@pytest.mark.parametrize("number", queries.NUMBERS)
def test_a_seed_decides(number: int) -> None:
    assert parameters.sql(number, 7, 1.0) == parameters.sql(number, 7, 1.0)
    assert len({parameters.sql(number, seed, 1.0) for seed in SEEDS}) > 1
    if number != 11:  # its fraction alone depends on the scale factor
        assert parameters.sql(number, 7, 1.0) == parameters.sql(number, 7, 100.0)
    assert len({parameters.sql(number, 7, 1.0, stream) for stream in range(40)}) > 1


def drawn(number: int, name: str) -> set[str]:
    return {parameters.draw(number, seed, 1.0)[name] for seed in SEEDS}


@pytest.mark.parametrize(
    "number, name, low, high",
    [
        (1, "delta", 60, 120), (2, "size", 1, 50), (6, "quantity", 24, 25), (18, "quantity", 312, 315),
        (19, "quantity1", 1, 10), (19, "quantity2", 10, 20), (19, "quantity3", 20, 30),
    ],
)  # fmt: skip
def test_numbers_fill_their_range(number: int, name: str, low: int, high: int) -> None:
    found = {int(v) for v in drawn(number, name)}
    assert low <= min(found) and max(found) <= high
    assert len(found) > (high - low) // 2


@pytest.mark.parametrize(
    "number, first, last",
    [
        (3, "1995-03-01", "1995-03-31"), (4, "1993-01-01", "1997-10-01"), (5, "1993-01-01", "1997-01-01"),
        (6, "1993-01-01", "1997-01-01"), (10, "1993-02-01", "1995-01-01"), (12, "1993-01-01", "1997-01-01"),
        (14, "1993-01-01", "1997-12-01"), (15, "1993-01-01", "1997-10-01"), (20, "1993-01-01", "1997-01-01"),
    ],
)  # fmt: skip
def test_dates_reach_both_ends(number: int, first: str, last: str) -> None:
    found = {parameters.draw(number, seed, 1.0)["date"] for seed in range(1000)}
    assert (min(found), max(found)) == (first, last)


def test_values_that_belong_together() -> None:
    for seed in SEEDS:
        eight = parameters.draw(8, seed, 1.0)
        assert words.REGIONS[words.NATIONS[eight["nation"]]] == eight["region"]
        seven, twelve = parameters.draw(7, seed, 1.0), parameters.draw(12, seed, 1.0)
        assert seven["nation1"] != seven["nation2"] and twelve["mode1"] != twelve["mode2"]
        assert len(set(parameters.draw(16, seed, 1.0)["sizes"].split(", "))) == 8
        assert len(set(parameters.draw(22, seed, 1.0)["codes"].split(", "))) == 7
    assert parameters.draw(11, 1, 100.0)["fraction"] == "0.0000010000"


def test_words_are_those_of_the_data() -> None:
    """What is drawn from exists; at this scale factor all short lists are used up."""
    paths = files(generate(0.01))
    with duckdb.connect() as connection:

        def found(what: str, table: str) -> set[str]:
            return {row[0] for row in connection.execute(f"SELECT DISTINCT {what} FROM '{paths[table]}'").fetchall()}

        assert found("unnest(string_split(p_name, ' '))", "part") == set(words.COLORS)
        assert found("p_type", "part") == set(words.TYPES)
        assert found("p_container", "part") == set(words.CONTAINERS)
        assert found("p_brand", "part") == set(words.BRANDS)
        assert found("c_mktsegment", "customer") == set(words.SEGMENTS)
        assert found("l_shipmode", "lineitem") == set(words.MODES)
        assert found("n_name || n_regionkey", "nation") == {f"{n}{r}" for n, r in words.NATIONS.items()}
        assert found("r_name", "region") == set(words.REGIONS)


def test_orders_are_permutations() -> None:
    assert len(streams.ORDERS) == 41 and len(set(streams.ORDERS)) == 41
    assert all(sorted(order) == list(queries.NUMBERS) for order in streams.ORDERS)
    assert streams.order(0)[0] == 14 and streams.order(40) == streams.ORDERS[40]


@cache
def engines() -> tuple[GQueryEngine, duckdb.DuckDBPyConnection]:
    folder = generate(0.01)
    oracle = duckdb.connect()
    for table, path in files(folder).items():
        oracle.execute(f"CREATE VIEW {table} AS FROM read_parquet('{path}')")
    return GQueryEngine(folder, Options("python")), oracle


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("number", queries.NUMBERS)
def test_answers_with_random_parameters(number: int, seed: int) -> None:
    sql = parameters.sql(number, seed, 0.01)
    engine, oracle = engines()
    got = engine.run(sql)
    want = oracle.sql(sql).fetchall()
    assert difference(got.rows, want, order_columns(sql, got.table.column_names)) is None
