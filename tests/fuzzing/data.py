"""Random tables of all types: NaN, infinities, zeros of both signs, the ends of every type, text beyond ASCII, NULLs, no rows.

Every kind has columns whose values are small, so that arithmetic on them fits, and columns that reach to the ends of their type.
Doubles are multiples of 0.25, whose sums are exact in any order.
"""

from __future__ import annotations

import datetime
import random
from decimal import Context, Decimal
from functools import cache
from typing import Any

import pyarrow as pa

BOOL, INT, DEC, DBL, STR, DATE, TIME, SPAN = "bool", "int", "dec", "dbl", "str", "date", "time", "span"
BLOB, CLOCK, ZONED = "blob", "clock", "zoned"
KINDS = (INT, STR, DEC, DBL, DATE, BOOL, TIME, SPAN, INT, STR, BLOB, CLOCK, ZONED)
EDGES = frozenset(
    {"e8", "e16", "e32", "e64", "eu8", "eu64", "edec", "ed18", "ed38", "u16", "u32"}
)  # where arithmetic may not fit: unsigned ones too
COLUMNS: dict[str, tuple[str, pa.DataType]] = {
    "i32": (INT, pa.int32()),
    "i8": (INT, pa.int8()),
    "i16": (INT, pa.int16()),
    "i64": (INT, pa.int64()),
    "u16": (INT, pa.uint16()),
    "u32": (INT, pa.uint32()),
    "e8": (INT, pa.int8()),
    "e16": (INT, pa.int16()),
    "e32": (INT, pa.int32()),
    "e64": (INT, pa.int64()),
    "eu8": (INT, pa.uint8()),
    "eu64": (INT, pa.uint64()),
    "dec": (DEC, pa.decimal128(9, 2)),
    "d18": (DEC, pa.decimal128(18, 4)),
    "d30": (DEC, pa.decimal128(30, 6)),
    "edec": (DEC, pa.decimal128(4, 1)),
    "ed18": (DEC, pa.decimal128(18, 0)),
    "ed38": (DEC, pa.decimal128(38, 2)),
    "f64": (DBL, pa.float64()),
    "f32": (DBL, pa.float32()),
    "str": (STR, pa.string()),
    "txt": (STR, pa.string()),
    "day": (DATE, pa.date32()),
    "ts": (TIME, pa.timestamp("us")),
    "yes": (BOOL, pa.bool_()),
    "span": (SPAN, pa.month_day_nano_interval()),
    "dur": (SPAN, pa.duration("us")),
    "raw": (BLOB, pa.binary()),
    "clk": (CLOCK, pa.time64("us")),
    "moment": (ZONED, pa.timestamp("us", "UTC")),
}
TABLES = ("r", "s", "t", "u")
SETS = 60  # sets of tables that seeds share
SIZES = (0, 1, 2, 9, 20, 33, 60)
_WIDE = Context(prec=40)
_BITS = {
    "e8": (-(2**7), 2**7 - 1),
    "e16": (-(2**15), 2**15 - 1),
    "e32": (-(2**31), 2**31 - 1),
    "e64": (-(2**63), 2**63 - 1),
    "eu8": (0, 2**8 - 1),
    "eu64": (0, 2**64 - 1),
    "ed18": (-(10**18) + 1, 10**18 - 1),
}
_WORDS = (
    "",
    "a",
    "b",
    "ab",
    "ba",
    "A",
    "ä",
    "ÄB",
    "ß",
    "日本",
    "a%",
    "a_b",
    " a",
    "12",
    "-3.5",
    "1e2",
    "x" * 20,
    "x" * 20 + "y",
    "日本語の長いテキスト",
    "日本語の長いテキスA",
    "a\tb\n",
    "e\u0301",
    "😀b",
)


@cache
def tables(number: int) -> dict[str, pa.Table]:
    """The four tables of a set; the first is never empty."""
    rng = random.Random(number * 7919 + 1)
    return {name: _table(rng, rng.choice(SIZES[3:] if name == "r" else SIZES)) for name in TABLES}


