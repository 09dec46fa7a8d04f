"""Files as the tier below a device: every byte goes there and comes back, by writing and reading alone, and faults of a disk are
errors that leave the connection as it was.
"""

from __future__ import annotations

import concurrent.futures
import ctypes
import errno
import gc
import itertools
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device import file_copies, spill, staging
from gquery.device.buffer import Buffer
from gquery.device.chunks import is_page_locked, lock_pages
from gquery.device.copies import copied, copy_all, copy_into, queue_all
from gquery.device.device import Device
from gquery.device.file_copies import _pieces, read_files, send_files, write_files
from gquery.device.host_tier import HostTier, LockedBlock
from gquery.device.spill import SpillSpace, is_spilled, place_of
from gquery.errors import FileError, OutOfMemoryError
from gquery.execution import behind
from gquery.execution.tiers import put_below
from gquery.expression.types import BIGINT, PhysicalType
from gquery.kernels.builtin import moves
from gquery.operators.base import Frame
from tests.execution.test_tiers import LARGE, QUERIES, check_nothing_left, limited, tier_of
from tests.support.harness import compare, expect
from tests.support.played_gpu import Array, DriverError, Gpu
from tests.support.tuned import Tune

SIZES = [1, 511, 70_000, 100_003, 20_000]
DTYPES = ["u1", "i8", "f4", "i2", "i8"]


@pytest.fixture
def tier(tmp_path: Path, tune: Tune) -> HostTier:
    """Nothing but files, which arrays are copied to 4 kB at a time."""
    tune(tuning.transfers, buffer_bytes=4096, buffers=3, file_movers=4)
    tune(tuning.memory, least_spilled=1, stripe_bytes=50_000, stripes=3)
    return HostTier(Device("cpu", 1, 10**9), 0, SpillSpace(str(tmp_path)))


@pytest.fixture
def gpu(tune: Tune) -> Iterator[Gpu]:
    staging._staging.cache_clear()
    yield Gpu()
    staging._staging.cache_clear()


def open_files() -> int:
    """How many files are open, without those that earlier tests have left to the collector."""
    gc.collect()
    return descriptors()


def descriptors() -> int:
    """How many files are open. Every system that gquery's files are made on has this folder."""
    return len(os.listdir("/dev/fd"))


def arrays(seed: int = 1) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 100, n).astype(t) for n, t in zip(SIZES, DTYPES, strict=True)]


def in_files(tier: HostTier, given: list[Any]) -> list[Any]:
    """Room for arrays in files, each within a longer one."""
    return [tier.empty_spillable(a.size + 20, a.dtype)[9 : 9 + a.size] for a in given]


@pytest.mark.parametrize("several", [1, 4])
def test_arrays_come_back(tier: HostTier, monkeypatch: pytest.MonkeyPatch, several: int) -> None:
    monkeypatch.setattr("gquery.device.file_copies.core_count", lambda: several)
    come_back(tier)


def come_back(tier: HostTier) -> None:
    """Arrays are written to files and read again."""
    host, given = Device("cpu"), arrays()
    made = in_files(tier, given)
    assert all(place_of(m) is not None for m in made)
    write_files(list(zip(made, given, strict=True)), host)
    for m, array in zip(made, given, strict=True):
        assert np.array_equal(m, array)  # as it is mapped, too
    back = [np.empty_like(a) for a in given]
    read_files(list(zip(back, made, strict=True)), host)
    assert all(np.array_equal(a, b) for a, b in zip(back, given, strict=True))


def test_what_lies_around_an_array_stays(tier: HostTier) -> None:
    whole = tier.empty_spillable(9000, np.int64)
    copy_into(whole, tier, np.arange(9000), Device("cpu"))
    copy_into(whole[3000:6001], tier, np.full(3001, -1), Device("cpu"))
    want = np.arange(9000)
    want[3000:6001] = -1
    assert np.array_equal(copied(whole, tier, Device("cpu", 1)), want)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells which files are open")
