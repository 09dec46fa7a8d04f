"""Copies between GPUs: their order against what else is queued, on streams that run when they like, and the copies themselves."""

from __future__ import annotations

import ctypes
import random
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gquery import tuning
from gquery.device import peer
from gquery.device.buffer import Buffer, device_of
from gquery.device.copies import copied, copy_into, nearest
from gquery.device.device import Device, cpu_device, cuda_device
from gquery.distributed.movable import concatenated, moved
from gquery.errors import DeviceError
from tests.distributed.test_movable import KINDS, column_of, frame_of, values_of, with_nulls
from tests.support.tuned import Tune

# ---- order, without a GPU -------------------------------------------------------------------------------------------


class Stream:
    """What was queued: each is a test whether it may run, and what it does. ``ptr`` is its number."""

    def __init__(self, number: int) -> None:
        self.ptr = number
        self.queue: deque[tuple[Callable[[], bool], Callable[[], object]]] = deque()

    def add(self, work: Callable[[], object], may_run: Callable[[], bool] = lambda: True) -> None:
        self.queue.append((may_run, work))

    def wait_event(self, event: Event) -> None:
        recorded = event.recorded  # the last record so far counts, a later one does not
        self.add(lambda: None, lambda: recorded is None or bool(recorded))


class Event:
    def __init__(self, disable_timing: bool) -> None:
        self.recorded: list[int] | None = None

    def record(self, stream: Stream) -> None:
        self.recorded = mine = []
        stream.add(lambda: mine.append(1))


class Machine:
    """Two GPUs whose memory is the host's; streams run in any order that events allow."""

    def __init__(self, has_access: bool) -> None:
        self.streams = [Stream(0), Stream(1)]
        self.runtime = SimpleNamespace(
            memcpyAsync=self._copy, memcpyDefault=4, memcpyDeviceToHost=2, memcpyHostToDevice=1,
            deviceCanAccessPeer=lambda a, b: int(has_access), deviceEnablePeerAccess=self._enable, CUDARuntimeError=OSError,
        )  # fmt: skip
        cuda = SimpleNamespace(
            runtime=self.runtime, Event=Event, alloc_pinned_memory=bytearray,
            get_current_stream=lambda ordinal: self.streams[ordinal],
        )  # fmt: skip
        self.enabled: list[int] = []
        self.devices: list[Any] = [FakeGpu(n, cuda) for n in (0, 1)]

    def _enable(self, ordinal: int) -> None:
        self.enabled.append(ordinal)

    def _copy(self, to: int, source: int, size: int, kind: int, stream: int) -> None:
        self.streams[stream].add(lambda: ctypes.memmove(to, source, size))

    def run(self, order: random.Random) -> None:
        """Until all is done."""
        while True:
            ready = [s for s in self.streams if s.queue and s.queue[0][0]()]
            if not ready:
                break
            order.choice(ready).queue.popleft()[1]()
        assert not any(s.queue for s in self.streams), "streams wait for each other"


class FakeGpu:
    def __init__(self, ordinal: int, cuda: Any) -> None:
        self.ordinal, self.xp, self.activate = ordinal, SimpleNamespace(cuda=cuda), nullcontext
        self.is_cpu = False


def as_gpu(array: Any) -> Any:
    return SimpleNamespace(data=SimpleNamespace(ptr=int(array.ctypes.data)), nbytes=array.nbytes)


@pytest.mark.parametrize("has_access", [True, False])
@pytest.mark.parametrize("seed", range(40))
def test_copies_keep_their_order(seed: int, has_access: bool, tune: Tune) -> None:
    """The source is written before each copy and right behind it, what was copied is read behind it, several times."""
    tune(tuning.transfers, buffer_bytes=64, bridge_buffers=3)
    order, machine = random.Random(seed), Machine(has_access)
    first, second = machine.devices
    source, target = (np.zeros(order.choice((1, 63, 64, 65, 500, 1000)), np.uint8) for _ in range(2))
    target = np.zeros_like(source)
    values = [np.array([order.randrange(255) for _ in source], np.uint8) for _ in range(5)]
    read = []
    for value in range(5):
        machine.streams[0].add(partial(np.copyto, source, values[value]))
        peer.copy_between(as_gpu(target), second, as_gpu(source), first)
        machine.streams[0].add(lambda: source.fill(255))
        machine.streams[1].add(lambda: read.append(target.tolist()))
        machine.streams[1].add(lambda: target.fill(0))
        if order.random() < 0.3:
            machine.run(order)
    machine.run(order)
    assert read == [v.tolist() for v in values]
    assert machine.enabled == ([0, 1] if has_access else [])


