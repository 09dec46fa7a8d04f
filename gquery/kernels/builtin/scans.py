"""Scans, counts and bitmaps of whole arrays: which rows there are, and where each goes.

Functions take NumPy or CuPy arrays and give arrays of the same kind. Row numbers are uint32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gquery.device.array import Array
from gquery.device.device import Device
from gquery.errors import OperationalError
from gquery.expression.facts import BITMAP_BITS, MOST_ROW_IDS
from gquery.kernels.builtin.define import builtin_kernel, element_word, fill, launch, namespace, reducing
from gquery.kernels.builtin.elements import contiguous
from gquery.kernels.builtin.prefix_sums import bits_before, offsets_of
from gquery.kernels.readback import Count, read_count, read_scalar


def check_rows(rows: int) -> None:
    """Refuse what would need row numbers of more than 32 bits."""
    if rows > MOST_ROW_IDS:
        raise OperationalError(
            f"Sorts, join tables and groups of text take at most {MOST_ROW_IDS} rows at once, not {rows}: filter or aggregate "
            "them first"
        )


def exclusive_scan(counts: Array) -> tuple[Array, Count]:
    """Where each run starts when runs of these lengths lie one after another (int64), and the length of all."""
    offsets = offsets_of(counts)
    return offsets[:-1], _last_of(offsets, None)


ROWS_A_START = 8
"""Rows of which a scan of counts by row keeps one start: what lies between is added up where it is wanted."""
_SUM_COUNTS = builtin_kernel("counts:*u32 sums:*i64", "store_i64(sums, i64(i), sum_of_rows(counts, i64(i)))")


def zeros_by_row(rows: int, device: Device, context: str = "") -> Array:
    """Counts of rows, all 0, as `starts_by_row` takes them."""
    return device.zeros(-(-rows // ROWS_A_START) * ROWS_A_START, np.uint32, context)


def _last_of(ends: Array, most: int | None, varies: bool = False) -> Count:
    return read_count(ends[-1:], most, varies) if ends.size else Count(0)


def starts_by_row(counts: Array) -> tuple[Array, Count]:
    """Where the rows of every `ROWS_A_START` start when each takes as many places as its count says, and all places."""
    sums = namespace(counts).empty(counts.size // ROWS_A_START, np.int64)
    launch(_SUM_COUNTS, sums.size, counts, counts, sums)
    return exclusive_scan(sums)


VOTES = {
    np.dtype(name): builtin_kernel(
        f"c0:*{word} none:i64 bits:*u32",
        "v0 = i64(c0[i])",
        "v1 = ballot(members(i, hi), ne_i64(v0, none))",
        "if eq_i64(lane(), 0):",
        "    store_u32(bits, word_index(i), v1)",
        hoisted=("v0",),
    )
    for name, word in (("bool", "u8"), ("uint8", "u8"), ("uint32", "u32"), ("int64", "i64"))
}
_WORDS_A_TILE = BITMAP_BITS  # words of a bitmap that a warp takes one after another, a bit a lane
_COUNT_TILES = builtin_kernel(  # neighbouring lanes have the words of a tile: it is a sum of theirs
    "bits:*u32 words:i64 counts:*i64",
    "n = i64(0)",
    "if lt_i64(i64(i), words):",
    "    n = popcount(i64(bits[i]))",
    "reduce_add_i64(counts, row_index(shr_i64(i64(i), 5)), n)",
)
_PLACE = builtin_kernel(
    "bits:*u32 words:i64 starts:*i64 rows:*u32",
    "at = and_i64(i64(i), 31)",
    "word = sub_i64(i64(i), at)",
    "end = min_i64(add_i64(word, 32), words)",
    "place = i64(starts[row_index(shr_i64(word, 5))])",
    "while lt_i64(word, end):",
    "    here = i64(bits[row_index(word)])",
    "    if ne_i64(here, 0):",
    "        place = add_i64(place, popcount(here))",
    "        if bit_at(here, i):",
    "            store_u32(rows, sub_i64(place, bits_from(here, i)), add_i64(shl_i64(word, 5), at))",
    "    word = add_i64(word, 1)",
)


def bits_up_to(bits: Array, most: int) -> tuple[Array, Count]:
    """How many bits of a bitmap in words of 32 are set up to the end of each word (int64), and in all: ``most`` at most."""
    ends = bits_before(bits)
    return ends, _last_of(ends, most)


def compact(flags: Array, none: int = 0) -> Array:
    """The row numbers whose flag is not ``none``, ascending (uint32)."""
    check_rows(flags.size)
    if namespace(flags) is np:
        return flagged(flags, none).astype(np.uint32)
    return rows_of_bits(bits_of(flags, none))


def flagged(flags: np.ndarray, none: int = 0) -> np.ndarray:
    """The numbers of the values of an array on the host that are not ``none``, ascending (int64). NumPy finds those that are not
    0 two to five times as fast where they were compared first."""
    return np.flatnonzero(flags if flags.dtype == np.bool_ and none == 0 else flags != none)


def counted_compact(flags: Array) -> tuple[Array, Count]:
    """The row numbers whose flag is not 0, ascending (uint32), and how many there are, which varies (see `read_count`): in the
    places that are left over stands 0."""
    check_rows(flags.size)
    if namespace(flags) is not np:
        return counted_rows_of_bits(bits_of(flags), flags.size, varies=True)
    found = flagged(flags)
    count = read_count(np.array([found.size]), flags.size)
    rows = np.zeros(count.bound, np.uint32)
    rows[: found.size] = found
    return rows, count


_INTEGERS = ("u8", "i8", "i16", "u16", "i32", "u32", "i64")
COUNTS = {
    word: reducing(f"c0:*{word} none:i64", "if ne_i64(v0, none):", "    n = add_i64(n, i64(1))") for word in _INTEGERS
}
SUMS = {word: reducing(f"c0:*{word}", "n = add_i64(n, v0)") for word in ("u32", "i64")}


_COUNT_SET = reducing("c0:*u32", "n = add_i64(n, popcount(v0))")
_IS_MORE = builtin_kernel(
    "totals:*i64 most:i64 flags:*i64", "store_i64(flags, i64(i), from_bool(gt_i64(i64(totals[i]), most)))"
)


def has_more_bits(words: Array, most: int) -> Array:
    """Whether more than so many bits are set in words of uint32: an array of one int64, 0 or 1."""
    xp = namespace(words)
    if xp is np:
        return np.array([int(np.bitwise_count(words).sum(dtype=np.int64)) > most], np.int64)
    total: Array = xp.zeros(1, np.int64)
    launch(_COUNT_SET, words.size, words, words, total)
    flag: Array = xp.empty(1, np.int64)
    launch(_IS_MORE, 1, words, total, most, flag)
    return flag


def count_others(values: Array, none: int = 0) -> Array:
    """How many of an array's integers are not ``none``: an array of one int64."""
    xp = namespace(values)
    if xp is np:
        return np.array([np.count_nonzero(values != none)], np.int64)
    total: Array = xp.zeros(1, np.int64)
    if values.size:
        launch(COUNTS[element_word(values)], values.size, values, contiguous(values), none, total)
    return total


