"""Measuring: what each kernel of a run took and moved, for EXPLAIN ANALYZE.

Execution asks for nothing of this unless a run is analyzed: then every launch goes through `Meter.kernel`. Time on a GPU
is that between two events around the launch, so neither compiling nor copying to the device is in it. Bytes are those of the
arrays that a kernel's parameters stand for. A column that stands behind a filter, or a table that is looked into, is read
in part: what is given then is an estimate of the sectors that are touched, and is marked as one.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from functools import cache
from types import ModuleType
from typing import assert_never, cast

import numpy as np

from gquery import tuning
from gquery.device.device import Device
from gquery.device.section import Section
from gquery.kernels.bindings import Argument, Binding, BuildPart, ColumnPart, Constant, Content, StatePart, TextMatches
from gquery.kernels.targets import Compiled, Target
from gquery.kernels.targets.capabilities import capabilities
from gquery.runtime.records import dataclass

_NO_RANGE = nullcontext()


@dataclass
class KernelReport:
    """One kernel of one stage: all its launches together."""

    role: str
    target: str
    launches: int = 0
    seconds: float = 0.0
    bytes_read: int = 0
    bytes_written: int = 0
    is_estimate: bool = False  # of the bytes
    compile_seconds: float = 0.0
    cached: bool = False
    registers: int = 0
    shared_bytes: int = 0
    local_bytes: int = 0
    source: str = ""

    @property
    def bandwidth(self) -> float:
        """Bytes a second, read and written."""
        return (self.bytes_read + self.bytes_written) / self.seconds if self.seconds > 0 else 0.0


@dataclass
class Traffic:
    """Bytes that one launch moves."""

    read: float = 0.0
    written: float = 0.0
    is_estimate: bool = False


@dataclass
class Meter:
    """What an analyzed run collects beyond the reports of its stages. ``counts`` asks for kernels that count the rows that
    get past each of their steps instead, which costs time: such a run is never timed."""

    device: Device
    counts: bool = False
    peak_bytes: int = 0
    spilled_bytes: int = 0  # in files, the most behind a stage: columns that were loaded and rows between stages
    kernels: dict[int, dict[str, KernelReport]] = field(default_factory=dict)  # by stage and role
    steps: dict[int, list[int]] = field(default_factory=dict)  # rows behind each step, by stage
    rows_out: dict[int, int] = field(default_factory=dict)

    def watching(self) -> AbstractContextManager[None]:
        """Within it, the most memory that was in use on a GPU is recorded."""
        if not self.device.is_cuda:
            return nullcontext()
        from gquery.kernels.targets.cuda_events import peak_memory

        return peak_memory(self._peak)

    def _peak(self, used: int) -> None:
        self.peak_bytes = max(self.peak_bytes, used)

    def kernel(self, stage: int, role: str, target: Target, compiled: Compiled, ready: bool) -> KernelReport:
        """The report of a kernel; ``ready``: this process had it in memory."""
        of_stage = self.kernels.setdefault(stage, {})
        report = of_stage.get(role)
        if report is None:
            report = of_stage[role] = KernelReport(role, target.name, source=target.source(compiled.kernel))
            report.cached, report.compile_seconds = ready or compiled.cached, 0.0 if ready else compiled.seconds
            report.registers, report.local_bytes = compiled.registers, compiled.local_bytes
            report.shared_bytes = compiled.shared_bytes
        return report

    def launch(self, report: KernelReport, traffic: Traffic, run: Callable[[], None]) -> None:
        """Run a kernel that is compiled, and whose arrays lie where it runs; add what it took to its report."""
        report.seconds += timed(run, capabilities(report.target).has_own_memory)
        report.launches += 1
        report.bytes_read += int(traffic.read)
        report.bytes_written += int(traffic.written)
        report.is_estimate |= traffic.is_estimate

    def wrote(self, stage: int, size: int) -> None:
        """Add what a stage's rows take to what its last kernel wrote."""
        for report in list(self.kernels.get(stage, {}).values())[-1:]:
            report.bytes_written += size


def timed(run: Callable[[], None], on_gpu: bool) -> float:
    """The seconds that something takes, on a GPU between two events of its stream."""
    if on_gpu:
        from gquery.kernels.targets.cuda_events import timed_on_gpu

        return timed_on_gpu(run)
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def traffic_of(
    parameters: Iterable[tuple[str, Binding, Argument]],
    selectivities: dict[str, float],
    rows: int,
    of: int,
    role: str,
    target: str,
) -> Traffic:
    """What a kernel reads and writes for ``rows`` of ``of`` rows: ``parameters`` are names, what they stand for, arrays."""
    line = capabilities(target).access_bytes
    part = rows / max(of, 1)
    traffic = Traffic()
    for name, binding, array in parameters:
        if array is None or isinstance(array, int | float):
            continue
        if isinstance(array, Section):
            array = array.array
        size, item = float(array.nbytes), int(array.dtype.itemsize)
        touched = min(size, float(rows) * line)
        match binding:
            case ColumnPart(owner=None):
                selectivity = selectivities.get(name, 1.0)
                traffic.read += size * part * (1.0 - (1.0 - min(selectivity, 1.0)) ** max(line // item, 1))
                traffic.is_estimate |= selectivity < 1.0
            case ColumnPart() | BuildPart() | Content():
                traffic.read += touched
                traffic.is_estimate |= touched > line
            case StatePart(part=state):
                if state in ("status", "counters", "data", "validity"):
                    continue  # rows that were materialized are counted once they are there
                if role == "write":
                    traffic.read += size * part
                else:
                    traffic.written += touched
                    traffic.is_estimate |= touched < size or role == "main"
            case TextMatches():
                traffic.read += size * part
            case Constant():
                pass
            case _:
                assert_never(binding)
    return traffic


@cache
def copy_bandwidth(device: Device, threads: int = 1) -> float:
    """Bytes a second, read and written, of a plain copy on the device: the best of several, measured once a process. 0
    where there is no room for one."""
    item, limits = np.dtype(np.float64).itemsize, tuning.measuring
    most = limits.copied_bytes_gpu if device.is_cuda else limits.copied_bytes
    size = min(most, device.free_bytes // limits.most_memory) // item * item
    if size < tuning.measuring.least_copied:
        return 0.0
    if device.is_cuda:
        from gquery.kernels.targets.cuda_events import copy_seconds

        with device.activate():
            return 2 * size / copy_seconds(size, tuning.measuring.copies)
    source = np.ones(size // item)
    target = np.zeros(size // item)
    bounds = [size // item * n // threads for n in range(threads + 1)]

    def copy() -> None:
        workers = [
            threading.Thread(target=np.copyto, args=(target[low:high], source[low:high]))
            for low, high in itertools.pairwise(bounds)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    return 2 * size / min(timed(copy, False) for _ in range(tuning.measuring.copies))


def named_range(name: str) -> AbstractContextManager[object]:
    """An NVTX range where the package is there, for profilers: a pipeline each."""
    nvtx = _nvtx()
    return _NO_RANGE if nvtx is None else cast(AbstractContextManager[object], nvtx.annotate(name, domain="gquery"))


@cache
def _nvtx() -> ModuleType | None:
    try:
        import nvtx
    except ImportError:
        return None
    return nvtx if nvtx.enabled() else None
