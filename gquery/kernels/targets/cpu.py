"""The cpu target: one compiled function a kernel, run without the interpreter's lock on morsels of rows by threads.

One of two compilers makes the function (see `compilers`). It takes addresses and turns them into pointers, so the body reads
``c0[i]`` as on every target; the row index is unsigned, because LLVM vectorises no loop over a signed one (up to 6 times
slower). The machine code lies in our cache on disk: a warm process loads it in less than a millisecond.
"""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, Protocol, cast

import numpy as np

from gquery import tuning
from gquery.device.host import address_of
from gquery.device.section import Section
from gquery.kernels.kernel import Kernel, Parameter
from gquery.kernels.targets import cpu_numba
from gquery.kernels.targets.background import background
from gquery.kernels.targets.base import Compiled, Perhaps
from gquery.kernels.targets.cache import KernelSource, kernel_cache
from gquery.kernels.targets.compilers import Compiler, calls_users, compiler_of
from gquery.kernels.targets.morsels import run_morsels
from gquery.kernels.targets.workers import Request, workers
from gquery.runtime.forking import free_in_child, whole
from gquery.runtime.interrupt import beside
from gquery.runtime.recent import Recent
from gquery.runtime.stopwatch import part

_DUMMY = np.zeros(2, np.int64)
_NOWHERE = address_of(_DUMMY)  # for parameters that a kernel never looks at


class CpuCompiler(Protocol):
    """A module that makes machine code for this processor: `cpu_llvm`, `cpu_numba`. What it makes is its own matter."""

    def source(self, kernel: Kernel) -> KernelSource:
        """What is compiled, by its name in the cache."""
        ...

    def read_code(self, source: KernelSource) -> Any | None:
        """The machine code from the cache."""
        ...

    def make_code(self, source: KernelSource) -> Any:
        """Compile, and keep the result in the cache."""
        ...

    def function_of(self, kernel: Kernel, code: Any) -> Callable[..., None]:
        """Machine code as a function of rows and arguments; it is freed with the function."""
        ...


def cpu_compiler(name: Compiler) -> CpuCompiler:
    """The compiler of that name, imported now."""
    return cast(CpuCompiler, importlib.import_module(f"gquery.kernels.targets.cpu_{name}"))


def cpu_entry(source: KernelSource) -> str:
    """The name in the cache of a kernel's machine code for this processor."""
    return cpu_numba.cpu_entry(source.name)


def is_imported(name: Compiler) -> bool:
    """Whether what loads a kernel is there without the import of a compiler that takes half a second."""
    return name == "llvm" or "numba" in sys.modules


def _request(compiler: Compiler, source: KernelSource) -> Request:
    return f"cpu_{compiler}", source, (0, 0)


def _is_kept(source: KernelSource) -> bool:
    return kernel_cache().has(cpu_entry(source))


