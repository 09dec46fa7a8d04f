"""Numba's way to PTX: a kernel as a module of Python that it compiles. Numba is imported when there is something to compile."""

from __future__ import annotations

from typing import Any

from gquery.kernels.ir import printed, printed_body
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets import cubin_assembler
from gquery.kernels.targets.cache import KernelSource, kernel_source, load_module
from gquery.kernels.targets.text import free_names, functions_text
from gquery.runtime import collector


def source(kernel: Kernel) -> KernelSource:
    """A kernel's module and its name in the cache."""
    return kernel_source(module_text(kernel), "cuda")


def module_text(kernel: Kernel) -> str:
    """The text of the module that Numba compiles."""
    index = "uint64" if kernel.wide_index else "uint32"
    own = [f"{'*' * p.is_pointer}{p.type}" for p in kernel.parameters]
    signature = [index.replace("uint", "u")] * 2 + ["*u32", "*i64", *own]
    lines = [f"SIGNATURE = {tuple(signature)!r}", "", ""]
    lines.append(
        f"def kernel({', '.join(['lo', 'row_end', 'abort', 'row_limit', *(p.name for p in kernel.parameters)])}):"
    )
    lines += [f"    hi = {index}(min_i64(i64(row_end), row_limit[0]))", "    if abort[0] != 0:", "        return"]
    lines += [f"    row_step = {index}(thread_count())", f"    i = {index}(lo + thread_index())"]
    lines += printed(kernel.prologue, 1)
    unrolled, body = kernel.unrolled, kernel.body
    functions = functions_text(kernel, "@device\n")
    if unrolled is not None:
        # the last of a warp's rows decides, so that all its lanes take the same loop
        lines.append(f"    while (i | 31) + {unrolled.rows - 1} * row_step < hi:")
        lines += [f"        i{k} = {index}(i + {k} * row_step)" for k in range(unrolled.rows)]
        lines += [*printed(unrolled.body, 2), f"        i = {index}(i + {unrolled.rows} * row_step)"]
        body = unrolled.single or body
        if unrolled.function is not None:
            functions += "\n".join(["@inlined", *unrolled.function.text]) + "\n\n\n"
    lines += ["    while i < hi:", *printed_body(body, 2), f"        i = {index}(i + row_step)"]
    lines += printed(kernel.epilogue, 1)
    text = functions + "\n".join(lines) + "\n"
    imported = "".join(f"    {name},\n" for name in sorted(free_names(text)))
    return f"from gquery.kernels.targets.cuda_primitives import (\n{imported})\n\n\n{text}"


def ptx(source: KernelSource, cc: tuple[int, int], is_careful: bool = False) -> tuple[str, str]:
    """PTX of a kernel's module and the name of its entry, always optimized: this compiler is asked for, and never chosen."""
    from gquery.kernels.targets.cuda_primitives import compiling_for, ptx

    with collector.paused(), compiling_for(cc):
        module = load_module(source)
        return ptx(module.kernel, module.SIGNATURE, cc)


def warm_up() -> None:
    """Compile a first small kernel: Numba and the assembler make their tables at that."""
    from gquery.kernels.targets.cuda_primitives import compiling_for, ptx

    def kernel(state: Any) -> None:
        state[0] = 1

    any_gpu = (9, 0)
    with compiling_for(any_gpu):
        ptx(kernel, ("*i64",), any_gpu)
    cubin_assembler.warm_up()
