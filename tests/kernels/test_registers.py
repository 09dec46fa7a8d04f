"""Registers of the host: what an array's values are to a kernel, and back."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from gquery.columns.arrow import carried_type
from gquery.expression.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTERVAL,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UBIGINT,
    VARCHAR,
    DType,
    decimal,
)
from gquery.kernels.registers import array_of_registers, registers_of

_MOMENT = datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)
VALUES: list[tuple[DType, list[Any]]] = [
    (BOOLEAN, [True, False, None]),
    (BIGINT, [-(2**63), 2**63 - 1, None]),
    (UBIGINT, [2**64 - 1, 0, None]),
    (decimal(38, 3), [Decimal("-12345678901234567890123.456"), None]),
    (DOUBLE, [-0.5, None]),
    (DATE, [datetime.date(1969, 12, 30), None]),
    (TIMESTAMP, [_MOMENT, None]),
    (TIMESTAMPTZ, [_MOMENT.replace(tzinfo=datetime.UTC), None]),
    (TIME, [datetime.time(23, 59, 59, 999999), None]),
]


@pytest.mark.parametrize(("dtype", "values"), VALUES, ids=lambda v: str(v) if isinstance(v, DType) else "")
def test_there_and_back(dtype: DType, values: list[Any]) -> None:
    array = pa.array(values, carried_type(dtype))
    registers = registers_of(array, dtype)
    assert all(isinstance(r, bool | int | float | Decimal | None) for r in registers), "what a kernel computes with"
    assert array_of_registers([_whole(r) for r in registers], dtype).to_pylist() == array.to_pylist()


def _whole(register: Any) -> Any:
    return int(register) if isinstance(register, Decimal) else register


def test_texts_and_intervals() -> None:
    assert array_of_registers([b"a", None, "ä".encode()], VARCHAR).to_pylist() == ["a", None, "ä"]
    words = array_of_registers([5, None, -1], INTERVAL)
    assert [None if r is None else int(r) for r in registers_of(words, INTERVAL)] == [5, None, -1]
