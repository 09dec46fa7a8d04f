"""Dictionaries beside one another: the codes of one among those of another, and one that has the entries of several.

Both are done by Arrow, entry by entry in no Python: dictionaries have up to a million entries. What was looked up is kept as
long as both dictionaries live, since each plan over the same columns asks again.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from gquery.columns.arrow import string_array
from gquery.columns.arrow_buffers import bits_of, values_of
from gquery.columns.table import Dictionary
from gquery.device.array import Array
from gquery.runtime.arrow_compute import cast, dictionary_encode, places_among, sorted_places, take

_known: WeakKeyDictionary[Dictionary, WeakKeyDictionary[Dictionary, Array]] = WeakKeyDictionary()


def codes_among(source: Dictionary, target: Dictionary) -> Array:
    """For each entry of ``source`` its code in ``target`` (int64), -1 where that has none. Not to be written to."""
    found = _known.setdefault(source, WeakKeyDictionary())
    if target not in found:
        places = places_among(*_of_one_type([source.values, target.values]))
        is_there = bits_of(places, 0).view(np.bool_) if places.null_count else True
        found[target] = np.where(is_there, values_of(places, np.int32).astype(np.int64), -1)
    return found[target]


def union_dictionary(dictionaries: Sequence[Dictionary]) -> Dictionary:
    """The sorted dictionary that holds every entry of several, the empty text where there is none."""
    values = pa.concat_arrays(_of_one_type([d.values for d in dictionaries]))
    once = dictionary_encode(values).dictionary
    if not len(once):
        return Dictionary(cast(string_array([""]), values.type))
    return Dictionary(take(once, sorted_places(once)))  # Arrow compares texts by their bytes


def _of_one_type(arrays: Sequence[pa.Array]) -> list[pa.Array]:
    """Texts with offsets of as many bits as one of them needs."""
    is_long = any(a.type == pa.large_string() for a in arrays)
    return [cast(a, pa.large_string() if is_long else pa.string()) for a in arrays]
