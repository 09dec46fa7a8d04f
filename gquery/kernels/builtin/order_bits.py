"""The words that many rows are sorted by, made in one pass over their keys, and what is read off the sorted words.

A word has the bits of several keys, one behind the other, and the row's place behind them. Where a neighbour's bits are others, a
group of equal keys begins; where its first bits are, a partition. Nothing is looked up by row for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.expression.facts import INT64_BITS
from gquery.expression.types import Bounds
from gquery.kernels.bindings import Argument
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, element_word, launch, namespace
from gquery.kernels.builtin.elements import contiguous
from gquery.kernels.builtin.extremes import extremes
from gquery.kernels.builtin.gathers import gather
from gquery.kernels.builtin.scans import compact, rows_of_bits
from gquery.kernels.builtin.sort_room import sorted_words
from gquery.kernels.readback import read_scalar
from gquery.runtime.records import dataclass

_INTEGERS = ("u8", "i8", "i16", "u16", "i32", "u32", "i64", "u64")
FIRST_BITS = {
    word: builtin_kernel(
        f"c0:*{word} flip:i64 low:i64 right:i64 mask:i64 words:*u64",
        "v0 = i64(c0[i])",
        "store_u64(words, i, and_i64(shr_u64(sub_i64(xor_i64(v0, flip), low), right), mask))",
        hoisted=("v0",),
    )
    for word in _INTEGERS
}
NEXT_BITS = {
    word: builtin_kernel(
        f"c0:*{word} c1:*u64 flip:i64 low:i64 right:i64 mask:i64 left:i64 words:*u64",
        "v0 = i64(c0[i])",
        "v1 = i64(c1[i])",
        "v2 = and_i64(shr_u64(sub_i64(xor_i64(v0, flip), low), right), mask)",
        "store_u64(words, i, or_i64(shl_i64(v1, left), v2))",
        hoisted=("v0", "v1"),
    )
    for word in _INTEGERS
}


@dataclass(frozen=True, eq=False)
class Piece:
    """Bits of a key for all rows: of each value xor ``flip`` less ``low``, shifted to the right, the last ``count``."""

    values: Array
    flip: int
    low: int
    right: int
    count: int


def append_bits(words: Array | None, piece: Piece) -> Array:
    """On a GPU, ``words`` (None: nothing) with the bits of a piece behind theirs (uint64)."""
    found, mask = contiguous(piece.values), signed((1 << piece.count) - 1)
    made: Array = namespace(found).empty(found.size, np.uint64)
    if words is None:
        launch(FIRST_BITS[element_word(found)], found.size, found, found, piece.flip, piece.low, piece.right, mask, made)
    else:
        given = (piece.flip, piece.low, piece.right, mask, piece.count)
        launch(NEXT_BITS[element_word(found)], found.size, found, found, words, *given, made)
    return made


def placed_words(pieces: Sequence[Piece], place_bits: int, workers: int) -> Array:
    """For each row the bits of all pieces, and its place in so many bits behind them (uint64)."""
    like = pieces[0].values
    words: Array = namespace(like).empty(like.size, np.uint64)
    kernel = _words_kernel(elements_of(pieces))
    launch(kernel, like.size, words, *arguments_of(pieces), place_bits, words, workers=workers)
    return words


@cache
def _words_kernel(elements: tuple[str, ...]) -> BuiltinKernel:
    parameters, lines = reading(elements, "i")
    lines.append("store_u64(words, i64(i), or_i64(shl_i64(v, place_bits), i64(i)))")
    return builtin_kernel(f"{parameters} place_bits:i64 words:*u64", *lines)


def elements_of(pieces: Sequence[Piece]) -> tuple[str, ...]:
    """The types of the pieces' values, which the text of a kernel depends on."""
    return tuple([element_word(p.values) for p in pieces])


def arguments_of(pieces: Sequence[Piece]) -> list[Argument]:
    """What a kernel with the parameters of `reading` is given."""
    given: list[Argument] = []
    for piece in pieces:
        mask = (1 << piece.count) - 1
        signed = mask if mask < 1 << 63 else -1
        given += [piece.values, piece.flip, piece.low, piece.right, signed, piece.count]
    return given


def reading(elements: Sequence[str], at: str) -> tuple[str, list[str]]:
    """Parameters of a kernel, and lines that find in ``v`` the bits of all pieces of the row ``at``."""
    parameters, lines = [], []
    for n, element in enumerate(elements):
        parameters.append(f"c{n}:*{element} flip{n}:i64 low{n}:i64 right{n}:i64 mask{n}:i64 count{n}:i64")
        bits = f"and_i64(shr_u64({number_of(n, at)}, right{n}), mask{n})"
        lines.append(f"v = {bits}" if n == 0 else f"v = or_i64(shl_i64(v, count{n}), {bits})")
    return " ".join(parameters), lines


