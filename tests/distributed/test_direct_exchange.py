"""Rows that ranks write to each other's memory: the same answers as by copies, on CPU ranks whose kernels are done row by row."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.device.device import available_devices
from gquery.execution import direct_exchange
from gquery.operators.base import Frame
from tests.distributed.test_hashed_joins import skewed
from tests.support import partition_kernels
from tests.support.faults import failing_allocations
from tests.support.harness import assert_same, connect
from tests.support.tuned import Tune

RNG = np.random.default_rng(23)
ROWS, BUILT = 900, 250
KEYS = RNG.integers(0, 10**12, 600)
LEFT, RIGHT = KEYS[RNG.integers(0, 600, ROWS)], KEYS[RNG.integers(100, 600, BUILT)]


def some_null(values: Any, every: int) -> pa.Array:
    return pa.array([None if n % every == 3 else int(v) for n, v in enumerate(values)], pa.int64())


TABLES = {
    "l": pa.table(
        {
            "n": np.arange(ROWS),
            "k": LEFT,
            "j": some_null(LEFT, 17),
            "few": (LEFT % 23).astype(np.int8),
            "wide": pa.array([int(v) * 10**9 for v in LEFT], pa.decimal128(38, 2)),
            "d": np.where(LEFT % 5 == 0, -0.0, LEFT % 50 / 4),
        }
    ),
    "r": pa.table(
        {
            "m": np.arange(BUILT),
            "k": RIGHT,
            "j": some_null(RIGHT, 7),
            "few": (RIGHT % 23).astype(np.int8),
            "wide": pa.array([int(v) * 10**9 for v in RIGHT], pa.decimal128(38, 2)),
            "word": [f"word {v % 31}" for v in RIGHT],  # a dictionary
            "text": [f"text {v}" for v in RIGHT],
        }
    ),
    "none": pa.table({"k": pa.array([], pa.int64()), "v": pa.array([], pa.int64())}),
}
DIRECT = {
    "SELECT l.n, r.m FROM l JOIN r ON l.k = r.k": 2,
    "SELECT count(*), sum(l.n), sum(r.m) FROM l JOIN r ON l.j = r.j": 2,
    "SELECT l.n, l.d, l.few, r.m, r.word FROM l LEFT JOIN r ON l.wide = r.wide": 2,
    "SELECT l.n FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.m > l.n)": 2,
    "SELECT l.n, r.m FROM l JOIN r ON l.k = r.k AND l.few = r.few WHERE l.few > 4 AND r.m < 200": 2,
    "SELECT l.n, r.text FROM l JOIN r ON l.k = r.k": 1,  # rows with text are copied
    "SELECT n, row_number() OVER (PARTITION BY few ORDER BY n), sum(n) OVER (PARTITION BY few) FROM l": 1,
    "SELECT few, quantile_disc(n, 0.3) FROM l GROUP BY few": 1,
}


@pytest.fixture(autouse=True)
def went(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[Frame | None]:
    """CPU ranks write to each other's memory, as GPUs do; what came of each try."""
    made: list[Frame | None] = []
    real = direct_exchange.sent_directly

    def sent(*given: Any) -> Frame | None:
        made.append(real(*given))
        return made[-1]

    if request.node.get_closest_marker("cuda") is None:
        partition_kernels.run_here(monkeypatch)
        monkeypatch.setattr(direct_exchange, "may_write", lambda device: True)
        monkeypatch.setattr(direct_exchange, "reach_each_other", lambda devices: True)
    monkeypatch.setattr(direct_exchange, "sent_directly", sent)
    return made


@pytest.mark.parametrize(("sql", "sides"), DIRECT.items())
def test_answers(sql: str, sides: int, went: list[Frame | None], tune: Tune) -> None:
    tune(tuning.partitioning, heavy_fraction=1e9)  # NULL is a key, too
    assert_same(sql, TABLES, targets=("python",), ranks=(3,))
    found = [f for f in went if f is not None]
    assert len(found) >= 3 * sides and len(found) % 3 == 0, "each rank gets the rows of each side so"


@pytest.mark.cuda
@pytest.mark.parametrize("sql", DIRECT)
def test_on_gpus(sql: str, went: list[Frame | None], tune: Tune) -> None:
    if sum(d.is_cuda for d in available_devices()) < 2:
        pytest.skip("ranks of one GPU hand rows over as they are")
    tune(tuning.partitioning, heavy_fraction=1e9)
    assert_same(sql, TABLES, targets=("cuda",), ranks=(2,))
    assert any(f is not None for f in went)


def test_a_side_without_rows(went: list[Frame | None]) -> None:
    for sql in ("SELECT l.n, v FROM l LEFT JOIN none ON l.k = none.k", "SELECT v FROM none JOIN l ON none.k = l.k"):
        assert_same(sql, TABLES, targets=("python",), ranks=(3,))


def test_rows_of_heavy_keys_go_the_other_way(went: list[Frame | None]) -> None:
    probed = skewed(3000, "together")
    keys = np.unique(probed["k"].to_numpy())
    tables = {"p": probed, "b": pa.table({"k": keys, "w": np.arange(keys.size)})}
    assert_same("SELECT count(*), sum(v), sum(w) FROM p JOIN b ON p.k = b.k", tables, targets=("python",), ranks=(3,))
    assert not went


def test_failed_allocations() -> None:
    """Whichever allocation of whichever rank fails: one clear error, and the next run is right."""
    sql = next(iter(DIRECT))
    with connect("python", 3, TABLES) as db:
        want, failed = sorted(db.sql(sql).fetchall()), 0
        for number in range(1, 40, 3):
            with failing_allocations(number), contextlib.suppress(gquery.OutOfMemoryError):
                failed += 1
                assert sorted(db.sql(sql).fetchall()) == want
                failed -= 1
        assert failed and sorted(db.sql(sql).fetchall()) == want
