"""Profiles of devices: what CUDA says of a GPU, what the system says of a CPU, and the H200 where neither is asked."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

from gquery.device.device import Device, cpu_device
from gquery.device.profile import H200, get_profile, profile_for

ATTRIBUTES = {"MultiProcessorCount": 20, "L2CacheSize": 4 << 20, "MaxThreadsPerMultiProcessor": 1024}


class Small(Device):
    """A GPU that is smaller than an H200, with a driver that does not know of every attribute."""

    model = "small"

    @property
    def xp(self) -> Any:
        return SimpleNamespace(cuda=SimpleNamespace(Device=lambda ordinal: SimpleNamespace(attributes=ATTRIBUTES)))

    def activate(self) -> Any:
        return nullcontext()


def test_a_gpu_is_queried() -> None:
    made = get_profile.__wrapped__(Small("cuda", 77))
    assert (made.name, made.processors, made.cache_bytes, made.processor_threads) == ("small", 20, 4 << 20, 1024)
    assert made.processor_registers == H200.processor_registers, "what the driver does not know is an H200's"


def test_a_cpu_has_a_cache_and_no_shared_memory() -> None:
    made = get_profile(cpu_device())
    assert made.cache_bytes >= 1 << 20 and made.processors >= 1
    assert made.shared_bytes == made.processor_registers == 0
    assert get_profile(cpu_device()) is made


def test_what_is_compiled_without_a_gpu_is_for_an_h200() -> None:
    assert profile_for("cuda") is H200
    assert profile_for("cpu") == profile_for("python") == get_profile(cpu_device())
