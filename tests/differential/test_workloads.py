"""The queries of TPC-DS, ClickBench and the Join Order Benchmark give DuckDB's rows: when they are first run, hot, and on a GPU
recorded; there with other constants, too, which are replayed.

What a LIMIT takes of rows that are equal to its ORDER BY is any engine's choice: such a query is run without its LIMIT, too, and
with it has as many rows. The tables are small, and nothing is interpreted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from random import Random
from typing import Any

import pytest

import gquery
from benchmarks.rules import workloads
from benchmarks.runs import oracle_of
from benchmarks.ties import difference
from tests.support.harness import Row, compare
from tests.support.packages import needs_package
from tests.support.quiet import wait_until_compiled
from tests.support.recorded import run_until_recorded
from tests.support.templates import answer, constants, fresh, varied

NUMBERS = {"tpcds": range(1, 100), "clickbench": range(1, 44), "job": range(113)}
SCALES = {"cpu": {"tpcds": 0.01, "clickbench": 20_000}, "cuda": {"tpcds": 0.1, "clickbench": 300_000}}
CASES = [(name, number) for name, numbers in NUMBERS.items() for number in numbers]
RUNS = 2
VARIED = 6
_LIMIT = re.compile(r"\s+LIMIT\s+\d+(\s+OFFSET\s+\d+)?\s*;?\s*$", re.IGNORECASE)


@cache
def opened(name: str, device: str) -> tuple[Mapping[str, str], gquery.Connection, Any]:
    """A workload's queries, its tables in gquery and in DuckDB."""
    needs_package(name)
    match name:
        case "tpcds":
            made = workloads.tpcds(SCALES[device][name])
        case "clickbench":
            made = workloads.clickbench(int(SCALES[device][name]))
        case _:
            made = workloads.job()
    connection = made.connect(device)
    oracle = oracle_of(connection, 1)
    connection.set("interpret_limit", 0)
    return made.texts, connection, oracle


@cache
def on_ranks(name: str, ranks: int) -> gquery.Connection:
    """The same tables on a connection of several ranks, which interprets small work."""
    source = opened(name, "cpu")[1]
    made = gquery.connect("cpu", devices=ranks)
    for (table,) in source.sql("SHOW TABLES").fetchall():
        made.register(table, source.table(table).arrow())
    return made


@cache
def alone(name: str, device: str) -> gquery.Connection:
    """A connection over the same tables that replays nothing."""
    source = opened(name, device)[1]
    made = gquery.connect(device)
    for (table,) in source.sql("SHOW TABLES").fetchall():
        made.register(table, source.table(table).arrow())
    made.set("interpret_limit", 0)
    made.set("replay", False)
    return made


def text_of(texts: Mapping[str, str], name: str, number: int) -> str:
    found = {"tpcds": str(number), "clickbench": f"Q{number}"}.get(name)
    return texts[found] if found is not None else list(texts.values())[number]


def rows(connection: gquery.Connection, sql: str) -> tuple[list[str], Sequence[Row]]:
    """The rows; the test is skipped where gquery refuses the query, which it says while planning."""
    try:
        found = connection.sql(sql)
    except (gquery.NotSupportedError, gquery.BindError) as error:
        if isinstance(error, gquery.BindError) and "rollup" not in str(error):
            raise
        pytest.skip(str(error).splitlines()[0])
    return [str(t) for t in found.types], found.fetchall()


def check(name: str, number: int, device: str, ranks: int = 1) -> None:
    texts, connection, oracle = opened(name, device)
    if ranks > 1:
        connection = on_ranks(name, ranks)
    sql = text_of(texts, name, number)
    whole = _LIMIT.sub("", sql)
    want, limited = oracle.execute(whole).fetchall(), oracle.execute(sql).fetchall()
    for text in dict.fromkeys((whole, sql)):

        def run(text: str = text) -> None:
            types, got = rows(connection, text)
            wrong = compare(got, want, False, types) if text is whole else difference(oracle, sql, got, limited, types)
            assert wrong is None, f"{wrong}\n{text}"

        if device == "cuda":
            run_until_recorded(connection, text, run)
        else:
            for _ in range(RUNS):
                run()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number"), CASES)
def test_on_a_cpu(name: str, number: int) -> None:
    check(name, number, "cpu")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number"), CASES)
def test_on_three_ranks(name: str, number: int) -> None:
    check(name, number, "cpu", 3)


@pytest.mark.cuda
@pytest.mark.parametrize(("name", "number"), CASES)
def test_on_a_gpu(name: str, number: int) -> None:
    check(name, number, "cuda")


@pytest.mark.cuda
@pytest.mark.slow
@pytest.mark.parametrize(("name", "number"), CASES)
def test_other_constants_on_a_gpu(name: str, number: int) -> None:
    """Constants of the workload, few of a text at once: a template serves most of them, and is recorded."""
    texts, connection, _ = opened(name, "cuda")
    sql, random = text_of(texts, name, number), Random(number)
    rows(connection, sql)
    pool = constants(texts.values())
    for text in [sql] * 4 + [varied(sql, random, random.choice((0.04, 0.1)), pool) for _ in range(VARIED)]:
        for same_rows, one in ((True, _LIMIT.sub("", text)), (False, text)):
            got, want = answer(connection, one)[1], fresh(alone(name, "cuda"), one)
            wait_until_compiled()
            if not isinstance(got, tuple) or not isinstance(want, tuple):
                assert got == want, one
                continue
            assert got[:2] == want[:2], one
            wrong = compare(got[2], want[2], False, got[1]) if same_rows else None
            assert wrong is None, f"{wrong}\n{one}"
            assert len(got[2]) == len(want[2]), one
