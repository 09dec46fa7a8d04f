"""Casts between text and values against DuckDB: random texts of numbers, truth values, dates and times, random values.

The functions are called directly, so that many texts take little time. ``GQUERY_VALUES=all`` makes 50 times as many.
"""

from __future__ import annotations

import math
import os
import random
import re
import struct
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import gquery
from gquery.expression.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    REAL,
    TIMESTAMP,
    TINYINT,
    UBIGINT,
    USMALLINT,
    DType,
    decimal,
)
from gquery.functions.texts import text_of, value_of

COUNT = 2_000 * (50 if os.environ.get("GQUERY_VALUES") == "all" else 1)
NUMBERS = (
    TINYINT, INTEGER, BIGINT, USMALLINT, UBIGINT, decimal(3, 3), decimal(10, 2), decimal(18, 0), decimal(38, 5),
    DOUBLE, REAL, BOOLEAN,
)  # fmt: skip
WORDS = (
    "nan", "NaN", "inf", "Infinity", "-inf", "+inf", " inf ", "-nan", "infin", "true", "T", "TRUE", "f", "no", "1", "y",
    "on", "off", " t", "Yes", "", " ", "0x1F", "0XfF_f", "0b101", "0b2", "-0x1", "0x", "0x7fffffffffffffff ", "-0", "-00",
    "0x8000000000000000", "1e-100000", "1e100000", "5e-1", "49e-1", "'1'", "١",
)  # fmt: skip


def _number(r: random.Random) -> str:
    def digits(most: int) -> str:
        return "".join(r.choice("0123456789") + "_" * (r.random() < 0.03) for _ in range(r.randint(0, most)))

    if r.random() < 0.1:
        return r.choice(WORDS)
    text = (
        r.choice(("", "", " ", "\t")) + r.choice(("", "", "", "-", "+", "--")) + digits(r.choice((1, 3, 5, 10, 20, 40)))
    )
    if r.random() < 0.5:
        text += "." + digits(r.choice((1, 2, 5, 20, 40)))
    if r.random() < 0.3:
        text += r.choice("eE") + r.choice(("", "-", "+")) + digits(r.choice((1, 1, 2, 3)))
    return text + r.choice(("", "", "", "", " ", "\n", "x", "_"))


_PARTS: tuple[tuple[str, ...], ...] = (
    ("", "", " "),
    (
        "2000",
        "1",
        "0",
        "-1",
        "-0",
        "99999",
        "294247",
        "290309",
        "5881580",
        "5877642",
        "1900",
        "20000101",
        "12345678901",
    ),
)
_CLOCKS = (" ", "T", " ", "T", "  ", "t", "", "\t"), ("10", "1", "01", "24", "0", "23", "25", "100", "000000001", ""), (
    ":00", ":5", ":59", ":60", ":", ":005", ""), (":00", ":5", ":59", ":60", ":", ""), (
    "", "", ".", ".1", ".12345678", ".775806", ".99999999"), (
    "", "", "", "", "Z", "z", " Z", "+02", "-0230", "+02:30", "-02:30:15", "+023015", "+2", "+02:3", " +02", " UTC", " utc",
    "UTC", " GMT", " Europe/Berlin", " ", "\n", "x", "Z ", "Z+02", " UTC ", "  UTC", "+02 ", "+99:99", " 1")  # fmt: skip


def _moment(r: random.Random) -> str:
    if r.random() < 0.02:
        return r.choice(("epoch", "Epoch ", " epoch", "-epoch", "epochx", "now", ""))
    dash = r.choice("----/ \\.")
    months, days = (
        ("1", "01", "12", "13", "2", "6", "0", "010"),
        ("1", "01", "29", "30", "31", "32", "0", "001", "9", "22"),
    )
    text = "".join(r.choice(p) for p in _PARTS) + dash + r.choice(months) + dash + r.choice(days)
    text += r.choice(("", "", "", "", " (BC)", "\t(bc)", " (BC", "(BC)", " (AD)"))
    return text + "".join(r.choice(p) for p in _CLOCKS) if r.random() < 0.7 else text


def _is_misread(text: str, dtype: DType) -> bool:
    """Texts that DuckDB misreads (see docs/reference/values.md): a sign or an exponent without digits before a space,
    decimals with an exponent, and floats with underscores behind many digits."""
    if re.search(r"[eE][+-]?\s+$|^\s*[+-]\s+$", text):
        return True
    if dtype.is_decimal or dtype.is_integer:
        return "e" in text.lower() and (dtype.is_decimal or len(text) > 18)
    return "_" in text and sum(c.isdigit() for c in text) > 8


def _physical(array: pa.ChunkedArray, dtype: DType) -> list[Any]:
    if dtype in (DATE, TIMESTAMP):
        array = array.cast(pa.int32() if dtype == DATE else pa.int64())
    if dtype.is_decimal:
        return [None if v is None else int(str(v).replace(".", "")) for v in array.cast(pa.string()).to_pylist()]
    return list(array.to_pylist())


