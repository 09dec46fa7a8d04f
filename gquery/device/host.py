"""The host's memory and processor, as Linux tells of them."""

from __future__ import annotations

import ctypes
import mmap
from functools import lru_cache
from typing import Any

import pyarrow as pa

from gquery import tuning

HUGE_PAGE = 2 << 20
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's mallopt


def address_of(array: Any) -> int:
    """Where the elements of a NumPy array lie, one after another. Arrow tells it in an eighth of the time that NumPy takes."""
    return int(pa.py_buffer(array).address)


def refuse_huge_pages(array: Any) -> None:
    """Have the memory of a fresh array come in small pages. NumPy asks for huge ones; where there are none, nothing is done."""
    page, advice = mmap.PAGESIZE, getattr(mmap, "MADV_NOHUGEPAGE", None)
    if advice is None or array.nbytes < HUGE_PAGE:
        return
    start = -(-array.ctypes.data // page) * page
    end = (array.ctypes.data + array.nbytes) // page * page
    _madvise()(start, end - start, advice)  # advice: that it is not taken costs time alone


@lru_cache(maxsize=1)
def _madvise() -> Any:
    function = ctypes.CDLL(None).madvise
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int), ctypes.c_int
    return function


@lru_cache(maxsize=1)
def return_freed_memory() -> None:
    """Have the C library give large blocks back to the system as soon as they are freed, from now on and in the whole process. By
    itself it keeps blocks of up to 32 MB for later ones, which then count to nobody. Nothing is done where it is not glibc."""
    found = _c_function("mallopt")
    if found is not None:
        for option in (_M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD):
            found(option, tuning.memory.returned_bytes)


def trim_freed_memory() -> None:
    """Give back what Arrow keeps for later, and what small blocks have left where the C library is glibc."""
    pa.default_memory_pool().release_unused()
    found = _c_function("malloc_trim")
    if found is not None:
        found(0)


def _c_function(name: str) -> Any:
    """A function of the C library; None where it has no such thing."""
    try:
        return getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return None


def machine_memory(key: str) -> int | None:
    """``MemTotal`` or ``MemAvailable`` of Linux in bytes, no more than the container may have; None elsewhere."""
    amount = _read_number("/proc/meminfo", key + ":")
    if amount is None:
        return None
    amount *= 1024
    limit = _read_number("/sys/fs/cgroup/memory.max", "")
    if limit is not None and key == "MemAvailable":
        used = (_read_number("/sys/fs/cgroup/memory.current", "") or 0) - (
            _read_number("/sys/fs/cgroup/memory.stat", "file") or 0  # the page cache, which gives way
        )
        limit -= max(0, used)
    return amount if limit is None else max(0, min(amount, limit))


def processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    except OSError:
        models = []
    if not models:
        import platform

        return platform.processor() or platform.machine()
    return models[0]


def _read_number(path: str, key: str) -> int | None:
    """The number after ``key`` in a file of the kernel's; None where there is none."""
    try:
        with open(path, encoding="ascii") as lines:
            for line in lines:
                words = line.split()
                if not key and words and words[0].isdecimal():
                    return int(words[0])
                if key and words and words[0] == key:
                    return int(words[1])
    except OSError:
        return None
    return None


def has_driver() -> bool:
    """Whether NVIDIA's driver library is there: asking costs nothing, importing CuPy half a second."""
    for name in ("libcuda.so.1", "nvcuda.dll"):
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return True
    return False
