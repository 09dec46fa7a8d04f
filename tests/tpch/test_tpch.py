"""The 22 queries give the right answers: at SF0.01 everywhere, at SF1 in the slow tier, on a GPU in its own."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness import devices_of
from tpch import queries
from tpch.engines import GQueryEngine, Options
from tpch.generate import generate
from tpch.oracle import Oracle
from tpch.validate import difference, order_columns, same


@cache
def folder(sf: float) -> Path:
    return generate(sf)


@cache
def engine(sf: float, device: str, devices: int, narrow: bool = True) -> GQueryEngine:
    """An engine for all queries of a test function: tables are loaded once."""
    chosen = devices_of(device, devices) or 1
    of_ranks = tuple(chosen) if isinstance(chosen, list) else chosen
    made = GQueryEngine(folder(sf), Options(device, of_ranks, None, None if device == "python" else 0))
    if not narrow:
        made.connection.sql("SET narrow = false")
    return made


def check(number: int, sf: float, device: str, devices: int, narrow: bool = True) -> None:
    sql = queries.sql(number)
    answer = engine(sf, device, devices, narrow).run(sql)
    want = Oracle(sf, folder(sf)).expected(number, answer.types)
    assert want is not None
    assert difference(answer.rows, want, order_columns(sql, answer.table.column_names)) is None


@pytest.mark.parametrize("number", queries.NUMBERS)
def test_interpreted(number: int) -> None:
    check(number, 0.01, "python", 1)


@pytest.mark.slow
@pytest.mark.parametrize("devices", [3, 4])
@pytest.mark.parametrize("number", queries.NUMBERS)
def test_interpreted_on_ranks(number: int, devices: int) -> None:
    check(number, 0.01, "python", devices)


def _devices(number: int) -> list[Any]:
    """Even queries on one, odd ones on three; each on both in the slow tests."""
    return [pytest.param(number, n, marks=[] if (n == 3) == bool(number % 2) else [pytest.mark.slow]) for n in (1, 3)]


@pytest.mark.parametrize(("number", "devices"), [case for number in queries.NUMBERS for case in _devices(number)])
def test_compiled_for_the_cpu(number: int, devices: int) -> None:
    check(number, 0.01, "cpu", devices)


@pytest.mark.slow
@pytest.mark.parametrize("devices", [1, 3])
@pytest.mark.parametrize("number", queries.NUMBERS)
def test_scale_factor_1(number: int, devices: int) -> None:
    check(number, 1.0, "cpu", devices)


@pytest.mark.cuda
@pytest.mark.parametrize("devices", [1, 3])
@pytest.mark.parametrize("number", queries.NUMBERS)
def test_on_a_gpu(number: int, devices: int) -> None:
    check(number, 0.01, "cuda", devices)


def test_an_answer_is_compared_in_full() -> None:
    """The checker itself: ties may permute, nothing else may."""
    want = [(1, "a", 0.5), (1, "b", 0.25), (2, "c", 1.0)]
    assert difference([want[1], want[0], want[2]], want, (0,)) is None
    assert difference([want[1], want[0], want[2]], want, (0, 1)) is not None
    assert difference(want[:2], want, (0,)) is not None
    assert difference([*want[:2], (2, "c", 1.1)], want, (0,)) is not None
    assert difference([*want[:2], (2, "d", 1.0)], want, (0,)) is not None
    assert same(1e9, 1e9 + 0.1) and not same(1e9, 1e9 + 10) and not same(1, 1.0)


def test_every_query_has_its_order() -> None:
    assert order_columns(queries.sql(3), ["l_orderkey", "revenue", "o_orderdate", "o_shippriority"]) == (1, 2)
    assert order_columns(queries.sql(6), ["revenue"]) == ()
    assert queries.parse_numbers("1,3-5,22") == (1, 3, 4, 5, 22)