def number_of(n: int, at: str) -> str:
    """All bits of the number, not negative, of which the n-th piece of the row ``at`` is part."""
    return f"sub_i64(xor_i64(i64(c{n}[{at}]), flip{n}), low{n})"


_STARTS = builtin_kernel(
    "words:*u64 bits:i64 more:i64 starts:*u8 firsts:*u8",
    "changed = i64(-1)",
    "if gt_i64(i64(i), 0):",
    "    changed = shr_u64(xor_i64(i64(words[i]), i64(words[row_index(sub_i64(i64(i), 1))])), bits)",
    "store_bool(starts, i64(i), ne_i64(changed, 0))",
    "store_bool(firsts, i64(i), ne_i64(shr_u64(changed, more), 0))",
)


def starts_of(words: Array, bits: int, more: int, workers: int) -> tuple[Array, Array]:
    """For each place whether its word differs from the one before, the last ``bits`` left out, and whether it does without
    ``more`` bits before those (both uint8); 1 for the first place."""
    xp = namespace(words)
    starts, firsts = xp.empty(words.size, np.uint8), xp.empty(words.size, np.uint8)
    launch(_STARTS, words.size, words, words, bits, more, starts, firsts, workers=workers)
    return starts, firsts


PLACED = builtin_kernel("c0:*u64 bits:i64 words:*u64", "v0 = i64(c0[i])",
                     "store_u64(words, i, or_i64(shl_i64(v0, bits), i64(i)))", hoisted=("v0",))  # fmt: skip
PLACES = builtin_kernel("c0:*u64 mask:i64 places:*u32", "v0 = i64(c0[i])", "store_u32(places, i, and_i64(v0, mask))",
                     hoisted=("v0",))  # fmt: skip
TIED = builtin_kernel(
    "c0:*u64 bits:i64 voted:*u32",
    "v0 = i64(c0[i])",
    "tied = False",
    "if gt_i64(i64(i), 0):",
    "    tied = eq_i64(shr_u64(v0, bits), shr_u64(i64(c0[row_index(sub_i64(i64(i), 1))]), bits))",
    "if not tied and lt_i64(add_i64(i64(i), 1), i64(hi)):",
    "    tied = eq_i64(shr_u64(v0, bits), shr_u64(i64(c0[row_index(add_i64(i64(i), 1))]), bits))",
    "v1 = ballot(members(i, hi), tied)",
    "if eq_i64(lane(), 0):",
    "    store_u32(voted, word_index(i), v1)",
    hoisted=("v0",),
)


UNCHANGED = builtin_kernel(  # the same, of what is known of each place but the first: whether it differs from the one before
    "changed:*u8 voted:*u32",
    "tied = False",
    "if gt_i64(i64(i), 0):",
    "    tied = eq_i64(i64(changed[row_index(sub_i64(i64(i), 1))]), 0)",
    "if not tied and lt_i64(add_i64(i64(i), 1), i64(hi)):",
    "    tied = eq_i64(i64(changed[i]), 0)",
    "v1 = ballot(members(i, hi), tied)",
    "if eq_i64(lane(), 0):",
    "    store_u32(voted, word_index(i), v1)",
)


def with_places(values: Array, bits: int) -> Array:
    """Each value with its place in so many bits behind it."""
    xp = namespace(values)
    if xp is np:
        return values << np.uint64(bits) | np.arange(values.size, dtype=np.uint64)
    words: Array = xp.empty(values.size, np.uint64)
    launch(PLACED, values.size, values, values, bits, words)
    return words


PLACED_LATER = builtin_kernel(
    "c0:*u64 rows:*u32 right:i64 bits:i64 words:*u64",
    "v0 = shr_u64(i64(c0[row_index(rows[i])]), right)",
    "store_u64(words, i64(i), or_i64(shl_i64(v0, bits), i64(i)))",
)


def placed_later(values: Array, rows: Array, right: int, bits: int) -> Array:
    """On a GPU, the values (uint64) of these rows without their last ``right`` bits, each with its place in so many ``bits``
    behind it."""
    words: Array = namespace(values).empty(rows.size, np.uint64)
    launch(PLACED_LATER, rows.size, words, values, rows, right, bits, words)
    return words


def places_of(words: Array, bits: int, workers: int = 1) -> Array:
    """The places in the last bits (uint32)."""
    xp = namespace(words)
    if xp is np and words.size < tuning.sorting.fused_rows:
        return (words & np.uint64(2**bits - 1)).astype(np.uint32)
    places: Array = xp.empty(words.size, np.uint32)
    launch(PLACES, words.size, words, words, 2**bits - 1, places, workers=workers)
    return places