def is_any(flags: Array) -> bool:
    """Whether any flag is not 0: for what is only checked. A run that has run before takes it that none is, and has the GPU
    compare (see `readback.read_scalar`)."""
    return read_scalar(count_others(flags), expected=0) != 0


def sum_of(values: Array) -> Array:
    """The sum of uint32 or int64: an array of one int64. (CuPy compiles a reduction for seconds when it is first used.)"""
    xp = namespace(values)
    if xp is np:
        return np.asarray(values.sum(dtype=np.int64)).reshape(1)
    total: Array = xp.zeros(1, np.int64)
    if values.size:
        launch(SUMS[element_word(values)], values.size, values, contiguous(values), total)
    return total


def bits_of(flags: Array, none: int = 0) -> Array:
    """The bitmap of the flags that are not ``none``, in words of 32 bits (uint32). Bytes, uint32 or int64, on a GPU."""
    xp = namespace(flags)
    bits: Array = xp.empty(-(-flags.size // 32), np.uint32)
    launch(VOTES[flags.dtype], flags.size, bits, contiguous(flags), none, bits)
    return bits


_VOTES_OF_EVERY = builtin_kernel(
    "c0:*i64 stride:i64 bits:*u32",
    "v0 = i64(c0[row_index(mul_i64(i64(i), stride))])",
    "v1 = ballot(members(i, hi), ne_i64(v0, 0))",
    "if eq_i64(lane(), 0):",
    "    store_u32(bits, word_index(i), v1)",
)


def bits_of_every(flags: Array, stride: int) -> Array:
    """The bitmap of every ``stride``-th flag that is not 0, from the first on, in words of 32 bits (uint32)."""
    size = -(-flags.size // stride)
    if namespace(flags) is np:
        bits = np.zeros(-(-size // 32) * 4, np.uint8)
        packed = np.packbits(flags[::stride] != 0, bitorder="little")
        bits[: packed.size] = packed
        return bits.view(np.uint32)
    if stride == 1:
        return bits_of(flags)
    voted: Array = namespace(flags).empty(-(-size // 32), np.uint32)
    launch(_VOTES_OF_EVERY, size, flags, flags, stride, voted)
    return voted


_FLAGS = builtin_kernel(
    "s0:*u32 flags:*u8", "v0 = i64(s0[word_index(i)])", "store_bool(flags, i, bit_at(v0, i))", hoisted=("v0",)
)


def flags_of_bits(bits: Array, size: int) -> Array:
    """The first ``size`` bits of a bitmap in words of 32 as a byte each."""
    xp = namespace(bits)
    if xp is np:
        return np.unpackbits(bits.view(np.uint8), count=size, bitorder="little")
    flags: Array = xp.empty(size, np.uint8)
    launch(_FLAGS, size, bits, bits, flags)
    return flags


def rows_of_bits(bits: Array) -> Array:
    """The numbers of the bits that are set in a bitmap in words of 32, ascending (uint32)."""
    offsets = offsets_of(_tile_counts(bits))
    return _rows_of_bits(bits, offsets, Count(read_scalar(offsets[-1])))


def counted_rows_of_bits(bits: Array, most: int, behind: int = 0, varies: bool = False) -> tuple[Array, Count]:
    """The same, ``most`` at most, and how many there are (``varies``: see `read_count`): in the places that are left over stands
    ``behind``."""
    offsets = offsets_of(_tile_counts(bits))
    count = _last_of(offsets, most, varies)
    return _rows_of_bits(bits, offsets, count, behind), count


def _tile_counts(bits: Array) -> Array:
    """How many bits of each tile of a bitmap are set."""
    tiles = -(-bits.size // _WORDS_A_TILE)
    counts: Array = namespace(bits).zeros(tiles, np.int64)
    launch(_COUNT_TILES, _WORDS_A_TILE * tiles, bits, bits, bits.size, counts)
    return counts


def _rows_of_bits(bits: Array, offsets: Array, count: Count, behind: int = 0) -> Array:
    xp, total = namespace(bits), count.bound
    rows: Array = xp.empty(total, np.uint32)
    if count.number is not None:
        fill(rows, behind)
    if total:
        launch(_PLACE, _WORDS_A_TILE * (offsets.size - 1), bits, bits, bits.size, offsets, rows)
    return rows


SELECTED = {
    word: builtin_kernel(
        f"rows:*i64 selection:*{word} size:i64 aligned:i64 places:*i64 first_rows:*i64",
        "wanted = i64(rows[i])",
        "low = i64(0)",
        "high = size",
        "while lt_i64(low, high):",
        "    middle = shr_i64(add_i64(low, high), 1)",
        "    if lt_i64(i64(selection[row_index(middle)]), wanted):",
        "        low = add_i64(middle, 1)",
        "    else:",
        "        high = middle",
        "place = and_i64(low, sub_i64(0, aligned))",
        "store_i64(places, i64(i), place)",
        "store_i64(first_rows, i64(i), i64(selection[row_index(min_i64(place, sub_i64(size, 1)))]))",
    )
    for word in ("u32", "i64")
}


def places_in_selection(selection: Array, rows: Sequence[int], aligned: int, device: Device) -> tuple[list[int], list[int]]:
    """Where in a selection of rows, ascending, those from each of these rows on begin, at multiples of so many places, a power of
    two, and the row at each place (of the last one behind the end): read back. A selection of nothing has the rows themselves."""
    wanted = np.array(rows, np.int64)
    if not selection.size or not rows:
        return [0] * len(rows), list(rows)
    if namespace(selection) is np:
        places = np.searchsorted(selection, wanted.astype(selection.dtype)) // aligned * aligned
        return places.tolist(), selection[np.minimum(places, selection.size - 1)].tolist()
    found = namespace(selection).empty(2 * wanted.size, np.int64)
    given = (device.from_host(wanted), contiguous(selection), selection.size, aligned, found, found[wanted.size :])
    launch(SELECTED[element_word(selection)], wanted.size, selection, *given)
    words = device.to_host(found).tolist()
    return words[: wanted.size], words[wanted.size :]


WITHIN = builtin_kernel(
    "c0:*u32 before:i64 rows:i64 moved:*u32 flags:*u8",
    "v0 = sub_i64(i64(c0[i]), before)",
    "store_u32(moved, i64(i), v0)",
    "store_bool(flags, i64(i), ge_i64(v0, 0) and lt_i64(v0, rows))",
)


def moved_within(places: Array, before: int, rows: int) -> tuple[Array, Array]:
    """Places (uint32), each less by so much, and flags (uint8) of those that lie within so many rows; others mean nothing."""
    xp = namespace(places)
    if xp is np:
        moved = places - np.uint32(before)  # what was less has great numbers then
        return moved, (moved < np.uint32(rows)).view(np.uint8)
    made, flags = xp.empty(places.size, np.uint32), xp.empty(places.size, np.uint8)
    launch(WITHIN, places.size, places, contiguous(places), before, rows, made, flags)
    return made, flags


PADDED = builtin_kernel(
    "number:*i64 words:*u64", "if ge_i64(i64(i), load_i64(number, 0)):", "    store_u64(words, i, -1)"
)


def pad(words: Array, count: Count) -> None:
    """Give words (uint64) behind the last that counts the greatest value, as they are to be sorted."""
    if count.number is not None:
        launch(PADDED, words.size, words, count.number, words)
