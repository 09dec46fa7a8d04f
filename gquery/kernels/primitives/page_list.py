"""The pages of chunks in a Parquet file, listed by their headers, without what is in them. Of CPUs alone.

A GPU's threads take pages, of which there are more than chunks; headers tell where each begins only one after another.
"""

from __future__ import annotations

from gquery.kernels.primitives.pages import (
    _COUNT,
    _COUNT_2,
    _COUNTED,
    _DEFINITIONS_2,
    _DICTIONARY_ENCODING,
    _ENCODING,
    _ENCODING_2,
    _IS_COMPRESSED_2,
    _KIND,
    _LEVEL_ENCODING,
    _PACKED,
    _REPETITIONS_2,
    _SIZE,
    page_header,
)
from gquery.kernels.primitives.python.integers import (
    add_i64,
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
    sub_i64,
)
from gquery.kernels.primitives.python.memory import load_i64, read_file, store_i64, words_behind
from gquery.kernels.primitives.python.values import Pointer

FILE, CHUNKS, HAS_LEVELS, WINDOW, LARGEST, ROOM, ENTRY_BYTES, CHUNK, LEFT, ENTRIES, HEADER = range(11)
"""Words of a job: the file; how many chunks; 1 where values have levels; where bytes of the file go, `WINDOW_BYTES` and those
that may be read behind them; the bytes that a page has at most, unpacked; how many pages there is room for; the bytes that an
entry of a dictionary has at least. Then what is read: the chunk; how many of its values are left; how many entries its dictionary
has. From `HEADER` on come the words of a header."""
JOB = HEADER + 64
START, PACKED, VALUES, CODEC, CHUNK_WORDS = range(5)
"""Words of a chunk: where in the file it begins, how many bytes and values it has, 1 for Snappy. The last is their number."""
NUMBER, AT, LEADING, PACKED_SIZE, SIZE, IS_PACKED, KIND, COUNT, LEVELS, PAGE_WORDS = range(10)
"""Words of a page: the number of its chunk; where behind the beginning of that its bytes lie, how many levels in front of the
packed ones have, how many are packed, and what they come to; 1 for Snappy; one of `PLAIN`, `CODES` and `DICTIONARY`; how many
values, or entries; one of `NO_LEVELS`, `LEVELS_WITHIN` and `LEVELS_BEFORE`. The last is their number."""
PLAIN, CODES, DICTIONARY = range(3)
NO_LEVELS, LEVELS_WITHIN, LEVELS_BEFORE = range(3)
WINDOW_BYTES = 1 << 16
_FIRST_BYTES = 256  # of a header, which has more where its statistics are long


def list_pages(job: Pointer, chunks: Pointer, listed: Pointer) -> int:
    """List the pages of some chunks: how many there are, also where there is no room for all; -1 where headers contradict
    themselves, or tell of what kernels do not read."""
    count, number = i64(0), i64(0)
    while lt_i64(number, load_i64(job, CHUNKS)):
        chunk = words_behind(chunks, mul_i64(number, CHUNK_WORDS))
        store_i64(job, CHUNK, number)
        store_i64(job, LEFT, load_i64(chunk, VALUES))
        store_i64(job, ENTRIES, -1)
        at = i64(0)
        while gt_i64(load_i64(job, LEFT), 0):
            place = i64(0)
            if lt_i64(count, load_i64(job, ROOM)):
                place = mul_i64(count, PAGE_WORDS)
            at = _list_page(job, chunk, at, words_behind(listed, place))
            if lt_i64(at, 0):
                return i64(-1)
            count = add_i64(count, 1)
        number = add_i64(number, 1)
    return count


