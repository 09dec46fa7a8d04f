"""Pages of Parquet files, as they lie in memory: their headers, Snappy, levels, and values as words of 64 bits.

What a file holds is not ours: every length is checked before bytes are read or written by it, and what contradicts itself, or
is none of the layouts that most files have, is told, so that somebody else reads it. Buffers have `SLACK` bytes
behind what they hold, as words of eight bytes are moved.
"""

from __future__ import annotations

from gquery.kernels.primitives.packed import (
    coded_words,
    fill_bytes,
    level_values,
    page_bytes,
    plain_words,
    scatter_words,
    varint_word,
)
from gquery.kernels.primitives.page_texts import coded_texts, plain_texts, text_entries
from gquery.kernels.primitives.python.integers import (
    add_i64,
    and_i64,
    eq_i64,
    ge_i64,
    gt_i64,
    i64,
    le_i64,
    lt_i64,
    lt_u64,
    min_i64,
    mul_i64,
    ne_i64,
    neg_i64,
    shl_i64,
    shr_i64,
    shr_u64,
    sub_i64,
    xor_i64,
)
from gquery.kernels.primitives.python.memory import (
    load_i64,
    load_u8,
    load_word_unaligned,
    store_i64,
)
from gquery.kernels.primitives.python.values import Pointer

# Words of the state. The header of a page has the first: field f of the header is at f, that of a struct in it at 8 g + f.
_KIND, _SIZE, _PACKED = 1, 2, 3
_COUNT, _ENCODING, _LEVEL_ENCODING = 9, 10, 11  # of a data page
_COUNTED, _DICTIONARY_ENCODING = 17, 18  # of a dictionary
_COUNT_2, _NULLS_2, _ENCODING_2, _DEFINITIONS_2, _REPETITIONS_2, _IS_COMPRESSED_2 = 25, 26, 28, 29, 30, 31
_LAST, _SLOTS = 40, 48  # the last field of the struct at each depth; how many words there are of a header
VALUE, DICTIONARY, ENTRIES = 0, 48, 49  # as in `primitives.packed`
SOURCE, HAVE, AT, WORDS, ROOM, MADE, SCRATCH, SIZE, LEFT, WIDTH, CODEC, LEVELS, NEED = range(50, 63)
"""Where bytes of a chunk lie, how many there are, and how many of them are read; where words go, how many there is room for, and
how many there are; where a page is unpacked, and the bytes there; how many values of the chunk are left, the bytes of one (0:
text; below 0: the highest comes first), 1 for Snappy, 1 where values have levels; how much is needed of what is missing."""
VALUES, NEXT, CHUNKS, FILE, WINDOW, POSITION, BEHIND = range(63, 70)
"""How many values the chunk has; where the next chunk is described, and how many chunks follow; the file, how many of its bytes
there is room for, where in it the next byte lies that is not there yet, and how many such bytes the chunk has."""
ENTRY_ROOM, CODES, TEXTS, OFFSETS, CHARACTERS, CHARACTER_ROOM, BYTES, ROW = range(70, 78)
"""How many entries of dictionaries there is room for: words of one, or texts of all. Of texts: words that are their own codes;
how many texts there are; where their offsets go (the first is there), and their bytes, for how many there is room, and how many
there are. How many values were narrowed."""
FLAGS, IS_NULLABLE, NULLS, ARE_TEXTS = 78, 79, 80, 81
"""Where a byte for each word goes, 1 for a value and 0 for NULL; 1 where NULLs are read; how many there were; 1 where texts are
wanted as they are, and words are their lengths."""
TEXT, TEXT_ROOM, TEXT_USED, STOP, TEXT_END, STATE = 82, 83, 84, 85, 86, 87
"""As in `primitives.page_texts`; how many values are enough. The last is the number of words."""
START, PACKED, COUNT, PACKING, DESCRIPTION = range(0, 40, 8)
"""Where the words lie that describe a chunk, in bytes: where its pages begin in the file, how many bytes they have, how many
values, 1 for Snappy. The last is how many bytes they take."""
DONE, MORE_BYTES, MORE_ROOM, MORE_SCRATCH, FOUND_DICTIONARY, FAILED, MORE_TEXT = 0, 1, 2, 3, 4, 5, 6
"""What `read_pages` and `chunks.read_chunks` end with."""
_MOST = 2**31 - 1  # bytes of a page
SLACK = 64
"""Bytes behind what a buffer holds: words of eight bytes are moved, and read where a code of few bits begins."""


