"""The cpu target: one Numba function a kernel, run without the interpreter's lock on morsels of rows by threads.

The function takes addresses and turns them into pointers, so the body reads ``c0[i]`` as on every target; the row index
is unsigned, because LLVM vectorises no loop over a signed one (up to 6 times slower). The machine code lies in our cache on
disk (see `cpu_code`): a warm process loads it in a millisecond.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any

import numpy as np

from gquery import tuning
from gquery.kernels import ir
from gquery.kernels.ir.expressions import Leaf
from gquery.kernels.ir.walk import read, with_calls
from gquery.kernels.kernel import Kernel, Parameter
from gquery.kernels.targets.base import Compiled, Perhaps
from gquery.kernels.targets.cache import KernelSource, kernel_cache, kernel_source
from gquery.kernels.targets.cpu_code import Code, cpu_entry, load, make_code, read_code
from gquery.kernels.targets.morsels import run_morsels
from gquery.kernels.targets.text import free_names, functions_text
from gquery.kernels.targets.workers import workers
from gquery.runtime.interrupt import beside
from gquery.runtime.recent import Recent

_DUMMY = np.zeros(2, np.int64)


@cache
def _machine() -> str:
    import llvmlite.binding as llvm

    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


def _is_kept(source: KernelSource) -> bool:
    return kernel_cache().has(cpu_entry(source.name))


def _head(kernel: Kernel) -> list[str]:
    """The beginning of a kernel's function."""
    names = [f"{p.name}_address" if p.is_pointer else p.name for p in kernel.parameters]
    kinds = "".join("f" if p.type == "f64" and not p.is_pointer else "i" for p in kernel.parameters)
    lines = [f"@entry({kinds!r})", f"def kernel({', '.join(['lo_row', 'hi_row', *names])}):"]
    lines += ["    lo = uint64(lo_row)", "    hi = uint64(hi_row)"]
    return lines + [f"    {p.name} = pointer_{p.type}({p.name}_address)" for p in kernel.parameters if p.is_pointer]


def _packed_head(kernel: Kernel, body: ir.Block) -> list[str]:
    """The same for one whose arguments are in an array of 64-bit words, but for those that ``body`` takes from there itself."""
    lines = ["@entry('i')", "def kernel(lo_row, hi_row, words_address):"]
    lines += ["    lo = uint64(lo_row)", "    hi = uint64(hi_row)", "    words = pointer_i64(words_address)"]
    lines += ["    floats = pointer_f64(words_address)"]
    named = {name.id for name in read((*kernel.prologue, *body, *kernel.epilogue))}
    return lines + [f"    {name} = {word.text()}" for name, word in _words(kernel).items() if name in named]


def _words(kernel: Kernel) -> dict[str, ir.Expression]:
    """By argument, what takes it from the array."""
    words: dict[str, ir.Expression] = {}
    for n, p in enumerate(kernel.parameters):
        array = ir.Name("floats" if p.type == "f64" and not p.is_pointer else "words")
        word = ir.Load(array, ir.Constant(n))
        words[p.name] = ir.Call(f"pointer_{p.type}", (word,)) if p.is_pointer else word
    return words


def _packed_body(kernel: Kernel) -> ir.Block:
    """Its body. What calls a part takes the arguments for that when it does: a thousand that are held over the loop are more than
    there are registers, and LLVM takes seconds to say where they are instead."""
    words, parts = _words(kernel), {part.name for part in kernel.parts}

    def take(leaf: Leaf) -> ir.Expression:
        return words.get(leaf.id, leaf) if isinstance(leaf, ir.Name) else leaf

    def with_words(call: ir.Call) -> ir.Call:
        return call.over(take) if call.function in parts else call

    return with_calls(kernel.body, with_words)


