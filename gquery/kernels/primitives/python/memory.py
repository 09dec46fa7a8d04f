"""Loads and stores: elements of an array by a pointer, bytes and words of text by an address."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from ctypes import CFUNCTYPE, c_char, c_int, c_int64, memmove

from gquery.kernels.checks import string_at
from gquery.kernels.primitives.python.floats import round_f32
from gquery.kernels.primitives.python.values import MASK, Pointer, signed


def _store_signed(bits: int) -> Callable[[Pointer, int, int], None]:
    half, mask = 1 << (bits - 1), (1 << bits) - 1

    def store(pointer: Pointer, i: int, v: int) -> None:
        pointer[i] = ((v + half) & mask) - half

    return store


def _store_unsigned(bits: int) -> Callable[[Pointer, int, int], None]:
    mask = (1 << bits) - 1

    def store(pointer: Pointer, i: int, v: int) -> None:
        pointer[i] = v & mask

    return store


store_i8, store_i16, store_i32, store_i64 = (_store_signed(n) for n in (8, 16, 32, 64))
store_u8, store_u16, store_u32, store_u64 = (_store_unsigned(n) for n in (8, 16, 32, 64))


def store_f64(pointer: Pointer, i: int, v: float) -> None:
    """Sets element ``i`` of a float64 array."""
    pointer[i] = v


def store_f32(pointer: Pointer, i: int, v: float) -> None:
    """Sets element ``i`` of a float32 array to the nearest single-precision value."""
    pointer[i] = round_f32(v)


def store_bool(pointer: Pointer, i: int, v: bool) -> None:
    """Sets element ``i`` of a uint8 array to 1 or 0."""
    pointer[i] = 1 if v else 0


load_u32: Callable[[Pointer, int], int] = operator.getitem
load_i64 = load_u32


def load_u8(address: int) -> int:
    """The byte at an address."""
    return string_at(address, 1)[0]


def words_behind(pointer: Pointer, i: int) -> Pointer:
    """A pointer to a later word."""
    return pointer[i:]


def load_word(address: int) -> int:
    """The eight bytes at an address, the first one lowest; they may lie beyond a text's end, within its buffer."""
    return int.from_bytes(string_at(address, 8), "little", signed=True)


load_word_unaligned = load_word


def copy_bytes(source: int, target: int, length: int) -> None:
    """Copies ``length`` bytes between addresses; the ranges do not overlap."""
    memmove(target, source, length)


def read_file(file: int, address: int, size: int, position: int) -> int:
    """Reads bytes of a file, whose number is given, from a position on, to an address; how many came, less than 0 where none
    can."""
    try:
        return os.preadv(file, [(c_char * size).from_address(address)], position)
    except OSError:
        return -1


def call_native(function: int, a: int, b: int, c: int, d: int) -> int:
    """Calls a function of a library, whose address is given, with up to four words: its error, 0 for none."""
    return int(CFUNCTYPE(c_int, c_int64, c_int64, c_int64, c_int64)(function)(a, b, c, d))


def store_byte(address: int, v: int) -> None:
    """Sets the byte at an address to the last eight bits of ``v``."""
    memmove(address, bytes([v & 255]), 1)


def store_word_unaligned(address: int, v: int) -> None:
    """Sets the eight bytes at an address, the lowest one first."""
    memmove(address, (v & MASK).to_bytes(8, "little"), 8)


store_word = store_word_unaligned


def store_half(address: int, v: int) -> None:
    """Sets the four bytes at an address, a multiple of four, to the last 32 bits of ``v``."""
    memmove(address, (v & 0xFFFFFFFF).to_bytes(4, "little"), 4)


def store_quarter(address: int, v: int) -> None:
    """Sets the two bytes at an address, a multiple of two, to the last 16 bits of ``v``."""
    memmove(address, (v & 0xFFFF).to_bytes(2, "little"), 2)


def zero_bytes(word: int) -> int:
    """The top bit of each byte that is 0, and of some above the first such."""
    return signed((word - 0x0101010101010101) & ~word & 0x8080808080808080)


def byte_swap(word: int) -> int:
    """The word with its eight bytes in the other order."""
    return int.from_bytes((word & MASK).to_bytes(8, "little"), "big", signed=True)


def lowest_bit(word: int) -> int:
    """Which bit is the lowest that is set, of a word that has one."""
    return (word & -word).bit_length() - 1


def byte_pairs(one: int, other: int, first: int, second: int) -> int:
    """A bit for each of the 64 bytes at one address that is ``first`` where the byte at the other is ``second``."""
    pairs = zip(string_at(one, 64), string_at(other, 64), strict=True)
    bits = sum(1 << k for k, pair in enumerate(pairs) if pair == (first, second))
    return bits - (bits >> 63 << 64)


def lowest_byte(word: int) -> int:
    """The number of the byte that has the lowest set bit. The word is not 0."""
    return ((word & -word).bit_length() - 1) >> 3
