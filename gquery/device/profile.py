"""What the planner and the kernels must know of the hardware: caches, shared memory, processors.

A `Device` goes in, its `DeviceProfile` comes out: queried from CUDA for a GPU, read from the system for a CPU. What is
planned or compiled for a GPU where there is none takes `H200`.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from gquery.device.device import Device


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    """The sizes of a GPU or a CPU. A CPU has no shared memory and no registers to divide: 0."""

    name: str
    processors: int  # multiprocessors of a GPU; cores of the machine
    cache_bytes: int  # of the cache that all processors share: the L2 of a GPU, the last level of a CPU
    sector_bytes: int  # that one access of memory moves at least
    shared_bytes: int = 0  # of shared memory that a block has without asking
    most_shared_bytes: int = 0  # of shared memory that a block can ask for
    processor_shared_bytes: int = 0  # of shared memory of a multiprocessor
    reserved_shared_bytes: int = 0  # of shared memory that the driver takes for each block
    processor_threads: int = 0  # that a multiprocessor keeps at once
    processor_registers: int = 0  # 32-bit registers of a multiprocessor, and of a block


H200 = DeviceProfile(
    name="NVIDIA H200",
    processors=132,
    cache_bytes=50 << 20,
    sector_bytes=32,
    shared_bytes=48 << 10,
    most_shared_bytes=227 << 10,
    processor_shared_bytes=228 << 10,
    reserved_shared_bytes=1 << 10,
    processor_threads=2048,
    processor_registers=65_536,
)
_ATTRIBUTES = {  # CUDA has none for the sector, which is the same on every GPU since 2014
    "processors": "MultiProcessorCount",
    "cache_bytes": "L2CacheSize",
    "shared_bytes": "MaxSharedMemoryPerBlock",
    "most_shared_bytes": "MaxSharedMemoryPerBlockOptin",
    "processor_shared_bytes": "MaxSharedMemoryPerMultiprocessor",
    "reserved_shared_bytes": "ReservedSharedMemoryPerBlock",
    "processor_threads": "MaxThreadsPerMultiProcessor",
    "processor_registers": "MaxRegistersPerMultiprocessor",
}
_CPU_LINE_BYTES = 64
_CPU_CACHE_BYTES = 32 << 20  # where the system does not say


@cache
def get_profile(device: Device) -> DeviceProfile:
    """The profile of a device, queried once a process."""
    return _gpu_profile(device) if device.is_cuda else _cpu_profile()


def profile_for(target: str) -> DeviceProfile:
    """The profile that programs for a target are planned by where no device is named: `H200` for ``cuda``."""
    return H200 if target == "cuda" else _cpu_profile()


def _gpu_profile(device: Device) -> DeviceProfile:
    """What CUDA says of a GPU; what an old driver does not know of is an H200's."""
    with device.activate():
        attributes: dict[str, Any] = device.xp.cuda.Device(device.ordinal).attributes
    known = {field: int(attributes[name]) for field, name in _ATTRIBUTES.items() if name in attributes}
    return replace(H200, name=device.model, **known)


@cache
def _cpu_profile() -> DeviceProfile:
    return DeviceProfile("CPU", os.cpu_count() or 1, _last_level_cache(), _CPU_LINE_BYTES)


def _last_level_cache() -> int:
    """Bytes of the largest cache that Linux names for the first core."""
    sizes = [_size(path) for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    return max(sizes, default=0) or _CPU_CACHE_BYTES


def _size(path: Path) -> int:
    """
    >>> from pathlib import Path
    >>> _size(Path("/absent"))
    0
    """
    try:
        found = re.fullmatch(r"(\d+)([KM]?)", path.read_text(encoding="ascii").strip())
    except OSError:
        return 0
    return int(found[1]) << {"": 0, "K": 10, "M": 20}[found[2]] if found else 0
