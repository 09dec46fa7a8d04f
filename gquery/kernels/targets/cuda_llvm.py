"""Our own way to PTX: a kernel lowered to LLVM's text, which libNVVM compiles. Nothing here needs Numba, a GPU or a driver.

libNVVM knows LLVM 7 for GPUs before compute capability 10, and a newer one for those since; both take pointers with types,
which this text has.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from gquery.kernels.kernel import Kernel
from gquery.kernels.lowering.assembler import LoweringError
from gquery.kernels.lowering.library import Library
from gquery.kernels.lowering.module import cuda_module
from gquery.kernels.lowering.names import ENTRY, LINKED
from gquery.kernels.lowering.user import UserModule
from gquery.kernels.lowering.values import Type
from gquery.kernels.primitives import block, partition, row_partition, warp, warp_pages, warp_texts
from gquery.kernels.targets import cubin_assembler
from gquery.kernels.targets.binding import Primitives
from gquery.kernels.targets.cache import KernelSource, compile_error, source_name
from gquery.kernels.targets.cuda_intrinsics import CUDA_DEFINITIONS
from gquery.kernels.targets.cuda_shared import SHARED_DEFINITIONS
from gquery.runtime.interrupt import holding

_LAYOUT = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-"
    "v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
)
_MATHEMATICS = ("sqrt", "copysign", "log", "log2", "log10", "exp", "pow", "sin", "cos", "tan", "asin", "acos", "atan",
                "atan2", "fmod", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "lgamma")  # fmt: skip
_OUTSIDE = re.compile(r'@"?__nv_')  # functions of libdevice


@cache
def library() -> Library:
    """The primitives of GPUs."""
    own = warp, warp_pages, warp_texts, block, partition, row_partition
    primitives = Primitives(CUDA_DEFINITIONS | SHARED_DEFINITIONS, own_bodies=own)
    return Library(primitives, {name: f"__nv_{name}" for name in _MATHEMATICS} | {"gamma": "__nv_tgamma"}, _user_module)


@holding()  # Numba would stay broken where an interrupt ends its import
def _user_module(function: Callable[..., Any], given: tuple[Type, ...], name: str) -> UserModule:
    from gquery.kernels.targets.cuda_user import make_module

    return make_module(function, given, name)


def source(kernel: Kernel) -> KernelSource:
    """A kernel's module, lowered when it is asked for, and its name in the cache."""
    name = source_name("cuda", "llvm", kernel.digest)
    return KernelSource(name, lambda: _module_text(kernel, name), ".ll", kernel)


def _module_text(kernel: Kernel, name: str) -> str:
    try:
        return cuda_module(kernel, library(), head())
    except (LoweringError, SyntaxError) as error:
        raise compile_error(KernelSource(name, lambda: kernel.text), error) from error


def head() -> list[str]:
    """The lines that a module begins with."""
    from cuda.bindings import nvvm

    version = ", ".join([f"i32 {number}" for number in nvvm.ir_version()])
    return [
        'target triple = "nvptx64-nvidia-cuda"',
        f'target datalayout = "{_LAYOUT}"',
        "!nvvmir.version = !{!1}",
        f"!1 = !{{{version}}}",
    ]


def ptx(source: KernelSource, cc: tuple[int, int], is_careful: bool = False) -> tuple[str, str]:
    """PTX of a kernel's module and the name of its entry. RuntimeError, with what libNVVM says, for text that is none."""
    return compiled(source.text, cc, "-opt=0" if is_careful else "-opt=3"), ENTRY


def warm_up() -> None:
    """Compile a first small module: libNVVM and the assembler make their tables at that."""
    lines = [*head(), f"define void @{ENTRY}() {{", "ret void", "}", "!nvvm.annotations = !{!0}"]
    compiled("\n".join([*lines, f'!0 = !{{void ()* @{ENTRY}, !"kernel", i32 1}}']), (9, 0))
    cubin_assembler.warm_up()


def compiled(text: str, cc: tuple[int, int], optimized: str = "-opt=3") -> str:
    """The PTX of a module's text. RuntimeError, with what libNVVM says, for text that is none."""
    from cuda.bindings import nvvm

    program = nvvm.create_program()
    try:
        for place, module in enumerate(text.split(LINKED)):
            data = module.encode()
            nvvm.add_module_to_program(program, data, len(data), f"{ENTRY}{place or ''}")
        if _OUTSIDE.search(text) is not None:
            nvvm.lazy_add_module_to_program(program, _libdevice(), len(_libdevice()), "libdevice")
        options = [f"-arch=compute_{cc[0]}{cc[1]}", optimized]
        try:
            nvvm.compile_program(program, len(options), options)
        except nvvm.nvvmError as error:
            log = bytearray(nvvm.get_program_log_size(program))
            nvvm.get_program_log(program, log)
            raise RuntimeError(log.decode(errors="replace").strip("\0\n ") or str(error)) from error
        made = bytearray(nvvm.get_compiled_result_size(program))
        nvvm.get_compiled_result(program, made)
        return made.decode().strip("\0")
    finally:
        nvvm.destroy_program(program)


def calls_others(text: str) -> bool:
    """Whether a module calls functions that others wrote: libdevice's, or those of users."""
    return LINKED in text or _OUTSIDE.search(text) is not None


@cache
def _libdevice() -> bytes:
    """NVIDIA's library of mathematical functions, as LLVM's bitcode."""
    from cuda.pathfinder import find_bitcode_lib

    return Path(find_bitcode_lib("device")).read_bytes()
