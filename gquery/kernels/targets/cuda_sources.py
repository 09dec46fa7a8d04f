"""What kernels for a GPU are compiled from: their modules, by the compilers that make machine code of them."""

from __future__ import annotations

from collections.abc import Sequence

from gquery.kernels.targets.cache import KernelSource, kernel_cache
from gquery.kernels.targets.cubin import Cubin, CubinCompiler, cubin_entry, make_cubin
from gquery.kernels.targets.workers import Request, workers
from gquery.runtime.interrupt import beside
from gquery.runtime.tuples import NamedTuple


class Source(NamedTuple):
    """A kernel's module and what compiles it."""

    compiler: CubinCompiler
    source: KernelSource


def requests_of(found: Sequence[Source], cc: tuple[int, int]) -> list[Request]:
    """What workers are asked for."""
    return [(f"cuda_{compiler}", source, cc) for compiler, source in found]


def entry_path(found: Source, cc: tuple[int, int]) -> str:
    """Where the cache has, or would have, its machine code."""
    return f"{kernel_cache().path}/{cubin_entry(found.source, cc)}"


def are_probably_absent(found: Sequence[Source], cc: tuple[int, int]) -> bool:
    """Whether the cache has none of these, unless one was written in the last seconds."""
    return not any(kernel_cache().has_probably(cubin_entry(one.source, cc)) for one in found)


def is_still_made(found: Source, cc: tuple[int, int]) -> bool:
    """Whether a worker compiles it, or will."""
    return workers().is_open(*requests_of([found], cc))


def made_here(name: CubinCompiler, source: KernelSource, cc: tuple[int, int]) -> Cubin:
    """Compiled in this process. What a worker died of is not optimized here, and not kept: another process has workers again."""
    died = workers().has_died_of((f"cuda_{name}", source, cc))
    return beside(lambda: make_cubin(name, source, cc, is_careful=died, is_kept=not died))
