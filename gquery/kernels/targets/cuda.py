"""The cuda target: Numba compiles, CuPy launches.

A thread takes the rows lo + its number, and from there on every thread-count-th: neighbouring lanes read neighbouring
elements. The index has 32 bits unless the kernel says otherwise. Every kernel looks at a *abort flag* before it does anything
(see `execution.speculation`). A cubin from the cache needs no compiler: a warm
process imports CuPy alone.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from gquery import tuning
from gquery.device.device import Device
from gquery.device.profile import DeviceProfile, get_profile
from gquery.errors import DeviceError
from gquery.expression.facts import INT64_BYTES
from gquery.kernels.builtin.registry import builtin_kernels
from gquery.kernels.ir import printed, printed_body
from gquery.kernels.kernel import Kernel, Parameter
from gquery.kernels.targets.base import NARROW_ROWS, PRIVATE_THREADS, Compiled, Perhaps
from gquery.kernels.targets.cache import KernelSource, kernel_cache, kernel_source
from gquery.kernels.targets.cubin import Cubin, make_cubin, read_cubin
from gquery.kernels.targets.cuda_launch import Launcher
from gquery.kernels.targets.text import free_names, functions_text
from gquery.kernels.targets.workers import workers
from gquery.runtime.interrupt import beside
from gquery.runtime.recent import Recent


class CudaTarget:
    """Compiles kernels for NVIDIA GPUs. See `Target`."""

    name = "cuda"

    def __init__(self) -> None:
        self._compiled = Recent[tuple[str, int], Compiled](tuning.compiling.kept_kernels, _wait)  # by digest and device
        self._begun: set[tuple[int, int]] = set()  # capabilities for which the built-in kernels were seen to
        self._lock = threading.Lock()
        self._local = threading.local()

    def source(self, kernel: Kernel) -> str:
        index = "uint64" if kernel.wide_index else "uint32"
        own = [f"{'*' * p.is_pointer}{p.type}" for p in kernel.parameters]
        signature = [index.replace("uint", "u")] * 2 + ["*u32", *own]
        lines = [f"SIGNATURE = {tuple(signature)!r}", "", ""]
        lines.append(f"def kernel({', '.join(['lo', 'hi', 'abort', *(p.name for p in kernel.parameters)])}):")
        lines += ["    if abort[0] != 0:", "        return"]
        lines += [f"    step = {index}(thread_count())", f"    i = {index}(lo + thread_index())"]
        lines += printed(kernel.prologue, 1)
        unrolled, body = kernel.unrolled, kernel.body
        functions = functions_text(kernel, "@device\n", "@device\n")
        if unrolled is not None:
            # the last of a warp's rows decides, so that all its lanes take the same loop
            lines.append(f"    while (i | 31) + {unrolled.rows - 1} * step < hi:")
            lines += [f"        i{k} = {index}(i + {k} * step)" for k in range(unrolled.rows)]
            lines += [*printed(unrolled.body, 2), f"        i = {index}(i + {unrolled.rows} * step)"]
            body = unrolled.single or body
            if unrolled.function is not None:
                functions += "\n".join(["@inlined", *unrolled.function.text]) + "\n\n\n"
        lines += ["    while i < hi:", *printed_body(body, 2), f"        i = {index}(i + step)"]
        lines += printed(kernel.epilogue, 1)
        text = functions + "\n".join(lines) + "\n"
        imported = "".join(f"    {name},\n" for name in sorted(free_names(text)))
        return f"from gquery.kernels.targets.cuda_primitives import (\n{imported})\n\n\n{text}"

    def held(self) -> list[Compiled]:
        return [made for _, made in self._compiled.items()]

    def is_ready(self, kernel: Kernel) -> bool:
        return (kernel.digest, _device()) in self._compiled

    def is_cached(self, kernel: Kernel) -> bool:
        return self.is_ready(kernel) or not self._missing([kernel], _capability(_device()))

    def compile(self, kernel: Kernel) -> Compiled:
        device = _device()
        compiled = self._compiled.get((kernel.digest, device))
        if compiled is None:
            with self._lock:
                compiled = self._compiled.get((kernel.digest, device)) or self._make(kernel, _capability(device))
                self._compiled[kernel.digest, device] = compiled
        return compiled

    def compile_many(self, kernels: Sequence[Kernel], perhaps: Perhaps = tuple) -> list[Compiled]:
        """`compile` for the kernels of a query: those that no cache has compile at once, in worker processes, and
        behind them the built-in ones, which the query or the next one would wait for one at a time."""
        device = _device()
        cc = _capability(device)
        missing = [k for k in kernels if (k.digest, device) not in self._compiled]
        if self._missing(missing, cc):
            self._compile_later(list(perhaps()), cc)
            self._compile_builtin(cc)
            self.compile_cubins(missing, cc)
        return [self.compile(k) for k in kernels]

    def precompile(self) -> None:
        """Where nothing has been compiled yet, begin with the built-in kernels, while files are opened and read."""
        cc = _capability(_device())
        if self._missing(list(builtin_kernels().values())[:1], cc):
            self._compile_builtin(cc)

    def _compile_builtin(self, cc: tuple[int, int]) -> None:
        """Once in a process: to look for all of them takes as long as a small query."""
        if cc not in self._begun:
            self._begun.add(cc)
            self._compile_later(list(builtin_kernels().values()), cc)

    def _compile_later(self, kernels: Sequence[Kernel], cc: tuple[int, int]) -> None:
        missing = self._missing(kernels, cc)
        if missing and kernel_cache().is_usable:  # workers hand their results over through it
            workers().compile_later([(self.name, source, cc) for source in missing])

    def _missing(self, kernels: Sequence[Kernel], cc: tuple[int, int]) -> list[KernelSource]:
        sources = {self._source(k) for k in kernels}
        return [source for source in sorted(sources) if read_cubin(source, cc) is None]

    def _source(self, kernel: Kernel) -> KernelSource:
        return kernel_source(self.source(kernel), self.name)

    def compile_cubins(self, kernels: Sequence[Kernel], cc: tuple[int, int]) -> None:
        """Have the kernels' machine code in the cache folder. Needs no GPU."""
        missing = self._missing(kernels, cc) if kernel_cache().is_usable else []
        if len(missing) > 1 or (missing and workers().has_ready):
            # a worker that is ready has done three kernels before this process has imported the compiler
            patience = 1 if "numba.cuda" in sys.modules else tuning.compiling.patience
            requests = [(self.name, source, cc) for source in missing]
            workers().compile_at_once(requests, lambda r: beside(lambda: make_cubin(r[1], r[2])), patience)

    def compile_cubin(self, kernel: Kernel, cc: tuple[int, int]) -> Cubin:
        """The kernel's machine code for a compute capability, from the cache or made now. Needs no GPU."""
        source = self._source(kernel)
        return read_cubin(source, cc) or beside(lambda: make_cubin(source, cc))

    def _make(self, kernel: Kernel, cc: tuple[int, int]) -> Compiled:
        import cupy

        start = time.perf_counter()
        source = self._source(kernel)
        cubin = read_cubin(source, cc)
        cached = cubin is not None
        if cubin is None:
            self.compile_cubins([kernel], cc)
            cubin = read_cubin(source, cc) or beside(lambda: make_cubin(source, cc))
        module = cupy.cuda.Module()  # launches in half the time of a RawModule
        module.load(cubin.code)
        function = Launcher(module.get_function(cubin.entry), kernel)
        seconds = time.perf_counter() - start
        return Compiled(
            kernel, function, source.name, seconds, cached, cubin.registers, cubin.local_bytes, cubin.shared_bytes
        )

    def argument(self, parameter: Parameter, value: Any) -> Any:
        if not parameter.is_pointer:
            return float(value) if parameter.type == "f64" else int(value)
        return 0 if value is None or value.size == 0 else value.data.ptr

    def run(self, compiled: Compiled, lo: int, hi: int, arguments: Sequence[Any], shared_words: int = 0) -> None:
        if hi <= lo:
            return
        kernel = compiled.kernel
        if hi > NARROW_ROWS and not kernel.wide_index:
            raise DeviceError(f"a kernel with a 32-bit row index cannot run rows up to {hi}")
        profile = _profile(_device())
        threads, resident, shared = tuning.launches.threads, tuning.launches.blocks_a_processor, 0
        if kernel.uses_private:
            threads, shared = PRIVATE_THREADS, shared_words * PRIVATE_THREADS * INT64_BYTES
            resident = _resident(threads, shared, compiled.registers, profile)
        elif kernel.uses_block:
            shared = shared_words * INT64_BYTES
            threads, resident = block_shape(shared, compiled.registers, profile)
        if shared > profile.shared_bytes:
            _allow_shared(compiled.entry, shared)
        blocks = min(-(-(hi - lo) // threads), profile.processors * resident)
        compiled.entry(blocks, threads, shared, (lo, hi, self._abort_flag(), *arguments))

    @contextmanager
    def aborting_on(self, word: Any) -> Iterator[None]:
        """Within it, kernels that this thread launches do nothing once ``word`` (uint32, on the GPU) is not 0."""
        before = getattr(self._local, "abort_flag", None)
        self._local.abort_flag = int(word.data.ptr)
        try:
            yield
        finally:
            self._local.abort_flag = before

    def _abort_flag(self) -> int:
        word = getattr(self._local, "abort_flag", None)
        return _never(_device())[1] if word is None else int(word)


def _wait(key: tuple[str, int], compiled: Compiled) -> None:
    """Until what is queued has run: the machine code of a kernel goes with it."""
    import cupy

    with cupy.cuda.Device(key[1]):
        cupy.cuda.runtime.deviceSynchronize()


def block_shape(shared: int, registers: int, profile: DeviceProfile) -> tuple[int, int]:
    """Threads of a block with ``shared`` bytes of shared memory, and the blocks that a processor runs at once: the most threads
    in all, in small blocks. No more blocks are launched, because each has to be filled and flushed.

    >>> from gquery.device.profile import H200
    >>> [block_shape(shared, 32, H200) for shared in (8_000, 40_000, 65_536)]
    [(256, 8), (512, 4), (1024, 2)]
    >>> block_shape(8_000, 40, H200), block_shape(65_536, 100, H200)
    ((256, 6), (256, 2))
    """
    sizes = [tuning.launches.threads]
    while sizes[-1] < tuning.launches.most_threads:
        sizes.append(2 * sizes[-1])
    shapes = [(n, _resident(n, shared, registers, profile)) for n in sizes]
    fitting = [(n, blocks) for n, blocks in shapes if n * _rounded(registers) <= profile.processor_registers]
    return max(fitting, key=lambda shape: shape[0] * shape[1])


def _resident(threads: int, shared: int, registers: int, profile: DeviceProfile) -> int:
    """Blocks that a processor runs at once, one at least."""
    by_registers = profile.processor_registers // (threads * _rounded(registers))
    by_shared = profile.processor_shared_bytes // (shared + profile.reserved_shared_bytes)
    return max(1, min(profile.processor_threads // threads, by_registers, by_shared))


def _rounded(registers: int) -> int:
    """The registers that a thread takes: they are given out eight at a time."""
    return max(8, -(-registers // 8) * 8)


def _allow_shared(function: Any, size: int) -> None:
    from cupy.cuda import driver

    driver.funcSetAttribute(function.ptr, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, size)


def _device() -> int:
    import cupy

    return int(cupy.cuda.runtime.getDevice())


@cache
def _never(device: int) -> tuple[Any, int]:
    """An abort flag that stays 0, and its address."""
    import cupy

    with cupy.cuda.Device(device):
        word = cupy.zeros(1, np.uint32)
        cupy.cuda.get_current_stream().synchronize()  # other streams read it too
    return word, int(word.data.ptr)


@cache
def _capability(device: int) -> tuple[int, int]:
    import cupy

    digits = cupy.cuda.Device(device).compute_capability
    return int(digits[:-1]), int(digits[-1])


@cache
def _profile(device: int) -> DeviceProfile:
    return get_profile(Device("cuda", device))


TARGET = CudaTarget()
