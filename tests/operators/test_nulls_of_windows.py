"""NULL as the result of frames of which no row counts: 0 lies under it, whatever reduces them; `execution.verify_frame` looks."""

from __future__ import annotations

import decimal

import pyarrow as pa
import pytest

from tests.support.harness import assert_same

ROWS = 40
VALUES = [None if n % 8 in (0, 1, 2) or n // 8 == 2 else n * 7 % 13 for n in range(ROWS)]
TYPES: dict[str, pa.DataType] = {
    "ub": pa.uint8(),
    "ul": pa.uint64(),
    "i": pa.int32(),
    "l": pa.int64(),
    "dec": pa.decimal128(38, 2),
    "f": pa.float64(),
    "s": pa.string(),
    "day": pa.date32(),
}


def _column(of: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(of):
        return pa.array([None if v is None else decimal.Decimal(v) for v in VALUES], of)
    return pa.array([None if v is None else "x" * v for v in VALUES] if of == pa.string() else VALUES, of)


TABLE = pa.table(
    {"k": [n // 8 for n in range(ROWS)], "o": [n * 3 % ROWS for n in range(ROWS)]}
    | {name: _column(of) for name, of in TYPES.items()}
)
INTEGERS, NUMBERS, ANY = ["ub", "ul", "i", "l"], ["ub", "ul", "i", "l", "dec", "f"], list(TYPES)
CALLS = {
    "bit_and({})": INTEGERS,
    "bit_or({})": INTEGERS,
    "bit_xor({})": INTEGERS,
    "sum({})": NUMBERS,
    "avg({})": NUMBERS,
    "product({})": NUMBERS,
    "bool_and({} > 3)": NUMBERS,
    "min({})": ANY,
    "max({})": ANY,
    "first_value({})": ANY,
    "last_value({} IGNORE NULLS)": ANY,
    "lag({})": ANY,
    "any_value({})": ANY,
}
FRAMES = [
    "ORDER BY o",
    "ORDER BY o ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
    "ORDER BY o ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING EXCLUDE CURRENT ROW",
    "ORDER BY o GROUPS 1 PRECEDING",
    "ORDER BY o RANGE BETWEEN 5 PRECEDING AND 5 FOLLOWING EXCLUDE TIES",
]
CASES = [(call, name) for call, names in CALLS.items() for name in names]


@pytest.mark.parametrize(("call", "name"), CASES, ids=lambda p: str(p).replace("{}", "x"))
def test_frames_without_values(call: str, name: str) -> None:
    made = [f"{call.format(name)} OVER (PARTITION BY k {frame})" for frame in FRAMES]
    assert_same(f"SELECT k, o, {', '.join(made)} FROM t", {"t": TABLE}, targets=("python",))
