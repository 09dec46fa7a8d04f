"""What LLVM does for this processor: object code of a module's text, and the linking of it. Whoever loads a kernel from the cache
does without."""

from __future__ import annotations

import itertools
import threading
from contextlib import ExitStack
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from gquery import tuning
from gquery.errors import InternalError
from gquery.kernels.lowering.names import DRAFT, ENTRY, LINKED
from gquery.runtime.forking import free_in_child, hold

_linking = free_in_child(threading.Lock())
hold(llvm.ffi.lib._lock)  # it has no public name; whoever calls LLVM has it


@cache
def processor() -> str:
    """What machine code depends on beside the text."""
    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()} LLVM {llvm.llvm_version_info}"


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
        if text.startswith(DRAFT):
            return _draft(module, stack)
        options = stack.enter_context(llvm.create_pipeline_tuning_options(speed_level=tuning.compiling.optimization))
        options.loop_vectorization = options.loop_interleaving = True
        options.loop_unrolling = options.slp_vectorization = False  # what gains by it is unrolled when it is written
        builder = stack.enter_context(llvm.create_pass_builder(_machine(), options))
        inlining = stack.enter_context(llvm.create_new_module_pass_manager())
        inlining.add_always_inliner_pass()
        inlining.run(module, builder)
        stack.enter_context(builder.getModulePassManager()).run(module, builder)
        return bytes(_machine().emit_object(module))


def _draft(module: Any, stack: ExitStack) -> bytes:
    """The same of a draft: primitives are inlined, variables are kept in registers, and that is all: a sixth of the time."""
    options = stack.enter_context(llvm.create_pipeline_tuning_options(speed_level=0))
    builder = stack.enter_context(llvm.create_pass_builder(_hasty_machine(), options))
    passes = stack.enter_context(llvm.create_new_module_pass_manager())
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.run(module, builder)
    return bytes(_hasty_machine().emit_object(module))


def _close(module: Any) -> None:
    """Leave nothing but the entry of linked modules for others to see, so that what is inlined goes. RuntimeError where one calls
    what nobody has."""
    for found in module.functions:
        if not found.is_declaration:
            found.linkage = found.linkage if found.name == ENTRY else "internal"
        elif not found.name.startswith("llvm.") and not llvm.address_of_symbol(found.name):
            raise RuntimeError(f"a module that is linked calls {found.name}, which nobody has")


class Linked:
    """Machine code in memory, as long as this object."""

    def __init__(self, code: bytes) -> None:
        """InternalError for code that needs what there is not."""
        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(ENTRY)
        with _linking:
            try:
                self._library = builder.link(_linker(), f"kernel{_number()}")
            except RuntimeError as error:
                raise InternalError(f"a kernel's machine code cannot be linked: {error}") from None

    def address(self, name: str) -> int:
        """Where the entry lies."""
        return int(self._library[name])


@cache
def _target() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_triple(llvm.get_process_triple())


@cache
def _machine() -> Any:
    return _of_processor(tuning.compiling.optimization)


@cache
def _hasty_machine() -> Any:
    """For drafts: it looks at one instruction after another."""
    return _of_processor(0)


def _of_processor(level: int) -> Any:
    """This processor, for code whose sections and callees may lie anywhere: a linker that finds two of them further than 2 GB
    apart, where the code counts on less, ends the process."""
    return _target().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=level,
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
