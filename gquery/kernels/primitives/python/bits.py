"""Bitmaps in words of 32 bits."""

from __future__ import annotations

from gquery.kernels.primitives.python.values import MASK, Pointer


def word_index(i: int) -> int:
    """The 32-bit word that holds bit ``i`` of a bitmap."""
    return i >> 5


def bit_at(word: int, i: int) -> bool:
    """Bit ``i`` of a bitmap, of whose words this is the one that holds it."""
    return bool(word >> (i & 31) & 1)


def bits_from(word: int, i: int) -> int:
    """How many bits are set from bit ``i`` on, within the 32-bit word that holds it."""
    return (word >> (i & 31)).bit_count()


def popcount(word: int) -> int:
    """How many bits are set."""
    return (word & MASK).bit_count()


def bit_set(bits: Pointer, k: int) -> None:
    """Sets bit ``k`` of a bitmap of 32-bit words."""
    bits[k >> 5] |= 1 << (k & 31)


def bit_put(bits: Pointer, k: int) -> None:
    """Sets bit ``k`` of a bitmap of 32-bit words that no other thread writes to."""
    bits[k >> 5] |= 1 << (k & 31)


def bit_test(bits: Pointer, k: int) -> bool:
    """Whether bit ``k`` of a bitmap of 32-bit words is set."""
    return bool(bits[k >> 5] >> (k & 31) & 1)
