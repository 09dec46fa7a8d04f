"""Kernels as the cuda target writes them, run by threads that take turns and play the lanes of warps: whole queries in the
GPU's way of doing things without a GPU. Arrays lie on the host; `primitives.simulated` lets lanes vote and shuffle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

import gquery
from gquery.columns.table import Table
from gquery.device.array import Array
from gquery.execution import ExecutionContext
from gquery.execution.program import run
from gquery.kernels.kernel import Kernel
from gquery.kernels.primitives import block, simulated, warp
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import Compiled
from gquery.kernels.targets.cuda import CudaTarget
from gquery.kernels.targets.python import PythonTarget, primitives
from tests.support.turns import in_turns

BLOCKS, THREADS = 2, 64
_number = ContextVar("_number", default=0)


class Lanes(PythonTarget):
    """Stands for the cuda target."""

    name = "cuda"
    _limit: Sequence[int] = (2**63 - 1,)

    @contextmanager
    def limited_to(self, rows: Array | None) -> Iterator[None]:
        """See `AbortableTarget.limited_to`."""
        before, self._limit = self._limit, self._limit if rows is None else [int(rows[0])]
        try:
            yield
        finally:
            self._limit = before

    def source(self, kernel: Kernel) -> str:
        text = CudaTarget().source(kernel)
        return text[text.index(")\n") + 2 :] if text.startswith("from") else text

    def compile(self, kernel: Kernel) -> Compiled:
        words = {k: v for m in (simulated, warp, block) for k, v in vars(m).items() if not k.startswith("_")}
        namespace: dict[str, Any] = primitives() | words
        namespace |= {
            "uint32": lambda x: x & 0xFFFFFFFF,
            "uint64": int,
            "device": lambda function: function,
            "inlined": lambda function: function,
            "thread_index": _number.get,
            "thread_count": lambda: BLOCKS * THREADS,
        }
        exec(self.source(kernel), namespace)
        return Compiled(kernel, namespace["kernel"], "lanes", 0.0, cached=False)

    def run(self, compiled: Compiled, lo: int, hi: int, arguments: Sequence[Any], shared_words: int = 0) -> None:
        kernel = compiled.kernel

        def lane(number: int, block: simulated.Block, thread: int) -> None:
            simulated.enter(block, thread)
            _number.set(number * THREADS + thread)
            compiled.entry(lo, hi, (0,), self._limit, *arguments)

        for number in range(BLOCKS if hi > lo else 0):
            shared = shared_words if kernel.uses_block else 0
            block = simulated.Block(THREADS, shared_words - shared, shared)
            in_turns([partial(lane, number, block, k) for k in range(THREADS)])


def answer(connection: gquery.Connection, sql: str, monkeypatch: pytest.MonkeyPatch, partitions: int = 1) -> Table:
    """The result of a query whose pipelines run on lanes, over arrays of the CPU."""
    lanes = Lanes()
    for module in ("gquery.execution.prepare", "gquery.execution.runner", "gquery.execution.variants"):
        monkeypatch.setattr(f"{module}.get_target", lambda name: lanes if name == "cuda" else get_target(name))
    settings = replace(connection.settings, interpret_limit=0, partitions=partitions)
    program = connection.program(sql, "cuda")
    return run(program, ExecutionContext("cuda", connection.device, settings))
