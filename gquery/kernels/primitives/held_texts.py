"""Texts in pages of Parquet that a GPU decodes: unpacked where they stay for a while, found there, and put in their places.

Pages know nothing of each other: each is unpacked, and its texts get a word each, which tells where they lie. Those of codes come
from their dictionary's. How many bytes there are before a page is known when all have been counted; then texts are copied. The
lanes of a warp take a page together.
"""

from __future__ import annotations

from gquery.kernels.primitives.held_chunks import store_integer
from gquery.kernels.primitives.packed import (
    DICTIONARY,
    ENTRIES,
    VALUE,
    coded_words,
    page_bytes,
    repeat_bytes,
    varint_word,
)
from gquery.kernels.primitives.python.atomics import atomic_add_i64, atomic_max_i64, lane, lanes, warp_barrier
from gquery.kernels.primitives.python.integers import (
    add_i64,
    and_i64,
    eq_i64,
    ge_i64,
    gt_i64,
    i64,
    lt_i64,
    max_i64,
    min_i64,
    mul_i64,
    ne_i64,
    or_i64,
    shl_i64,
    shr_u64,
    sub_i64,
)
from gquery.kernels.primitives.python.memory import (
    load_i64,
    load_u8,
    load_word,
    load_word_unaligned,
    store_i64,
    store_word,
)
from gquery.kernels.primitives.python.values import Pointer

SOURCE, LEADING, PACKED, SIZE, CODEC, KIND, COUNT, LEVELS, TARGET, BASE, WORDS, DICTIONARY_WORDS, DICTIONARY_COUNT = range(13)
"""Words of a page: the address of its bytes; what `primitives.page_list` tells; the address that it is unpacked to, and the one
from which on words tell where texts lie; where its words go, one for each value or entry; where those of its dictionary lie, and
how many."""
PLACE, ENDINGS, WIDTH, BEFORE, PAGE = range(13, 18)
"""Where its texts go; where their ends go, integers of so many bytes; how many bytes of texts lie before. The last is the number
of words."""
OUTCOME, BYTES, HIGHEST, FOUND = range(4)
"""What is found of a page: 1 where all is well; how many bytes its texts have; the highest of these. The last is the number of
words."""
LENGTH_BITS = 24
"""Bits of a word that tell a text's length; the others tell how far behind the `BASE` it lies."""
STATE = 50  # words of `primitives.packed`
NOT_ASCII = 128  # the least byte that is no ASCII
_CODES, _DICTIONARY = 1, 2  # as in `primitives.page_list`
_LEVELS_WITHIN, _LEVELS_BEFORE = 1, 2
_LENGTHS = (1 << LENGTH_BITS) - 1


def decompress_texts(page: Pointer, state: Pointer, found: Pointer) -> None:
    """Unpack a page, and make a word of each of its texts, if they are no codes."""
    source, target, size, count = load_i64(page, SOURCE), load_i64(page, TARGET), load_i64(page, SIZE), load_i64(page, COUNT)
    packed, kind, end, at = load_i64(page, PACKED), load_i64(page, KIND), add_i64(target, size), i64(0)
    ok = page_bytes(add_i64(source, load_i64(page, LEADING)), packed, target, size, load_i64(page, CODEC), 0)
    warp_barrier()
    if ok:
        at = values_begin(page, state)
    if ne_i64(at, 0) and ne_i64(kind, _CODES):
        begin = i64(at)
        at = text_words(at, end, count, load_i64(page, WORDS), load_i64(page, BASE))
        if eq_i64(kind, _DICTIONARY) and ne_i64(at, end):
            at = i64(0)
        store_i64(found, BYTES, sub_i64(sub_i64(at, begin), shl_i64(count, 2)))
    if ne_i64(at, 0):
        store_i64(found, OUTCOME, 1)


def code_texts(page: Pointer, state: Pointer, found: Pointer) -> None:
    """Give the values of a page that are codes the words of their dictionary, if it has any."""
    if eq_i64(load_i64(page, KIND), _CODES) and eq_i64(load_i64(found, OUTCOME), 1):
        count, words, k, size = load_i64(page, COUNT), load_i64(page, WORDS), lane(), i64(0)
        at, end = values_begin(page, state), add_i64(load_i64(page, TARGET), load_i64(page, SIZE))
        store_i64(state, DICTIONARY, load_i64(page, DICTIONARY_WORDS))
        store_i64(state, ENTRIES, load_i64(page, DICTIONARY_COUNT))
        ok = eq_i64(count, 0)
        if lt_i64(at, end) and gt_i64(count, 0):
            ok = coded_words(add_i64(at, 1), end, load_u8(at), count, words, state)
        warp_barrier()
        while lt_i64(k, count) and ok:
            size = add_i64(size, and_i64(load_word(add_i64(words, shl_i64(k, 3))), _LENGTHS))
            k = add_i64(k, lanes())
        atomic_add_i64(found, BYTES, size)
        if not ok:
            store_i64(found, OUTCOME, 0)


def values_begin(page: Pointer, state: Pointer) -> int:
    """The address of the first value of a page that is unpacked, behind its levels; 0 where not all values are there."""
    at, count, where = load_i64(page, TARGET), load_i64(page, COUNT), load_i64(page, LEVELS)
    if eq_i64(where, _LEVELS_WITHIN):
        levels, first = and_i64(load_word_unaligned(at), 0xFFFFFFFF), add_i64(at, 4)
        at = add_i64(first, levels)
        if lt_i64(load_i64(page, SIZE), add_i64(levels, 4)) or not are_ones(first, at, count, state):
            return i64(0)
    if eq_i64(where, _LEVELS_BEFORE):
        first = load_i64(page, SOURCE)
        if not are_ones(first, add_i64(first, load_i64(page, LEADING)), count, state):
            return i64(0)
    return at


