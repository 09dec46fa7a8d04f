"""Memory of large arrays that is kept for the next ones: who gets it, when it goes back, and that no answer counts on zeros."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import numpy as np
import pytest

import gquery
from gquery import tuning
from gquery.device import kept_memory
from gquery.device.array import Array
from gquery.device.kept_memory import KEPT, KeptMemory, available_memory
from gquery.tuning.data import Memory

LARGE = tuning.memory.least_kept
BYTES = np.dtype(np.uint8)


@pytest.fixture
def kept() -> Iterator[KeptMemory]:
    """One that nobody else asks."""
    made = KeptMemory()
    yield made
    made.release()


def address(array: Array) -> int:
    return int(array.ctypes.data)


def test_memory_that_an_array_let_go_of_is_the_next_ones(kept: KeptMemory) -> None:
    first = kept.empty((2, LARGE), BYTES)
    first.fill(7)
    place, view = address(first), first[1, 5:]
    del first
    assert kept.kept_bytes == 0, "a view holds it"
    del view
    assert kept.kept_bytes == 2 * LARGE
    second = kept.empty(LARGE // 4, np.dtype(np.float64))
    assert address(second) == place and kept.kept_bytes == 0
    assert second.dtype == np.float64 and second.shape == (LARGE // 4,) and second.flags.writeable


@pytest.mark.parametrize(
    ("before", "wanted", "is_found"),
    [
        (0, 0, True),
        (LARGE // 8, 1, True),
        (LARGE // 4, 1, True),
        (LARGE // 2, 1, False),
        (0, 1, False),
        (LARGE, 0, False),
    ],
)
def test_pages_serve_sizes_that_differ_by_little(kept: KeptMemory, before: int, wanted: int, is_found: bool) -> None:
    place = address(kept.empty(LARGE + before, BYTES))
    made = kept.empty(LARGE + wanted, BYTES)
    assert (address(made) == place) == is_found
    made.fill(1)  # all of it is there


def test_zeros_are_zeros_and_small_arrays_numpys(kept: KeptMemory) -> None:
    assert not kept.zeros(LARGE, BYTES).any()
    kept.empty(LARGE, BYTES).fill(7)
    assert kept.kept_bytes == LARGE
    assert not kept.zeros(LARGE, BYTES).any()
    assert kept.empty(LARGE - 1, BYTES).base is None


def test_it_goes_back_when_nobody_asks(kept: KeptMemory) -> None:
    with tuning.using(Memory(kept_seconds=0.08)):
        held = kept.empty(LARGE, BYTES)
        kept.empty(LARGE, BYTES)
        assert kept.kept_bytes == LARGE
        for _ in range(1000):
            if not kept.kept_bytes:
                break
            time.sleep(0.01)
        assert kept.kept_bytes == 0
        while kept._is_watched:
            time.sleep(0.01)
    del held  # long after the last question: it goes at once
    assert kept.kept_bytes == 0


def test_no_more_than_a_share_of_the_machine_is_kept(kept: KeptMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_memory, "_most_kept", lambda: 3 * LARGE)
    held = [kept.empty(LARGE, BYTES) for _ in range(5)]
    del held
    assert kept.kept_bytes == 3 * LARGE


def test_it_goes_back_where_memory_runs_short_or_a_limit_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    KEPT.empty(LARGE, BYTES)
    assert KEPT.kept_bytes >= LARGE
    monkeypatch.setattr(kept_memory, "machine_memory", lambda key: 1 << 40 if KEPT.kept_bytes == 0 else 0)
    assert available_memory(1) == 1 << 40 and KEPT.kept_bytes == 0
    monkeypatch.undo()
    KEPT.empty(LARGE, BYTES)
    connection = gquery.connect(device="cpu", memory_limit="64MB")
    assert KEPT.kept_bytes == 0
    array = connection.device.empty(LARGE, np.uint8)
    assert connection.device.used_bytes == LARGE
    del array
    assert connection.device.used_bytes == KEPT.kept_bytes == 0, "what a limit counts is not kept"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_keeps_nothing_of_its_parents(kept: KeptMemory) -> None:
    KEPT.empty(LARGE, BYTES)
    child = os.fork()
    if child == 0:
        os._exit(KEPT.kept_bytes + KEPT._is_watched)
    assert os.waitpid(child, 0)[1] == 0


def test_results_stay_as_they_are_while_others_are_made() -> None:
    """A column that a user holds is nobody else's memory."""
    connection = gquery.connect(device="cpu")
    rows = 2 * LARGE // 8
    connection.register("t", {"a": np.arange(rows)})
    held = [connection.sql(f"SELECT a + {n} AS b FROM t").arrow()["b"] for n in range(3)]
    for n in range(9):
        connection.sql(f"SELECT a * {n} AS b, a - {n} AS c FROM t").arrow()
    for n, column in enumerate(held):
        assert np.array_equal(column.to_numpy(), np.arange(rows) + n)
