"""Puts the object code of a kernel into memory without LLVM, whose import and linker take 30 ms of a process.

Our code for x86-64 counts on no distance: what is filled in are whole addresses (R_X86_64_64) of its own functions, constants
and tables, and of a few functions of libc and libm. That takes no linker. Whatever is not of this kind is refused before
anything is placed, and LLVM links it.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from gquery.runtime.tuples import NamedTuple

_ELF = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian
_RELOCATABLE, _X86_64 = 1, 62
_HEADER = struct.Struct("<HHIQQQIHHHHHH")  # behind the 16 bytes that identify it
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_ADDEND = struct.Struct("<QQq")
_WORD = struct.Struct("<Q")
_BYTES, _SYMBOLS, _ADDENDS, _ZEROS, _NO_ADDENDS = 1, 2, 4, 8, 9  # kinds of sections
_WRITTEN, _LOADED, _THREAD_LOCAL = 1, 2, 0x400  # flags of sections
_ADDRESS = 1  # R_X86_64_64
_UNDEFINED, _RESERVED = 0, 0xFF00  # numbers of sections that are none
_UNWINDING = ".eh_frame"  # how exceptions pass a function: none does


class NotPlainError(Exception):
    """The code wants a linker."""


class Section(NamedTuple):
    """A part of an object file: ``size`` bytes from ``offset`` on."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int


class Symbol(NamedTuple):
    """A place in a section, or what somebody else has."""

    name: int
    info: int
    other: int
    section: int
    value: int
    size: int


class LoadedObject:
    """Machine code in memory that can be run and not written, as long as this object."""

    def __init__(self, code: bytes) -> None:
        """NotPlainError where it takes more than filling in addresses."""
        if sys.platform != "linux" or code[: len(_ELF)] != _ELF:
            raise NotPlainError("it is no ELF file of this machine")
        self._code = code
        try:
            self._read()
        except (struct.error, IndexError, ValueError) as error:
            raise NotPlainError(f"it is not whole: {error}") from None

    def address(self, name: str) -> int:
        """Where a function lies. NotPlainError where there is none of the name."""
        wanted = name.encode()
        for symbol in self._symbols:
            if self._text(self._names, symbol.name) == wanted and symbol.section in self._placed:
                return self._placed[symbol.section] + symbol.value
        raise NotPlainError(f"it has no {name}")

    def _read(self) -> None:
        header = _HEADER.unpack_from(self._code, 16)
        kind, machine, sections, size, count, names = header[0], header[1], header[5], *header[10:13]
        if (kind, machine, size) != (_RELOCATABLE, _X86_64, _SECTION.size):
            raise NotPlainError("it is an ELF file of another kind")
        self._sections = [Section(*_SECTION.unpack_from(self._code, sections + n * size)) for n in range(count)]
        section_names = self._sections[names]
        loaded = {
            n: s
            for n, s in enumerate(self._sections)
            if s.flags & _LOADED and self._text(section_names, s.name) != _UNWINDING.encode()
        }
        if any(s.kind != _BYTES or s.flags & (_WRITTEN | _THREAD_LOCAL) for s in loaded.values()):
            raise NotPlainError("it has data of its own")
        table = next((s for s in self._sections if s.kind == _SYMBOLS), None)
        if table is None:
            raise NotPlainError("it has no symbols")
        self._names = self._sections[table.link]
        entries = range(table.offset, table.offset + table.size, _SYMBOL.size)
        self._symbols = [Symbol(*_SYMBOL.unpack_from(self._code, at)) for at in entries]
        self._place(loaded)

    def _place(self, loaded: dict[int, Section]) -> None:
        """Lay sections out, fill addresses in and have the memory run."""
        offsets, end = {}, 0
        for n, s in loaded.items():
            alignment = max(s.alignment, 1)
            if alignment > mmap.PAGESIZE or s.offset + s.size > len(self._code):
                raise NotPlainError("it is not whole")
            offsets[n] = end = -(-end // alignment) * alignment
            end += s.size
        image = bytearray(end)
        for n, s in loaded.items():
            image[offsets[n] : offsets[n] + s.size] = self._code[s.offset : s.offset + s.size]
        places = list(self._places(offsets))
        self._memory = mmap.mmap(
            -1, max(end, 1), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE
        )
        self._held = ctypes.c_char.from_buffer(self._memory)  # while it lives, nobody unmaps the memory
        start = ctypes.addressof(self._held)
        self._placed = {n: start + offset for n, offset in offsets.items()}
        for at, symbol, addend in places:
            _WORD.pack_into(image, at, (self._value(symbol) + addend) % 2**64)
        self._memory[:end] = bytes(image)
        _let_run(start, len(self._memory))

    def _places(self, offsets: dict[int, int]) -> Iterator[tuple[int, Symbol, int]]:
        """Where in the image addresses are filled in, of which symbols, and how many bytes behind them."""
        for s in self._sections:
            if s.kind == _NO_ADDENDS and s.info in offsets:
                raise NotPlainError("its addresses have no addends")
            if s.kind != _ADDENDS or s.info not in offsets:
                continue
            for entry in range(s.offset, s.offset + s.size, _ADDEND.size):
                at, what, addend = _ADDEND.unpack_from(self._code, entry)
                symbol = self._symbols[what >> 32]
                is_known = symbol.section == _UNDEFINED or symbol.section in offsets
                if what & 0xFFFFFFFF != _ADDRESS or not is_known or at + _WORD.size > self._sections[s.info].size:
                    raise NotPlainError("it has addresses of another kind")
                yield offsets[s.info] + at, symbol, addend

    def _value(self, symbol: Symbol) -> int:
        if symbol.section != _UNDEFINED:
            return self._placed[symbol.section] + symbol.value
        found = address_of_symbol(self._text(self._names, symbol.name).decode())
        if found is None:
            raise NotPlainError("it calls what nobody has")
        return found

    def _text(self, names: Section, at: int) -> bytes:
        start = names.offset + at
        return self._code[start : self._code.index(b"\0", start)]


@cache
def address_of_symbol(name: str) -> int | None:
    """Where a function of a library lies that this process has loaded for all to see."""
    try:
        function = ctypes.pythonapi[name]
    except AttributeError:
        return None
    return ctypes.cast(function, ctypes.c_void_p).value


@cache
def _protect() -> Callable[[int, int, int], int]:
    function: Any = ctypes.pythonapi["mprotect"]
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int), ctypes.c_int
    protect: Callable[[int, int, int], int] = function
    return protect


def _let_run(start: int, size: int) -> None:
    if _protect()(start, size, mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        raise NotPlainError("its memory may not be run")
