"""Our own way to machine code for this processor: a kernel lowered to LLVM's text, which LLVM makes object code of.

Nothing here needs Numba. Each kernel that is loaded has a library of its own in one linker (LLJIT), which is freed with the
function that Python calls.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import llvmlite.binding as llvm

from gquery import tuning
from gquery.errors import InternalError
from gquery.kernels.kernel import Kernel
from gquery.kernels.lowering.names import ENTRY, LINKED
from gquery.kernels.targets.cache import KernelSource, compile_error, kernel_cache, source_name
from gquery.kernels.targets.cpu_numba import cpu_entry
from gquery.runtime.interrupt import holding

if TYPE_CHECKING:
    from gquery.kernels.lowering.library import Library
    from gquery.kernels.lowering.user import UserModule
    from gquery.kernels.lowering.values import Type

_MATHEMATICS = {n: f"llvm.{n}.f64" for n in ("sqrt", "copysign", "log", "log2", "log10", "exp", "pow", "sin", "cos")}
_MATHEMATICS |= {n: n for n in ("tan", "asin", "acos", "atan", "atan2", "fmod")}
_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
_loading = threading.Lock()


@cache
def library() -> Library:
    """The primitives of processors. They are imported here: a kernel from the cache is loaded without them."""
    from gquery.kernels.lowering.library import Library
    from gquery.kernels.primitives import vector_search
    from gquery.kernels.targets.binding import Primitives
    from gquery.kernels.targets.cpu_intrinsics import CPU_DEFINITIONS

    return Library(Primitives(CPU_DEFINITIONS, own_bodies=(vector_search,)), _MATHEMATICS, _user_module)


@holding()  # Numba would stay broken where an interrupt ends its import
def _user_module(function: Callable[..., Any], given: tuple[Type, ...], name: str) -> UserModule:
    from gquery.kernels.targets.cpu_user import make_module

    return cast("UserModule", make_module(function, given, name))


@cache
def _processor() -> str:
    """What machine code depends on beside the text."""
    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()} LLVM {llvm.llvm_version_info}"


def source(kernel: Kernel) -> KernelSource:
    """A kernel's module, lowered when it is asked for, and its name in the cache."""
    name = source_name("cpu", "llvm", _processor(), kernel.digest)
    return KernelSource(name, lambda: _module_text(kernel, name), ".ll")


def read_code(source: KernelSource) -> bytes | None:
    """The object code of a kernel from the cache."""
    return kernel_cache().read(cpu_entry(source.name))


def make_code(source: KernelSource) -> bytes:
    """Compile a kernel's module and keep the result."""
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


def warm_up() -> None:
    """Compile a first small module: LLVM makes its tables at that."""
    object_code("\n".join([*head(), f"define void @{ENTRY}() {{", "ret void", "}"]))


def _module_text(kernel: Kernel, name: str) -> str:
    from gquery.kernels.lowering.assembler import LoweringError
    from gquery.kernels.lowering.module import cpu_module

    try:
        return cpu_module(kernel, library(), head())
    except (LoweringError, SyntaxError) as error:
        raise compile_error(KernelSource(name, lambda: kernel.text), error) from error


def head() -> list[str]:
    """The lines that a module begins with."""
    return [f'target triple = "{llvm.get_process_triple()}"', f'target datalayout = "{_machine().target_data}"']


def object_code(text: str) -> bytes:
    """The object code of a module's text. RuntimeError, with what LLVM says, for text that is none."""
    with ExitStack() as stack:
        context = llvm.create_context()  # which keeps what all modules in it have used
        stack.callback(context.close)
        own, *linked = text.split(LINKED)
        module = stack.enter_context(llvm.parse_assembly(own, context))
        for other in linked:
            module.link_in(llvm.parse_assembly(other, context))
        if linked:
            _close(module)
        module.verify()
        options = stack.enter_context(llvm.create_pipeline_tuning_options(speed_level=tuning.compiling.optimization))
        options.loop_vectorization = options.loop_interleaving = True
        options.slp_vectorization = False
        builder = stack.enter_context(llvm.create_pass_builder(_machine(), options))
        inlining = stack.enter_context(llvm.create_new_module_pass_manager())
        inlining.add_always_inliner_pass()
        inlining.run(module, builder)
        stack.enter_context(builder.getModulePassManager()).run(module, builder)
        return bytes(_machine().emit_object(module))


def _close(module: Any) -> None:
    """Leave nothing but the entry of linked modules for others to see, so that what is inlined goes. RuntimeError where one calls
    what nobody has."""
    for found in module.functions:
        if not found.is_declaration:
            found.linkage = found.linkage if found.name == ENTRY else "internal"
        elif not found.name.startswith("llvm.") and not llvm.address_of_symbol(found.name):
            raise RuntimeError(f"a module that is linked calls {found.name}, which nobody has")


def load(code: bytes) -> Callable[[int, int, bytes], None]:
    """The entry of a kernel's object code, of rows and of a word for each parameter. The code lies in memory as long as the
    function. InternalError for code that needs what there is not."""
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(ENTRY)
    with _loading:
        try:
            linked = builder.link(_linker(), f"kernel{_number()}")
        except RuntimeError as error:
            raise InternalError(f"a kernel's machine code cannot be linked: {error}") from None
    function: Any = _PROTOTYPE(linked[ENTRY])
    function.linked = linked
    return function  # type: ignore[no-any-return]


@cache
def _target() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_triple(llvm.get_process_triple())


@cache
def _machine() -> Any:
    """This processor, for code whose sections and callees may lie anywhere: a linker that finds two of them further than 2 GB
    apart, where the code counts on less, ends the process."""
    return _target().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=tuning.compiling.optimization,
        reloc="static",
        codemodel="jitdefault",
        jit=True,
    )


@cache
def _linker() -> Any:
    return llvm.create_lljit_compiler(
        _target().create_target_machine(opt=0, reloc="static", codemodel="jitdefault", jit=True)
    )


_numbers = itertools.count()


def _number() -> int:
    return next(_numbers)
