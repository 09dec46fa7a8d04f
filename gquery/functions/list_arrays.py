"""Lists as functions on the host see them: where the elements of each row lie among all elements, and back to Arrow's arrays.

Functions work over the elements of all rows at once, as one flat array with the row of each: what is asked of a row is a sum,
a count or a first place by row. Where elements are compared, they are ranked first (`list_ranks`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from gquery.functions.nested_arrays import as_type, widest
from gquery.functions.vectors import LARGE, Vector, array_of, flags, from_numpy, integers
from gquery.runtime.records import cached_property, dataclass


@dataclass(frozen=True, eq=False)
class Lists:
    """The lists of some rows: the elements of row i are ``lengths[i]`` from ``starts[i]`` on; a NULL has none, and ``ok`` is
    False. All are NumPy arrays, of int64 and of booleans."""

    starts: Any
    lengths: Any
    ok: Any
    elements: pa.Array

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def rows(self) -> Any:
        """The row of each element, row by row."""
        if len(self) == 1:
            return np.zeros(int(self.lengths[0]), np.int64)
        return np.repeat(np.arange(len(self)), self.lengths)

    @cached_property
    def ordinals(self) -> Any:
        """Which element of its row each is, from 0 on."""
        ends = np.cumsum(self.lengths)
        return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - self.lengths, self.lengths)

    @cached_property
    def flat(self) -> pa.Array:
        """The elements, row by row."""
        filled = self.lengths > 0
        starts, lengths = (self.starts, self.lengths) if filled.all() else (self.starts[filled], self.lengths[filled])
        if not len(starts):
            return self.elements[:0]
        if bool((starts[1:] == starts[:-1] + lengths[:-1]).all()):
            return self.elements[int(starts[0]) : int(starts[-1] + lengths[-1])]
        return self.elements.take(from_numpy(np.repeat(self.starts, self.lengths) + self.ordinals))

    def at(self, places: Any, ok: Any) -> pa.Array:
        """For each row the element of that number in it, from 0 on, NULL where ``ok`` is False."""
        return self.elements.take(from_numpy(np.where(ok, self.starts + places, 0), ok))


def lists_of(x: Vector, rows: int) -> Lists:
    """The lists of a vector; of maps those of their entries."""
    array = array_of(x, rows)
    ok = flags(array.is_valid())
    offsets = integers(array.offsets, len(array) + 1)
    starts = offsets[:-1]
    return Lists(starts, np.where(ok, offsets[1:] - starts, 0), ok, plain(array.values))


def plain(elements: pa.Array) -> pa.Array:
    """Elements in the Arrow type of their logical type; text keeps wide offsets."""
    type_ = elements.type
    if type_ == pa.string_view():
        return elements.cast(pa.large_string())
    if type_ == pa.float16():
        return elements.cast(pa.float32())
    return elements.cast(pa.date32()) if type_ == pa.date64() else elements


def list_array(elements: pa.Array, lengths: Any, ok: Any = None) -> pa.Array:
    """Lists of elements that stand one after another; NULL where ``ok`` is False, where there is none."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    is_large = bool(offsets[-1] > LARGE)
    type_ = pa.large_list(elements.type) if is_large else pa.list_(elements.type)
    ends = pa.py_buffer(offsets if is_large else offsets.astype(np.int32))
    bitmap = None if ok is None or ok.all() else pa.py_buffer(np.packbits(ok, bitorder="little"))
    return pa.Array.from_buffers(type_, len(lengths), [bitmap, ends], children=[elements])


def together(*parts: pa.Array) -> pa.Array:
    """Arrays of one logical type one after another."""
    type_ = widest([p.type for p in parts])
    return pa.concat_arrays([as_type(p, type_) for p in parts])


def any_by_row(rows: Any, count: int) -> Any:
    """Whether a row is among some."""
    found = np.zeros(count, np.bool_)
    found[rows] = True
    return found


def first_by_row(rows: Any, places: Any, count: int) -> Any:
    """The first of the places that each row has; a number that no place is where it has none."""
    found = np.full(count, np.iinfo(np.int64).max, np.int64)
    np.minimum.at(found, rows, places)
    return found
