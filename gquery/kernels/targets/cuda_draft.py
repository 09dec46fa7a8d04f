"""Drafts: the kernels of `cuda_llvm`, made by libNVVM without its optimizer.

A draft is compiled in half the time and gives the same answers; the assembler optimizes it, so that it keeps its variables in
registers. It takes a row at a time, however many the kernel proper takes. The first run of a query takes drafts, and the kernels
proper are compiled behind it (see `cuda`).
"""

from __future__ import annotations

from dataclasses import replace

from gquery.kernels.kernel import Kernel
from gquery.kernels.lowering.names import ENTRY
from gquery.kernels.targets import cuda_llvm
from gquery.kernels.targets.cache import KernelSource, source_name


def source(kernel: Kernel) -> KernelSource:
    """A kernel's module, and a name in the cache that is not that of the kernel proper."""
    return KernelSource(source_name("cuda", "draft", kernel.digest), lambda: _text(kernel), ".ll", kernel)


def _text(kernel: Kernel) -> str:
    if kernel.unrolled is None:
        return cuda_llvm.source(kernel).text
    text = cuda_llvm.source(replace(kernel, unrolled=None)).text
    return cuda_llvm.source(kernel).text if cuda_llvm.calls_others(text) else text  # optimized, it is to round alike


def ptx(source: KernelSource, cc: tuple[int, int], is_careful: bool = False) -> tuple[str, str]:
    """PTX of a kernel's module and the name of its entry. RuntimeError, with what libNVVM says, for text that is none. Functions
    that others wrote, libdevice's and those of users, are optimized: what of them is contracted to FMAs is left to the optimizer,
    and a draft is to round as the kernel proper does."""
    is_optimized = cuda_llvm.calls_others(source.text) and not is_careful
    return cuda_llvm.compiled(source.text, cc, "-opt=3" if is_optimized else "-opt=0"), ENTRY
