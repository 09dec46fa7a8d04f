"""Numba's way to machine code for this processor: a kernel as a module of Python that it compiles.

Each kernel has an engine of LLVM's of its own, which belongs to the function that Python calls: the machine code is freed with
the last reference to that, and who calls it has one. Numba, whose engine never frees any, only makes it (see `cpu_linking`).
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gquery import tuning
from gquery.kernels import ir
from gquery.kernels.ir.expressions import Leaf
from gquery.kernels.ir.walk import read, with_calls
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets.cache import KernelSource, kernel_cache, kernel_source, load_module
from gquery.kernels.targets.text import free_names, functions_text
from gquery.runtime import collector
from gquery.runtime.interrupt import holding
from gquery.runtime.records import dataclass


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
    import json  # Numba's kernels alone have names in it

    names, _, code = content.partition(b"\n")
    return Code(code, **json.loads(names))


def make_code(source: KernelSource) -> Code:
    """Compile a kernel's module and keep the result."""
    with collector.paused():
        names = vars(load_module(source))
    code: Code = names["kernel"]
    names.clear()  # functions refer to them, and they to those: nothing waits for the collector
    import json  # as above

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


def source(kernel: Kernel) -> KernelSource:
    """A kernel's module and its name in the cache."""
    return kernel_source(module_text(kernel), "cpu", "numba", _machine())


@cache
def _machine() -> str:
    import llvmlite.binding as llvm

    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


def function_of(kernel: Kernel, code: Code) -> Callable[..., Any]:
    """A kernel's function of rows and arguments."""
    function = load(code)
    return _packing(function) if len(kernel.parameters) > tuning.compiling.arguments else function


def module_text(kernel: Kernel) -> str:
    """The text of the module that Numba compiles."""
    is_packed = len(kernel.parameters) > tuning.compiling.arguments
    body = _packed_body(kernel) if is_packed else kernel.body
    lines = _packed_head(kernel, body) if is_packed else _head(kernel)
    lines += ir.printed(kernel.prologue, 1)
    lines += ["    for i in range(lo, hi):", *ir.printed_body(body, 2), *ir.printed(kernel.epilogue, 1)]
    text = functions_text(kernel, "@part\n") + "\n".join(lines) + "\n"
    imported = "".join(f"    {name},\n" for name in sorted(free_names(text)))
    return f"from gquery.kernels.targets.cpu_primitives import (\n{imported})\n\n\n{text}"


def _head(kernel: Kernel) -> list[str]:
    """The beginning of a kernel's function."""
    names = [f"{p.name}_address" if p.is_pointer else p.name for p in kernel.parameters]
    kinds = "".join("f" if p.type == "f64" and not p.is_pointer else "i" for p in kernel.parameters)
    lines = [f"@entry({kinds!r})", f"def kernel({', '.join(['lo_row', 'hi_row', *names])}):"]
    lines += ["    lo = uint64(lo_row)", "    hi = uint64(hi_row)"]
    return lines + [f"    {p.name} = pointer_{p.type}({p.name}_address)" for p in kernel.parameters if p.is_pointer]


def _packed_head(kernel: Kernel, body: ir.Block) -> list[str]:
    """The same for one whose arguments are in an array of 64-bit words, but for those that ``body`` takes from there itself."""
    lines = ["@entry('i')", "def kernel(lo_row, hi_row, words_address):"]
    lines += ["    lo = uint64(lo_row)", "    hi = uint64(hi_row)", "    words = pointer_i64(words_address)"]
    lines += ["    floats = pointer_f64(words_address)"]
    named = {name.id for name in read((*kernel.prologue, *body, *kernel.epilogue))}
    return lines + [f"    {name} = {word.text()}" for name, word in _words(kernel).items() if name in named]


def _words(kernel: Kernel) -> dict[str, ir.Expression]:
    """By argument, what takes it from the array."""
    words: dict[str, ir.Expression] = {}
    for n, p in enumerate(kernel.parameters):
        array = ir.Name("floats" if p.type == "f64" and not p.is_pointer else "words")
        word = ir.Load(array, ir.Constant(n))
        words[p.name] = ir.Call(f"pointer_{p.type}", (word,)) if p.is_pointer else word
    return words


def _packed_body(kernel: Kernel) -> ir.Block:
    """Its body. What calls a part takes the arguments for that when it does: a thousand that are held over the loop are more than
    there are registers, and LLVM takes seconds to say where they are instead."""
    words, parts = _words(kernel), {part.name for part in kernel.parts}

    def take(leaf: Leaf) -> ir.Expression:
        return words.get(leaf.id, leaf) if isinstance(leaf, ir.Name) else leaf

    def with_words(call: ir.Call) -> ir.Call:
        return call.over(take) if call.function in parts else call

    return with_calls(kernel.body, with_words)


def _packing(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel's function whose arguments are in an array, as one that takes them."""

    def entry(lo: int, hi: int, *arguments: Any) -> None:
        words = np.array([0 if isinstance(a, float) else a for a in arguments], dtype=np.int64)
        floats = words.view(np.float64)
        for n, value in enumerate(arguments):
            if isinstance(value, float):
                floats[n] = value
        function(lo, hi, words.ctypes.data)

    return entry
