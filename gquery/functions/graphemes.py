"""Characters as people see them: what belongs together when a string is reversed.

A letter with its accents, an emoji with its parts, a flag of two letters and a Hangul syllable stay together (Unicode's
extended grapheme clusters). All strings of an array are looked at as one row of code points.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.functions.grapheme_table import RANGES
from gquery.functions.vectors import characters_of, integers, offsets_of
from gquery.runtime.arrow_compute import pc
from gquery.runtime.pattern import pattern

(OTHER, CONTROL, EXTEND, OTHER_EXTEND, LINKER, JOINER, SPACING, PREPEND, PICTOGRAPH, CONSONANT, INDICATOR, L, V, T, LV, LVT,
 CR, LF) = range(18)  # fmt: skip
_KINDS = {"control": CONTROL, "extend": EXTEND, "other_extend": OTHER_EXTEND, "linker": LINKER, "spacing": SPACING,
          "prepend": PREPEND, "pictograph": PICTOGRAPH, "consonant": CONSONANT}  # fmt: skip
_SIMPLE = pattern(r"[\x00-\x0c\x0e-\u02ff\u0370-\u0482\u048a-\u0590\u4e00-\u9fff]*")  # nothing of it joins what stands before
_HANGUL = ((0x1100, 0x115F, L), (0xA960, 0xA97C, L), (0x1160, 0x11A7, V), (0xD7B0, 0xD7C6, V), (0x11A8, 0x11FF, T),
           (0xD7CB, 0xD7FB, T), (0xAC00, 0xD7A3, LVT))  # fmt: skip


@cache
def _kinds() -> Any:
    """The kind of each code point."""
    kinds = np.zeros(0x110000, np.uint8)
    for name, ranges in RANGES.items():
        for one in ranges.split():
            first, _, last = one.partition("-")
            kinds[int(first, 16) : int(last or first, 16) + 1] = _KINDS[name]
    for low, high, kind in _HANGUL:
        kinds[low : high + 1] = kind
    kinds[0xAC00:0xD7A4:28] = LV
    kinds[0x1F1E6:0x1F200] = INDICATOR
    kinds[0x200D], kinds[0x0D], kinds[0x0A] = JOINER, CR, LF
    return kinds


@cache
def _joined() -> Any:
    """Whether a code point of one kind (the row) is followed by one of another (the column) without a bound between."""
    table = np.zeros((18, 18), np.bool_)
    table[:, [EXTEND, OTHER_EXTEND, LINKER, JOINER, SPACING]] = True
    table[PREPEND, :] = True
    for kind, following in ((L, (L, V, LV, LVT)), (LV, (V, T)), (V, (V, T)), (LVT, (T,)), (T, (T,))):
        table[kind, list(following)] = True
    alone = [CONTROL, CR, LF]
    table[alone, :] = False
    table[:, alone] = False
    table[CR, LF] = True
    return table


def reversed_texts(texts: pa.Array) -> pa.Array:
    """Strings without NULLs with their characters from last to first."""
    offsets, data = offsets_of(texts), characters_of(texts)
    raw = data[offsets[0] : offsets[-1]].tobytes()
    points = np.frombuffer(raw.decode().encode("utf-32-le"), "<u4")
    ends = np.cumsum(integers(pc.utf8_length(texts), len(texts)))
    starts = np.append(0, ends[:-1])
    lengths = ends - starts
    is_first = _bounds(points, starts[lengths > 0])
    place = np.arange(len(points))
    (firsts,) = np.nonzero(is_first)
    number = np.cumsum(is_first) - 1
    lasts = np.append(firsts[1:], len(points))
    row_start, row_end = np.repeat(starts, lengths), np.repeat(ends, lengths)
    turned = np.empty_like(points)
    turned[row_start + row_end - lasts[number] + place - firsts[number]] = points
    made = turned.tobytes().decode("utf-32-le").encode()
    width = np.int64 if texts.type == pa.large_string() else np.int32
    buffers = [None, pa.py_buffer((offsets - offsets[0]).astype(width)), pa.py_buffer(made)]
    return pa.Array.from_buffers(texts.type, len(texts), buffers)


def characters(text: str) -> list[str]:
    """The characters of a string."""
    if (text.isascii() and "\r" not in text) or _SIMPLE.fullmatch(text):
        return list(text)
    (firsts,) = np.nonzero(_bounds(np.frombuffer(text.encode("utf-32-le"), "<u4"), np.zeros(1, np.int64)))
    return [text[a:b] for a, b in pairwise([*firsts.tolist(), len(text)])]


def _bounds(points: Any, starts: Any) -> Any:
    """Where characters begin, among the code points of strings that begin at ``starts``."""
    kinds = _kinds()[points]
    begins = np.zeros(len(points), np.bool_)
    begins[starts] = True
    follows = np.zeros(len(points), np.bool_)
    follows[1:] = _joined()[kinds[:-1], kinds[1:]]
    place = np.arange(len(points))
    row = np.maximum.accumulate(np.where(begins, place, 0))  # where the string begins
    _join_pictographs(kinds, follows, row, place)
    _join_consonants(kinds, follows, row, place)
    _join_indicators(kinds, follows, row, place)
    return ~follows | begins


def _last(is_it: Any, place: Any) -> Any:
    """For each place the last one up to it where something is so, -1 for none."""
    return np.maximum.accumulate(np.where(is_it, place, -1))


def _join_pictographs(kinds: Any, follows: Any, row: Any, place: Any) -> None:
    """An emoji, what extends it, a joiner, an emoji."""
    (at,) = np.nonzero((kinds[1:] == PICTOGRAPH) & (kinds[:-1] == JOINER))
    at = at[at >= 1] + 1
    base = _last(~np.isin(kinds, (EXTEND, OTHER_EXTEND, LINKER)), place)[at - 2]
    follows[at] |= (base >= row[at]) & (kinds[base] == PICTOGRAPH)


def _join_consonants(kinds: Any, follows: Any, row: Any, place: Any) -> None:
    """Consonants of an Indic script with a linker between."""
    (at,) = np.nonzero(kinds[1:] == CONSONANT)
    at = at + 1
    base = _last(~np.isin(kinds, (EXTEND, LINKER, JOINER)), place)[at - 1]
    links = np.append(0, np.cumsum(kinds == LINKER))
    follows[at] |= (base >= row[at]) & (kinds[base] == CONSONANT) & (links[at] > links[np.maximum(base, 0)])


def _join_indicators(kinds: Any, follows: Any, row: Any, place: Any) -> None:
    """The letters of flags, two by two."""
    is_letter = kinds == INDICATOR
    first = np.maximum(_last(~is_letter, place) + 1, row)
    follows |= is_letter & ((place - first) % 2 == 1)
