"""Module: a kernel's functions and its entry as the text of one LLVM module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gquery.kernels import ir
from gquery.kernels.kernel import Kernel
from gquery.kernels.lowering.function import LoweredFunction, lower
from gquery.kernels.lowering.intrinsics import INLINED
from gquery.kernels.lowering.library import Library
from gquery.kernels.lowering.values import Type, llvm_type

ENTRY = "kernel"
_BODY = "rows"


class Scope:
    """The functions that a kernel's text may call: its own parts, scalar functions, primitives."""

    def __init__(self, kernel: Kernel, library: Library, parts: Sequence[ir.Function] = ()) -> None:
        self._library = library
        self._parts = {part.name: part for part in (*kernel.parts, *parts)}
        self._scalars: dict[str, Callable[..., Any]] = dict(kernel.functions)
        self._made: dict[tuple[str, tuple[Type, ...]], LoweredFunction] = {}

    def find(self, name: str, types: tuple[Type, ...]) -> LoweredFunction:
        """The function of a name; see `Library.find`."""
        if name in self._parts:  # inlined, they would be the one long function that they were cut from
            return self._lowered(self._parts[name], name, types, "noinline nounwind")
        if name in self._scalars:
            return self._lowered(self._library.scalar(self._scalars[name]), name, types, INLINED)
        return self._library.find(name, types)

    def _lowered(self, function: ir.Function, name: str, types: tuple[Type, ...], attributes: str) -> LoweredFunction:
        found = self._made.get((name, types))
        if found is None:
            symbol = f"{name}.{len(self._made)}"
            find = self.find if name in self._parts else self._library.find
            found = self._made[name, types] = lower(function, types, find, symbol, attributes)
        return found


def cpu_module(kernel: Kernel, library: Library, head: Sequence[str]) -> str:
    """The text of a kernel's module for a processor; ``head`` are the lines before its functions.

    Its entry ``kernel(lo, hi, words)`` takes the rows (int64) and the address of one word of 64 bits for each parameter: an
    address, an integer or a double's bits."""
    names = (ir.LOW, ir.HIGH, *[ir.Name(p.name) for p in kernel.parameters])
    types: list[Type] = [f"*{p.type}" if p.is_pointer else p.type for p in kernel.parameters]
    rows = ir.For(ir.ROW, ir.LOW, ir.HIGH, kernel.body)
    function = ir.Function(_BODY, names, (*kernel.prologue, rows, *kernel.epilogue))
    scope = Scope(kernel, library)
    made = lower(function, ("u64", "u64", *types), scope.find, _BODY, INLINED)
    lines = [f"define void @{ENTRY}(i64 %lo, i64 %hi, i64* %words) nounwind {{", "entry:"]
    arguments = ["i64 %lo", "i64 %hi"]
    for n, type_ in enumerate(types):
        spelled = llvm_type(type_)
        lines += [
            f"%w{n} = getelementptr i64, i64* %words, i64 {n}",
            f"%p{n} = bitcast i64* %w{n} to {spelled}*",
            f"%v{n} = load {spelled}, {spelled}* %p{n}",
        ]
        arguments.append(f"{spelled} %v{n}")
    lines += [f"call void @{_BODY}({', '.join(arguments)})", "ret void", "}"]
    return module_text(made, head, ["\n".join(lines)])


def module_text(function: LoweredFunction, head: Iterable[str], rest: Iterable[str]) -> str:
    """A function and all that it calls, each once, between the lines ``head`` and ``rest``."""
    needed: dict[LoweredFunction, None] = {}
    _collect(function, needed)
    declarations = dict.fromkeys(d for f in needed for d in f.declarations)
    return "\n".join([*head, *declarations, *[f.text for f in needed], *rest, ""])


def _collect(function: LoweredFunction, needed: dict[LoweredFunction, None]) -> None:
    if function not in needed:
        for callee in function.callees:
            _collect(callee, needed)
        needed[function] = None
