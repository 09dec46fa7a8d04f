"""Gaps that a filter or a join leaves among the rows that morsels wrote: they are closed within the array where it is nobody
else's and most of it is kept, else in a copy."""

from __future__ import annotations

import ctypes
import random
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.device.device import Device, cpu_device
from gquery.kernels.builtin import gathers
from gquery.kernels.builtin.gathers import Pieces
from gquery.operators import pieces as closing
from gquery.operators.pieces import close_gaps
from tests.support.harness import assert_same
from tests.support.tuned import Tune

ROWS = 5_000  # several units of counts, the last one not full


def random_pieces(rng: random.Random, rows: int) -> Pieces:
    """Pieces of units of 16 rows, each of which begins where its unit does."""
    units = [(start, rng.randint(0, min(16, rows - start))) for start in range(0, rows, 16)]
    return [(start, n) for start, n in units if n]


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "float64"])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_rows_of_pieces(dtype: str, words: int, share: float, tune: Tune) -> None:
    tune(tuning.materialization, moved_selectivity=share)
    rng = random.Random(words)
    for rows in (1, 15, 16, 17, 300):
        for _ in range(9):
            pieces = random_pieces(rng, rows)
            values = np.arange(rows * words).astype(dtype)
            wanted = [v for start, n in pieces for v in values[start * words : (start + n) * words].tolist()]
            given = values.copy()
            found = close_gaps(given, pieces, words, cpu_device(), "")
            assert found.tolist() == wanted and found.dtype == values.dtype
            assert given is found or np.array_equal(given, values), "what is not closed in place stays as it was"


@pytest.mark.parametrize("interpreted", [0, 2**40])
@pytest.mark.parametrize("workers", [1, 3])
def test_texts_of_pieces(workers: int, interpreted: int, tune: Tune) -> None:
    """They are copied out of the gaps, whether few pieces are large or many are small."""
    tune(tuning.built_in_kernels, interpreted_rows=interpreted, compiled_after=interpreted)
    rng = random.Random(workers)
    for rows in (1, 17, 3_000, 60_000 if not interpreted else 50):
        letters = np.frombuffer(rng.randbytes(rows + 40), np.uint8)
        views = np.zeros(2 * rows, np.int64)
        views[::2] = letters.ctypes.data + np.array(rng.sample(range(rows), rows))
        views[1::2] = np.array(rng.choices((0, 0, 1, 7, 8, 17, 40), k=rows))
        for pieces in (random_pieces(rng, rows), [(0, rows)], None, []):
            device = cpu_device() if rng.random() < 0.5 else Device("cpu", memory_limit=1 << 30)
            offsets, characters = gathers.gather_strings(views, workers, device, pieces)
            chosen = [views[2 * a : 2 * (a + n)].reshape(-1, 2) for a, n in ([(0, rows)] if pieces is None else pieces)]
            wanted = [ctypes.string_at(*v) for v in np.concatenate([*chosen, views[:0].reshape(-1, 2)]).tolist()]
            assert characters.tobytes() == b"".join(wanted)
            assert offsets.tolist() == [0, *accumulate(map(len, wanted))]


def test_most_of_an_array_stays_in_it() -> None:
    pieces = [(0, 5), (8, 6), (16, 1)]
    most, few = np.arange(20), np.arange(30)
    address = most.ctypes.data
    kept = close_gaps(most, pieces, 1, cpu_device(), "")
    assert kept.tolist() == [*range(5), *range(8, 14), 16]
    assert kept.ctypes.data == address and kept.nbytes == 12 * 8, "it holds no memory of rows that went"
    assert close_gaps(few, pieces, 1, cpu_device(), "").ctypes.data != few.ctypes.data
    assert few.tolist() == list(range(30))


def test_an_array_that_somebody_else_has_is_not_changed() -> None:
    whole = np.arange(40)
    kept = close_gaps(whole[4:24], [(0, 5), (8, 6)], 1, cpu_device(), "")
    assert kept.tolist() == [*range(4, 9), *range(12, 18)]
    assert whole.tolist() == list(range(40))


@pytest.mark.parametrize("ordinal", [0, 1])
def test_an_array_that_is_counted_or_a_rank_s_is_not_changed(ordinal: int) -> None:
    device = Device("cpu", ordinal, memory_limit=1 << 20)
    array = device.empty(20, "int64", "")
    array[:] = np.arange(20)
    taken = device.account.taken
    kept = close_gaps(array, [(0, 9), (10, 9)], 1, device, "")
    assert kept.tolist() == [*range(9), *range(10, 19)] and array.tolist() == list(range(20))
    assert device.account.taken == taken + kept.nbytes


@cache
def data() -> dict[str, pa.Table]:
    rng = random.Random(5)
    t = {
        "id": range(ROWS),
        "k": [rng.choice([*range(9), None]) for _ in range(ROWS)],
        "x": [rng.choice([rng.randrange(1000), None]) for _ in range(ROWS)],
        "s": [rng.choice(["", "a word", None, "ä" * 20, f"text {i}"]) for i in range(ROWS)],
        "w": pa.array([i * 10**20 for i in range(ROWS)], pa.decimal128(38, 0)),
    }
    few = {"k": range(8), "name": [f"name {i}" for i in range(8)]}
    return {"t": pa.table(t), "few": pa.table(few)}


QUERIES = [
    "SELECT * FROM t WHERE id % 7 <> 3",
    "SELECT id, CASE WHEN x > 300 THEN x END AS n, s FROM t WHERE id <> 2000",
    "SELECT id, x, name, s FROM t JOIN few USING (k)",
    "SELECT id, s || 'x' AS longer, w + 1 AS more FROM t WHERE id % 1000 > 5",
    "SELECT id FROM t WHERE id > 2500 AND id <> 2600",
]


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch, tune: Tune) -> list[int]:
    """How many elements are in each array in which pieces move."""
    sizes: list[int] = []
    move = closing._move_down

    def note(array: Any, pieces: Pieces, words: int) -> None:
        sizes.append(array.size)
        move(array, pieces, words)

    monkeypatch.setattr(closing, "_move_down", note)
    tune(tuning.materialization, moved_selectivity=0.0)
    return sizes


@pytest.mark.parametrize("sql", QUERIES)
def test_answers(sql: str, moved: list[int]) -> None:
    assert_same(sql, data(), ranks=(1, 3))  # pieces move on one
    assert moved


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_what_others_hold_stays(device: str, moved: list[int]) -> None:
    """A result, a table made of one, and the columns that both come from are as they were after the same and other queries."""
    with gquery.connect(device) as connection:
        connection.sql("SET interpret_limit = 0")
        for name, table in data().items():
            connection.register(name, table)
        connection.sql(f"CREATE TABLE made AS {QUERIES[0]}")
        held = [connection.sql(sql).to_arrow_table() for sql in (*QUERIES, "FROM t", "FROM made")]
        copies = [table.to_pylist() for table in held]
        for _ in range(2):
            for sql in (*QUERIES, "SELECT * FROM made WHERE id % 5 > 0"):
                connection.sql(sql).fetchall()
        assert [table.to_pylist() for table in held] == copies
        assert connection.sql("FROM t").to_arrow_table().to_pylist() == copies[-2]
        assert connection.sql("FROM made").to_arrow_table().to_pylist() == copies[-1]
        assert moved