def places_in_runs(values: Array, runs: Array, place_bits: int) -> Array:
    """The places of words of 64 bits in their order within runs, which are in theirs (uint32); a place has so many bits."""
    if namespace(values) is np:
        places = np.argsort(values, kind="stable")
        return places[np.argsort(runs[places], kind="stable")].astype(np.uint32)
    lower = INT64_BITS - place_bits  # bits that there is room for before a place
    at = places_of(sorted_words(with_places(values, place_bits)), place_bits)
    for words, right in ((values, lower), (runs, 0)):
        moved = places_of(sorted_words(placed_later(words, at, right, place_bits)), place_bits)
        at = gather(at, moved)
    return at


TieGroups = list[tuple[Array, int]]
"""What tells rows apart, in their new order: unsigned integers, without so many bits at their end."""


def tied(groups: TieGroups) -> Array:
    """The places of rows that are not told apart from the one before or behind them."""
    (words, bits), *more = groups
    xp = namespace(words)
    if xp is np:
        same = ~changed_words(groups)
        flags = xp.zeros(words.size, np.bool_)
        flags[1:] = same
        flags[:-1] |= same
        return compact(flags)
    marks = xp.empty(-(-words.size // 32), np.uint32)
    if more:
        changed = changed_words(groups).view(np.uint8)
        launch(UNCHANGED, words.size, words, changed, marks)
    else:
        launch(TIED, words.size, words, words, bits, marks)
    return rows_of_bits(marks)


def changed_words(groups: TieGroups) -> Array:
    """For each place but the first, whether it differs from the one before."""
    if namespace(groups[0][0]) is not np:
        return _changed_on_gpu(groups)
    changed: Array
    changed, *others = [(words[1:] ^ words[:-1]) >> np.uint64(bits) != 0 for words, bits in groups]
    for differs in others:
        changed = changed | differs
    return changed


CHANGED = builtin_kernel(
    "words:*u64 bits:i64 changed:*u8",
    "here = row_index(add_i64(i64(i), 1))",
    "if ne_i64(shr_u64(xor_i64(i64(words[here]), i64(words[i])), bits), 0):",
    "    store_u8(changed, i64(i), 1)",
)


def _changed_on_gpu(groups: TieGroups) -> Array:
    first = groups[0][0]
    changed: Array = namespace(first).zeros(max(first.size - 1, 0), np.uint8)
    for words, bits in groups:
        launch(CHANGED, changed.size, changed, words, bits, changed)
    return changed.view(np.bool_)


_LEAST = builtin_kernel(  # a warp takes a chunk
    "c0:*u64 chunk:i64 made:*u64",
    "own = and_i64(i64(i), 31)",
    "at = add_i64(mul_i64(shr_i64(i64(i), 5), chunk), own)",
    "end = add_i64(sub_i64(at, own), chunk)",
    "least = i64(-1)",
    "while lt_i64(at, end):",
    "    v0 = i64(c0[row_index(at)])",
    "    if lt_u64(v0, least):",
    "        least = v0",
    "    at = add_i64(at, 32)",
    "offset = i64(16)",
    "while ne_i64(offset, 0):",
    "    other = shuffle_down_i64(least, offset)",
    "    if lt_u64(other, least):",
    "        least = other",
    "    offset = shr_i64(offset, 1)",
    "if eq_i64(own, 0):",
    "    store_u64(made, shr_i64(i64(i), 5), least)",
)


def least_of_chunks(words: Array, chunk: int) -> Array:
    """The least of each ``chunk`` words (uint64), on a GPU; those behind the last whole chunk are left out."""
    made: Array = namespace(words).empty(words.size // chunk, np.uint64)
    launch(_LEAST, 32 * made.size, words, words, chunk, made)
    return made


def tied_places(words: Array, bits: int, starts: Array) -> Array:
    """The places of words that are equal to the one before or behind them, ascending (uint32); ``starts``: see
    `starts_of`."""
    if namespace(words) is not np:
        return tied([(words, bits)])
    same = compact(starts, 1)
    flags = np.zeros(starts.size, np.bool_)
    flags[same] = True
    flags[same - np.uint32(1)] = True
    return compact(flags)


def signed(bits: int) -> int:
    """The 64 last bits as a signed number."""
    return (bits + 2**63) % 2**64 - 2**63


def bounds_of(values: Array) -> Bounds:
    """The least and the greatest of integers; 0 and 0 of none."""
    if values.size == 0:
        return Bounds(0, 0)
    least, most = extremes(values)
    turned = 2**63 if values.dtype == np.uint64 else 0
    return Bounds(read_scalar(least) + turned, read_scalar(most) + turned)
