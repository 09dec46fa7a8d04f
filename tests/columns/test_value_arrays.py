"""Values of Python as arrays: those that `pa.array` makes, and its errors."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from gquery.runtime.value_arrays import value_array

_DAY = datetime.date(2024, 2, 29)
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), [-128, 127, 0, None]),
    "uint8": (pa.uint8(), [255, 0, None]),
    "int64": (pa.int64(), [-(2**63), 2**63 - 1, None]),
    "uint64": (pa.uint64(), [2**64 - 1, 0, None]),
    "double": (pa.float64(), [0.5, -0.0, float("inf"), float("nan"), None]),
    "float": (pa.float32(), [0.1, 1e300, None]),
    "bool": (pa.bool_(), [True, False, None, *[True] * 20]),
    "string": (pa.string(), ["", "ä", "€uro", "\0", None]),
    "large": (pa.large_string(), ["abc", "", None, "𝔸"]),
    "binary": (pa.binary(), [b"a", b"", None]),
    "date": (pa.date32(), [_DAY, datetime.date.min, datetime.date.max, None]),
    "decimal": (pa.decimal128(5, 2), [Decimal("1.25"), Decimal("-999.99"), Decimal("1E2"), Decimal("-0.0"), None]),
    "wide": (pa.decimal128(38, 10), [Decimal("-1234567890123456789012345678.0123456789"), Decimal("1E-10"), None]),
    "moment": (pa.timestamp("us"), [datetime.datetime(2024, 2, 29, 1, 2, 3, 4), None]),
    "list": (pa.list_(pa.int64()), [[1, None], [], None]),
    "mixed": (pa.float64(), [1, 2.5, None]),
    "truths": (pa.int32(), [1, 2]),
    "null": (pa.null(), [None, None]),
}


@pytest.mark.parametrize("name", VALUES)
def test_as_arrow_makes_them(name: str) -> None:
    type_, values = VALUES[name]
    rng = random.Random(3)
    for given in (values, values[:1], [], [None], [rng.choice(values) for _ in range(70)], tuple(values), iter(values)):
        given = list(given) if not isinstance(given, list | tuple) else given
        made, want = value_array(given, type_), pa.array(list(given), type_)
        made.validate(full=True)
        assert made.type == want.type and made.null_count == want.null_count
        assert repr(made.to_pylist()) == repr(want.to_pylist())


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.int8(), [128]), (pa.uint8(), [-1]), (pa.int64(), [2**63]), (pa.int64(), ["1"]), (pa.string(), [1]),
        (pa.decimal128(5, 2), [Decimal("1000")]), (pa.decimal128(5, 2), [Decimal("0.001")]),
        (pa.decimal128(5, 2), [Decimal("1E+999999")]), (pa.date32(), ["x"]), (pa.bool_(), [2]), (pa.string(), ["\ud800"]),
    ],
)  # fmt: skip
def test_errors_are_arrows(type_: pa.DataType, values: list[Any]) -> None:
    with pytest.raises((pa.ArrowException, TypeError, ValueError, OverflowError)) as want:
        pa.array(values, type_)
    with pytest.raises(want.type) as found:
        value_array(values, type_)
    assert str(found.value) == str(want.value)
