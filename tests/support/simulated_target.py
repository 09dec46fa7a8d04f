"""The cuda target without a GPU: whole generated kernels, thread by thread, on the words of the simulator.

What Numba's simulator is to single primitives, this is to kernels: the text is the one that is compiled for GPUs, blocks
run one after another, the threads of a block in turns. Slow, so tests give it few rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

import gquery
from gquery.kernels import targets
from gquery.kernels.kernel import Kernel, Parameter
from gquery.kernels.primitives import block, checked, groups, simulated, tables, warp
from gquery.kernels.targets.base import Compiled, Perhaps
from gquery.kernels.targets.cuda import CudaTarget
from gquery.kernels.targets.python import primitives
from tests.support.turns import in_turns

THREADS, BLOCKS = 32, 2
_SIMULATED = (simulated, warp, block)


def load(pointer: Any, i: int) -> int:
    """An element, which others may have set before."""
    simulated.turns.get()(False)
    return int(pointer[i])


_block = ContextVar("_block", default=0)


def _thread_index() -> int:
    return _block.get() * THREADS + simulated.block_thread()


def _namespace() -> dict[str, Any]:
    """Primitives, which ask who calls them."""
    found = dict(primitives())
    for module in _SIMULATED:
        found |= {k: v for k, v in vars(module).items() if isinstance(v, FunctionType) and not k.startswith("_")}
    found["load_i64"] = found["load_u32"] = load
    found |= {"uint32": int, "uint64": int, "device": lambda f: f, "inlined": lambda f: f}
    found |= {"thread_index": _thread_index, "thread_count": lambda: BLOCKS * THREADS}
    for module in (checked, groups, tables):
        for name, f in vars(module).items():
            if isinstance(f, FunctionType) and f.__module__ == module.__name__:
                body = FunctionType(
                    f.__code__, f.__globals__ | {k: found[k] for k in f.__code__.co_names if k in found}
                )
                found[name] = body
    return found


class _Elements(np.ndarray):
    """An array whose elements are Python's integers, which primitives of 128 bits count on."""

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        return found.item() if isinstance(found, np.generic) else found


class SimulatedTarget(CudaTarget):
    """Runs the text of cuda kernels in threads of Python. See `Target`."""

    def is_ready(self, kernel: Kernel) -> bool:
        return True

    def compile(self, kernel: Kernel) -> Compiled:
        text = self.source(kernel)
        body = text[text.index(")\n") + 2 :] if text.startswith("from") else text
        code = compile(body, "<simulated>", "exec")

        def entry(*arguments: Any) -> None:
            raise AssertionError("run by the target")

        compiled = Compiled(kernel, entry, "simulated", 0.0, cached=True)
        self._codes = {**getattr(self, "_codes", {}), kernel.digest: code}
        return compiled

    def compile_many(self, kernels: Sequence[Kernel], perhaps: Perhaps = tuple) -> list[Compiled]:
        return [self.compile(k) for k in kernels]

    def begin(self, kernels: Iterable[Kernel], perhaps: Perhaps = tuple) -> None:
        self.compile_many(list(kernels), perhaps)

    def argument(self, parameter: Parameter, value: Any) -> Any:
        if not parameter.is_pointer:
            return float(value) if parameter.type == "f64" else int(value)
        kind = np.dtype(f"{parameter.type[0]}{int(parameter.type[1:]) // 8}")
        found = np.zeros(1, kind) if value is None or value.size == 0 else value.view(kind)
        return found.view(_Elements) if parameter.type == "i64" else found

    def run(self, compiled: Compiled, lo: int, hi: int, arguments: Sequence[Any], shared_words: int = 0) -> None:
        kernel, namespace = compiled.kernel, _namespace()
        exec(self._codes[kernel.digest], namespace)

        def play(number: int, block: simulated.Block, thread: int) -> None:
            simulated.enter(block, thread)
            _block.set(number)
            namespace["kernel"](lo, hi, np.zeros(1, np.uint32), np.full(1, 2**63 - 1), *arguments)

        for number in range(BLOCKS if hi > lo else 0):
            private, shared = (shared_words, 0) if kernel.uses_private else (0, shared_words)
            mine = simulated.Block(THREADS, words=private, shared=shared)
            in_turns([partial(play, number, mine, thread) for thread in range(THREADS)])


TARGET = SimulatedTarget()


@contextmanager
def simulated_connection(interpret_limit: int = 0) -> Iterator[gquery.Connection]:
    """A connection whose pipelines run as a GPU's would; its data lies in host memory."""
    real = targets.TARGETS["cuda"]
    targets.TARGETS["cuda"] = __name__
    targets.get_target.cache_clear()
    try:
        with gquery.connect(device="cpu", partitions=1) as connection:
            connection.sql(f"SET interpret_limit = {interpret_limit}")
            connection.target = "cuda"
            yield connection
    finally:
        targets.TARGETS["cuda"] = real
        targets.get_target.cache_clear()
