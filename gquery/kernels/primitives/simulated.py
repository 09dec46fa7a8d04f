"""The GPU's intrinsics over NumPy arrays, for Numba's CUDA simulator, which has neither shuffles nor intrinsics.

A warp of the simulator is a block of up to 32 threads that run one after another between barriers; `Block` holds what
they share. Only tests use it; the names make `kernels.primitives.warp` importable anywhere.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from gquery.kernels.primitives.python.values import Pointer


class Block:
    """Threads of one block: what they exchange, private and shared words, and barrier."""

    def __init__(self, threads: int, words: int = 0, shared: int = 0) -> None:
        self.threads = threads
        self.exchanged: list[Any] = [0] * threads
        self.private = [[0] * threads for _ in range(words)]
        self.shared = np.full(shared, -1, np.int64)  # what a block finds there is anything
        self.barrier = threading.Barrier(threads)
        self.lock = threading.Lock()
        self.meeting = threading.Condition()
        self.votes: dict[int, Vote] = {}  # by warp


class Vote:
    """What the lanes of a warp that came so far have said."""

    def __init__(self, members: int) -> None:
        self.members = members
        self.arrived: int = 0
        self.word: int = 0


_own = threading.local()


def enter(block: Block, thread: int) -> None:
    """Say which thread of which block the calling thread plays."""
    _own.block, _own.thread = block, thread


def lane() -> int:
    """The number of the thread in its warp, 0 to 31."""
    return int(_own.thread) % 32


def is_first_lane_with(key: int) -> bool:
    """Whether no lane before this one that came here with it has the same key: here each comes alone."""
    return True


def _shuffle_down(value: Any, offset: int) -> Any:
    block, thread = _own.block, _own.thread
    block.barrier.wait()
    block.exchanged[thread] = value
    block.barrier.wait()
    source = thread + offset
    return block.exchanged[source if source % 32 > thread % 32 and source < block.threads else thread]


def shuffle_down_i64(value: int, offset: int) -> int:
    """The integer of the lane that is ``offset`` further; the lane's own where there is none."""
    return int(_shuffle_down(value, offset))


def shuffle_down_f64(value: float, offset: int) -> float:
    """The double of the lane that is ``offset`` further; the lane's own where there is none."""
    return float(_shuffle_down(value, offset))


def members(row: int, end: int) -> int:
    """A bit for each lane of the warp whose row is before ``end``."""
    left = end - (row & ~31)
    return (1 << min(left, 32)) - 1


def ballot(lanes: int, vote: bool) -> int:
    """Waits until all of ``lanes`` came; a lane that does not belong, or says otherwise who does, is an error."""
    block, warp, own = _own.block, _own.thread // 32, 1 << lane()
    with block.meeting:
        here: Vote = block.votes.setdefault(warp, Vote(lanes))
        assert here.members == lanes, f"members {lanes:08x} and {here.members:08x}"
        assert lanes & own & ~here.arrived, f"lane {lane()} is no member of {lanes:08x}, or came twice"
        here.arrived |= own
        here.word |= own * vote
        if here.arrived == lanes:
            del block.votes[warp]
            block.meeting.notify_all()
        else:
            assert block.meeting.wait_for(lambda: here.arrived == lanes, timeout=20), "a lane did not come"
    return here.word


def lanes_alike(lanes: int, x: int, k: int) -> int:
    """Those of ``lanes`` that have the same bit ``k`` in ``x`` as the calling one. All lanes of the warp come here."""
    votes = ballot(2**32 - 1, x >> k & 1 == 1)
    return lanes & (votes if x >> k & 1 else ~votes)


def lanes_before(lanes: int) -> int:
    """How many of ``lanes`` come before the calling one."""
    return (lanes & ((1 << lane()) - 1)).bit_count()


def lane_count(lanes: int) -> int:
    """How many lanes there are."""
    return lanes.bit_count()


def warp_barrier() -> None:
    """Waits until all lanes of the warp are here."""
    ballot(2**32 - 1, True)


def private_load(word: int) -> int:
    """A 64-bit word of the thread's own in shared memory."""
    return int(_own.block.private[word][_own.thread])


def private_store(word: int, value: int) -> None:
    """Sets a 64-bit word of the thread's own in shared memory."""
    _own.block.private[word][_own.thread] = value


def block_thread() -> int:
    """The number of the thread in its block."""
    return int(_own.thread)


def block_threads() -> int:
    """How many threads the block has."""
    return int(_own.block.threads)


def block_barrier() -> None:
    """Waits until all threads of the block are here."""
    _own.block.barrier.wait()


def shared_load_i64(word: int) -> int:
    """A 64-bit word of the block's shared memory."""
    return int(_own.block.shared[word])


def shared_store_i64(word: int, value: int) -> None:
    """Sets a 64-bit word of the block's shared memory."""
    _own.block.shared[word] = value


def shared_load_u32(index: int) -> int:
    """A 32-bit word of the block's shared memory."""
    return int(_own.block.shared.view(np.uint32)[index])


def shared_store_u32(index: int, value: int) -> None:
    """Sets a 32-bit word of the block's shared memory."""
    _own.block.shared.view(np.uint32)[index] = value


def shared_load_u16(index: int) -> int:
    """A 16-bit word of the block's shared memory."""
    return int(_own.block.shared.view(np.uint16)[index])


def shared_store_u16(index: int, value: int) -> None:
    """Sets a 16-bit word of the block's shared memory."""
    _own.block.shared.view(np.uint16)[index] = value


def _locked_shared(type_: Any, combine: Callable[[Any, Any], Any]) -> Callable[[int, Any], Any]:
    def atomic(index: int, value: Any) -> Any:
        with _own.block.lock:
            elements = _own.block.shared.view(type_)
            old = elements[index].item()
            elements[index] = combine(old, value)
            return old

    return atomic


shared_atomic_add_u32 = _locked_shared(np.uint32, lambda old, v: (old + v) % 2**32)
shared_atomic_min_i64 = _locked_shared(np.int64, min)
shared_atomic_max_i64 = _locked_shared(np.int64, max)
shared_atomic_add_f64 = _locked_shared(np.float64, lambda old, v: old + v)


def shared_cas_i64(word: int, old: int, new: int) -> int:
    """Sets a 64-bit word of shared memory to ``new`` if it is ``old``, against other threads; what was there before."""
    with _own.block.lock:
        found = int(_own.block.shared[word])
        if found == old:
            _own.block.shared[word] = new
        return found


def _locked(combine: Callable[[Any, Any], Any]) -> Callable[[Pointer, int, Any], int]:
    def atomic(pointer: Pointer, index: int, value: Any) -> int:
        with _own.block.lock:
            found = pointer[index]  # an element of NumPy would wrap where it is added to
            old = found.item() if isinstance(found, np.generic) else found
            pointer[index] = combine(old, value)
            return int(old)

    return atomic


atomic_add_i64 = atomic_add_u32 = atomic_add_f64 = _locked(lambda old, v: old + v)
atomic_min_i64 = _locked(min)
atomic_max_i64 = _locked(max)
atomic_or_u32 = _locked(lambda old, v: old | v)


def cas_u32(pointer: Pointer, index: int, old: int, new: int) -> int:
    """Sets element ``i`` to ``new`` if it is ``old``, against other threads; what was there before."""
    return cas_i64(pointer, index, old, new)


def cas_i64(pointer: Pointer, index: int, old: int, new: int) -> int:
    """Sets element ``i`` to ``new`` if it is ``old``, against other threads; what was there before."""
    with _own.block.lock:
        found = int(pointer[index])
        if found == old:
            pointer[index] = new
        return found
