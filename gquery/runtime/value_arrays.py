"""Values of Python as arrays of Arrow.

`pa.array` asks whether it was given something of pandas, which it imports for that where it is installed: 0.2 s, whatever it was
given. Numbers, truths and texts are written into buffers here; anything else goes that way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Context, Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

_EXACT = Context(prec=200)  # more digits than any decimal of 128 bits has
_FIRST_DAY = date(1970, 1, 1).toordinal()


def value_array(values: Iterable[Any], type_: pa.DataType) -> pa.Array:
    """The array of some values, None for NULL, of a type; pa.ArrowInvalid and its like for values that are none of it."""
    given = values if isinstance(values, list | tuple) else list(values)
    plain = _plain().get(type_)
    kinds = {type(v) for v in given} - {type(None)}
    if plain is None or not kinds <= {plain[0]}:  # it is converted, or refused
        return _exact(given, type_, kinds)
    python, dtype = plain
    ok = np.array([v is not None for v in given], np.bool_)
    bitmap = None if ok.all() else pa.py_buffer(np.packbits(ok, bitorder="little"))
    if python is str:
        return _texts(given, type_, bitmap)
    if python is int and not _fit(given, np.iinfo(dtype)):
        return pa.array(given, type_)  # which says what is wrong
    numbers = np.array([0 if v is None else v for v in given], dtype)
    data = np.packbits(numbers, bitorder="little") if python is bool else numbers
    return pa.Array.from_buffers(type_, len(given), [bitmap, pa.py_buffer(data)])


def _exact(values: Sequence[Any], type_: pa.DataType, kinds: set[type]) -> pa.Array:
    """The same of days and decimals."""
    made: pa.Array
    if type_ == pa.date32() and kinds <= {date}:
        days = [None if v is None else v.toordinal() - _FIRST_DAY for v in values]
        made = value_array(days, pa.int32()).view(type_)
        return made
    if pa.types.is_decimal128(type_) and kinds <= {Decimal}:
        words = [_unscaled(v, type_) for v in values]
        if None not in words:
            bits = np.packbits(np.array([v is not None for v in values], np.bool_), bitorder="little")
            data = b"".join([n.to_bytes(16, "little", signed=True) for n in words if n is not None])
            return pa.Array.from_buffers(type_, len(values), [pa.py_buffer(bits), pa.py_buffer(data)])
    return pa.array(values, type_)


def _unscaled(value: Decimal | None, type_: pa.DataType) -> int | None:
    """A decimal in units of its type, 0 for NULL; None where it has more digits."""
    if value is None:
        return 0
    if not value.is_finite() or value.adjusted() > type_.precision:
        return None
    units = value.scaleb(type_.scale, _EXACT)
    found = int(units)
    return found if found == units and abs(found) < 10**type_.precision else None


def _fit(values: Sequence[Any], limits: Any) -> bool:
    there = [v for v in values if v is not None]
    return not there or (limits.min <= min(there) and max(there) <= limits.max)


def _texts(values: Sequence[str | None], type_: pa.DataType, bitmap: pa.Buffer | None) -> pa.Array:
    try:
        data = [b"" if v is None else v.encode() for v in values]
    except UnicodeEncodeError:  # half of a surrogate pair
        return pa.array(values, type_)
    offsets = np.zeros(len(data) + 1, np.int64)
    np.cumsum([len(d) for d in data], out=offsets[1:])
    if type_ == pa.string():
        if offsets[-1] > np.iinfo(np.int32).max:
            return pa.array(values, type_)
        offsets = offsets.astype(np.int32)
    return pa.Array.from_buffers(type_, len(data), [bitmap, pa.py_buffer(offsets), pa.py_buffer(b"".join(data))])


@cache
def _plain() -> dict[pa.DataType, tuple[type, Any]]:
    """The Python type of the values of an Arrow type, and how a number of them lies."""
    numbers = {getattr(pa, name)(): (int, np.dtype(name)) for name in _INTEGERS}
    texts = {pa.string(): (str, None), pa.large_string(): (str, None)}
    return numbers | texts | {pa.float64(): (float, np.dtype(np.float64)), pa.bool_(): (bool, np.dtype(np.bool_))}


_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
