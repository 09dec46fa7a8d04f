"""Profiles of devices: what CUDA says of a GPU, what the system says of a CPU, and the H200 where neither is asked."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gquery.device import profile
from gquery.device.device import Device, cpu_device
from gquery.device.profile import H200, get_profile, profile_for

ATTRIBUTES = {"MultiProcessorCount": 20, "L2CacheSize": 4 << 20, "MaxThreadsPerMultiProcessor": 1024}


class Small(Device):
    """A GPU that is smaller than an H200, with a driver that does not know of every attribute."""

    model = "small"

    @property
    def xp(self) -> Any:
        found = SimpleNamespace(attributes=ATTRIBUTES, pci_bus_id="0000:1B:00.0")
        return SimpleNamespace(cuda=SimpleNamespace(Device=lambda ordinal: found))

    def activate(self) -> Any:
        return nullcontext()


def test_a_gpu_is_queried() -> None:
    made = get_profile.__wrapped__(Small("cuda", 77))
    assert (made.name, made.processors, made.cache_bytes, made.processor_threads) == ("small", 20, 4 << 20, 1024)
    assert made.processor_registers == H200.processor_registers, "what the driver does not know is an H200's"
    assert made.copy_rate > 0


@pytest.mark.parametrize(
    ("speed", "lanes", "rate"),
    [
        ("32.0 GT/s PCIe", "16", 63.0e9),
        ("16.0 GT/s PCIe", "8", 15.75e9),
        ("2.5 GT/s PCIe", "4", 1e9),
        ("Unknown", "16", H200.copy_rate),
        ("32.0 GT/s PCIe", "unknown", H200.copy_rate),
    ],
)
def test_the_copy_rate_is_that_of_the_link(
    speed: str, lanes: str, rate: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile, "_PCI", tmp_path)
    link = tmp_path / "0000:1b:00.0"
    link.mkdir()
    (link / "max_link_speed").write_text(f"{speed}\n")
    (link / "current_link_width").write_text(f"{lanes}\n")
    assert get_profile.__wrapped__(Small("cuda", 77)).copy_rate == pytest.approx(rate, rel=1e-3)


def test_a_cpu_has_a_cache_and_no_shared_memory() -> None:
    made = get_profile(cpu_device())
    assert made.cache_bytes >= 1 << 20 and made.processors >= 1
    assert made.shared_bytes == made.processor_registers == made.copy_rate == 0
    assert get_profile(cpu_device()) is made


def test_what_is_compiled_without_a_gpu_is_for_an_h200() -> None:
    assert profile_for("cuda") is H200 and H200.cache_bytes == 62_914_560, "what one reports"
    assert profile_for("cpu") == profile_for("python") == get_profile(cpu_device())