@pytest.mark.parametrize("has_access", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_ranks_order_their_streams_by_marks(seed: int, has_access: bool) -> None:
    """Each of two GPUs writes, hands over, reads what came, and writes over what it handed over before the last time."""
    order, machine = random.Random(seed), Machine(has_access)
    handed = [[np.zeros(9, np.uint8) for _ in range(2)] for _ in range(2)]
    came = [np.zeros(9, np.uint8) for _ in range(2)]
    read: list[list[set[int]]] = [[], []]

    def look(n: int) -> None:
        read[n].append(set(came[n].tolist()))

    for step in range(6):
        for n in (0, 1):
            machine.streams[n].add(partial(handed[n][step % 2].fill, 10 * step + n))
        marks = [peer.mark(d) for d in machine.devices]
        for n, device in enumerate(machine.devices):
            peer.wait_for(device, marks[1 - n])
            with peer.in_step():
                theirs = handed[1 - n][step % 2]
                peer.copy_between(as_gpu(came[n]), device, as_gpu(theirs), machine.devices[1 - n])
            machine.streams[n].add(partial(look, n))
        if order.random() < 0.3:
            machine.run(order)
    machine.run(order)
    assert read == [[{10 * step + 1 - n} for step in range(6)] for n in (0, 1)]


# ---- on GPUs --------------------------------------------------------------------------------------------------------


@pytest.fixture
def gpus() -> tuple[Device, Device]:
    try:
        return cuda_device(0), cuda_device(1)
    except DeviceError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["link", "bridge"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "bridge":
        monkeypatch.setattr(peer, "has_peer_access", lambda one, other: False)


@pytest.mark.cuda
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float64"])
@pytest.mark.parametrize("size", [0, 1, 1000, 5_000_001, 40_000_000])
def test_buffers_go_from_gpu_to_gpu(gpus: tuple[Device, Device], size: int, dtype: str) -> None:
    first, second = gpus
    host = np.arange(size).astype(dtype)
    buffer = Buffer(Buffer(host).on(first), first)
    array = buffer.on(second)
    assert device_of(array) == second and buffer.devices == (first, second)
    assert (second.to_host(array) == host).all() and (first.to_host(buffer.on(first)) == host).all()


@pytest.mark.cuda
@pytest.mark.usefixtures("way")
def test_a_copy_waits_and_is_waited_for(gpus: tuple[Device, Device]) -> None:
    """The source is written by slow work before, and again right behind; its memory is let go of at once."""
    first, second = gpus
    found = []
    for value in range(20):
        with first.activate():
            source = first.xp.zeros(30_000_000, np.int64)
            for _ in range(10):
                source += 1
            source += value
        found.append(copied(source, first, second))
        with first.activate():
            source.fill(-1)
        del source
    for value, array in enumerate(found):
        with second.activate():
            assert int(array.min()) == int(array.max()) == 10 + value


@pytest.mark.cuda
def test_copies_come_from_where_it_is_near(gpus: tuple[Device, Device]) -> None:
    first, second = gpus
    near = first if peer.has_peer_access(second, first) else cpu_device()
    assert nearest((cpu_device(), first), second) == near
    assert nearest((first,), second) == first and nearest((first, second), cpu_device()) == first


@pytest.mark.cuda
@pytest.mark.parametrize("ordinals", [(0,), (0, 1)])
@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
@pytest.mark.parametrize("seed", range(8))
def test_frames_of_gpus(kind: Callable[..., Any], seed: int, ordinals: tuple[int, ...]) -> None:
    """Pieces of every type from GPUs and the host, together on each of them."""
    try:
        devices = [cpu_device(), *(cuda_device(n) for n in ordinals)]
    except DeviceError as error:
        pytest.skip(str(error))
    order = random.Random(f"{kind.__name__} {seed}")
    pieces = [column_of(with_nulls(order, kind(order, n))) for n in (0, 7, 300, 40)]
    expected = [v for p in pieces for v in values_of(p)]
    frames = [moved(frame_of(p), order.choice(devices)) for p in pieces]
    for device in devices:
        whole = concatenated(frames, (), device)
        assert all(b.devices == (device,) for b in whole.columns[0].buffers)
        assert values_of(moved(whole, cpu_device()).columns[0]) == expected
        for other in devices:
            assert values_of(moved(whole, other).columns[0]) == expected


@pytest.mark.cuda
def test_copies_within_one_gpu_and_the_host() -> None:
    first = cuda_device(0)
    host = np.arange(1000, dtype=np.int32)
    array = copied(host, cpu_device(), first)
    again = first.empty(1000, np.int32)
    copy_into(again, first, array, first)
    assert (copied(again, first, cpu_device()) == host).all()
