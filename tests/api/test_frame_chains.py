"""Random chains of DataFrame methods give what Polars gives: the same rows, in the same order where there is one, and names."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import gquery
from tests.fuzzing.chains import Chain, Chains, table
from tests.fuzzing.tape import Tape

pl = pytest.importorskip("polars")


@pytest.fixture(scope="module")
def db() -> Iterator[gquery.Connection]:
    with gquery.connect(device="python") as db:
        yield db


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_chains(first: int, db: gquery.Connection) -> None:
    for seed in range(first, first + 20):
        compare(seed, db)


def test_a_window_is_filtered_behind_a_sort(db: gquery.Connection) -> None:
    """The groups of a window were the ones streamed, and sorted rows came in the order of these."""
    compare(663, db)


@pytest.mark.parametrize("way", ["max", "median", "n_unique"])
@pytest.mark.parametrize("key", ["a", "k"])
def test_a_filter_on_a_window_of_sorted_rows_keeps_their_order(way: str, key: str, db: gquery.Connection) -> None:
    def ids(f: Any, library: Any) -> list[int]:
        in_order = f.sort("k", "i", descending=[True, True], nulls_last=True)
        windowed = in_order.with_columns(m=getattr(library.col("a"), way)().over(key))
        return [i for i, *_ in windowed.filter(library.col("t")).rows()]

    for seed in range(500, 512):
        rows = table(seed, seed % 23 + 3)
        assert ids(db.from_data(rows), gquery) == ids(pl.from_arrow(rows), pl), seed


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 6000, 500))
def test_many_chains(first: int, db: gquery.Connection) -> None:
    compared = [compare(seed, db) for seed in range(first, first + 500)]
    assert sum(compared) > 450


def compare(seed: int, db: gquery.Connection) -> bool:
    """Whether Polars takes the chain: some casts of its unsigned counts overflow there."""
    chain = Chains(Tape(seed)).chain()
    frames = table(seed, seed % 23), table(seed + 1, seed // 3 % 11)
    try:
        theirs = _made(chain, [pl.from_arrow(f) for f in frames], pl, pl.Int64, {"maintain_order": True})
    except pl.exceptions.InvalidOperationError:
        return False
    ours = _made(chain, [db.from_data(f) for f in frames], gquery, "BIGINT", {})
    assert ours.columns == theirs.columns, chain.text
    found, wanted = [_plain(r) for r in ours.fetchall()], [_plain(r) for r in theirs.rows()]
    if not chain.is_ordered:
        found.sort(key=_key)
        wanted.sort(key=_key)
    assert len(found) == len(wanted), (seed, chain.text)
    for a, b in zip(found, wanted, strict=True):
        assert all(_is_same(x, y) for x, y in zip(a, b, strict=True)), (seed, chain.text, a, b)
    return True


def _made(chain: Chain, frames: list[Any], library: Any, integer: Any, in_order: dict[str, bool]) -> Any:
    names = {
        "f": frames[0],
        "o": frames[1],
        "p": library,
        "integer": integer,
        "in_order": in_order,
        "one_key": {"coalesce": True} if library is pl else {},
        "datetime": datetime,
    }
    return eval(chain.text, names)


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Values that compare across libraries: their numbers are of different types."""
    is_number = [isinstance(v, int | float | Decimal) and not isinstance(v, bool) for v in row]
    return tuple(float(v) + 0.0 if number else v for v, number in zip(row, is_number, strict=True))


def _key(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple((v is not None, 0 if v is None else round(v, 6) if isinstance(v, float) else v) for v in row)


def _is_same(x: Any, y: Any) -> bool:
    if isinstance(x, float) and isinstance(y, float):
        return math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-9) or (math.isnan(x) and math.isnan(y))
    return type(x) is type(y) and bool(x == y)