# ---- headers: structs of Thrift's compact protocol --------------------------------------------------------------
def _zigzag(value: int) -> int:
    """The signed integer that an unsigned one stands for."""
    return xor_i64(shr_u64(value, 1), neg_i64(and_i64(value, 1)))


def page_header(start: int, end: int, state: Pointer) -> int:
    """Read a page's header into 64 words; how many bytes it has, 0 where it does not end, -1 where it is none."""
    k = i64(0)
    while lt_i64(k, _SLOTS):
        store_i64(state, k, 0)
        k = add_i64(k, 1)
    store_i64(state, _IS_COMPRESSED_2, 1)
    at, depth, group = i64(start), i64(0), i64(0)
    while lt_i64(at, end):
        byte = load_u8(at)
        at = add_i64(at, 1)
        if eq_i64(byte, 0):
            if eq_i64(depth, 0):
                return sub_i64(at, start)
            depth = sub_i64(depth, 1)
        else:
            kind, step, last = and_i64(byte, 15), shr_i64(byte, 4), add_i64(_LAST, depth)
            field = add_i64(load_i64(state, last), step)
            if eq_i64(step, 0):
                at = varint_word(at, end, state)
                if eq_i64(at, 0):
                    return i64(0)
                field = _zigzag(load_i64(state, VALUE))
            store_i64(state, last, field)
            slot = i64(-1)
            if lt_i64(depth, 2) and gt_i64(field, 0) and lt_i64(field, 8):
                slot = add_i64(shl_i64(group, 3), field)
            if eq_i64(kind, 12):  # a struct
                if gt_i64(depth, 3):
                    return i64(-1)
                if eq_i64(depth, 0):
                    group = _group(field)
                depth = add_i64(depth, 1)
                store_i64(state, add_i64(_LAST, depth), 0)
            else:
                at = _field(at, end, kind, slot, state)
                if le_i64(at, 0):
                    return at
            if eq_i64(depth, 0):
                group = i64(0)
    return i64(0)


def _group(field: int) -> int:
    """Which of the groups of words the struct in a field of a page's header has."""
    if eq_i64(field, 5):  # a data page
        return i64(1)
    if eq_i64(field, 7):  # a dictionary
        return i64(2)
    if eq_i64(field, 8):  # a data page of version 2
        return i64(3)
    return i64(4)


def _field(at: int, end: int, kind: int, slot: int, state: Pointer) -> int:
    """Read a field that is no struct, into its word where it has one; the address behind it, 0 where it does not end, -1 where
    it is of a kind that headers do not have."""
    value = sub_i64(2, kind)
    if ge_i64(kind, 3):
        if eq_i64(kind, 3):
            return add_i64(at, 1)
        if eq_i64(kind, 7):
            return add_i64(at, 8)
        if gt_i64(kind, 8):
            return i64(-1)
        at = varint_word(at, end, state)
        if eq_i64(at, 0):
            return i64(0)
        value = load_i64(state, VALUE)
        if eq_i64(kind, 8):  # bytes
            if lt_i64(value, 0) or gt_i64(value, sub_i64(end, at)):
                return i64(0)
            return add_i64(at, value)
        value = _zigzag(value)
    if ge_i64(slot, 0):
        store_i64(state, slot, value)
    return at


# ---- pages -----------------------------------------------------------------------------------------------------------
def _leading_levels(state: Pointer) -> int:
    """The bytes of levels that lie in front of a page's packed bytes, which version 2 has; -1 where the page cannot be read."""
    if ne_i64(load_i64(state, _KIND), 3):
        return i64(0)
    levels, most = load_i64(state, _DEFINITIONS_2), min_i64(load_i64(state, _PACKED), load_i64(state, _SIZE))
    if ne_i64(load_i64(state, _REPETITIONS_2), 0):
        return i64(-1)
    if lt_i64(levels, 0) or gt_i64(levels, most):
        return i64(-1)
    return levels