def _agree(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return bool(a == b)


@pytest.mark.parametrize(
    "make,dtypes", [(_number, NUMBERS), (_moment, (DATE, TIMESTAMP))], ids=["numbers", "dates and times"]
)
def test_values_of_texts(make: Callable[[random.Random], str], dtypes: tuple[DType, ...]) -> None:
    r = random.Random(10)
    texts = [make(r) for _ in range(COUNT)]
    oracle = duckdb.connect(config={"threads": 1})
    oracle.register("t", pa.table({"s": texts}))
    values = 0
    for dtype in dtypes:
        want = _physical(oracle.sql(f"SELECT TRY_CAST(s AS {dtype}) AS v FROM t").to_arrow_table()["v"], dtype)
        values += sum(w is not None for w in want)
        for text, w in zip(texts, want, strict=True):
            if not _is_misread(text, dtype):
                got = value_of(text, dtype)
                assert _agree(got, w), f"{text!r} as {dtype} gives {got!r}, DuckDB {w!r}"
    assert values > COUNT * len(dtypes) / 10


def _doubles(r: random.Random) -> list[float]:
    bits = [struct.unpack("<d", struct.pack("<Q", r.getrandbits(64)))[0] for _ in range(COUNT)]
    short = [r.randint(-(10**6), 10**6) / 10 ** r.randint(0, 9) for _ in range(COUNT)]
    return (
        [x for x in bits if x == x]
        + short
        + [10.0**k for k in range(-320, 309)]
        + [0.0, -0.0, 5e-324, math.inf, -math.inf]
    )


def test_texts_of_values() -> None:
    r = random.Random(11)
    doubles = _doubles(r)
    micros = [r.randint(-9223372022400000000, 2**63 - 2) for _ in range(COUNT)]
    micros += [r.randint(-(10**12), 10**12) * 10 ** r.randint(0, 6) for _ in range(COUNT)]
    small = [float(v) for v in pa.array([round(x, 3) for x in doubles if abs(x) < 1000], pa.float32()).to_pylist()]
    columns: list[tuple[DType, list[Any], Any]] = [
        (DOUBLE, doubles, pa.float64()),
        (REAL, small, pa.float32()),
        (TIMESTAMP, [*micros, -9223372022400000000, 2**63 - 2], pa.timestamp("us")),
        (DATE, [r.randint(-(2**31) + 2, 2**31 - 2) for _ in range(COUNT)], pa.date32()),
        (BOOLEAN, [0, 1], pa.bool_()),
    ]
    oracle = duckdb.connect(config={"threads": 1})
    for dtype, values, arrow in columns:
        plain = pa.array(values, pa.int32() if dtype == DATE else pa.int64() if dtype == TIMESTAMP else None)
        oracle.register("t", pa.table({"v": plain.cast(arrow)}))
        want = oracle.sql("SELECT v::VARCHAR AS v FROM t").to_arrow_table()["v"].to_pylist()
        for value, w in zip(values, want, strict=True):
            assert text_of(value, dtype) == w, f"{value!r} of {dtype}"


@pytest.mark.parametrize("precision,scale", [(3, 3), (5, 2), (9, 0), (38, 38), (38, 0), (38, 10)])
def test_texts_of_decimals(precision: int, scale: int) -> None:
    oracle = duckdb.connect(config={"threads": 1})
    most = 10**precision - 1
    for value in (0, 1, -1, 10, 10**scale, -(10**scale), most, -most):
        if abs(value) <= most:
            text = text_of(value, decimal(precision, scale))
            row = oracle.execute(f"SELECT ?::DECIMAL({precision},{scale})::VARCHAR", [text]).fetchone()
            assert row == (text,)
            assert value_of(text, decimal(precision, scale)) == value


ROWS = (
    "1", " 1_000 ", "0x1F", "_1", "1e-100000", "12.5", "t", " t", "2000-01-01", "0001-01-01 (BC)",
    "2000-01-01T10:00:00.5+02", "epoch", "", "é",
)  # fmt: skip


@pytest.mark.parametrize(
    "dtype", ["INTEGER", "UBIGINT", "DECIMAL(9,1)", "DOUBLE", "FLOAT", "BOOLEAN", "DATE", "TIMESTAMP"]
)
def test_rows_and_constants_agree(dtype: str) -> None:
    """Rows, the entries of a dictionary and constants are cast by the same functions."""
    connection = gquery.connect(device="python")
    connection.register("t", pa.table({"s": ROWS}))
    connection.register("d", pa.table({"s": pa.array(ROWS * 50).dictionary_encode()}))
    constants = ", ".join(f"TRY_CAST('{s}' AS {dtype})::VARCHAR" for s in ROWS)
    want = duckdb.sql(f"SELECT {constants}").fetchall()[0]
    assert connection.sql(f"SELECT {constants}").fetchall()[0] == want
    for table, times in (("t", 1), ("d", 50)):
        rows = connection.sql(f"SELECT TRY_CAST(s AS {dtype})::VARCHAR FROM {table}").fetchall()
        assert tuple(v for (v,) in rows) == want * times


def test_infinite_dates_are_refused() -> None:
    connection = gquery.connect(device="python")
    connection.register("t", pa.table({"s": ["infinity"]}))
    for sql in ("SELECT DATE 'infinity'", "SELECT TRY_CAST('-inf' AS TIMESTAMP)", "SELECT TRY_CAST(s AS DATE) FROM t"):
        with pytest.raises(gquery.NotSupportedError, match="infinite"):
            connection.sql(sql).fetchall()
    assert connection.sql("SELECT 1").fetchall() == [(1,)]
