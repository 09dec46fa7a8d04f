"""Our own way to machine code for this processor: a kernel lowered to LLVM's text, which LLVM makes object code of.

Nothing here needs Numba, and LLVM only what is not in the cache: code from there is put into memory as it is (`objects`), and
freed with the function that Python calls.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from gquery.kernels.kernel import Kernel
from gquery.kernels.lowering.names import ENTRY
from gquery.kernels.targets.cache import KernelSource, compile_error, kernel_cache, source_name
from gquery.kernels.targets.cpu_numba import cpu_entry
from gquery.kernels.targets.objects import LoadedObject, NotPlainError
from gquery.runtime.forking import whole
from gquery.runtime.interrupt import holding

if TYPE_CHECKING:
    from gquery.kernels.lowering.library import Library
    from gquery.kernels.lowering.user import UserModule
    from gquery.kernels.lowering.values import Type
    from gquery.kernels.targets.cpu_code import Linked

_MATHEMATICS = {n: f"llvm.{n}.f64" for n in ("sqrt", "copysign", "log", "log2", "log10", "exp", "pow", "sin", "cos")}
_MATHEMATICS |= {n: n for n in ("tan", "asin", "acos", "atan", "atan2", "fmod")}
_MATHEMATICS |= {n: n for n in ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "lgamma")} | {"gamma": "tgamma"}
_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


@cache
def library() -> Library:
    """The primitives of processors. They are imported here: a kernel from the cache is loaded without them."""
    from gquery.kernels.lowering.library import Library
    from gquery.kernels.primitives import chunks, footers, moves, page_list, uploads, vector_search
    from gquery.kernels.targets.binding import Primitives
    from gquery.kernels.targets.cpu_intrinsics import CPU_DEFINITIONS

    own = vector_search, chunks, footers, uploads, page_list, moves
    return Library(Primitives(CPU_DEFINITIONS, own_bodies=own), _MATHEMATICS, _user_module)


@holding()  # Numba would stay broken where an interrupt ends its import
def _user_module(function: Callable[..., Any], given: tuple[Type, ...], name: str) -> UserModule:
    from gquery.kernels.targets.cpu_user import make_module

    return cast("UserModule", make_module(function, given, name))


@cache
def _processor() -> str:
    """What machine code depends on beside the text. LLVM tells it once while a machine is up, and the cache keeps that."""
    started = _started()
    name = f"p{source_name('processor', started)[1:]}" if started else ""  # k begins the names of kernels
    known = kernel_cache().read(name) if started else None
    if known is not None:
        return known.decode()
    from gquery.kernels.targets.cpu_code import processor

    told = processor()
    if started:
        kernel_cache().write(name, told.encode())
    return told


def _started() -> str:
    """The machine with its processor's features, by a number that it drew when it was started; empty where it does not tell."""
    told = []
    for path in ("/proc/sys/kernel/random/boot_id", "/sys/devices/system/cpu/modalias"):
        try:
            with open(path, encoding="utf-8") as file:
                told.append(file.read())
        except OSError:
            return ""
    return "".join(told)


def source(kernel: Kernel) -> KernelSource:
    """A kernel's module, lowered when it is asked for, and its name in the cache."""
    name = source_name("cpu", "llvm", _processor(), kernel.digest)
    return KernelSource(name, lambda: _module_text(kernel, name), ".ll")


def read_code(source: KernelSource) -> bytes | None:
    """The object code of a kernel from the cache."""
    return kernel_cache().read(cpu_entry(source.name))


def make_code(source: KernelSource) -> bytes:
    """Compile a kernel's module and keep the result."""
    from gquery.kernels.targets.cpu_code import object_code

    try:
        code = object_code(source.text)
    except RuntimeError as error:
        raise compile_error(source, error) from error
    kernel_cache().write(cpu_entry(source.name), code)
    return code


def function_of(kernel: Kernel, code: bytes) -> Callable[..., None]:
    """A kernel's function of rows and arguments, integers or doubles each."""
    entry = load(code)
    kinds = ["d" if p.type == "f64" and not p.is_pointer else "q" for p in kernel.parameters]
    words = struct.Struct("=" + "".join(kinds)).pack

    def function(lo: int, hi: int, *arguments: int | float) -> None:
        entry(lo, hi, words(*arguments))

    return function


def _module_text(kernel: Kernel, name: str) -> str:
    with whole():
        return _lowered(kernel, name)


def _lowered(kernel: Kernel, name: str) -> str:
    from gquery.kernels.lowering.assembler import LoweringError
    from gquery.kernels.lowering.module import cpu_module
    from gquery.kernels.lowering.names import DRAFT
    from gquery.kernels.targets.cpu_code import head

    try:
        return cpu_module(kernel, library(), [DRAFT, *head()] if kernel.is_draft else head())
    except (LoweringError, SyntaxError) as error:
        raise compile_error(KernelSource(name, lambda: kernel.text), error) from error


def load(code: bytes) -> Callable[[int, int, bytes], None]:
    """The entry of a kernel's object code, of rows and of a word for each parameter. The code lies in memory as long as the
    function. InternalError for code that needs what there is not."""
    try:
        loaded: LoadedObject | Linked = LoadedObject(code)
        address = loaded.address(ENTRY)
    except NotPlainError:
        from gquery.kernels.targets.cpu_code import Linked

        loaded = Linked(code)
        address = loaded.address(ENTRY)
    function: Any = _PROTOTYPE(address)
    function.loaded = loaded
    return function  # type: ignore[no-any-return]


def warm_up() -> None:
    """Compile a first small module: LLVM makes its tables at that."""
    from gquery.kernels.targets.cpu_code import head, object_code

    object_code("\n".join([*head(), f"define void @{ENTRY}() {{", "ret void", "}"]))
