"""What ranks on GPUs do with states of others is recorded without a copy to the host: by meta arrays, with a rank beside that has
the same as this one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import gquery
from gquery import tuning
from gquery.columns.encode_strings import characters_column
from gquery.columns.table import ColumnData
from gquery.device import copies as copies_module
from gquery.device import peer
from gquery.device.array import on_gpu
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.device.recording import RecordingDevice
from gquery.distributed.movable import together
from gquery.execution import near as near_module
from gquery.execution import sinks
from gquery.operators import group, join_table
from gquery.operators.base import Frame
from gquery.operators.cut_keys import CutKeys, GroupParts
from gquery.operators.part_groups import own_slots
from gquery.operators.set_ranges import put_ranges
from tests.support import meta_arrays
from tests.support.meta_arrays import copies
from tests.support.meta_gpu import ARENA, copies_of, enlarged, meta_gpu
from tests.support.tuned import Tune


@pytest.fixture(autouse=True)
def _gpu() -> Iterator[None]:
    with meta_gpu():
        yield


class Beside:
    """The first of two ranks; see `Exchange`."""

    rank, ranks = 0, 2
    ranges: CutKeys | None = None

    def __init__(self, parts: GroupParts | None) -> None:
        self.parts = parts

    def agree(self, vote: bool) -> bool:
        return vote

    def __call__(self, value: Any) -> list[Any]:
        return [value, value]

    unmoved = __call__

    def send_unmoved(self, values: Sequence[Any]) -> list[Any]:
        return self.send(values)

    def send(self, values: Sequence[Any]) -> list[Any]:
        if self.parts is None or not self.parts.by_slots:
            return [values[0], values[1]]
        return [[], [meta_arrays.empty(64, a.dtype) for a in values[1]]]


def connection() -> gquery.Connection:
    made = gquery.connect(device="cpu")
    made.sql("CREATE TABLE t AS SELECT i AS id, i % 100 AS k, i * 2 AS v, i / 3 AS f FROM range(200) r(i)")
    made.sql("CREATE TABLE u AS SELECT i AS id, i % 5 AS few FROM range(150) r(i)")
    return made


@pytest.mark.parametrize(
    ("sql", "parts"),
    [
        ("SELECT k, sum(v), min(f), count(*) FROM t GROUP BY k", GroupParts(0, CutKeys([64]), by_slots=True)),
        ("SELECT DISTINCT k FROM t", GroupParts(0, CutKeys([64]), by_slots=True)),
        ("SELECT k, count(*) FROM t GROUP BY k", GroupParts(0, CutKeys([64]), by_slots=True)),
        ("SELECT id, sum(v) FROM t GROUP BY id", GroupParts()),
        ("SELECT id * 1000003 AS wide, sum(v), max(f) FROM t GROUP BY wide", GroupParts()),
        ("SELECT DISTINCT id * 1000003, k FROM t", GroupParts()),
        ("SELECT k, sum(v) FROM t GROUP BY k", None),
        ("SELECT sum(v), max(f) FROM t", None),
        ("SELECT count(*) FROM t WHERE id IN (SELECT id FROM u WHERE few < 3)", None),
    ],
)
@pytest.mark.parametrize("factor", [1, 10_000])
def test_states_of_others_are_merged_without_a_copy(
    sql: str, parts: GroupParts | None, factor: int, monkeypatch: pytest.MonkeyPatch, tune: Tune
) -> None:
    if parts is not None:
        tune(tuning.distribution, merged_slot_words=0)
    taken = []

    def noted(*given: Any) -> Any:
        taken.append(given)
        return own_slots(*given)

    monkeypatch.setattr(group, "own_slots", noted)
    monkeypatch.setattr(sinks, "merge_exchange", lambda state, stage: Beside(parts))
    assert copies_of(enlarged(connection(), factor), sql) == []
    assert bool(taken) == (parts is not None and parts.by_slots)


class SecondOfTwo(Beside):
    """The second of two ranks, whose slots begin at the 63rd of 100, where no memory does."""

    rank = 1

    def send(self, values: Sequence[Any]) -> list[Any]:
        return [[meta_arrays.empty(37, a.dtype) for a in values[0]], []]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k, sum(v), min(f), count(*) FROM t GROUP BY k",
        "SELECT DISTINCT k FROM t",
        "SELECT k, max(v) FROM t GROUP BY k",
    ],
)
def test_slots_that_begin_anywhere(sql: str, monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    tune(tuning.distribution, merged_slot_words=0)
    begins = []

    def noted(*given: Any) -> Any:
        made, state = own_slots(*given)
        for array in (*state.accumulators, *([] if state.touched is None else [state.touched])):
            begins.append(on_gpu(array).data.ptr % tuning.transfers.together_alignment)
        return made, state

    monkeypatch.setattr(group, "own_slots", noted)
    cut = GroupParts(0, CutKeys([63]), by_slots=True)
    monkeypatch.setattr(sinks, "merge_exchange", lambda state, stage: SecondOfTwo(cut))
    assert copies_of(enlarged(connection(), 10_000), sql) == []
    assert begins and not any(begins)


class BesideRange(Beside):
    """One whose rows have the keys from 64 on."""

    ranges = CutKeys([64])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM t WHERE k IN (SELECT id FROM u WHERE few < 3)",
        "SELECT count(*), sum(few) FROM t JOIN u ON t.k = u.id",
    ],
)
@pytest.mark.parametrize("factor", [1, 10_000])
def test_ranges_of_others_come_without_a_copy(sql: str, factor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    put = []

    def noted(total: Any, parts: Any, ranges: Any, own: int, device: Device) -> None:
        put.append(total)
        of_others: list[Any] = [meta_arrays.empty(r.end - r.first, total.dtype) for r in ranges]
        put_ranges(total, [parts[own] if n == own else a for n, a in enumerate(of_others)], ranges, own, device)

    monkeypatch.setattr(join_table, "put_ranges", noted)
    monkeypatch.setattr(sinks, "merge_exchange", lambda state, stage: BesideRange(None))
    assert copies_of(enlarged(connection(), factor), sql) == []
    assert put


@pytest.mark.parametrize("rows", [10, 10_000, 200_000, 2_000_000])
def test_rows_of_others_are_put_together_without_a_copy(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offsets, characters and flags of a text may be on both sides of what is short enough to come by a kernel."""
    here, there = RecordingDevice(Device("cuda"), ARENA), Device("cuda", 1)
    here.constants = []
    monkeypatch.setattr(peer, "has_peer_access", lambda one, other: True)
    monkeypatch.setattr(copies_module, "copy_between", lambda to, device, array, source: None)

    def column(device: Device, wide: int) -> ColumnData:
        sizes = ((rows + 1, "i8"), (wide * rows, "u1"), (rows, "u1"))
        arrays: list[Any] = [meta_arrays.empty(n, t) for n, t in sizes]
        offsets, characters, flags = [Buffer(a, device) for a in arrays]
        return characters_column(offsets, characters, flags, 1, rows)

    for wide in (1, 9):
        frames = [Frame({1: column(device, wide)}, rows) for device in (here, there)]
        copies.noted.clear()
        with copies.recording():
            together(near_module.near(frames, here), (), here)
        assert copies.noted == []
