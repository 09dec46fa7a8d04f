"""The cuda target: one of two compilers makes a cubin (see `compilers`), CuPy launches.

A thread takes the rows lo + its number, and from there on every thread-count-th: neighbouring lanes read neighbouring
elements. The index has 32 bits unless the kernel says otherwise. Every kernel looks at a *abort flag* before it does anything
(see `execution.speculation`). A cubin from the cache needs no compiler: a warm
process imports CuPy alone.

What no cache has is waited for as a *draft* (`cuda_draft`), while other processes compile the kernel proper, which takes the
draft's place as soon as it is on disk; a recording waits for it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, cast

from gquery import tuning
from gquery.device.array import on_gpu
from gquery.device.device import Device
from gquery.device.graph import last_node
from gquery.device.profile import DeviceProfile, get_profile
from gquery.device.section import Section
from gquery.errors import DeviceError
from gquery.expression.facts import INT64_BYTES
from gquery.kernels.builtin.registry import awaited_kernels, encoding_kernels
from gquery.kernels.kernel import Kernel, Parameter
from gquery.kernels.targets import cpu, cuda_numba
from gquery.kernels.targets.base import (
    NARROW_ROWS,
    PRIVATE_THREADS,
    Compiled,
    KernelsAwaitedError,
    LaunchedKernel,
    Perhaps,
)
from gquery.kernels.targets.cache import kernel_cache
from gquery.kernels.targets.compilers import Compiler, compiler_of
from gquery.kernels.targets.cubin import Cubin, cubin_entry, cuda_compiler, read_cubin
from gquery.kernels.targets.cuda_contexts import LaunchContexts
from gquery.kernels.targets.cuda_launch import Launcher, launch_defaults
from gquery.kernels.targets.cuda_modules import Modules
from gquery.kernels.targets.cuda_shape import block_shape, resident_blocks
from gquery.kernels.targets.cuda_sources import (
    Source,
    are_probably_absent,
    entry_path,
    is_still_made,
    made_here,
    requests_of,
)
from gquery.kernels.targets.workers import Request, workers
from gquery.runtime.once import once
from gquery.runtime.recent import Recent
from gquery.runtime.stopwatch import part
from gquery.runtime.tuples import NamedTuple


class CudaTarget(LaunchContexts):
    """Compiles kernels for NVIDIA GPUs. See `Target`."""

    name = "cuda"

    def __init__(self) -> None:
        super().__init__()
        self._compiled = Recent[_Key, Compiled](tuning.compiling.kept_kernels)
        self._begun: set[tuple[int, int]] = set()  # capabilities for which the built-in kernels were seen to
        self._asked = Recent[str, bool](tuning.compiling.kept_kernels)  # entries of the cache that workers were to make
        self._lock = threading.Lock()

    def source(self, kernel: Kernel) -> str:
        return cuda_numba.module_text(kernel)

    def held(self) -> list[Compiled]:
        return [made for _, made in self._compiled.items()]

    def is_ready(self, kernel: Kernel) -> bool:
        return self._key(kernel, _device()) in self._compiled

    def is_cached(self, kernel: Kernel) -> bool:
        return self.is_ready(kernel) or not self._without_code([kernel], _capability(_device()))

    def compile(self, kernel: Kernel) -> Compiled:
        key = self._key(kernel, _device())
        compiled = self._compiled.get(key)
        if compiled is None or (compiled.is_draft and self._is_due(kernel, _capability(key.device))):
            if compiled is None and self._local.drafts is not None:
                self._have_begun([kernel], _capability(key.device))
            with part("compile"):
                compiled = self._newly(kernel, key, _capability(key.device))
        if compiled.is_draft and self._local.drafts is not None:
            self._local.drafts[kernel] = None
        return compiled

    def _have_begun(self, kernels: Sequence[Kernel], cc: tuple[int, int]) -> None:
        """KernelsAwaitedError if one of these kernels would be waited for; they are begun with."""
        if kernel_cache().is_usable and workers().can_start and self._without_code(kernels, cc):
            self._compile_first(kernels, cc)
            raise KernelsAwaitedError(kernels)

    def _newly(self, kernel: Kernel, key: _Key, cc: tuple[int, int]) -> Compiled:
        """The kernel, which is not in memory, or is a draft that is due."""
        first = self._first(kernel)
        if is_still_made(first, cc):  # with no lock, as other threads want other kernels
            self._compile_now([first], cc)
        with self._lock:
            known = self._compiled.get(key)
            if known is None or (known.is_draft and self._is_due(kernel, cc)):
                made = self._make(kernel, cc, is_final=known is not None)
                if known is not None:
                    made = replace(made, cached=False, seconds=known.seconds + made.seconds)
                known = self._compiled[key] = made
            return known

    def _is_due(self, kernel: Kernel, cc: tuple[int, int]) -> bool:
        """Whether a draft's kernel proper is to take its place: it is there; or a recording keeps what it launches; or no process
        compiles it, as that failed or its result could not be kept, so that this one does."""
        if self._local.is_recorded or not kernel_cache().is_usable:
            return True
        found = self._source(kernel)
        (request,) = requests_of([found], cc)
        return kernel_cache().has(cubin_entry(found.source, cc)) or not workers().is_open(request)

    def _key(self, kernel: Kernel, device: int) -> _Key:
        return _Key(kernel.digest, device, compiler_of(self.name))

    def compile_many(self, kernels: Sequence[Kernel], perhaps: Perhaps = tuple) -> list[Compiled]:
        """`compile` for the kernels of a query: those that no cache has compile at once, in worker processes, and
        behind them the built-in ones, which the query or the next one would wait for one at a time."""
        device = _device()
        cc = _capability(device)
        missing = [k for k in kernels if self._key(k, device) not in self._compiled]
        if self._local.drafts is not None:
            self._have_begun(missing, cc)
        if wanted := self._without_code(missing, cc):
            self._compile_first(list(perhaps()), cc)
            self._compile_builtin(cc)
            self._compile_now(wanted, cc)
        return [self.compile(k) for k in kernels]

    def begin(self, kernels: Iterable[Kernel], perhaps: Perhaps = tuple) -> None:
        """Workers get each kernel that no cache has while the next one is written, and stages run while kernels of later ones
        compile: whoever launches one waits for it."""
        if not kernel_cache().is_usable or not workers().can_start:
            self.compile_many(list(dict.fromkeys(kernels)), perhaps)
            return
        device, is_begun = _device(), False
        cc = _capability(device)
        for kernel in kernels:
            if self._key(kernel, device) not in self._compiled and (missing := self._without_code([kernel], cc)):
                workers().compile_soon(self._noted(missing, cc))
                is_begun = True
        if is_begun:
            self._compile_first(list(perhaps()), cc)
            self._compile_builtin(cc)

    def compile_in_background(self, kernels: Sequence[Kernel]) -> None:
        """Begin to compile in the background what no cache has."""
        device = _device()
        known = ((k, self._compiled.get(self._key(k, device))) for k in kernels)
        self._compile_later([k for k, made in known if made is None or made.is_draft], _capability(device))

    def is_at_hand(self, kernels: Sequence[Kernel]) -> bool:
        """Whether nobody would have to wait for a compiler: for these kernels, and the built-in ones that have been used. What
        is missing is compiled first. Also where there is no cache through which kernels could be compiled meanwhile."""
        if not kernel_cache().is_usable:
            return True
        device = _device()
        cc = _capability(device)
        used = [k for k in awaited_kernels() if self._key(k, device) in self._compiled]
        awaited = [self._source(k) for k in (*kernels, *used) if self._is_awaited(k, device, cc)]
        workers().bring_forward(requests_of(awaited, cc))
        return not awaited

    def _is_awaited(self, kernel: Kernel, device: int, cc: tuple[int, int]) -> bool:
        """Whether somebody compiles what this kernel is to run on: anything where there is nothing, and the kernel proper where
        a draft has run. What nobody compiles is begun by who needs it: to wait for that would never end."""
        compiled = self._compiled.get(self._key(kernel, device))
        if compiled is not None:
            return compiled.is_draft and not self._is_due(kernel, cc)
        sources = self._source(kernel), self._first(kernel)
        return self._lacks(sources, cc) and any(is_still_made(s, cc) for s in sources)

    def precompile(self) -> None:
        """Where nothing has been compiled yet, begin with the built-in kernels, while files are opened and read; behind them
        with those that encode columns on the host."""
        cc = _capability(_device())
        if self._without_code(awaited_kernels()[:1], cc):
            self._compile_builtin(cc)
            cpu.TARGET.precompile(encoding_kernels())

    def _compile_builtin(self, cc: tuple[int, int]) -> None:
        """Once in a process: to look for all of them takes as long as a small query."""
        if cc not in self._begun:
            self._begun.add(cc)
            self._compile_first(awaited_kernels(), cc)

    def _compile_first(self, kernels: Sequence[Kernel], cc: tuple[int, int]) -> None:
        """Begin with what first runs would wait for: drafts. Only of those that are used the kernels proper follow."""
        missing = self._without_code(kernels, cc)
        if missing and kernel_cache().is_usable:  # workers hand their results over through it
            workers().compile_early(self._noted(missing, cc))

    def _compile_later(self, kernels: Sequence[Kernel], cc: tuple[int, int]) -> None:
        missing = [s for s in sorted({self._source(k) for k in kernels}) if self._lacks([s], cc)]
        if missing and kernel_cache().is_usable:
            workers().compile_later(self._noted(missing, cc))

    def _missing(self, kernels: Sequence[Kernel], cc: tuple[int, int]) -> list[Source]:
        sources = {self._source(k) for k in kernels}
        return [found for found in sorted(sources) if read_cubin(found.source, cc) is None]

    def _without_code(self, kernels: Sequence[Kernel], cc: tuple[int, int]) -> list[Source]:
        """What is to be compiled for kernels of which the cache has neither the machine code nor that of a draft."""
        without = [k for k in kernels if self._lacks((self._source(k), self._first(k)), cc)]
        longest_first = sorted(without, key=lambda k: (-len(k.text), k.digest))
        return list(dict.fromkeys(self._first(k) for k in longest_first))

    def _noted(self, missing: Sequence[Source], cc: tuple[int, int]) -> list[Request]:
        for found in missing:
            self._asked[entry_path(found, cc)] = True
        return requests_of(missing, cc)

    def _lacks(self, sources: Sequence[Source], cc: tuple[int, int]) -> bool:
        """Whether the cache probably has none of these, the last of which would be asked for: what workers were given is there
        once they are done with it, or is compiled where it is needed."""
        last = sources[-1]
        return is_still_made(last, cc) if entry_path(last, cc) in self._asked else are_probably_absent(sources, cc)

    def _source(self, kernel: Kernel) -> Source:
        name = compiler_of(self.name)
        return Source(name, cuda_compiler(name).source(kernel))

    def _first(self, kernel: Kernel, is_final: bool = False) -> Source:
        """What a first run of a kernel waits for: a draft, where the kernel proper can be compiled beside this process."""
        is_final = is_final or self._local.is_recorded or compiler_of(self.name) != "llvm"
        if is_final or not kernel_cache().is_usable or not workers().can_start:
            return self._source(kernel)
        return Source("draft", cuda_compiler("draft").source(kernel))

    def _found(self, kernel: Kernel, cc: tuple[int, int], is_final: bool = False) -> tuple[Cubin, Source] | None:
        """The machine code of a kernel in the cache, or else of what a first run takes, and which of them it is."""
        sources = self._source(kernel), self._first(kernel, is_final)
        if entry_path(sources[1], cc) in self._asked:  # what stands on it is not made before it
            sources = sources[::-1]
        for source in sources:
            cubin = read_cubin(source.source, cc)
            if cubin is not None:
                return cubin, source
        return None

    def compile_cubins(self, kernels: Sequence[Kernel], cc: tuple[int, int]) -> None:
        """Have the kernels' machine code in the cache folder. Needs no GPU."""
        self._compile_now(self._missing(kernels, cc) if kernel_cache().is_usable else [], cc)

    def _compile_now(self, missing: Sequence[Source], cc: tuple[int, int]) -> None:
        """Compile into the cache folder, if it can be used, in several processes where that is sooner."""
        if not kernel_cache().is_usable:
            return
        is_begun = any(workers().is_open(r) for r in requests_of(missing, cc))
        if len(missing) > 1 or is_begun or (missing and workers().has_ready):
            # a worker that is ready has done three kernels before this process has imported Numba
            is_imported = "numba.cuda" in sys.modules or all(found.compiler != "numba" for found in missing)
            patience = 1 if is_imported else tuning.compiling.patience
            compilers = {found.source: found.compiler for found in missing}
            workers().compile_at_once(
                requests_of(missing, cc), lambda r: made_here(compilers[r[1]], r[1], r[2]), patience
            )

    def compile_cubin(self, kernel: Kernel, cc: tuple[int, int]) -> Cubin:
        """The kernel's machine code for a compute capability, from the cache or made now. Needs no GPU."""
        name, source = self._source(kernel)
        return read_cubin(source, cc) or made_here(name, source, cc)

    def _make(self, kernel: Kernel, cc: tuple[int, int], is_final: bool) -> Compiled:
        start = time.perf_counter()
        found = self._found(kernel, cc, is_final)
        cached = found is not None
        if found is None:
            name, source = first = self._first(kernel, is_final)
            self._compile_now([first], cc)
            found = self._found(kernel, cc, is_final) or (made_here(name, source, cc), first)
        cubin, (name, source) = found
        if name == "draft":
            self._compile_later([kernel], cc)
        function = _modules(_device()).load(cubin, kernel)
        seconds = time.perf_counter() - start
        return Compiled(
            kernel, function, source.name, seconds, cached, cubin.registers, cubin.local_bytes, cubin.shared_bytes,
            name == "draft",
        )  # fmt: skip

    def argument(self, parameter: Parameter, value: Any) -> Any:
        if not parameter.is_pointer:
            return parameter.number(value)
        noted = self._local.noted
        if noted is not None:
            noted.arrays.append(value)
        if isinstance(value, Section):
            return value.origin(on_gpu(value.array).data.ptr)
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
            resident = resident_blocks(threads, shared, compiled.registers, profile)
        elif kernel.uses_block:
            shared = shared_words * INT64_BYTES
            threads, resident = block_shape(shared, compiled.registers, profile)
        launcher = cast(Launcher, compiled.entry)
        if shared > profile.shared_bytes:
            launcher.allow_shared(shared)
        blocks = min(-(-(hi - lo) // threads), profile.processors * resident)
        values = (lo, hi, self._abort_flag(), self._limit(), *arguments)
        launcher(blocks, threads, shared, values)
        if self._local.noted is not None:
            shape = blocks, threads, shared
            made = LaunchedKernel(compiled, shape, values, arguments, last_node(_current_stream()))
            self._local.noted.kernels.append(made)

    def _abort_flag(self) -> int:
        word = self._local.abort_flag
        return launch_defaults(_device()).never if word is None else word

    def _limit(self) -> int:
        limit = self._local.limit
        return launch_defaults(_device()).unlimited if limit is None else limit


class _Key(NamedTuple):
    """What a compiled kernel is kept by."""

    digest: str
    device: int
    compiler: Compiler


_modules = once(Modules)  # of a GPU


def _device() -> int:
    import cupy

    return int(cupy.cuda.runtime.getDevice())


def _current_stream() -> int:
    import cupy

    return int(cupy.cuda.get_current_stream().ptr)


@cache
def _capability(device: int) -> tuple[int, int]:
    import cupy

    digits = cupy.cuda.Device(device).compute_capability
    return int(digits[:-1]), int(digits[-1])


@cache
def _profile(device: int) -> DeviceProfile:
    return get_profile(Device("cuda", device))


TARGET = CudaTarget()
