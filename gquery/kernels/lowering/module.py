"""Module: a kernel's functions and its entry as the text of one LLVM module."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gquery.expression.facts import INT64_BITS
from gquery.functions.registry import is_user_function
from gquery.kernels import ir
from gquery.kernels.kernel import Kernel
from gquery.kernels.lowering.assembler import LoweringError
from gquery.kernels.lowering.function import LoweredFunction, lower
from gquery.kernels.lowering.grid import ABORT, END, LIMIT, grid_body
from gquery.kernels.lowering.intrinsics import INLINED
from gquery.kernels.lowering.library import Library
from gquery.kernels.lowering.names import ENTRY, LINKED
from gquery.kernels.lowering.values import Type, llvm_type
from gquery.kernels.marks import MARKS, filters, marked_loop
from gquery.kernels.prefetch import KEPT, looked_up_loop, lookup

_BODY = "rows"
# of the entries of any target
_RESERVED = frozenset(name.id for name in (ir.LOW, ir.HIGH, END, ABORT, LIMIT, MARKS, KEPT))


class Scope:
    """The functions that a kernel's text may call: its own parts, what it does for a row, scalar functions, primitives.

    ``part`` are the attributes of parts.
    """

    def __init__(self, kernel: Kernel, library: Library, part: str) -> None:
        self._library = library
        self._parts = {made.name: (made, part) for made in kernel.parts}
        if kernel.unrolled is not None and kernel.unrolled.function is not None:
            row = kernel.unrolled.function.function
            self._parts[row.name] = (row, INLINED)  # as if its statements stood at each call
        self._scalars: dict[str, Callable[..., Any]] = dict(kernel.functions)
        self._made: dict[tuple[str, tuple[Type, ...]], LoweredFunction] = {}

    def find(self, name: str, types: tuple[Type, ...]) -> LoweredFunction:
        """The function of a name; see `Library.find`."""
        if name not in self._parts and name not in self._scalars:
            return self._library.find(name, types)
        found = self._made.get((name, types))
        if found is None:
            symbol = f"{name}.{len(self._made)}"
            if name in self._parts:
                function, attributes = self._parts[name]
                found = lower(function, types, self.find, symbol, attributes)
            elif is_user_function(self._scalars[name]):
                found = self._library.user(self._scalars[name], types)
            else:
                found = lower(self._library.scalar(self._scalars[name]), types, self._library.find, symbol, INLINED)
            self._made[name, types] = found
        return found


def cpu_module(kernel: Kernel, library: Library, head: Sequence[str]) -> str:
    """The text of a kernel's module for a processor; ``head`` are the lines before its functions.

    Its entry ``kernel(lo, hi, words)`` takes the rows (int64) and the address of one word of 64 bits for each parameter: an
    address, an integer or a double's bits."""
    types = _parameter_types(kernel)
    body = (*kernel.prologue, *_processor_loop(kernel), *kernel.epilogue)
    # inlined, parts would be the long function that they were cut from
    scope = Scope(kernel, library, "noinline nounwind")
    made = _rows(kernel, scope, [("lo", "u64"), ("hi", "u64"), (MARKS.id, "*u8"), (KEPT.id, "*i64")], body)
    lines = [f"define void @{ENTRY}(i64 %lo, i64 %hi, i64* %words) nounwind {{", "entry:"]
    room = kernel.marked_rows or 1
    lines += [f"%block = alloca [{room} x i8], align {INT64_BITS}", f"%marks = bitcast [{room} x i8]* %block to i8*"]
    lines += [f"%slots_of_block = alloca [{kernel.lookup_rows or 1} x i64], align {INT64_BITS}"]
    lines += [f"%block_slots = bitcast [{kernel.lookup_rows or 1} x i64]* %slots_of_block to i64*"]
    arguments = ["i64 %lo", "i64 %hi", "i8* %marks", "i64* %block_slots"]
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


def _processor_loop(kernel: Kernel) -> ir.Block:
    """The loop over all rows."""
    first = filters(kernel.body) if kernel.marked_rows else None
    if first is not None:
        return marked_loop(first, kernel.marked_rows)
    found = lookup(kernel.body) if kernel.lookup_rows else None
    if found is not None:
        elements = {p.name: p.type for p in kernel.parameters if p.is_pointer}
        return looked_up_loop(found, kernel.lookup_rows, elements)
    return (ir.For(ir.ROW, ir.LOW, ir.HIGH, kernel.body),)


def cuda_module(kernel: Kernel, library: Library, head: Sequence[str]) -> str:
    """The text of a kernel's module for a GPU, in libNVVM's dialect; ``head`` are the lines before its functions, among them all
    metadata but ``!0`` and the annotations.

    Its entry ``kernel(lo, row_end, abort, row_limit, ...)`` takes the rows (uint32, or uint64 where the kernel's index is wide),
    the addresses of the abort flag (uint32) and of a limit of the rows (int64), and the kernel's own parameters."""
    index = "u64" if kernel.wide_index else "u32"
    own = [("lo", index), (END.id, index), (ABORT.id, "*u32"), (LIMIT.id, "*i64")]
    made = _rows(kernel, Scope(kernel, library, "nounwind"), own, grid_body(kernel))
    types = [llvm_type(t) for t in made.parameters]
    given = ", ".join([f"{t} %a{n}" for n, t in enumerate(types)])
    lines = [f"define void @{ENTRY}({given}) {'convergent ' * made.is_convergent}nounwind {{", "entry:"]
    lines += [f"call void @{_BODY}({given})", "ret void", "}"]
    entry = f"void ({', '.join(types)})* @{ENTRY}"
    lines += ["!nvvm.annotations = !{!0}", f'!0 = !{{{entry}, !"kernel", i32 1}}']
    return module_text(made, head, lines)


def _rows(kernel: Kernel, scope: Scope, own: Sequence[tuple[str, Type]], body: ir.Block) -> LoweredFunction:
    """The function that an entry calls: of its ``own`` parameters, with their types, and the kernel's."""
    if taken := _RESERVED.intersection(p.name for p in kernel.parameters):
        raise LoweringError(f"a parameter has the name of one that entries have: {', '.join(sorted(taken))}")
    names = [name for name, _ in own] + [p.name for p in kernel.parameters]
    function = ir.Function(_BODY, tuple([ir.Name(name) for name in names]), body)
    return lower(function, [*[t for _, t in own], *_parameter_types(kernel)], scope.find, _BODY, INLINED)


def _parameter_types(kernel: Kernel) -> list[Type]:
    return [f"*{p.type}" if p.is_pointer else p.type for p in kernel.parameters]


def module_text(function: LoweredFunction, head: Iterable[str], rest: Iterable[str]) -> str:
    """A function and all that it calls, each once, between the lines ``head`` and ``rest``. Behind that the modules that it
    needs."""
    needed: dict[LoweredFunction, None] = {}
    _collect(function, needed)
    declared = {_name(d): d for f in needed for d in f.declarations}  # each once, however it is spelled
    own = "\n".join([*head, *declared.values(), *[f.text for f in needed], *rest, ""])
    return LINKED.join(dict.fromkeys([own, *[f.module for f in needed if f.module]]))


def _name(declaration: str) -> str:
    return re.split(r"[( ]", declaration.partition("@")[2], maxsplit=1)[0].strip('"')


def _collect(function: LoweredFunction, needed: dict[LoweredFunction, None]) -> None:
    if function not in needed:
        for callee in function.callees:
            _collect(callee, needed)
        needed[function] = None