def _list_page(job: Pointer, chunk: Pointer, at: int, page: Pointer) -> int:
    """List the page that begins so many bytes behind the beginning of its chunk; where the next one does, -1 where it cannot be
    read."""
    header, window, left = words_behind(job, HEADER), load_i64(job, WINDOW), sub_i64(load_i64(chunk, PACKED), at)
    size, taken, got, place = i64(_FIRST_BYTES), i64(0), i64(1), add_i64(load_i64(chunk, START), at)
    while eq_i64(taken, 0) and le_i64(size, WINDOW_BYTES) and gt_i64(got, 0) and gt_i64(left, 0):
        got = read_file(load_i64(job, FILE), window, min_i64(size, left), place)
        taken = page_header(window, add_i64(window, got), header)
        size = mul_i64(size, 4)
    packed, unpacked = load_i64(header, _PACKED), load_i64(header, _SIZE)
    if le_i64(taken, 0) or gt_i64(taken, left) or lt_u64(sub_i64(left, taken), packed):
        return i64(-1)
    if lt_u64(load_i64(job, LARGEST), unpacked):
        return i64(-1)
    kind, codec, count, levels = load_i64(header, _KIND), load_i64(chunk, CODEC), load_i64(header, _COUNT), i64(0)
    if eq_i64(kind, 3):
        levels, count = load_i64(header, _DEFINITIONS_2), load_i64(header, _COUNT_2)
        codec = mul_i64(codec, load_i64(header, _IS_COMPRESSED_2))
        if lt_i64(levels, 0) or gt_i64(levels, min_i64(packed, unpacked)) or ne_i64(load_i64(header, _REPETITIONS_2), 0):
            return i64(-1)
    if eq_i64(kind, 2):
        count = load_i64(header, _COUNTED)
    what = _kind(job, chunk, header, count)
    if lt_i64(what, 0):
        return i64(-1)
    if eq_i64(what, DICTIONARY):
        store_i64(job, ENTRIES, count)
    else:
        store_i64(job, LEFT, sub_i64(load_i64(job, LEFT), count))
    store_i64(page, NUMBER, load_i64(job, CHUNK))
    store_i64(page, AT, add_i64(at, taken))
    store_i64(page, LEADING, levels)
    store_i64(page, PACKED_SIZE, sub_i64(packed, levels))
    store_i64(page, SIZE, sub_i64(unpacked, levels))
    store_i64(page, IS_PACKED, codec)
    store_i64(page, KIND, what)
    store_i64(page, COUNT, count)
    store_i64(page, LEVELS, _levels(job, kind))
    return add_i64(at, add_i64(taken, packed))


def _levels(job: Pointer, kind: int) -> int:
    """Where the levels of a page lie."""
    if eq_i64(load_i64(job, HAS_LEVELS), 0) or eq_i64(kind, 2):
        return i64(NO_LEVELS)
    if eq_i64(kind, 3):
        return i64(LEVELS_BEFORE)
    return i64(LEVELS_WITHIN)


def _kind(job: Pointer, chunk: Pointer, header: Pointer, count: int) -> int:
    """Which of the kinds a page is of; -1 where it is none of them, or out of place."""
    kind, encoding, left = load_i64(header, _KIND), load_i64(header, _ENCODING), load_i64(job, LEFT)
    if eq_i64(kind, 2):
        is_first = eq_i64(load_i64(job, ENTRIES), -1) and eq_i64(left, load_i64(chunk, VALUES))
        fits = ge_i64(count, 0) and le_i64(mul_i64(count, load_i64(job, ENTRY_BYTES)), load_i64(header, _SIZE))
        if is_first and fits and lt_u64(load_i64(header, _DICTIONARY_ENCODING), 3):
            return i64(DICTIONARY)
        return i64(-1)
    if (ne_i64(kind, 0) and ne_i64(kind, 3)) or lt_i64(count, 0) or gt_i64(count, left):
        return i64(-1)
    if eq_i64(kind, 3):
        encoding = load_i64(header, _ENCODING_2)
    elif eq_i64(load_i64(job, HAS_LEVELS), 1) and ne_i64(load_i64(header, _LEVEL_ENCODING), 3):
        return i64(-1)
    if eq_i64(encoding, 0):
        return i64(PLAIN)
    if (eq_i64(encoding, 2) or eq_i64(encoding, 8)) and gt_i64(load_i64(job, ENTRIES), 0):
        return i64(CODES)
    return i64(-1)