def test_a_long_array_lies_in_several_files(tier: HostTier) -> None:
    """Each has one descriptor, which goes with the array; so does its memory."""
    opened = open_files()
    long, short = tier.empty_spillable(60_000, np.int64), tier.empty_spillable(6_000, np.int64)
    for array, files in ((long, 3), (short, 1)):
        place = place_of(array)
        assert place is not None and len(place.file.files) == files
        assert sum(os.fstat(f.descriptor).st_size for f in place.file.files) == array.nbytes
    del place
    assert len(os.listdir("/proc/self/fd")) == opened + 4
    view = long[100:]
    del long, short, array
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == opened + 3
    assert tier.spill is not None and tier.spill.taken == 480_000
    del view
    assert len(os.listdir("/proc/self/fd")) == opened and tier.spill.taken == 0


def test_a_part_of_an_array_lies_in_all_its_files(tier: HostTier, tune: Tune) -> None:
    """Whatever part is written at once: pieces that follow one another go to different files, so that no thread waits."""
    tune(tuning.memory, most_stripes=16)
    long = tier.empty_spillable(60_000, np.int64)  # 480,000 bytes in 16 pieces of 32,768
    place = place_of(long)
    assert place is not None and place.file.size == 32_768
    for low, high in ((0, 60_000), (1_000, 17_000), (30_001, 50_003)):
        part = long[low:high]
        pieces = _pieces([(np.zeros(high - low, np.int64), place_of(part))])
        files = [p.file for p in pieces]
        assert set(files) == set(place.file.files)
        assert all(len(set(files[n : n + 3])) == 3 for n in range(0, len(files) // 2, 3))
    ends = dict.fromkeys(place.file.files, 0)
    for at in range(0, long.nbytes, 32_768):  # each byte has a place of its own
        file, first, left = place.file.place(at)
        assert first == ends[file] and left == 32_768
        ends[file] += left
    values = np.random.default_rng(5).integers(0, 1 << 60, 60_000)
    copy_into(long, tier, values, Device("cpu"))
    assert np.array_equal(long, values)  # as it is mapped
    copy_into(long[7:50_001], tier, values[:49_994], Device("cpu"))
    assert np.array_equal(copied(long[6:], tier, Device("cpu", 1)), [values[6], *values[:49_994], *values[50_001:]])


@pytest.mark.parametrize("size", [4097, 12_289, 150_001, 479_999])
def test_arrays_of_any_size_in_files(tier: HostTier, tune: Tune, size: int) -> None:
    """Pieces are pages, so that some arrays have fewer of them than files."""
    tune(tuning.memory, stripe_bytes=4096, stripes=4)
    given = np.random.default_rng(size).integers(0, 256, size).astype(np.uint8)
    made = tier.empty_copied(size, np.uint8)
    copy_into(made, tier, given, Device("cpu"))
    place = place_of(made)
    assert place is not None and np.array_equal(made, given)
    assert all(os.fstat(f.descriptor).st_size > 0 for f in place.file.files)
    assert np.array_equal(tier.empty_spillable(size, np.uint8), np.zeros(size, np.uint8))


@pytest.mark.skipif(sys.platform != "linux", reason="as above")
def test_no_room_for_a_second_file(tier: HostTier, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long array of which the disk takes a part alone leaves none behind."""
    opened, calls, real = open_files(), itertools.count(), os.posix_fallocate

    def allocate(file: int, at: int, size: int) -> None:
        if next(calls) >= 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(file, at, size)

    monkeypatch.setattr(os, "posix_fallocate", allocate)
    with pytest.raises(OutOfMemoryError, match="No space left"):
        tier.empty_spillable(60_000, np.int64)
    gc.collect()
    assert tier.spill is not None and tier.spill.taken == 0
    assert len(os.listdir("/proc/self/fd")) == opened


def test_what_is_copied_is_not_allocated_first(tier: HostTier, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a page may be written through the mapping it has to be there; a write says itself that a disk is full."""
    allocated: list[int] = []
    monkeypatch.setattr(spill, "allocate", lambda file, size: allocated.append(size))
    made = copied(np.arange(60_000), Device("cpu"), tier)
    assert allocated == [] and np.array_equal(made, np.arange(60_000))
    tier.empty_spillable(60_000, np.int64)
    assert sum(allocated) == 480_000

    def full(*given: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OutOfMemoryError, match="No space left"):
        copied(np.arange(60_000), Device("cpu"), tier)
    del made
    gc.collect()
    assert tier.spill is not None and tier.spill.taken == 0


def test_some_in_files_and_others_in_memory(tier: HostTier) -> None:
    host, given = Device("cpu"), arrays(2)
    made = in_files(tier, given)
    made[1], made[4] = np.empty_like(given[1]), np.empty_like(given[4])
    copy_all(list(zip(made, given, strict=True)), tier, host)
    back = [np.empty_like(a) for a in given]
    copy_all(list(zip(back, made, strict=True)), host, tier)
    assert all(np.array_equal(a, b) for a, b in zip(back, given, strict=True))
    pieces = [made[1], made[4][:7], made[1][:0]]
    pieces = [p.astype("i8") for p in pieces] + [made[4].astype("i8")]
    copy_into(filed := tier.empty_spillable(500, "i8"), tier, np.arange(500), host)
    one = np.empty(sum(p.size for p in pieces) + 400, "i8")
    queue_all([(one, [*pieces, filed[100:]])], host)
    assert np.array_equal(one, np.concatenate([*pieces, np.arange(100, 500)]))


def test_strides_are_copied_as_they_are(tier: HostTier) -> None:
    made = tier.empty_spillable(500, np.int64)
    copy_into(made, tier, np.arange(1000)[::2], Device("cpu"))
    assert np.array_equal(made, np.arange(0, 1000, 2))
    assert place_of(made[::2]) is None and place_of(made[1:]) is not None
    back = np.empty(250, np.int64)
    copy_into(back, Device("cpu"), made[::2], tier)
    assert np.array_equal(back, np.arange(0, 1000, 4))


@pytest.fixture(params=["interpreter", "movers"])
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What moves pieces to a GPU and from it."""
    kernels = moves.Kernels() if request.param == "movers" else None
    monkeypatch.setattr("gquery.device.movers._find", lambda: kernels)
    return str(request.param)


@pytest.mark.parametrize("several", [1, 4])
def test_a_gpu_through_page_locked_buffers(
    tier: HostTier, gpu: Gpu, monkeypatch: pytest.MonkeyPatch, several: int, by: str
) -> None:
    """Copies end when somebody waits: what is written has arrived, and a buffer is not filled again before it was fetched."""
    monkeypatch.setattr("gquery.device.file_copies.core_count", lambda: several)
    given = arrays(3)
    made = in_files(tier, given)
    there: list[Any] = [Array(a) for a in given]
    write_files(list(zip(made, there, strict=True)), gpu)
    assert all(np.array_equal(m, a) for m, a in zip(made, given, strict=True))
    back: list[Any] = [Array(np.zeros_like(a)) for a in given]
    read_files(list(zip(back, made, strict=True)), gpu)
    assert all(np.array_equal(b.values, a) for b, a in zip(back, given, strict=True))
    assert gpu.played.drained == 1 and not gpu.played.pending


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the movers were asked for."""
    asked = list[str]()

    class Seen(moves.Kernels):
        def send(self, job: Any) -> int:
            asked.append("send")
            return super().send(job)

        def receive(self, job: Any) -> int:
            asked.append("receive")
            return super().receive(job)

    kernels = Seen()
    monkeypatch.setattr("gquery.device.movers._find", lambda: kernels)
    monkeypatch.setattr("gquery.device.file_copies.core_count", lambda: 4)
    return asked


def on_gpu(values: np.ndarray) -> Any:
    """An array of the played GPU, which stands for one of CuPy."""
    return Array(values)


def test_movers_are_asked_once_a_thread(tier: HostTier, gpu: Gpu, moved: list[str]) -> None:
    """However many pieces there are: no thread comes back to the interpreter between two."""
    given = np.arange(60_000)
    made, back = tier.empty_copied(60_000, np.int64), on_gpu(np.zeros(60_000, np.int64))
    write_files([(made, on_gpu(given))], gpu)
    assert moved == ["receive"] * 4 and np.array_equal(made, given)
    read_files([(back, made)], gpu)
    assert moved[4:] == ["send"] * 4 and np.array_equal(back.values, given)


def test_what_the_movers_cannot_do(tier: HostTier, gpu: Gpu, moved: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's error is that of the piece, moved once more plainly; where that succeeds, the others go on. A copy that the
    driver refuses is its error."""
    given = np.arange(60_000)
    made, there = tier.empty_copied(60_000, np.int64), on_gpu(given)
    refusing = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * 4)(lambda *_: -1)
    address = ctypes.cast(refusing, ctypes.c_void_p).value
    with monkeypatch.context() as patch:
        patch.setattr(staging, "native_calls", lambda: (address, address))
        write_files([(made, there)], gpu)
    assert len(moved) > 100 and np.array_equal(made, given)
    place = place_of(made)
    assert place is not None
    os.ftruncate(place.file.files[1].descriptor, 9000)
    for back in (on_gpu(np.zeros(60_000, np.int64)), on_gpu(np.zeros(60_000, np.int64))):
        with pytest.raises(FileError, match="cannot be read .*Input/output error"):
            read_files([(back, made)], gpu)
        assert not gpu.played.pending
    gpu.played.failing = 7
    with pytest.raises(DriverError, match="7"):
        write_files([(made, there)], gpu)
    with pytest.raises(DriverError, match="7"):
        send_files([(back.data.ptr, given)], gpu)
    gpu.played.failing = 0
    write_files([(made, there)], gpu)  # the buffers are there still
    assert np.array_equal(made, given)
    reading = os.open(f"/proc/self/fd/{place.file.files[2].descriptor}", os.O_RDONLY)
    os.dup2(reading, place.file.files[2].descriptor)
    os.close(reading)
    with pytest.raises(OutOfMemoryError, match="cannot be written .*Bad file descriptor"):
        write_files([(made, there)], gpu)


def test_a_system_that_takes_and_gives_less(tier: HostTier, monkeypatch: pytest.MonkeyPatch) -> None:
    write, read = os.pwrite, os.preadv
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: write(file, data[:1000], at))
    monkeypatch.setattr(os, "preadv", lambda file, rooms, at: read(file, [rooms[0][:700]], at))
    monkeypatch.setattr("gquery.device.file_copies.core_count", lambda: 4)
    come_back(tier)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells which pages are mapped")
def test_no_page_is_mapped(tier: HostTier) -> None:
    """Arrays go to files and come back without a fault for each page."""
    made = copied(np.arange(100_000), Device("cpu"), tier)
    assert is_spilled(made)
    back = copied(made, tier, Device("cpu", 1))
    assert np.array_equal(back, np.arange(100_000))
    at = made.ctypes.data
    text = Path("/proc/self/smaps").read_text(encoding="utf-8")
    (found,) = (
        re.search(r"^Rss: +([0-9]+) kB", area, re.MULTILINE)
        for line, area in itertools.pairwise(re.split(r"^([0-9a-f]+-[0-9a-f]+ .*)$", text, flags=re.MULTILINE))
        if re.match(r"[0-9a-f]+-", line) and int(line.split("-")[0], 16) <= at < int(line.split("-")[1].split()[0], 16)
    )
    assert found is not None and int(found[1]) == 0


def test_files_are_not_locked_into_memory(tier: HostTier) -> None:
    seen: list[int] = []
    runtime = SimpleNamespace(
        hostRegister=lambda *given: seen.append(given[1]), hostUnregister=lambda _: None, CUDARuntimeError=OSError
    )
    device: Any = SimpleNamespace(is_cpu=False, xp=SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))
    size = tuning.streaming.locked_bytes // 8
    lock_pages(device, tier.empty_spillable(size, np.int64))
    assert seen == []
    own = np.zeros(size, np.int64)
    lock_pages(device, own)
    assert seen == [own.nbytes]


def test_memory_that_is_not_page_locked_goes_through_buffers(gpu: Gpu, tune: Tune, by: str) -> None:
    """Long arrays of the host come to a GPU piece by piece, on several threads; page-locked ones, and small ones, at once."""
    tune(tuning.transfers, buffer_bytes=4096, buffers=3, file_movers=4, staged_bytes=5000)
    given, at_once = np.arange(10_000), np.arange(600)
    locked: Any = np.asarray(LockedBlock(SimpleNamespace(ptr=given.ctypes.data), 80_000, 80_000, deque())).view("i8")
    assert is_page_locked(locked) and is_page_locked(locked[5:]) and not is_page_locked(given)
    to: list[Any] = [on_gpu(np.zeros(n, "i8")) for n in (10_000, 9_000)]
    copy_all([(to[0], given), (to[1], given[1000:])], gpu, Device("cpu"))
    assert np.array_equal(to[0].values, given) and np.array_equal(to[1].values, given[1000:])
    assert gpu.played.drained == 1 and not gpu.played.pending
    began: list[int] = []
    runtime = gpu.played.cuda.runtime
    runtime.memcpyAsync = lambda *given: began.append(given[2])
    gpu.played.cuda.get_current_stream = lambda ordinal: SimpleNamespace(ptr=1)
    queue_all([(to[0], [locked, at_once])], gpu)
    assert began == [80_000, 4800]


def test_frames_go_to_the_tier_behind_the_next_one(tier: HostTier, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is on its way while the next is made; all have arrived at the end, and an error is that of the first one."""
    device, going, ended = Device("cpu", 1, 10**9), threading.Event(), list[int]()
    device.below = tier

    def put(moved: Frame, device: Device, label: str) -> Frame:
        assert going.wait(60)
        ended.append(moved.rows)
        if moved.rows == 13:
            raise OutOfMemoryError("thirteen")
        return moved

    monkeypatch.setattr(behind, "put_below", put)
    monkeypatch.setattr(behind, "core_count", lambda: 2)
    with behind.Behind(device, "test") as moving:
        moving.move(Frame({}, 1))
        assert ended == []
        going.set()
        moving.move(Frame({}, 2))
    assert ended == [1, 2]
    for frames in ([13], [5, 13, 7], [13, 6]):
        with pytest.raises(OutOfMemoryError, match="thirteen"), behind.Behind(device, "test") as moving:
            for rows in frames:
                moving.move(Frame({}, rows))
    assert ended == [1, 2, 13, 5, 13, 13]
    tries = list[int]()

    def making() -> int:
        tries.append(len(ended))
        if len(tries) < 2:
            raise OutOfMemoryError("no room")
        return 5

    with behind.Behind(device, "test") as moving:
        with pytest.raises(OutOfMemoryError, match="no room"):
            moving.made(making)  # nothing is on its way that would make room
        tries.clear()
        moving.move(Frame({}, 3))
        assert moving.made(making) == 5 and tries[-1] == 7
    del ended[-1]
    going.clear()
    with pytest.raises(KeyError), behind.Behind(device, "test") as moving:
        moving.move(Frame({}, 13))
        going.set()
        raise KeyError
    assert ended[-1] == 13 and len(ended) == 7


@pytest.mark.parametrize("sql", QUERIES[:3])
@pytest.mark.parametrize("call", ["pwrite", "preadv"])
def test_a_disk_that_fails(sql: str, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error with the setting's name and the system's words; what was written is given back, and the next run is right."""
    types, want = expect(sql, LARGE)
    db = limited("cpu", "files", tmp_path, LARGE, "700kB")
    real, calls = getattr(os, call), itertools.count()

    def counted(*given: Any) -> Any:
        next(calls)
        return real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, counted)
        db.sql(sql).fetchall()
    most = next(calls)
    assert most > 10
    for turn in (0, most // 2, most - 1):
        left = itertools.count()

        def failing(*given: Any, turn: int = turn, left: Iterator[int] = left) -> Any:
            if next(left) == turn:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(*given)

        with monkeypatch.context() as patch:
            patch.setattr(os, call, failing)
            error = OutOfMemoryError if call == "pwrite" else FileError
            with pytest.raises(error, match="spill_directory cannot be .*Input/output error"):
                db.sql(sql).fetchall()
        check_nothing_left(db, tmp_path)
    assert compare(db.sql(sql).fetchall(), want, "ORDER BY" in sql, types) is None
    gc.collect()


def test_ctrl_c_while_others_are_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The arrays stay until all have ended; then it is raised."""
    going, ended = threading.Event(), list[int]()

    def work(number: int) -> None:
        if number:
            assert going.wait(60)
            ended.append(number)

    real, waits = concurrent.futures.wait, itertools.count()

    def wait(others: Any) -> Any:
        if next(waits) < 2:
            going.set()
            raise KeyboardInterrupt
        return real(others)

    monkeypatch.setattr(concurrent.futures, "wait", wait)
    with pytest.raises(KeyboardInterrupt):
        file_copies._on_threads(work, 3, "read")
    assert sorted(ended) == [1, 2]


def test_columns_of_a_frame_share_files(tier: HostTier) -> None:
    """However many there are, of any width: the files go with the last of them."""
    device, rng = Device("cpu", 1, 10**9), np.random.default_rng(4)
    device.below = tier
    given = [rng.integers(0, 100, n).astype(t) for n in (0, 1, 700, 5003) for t in ("u1", "i2", "f4", "i8")]
    opened = open_files()
    columns = {n: ColumnData(BIGINT, PhysicalType.I64, len(a), Buffer(a.copy(), device)) for n, a in enumerate(given)}
    moved = put_below(Frame(columns, 5003), device, "test")
    assert descriptors() <= opened + 3
    arrays = [c.data.on(tier) for c in moved.columns.values()]
    assert all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(arrays, given, strict=True))
    assert all(place_of(a) is not None for a in arrays if a.size)
    last = arrays[-1]
    del columns, moved, arrays
    gc.collect()
    assert tier.spill is not None and tier.spill.taken > 0 and np.array_equal(last, given[-1])
    del last
    assert tier.spill.taken == 0 and descriptors() == opened


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t ORDER BY c3, k LIMIT 3 OFFSET 30000",
        f"SELECT {', '.join(f'max(t.c{n} + u.c{n})' for n in range(6))} FROM t JOIN u ON t.k = u.k",
    ],
)
def test_few_files_are_open_at_once(sql: str, tmp_path: Path) -> None:
    """Many columns, in many slices: less than a process may have by itself on many systems."""
    import resource

    rng = np.random.default_rng(8)
    table = pa.table({"k": rng.permutation(60_000) << 30} | {f"c{n}": rng.integers(0, 1 << 40, 60_000) for n in range(20)})
    types, want = expect(sql, {"t": table, "u": table})
    db = limited("cpu", "files", tmp_path, {"t": table, "u": table}, "2MB")
    db.sql("SELECT 1").fetchall()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors() + 120, hard))
    try:
        got = db.sql(sql).fetchall()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert compare(got, want, "ORDER BY" in sql, types) is None
    below = tier_of(db)
    assert below.spill is not None and below.spill.account.peak > 1_000_000
