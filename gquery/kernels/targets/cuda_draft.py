"""Drafts: the kernels of `cuda_llvm`, made by libNVVM without its optimizer.

A draft is compiled in half the time and gives the same answers; the assembler optimizes it, so that it keeps its variables in
registers, but it runs up to a third slower. The first run of a query takes drafts, and the kernels proper are compiled
behind it (see `cuda`).
"""

from __future__ import annotations

from gquery.kernels.kernel import Kernel
from gquery.kernels.lowering.names import ENTRY
from gquery.kernels.targets import cuda_llvm
from gquery.kernels.targets.cache import KernelSource, source_name


def source(kernel: Kernel) -> KernelSource:
    """A kernel's module, and a name in the cache that is not that of the kernel proper."""
    return KernelSource(source_name("cuda", "draft", kernel.digest), lambda: cuda_llvm.source(kernel).text, ".ll")


def ptx(source: KernelSource, cc: tuple[int, int]) -> tuple[str, str]:
    """PTX of a kernel's module and the name of its entry. RuntimeError, with what libNVVM says, for text that is none."""
    return cuda_llvm.compiled(source.text, cc, is_draft=True), ENTRY
