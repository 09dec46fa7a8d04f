"""Keys of nested values are in the order in which DuckDB compares the values."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from gquery.functions.nested_keys import keys_of

ROWS = 40
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int8(): [0, 1, -1, 127, -128],
    pa.uint64(): [0, 1, 2**63, 2**64 - 1],
    pa.int64(): [0, 1, -1, 2**62, -(2**63), 2**63 - 1],
    pa.float64(): [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan, -1e300, 1e-300],
    pa.string(): ["", "a", "a\x00", "a\x00b", "ab", "b", "é", "\x01", "\x02"],
    pa.bool_(): [True, False],
    pa.decimal128(38, 2): [Decimal(x) for x in ("0", "-1.5", "1.5", "-9999999999999999999999.99", "12345678901234567890.12")],
}  # fmt: skip
INT, TEXT, DOUBLE = pa.int64(), pa.string(), pa.float64()
TYPES = (
    *(pa.list_(t) for t in VALUES),
    pa.list_(pa.list_(TEXT)),
    pa.large_list(pa.large_list(INT)),
    pa.struct([("a", INT), ("b", TEXT)]),
    pa.list_(pa.struct([("a", TEXT), ("b", INT)])),
    pa.struct([("a", DOUBLE), ("b", pa.list_(TEXT))]),
)


def _value(rng: random.Random, type_: pa.DataType) -> Any:
    if rng.random() < 0.2:
        return None
    if pa.types.is_struct(type_):
        return {type_.field(i).name: _value(rng, type_.field(i).type) for i in range(type_.num_fields)}
    if pa.types.is_nested(type_):
        return [_value(rng, type_.value_type) for _ in range(rng.randint(0, 3))]
    return rng.choice(VALUES[type_])


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_the_order_is_duckdbs(type_: pa.DataType) -> None:
    rng = random.Random(str(type_))
    array = pa.array([_value(rng, type_) for _ in range(ROWS + 3)], type_)[3:]  # an array with an offset
    keys = [None if k is None else k.encode() for k in keys_of(array).to_pylist()]
    rows = pa.table({"n": pa.array(range(ROWS)), "x": array})
    with duckdb.connect() as oracle:
        oracle.register("rows", rows)
        pairs = oracle.execute("SELECT a.n, b.n, a.x < b.x, a.x = b.x FROM rows a, rows b").fetchall()
    assert len(pairs) == ROWS * ROWS
    for a, b, is_less, is_equal in pairs:
        x, y = keys[a], keys[b]
        found = (None, None) if x is None or y is None else (x < y, x == y)
        assert found == (is_less, is_equal), (array[a], array[b])
