"""A Python function of a user in a lowered kernel: another compiler makes a module of it, which is linked with the kernel's.

The module's entry has no result of its own, whatever convention its compiler has: it takes integers, doubles and addresses, and
writes what it gives to places that it is given. What calls it in the kernel is a function like others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gquery.kernels.lowering.function import LoweredFunction
from gquery.kernels.lowering.intrinsics import INLINED
from gquery.kernels.lowering.values import Type, items_of, llvm_type
from gquery.runtime.tuples import NamedTuple


class UserModule(NamedTuple):
    """The text of a module with an entry of the name that was asked for, and the type of what the function gives: ``i64``,
    ``f64``, ``bool``, or a pair of a value and whether it is there."""

    result: Type
    text: str


MakeModule = Callable[[Callable[..., Any], tuple[Type, ...], str], UserModule]
"""``make(function, types, entry)`` compiles a function for arguments of these types: ``i64``, ``f64``, ``bool``, ``*u32``.
LoweringError, with what the compiler says, where it does not."""


def user_function(symbol: str, types: tuple[Type, ...], made: UserModule) -> LoweredFunction:
    """The function that calls a module's entry, which is called ``symbol``."""
    results = items_of(made.result) or (made.result,)
    words = [_word(r) for r in results]
    given = ", ".join([f"{llvm_type(t)} %x{n}" for n, t in enumerate(types)])
    passed = [f"i64 %w{n}" if t == "bool" else f"{llvm_type(t)} %x{n}" for n, t in enumerate(types)]
    passed += [f"{word}* %o{n}" for n, word in enumerate(words)]
    lines = [f"define internal {llvm_type(made.result)} @{symbol}.call({given}) {INLINED} {{", "entry:"]
    lines += [f"%o{n} = alloca {word}" for n, word in enumerate(words)]
    lines += [f"%w{n} = zext i1 %x{n} to i64" for n, t in enumerate(types) if t == "bool"]
    lines.append(f"call void @{symbol}({', '.join(passed)})")
    for n, (result, word) in enumerate(zip(results, words, strict=True)):
        lines.append(f"%l{n} = load {word}, {word}* %o{n}")
        lines.append(f"%r{n} = icmp ne i64 %l{n}, 0" if result == "bool" else f"%r{n} = bitcast {word} %l{n} to {word}")
    last = "%r0"
    if isinstance(made.result, tuple):
        spelled, last = llvm_type(made.result), "undef"
        for n, result in enumerate(results):
            lines.append(f"%t{n} = insertvalue {spelled} {last}, {llvm_type(result)} %r{n}, {n}")
            last = f"%t{n}"
    lines += [f"ret {llvm_type(made.result)} {last}", "}"]
    declared = ", ".join([argument.partition(" ")[0] for argument in passed])
    declaration = f"declare void @{symbol}({declared})"
    return LoweredFunction(f"{symbol}.call", types, made.result, "\n".join(lines), (), (declaration,), module=made.text)


def _word(result: Type) -> str:
    """How an entry writes a result: a truth value as an integer."""
    return "double" if result == "f64" else "i64"
