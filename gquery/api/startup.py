"""What a connection needs before its first query: a device for the name that the user gives, and the engine in memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from gquery import tuning
from gquery.errors import InterfaceError
from gquery.runtime import collector
from gquery.runtime.postponed import postponed
from gquery.runtime.tuples import NamedTuple

if TYPE_CHECKING:
    from types import ModuleType

    from gquery.cluster.client import Cluster
    from gquery.device.device import Device
    from gquery.settings import Settings

Target = Literal["python", "cpu", "cuda"]
Devices = Literal["all"] | int | Sequence[int] | None


_SPIN = "OPENBLAS_THREAD_TIMEOUT"


def import_numpy() -> None:
    """Import NumPy. The threads that its OpenBLAS starts spin for 2**26 cycles, 25 ms of each core, before they sleep: while it
    is imported and behind each product of matrices, beside our own workers. So they get 2**18, unless the user says otherwise or
    has imported NumPy already."""
    if "numpy" in sys.modules or _SPIN in os.environ:
        return
    os.environ[_SPIN] = str(tuning.threads.blas_spin)
    try:
        import numpy  # noqa: F401  (loaded ahead)
    finally:
        del os.environ[_SPIN]


def import_pyarrow() -> None:
    """Import PyArrow without `cloudpickle` and `socket`, 4 ms, which it asks for when extension types are pickled and ports are
    looked for."""
    with postponed("cloudpickle", "dumps"), postponed("socket", "getfqdn"):
        import_module("pyarrow")


def choose(name: str, settings: Settings) -> tuple[Target, Device]:
    """The target and the device that a name stands for, under the limits that are set."""
    from gquery.device.device import best_device, cpu_device, cuda_device

    kind, _, ordinal = name.lower().partition(":")
    match kind:
        case "auto" if not ordinal:
            device = best_device()
        case "cpu" | "python" if not ordinal:
            return ("cpu" if kind == "cpu" else "python"), limited(cpu_device(), settings)
        case "cuda" if not ordinal or ordinal.isdecimal():
            device = cuda_device(int(ordinal or 0))
        case _:
            raise InterfaceError(
                f'There is no device "{name}"; there are auto, cpu, cuda, cuda:1 and so on, and python'
            )
    return ("cuda" if device.is_cuda else "cpu"), limited(device, settings)


def limited(device: Device, settings: Settings) -> Device:
    """A device under the limits that are set, with an account of its own. What a GPU, or a CPU that stands for one, has no room
    for lies on the host and, beyond the host's limit, in files; of the CPU itself it lies in files at once."""
    if settings.memory_limit is None:
        return device.with_limit(None)
    from gquery.device.host import return_freed_memory
    from gquery.device.host_tier import HostTier
    from gquery.device.kept_memory import KEPT
    from gquery.device.spill import SpillSpace

    files = SpillSpace(settings.spill_directory, settings.spill_limit)
    if not device.is_cpu or device.ordinal:
        made = device.with_limit(settings.memory_limit)
        made.below = HostTier(made, settings.host_memory_limit, files)
        return made
    return_freed_memory()
    KEPT.release()
    return device.with_limit(settings.memory_limit, files)


class ClusterWorkers(NamedTuple):
    """Workers of Dask that are asked for: at which cluster, and how many."""

    cluster: Any
    workers: int | None


def connected(wanted: ClusterWorkers, target: Target, ranks: int) -> Cluster:
    """The workers that a connection is to have. InterfaceError for what does not go together, or without Dask."""
    cluster, workers = wanted
    if cluster is None:
        raise InterfaceError('workers is the number of workers of a cluster: connect(cluster="local", workers=2)')
    if workers is not None and (type(workers) is not int or not 0 < workers <= tuning.distribution.most_ranks):
        raise InterfaceError(f"workers takes a number from 1 to {tuning.distribution.most_ranks}, not {workers!r}")
    if ranks > 1 or target == "cuda":
        raise InterfaceError('The workers of a cluster run on their CPUs: connect(device="cpu", cluster=...)')
    try:
        from gquery.cluster.client import Cluster
    except ModuleNotFoundError as error:
        raise InterfaceError(f"{error.name} is not installed: pip install gquery[cluster]") from None
    return Cluster(cluster, workers)


def choose_devices(name: str, devices: Devices, settings: Settings) -> tuple[Target, tuple[Device, ...]]:
    """The target and the device of each rank, at least one. InterfaceError for what names no devices."""
    target, first = choose(name, settings)
    if devices is None:
        return target, (first,)
    ordinals = _ordinals(devices, _gpus() if first.is_cuda else 1)
    if not ordinals or any(type(n) is not int or n < 0 for n in ordinals):
        raise InterfaceError(f"devices takes one number or more, from 0 on, not {devices!r}")
    return target, tuple([limited(_nth(first, n), settings) for n in ordinals])


def _ordinals(devices: Devices, every: int) -> list[int]:
    """The numbers of devices; "all" stands for the first ``every``."""
    most = tuning.distribution.most_ranks
    match devices:
        case str() if devices.lower() == "all":
            return list(range(every))
        case int() if not isinstance(devices, bool) and devices <= most:
            return list(range(devices))
        case list() | tuple() | range() if len(devices) <= most:
            return list(devices)
        case _:
            raise InterfaceError(f'devices is "all", a number up to {most}, or a list of so many, not {devices!r}')


def _gpus() -> int:
    from gquery.device.device import available_devices

    return sum(d.is_cuda for d in available_devices())


def _nth(first: Device, ordinal: int) -> Device:
    """Device number ``ordinal`` of the kind of the first one."""
    from gquery.device.device import Device, cuda_device

    return cuda_device(ordinal) if first.is_cuda else Device("cpu", ordinal + 1)


@cache
def load_engine() -> tuple[ModuleType, ...]:
    """Import the engine, once, so that the first query does not wait for it. None of it belongs to a connection. What was
    imported."""
    with collector.permanent():
        import_numpy()
        import_pyarrow()
        import gquery.api.relation
        import gquery.execution
        import gquery.kernels.builtin.column_loops
        import gquery.kernels.builtin.parquet_pages
        import gquery.planner.lower
        import gquery.planner.optimizer
        from gquery.kernels.targets import python
        from gquery.sql import bind

        python.primitives()
        engine = gquery.api.relation, gquery.execution, gquery.planner.lower
        return *engine, gquery.planner.optimizer, bind


def wake(target: Target, device: Device) -> None:
    """Have the target and the device ready when a connection is made."""
    from gquery.kernels.targets import get_target

    get_target(target)
    if device.is_cuda:  # makes the driver's context, loads CuPy's first kernel
        device.zeros(1, "uint8", "connecting")
        device.synchronize()
        from gquery.kernels.targets.cuda import TARGET

        with device.activate():
            TARGET.precompile()
