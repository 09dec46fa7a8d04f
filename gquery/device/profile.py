"""What the planner, the kernels and execution must know of the hardware: caches, shared memory, processors, copies.

A `Device` goes in, its `DeviceProfile` comes out: queried from CUDA for a GPU, read from the system for a CPU. What is
planned or compiled for a GPU where there is none takes `H200`.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from gquery.device.device import Device
from gquery.runtime.records import dataclass


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    """The sizes of a GPU or a CPU. A CPU has no shared memory, no registers to divide and no link to a host: 0."""

    name: str
    processors: int  # multiprocessors of a GPU; cores of the machine
    cache_bytes: int  # of the cache that all processors share: the L2 of a GPU, the last level of a CPU
    shared_bytes: int = 0  # of shared memory that a block has without asking
    most_shared_bytes: int = 0  # of shared memory that a block can ask for
    processor_shared_bytes: int = 0  # of shared memory of a multiprocessor
    reserved_shared_bytes: int = 0  # of shared memory that the driver takes for each block
    processor_threads: int = 0  # that a multiprocessor keeps at once
    processor_registers: int = 0  # 32-bit registers of a multiprocessor, and of a block
    copy_rate: float = 0.0  # bytes a second that the link to the host's memory moves in each direction, at most


H200 = DeviceProfile(
    name="NVIDIA H200",
    processors=132,
    cache_bytes=60 << 20,
    shared_bytes=48 << 10,
    most_shared_bytes=227 << 10,
    processor_shared_bytes=228 << 10,
    reserved_shared_bytes=1 << 10,
    processor_threads=2048,
    processor_registers=65_536,
    copy_rate=63.0e9,  # PCIe 5.0 with 16 lanes
)
_ATTRIBUTES = {
    "processors": "MultiProcessorCount",
    "cache_bytes": "L2CacheSize",
    "shared_bytes": "MaxSharedMemoryPerBlock",
    "most_shared_bytes": "MaxSharedMemoryPerBlockOptin",
    "processor_shared_bytes": "MaxSharedMemoryPerMultiprocessor",
    "reserved_shared_bytes": "ReservedSharedMemoryPerBlock",
    "processor_threads": "MaxThreadsPerMultiProcessor",
    "processor_registers": "MaxRegistersPerMultiprocessor",
}
_PCI = Path("/sys/bus/pci/devices")
# bits of data a bit sent; up to PCIe 2.0, of 5 GT/s, and since
_BITS, _OLD_BITS, _OLD_TRANSFERS = (128 / 130, 8 / 10, 5.0)
_CPU_CACHES = "/sys/devices/system/cpu/cpu0/cache"
_UNITS = {b"": 0, b"K": 10, b"M": 20}
_CPU_CACHE_BYTES = 32 << 20  # where the system does not say


@cache
def get_profile(device: Device) -> DeviceProfile:
    """The profile of a device, queried once a process."""
    return _gpu_profile(device) if device.is_cuda else _cpu_profile()


def profile_for(target: str) -> DeviceProfile:
    """The profile that programs for a target are planned by where no device is named: `H200` for ``cuda``."""
    return H200 if target == "cuda" else _cpu_profile()


def _gpu_profile(device: Device) -> DeviceProfile:
    """What CUDA and the system say of a GPU; what an old driver does not know of is an H200's."""
    with device.activate():
        found = device.xp.cuda.Device(device.ordinal)
        attributes: dict[str, Any] = found.attributes
        link = _PCI / str(found.pci_bus_id).lower()
    known = {field: int(attributes[name]) for field, name in _ATTRIBUTES.items() if name in attributes}
    return replace(H200, name=device.model, copy_rate=_link_rate(link) or H200.copy_rate, **known)


def _link_rate(link: Path) -> float:
    """Bytes a second of a PCI device's link by what Linux says of it, 0 where that is nothing. The largest speed counts: an idle
    link goes slower.

    >>> _link_rate(Path("/absent"))
    0.0
    """
    try:
        speed, lanes = ((link / name).read_text(encoding="ascii") for name in ("max_link_speed", "current_link_width"))
    except OSError:
        return 0.0
    transfers = re.match(r"([\d.]+) GT/s", speed)
    if transfers is None or not lanes.strip().isdigit():
        return 0.0
    rate = float(transfers[1])
    bits = _OLD_BITS if rate <= _OLD_TRANSFERS else _BITS
    return rate * 1e9 * int(lanes) * bits / 8


@cache
def _cpu_profile() -> DeviceProfile:
    return DeviceProfile("CPU", os.cpu_count() or 1, _last_level_cache())


def _last_level_cache() -> int:
    """Bytes of the largest cache that Linux names for the first core."""
    try:
        found = os.listdir(_CPU_CACHES)  # `Path.glob` takes 2 ms at its first call
    except OSError:
        found = []
    sizes = [_size(Path(_CPU_CACHES, name, "size")) for name in found if name.startswith("index")]
    return max(sizes, default=0) or _CPU_CACHE_BYTES


def _size(path: Path) -> int:
    """
    >>> from pathlib import Path
    >>> _size(Path("/absent"))
    0
    """
    try:
        found = path.read_bytes().strip()
    except OSError:
        return 0
    digits = found.rstrip(b"KM")
    shift = _UNITS.get(found[len(digits) :])
    return int(digits) << shift if digits.isdigit() and shift is not None else 0
