"""How Numba's compiler makes object code of a kernel and keeps nothing of it.

Numba makes machine code of every function that it compiles, those too that are called from other functions alone, and adds it
to one engine that never lets go of it. Here functions are LLVM modules until a kernel is done: then those that it calls are
linked into its module once, which is optimized and written as an object. Primitives are inlined everywhere, and therefore
optimized when they are made; the parts of a long kernel are optimized with it, not once more each within each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.codegen import CPUCodeLibrary, JITCodeLibrary, JITCPUCodegen
from numba.core.compiler import CompilerBase
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.registry import CPUDispatcher, CPUTarget, cpu_target
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import FixupArgs, GenericRewrites, IRProcessing, ReconstructSSA, TranslateByteCode

from gquery.kernels.targets.cpu_numba import Code


class _Library(JITCodeLibrary):  # type: ignore[misc]
    """The module of a function. Numba calls `finalize` when the function is lowered."""

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._finalized = True

    def object_code(self) -> bytes:
        """The function with all that it calls."""
        self._ensure_finalized()
        for library in dict.fromkeys(_called(self)):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        assert not self._dynamic_globals, f"addresses of this process in a kernel: {self._dynamic_globals}"
        self._optimize_final_module()
        self._final_module.verify()
        return bytes(self._codegen._tm.emit_object(self._final_module))

    def text(self, entry: str) -> str:
        """The function with all that it calls, nothing of which another module can see but ``entry``."""
        self._ensure_finalized()
        for library in dict.fromkeys(_called(self)):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        for found in (*self._final_module.functions, *self._final_module.global_variables):
            if not found.is_declaration and found.name != entry:
                found.linkage = "internal"
        self._optimize_final_module()
        self._final_module.verify()
        return str(self._final_module)


class _PrimitiveLibrary(_Library):
    """The module of a function that is inlined wherever it is called; what it calls is in it."""

    def finalize(self) -> None:
        super().finalize()
        for library in dict.fromkeys(_called(self)):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._linking_libraries.clear()
        self._optimize_final_module()


def _called(library: CPUCodeLibrary) -> Iterator[CPUCodeLibrary]:
    """The libraries of the functions that one calls, those that they call among them."""
    for callee in library._linking_libraries:
        yield callee
        if isinstance(callee, _Library):  # Numba's own have theirs linked in
            yield from _called(callee)


class _Codegen(JITCPUCodegen):  # type: ignore[misc]
    _library_class = _Library


class _PrimitiveCodegen(JITCPUCodegen):  # type: ignore[misc]
    _library_class = _PrimitiveLibrary


class _Target(CPUTarget):  # type: ignore[misc]
    """Numba's CPU target, with its types and implementations, but for the libraries that are made."""

    def __init__(self, codegen: type[JITCPUCodegen]) -> None:
        super().__init__("cpu")
        self._codegen = codegen

    @cached_property
    def target_context(self) -> Any:
        return cpu_target.target_context.subtarget(
            _internal_codegen=self._codegen("gquery"), get_executable=_no_executable, post_lowering=_no_runtime
        )

    @property
    def typing_context(self) -> Any:
        return cpu_target.typing_context


def _no_executable(library: Any, fndesc: Any, env: Any) -> object:
    """In the place of a function's machine code: what implementations are found by."""
    return object()


def _no_runtime(module: Any, library: Any) -> None:
    """Kernels allocate nothing, so that Numba's runtime for that need not be linked into each."""


class _Compiler(CompilerBase):  # type: ignore[misc]
    """Those of Numba's passes that a kernel needs. It has no closures, generators, literal loops or arrays for the others."""

    def define_pipelines(self) -> list[PassManager]:
        passes = PassManager("kernel")
        for each in _PASSES:
            passes.add_pass(each, each.__name__)
        passes.finalize()
        return [passes]


_PASSES = (
    TranslateByteCode,
    FixupArgs,
    IRProcessing,
    GenericRewrites,
    ReconstructSSA,
    NopythonTypeInference,
    PreLowerStripPhis,
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
)


class _Dispatcher(CPUDispatcher):  # type: ignore[misc]
    """A function of Numba's that compiled functions alone call."""

    targetdescr = _Target(_Codegen)

    def add_overload(self, cres: Any) -> None:
        self.overloads[tuple(cres.signature.args)] = cres  # and not for callers from Python, as there is nothing to run


class _PrimitiveDispatcher(_Dispatcher):
    targetdescr = _Target(_PrimitiveCodegen)


_OPTIONS = {"nopython": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def primitive(function: Callable[..., Any]) -> Any:
    """A function that is inlined wherever compiled code calls it."""
    return _PrimitiveDispatcher(
        function, targetoptions={**_OPTIONS, "no_cpython_wrapper": True, "forceinline": True}, pipeline_class=_Compiler
    )


def part(function: Callable[..., Any]) -> Any:
    """A function that compiled code calls."""
    return _Dispatcher(function, targetoptions={**_OPTIONS, "no_cpython_wrapper": True}, pipeline_class=_Compiler)


@global_compiler_lock  # type: ignore[untyped-decorator]
def object_code(function: Callable[..., Any], parameters: tuple[types.Type, ...]) -> Code:
    """A function without a result that Python calls, and that lets go of the interpreter's lock, compiled."""
    dispatcher = _Dispatcher(function, targetoptions={**_OPTIONS, "nogil": True}, pipeline_class=_Compiler)
    dispatcher.compile(types.void(*parameters))
    (compiled,) = dispatcher.overloads.values()
    assert not compiled.environment.consts, "objects of this process in a kernel"
    description = compiled.fndesc
    return Code(
        compiled.library.object_code(),
        description.llvm_cpython_wrapper_name,
        compiled.target_context.get_env_name(description),
    )


def module_text(function: Callable[..., Any], parameters: tuple[types.Type, ...], name: str) -> str:
    """A function without a result as the text of a module, whose entry of that name takes the parameters as they are. It raises
    no exception: what might was rewritten (`functions.user_source`)."""
    dispatcher = part(function)
    dispatcher.compile(types.void(*parameters))
    (compiled,) = dispatcher.overloads.values()
    assert not compiled.environment.consts, "objects of this process in a function"
    context = compiled.target_context
    library = context.codegen().create_library(name)
    module = library.create_ir_module(name)
    given = [context.get_value_type(p) for p in parameters]
    entry = ir.Function(module, ir.FunctionType(ir.VoidType(), given), name)
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    callee = context.declare_function(module, compiled.fndesc)
    context.call_conv.call_function(builder, callee, types.none, parameters, entry.args)
    builder.ret_void()
    library.add_ir_module(module)
    library.add_linking_library(compiled.library)
    library.finalize()
    return str(library.text(name))
