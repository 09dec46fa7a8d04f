"""Parts that come from the tier while the one before is at work, and what was made that goes there behind it: the rows are those
that lie there, an error is raised where they are asked for, and nothing is on its way, or held, once a query has ended.
"""

from __future__ import annotations

import errno
import gc
import itertools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gquery import tuning
from gquery.device import file_copies
from gquery.device.device import Device
from gquery.device.host_tier import HostTier
from gquery.device.spill import OpenFile, SpillSpace
from gquery.errors import FileError, InterruptError, OutOfMemoryError
from gquery.execution import behind, group_parts, joined_parts, parts, sort_parts
from gquery.execution.tiers import let_go, put_below
from gquery.expression.types import PhysicalType
from gquery.operators.base import Frame
from gquery.operators.partition_rows import Partitioned, rows_between
from tests.execution.test_tiers import LARGE, QUERIES, check_nothing_left, limited
from tests.support.frames import column
from tests.support.harness import compare, expect
from tests.support.tuned import Tune

WINDOW = "SELECT max(r), sum(r), count(*) FROM (SELECT row_number() OVER (PARTITION BY v ORDER BY k) AS r FROM t)"
STARTS = [(0, 3, 3, 700, 1000), (0, 0, 0, 500, 500), (0, 200, 200, 200, 300)]  # of parts, in each cut; the second has no rows


@pytest.fixture(autouse=True)
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (parts, behind):
        monkeypatch.setattr(module, "core_count", lambda: 2)


@pytest.fixture
def device(tmp_path: Path, tune: Tune) -> Device:
    tune(tuning.memory, least_spilled=1)
    made = Device("cpu", 1, 10**7)
    made.below = HostTier(made, 0, SpillSpace(str(tmp_path)))
    return made


def values(cut: int) -> list[int | None]:
    return [None if n % 7 == 0 else n * 3 + cut for n in range(STARTS[cut][-1])]


def in_parts(device: Device) -> parts.Parts:
    cuts = []
    for n, starts in enumerate(STARTS):
        columns = {
            0: column(values(n), PhysicalType.I64, device, nullable=True),
            1: column(range(starts[-1]), PhysicalType.I16, device),
        }
        cuts.append(Partitioned(put_below(Frame(columns, starts[-1]), device, "test"), starts))
    return parts.Parts(cuts, device)


def want(part: int) -> list[int | None]:
    return [v for n, starts in enumerate(STARTS) for v in values(n)[starts[part] : starts[part + 1]]]


def got(frame: Frame) -> list[int | None]:
    data, flags = frame.columns[0].data.host, frame.columns[0].validity
    assert flags is not None and frame.columns[0].length == frame.rows == len(data)
    return [v if ok else None for v, ok in zip(data.tolist(), flags.host.tolist(), strict=True)]


def threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name in ("gquery-part", "gquery-tier")]


def test_a_part_that_came_is_the_same(device: Device) -> None:
    """One without rows, and one behind the last, are not begun; nor is one that was asked for once begun again."""
    with in_parts(device) as made:
        for n in range(4):
            made.begin(n + 1)
            assert made.is_coming(n + 1) is (n + 1 in (2, 3))
            assert got(made.part(n)) == want(n)
            assert not made.is_coming(n)
    assert device.account.taken == 0 and threads() == []


def test_a_part_that_nobody_asked_for_is_let_go_of(device: Device) -> None:
    made = in_parts(device)
    made.begin(0)
    made.begin(2)
    assert not made.is_coming(0) and made.is_coming(2)
    assert made.give_way() and not made.give_way() and not made.is_coming(2)
    gc.collect()
    assert device.account.taken == 0 and got(made.part(2)) == want(2)


