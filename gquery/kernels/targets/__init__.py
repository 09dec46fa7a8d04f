"""The machines that run kernels, by name. A target is one module and its line here."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from functools import cache

from gquery.errors import InterfaceError
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets.base import Compiled, Perhaps, Target

TARGETS = {
    "python": "gquery.kernels.targets.python",
    "cpu": "gquery.kernels.targets.cpu",
    "cuda": "gquery.kernels.targets.cuda",
}

__all__ = ["TARGETS", "Compiled", "Target", "begin", "compile_many", "get_target"]


@cache
def get_target(name: str) -> Target:
    """The target of that name; its compiler is imported now and not before."""
    if name not in TARGETS:
        raise InterfaceError(f"unknown target {name!r}; there are {', '.join(TARGETS)}")
    target: Target = importlib.import_module(TARGETS[name]).TARGET
    return target


def compile_many(target: Target, kernels: Sequence[Kernel], perhaps: Perhaps = tuple) -> list[Compiled]:
    """The kernels of a query, ready for a target; those that no cache has compile at once, in worker processes. ``perhaps``
    gives others that it may want instead: where kernels had to be compiled, and it can be done beside the query, these are."""
    return target.compile_many(kernels, perhaps)


def begin(target: Target, kernels: Iterable[Kernel], perhaps: Perhaps = tuple) -> None:
    """Begin with the kernels of a query that no cache has, as they come; `Target.compile` waits for those that are not there yet.
    A CPU, whose cores are the workers', waits here. ``perhaps`` as in `compile_many`."""
    target.begin(kernels, perhaps)
