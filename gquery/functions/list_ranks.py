"""Elements of lists as ranks, so that one comparison of integers serves every type: equal ranks are equal values, NULL has the
rank of no value, and the order is DuckDB's."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.functions.list_arrays import together
from gquery.functions.nested_keys import keys_of
from gquery.functions.vectors import doubles, flags, integers
from gquery.runtime.arrow_compute import pc

NO_VALUE = -1
_SAMPLE = 1000  # texts that tell whether they are often the same


def ranks(*parts: pa.Array) -> list[Any]:
    """For each array numbers that are equal where values are, those of all arrays alike, and in the order of the values: NaN is
    the greatest one, and equal to itself. NULL has `NO_VALUE`."""
    whole = together(*parts)
    found = _ranked(whole)
    ends = np.cumsum([0, *(len(p) for p in parts)])
    return [found[a:b] for a, b in pairwise(ends)]


def _ranked(array: pa.Array) -> Any:
    type_ = array.type
    if not len(array) or type_ == pa.null():
        return np.full(len(array), NO_VALUE, np.int64)
    if pa.types.is_nested(type_):
        return _ranked(keys_of(array))
    ok = flags(array.is_valid())
    if pa.types.is_floating(type_):
        values = doubles(array.fill_null(0.0).cast(pa.float64()))
        _, numbers = np.unique(np.where(values == 0, 0.0, values), return_inverse=True)  # NaN is one value, the last
        return np.where(ok, numbers, NO_VALUE)
    if pa.types.is_boolean(type_):
        return np.where(ok, flags(array), NO_VALUE).astype(np.int64)
    is_text = pa.types.is_string(type_) or pa.types.is_large_string(type_)
    if is_text and len(array) > _SAMPLE and len(array[:_SAMPLE].unique()) < _SAMPLE // 2:
        encoded = array.dictionary_encode()  # texts that come again are ranked once
        of_each = _ranked(encoded.dictionary)
        return np.where(ok, of_each[integers(encoded.indices, len(array))] if len(of_each) else NO_VALUE, NO_VALUE)
    made = pc.rank(array, sort_keys="ascending", tiebreaker="dense")
    return np.where(ok, integers(made, len(made)) - 1, NO_VALUE)
