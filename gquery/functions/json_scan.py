"""What a path leads to in many texts of JSON at once, where that is plain: the others are left to Python's reader.

Kernels lie above functions: they say here how texts are gone through (`use_finder`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.functions.byte_maps import blocks, bytes_of, texts_of
from gquery.functions.json_paths import Path
from gquery.functions.vectors import each_value, flags, from_numpy, null, piecewise, value_array, with_nulls_of
from gquery.runtime.arrow_compute import pc
from gquery.runtime.tuples import NamedTuple

ASK, MISSING, NULL, TRUE, FALSE, INTEGER, DECIMAL, OTHER_NUMBER, TEXT, ESCAPED = range(10)
OBJECT, ARRAY, COMPACT_OBJECT, COMPACT_ARRAY = range(10, 14)
"""As in `kernels.primitives.json_scan`."""
_FEW = 512  # texts that Python reads before a kernel is looked for
_MOST_DIGITS = 18  # of a place: it is one word
_TYPES = (
    "", "", "NULL", "BOOLEAN", "BOOLEAN", "UBIGINT", "DOUBLE", "", "VARCHAR", "VARCHAR", "OBJECT", "ARRAY", "OBJECT", "ARRAY",
    "BIGINT",
)  # fmt: skip
_NEGATIVE = len(_TYPES) - 1

Finder = Callable[[Any, Any, Any], Any]
_finders: list[Finder] = []


def use_finder(finder: Finder) -> None:
    """Texts are gone through by ``finder`` of their bytes, their ends and the steps of a path: int64 rows, which begin with what
    is found, where, how many bytes that has, and how many values."""
    _finders[:] = [finder]


class Parts(NamedTuple):
    """What texts have at a path: the kind of each part, where it begins in the bytes of all texts, how many bytes it has, and
    how many values where it is an array."""

    texts: pa.Array
    data: Any
    kinds: Any
    starts: Any
    sizes: Any
    elements: Any

    def are(self, *kinds: int) -> Any:
        """Which parts are of one of these kinds."""
        wanted = np.zeros(len(_TYPES), np.bool_)
        wanted[list(kinds)] = True
        return wanted[self.kinds]

    def written(self, shown: Any, is_plain: bool) -> pa.Array:
        """The bytes of the parts that are ``shown``, NULL for the others; of texts without quotes where it is plain text."""
        inside = (self.kinds == TEXT) & is_plain
        starts, sizes = self.starts + inside, np.where(shown, self.sizes - 2 * inside, 0)
        ends = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=ends[1:])
        data = np.empty(ends[-1], np.uint8)
        for rows in blocks(ends):
            low, high = ends[rows.start], ends[rows.stop]
            places = np.arange(low, high) + np.repeat(starts[rows] - ends[rows], sizes[rows])
            data[low:high] = self.data[places]
        made = texts_of((data, ends), self.texts)
        return made if shown.all() else pc.if_else(from_numpy(shown), made, null(made.type))


def parts_at(texts: pa.Array, path: Path) -> Parts | None:
    """What texts have at a path; None where Python reads them."""
    steps = [s for s in path if isinstance(s, str) or (isinstance(s, int) and s >= 0)]
    if not _finders or len(texts) < _FEW or len(steps) < len(path):
        return None
    if any(isinstance(s, str) and s.isdecimal() and len(s) > _MOST_DIGITS for s in steps):
        return None
    names, words = [], [len(path)]
    for step in steps:
        name, place = np.frombuffer(f"{step} ".encode(), np.uint8), -1
        if isinstance(step, int):
            place = step
        elif type(step) is not str and step.isdecimal():  # a part of a pointer is a place, too
            place = int(step)
        words += [place, name.ctypes.data, len(name) - 1 if isinstance(step, str) else -1]
        names.append(name)  # whose addresses these are
    data, ends = bytes_of(texts)
    found = _finders[0](data, ends, np.array(words, np.int64))
    if found is None:
        return None
    kinds, starts, sizes, elements = found.T[:4]
    return Parts(texts, data, kinds, starts + ends[:-1], sizes, elements)


Answer = Callable[[Parts], tuple[pa.Array, Any]]
"""What a function says of parts, and of which it knows no more than that they are there."""


class Reader(NamedTuple):
    """A function of a text's value at a path: what it says of many texts, of a whole text of JSON, and of a part, itself JSON."""

    answer: Answer
    of_text: Callable[[str], Any]
    of_part: Callable[[str], Any]
    type: pa.DataType


def by_parts(texts: pa.Array, path: Path, reader: Reader) -> pa.Array:
    """What a function says of all texts, NULL for NULL."""
    parts = parts_at(texts, path)
    if parts is None:
        return each_value(texts, reader.of_text, reader.type)
    there = flags(texts.is_valid())
    made, is_rare = reader.answer(parts)
    made, is_rare = with_nulls_of(made.cast(reader.type), texts), is_rare & there  # anything may lie under NULL
    if is_rare.any():
        some = each_value(parts.written(is_rare, False), reader.of_part, reader.type)
        made = pc.if_else(from_numpy(is_rare), some, made)
    asks = (parts.kinds == ASK) & there
    if not asks.any():
        return made
    some = piecewise(texts, asks, lambda these: each_value(these, reader.of_text, reader.type), reader.type)
    return pc.if_else(from_numpy(asks), some, made)


# ---- answers ---------------------------------------------------------------------------------------------------------

_SCALARS = (TRUE, FALSE, INTEGER, DECIMAL, TEXT)
_COMPACT = (*_SCALARS, COMPACT_OBJECT, COMPACT_ARRAY)


def as_json(parts: Parts) -> tuple[pa.Array, Any]:
    """The part as JSON."""
    return parts.written(parts.are(NULL, *_COMPACT), False), parts.are(OTHER_NUMBER, ESCAPED, OBJECT, ARRAY)


def as_text(parts: Parts) -> tuple[pa.Array, Any]:
    """The part as text, NULL for null."""
    return parts.written(parts.are(*_COMPACT), True), parts.are(OTHER_NUMBER, ESCAPED, OBJECT, ARRAY)


def as_scalar(parts: Parts) -> tuple[pa.Array, Any]:
    """The part as JSON, NULL for null, objects and arrays."""
    return parts.written(parts.are(*_SCALARS), False), parts.are(OTHER_NUMBER, ESCAPED)


def type_names(parts: Parts) -> tuple[pa.Array, Any]:
    """The name of the part's type."""
    first = np.zeros(len(parts.kinds), np.uint8)
    if parts.data.size:
        first = parts.data[np.minimum(parts.starts, parts.data.size - 1)]
    names = np.where((parts.kinds == INTEGER) & (first == ord("-")), _NEGATIVE, parts.kinds)
    known = ~parts.are(ASK, MISSING, OTHER_NUMBER)
    made = value_array(_TYPES, pa.string()).take(from_numpy(names.astype(np.int64), known))
    return made, parts.are(OTHER_NUMBER)


def lengths(parts: Parts) -> tuple[pa.Array, Any]:
    """How many values an array has, 0 of another part."""
    counts = np.where(parts.are(ARRAY, COMPACT_ARRAY), parts.elements, 0).astype(np.uint64)
    return from_numpy(counts, parts.kinds != MISSING), parts.are()


def are_there(parts: Parts) -> tuple[pa.Array, Any]:
    """Whether there is a part."""
    return from_numpy(parts.kinds != MISSING), parts.are()


def are_json(parts: Parts) -> tuple[pa.Array, Any]:
    """Whether a text is JSON, where that is known."""
    return from_numpy(parts.kinds != ASK), parts.are()