def test_a_part_that_has_no_room_is_not_begun(device: Device, tune: Tune) -> None:
    """By its share of what is free, and where the device refuses it in spite of that."""
    made = in_parts(device)
    size = len(want(2)) * (8 + 2 + 1)
    tune(tuning.spilling, slice_fraction=(size - 1) / 10**7)
    made.begin(2)
    assert not made.is_coming(2)
    tune(tuning.spilling, slice_fraction=1.0)
    device.memory_limit = device.account.limit = size  # room behind texts is not counted on
    made.begin(2)
    assert not made.is_coming(2) and device.account.taken == 0
    device.memory_limit = device.account.limit = 10**6
    made.begin(2)
    assert made.is_coming(2) and got(made.part(2)) == want(2)


def test_an_error_on_the_way_is_raised_where_the_part_is_asked_for(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    made = in_parts(device)

    def fails(*given: Any) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with made:
        with monkeypatch.context() as patch:
            patch.setattr(os, "preadv", fails)
            made.begin(2)
            made.begin(3)
            with pytest.raises(FileError, match="cannot be read"):
                made.part(2)
        assert got(made.part(2)) == want(2)  # once more
    assert threads() == []
    gc.collect()
    assert device.account.taken == 0


def test_a_block_is_left_once_nothing_is_on_its_way(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    going, real, ended = threading.Event(), os.preadv, list[int]()

    def waits(*given: Any) -> int:
        assert going.wait(60)
        ended.append(1)
        return real(*given)

    monkeypatch.setattr(os, "preadv", waits)
    threading.Timer(0.05, going.set).start()
    with pytest.raises(KeyError), in_parts(device) as made:
        made.begin(2)
        assert threads() == ["gquery-part"] and not ended
        raise KeyError
    assert ended and threads() == []
    del made
    gc.collect()
    assert device.account.taken == 0


# ---- queries ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of parts that were on their way when they were asked for."""
    found, real = list[int](), parts.Parts.part

    def part(self: parts.Parts, number: int) -> Frame:
        if self.is_coming(number):
            found.append(number)
        return real(self, number)

    monkeypatch.setattr(parts.Parts, "part", part)
    return found


@pytest.mark.parametrize("tier", ["host", "files"])
@pytest.mark.parametrize("sql", [*QUERIES[:4], WINDOW])
def test_queries_read_ahead(sql: str, tier: str, tmp_path: Path, tune: Tune, begun: list[int]) -> None:
    tune(tuning.spilling, least_rows=64)
    types, rows = expect(sql, LARGE)
    db = limited("cpu", tier, tmp_path, LARGE, "700kB")
    for _ in range(2):
        assert compare(db.sql(sql).fetchall(), rows, "ORDER BY" in sql, types) is None
    assert len(begun) > 4 and db.device.account.peak <= 700_000
    assert threads() == []
    check_nothing_left(db, tmp_path)


@pytest.mark.parametrize("sql", [*QUERIES[:3], WINDOW])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_cancelled_while_it_reads(
    sql: str, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: list[int]
) -> None:
    types, rows = expect(sql, LARGE)
    db = limited("cpu", "files", tmp_path, LARGE, "700kB")
    real, calls = os.preadv, itertools.count()

    def counted(*given: Any) -> int:
        next(calls)
        return real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(os, "preadv", counted)
        db.sql(sql).fetchall()
    at, left = int(next(calls) * share), itertools.count()

    def interrupts(*given: Any) -> int:
        if next(left) == at:
            db.interrupt()
        return real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(os, "preadv", interrupts)
        with pytest.raises(InterruptError):
            db.sql(sql).fetchall()
    assert threads() == [] and begun
    check_nothing_left(db, tmp_path)
    assert compare(db.sql(sql).fetchall(), rows, "ORDER BY" in sql, types) is None


def test_a_disk_that_is_full_is_no_lack_of_memory_of_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be written is missing: a part that finds no room meanwhile says so, and is not just made in smaller ones."""
    sql = QUERIES[2]
    db = limited("cpu", "files", tmp_path, LARGE, "700kB")
    db.sql(sql).fetchall()  # how many rows there will be is known then
    real, build, turns = os.pwrite, joined_parts.JoinedParts._build, itertools.count()
    full = False

    def write(*given: Any) -> int:
        if full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*given)

    def refused(self: joined_parts.JoinedParts, rows: Frame) -> None:
        nonlocal full
        full = True
        if next(turns) == 1:
            raise OutOfMemoryError("no room for the table")
        build(self, rows)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", write)
        patch.setattr(joined_parts.JoinedParts, "_build", refused)
        with pytest.raises(OutOfMemoryError, match="No space left"):
            db.sql(sql).fetchall()
    check_nothing_left(db, tmp_path)


@pytest.mark.parametrize("sql", QUERIES[:3])
def test_what_comes_gives_way(sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: list[int]) -> None:
    """Where memory runs out at a part, it is tried once more without the next one, and is not made in smaller ones at once."""
    types, rows = expect(sql, LARGE)
    db = limited("cpu", "files", tmp_path, LARGE, "700kB")
    db.sql(sql).fetchall()
    gave = list[bool]()
    real = parts.Parts.give_way

    def give_way(self: parts.Parts) -> bool:
        found = real(self)
        gave.append(found)
        return found

    monkeypatch.setattr(parts.Parts, "give_way", give_way)
    with refusing_once() as turns:
        assert compare(db.sql(sql).fetchall(), rows, "ORDER BY" in sql, types) is None
    assert next(turns) > 2 and True in gave
    check_nothing_left(db, tmp_path)


@contextmanager
def refusing_once() -> Iterator[Iterator[int]]:
    """Within it, the third part that is built, probed, grouped or sorted is refused."""
    turns = itertools.count()

    def failing(function: Any) -> Any:
        def call(*given: Any) -> Any:
            if next(turns) == 2:
                raise OutOfMemoryError("refused once")
            return function(*given)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((joined_parts, "run_extra"), (group_parts, "run_extra"), (sort_parts._Sorted, "_together")):
            patch.setattr(module, name, failing(getattr(module, name)))
        yield turns


def _note(seen: list[int], array: Any) -> None:
    seen.append(int(array.sum()))


def test_rows_that_arrive_behind_are_whole(device: Device) -> None:
    """An array is let go of once it was written, and not before."""
    seen = list[int]()
    with behind.Behind(device, "test") as moving:
        for n in range(5):
            array = device.empty(1000, np.int64)
            array[:] = n
            moving.run(partial(_note, seen, array))
            del array
        moving.wait()
        gc.collect()
        assert device.account.taken == 0
    assert seen == [0, 1000, 2000, 3000, 4000]


# ---- files that are let go of ----------------------------------------------------------------------------------------


def test_frames_that_are_let_go_of(device: Device) -> None:
    """Their files are closed, but those that somebody else has a view of."""
    assert device.below is not None and device.below.spill is not None
    opened, spill = len(os.listdir("/proc/self/fd")), device.below.spill
    frames = [put_below(Frame({0: column(range(n), PhysicalType.I64, device)}, n), device, "test") for n in (500, 700)]
    kept = rows_between(frames[1], 3, 9)
    here = Frame({0: column([1, 2], PhysicalType.I64, device)}, 2)
    let_go(given := [*frames, here], device)
    assert given == [] and spill.taken > 500 * 8
    frames.clear()
    assert 700 * 8 <= spill.taken < 1200 * 8
    let_go(frames, device)
    assert kept.columns[0].data.host.tolist() == list(range(3, 9)) and here.rows == 2
    let_go(given := [kept], device)
    del kept
    assert spill.taken == 0 and len(os.listdir("/proc/self/fd")) == opened


@pytest.mark.parametrize("sql", [*QUERIES[:4], WINDOW])
def test_nobody_else_has_parts_that_are_let_go_of(sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the threads close their files, and not whoever looks at a frame last, with the interpreter's lock."""
    db = limited("cpu", "files", tmp_path, LARGE, "700kB")
    db.sql(sql).fetchall()
    closed, real = list[int](), file_copies.close_together

    def close(files: list[OpenFile]) -> None:
        numbers = [f.descriptor for f in files]
        closed.append(len(numbers))
        real(files)
        for number in numbers:
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.fstat(number)

    monkeypatch.setattr(file_copies, "close_together", close)
    db.sql(sql).fetchall()
    assert sum(closed) > 2
