"""The GPU's intrinsics over NumPy arrays, for Numba's CUDA simulator, which has neither shuffles nor intrinsics.

A warp of the simulator is a block of up to 32 threads that run one after another between barriers; `Block` holds what
they share. Only tests use it; the names make `kernels.primitives.warp` importable anywhere. One thread of the machine plays
all threads of a block in turns. Each gives its turn away where it waits for others, and in front of whatever others can see.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
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
        self.at_barrier = 0  # threads that came
        self.barriers = 0  # that all came to
        self.votes: dict[int, Vote] = {}  # by warp

    def barrier(self) -> None:
        """Waits until all threads are here."""
        barriers = self.barriers
        self.at_barrier += 1
        if self.at_barrier == self.threads:
            self.at_barrier, self.barriers = 0, barriers + 1
        _wait_for(lambda: self.barriers > barriers)


class Vote:
    """What the lanes of a warp that came so far have said."""

    def __init__(self, members: int) -> None:
        self.members = members
        self.arrived: int = 0
        self.word: int = 0


_block: ContextVar[Block] = ContextVar("_block")
_thread: ContextVar[int] = ContextVar("_thread")
# Gives the turn to the other threads; told whether all that the caller has done since its last turn is to wait.
turns: ContextVar[Callable[[bool], object]] = ContextVar("turns", default=lambda waited: None)


def enter(block: Block, thread: int) -> None:
    """Say which thread of which block the calling thread plays."""
    _block.set(block)
    _thread.set(thread)


def _wait_for(is_done: Callable[[], bool]) -> None:
    waited = False
    while not is_done():
        turns.get()(waited)
        waited = True


def _meet() -> None:
    """Others may come first here."""
    turns.get()(False)


def lane() -> int:
    """The number of the thread in its warp, 0 to 31."""
    return _thread.get() % 32


def is_first_lane_with(key: int) -> bool:
    """Whether no lane before this one that came here with it has the same key: here each comes alone."""
    return True


def _exchanged(value: Any) -> list[Any]:
    """What each thread's value is, once all lanes of the calling one's warp are here."""
    block, thread = _block.get(), _thread.get()
    lanes = (1 << min(32, block.threads - (thread & ~31))) - 1
    ballot(lanes, True)  # all have read what was exchanged before
    block.exchanged[thread] = value
    ballot(lanes, True)
    return block.exchanged


def _shuffle_down(value: Any, offset: int) -> Any:
    exchanged, thread = _exchanged(value), _thread.get()
    source = thread + offset
    return exchanged[source if source % 32 > thread % 32 and source < len(exchanged) else thread]


def shuffle_down_i64(value: int, offset: int) -> int:
    """The integer of the lane that is ``offset`` further; the lane's own where there is none."""
    return int(_shuffle_down(value, offset))


def shuffle_down_f64(value: float, offset: int) -> float:
    """The double of the lane that is ``offset`` further; the lane's own where there is none."""
    return float(_shuffle_down(value, offset))


def shuffle_from_i64(value: int, lane: int) -> int:
    """The integer of the lane of this number, of which the last five bits count."""
    return int(_exchanged(value)[_thread.get() & ~31 | lane & 31])


def members(row: int, end: int) -> int:
    """A bit for each lane of the warp whose row is before ``end``."""
    left = end - (row & ~31)
    return (1 << min(left, 32)) - 1


def ballot(lanes: int, vote: bool) -> int:
    """Waits until all of ``lanes`` came; a lane that does not belong, or says otherwise who does, is an error."""
    block, warp, own = _block.get(), _thread.get() // 32, 1 << lane()
    here: Vote = block.votes.setdefault(warp, Vote(lanes))
    assert here.members == lanes, f"members {lanes:08x} and {here.members:08x}"
    assert lanes & own & ~here.arrived, f"lane {lane()} is no member of {lanes:08x}, or came twice"
    here.arrived |= own
    here.word |= own * vote
    if here.arrived == lanes:
        del block.votes[warp]
    _wait_for(lambda: here.arrived == lanes)
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
    return int(_block.get().private[word][_thread.get()])


def private_store(word: int, value: int) -> None:
    """Sets a 64-bit word of the thread's own in shared memory."""
    _block.get().private[word][_thread.get()] = value


def block_thread() -> int:
    """The number of the thread in its block."""
    return _thread.get()


def block_threads() -> int:
    """How many threads the block has."""
    return int(_block.get().threads)


def block_barrier() -> None:
    """Waits until all threads of the block are here."""
    _block.get().barrier()


def shared_load_i64(word: int) -> int:
    """A 64-bit word of the block's shared memory."""
    _meet()
    return int(_block.get().shared[word])


def shared_store_i64(word: int, value: int) -> None:
    """Sets a 64-bit word of the block's shared memory."""
    _meet()
    _block.get().shared[word] = value


def shared_load_u32(index: int) -> int:
    """A 32-bit word of the block's shared memory."""
    _meet()
    return int(_block.get().shared.view(np.uint32)[index])


def shared_store_u32(index: int, value: int) -> None:
    """Sets a 32-bit word of the block's shared memory."""
    _meet()
    _block.get().shared.view(np.uint32)[index] = value


def shared_load_u16(index: int) -> int:
    """A 16-bit word of the block's shared memory."""
    _meet()
    return int(_block.get().shared.view(np.uint16)[index])


def shared_store_u16(index: int, value: int) -> None:
    """Sets a 16-bit word of the block's shared memory."""
    _meet()
    _block.get().shared.view(np.uint16)[index] = value


def _locked_shared(type_: Any, combine: Callable[[Any, Any], Any]) -> Callable[[int, Any], Any]:
    def atomic(index: int, value: Any) -> Any:
        _meet()
        elements = _block.get().shared.view(type_)
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
    _meet()
    shared = _block.get().shared
    found = int(shared[word])
    if found == old:
        shared[word] = new
    return found


def _locked(combine: Callable[[Any, Any], Any]) -> Callable[[Pointer, int, Any], int]:
    def atomic(pointer: Pointer, index: int, value: Any) -> int:
        _meet()
        found = pointer[index]  # an element of NumPy would wrap where it is added to
        old = found.item() if isinstance(found, np.generic) else found
        pointer[index] = combine(old, value)
        return int(old)

    return atomic


atomic_add_i64 = _locked(lambda old, v: (old + v + 2**63) % 2**64 - 2**63)
atomic_add_u32 = _locked(lambda old, v: (old + v) % 2**32)
atomic_add_f64 = _locked(lambda old, v: old + v)
atomic_min_i64 = _locked(min)
atomic_max_i64 = _locked(max)
atomic_or_u32 = _locked(lambda old, v: old | v)


def cas_u32(pointer: Pointer, index: int, old: int, new: int) -> int:
    """Sets element ``i`` to ``new`` if it is ``old``, against other threads; what was there before."""
    return cas_i64(pointer, index, old, new)


def cas_i64(pointer: Pointer, index: int, old: int, new: int) -> int:
    """Sets element ``i`` to ``new`` if it is ``old``, against other threads; what was there before."""
    _meet()
    found = int(pointer[index])
    if found == old:
        pointer[index] = new
    return found
