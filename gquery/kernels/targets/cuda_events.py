"""Measuring on a GPU: time between events, the bandwidth of a copy, the most memory that was in use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def timed_on_gpu(run: Callable[[], None]) -> float:
    """The seconds between two events around what ``run`` queues on the current stream; waits for it."""
    import cupy

    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    cupy.cuda.get_current_stream().synchronize()
    start.record()
    run()
    end.record()
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(start, end)) / 1e3


def copy_seconds(size: int, runs: int) -> float:
    """The seconds of the fastest of several copies of ``size`` bytes within the device's memory."""
    import cupy

    arrays = [cupy.zeros(size // 8), cupy.empty(size // 8)]
    times = [timed_on_gpu(lambda: cupy.copyto(arrays[1], arrays[0])) for _ in range(runs + 1)]
    arrays.clear()
    cupy.get_default_memory_pool().free_all_blocks()
    return min(times[1:])


@contextmanager
def peak_memory(record: Callable[[int], None]) -> Iterator[None]:
    """Calls ``record`` with the bytes of CuPy's pool that are in use, at each allocation."""
    import cupy

    pool = cupy.get_default_memory_pool()

    class Hook(cupy.cuda.MemoryHook):  # type: ignore[misc]
        name = "gquery peak"

        def malloc_postprocess(self, **_: Any) -> None:
            record(int(pool.used_bytes()))

    record(int(pool.used_bytes()))
    with Hook():
        yield
