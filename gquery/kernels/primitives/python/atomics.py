"""What is atomic elsewhere, and accumulators of one worker: one thread runs here."""

from __future__ import annotations

from gquery.kernels.primitives.python.values import TOP, Pointer, signed


def lane() -> int:
    """Which of the threads that run a kernel's rows together this one is."""
    return 0


def lanes() -> int:
    """How many there are."""
    return 1


def warp_barrier() -> None:
    """Behind it, each sees what the others have stored before it."""


def atomic_add_i64(pointer: Pointer, i: int, v: int) -> int:
    """Adds to element ``i``, against other threads; what was there before."""
    old = int(pointer[i])
    pointer[i] = signed(old + v)
    return old


def atomic_min_i64(pointer: Pointer, i: int, v: int) -> int:
    """Lowers element ``i`` to ``v``, against other threads; what was there before."""
    old = int(pointer[i])
    if v < old:
        pointer[i] = v
    return old


def atomic_max_i64(pointer: Pointer, i: int, v: int) -> int:
    """Raises element ``i`` to ``v``, against other threads; what was there before."""
    old = int(pointer[i])
    if v > old:
        pointer[i] = v
    return old


def atomic_add_f64(pointer: Pointer, i: int, v: float) -> float:
    """Adds to element ``i``, against other threads; what was there before."""
    old = float(pointer[i])
    pointer[i] = old + v
    return old


def atomic_or_u32(pointer: Pointer, i: int, v: int) -> int:
    """Sets bits of element ``i``, against other threads; what was there before."""
    old = int(pointer[i])
    pointer[i] = old | v
    return old


def atomic_add_u32(pointer: Pointer, i: int, v: int) -> int:
    """Adds to element ``i``, wrapped to 32 bits, against other threads; what was there before."""
    old = int(pointer[i])
    pointer[i] = (old + v) & 0xFFFFFFFF
    return old


atomic_min_u32, atomic_max_u32 = atomic_min_i64, atomic_max_i64


def cas_i64(pointer: Pointer, i: int, old: int, new: int) -> int:
    """Sets element ``i`` to ``new`` if it is ``old``, against other threads; what was there before."""
    found = int(pointer[i])
    if found == old:
        pointer[i] = new
    return found


def cas_u32(pointer: Pointer, i: int, old: int, new: int) -> int:
    """Sets element ``i`` to ``new`` if it is ``old``, against other threads; what was there before."""
    found = int(pointer[i])
    if found == old & 0xFFFFFFFF:
        pointer[i] = new & 0xFFFFFFFF
    return found


def accumulate_add_i64(state: Pointer, slot: int, v: int) -> None:
    """Adds to a slot of the state (int64), wrapped to 64 bits."""
    total = state[slot] + v
    state[slot] = total if -TOP <= total < TOP else signed(total)


def accumulate_add_u32(state: Pointer, slot: int, v: int) -> None:
    """Adds to a slot of an array of counts (uint32), wrapped to 32 bits."""
    state[slot] = (state[slot] + v) & 0xFFFFFFFF


def accumulate_min_i64(state: Pointer, slot: int, v: int) -> None:
    """Lowers a slot of the state (int64) to ``v``, if that is less."""
    if v < state[slot]:
        state[slot] = v


def accumulate_max_i64(state: Pointer, slot: int, v: int) -> None:
    """Raises a slot of the state (int64) to ``v``, if that is greater."""
    if v > state[slot]:
        state[slot] = v


def accumulate_add_f64(state: Pointer, slot: int, v: float) -> None:
    """Adds to a slot of the state (float64)."""
    state[slot] += v


reduce_add_i64, reduce_min_i64, reduce_max_i64, reduce_add_f64 = (
    accumulate_add_i64,
    accumulate_min_i64,
    accumulate_max_i64,
    accumulate_add_f64,
)


def prefetch(pointer: Pointer, i: int) -> None:
    """Nothing: the interpreter waits for everything but memory."""


def reserve(counter: Pointer, n: int) -> int:
    """Reserves ``n`` elements behind a counter; where they begin."""
    return atomic_add_i64(counter, 0, n)