def are_ones(at: int, end: int, count: int, state: Pointer) -> bool:
    """Whether so many levels of one bit, in runs and packed, are all 1."""
    left = i64(count)
    while gt_i64(left, 0):
        at = varint_word(at, end, state)
        if eq_i64(at, 0) or ge_i64(at, end):
            return False
        run = load_i64(state, VALUE)
        size = shr_u64(run, 1)
        if lt_i64(size, 1):
            return False
        if eq_i64(and_i64(run, 1), 0):
            if eq_i64(and_i64(load_u8(at), 1), 0):
                return False
            at, left = add_i64(at, 1), sub_i64(left, min_i64(size, left))
        else:
            if gt_i64(size, sub_i64(end, at)):
                return False
            last = add_i64(at, size)
            while lt_i64(at, last) and gt_i64(left, 0):
                mask = sub_i64(shl_i64(1, min_i64(left, 8)), 1)
                if ne_i64(and_i64(load_u8(at), mask), mask):
                    return False
                at, left = add_i64(at, 1), sub_i64(left, min_i64(left, 8))
            at = i64(last)
    return True


def text_words(at: int, end: int, count: int, words: int, base: int) -> int:
    """Write a word for each of so many texts that have their lengths in front to an address; the address behind the last, 0 where
    they are not there."""
    k, others = i64(0), sub_i64(lanes(), 1)
    while lt_i64(k, count):
        length = and_i64(load_word_unaligned(at), 0xFFFFFFFF)
        at = add_i64(at, 4)
        if gt_i64(length, sub_i64(end, at)):
            return i64(0)
        if eq_i64(and_i64(k, others), lane()):
            store_word(add_i64(words, shl_i64(k, 3)), or_i64(shl_i64(sub_i64(at, base), LENGTH_BITS), length))
        at, k = add_i64(at, length), add_i64(k, 1)
    return at


def place_texts(page: Pointer, found: Pointer) -> None:
    """Copy the texts of a page to their places, and write where they begin, and where each ends."""
    if ne_i64(load_i64(page, KIND), _DICTIONARY):
        width = load_i64(page, WIDTH)
        store_integer(sub_i64(load_i64(page, ENDINGS), width), load_i64(page, BEFORE), width)
        atomic_max_i64(found, HIGHEST, place_words(page))


def place_words(page: Pointer) -> int:
    """The texts that words tell of; no byte is higher than that which is returned. As one thread does it."""
    words, count, base, width = load_i64(page, WORDS), load_i64(page, COUNT), load_i64(page, BASE), load_i64(page, WIDTH)
    place, endings, byte, k = load_i64(page, PLACE), load_i64(page, ENDINGS), load_i64(page, BEFORE), i64(0)
    highest = i64(0)
    while lt_i64(k, count):
        word, j = load_word(add_i64(words, shl_i64(k, 3))), i64(0)
        length, source = and_i64(word, _LENGTHS), add_i64(base, shr_u64(word, LENGTH_BITS))
        repeat_bytes(source, place, length)
        while lt_i64(j, length):
            highest = max_i64(highest, load_u8(add_i64(source, j)))
            j = add_i64(j, 1)
        place, byte = add_i64(place, length), add_i64(byte, length)
        store_integer(add_i64(endings, mul_i64(k, width)), byte, width)
        k = add_i64(k, 1)
    return highest


def check_texts(page: Pointer, found: Pointer) -> None:
    """Look whether each text of a page is UTF-8."""
    words, count, base, k = load_i64(page, WORDS), load_i64(page, COUNT), load_i64(page, BASE), lane()
    if ne_i64(load_i64(page, KIND), _DICTIONARY) and ge_i64(load_i64(found, HIGHEST), NOT_ASCII):
        while lt_i64(k, count):
            word = load_word(add_i64(words, shl_i64(k, 3)))
            at = add_i64(base, shr_u64(word, LENGTH_BITS))
            if not is_utf8(at, add_i64(at, and_i64(word, _LENGTHS))):
                store_i64(found, OUTCOME, 0)
            k = add_i64(k, lanes())


def is_utf8(at: int, end: int) -> bool:
    """Whether bytes are UTF-8: code points in the fewest bytes, none of them a surrogate."""
    while lt_i64(at, end):
        first = load_u8(at)
        at = add_i64(at, 1)
        if ge_i64(first, NOT_ASCII):
            more, low, high = i64(1), i64(0x80), i64(0xBF)
            if ge_i64(first, 0xE0):
                more = i64(2)
            if ge_i64(first, 0xF0):
                more = i64(3)
            if lt_i64(first, 0xC2) or gt_i64(first, 0xF4) or gt_i64(more, sub_i64(end, at)):
                return False
            if eq_i64(first, 0xE0):
                low = i64(0xA0)
            if eq_i64(first, 0xED):
                high = i64(0x9F)
            if eq_i64(first, 0xF0):
                low = i64(0x90)
            if eq_i64(first, 0xF4):
                high = i64(0x8F)
            while gt_i64(more, 0):
                byte = load_u8(at)
                if lt_i64(byte, low) or gt_i64(byte, high):
                    return False
                at, more, low, high = add_i64(at, 1), sub_i64(more, 1), i64(0x80), i64(0xBF)
    return True