class CpuTarget:
    """Compiles kernels for this processor. See `Target`."""

    name = "cpu"

    def __init__(self) -> None:
        self._compiled = Recent[tuple[str, Compiler], Compiled](tuning.compiling.kept_kernels)
        self._lock = free_in_child(threading.Lock())
        self._made = 0  # kernels that were compiled in this process

    def source(self, kernel: Kernel) -> str:
        return cpu_numba.module_text(kernel)

    def held(self) -> list[Compiled]:
        return [made for _, made in self._compiled.items()]

    def is_ready(self, kernel: Kernel) -> bool:
        return (kernel.digest, compiler_of(self.name)) in self._compiled

    def is_cached(self, kernel: Kernel) -> bool:
        """Whether `compile` would take some milliseconds at most: the kernel is in memory, or on disk with what loads it from
        there imported. Looks there."""
        name = compiler_of(self.name)
        return self.is_ready(kernel) or (is_imported(name) and _is_kept(cpu_compiler(name).source(kernel)))

    def compile(self, kernel: Kernel) -> Compiled:
        name = compiler_of(self.name)
        compiled = self._compiled.get((kernel.digest, name))
        if compiled is not None:
            return compiled
        source = cpu_compiler(name).source(kernel)
        if (self._is_tired or workers().is_open(_request(name, source))) and not _is_kept(source):
            self._compile_elsewhere({(name, source)})
        return beside(lambda: self._compile(kernel, name))

    def _compile(self, kernel: Kernel, name: Compiler) -> Compiled:
        with whole(), self._lock:  # both compile one function at a time anyway
            compiled = self._compiled.get((kernel.digest, name)) or self._make(kernel, name)
            self._compiled[kernel.digest, name] = compiled
        return compiled

    def compile_many(self, kernels: Sequence[Kernel], perhaps: Perhaps = tuple) -> list[Compiled]:
        """`compile` for the kernels of a query: those that no cache has compile at once, in worker processes."""
        wanted = {
            (compiler_of(self.name), cpu_compiler(compiler_of(self.name)).source(k))
            for k in kernels
            if not self.is_ready(k)
        }
        missing = {(name, source) for name, source in wanted if not _is_kept(source)}
        if len(missing) > 1:
            self._compile_elsewhere(missing)
        return [self.compile(k) for k in kernels]

    def begin(self, kernels: Iterable[Kernel], perhaps: Perhaps = tuple) -> None:
        found = list(dict.fromkeys(kernels))
        with part("compile"):
            self.compile_many(found, perhaps)

    def precompile(self, kernels: Sequence[Kernel]) -> None:
        """Have workers compile what no cache has, when no query waits for them."""
        if compiler_of(self.name) != "llvm" or not kernel_cache().is_usable:
            return
        sources = [cpu_compiler("llvm").source(k) for k in kernels]
        if missing := [_request("llvm", s) for s in sources if not _is_kept(s)]:
            workers().compile_early(missing)

    def compile_in_background(self, kernels: Sequence[Kernel]) -> None:
        """Begin to compile kernels that a later run wants. What needs Numba is left: it holds the interpreter's lock."""
        if compiler_of(self.name) != "llvm":
            return
        compiler = cpu_compiler("llvm")
        for kernel in kernels:
            if self.is_ready(kernel) or calls_users(kernel):
                continue
            source = compiler.source(kernel)
            background().add(partial(self._compile_aside, kernel, source), kernel.digest)

    def _compile_aside(self, kernel: Kernel, source: KernelSource) -> None:
        """Compile a kernel. A worker does it where one is up, as that takes nothing from the query's thread and several compile
        at once, or where this process has compiled many; this one loads what it made."""
        if not _is_kept(source):
            self._compile_in_worker(kernel, source)
        if threading.main_thread().is_alive():
            self._compile(kernel, "llvm")

    def _compile_in_worker(self, kernel: Kernel, source: KernelSource) -> None:
        """Have a worker compile what a later run wants, if it should. A draft, which the next run wants and which takes some
        milliseconds, is among what queries wait for; anything else comes behind that."""
        if kernel.is_draft:
            if self._is_tired or workers().has_ready:
                self._compile_elsewhere({("llvm", source)}, all_of_them=True)
        elif (self._is_tired or workers().are_up) and kernel_cache().is_usable:
            _ = source.text  # as in `_compile_elsewhere`
            workers().compile_behind(_request("llvm", source))

    @property
    def _is_tired(self) -> bool:
        """Whether this process has compiled as many kernels as it may."""
        return self._made >= tuning.compiling.own_kernels

    def _compile_elsewhere(self, missing: Collection[tuple[Compiler, KernelSource]], all_of_them: bool = False) -> None:
        """Have workers compile kernels; this process does some while it has compiled few, unless it is ``all_of_them``."""
        if kernel_cache().is_usable:  # workers hand their results over through it
            for _, source in missing:
                _ = source.text  # what has no meaning is an error of this thread, not of one that serves a worker
            compilers = {source: name for name, source in missing}
            requests = [_request(name, source) for name, source in sorted(missing)]
            workers().compile_at_once(
                requests,
                lambda r: beside(lambda: self._make_code(compilers[r[1]], r[1])),
                elsewhere=all_of_them or self._is_tired,
            )

    def _make_code(self, name: Compiler, source: KernelSource) -> Any:
        self._made += 1
        with whole():
            return cpu_compiler(name).make_code(source)

    def _make(self, kernel: Kernel, name: Compiler) -> Compiled:
        start = time.perf_counter()
        compiler = cpu_compiler(name)
        source = compiler.source(kernel)
        kept = compiler.read_code(source)
        function = compiler.function_of(kernel, self._make_code(name, source) if kept is None else kept)
        return Compiled(kernel, function, source.name, time.perf_counter() - start, kept is not None)

    def argument(self, parameter: Parameter, value: Any) -> Any:
        if not parameter.is_pointer:
            return parameter.number(value)
        if isinstance(value, Section):
            return value.origin(address_of(value.array))
        return _NOWHERE if value is None or value.size == 0 else address_of(value)

    def run(self, compiled: Compiled, lo: int, hi: int, arguments: Sequence[Any], shared_words: int = 0) -> None:
        compiled.entry(lo, hi, *arguments)

    def run_morsels(
        self,
        compiled: Compiled,
        ranges: Sequence[tuple[int, int]],
        arguments_per_worker: Sequence[Sequence[Any]],
        morsel_rows: int,
        cancelled: Callable[[], bool] | None = None,
    ) -> None:
        """Run ranges of rows on one thread for each worker's arguments; see `targets.morsels`."""

        def work(worker: int, start: int, end: int) -> None:
            compiled.entry(start, end, *arguments_per_worker[worker])

        run_morsels(work, ranges, len(arguments_per_worker), morsel_rows, cancelled)


TARGET = CpuTarget()