def _table(rng: random.Random, rows: int) -> pa.Table:
    arrays = []
    for name, (_, dtype) in COLUMNS.items():
        nulls = rng.choice((0.0, 0.3, 0.3, 0.3, 0.05, 1.0 if rng.random() < 0.3 else 0.3))
        width = rng.choice((2, 5, 12))
        arrays.append(
            pa.array([None if rng.random() < nulls else _value(name, rng, width) for _ in range(rows)], dtype)
        )
    return pa.table(dict(zip(COLUMNS, arrays)))


def _value(name: str, rng: random.Random, width: int) -> Any:
    if name in _BITS:
        low, high = _BITS[name]
        number = rng.choice(
            (low, low + 1, high, high - 1, 0, 1, rng.randint(low, high), rng.randint(max(low, -9), min(high, 9)))
        )
        return Decimal(number) if name == "ed18" else number
    match name:
        case "u16" | "u32":
            return rng.randint(0, width)
        case "dec" | "d18" | "d30":
            return Decimal(rng.randint(-50, 50) * 25).scaleb(-2)
        case "edec":
            return Decimal(rng.choice((-9999, 9999, 0, 5, -5, rng.randint(-9999, 9999)))).scaleb(-1)
        case "ed38":
            most = 10**38 - 1
            return Decimal(
                rng.choice((most, -most, most - 1, 0, 1, -25, 10**18, rng.randint(-(10**20), 10**20)))
            ).scaleb(-2, _WIDE)
        case "f64" | "f32":
            return rng.choice(
                (rng.randint(-40, 40) / 4, rng.randint(-4, 4) / 4, 0.0, -0.0, float("nan"), float("inf"), float("-inf"))
            )
        case "str":
            return rng.choice(_WORDS[: 3 * width])
        case "txt":
            return rng.choice(_WORDS) + rng.choice(("", "", str(rng.randint(0, 99))))
        case "day":
            far = (
                datetime.date(1, 1, 1),
                datetime.date(9999, 12, 31),
                datetime.date(1969, 12, 31),
                datetime.date(2000, 2, 29),
                datetime.date(2001, 1, 31),
                datetime.date(1999, 12, 31),
            )
            near = datetime.date(2001, 1, 1) + datetime.timedelta(days=rng.randint(-width * 20, width * 20))
            return rng.choice((*far, near, near, near, near, near))
        case "ts":
            far_ = (
                datetime.datetime(1, 1, 1),
                datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
                datetime.datetime(1970, 1, 1),
                datetime.datetime(2000, 2, 29, 23, 59, 59, 999999),
                datetime.datetime(2001, 3, 31, 0, 0, 0, 1),
            )
            near_ = datetime.datetime(2001, 1, 1) + datetime.timedelta(
                microseconds=rng.randint(-(10**width), 10**width)
            )
            return rng.choice((*far_, near_, near_, near_, near_, near_))
        case "yes":
            return rng.random() < 0.5
        case (
            "span"
        ):  # as it is normalised: what is equal is the same, so that it does not matter which one a group shows
            parts = [
                rng.choice((0, 0, 1, -1, 13)),
                rng.choice((0, 0, 1, -1, 29, -29)),
                rng.choice((0, 0, 1, -7200)) * 10**9,
            ]
            return pa.MonthDayNano(parts)
        case "raw":
            return rng.choice((b"", b"a", b"ab", b"\x00", b"\xab\x00", "ä".encode(), b"\xff" * 20, b"x" * 20, b"\\", b"'"))
        case "clk":
            far__ = (datetime.time(0), datetime.time(23, 59, 59, 999999), datetime.time(12, 30), datetime.time(0, 0, 0, 1))
            return rng.choice((*far__, datetime.time(rng.randint(0, 1), 30 * rng.randint(0, 1), rng.randint(0, width))))
        case "moment":
            return _value("ts", rng, width).replace(tzinfo=datetime.UTC)
        case "dur":
            return datetime.timedelta(0, rng.choice((0, 0, 1, -7200, 86399)), rng.choice((0, 0, 1)))
        case _:
            return rng.randint(-3, width)
