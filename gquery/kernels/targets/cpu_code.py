"""Machine code of one kernel for this processor: kept in our sealed cache, loaded, and let go of.

Each kernel has an engine of LLVM's of its own, which belongs to the function that Python calls: the machine code is freed with
the last reference to that, and who calls it has one. Numba, whose engine never frees any, only makes it (see `cpu_linking`).
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from gquery.kernels.targets.cache import KernelSource, kernel_cache, load_module
from gquery.runtime import collector
from gquery.runtime.interrupt import holding


@dataclass(frozen=True)
class Code:
    """An object file, and what two of its symbols are called: the function that Python calls, and the place of a pointer to its
    environment (Numba's word), which has to be set."""

    object: bytes
    entry: str
    environment: str


def read_code(source: KernelSource) -> Code | None:
    """The code of a kernel's module from the cache."""
    content = kernel_cache().read(cpu_entry(source.name))
    if content is None:
        return None
    names, _, code = content.partition(b"\n")
    return Code(code, **json.loads(names))


def make_code(source: KernelSource) -> Code:
    """Compile a kernel's module and keep the result."""
    with collector.paused():
        names = vars(load_module(source))
    code: Code = names["kernel"]
    names.clear()  # functions refer to them, and they to those: nothing waits for the collector
    content = json.dumps({"entry": code.entry, "environment": code.environment}).encode() + b"\n" + code.object
    kernel_cache().write(cpu_entry(source.name), content)
    return code


def cpu_entry(name: str) -> str:
    """The name in the cache of a kernel's code for this processor, of which the kernel's name tells the kind: a line of JSON with
    the names in `Code`, then the object."""
    return f"{name}.cpu"


@holding()  # Numba would stay broken where an interrupt ends its import
def load(code: Code) -> Callable[..., Any]:
    """The kernel as a function of Python's. Its code lies in memory as long as the function."""
    import llvmlite.binding as llvm
    from numba import _dynfunc

    machine = _loading_target().create_target_machine(opt=0, jit=True)  # an engine owns one; it compiles nothing
    empty = llvm.parse_assembly(f'target triple = "{llvm.get_process_triple()}"')
    engine = llvm.create_mcjit_compiler(empty, machine)
    engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(code.object))
    engine.finalize_object()
    environment = _dynfunc.Environment({})
    address = engine.get_global_value_address(code.environment)
    ctypes.c_void_p.from_address(address).value = id(environment)
    entry = engine.get_function_address(code.entry)
    function: Callable[..., Any] = _dynfunc.make_function(
        sys.modules[__name__], "kernel", "a compiled kernel", entry, environment, (engine,)
    )
    return function


@cache
def _loading_target() -> Any:
    """This machine for LLVM, with the functions known that Numba's code calls."""
    import llvmlite.binding as llvm
    from numba.core.registry import cpu_target

    _ = cpu_target.target_context  # tells LLVM of them when it is made
    return llvm.Target.from_triple(llvm.get_process_triple())
