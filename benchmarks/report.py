"""What the suite prints: a line a case, the stages behind it where they are asked for, and the same as JSON lines."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import gquery
from benchmarks.measure import Case, Measurement
from gquery.execution.measure import copy_bandwidth

REFERENCE_ROWS = 100_000_000  # what times of libcudf and targets are for
_PACKAGES = ("gquery", "numpy", "numba", "numba-cuda", "cupy-cuda12x", "cupy-cuda13x", "pyarrow", "sqlglot")
HEAD = (
    f"{'case':30}{'rows':>13}{'median ms':>11}{'min':>10}{'first':>10}{'GB':>8}{'of copy':>9}{'M rows/s':>10}"
    f"{'libcudf':>9}{'target':>8}"
)


@dataclass(frozen=True)
class Machine:
    """Where the suite runs. ``bandwidth`` is that of a copy on the device, bytes read and written a second."""

    device: str
    model: str
    bandwidth: float
    rows: int

    @staticmethod
    def of(connection: gquery.Connection, rows: int) -> Machine:
        device = connection.device
        threads = 1 if device.is_cuda else connection.settings.worker_count
        return Machine(connection.device_name, device.model, copy_bandwidth(device, threads), rows)

    @property
    def is_reference(self) -> bool:
        """Whether libcudf's times and the targets, which are a GPU's at one size, can stand beside what is measured."""
        return self.device.startswith("cuda") and self.rows == REFERENCE_ROWS

    def record(self) -> dict[str, Any]:
        """The machine for the first line of the JSON file."""
        found: dict[str, Any] = {
            "record": "machine", "time": datetime.now(UTC).isoformat(timespec="seconds"), "command": sys.argv[1:],
            "device": self.device, "model": self.model, "rows": self.rows, "copy_bytes_per_second": self.bandwidth,
            "host": platform.platform(), "cores": len(os.sched_getaffinity(0)), "python": platform.python_version(),
            "versions": dict(_versions()),
        }  # fmt: skip
        if self.device.startswith("cuda"):
            import cupy

            runtime = cupy.cuda.runtime
            found |= {"cuda_driver": runtime.driverGetVersion(), "cuda_runtime": runtime.runtimeGetVersion()}
        return found


def _versions() -> Iterator[tuple[str, str]]:
    for name in _PACKAGES:
        try:
            yield name, importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue


def target_of(case: Case, machine: Machine, medians: Mapping[str, float]) -> float | None:
    """Milliseconds that a case may take; ``medians`` (ms) are those of the cases before it, which a target may rest on.

    A factor between two cases holds anywhere, a time only on the kind of machine that it is for.
    """
    if case.times is not None:
        other, factor = case.times
        return medians[other] * factor if other in medians else None
    return case.target if machine.is_reference else None


def line(measured: Measurement, machine: Machine, target: float | None) -> str:
    """One case as a line of the table under `HEAD`."""
    case, ms = measured.case, measured.median * 1e3
    share = measured.bytes_read / measured.median / machine.bandwidth if machine.bandwidth else 0.0
    libcudf = f"{case.libcudf:.1f}" if case.libcudf is not None and machine.is_reference else ""
    wanted = "" if target is None else f"{target:.1f}"
    verdict = "" if target is None else "  ok" if ms <= target else f"  over ({ms / target:.2f} times)"
    if measured.peer:
        seconds, cpu = beside(measured)
        peer = statistics.median(p.seconds for p in measured.peer) * 1e3
        verdict += f"  DuckDB {peer:.0f} ms: {seconds:.2f} times, CPU {cpu:.2f}"
    if measured.wrong is not None:
        verdict += f"  WRONG: {measured.wrong}"
    return (
        f"{case.name:30}{case.rows:13,}{ms:11.3f}{min(measured.samples) * 1e3:10.3f}{measured.first * 1e3:10.1f}"
        f"{measured.bytes_read / 1e9:8.3f}{share:9.1%}{case.rows / measured.median / 1e6:10.0f}{libcudf:>9}{wanted:>8}{verdict}"
    )


def beside(measured: Measurement) -> tuple[float, float]:
    """How many times a peer's time a case takes: by the clock, and of the processor. The best run stands for each, as others
    may be at work."""
    seconds = min(measured.samples) / min(p.seconds for p in measured.peer)
    return seconds, min(measured.cpu) / min(p.cpu for p in measured.peer)


def together(measured: Sequence[Measurement]) -> str:
    """Several cases beside a peer."""
    own, cpu = (
        sum(min(times) for times in each) for each in ([m.samples for m in measured], [m.cpu for m in measured])
    )
    peer = sum(min(p.seconds for p in m.peer) for m in measured)
    peer_cpu = sum(min(p.cpu for p in m.peer) for m in measured)
    return (
        f"together, best runs: {own:.3f} s, DuckDB {peer:.3f}: {own / peer:.2f} times; "
        f"CPU {cpu:.3f} s, DuckDB {peer_cpu:.3f}: {cpu / peer_cpu:.2f} times"
    )


def stage_lines(measured: Measurement) -> Iterator[str]:
    """The stages of a case and their kernels, from a run that waited behind each."""
    for stage, kernels in measured.stages:
        again = f", {stage.attempts} attempts" if stage.attempts > 1 else ""
        yield f"    {stage.number:3} {stage.seconds * 1e3:10.3f} ms  {stage.target:7}{stage.rows:13,}  {stage.label}{again}"
        for k in kernels:
            moved = (k.bytes_read + k.bytes_written) / 1e9
            spilled = f", {k.local_bytes} bytes spilled" if k.local_bytes else ""
            size = f"{'about ' if k.is_estimate else ''}{moved:.3f} GB at {k.bandwidth / 1e9:,.0f} GB/s"
            registers = f", {k.registers} registers{spilled}" if k.registers else ""
            yield f"        {k.seconds * 1e3:10.3f} ms  {k.role}, launched {k.launches} times, {size}{registers}"


def record(measured: Measurement, machine: Machine, target: float | None) -> dict[str, Any]:
    """One case for a line of the JSON file; times are milliseconds."""
    case, reference = measured.case, machine.is_reference
    stages = [
        asdict(stage) | {"kernels": [{k: v for k, v in asdict(kernel).items() if k != "source"} for kernel in kernels]}
        for stage, kernels in measured.stages
    ]
    return {
        "record": "case", "name": case.name, "sql": case.sql, "data": case.data.name, "rows": case.rows,
        "result_rows": measured.result_rows, "median_ms": measured.median * 1e3,
        "samples_ms": [s * 1e3 for s in measured.samples], "first_ms": measured.first * 1e3,
        "bytes_read": measured.bytes_read, "peer_ms": [p.seconds * 1e3 for p in measured.peer],
        "peer_cpu_ms": [p.cpu * 1e3 for p in measured.peer], "cpu_ms": [s * 1e3 for s in measured.cpu],
        "libcudf_ms": case.libcudf if reference else None, "target_ms": target,
        "ok": None if target is None else measured.median * 1e3 <= target, "wrong": measured.wrong, "stages": stages,
    }  # fmt: skip