def _packing(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel's function whose arguments are in an array, as one that takes them."""

    def entry(lo: int, hi: int, *arguments: Any) -> None:
        words = np.array([0 if isinstance(a, float) else a for a in arguments], dtype=np.int64)
        floats = words.view(np.float64)
        for n, value in enumerate(arguments):
            if isinstance(value, float):
                floats[n] = value
        function(lo, hi, words.ctypes.data)

    return entry


class CpuTarget:
    """Compiles kernels for this processor. See `Target`."""

    name = "cpu"

    def __init__(self) -> None:
        self._compiled = Recent[str, Compiled](tuning.compiling.kept_kernels)
        self._lock = threading.Lock()
        self._made = 0  # kernels that were compiled in this process

    def source(self, kernel: Kernel) -> str:
        is_packed = len(kernel.parameters) > tuning.compiling.arguments
        body = _packed_body(kernel) if is_packed else kernel.body
        lines = _packed_head(kernel, body) if is_packed else _head(kernel)
        lines += ir.printed(kernel.prologue, 1)
        lines += ["    for i in range(lo, hi):", *ir.printed_body(body, 2), *ir.printed(kernel.epilogue, 1)]
        text = functions_text(kernel, "@device\n", "@part\n") + "\n".join(lines) + "\n"
        imported = "".join(f"    {name},\n" for name in sorted(free_names(text)))
        return f"from gquery.kernels.targets.cpu_primitives import (\n{imported})\n\n\n{text}"

    def held(self) -> list[Compiled]:
        return [made for _, made in self._compiled.items()]

    def is_ready(self, kernel: Kernel) -> bool:
        return kernel.digest in self._compiled

    def is_cached(self, kernel: Kernel) -> bool:
        """Whether `compile` would take some milliseconds at most: the kernel is in memory, or on disk with what loads it from
        there imported. Looks there."""
        return self.is_ready(kernel) or ("numba" in sys.modules and _is_kept(self._source(kernel)))

    def compile(self, kernel: Kernel) -> Compiled:
        compiled = self._compiled.get(kernel.digest)
        if compiled is not None:
            return compiled
        if self._made >= tuning.compiling.own_kernels and not _is_kept(source := self._source(kernel)):
            self._compile_elsewhere({source})
        return beside(lambda: self._compile(kernel))

    def _compile(self, kernel: Kernel) -> Compiled:
        with self._lock:  # Numba compiles one function at a time anyway
            compiled = self._compiled.get(kernel.digest) or self._make(kernel)
            self._compiled[kernel.digest] = compiled
        return compiled

    def compile_many(self, kernels: Sequence[Kernel], perhaps: Perhaps = tuple) -> list[Compiled]:
        """`compile` for the kernels of a query: those that no cache has compile at once, in worker processes."""
        wanted = {k.digest: self._source(k) for k in kernels if k.digest not in self._compiled}
        missing = {source for source in wanted.values() if not _is_kept(source)}
        if len(missing) > 1:
            self._compile_elsewhere(missing)
        return [self.compile(k) for k in kernels]

    def _compile_elsewhere(self, missing: Collection[KernelSource]) -> None:
        """Have workers compile kernels; this process does some of them while it has compiled few."""
        if kernel_cache().is_usable:  # workers hand their results over through it
            requests = [(self.name, source, (0, 0)) for source in sorted(missing)]
            is_tired = self._made >= tuning.compiling.own_kernels
            workers().compile_at_once(requests, lambda r: beside(lambda: self._make_code(r[1])), elsewhere=is_tired)

    def _make_code(self, source: KernelSource) -> Code:
        self._made += 1
        return make_code(source)

    def _source(self, kernel: Kernel) -> KernelSource:
        return kernel_source(self.source(kernel), self.name, _machine())

    def _make(self, kernel: Kernel) -> Compiled:
        start = time.perf_counter()
        source = self._source(kernel)
        kept = read_code(source)
        function = load(kept or self._make_code(source))
        if len(kernel.parameters) > tuning.compiling.arguments:
            function = _packing(function)
        return Compiled(kernel, function, source.name, time.perf_counter() - start, kept is not None)

    def argument(self, parameter: Parameter, value: Any) -> Any:
        if not parameter.is_pointer:
            return float(value) if parameter.type == "f64" else int(value)
        return int(_DUMMY.ctypes.data if value is None or value.size == 0 else value.ctypes.data)

    def run(self, compiled: Compiled, lo: int, hi: int, arguments: Sequence[Any], shared_words: int = 0) -> None:
        compiled.entry(lo, hi, *arguments)

    def run_morsels(
        self,
        compiled: Compiled,
        lo: int,
        hi: int,
        arguments_per_worker: Sequence[Sequence[Any]],
        morsel_rows: int,
        cancelled: Callable[[], bool] | None = None,
    ) -> None:
        """Run rows lo..hi on one thread for each worker's arguments; see `targets.morsels`."""

        def work(worker: int, start: int, end: int) -> None:
            compiled.entry(start, end, *arguments_per_worker[worker])

        run_morsels(work, lo, hi, len(arguments_per_worker), morsel_rows, cancelled)


TARGET = CpuTarget()
