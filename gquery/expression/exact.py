"""Keys that tell values apart, for whatever is kept by a value.

Python takes ``True``, ``1`` and ``1.0`` for equal, ``0.0`` and ``-0.0``, ``Decimal("1.0")`` and ``Decimal("1.00")``; SQL gives
them different types, or divides by them to different infinities. And Python takes no NaN for equal to itself.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

_PLAIN = frozenset((bool, int, str, bytes, datetime.date, type(None)))


def exact(value: Any) -> Any:
    """A key that is equal for values of one type with the same bits alone; TypeError for what could be changed.

    >>> exact(0.0) == exact(-0.0), exact(1) == exact(True), exact(float("nan")) == exact(float("nan"))
    (False, False, True)
    """
    kind = type(value)
    if kind in _PLAIN:  # most are
        return kind, value
    match value:
        case float():
            return kind, struct.pack("<d", value)
        case Decimal():
            return kind, value.as_tuple()
        case datetime.datetime():  # two with zones are equal where they are the same moment
            return kind, value.replace(tzinfo=None), value.tzinfo, value.fold
        case list() | tuple():
            return kind, tuple(map(exact, value))
        case Mapping():
            return kind, tuple((exact(k), exact(v)) for k, v in value.items())
        case _ if hasattr(value, "dtype") and hasattr(value, "tobytes") and getattr(value, "ndim", 1) == 0:
            return kind, str(value.dtype), value.tobytes()  # a scalar of NumPy
    hash(value)
    return kind, value
