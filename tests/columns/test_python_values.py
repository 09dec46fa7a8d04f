"""Values that are read from an array's buffers are those that Arrow makes."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from gquery.columns.python_values import python_values


def decimals(type_: pa.DataType, *values: str | None) -> pa.Array:
    """Each value by itself: Arrow takes the precision of the first one for all."""
    return pa.concat_arrays([pa.array([None if v is None else Decimal(v)], type_) for v in values])


NINES = "9" * 36 + ".99"
ARRAYS = {
    "short decimals": decimals(pa.decimal128(15, 2), "1.50", None, "-0.01", "0.00", "7.25"),
    "long decimals": decimals(pa.decimal128(38, 2), NINES, f"-{NINES}", None, "0.01", str(2**64), str(-(2**63))),
    "no digits behind the point": decimals(pa.decimal128(38, 0), str(10**37), "-1", "0"),
    "all behind it": decimals(pa.decimal128(38, 38), "1E-38", "-9E-38", None),
    "a negative scale": decimals(pa.decimal128(5, -3), "1E+3", None),
    "dates": pa.array([datetime.date.min, None, datetime.date.max, datetime.date(1970, 1, 1), datetime.date(1969, 12, 31)] * 3),
    "text": pa.array(["a", None, "", "ä€😀"]),
    "integers": pa.array([1, None, -(2**63)]),
    "doubles": pa.array([1.5, None, float("inf")]),
    "lists": pa.array([[1], None, []]),
    "maps": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
}  # fmt: skip


@pytest.mark.parametrize("name", ARRAYS)
def test_values_and_slices(name: str) -> None:
    array = ARRAYS[name]
    for first in range(len(array) + 1):
        for count in (0, 1, len(array)):
            part = array.slice(first, count)
            want = part.to_pylist(maps_as_pydicts="strict")
            got = python_values(part)
            assert got == want and [str(v) for v in got] == [str(v) for v in want]
            assert [type(v) for v in got] == [type(v) for v in want]
    chunked = pa.chunked_array([array, array.slice(1), array.slice(0, 0)])
    assert python_values(chunked) == chunked.to_pylist(maps_as_pydicts="strict")


def test_dates_that_python_does_not_have() -> None:
    beyond = pa.array([0, 10_000_000], pa.int32()).cast(pa.date32())
    with pytest.raises((OverflowError, ValueError)) as arrows:
        beyond.to_pylist()
    with pytest.raises(arrows.type):
        python_values(beyond)
    under_null = pa.Array.from_buffers(pa.date32(), 2, [pa.py_buffer(b"\x01"), beyond.buffers()[1]])
    assert python_values(under_null) == [datetime.date(1970, 1, 1), None]
