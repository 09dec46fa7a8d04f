"""The arena of a GPU: the memory, the stream and the page-locked bytes that recorded runs share.

A recorded run (`execution.replay`) is a CUDA graph: launches with the addresses that they had when they were recorded. Its memory
must not go back to the pool that others take from. So all recorded runs of a GPU take theirs from one arena, and run one after
another on its stream: each may overwrite what the ones before left there, and the arena is as large as the largest of them.
Whoever runs one holds ``lock`` until the result is copied out. A run of several GPUs is one graph with launches on all of them,
which is launched on the first one's stream; it has memory of all their arenas, and holds all their locks.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from gquery.device.array import READ_AHEAD, Array, on_gpu
from gquery.device.graph import RecordedGraph
from gquery.runtime.tuples import NamedTuple

_ALIGNMENT = 16  # of what is sent together: the largest that a load asks for


class Sent(NamedTuple):
    """Arrays that were copied to a GPU: where each is, in so many bytes of memory that go with ``held``."""

    places: list[int]
    held: Any
    room: int


class Holder(Protocol):
    """What holds memory of an arena: a recorded run."""

    def release(self) -> None:
        """Let go of it for good; the caller has the arena's lock."""


class Arena:
    """See above; made by `arena_of`. Needs CuPy and the GPU ``ordinal``. ``stream`` is the one that recorded runs run on."""

    def __init__(self, ordinal: int) -> None:
        import cupy

        self._cuda: Any = cupy.cuda
        self._usual = cupy.get_default_memory_pool()
        self.ordinal = ordinal
        self.lock = threading.RLock()
        with cupy.cuda.Device(ordinal):
            self._pool = cupy.cuda.MemoryPool(self._take)
            self.stream = cupy.cuda.Stream(non_blocking=True)
            self._beside = cupy.cuda.Stream(non_blocking=True)
        self._pinned: Array = np.empty(0, np.uint8)
        self._pinned_at = 0
        self._outgoing: Array = np.empty(0, np.uint8)
        self._taken: set[int] = set()
        self._is_recording = False
        self._ran_out = False
        self._holders: weakref.WeakSet[Holder] = weakref.WeakSet()

    @contextmanager
    def held(self) -> Iterator[bool]:
        """Within it, this thread has the arena to itself; False where another thread has it, which is not waited for."""
        is_held = self.lock.acquire(blocking=False)
        try:
            yield is_held
        finally:
            if is_held:
                self.lock.release()

    @property
    def is_recording(self) -> bool:
        """Whether a run is being recorded: nobody may wait for the GPU meanwhile."""
        return self._is_recording

    def wait(self) -> None:
        """Until all that is queued on the GPU, on any stream, has run."""
        with self._cuda.Device(self.ordinal):
            self._cuda.runtime.deviceSynchronize()

    @contextmanager
    def recording(self) -> Iterator[list[RecordedGraph]]:
        """Within it, what this thread launches is recorded and does not run, and its arrays come from the arena. Afterwards the
        list has the graph; it is empty where memory ran out meanwhile. An exception ends the recording."""
        made: list[RecordedGraph] = []
        self._taken.clear()
        self._is_recording, self._ran_out = True, False
        try:
            with self._captured(made):
                yield made
        finally:
            self._is_recording = False
        if self._ran_out:  # CuPy's pool has freed blocks that recordings use
            made.clear()
            self.release_all()

    @contextmanager
    def recording_with(self, first: Arena) -> Iterator[None]:
        """Within it, what is launched on this arena's stream becomes part of what ``first`` records. MemoryError where memory ran
        out meanwhile: nobody may use the recording then."""
        self._taken.clear()
        self._is_recording, self._ran_out = True, False
        try:
            self._follow(first)
            yield
            first._follow(self)
        finally:
            self._is_recording = False
            if self._ran_out:
                self.release_all()
        if self._ran_out:
            raise MemoryError("memory has run out")

    @contextmanager
    def taking(self) -> Iterator[None]:
        """Within it, this thread's arrays come from the arena, and what it launches goes to the arena's stream."""
        with self._cuda.using_allocator(self._allocate), self.stream:
            yield

    def _follow(self, other: Arena) -> None:
        """Have this stream go on when all that was queued on the other one has run."""
        with self._cuda.Device(other.ordinal):
            event = self._cuda.Event(disable_timing=True)
            event.record(other.stream)
        with self._cuda.Device(self.ordinal):
            self.stream.wait_event(event)

    @contextmanager
    def _captured(self, made: list[RecordedGraph]) -> Iterator[None]:
        with self.taking():
            self.stream.begin_capture()
            try:
                yield
            except BaseException:
                self._abandon()
                raise
            runtime = self._cuda.runtime
            made.append(RecordedGraph(runtime, runtime.streamEndCapture(self.stream.ptr)))

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Within it, in the midst of a recording too, this thread's arrays come from the usual pool and its copies are done, not
        recorded; at its end they have arrived."""
        with self._cuda.using_allocator(self._usual.malloc), self._beside:
            yield
            self._beside.synchronize()

    def owns(self, array: Array) -> bool:
        """Whether an array's memory was taken from the arena since the last recording began."""
        return on_gpu(array).data.mem.ptr in self._taken

    def copy(self, to: int, source: int, size: int) -> None:
        """Queue, or record, a copy of bytes between addresses of the GPU."""
        runtime = self._cuda.runtime
        runtime.memcpyAsync(to, source, size, runtime.memcpyDeviceToDevice, self.stream.ptr)

    def begin_fetch(self, source: int, size: int) -> None:
        """Queue a copy of bytes of the GPU to the host, where `end_fetch` finds them."""
        if self._pinned.size < size:
            self._pinned = np.frombuffer(self._cuda.alloc_pinned_memory(2 * size), np.uint8, 2 * size)
            self._pinned_at = int(self._pinned.ctypes.data)
        runtime = self._cuda.runtime
        runtime.memcpyAsync(self._pinned_at, source, size, runtime.memcpyDeviceToHost, self.stream.ptr)

    def end_fetch(self, into: Array, wait: Callable[[Callable[[], None]], None]) -> None:
        """Bytes that are fetched (uint8), once the stream has come so far; ``wait`` is handed what waits."""
        wait(self.stream.synchronize)
        into[:] = self._pinned[: into.size]

    def send(self, arrays: Sequence[Array], before: Sent | None = None) -> Sent:
        """Queue a copy of arrays of the host, to where those ``before`` lie if there is room; before another one the stream is
        waited for."""
        if not arrays:
            return Sent([], None, 0) if before is None else before._replace(places=[])
        starts, size = [], 0
        for array in arrays:
            starts.append(size)
            size = -(-(size + array.nbytes + READ_AHEAD) // _ALIGNMENT) * _ALIGNMENT
        if self._outgoing.size < size:
            self._outgoing = np.frombuffer(self._cuda.alloc_pinned_memory(2 * size), np.uint8, 2 * size)
        for start, array in zip(starts, arrays, strict=True):
            self._outgoing[start : start + array.nbytes] = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
        if before is not None and before.room >= size:
            memory, room = before.held, before.room
        else:
            room = 2 * size
            with self.stream:
                memory = self._usual.malloc(room)
        runtime, first = self._cuda.runtime, int(memory.ptr)
        runtime.memcpyAsync(first, int(self._outgoing.ctypes.data), size, runtime.memcpyHostToDevice, self.stream.ptr)
        return Sent([first + start for start in starts], memory, room)

    def set_flag(self, address: int) -> None:
        """Set a word of the GPU that kernels look at, beside what runs, and wait until that has ended."""
        self._cuda.runtime.memsetAsync(address, 1, 1, self._beside.ptr)
        self.stream.synchronize()

    @property
    def nbytes(self) -> int:
        """Bytes that the arena takes of the GPU."""
        return int(self._pool.total_bytes())

    def add(self, holder: Holder) -> None:
        """Have a recorded run released when memory runs out."""
        self._holders.add(holder)

    def release_all(self) -> None:
        """Let go of all recorded runs, and give the arena's memory back; not in the midst of a recording, which counts on it."""
        with self.lock:
            if self._is_recording:
                return
            for holder in list(self._holders):
                holder.release()
            self._holders.clear()
            self._pool.free_all_blocks()

    def _take(self, size: int) -> Any:
        """Memory for the pool."""
        try:
            return self._cuda.MemoryPointer(self._cuda.Memory(size), 0)
        except self._cuda.runtime.CUDARuntimeError:
            self._ran_out = True
            raise

    def _allocate(self, size: int) -> Any:
        memory = self._pool.malloc(size)
        self._taken.add(int(memory.mem.ptr))
        return memory

    def _abandon(self) -> None:
        try:
            self._cuda.runtime.graphDestroy(self._cuda.runtime.streamEndCapture(self.stream.ptr))
        except self._cuda.runtime.CUDARuntimeError:
            return  # something in it has ended it already


_arenas: dict[int, Arena] = {}
_lock = threading.Lock()


def arena_of(ordinal: int) -> Arena:
    """The arena of a GPU, made when it is first asked for."""
    with _lock:
        if ordinal not in _arenas:
            _arenas[ordinal] = Arena(ordinal)
        return _arenas[ordinal]


def reclaimable_bytes(ordinal: int) -> int:
    """Bytes that `release_recordings` would give back."""
    arena = _arenas.get(ordinal)
    return 0 if arena is None else arena.nbytes


def release_recordings(ordinal: int) -> None:
    """Let go of the recorded runs of a GPU, where there are any: memory has run out."""
    arena = _arenas.get(ordinal)
    if arena is not None:
        arena.release_all()
