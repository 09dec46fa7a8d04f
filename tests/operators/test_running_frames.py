"""Frames that begin with their partition and end with the current row or its last peer: gone through by tiles, beside DuckDB."""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.kernels.builtin.key_changes import key_changes
from gquery.operators import ordered
from gquery.operators.window import running
from tests.operators.test_sliding_frames import table
from tests.support.harness import assert_same
from tests.support.tuned import Tune

CALLS = (
    "sum(x)", "avg(x)", "avg(x) FILTER (WHERE k > 3)", "min(x)", "max(k)", "min(d)", "sum(k)", "sum(i)", "sum(near)",
    "avg(k) FILTER (WHERE i > 40)", "avg(c)", "sum(c)", "avg(i)", "bool_or(k > 8)", "count(k)", "min(i)",
)  # fmt: skip
FRAMES = (
    "ORDER BY i ROWS UNBOUNDED PRECEDING",
    "ORDER BY i",
    "PARTITION BY p ORDER BY i DESC ROWS UNBOUNDED PRECEDING",
    "ORDER BY k, i ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ORDER BY k",
    "ORDER BY p",
    "ORDER BY k DESC NULLS LAST GROUPS UNBOUNDED PRECEDING",
    "PARTITION BY p ORDER BY k NULLS FIRST",
    "PARTITION BY k ORDER BY p",
    "PARTITION BY i ORDER BY k",
    "PARTITION BY p ORDER BY near",
)


@cache
def tables() -> dict[str, pa.Table]:
    """The rows of sliding frames, and a column of decimals."""
    found = table()
    cents = [Decimal(n * 7 - 300).scaleb(-2) for n in range(found.num_rows)]
    return {"t": found.append_column("c", pa.array(cents, pa.decimal128(12, 2)))}


@cache
def empty() -> dict[str, pa.Table]:
    return {"t": tables()["t"].slice(0, 0)}


def over(frame: str) -> str:
    return f"SELECT i, {', '.join(f'{c} OVER w' for c in CALLS)} FROM t WINDOW w AS ({frame})"


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("frame", FRAMES)
def test_beside_duckdb(frame: str, threads: str, tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    """Peers lie in several tiles, and tiles in one group of peers."""
    made: list[int] = []
    carried = running._carried

    def note(*given: Any) -> Any:
        made.append(len(made))
        return carried(*given)

    monkeypatch.setattr(running, "_carried", note)
    tune(tuning.window_functions, thread_tile=8)
    assert_same(over(frame), tables(), targets=("python",), ranks=(1,), settings={"threads": threads})
    assert len(made) == len(CALLS) - 1, "all but the count are made so"
    assert_same(over(frame), empty(), targets=("python",), ranks=(1,), settings={"threads": threads})


def test_compiled(tune: Tune) -> None:
    tune(tuning.window_functions, thread_tile=64)
    for frame in ("PARTITION BY p ORDER BY k", "ORDER BY i ROWS UNBOUNDED PRECEDING"):
        assert_same(over(frame), tables(), targets=("cpu",), ranks=(1, 3), settings={"threads": "2"})


def test_one_group_of_peers_is_written_once(tune: Tune) -> None:
    """However many tiles it fills: each row of the answer is the sum of all."""
    tune(tuning.window_functions, thread_tile=16)
    rows = 5_000
    with gquery.connect("cpu", threads=2) as connection:
        connection.sql("SET interpret_limit = 0")
        connection.register("t", pa.table({"i": range(rows), "k": [1] * rows}))
        found = connection.sql("SELECT DISTINCT sum(i) OVER (ORDER BY k) FROM t").fetchall()
    assert found == [(rows * (rows - 1) // 2,)]


def test_peers_are_looked_for_where_a_frame_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that stand in their order: nothing is compared for frames of ROWS, and once for all that ask for peers."""
    asked: list[int] = []

    def note(*given: Any) -> Any:
        asked.append(len(asked))
        return key_changes(*given)

    monkeypatch.setattr(ordered, "key_changes", note)
    with gquery.connect("cpu") as connection:
        connection.register("t", pa.table({"i": [1, 1, 2, 4, 4, 4], "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}))
        rows = "avg(x) OVER (ORDER BY i ROWS 1 PRECEDING), row_number() OVER (ORDER BY i), lag(x) OVER (ORDER BY i)"
        assert len(connection.sql(f"SELECT {rows} FROM t").fetchall()) == 6
        assert not asked
        peers = "rank() OVER (ORDER BY i), sum(x) OVER (ORDER BY i), dense_rank() OVER (ORDER BY i)"
        found = connection.sql(f"SELECT {peers} FROM t").fetchall()
        assert found == [(1, 3, 1), (1, 3, 1), (3, 6, 2), (4, 21, 3), (4, 21, 3), (4, 21, 3)]
        assert len(asked) == 1
