"""Types of values in a kernel, what LLVM calls them, and operands: a value's text with its type.

Types are named as in `targets.intrinsics` and `kernel.ElementType`: integers ``i8`` to ``i64`` and ``u8`` to ``u64``, ``i128``,
``f32``, ``f64``, ``bool``, ``str`` (an address and a length), pointers to elements (``*i32``) and to anything (``*``), ``void``.
A tuple of names is the type of several values. Signed and unsigned integers are one type to LLVM.
"""

from __future__ import annotations

import struct

from gquery.runtime.tuples import NamedTuple

Type = str | tuple[str, ...]

INTEGER_BITS = {"bool": 1} | {f"{sign}{bits}": bits for sign in "iu" for bits in (8, 16, 32, 64)}
_SIGNED = frozenset(("i8", "i16", "i32", "i64"))
_LLVM = {"f32": "float", "f64": "double", "bool": "i1", "str": "{i64, i64}", "i128": "i128", "void": "void", "*": "i8*"}
_LLVM |= {f"{sign}{bits}": f"i{bits}" for sign in "iu" for bits in (8, 16, 32, 64)}
_LLVM |= {f"*{element}": f"{spelled}*" for element, spelled in tuple(_LLVM.items()) if element[0] in "iuf"}


class Operand(NamedTuple):
    """A value: its type and what LLVM's text calls it, a register (``%x``) or a constant."""

    type: Type
    text: str


def llvm_type(type_: Type) -> str:
    """What LLVM calls a type.

    >>> llvm_type("*u16"), llvm_type(("i64", "bool"))
    ('i16*', '{i64, i1}')
    """
    return _LLVM[type_] if isinstance(type_, str) else f"{{{', '.join([_LLVM[t] for t in type_])}}}"


def is_signed(type_: Type) -> bool:
    """Whether a wider integer of such a value repeats its uppermost bit."""
    return type_ in _SIGNED


def is_pointer(type_: Type) -> bool:
    return isinstance(type_, str) and type_.startswith("*")


def items_of(type_: Type) -> tuple[str, ...]:
    """The types of the parts of a value that has parts."""
    return ("i64", "i64") if type_ == "str" else type_ if isinstance(type_, tuple) else ()


def constant(value: int | float | bool) -> Operand:
    """A number or a truth value as LLVM writes it; integers beyond 63 bits wrap.

    >>> [constant(value).text for value in (True, 2**63, 0.5)]
    ['true', '-9223372036854775808', '0x3FE0000000000000']
    """
    if isinstance(value, bool):
        return Operand("bool", "true" if value else "false")
    if isinstance(value, int):
        return Operand("i64", str((value + 2**63) % 2**64 - 2**63))
    return Operand("f64", f"0x{int.from_bytes(struct.pack('>d', value)):016X}")