def _page_words(body: int, levels: int, size: int, count: int, state: Pointer) -> int:
    """Write the words of a data page, which is unpacked into ``size`` bytes, 0 for NULL, and their flags: `DONE` where they are
    there. In front of its packed bytes lie so many of ``levels``."""
    at, encoding, values = load_i64(state, SCRATCH), load_i64(state, _ENCODING), i64(count)
    end, words = add_i64(at, size), add_i64(load_i64(state, WORDS), shl_i64(load_i64(state, MADE), 3))
    flags = add_i64(load_i64(state, FLAGS), load_i64(state, MADE))
    if eq_i64(load_i64(state, LEVELS), 1):
        first, last = i64(body), add_i64(body, levels)
        if eq_i64(load_i64(state, _KIND), 0):
            first, levels = add_i64(at, 4), and_i64(load_word_unaligned(at), 0xFFFFFFFF)
            if ne_i64(load_i64(state, _LEVEL_ENCODING), 3) or gt_i64(levels, sub_i64(end, first)):
                return i64(FAILED)
            last = add_i64(first, levels)
            at = i64(last)
        values = level_values(first, last, count, flags, state)
        if lt_i64(values, 0) or (lt_i64(values, count) and eq_i64(load_i64(state, IS_NULLABLE), 0)):
            return i64(FAILED)
    else:
        fill_bytes(flags, count, 1)
    if eq_i64(load_i64(state, _KIND), 3):
        encoding = load_i64(state, _ENCODING_2)
    if gt_i64(values, 0):
        outcome = _page_values(at, end, encoding, values, words, state)
        if ne_i64(outcome, DONE):
            return outcome
    scatter_words(words, flags, count, values)
    store_i64(state, NULLS, add_i64(load_i64(state, NULLS), sub_i64(count, values)))
    return i64(DONE)


def _page_values(at: int, end: int, encoding: int, count: int, words: int, state: Pointer) -> int:
    """Write the words of so many values, one at least, which lie one behind the other, to an address: `DONE` where they are
    there."""
    are_texts = eq_i64(load_i64(state, ARE_TEXTS), 1)
    if eq_i64(encoding, 0):
        if are_texts:
            return plain_texts(at, end, count, words, state)
        if plain_words(at, end, load_i64(state, WIDTH), count, words):
            return i64(DONE)
        return i64(FAILED)
    if (ne_i64(encoding, 2) and ne_i64(encoding, 8)) or ge_i64(at, end):
        return i64(FAILED)
    if not coded_words(add_i64(at, 1), end, load_u8(at), count, words, state):
        return i64(FAILED)
    if are_texts:
        return coded_texts(count, words, state)
    return i64(DONE)


def _missing(kind: int, count: int, size: int, state: Pointer) -> int:
    """What there is no room for of a page that is not unpacked yet, `FAILED` where it cannot be read, `DONE` where all is
    well."""
    if eq_i64(kind, 2):
        if gt_i64(load_i64(state, _DICTIONARY_ENCODING), 2) or ne_i64(load_i64(state, ENTRIES), 0):
            return i64(FAILED)
        if ne_i64(load_i64(state, LEFT), load_i64(state, VALUES)):
            return i64(FAILED)
    else:
        if (ne_i64(kind, 0) and ne_i64(kind, 3)) or lt_i64(count, 0) or gt_i64(count, load_i64(state, LEFT)):
            return i64(FAILED)
        if gt_i64(count, sub_i64(load_i64(state, ROOM), load_i64(state, MADE))):
            store_i64(state, NEED, count)
            return i64(MORE_ROOM)
    if gt_i64(size, load_i64(state, SIZE)):
        store_i64(state, NEED, size)
        return i64(MORE_SCRATCH)
    return i64(DONE)


