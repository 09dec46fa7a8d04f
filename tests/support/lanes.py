"""Kernels as the cuda target writes them, run by Python threads that play the lanes of warps: whole queries in the GPU's way of
doing things without a GPU. Arrays lie on the host; `primitives.simulated` lets lanes vote and shuffle.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
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

BLOCKS, THREADS = 2, 64
_own = threading.local()


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
            "thread_index": lambda: _own.number,
            "thread_count": lambda: BLOCKS * THREADS,
        }
        exec(self.source(kernel), namespace)
        return Compiled(kernel, namespace["kernel"], "lanes", 0.0, cached=False)

    def run(self, compiled: Compiled, lo: int, hi: int, arguments: Sequence[Any], shared_words: int = 0) -> None:
        failures: list[BaseException] = []

        def lane(block: simulated.Block, number: int, thread: int) -> None:
            simulated.enter(block, thread)
            _own.number = number * THREADS + thread
            try:
                compiled.entry(lo, hi, (0,), self._limit, *arguments)
            except BaseException as error:
                failures.append(error)

        before = sys.getswitchinterval()
        sys.setswitchinterval(1000)  # a lane runs until it waits for others, so that what is atomic on a GPU is so here
        try:
            self._blocks(lane, hi > lo, compiled.kernel, shared_words, failures)
        finally:
            sys.setswitchinterval(before)

    def _blocks(self, lane: Any, some: bool, kernel: Kernel, words: int, failures: list[BaseException]) -> None:
        for number in range(BLOCKS if some else 0):
            shared = words if kernel.uses_block else 0
            block = simulated.Block(THREADS, words - shared, shared)
            threads = [threading.Thread(target=lane, args=(block, number, k)) for k in range(THREADS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if failures:
                raise failures[0]


def answer(connection: gquery.Connection, sql: str, monkeypatch: pytest.MonkeyPatch, partitions: int = 1) -> Table:
    """The result of a query whose pipelines run on lanes, over arrays of the CPU."""
    lanes = Lanes()
    for module in ("gquery.execution.prepare", "gquery.execution.runner", "gquery.execution.variants"):
        monkeypatch.setattr(f"{module}.get_target", lambda name: lanes if name == "cuda" else get_target(name))
    settings = replace(connection.settings, interpret_limit=0, partitions=partitions)
    program = connection.program(sql, "cuda")
    return run(program, ExecutionContext("cuda", connection.device, settings))