def read_pages(state: Pointer) -> int:
    """Read pages of a chunk, one after another, and write their values as words: until there is no value left, or something is
    missing. What it ended with; the state says how far it came. A page is read whole or not at all."""
    source = load_i64(state, SOURCE)
    end = add_i64(source, load_i64(state, HAVE))
    while gt_i64(load_i64(state, LEFT), 0):
        at = add_i64(source, load_i64(state, AT))
        taken = page_header(at, end, state)
        kind, packed, size = load_i64(state, _KIND), load_i64(state, _PACKED), load_i64(state, _SIZE)
        if lt_i64(taken, 0) or lt_u64(_MOST, packed) or lt_u64(_MOST, size):
            return i64(FAILED)
        if eq_i64(taken, 0) or gt_i64(packed, sub_i64(end, add_i64(at, taken))):
            store_i64(state, NEED, add_i64(taken, packed))
            return i64(MORE_BYTES)
        count, codec = load_i64(state, _COUNT), load_i64(state, CODEC)
        if eq_i64(kind, 3):
            count, codec = load_i64(state, _COUNT_2), mul_i64(codec, load_i64(state, _IS_COMPRESSED_2))
        missing, levels = _missing(kind, count, size, state), _leading_levels(state)
        if ne_i64(missing, DONE):
            return missing
        body, unpacked = add_i64(at, taken), sub_i64(size, levels)
        if lt_i64(levels, 0):
            return i64(FAILED)
        first, width = add_i64(body, levels), load_i64(state, WIDTH)
        if not page_bytes(first, sub_i64(packed, levels), load_i64(state, SCRATCH), unpacked, codec, width):
            return i64(FAILED)
        store_i64(state, NEED, size)
        begin = load_i64(state, AT)
        store_i64(state, AT, add_i64(begin, add_i64(taken, packed)))
        if eq_i64(kind, 2):
            store_i64(state, ENTRIES, load_i64(state, _COUNTED))
            return i64(FOUND_DICTIONARY)
        outcome = _page_words(body, levels, unpacked, count, state)
        if eq_i64(outcome, MORE_TEXT):
            store_i64(state, AT, begin)
        if ne_i64(outcome, DONE):
            return outcome
        store_i64(state, LEFT, sub_i64(load_i64(state, LEFT), count))
        store_i64(state, MADE, add_i64(load_i64(state, MADE), count))
    return i64(DONE)


def take_dictionary(state: Pointer) -> int:
    """Make words of a dictionary's page, which is unpacked, or add its texts to those that are there: `DONE` where it is one, and
    there is room."""
    scratch, size = load_i64(state, SCRATCH), load_i64(state, NEED)
    entries, width, texts = load_i64(state, ENTRIES), load_i64(state, WIDTH), load_i64(state, TEXTS)
    if eq_i64(entries, 0) and eq_i64(size, 0):  # each value is NULL
        return i64(DONE)
    if lt_i64(entries, 1) or gt_i64(entries, sub_i64(load_i64(state, ENTRY_ROOM), texts)):
        return i64(FOUND_DICTIONARY)
    if ne_i64(width, 0):
        if plain_words(scratch, add_i64(scratch, size), width, entries, load_i64(state, DICTIONARY)):
            return i64(DONE)
        return i64(FOUND_DICTIONARY)
    offsets, used = add_i64(load_i64(state, OFFSETS), shl_i64(texts, 2)), load_i64(state, BYTES)
    if gt_i64(size, sub_i64(load_i64(state, CHARACTER_ROOM), used)):
        return i64(FOUND_DICTIONARY)
    if not text_entries(scratch, size, entries, offsets, load_i64(state, CHARACTERS), used):
        return i64(FOUND_DICTIONARY)
    store_i64(state, DICTIONARY, add_i64(load_i64(state, CODES), shl_i64(texts, 3)))
    store_i64(state, TEXTS, add_i64(texts, entries))
    store_i64(state, BYTES, add_i64(used, sub_i64(size, shl_i64(entries, 2))))
    return i64(DONE)
