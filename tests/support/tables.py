"""Tables for differential tests: every type with NULLs, no rows, one row, duplicate and NULL keys, edges of types."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa

Tables = dict[str, pa.Table]
EPOCH = datetime.date(1970, 1, 1)
NOON = datetime.datetime(1970, 1, 1, 12)
WORDS = ("", "a", "A", "ab", "abc", "b%", "b_c", "green", "forest green", "grün", "日本", "special requests", "zz")

ALL_TYPES = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("flag", pa.bool_()),
        ("i8", pa.int8()),
        ("i16", pa.int16()),
        ("i32", pa.int32()),
        ("i64", pa.int64()),
        ("u8", pa.uint8()),
        ("u16", pa.uint16()),
        ("u32", pa.uint32()),
        ("u64", pa.uint64()),
        ("f32", pa.float32()),
        ("f64", pa.float64()),
        ("d9", pa.decimal128(9, 2)),
        ("d18", pa.decimal128(18, 4)),
        ("d38", pa.decimal128(38, 6)),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us")),
        ("s", pa.string()),
        ("w", pa.string()),
        pa.field("n", pa.int32(), nullable=False),
    ]
)


def make(schema: pa.Schema, rows: int, value: Callable[[str, int], Any]) -> pa.Table:
    """A table from ``value(column name, row)``."""
    return pa.table({f.name: pa.array([value(f.name, i) for i in range(rows)], f.type) for f in schema}, schema=schema)


def random_value(name: str, row: int, rng: random.Random, null_share: float) -> Any:
    if name == "id":
        return row
    if name == "n":
        return rng.randint(0, 6)
    if rng.random() < null_share:
        return None
    match name:
        case "flag":
            return rng.random() < 0.5
        case "i8" | "i16" | "i32" | "i64":
            return rng.randint(-100, 100)
        case "u8" | "u16" | "u32" | "u64":
            return rng.randint(0, 50)
        case "f32":
            return rng.randint(-400, 400) / 8
        case "f64":
            return rng.choice([0.0, -1.5, rng.uniform(-1e3, 1e3), rng.uniform(-1, 1)])
        case "d9":
            return Decimal(rng.randint(-99999, 99999)).scaleb(-2)
        case "d18":
            return Decimal(rng.randint(-(10**9), 10**9)).scaleb(-4)
        case "d38":
            return Decimal(rng.randint(-(10**24), 10**24)).scaleb(-6)
        case "day":
            return EPOCH + datetime.timedelta(days=rng.randint(-20000, 20000))
        case "moment":
            return NOON + datetime.timedelta(seconds=rng.randint(-(10**9), 10**9), microseconds=rng.randint(0, 999999))
        case "s":
            return rng.choice(("red", "green", "blue", "", "forest"))
        case _:
            return rng.choice(WORDS) + (str(rng.randint(0, 99)) if rng.random() < 0.6 else "")


@cache
def all_types(rows: int = 120, seed: int = 1) -> Tables:
    """``t`` has every type and NULLs; ``dense`` no NULLs; ``empty``, ``one`` and ``nulls`` have the same columns."""
    rng = random.Random(seed)
    return {
        "t": make(ALL_TYPES, rows, lambda name, i: random_value(name, i, rng, 0.15)),
        "dense": make(ALL_TYPES, rows, lambda name, i: random_value(name, i, rng, 0.0)),
        "empty": ALL_TYPES.empty_table(),
        "one": make(ALL_TYPES, 1, lambda name, i: random_value(name, i, rng, 0.0)),
        "nulls": make(ALL_TYPES, 7, lambda name, i: random_value(name, i, rng, 1.0)),
    }


_MONTH, _DAYS, _HOURS = (1, 0, 0), (0, 30, 0), (0, 0, 2_592_000 * 10**9)  # one length, written in three ways
_SPANS = (
    _MONTH, _DAYS, _HOURS, (0, 1, 0), (0, 0, 86_400 * 10**9), (1, -1, 0), (0, 29, 0), (0, 0, -3_600 * 10**9), (12, 0, 5000),
    (0, 365, 0), (0, 0, 0), (-1, 30, 0), (2, 3, -4_000_000_000), (0, 0, 1000),
)  # fmt: skip


@cache
def intervals(rows: int = 40, seed: int = 5) -> Tables:
    """``t`` has intervals that are equal and not the same, durations and times; ``u`` a few to join; ``empty`` none."""
    rng = random.Random(seed)

    def spans(count: int) -> pa.Array:
        chosen = [None if rng.random() < 0.15 else pa.MonthDayNano(list(rng.choice(_SPANS))) for _ in range(count)]
        return pa.array(chosen, pa.month_day_nano_interval())

    numbers = [rng.choice((None, 0, 1, 3_600_000_000, -5, 86_400_000_000, 2_592_000_000_000)) for _ in range(rows)]
    moments = [None if rng.random() < 0.1 else NOON + datetime.timedelta(rng.randint(0, 20000)) for _ in range(rows)]
    t = pa.table({
        "id": pa.array(range(rows)),
        "g": pa.array([rng.choice("abc") for _ in range(rows)]),
        "x": spans(rows),
        "d": pa.array(numbers, pa.duration("us")),
        "ts": pa.array(moments, pa.timestamp("us")),
        "day": pa.array([EPOCH + datetime.timedelta(rng.randint(0, 20000)) for _ in range(rows)], pa.date32()),
    })  # fmt: skip
    u = pa.table({"y": spans(12), "n": pa.array(range(12))})
    return {"t": t, "u": u, "empty": t.slice(0, 0)}


JOIN_SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("k", pa.int32()),
        ("k2", pa.int64()),
        ("s", pa.string()),
        ("d", pa.decimal128(12, 2)),
        ("day", pa.date32()),
        ("v", pa.int32()),
    ]
)


def _join_row(rng: random.Random, keys: int, null_share: float) -> Callable[[str, int], Any]:
    def value(name: str, row: int) -> Any:
        if name == "id":
            return row
        if rng.random() < null_share:
            return None
        match name:
            case "k":
                return rng.randint(0, keys)
            case "k2":
                return rng.randint(0, 3) * 10**12
            case "s":
                return rng.choice("abcdef") * rng.randint(0, 2)
            case "d":
                return Decimal(rng.randint(0, 12)).scaleb(-2)
            case "day":
                return EPOCH + datetime.timedelta(days=rng.randint(-5, 5))
            case _:
                return rng.randint(-50, 50)

    return value


@cache
def joins(seed: int = 2) -> Tables:
    """``l`` and ``r`` have duplicate and NULL keys, ``u`` unique ones, ``same`` one, ``nokey`` none; ``e`` is empty."""
    rng = random.Random(seed)
    unique = make(JOIN_SCHEMA, 15, _join_row(rng, 15, 0.0))
    unique = unique.set_column(1, JOIN_SCHEMA.field("k"), pa.array([(i * 7) % 15 for i in range(15)], pa.int32()))
    same = make(JOIN_SCHEMA, 9, lambda name, i: 5 if name == "k" else _join_row(rng, 1, 0.2)(name, i))
    return {
        "l": make(JOIN_SCHEMA, 60, _join_row(rng, 20, 0.12)),
        "r": make(JOIN_SCHEMA, 45, _join_row(rng, 20, 0.12)),
        "u": unique,
        "e": JOIN_SCHEMA.empty_table(),
        "same": same,
        "nokey": make(JOIN_SCHEMA, 6, lambda name, i: None if name == "k" else _join_row(rng, 9, 0.1)(name, i)),
    }


@cache
def edges() -> Tables:
    """Values at the ends of their types, dates far from 1970, floats that are no numbers."""
    # as texts: arithmetic on Decimal, a sign even, rounds to 28 digits
    nines, fraction = "9" * 38, "0." + "9" * 38
    return {
        "ints": pa.table(
            {
                "i8": pa.array([-128, 127, 0, None], pa.int8()),
                "i16": pa.array([-(2**15), 2**15 - 1, 0, None], pa.int16()),
                "i32": pa.array([-(2**31), 2**31 - 1, 0, None], pa.int32()),
                "i64": pa.array([-(2**63), 2**63 - 1, 0, None], pa.int64()),
                "u8": pa.array([0, 255, 1, None], pa.uint8()),
                "u16": pa.array([0, 2**16 - 1, 1, None], pa.uint16()),
                "u32": pa.array([0, 2**32 - 1, 1, None], pa.uint32()),
                "u64": pa.array([0, 2**64 - 1, 2**63, None], pa.uint64()),
            }
        ),
        "zeros": pa.table(
            {
                "k": pa.array([1, 2, 3, 4, 5, 6], pa.int32()),
                "f": pa.array([0.0, -0.0, 1.5, -0.0, None, math.nan], pa.float64()),
                "r": pa.array([-0.0, 0.0, 0.0, math.nan, None, math.nan], pa.float32()),
            }
        ),
        "decs": pa.table(
            {
                "k": pa.array([1, 1, 2, 2, 3], pa.int32()),
                "d18": pa.array(
                    [Decimal(10**18 - 1), Decimal(-(10**18) + 1), Decimal(10**18 - 1), Decimal(1), None],
                    pa.decimal128(18, 0),
                ),
                "d19": pa.array(
                    [Decimal(2**63), Decimal(-(2**63) - 1), Decimal(2**63 - 1), Decimal(0), None], pa.decimal128(19, 0)
                ),
                "d38": pa.array(
                    [Decimal(nines), Decimal("-" + nines), Decimal(2**64), Decimal(-(2**64)), None],
                    pa.decimal128(38, 0),
                ),
                "s38": pa.array(
                    [Decimal(fraction), Decimal("-" + fraction), Decimal("1e-38"), Decimal("-1e-38"), None],
                    pa.decimal128(38, 38),
                ),
            }
        ),
        "dates": pa.table(
            {
                "day": pa.array(
                    [
                        datetime.date(1, 1, 1),
                        datetime.date(1582, 10, 15),
                        datetime.date(1900, 2, 28),
                        datetime.date(1969, 12, 31),
                        EPOCH,
                        datetime.date(2000, 2, 29),
                        datetime.date(2024, 12, 31),
                        datetime.date(9999, 12, 31),
                        None,
                    ],
                    pa.date32(),
                ),
                "moment": pa.array(
                    [
                        datetime.datetime(1, 1, 1),
                        datetime.datetime(1582, 10, 15, 23, 59, 59, 999999),
                        datetime.datetime(1900, 2, 28, 1),
                        datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
                        datetime.datetime(1970, 1, 1),
                        datetime.datetime(2000, 2, 29, 12, 30),
                        datetime.datetime(2024, 12, 31, 23),
                        datetime.datetime(9999, 12, 31),
                        None,
                    ],
                    pa.timestamp("us"),
                ),
            }
        ),
        "floats": pa.table(
            {
                "x": pa.array([0.0, -0.0, 1.5, float("nan"), float("inf"), float("-inf"), 5e-324, 1e308, None]),
                "y": pa.array([1.0, 2.0, -1.5, 0.0, float("nan"), 3.0, None, 1.0, 2.0]),
                "z": pa.array([0.1, -0.1, 1e30, float("nan"), float("inf"), 3.5, None, 2.5, -2.5], pa.float32()),
            }
        ),
    }


@cache
def shared() -> Tables:
    """``t`` has repeated values and NULLs, ``s`` values that ``t`` lacks: for subplans that are used several times."""
    return {
        "t": pa.table(
            {
                "x": pa.array([1, 2, 3, 3, None, 5, 2], pa.int32()),
                "y": pa.array([10, None, 30, 31, 40, 50, 20], pa.int32()),
                "w": pa.array(["a", "b", None, "a", "c", "b", "a"]),
            }
        ),
        "s": pa.table({"x": pa.array([1, 3, 3, None, 7], pa.int32()), "z": pa.array([3, None, 1, 4, 2], pa.int32())}),
    }


def pivots() -> Tables:
    """``t`` is long: groups, values of every kind to pivot on, NULLs; ``w`` is wide; ``n2`` names the groups."""
    return {
        "t": pa.table(
            {
                "g": pa.array([1, 1, 2, 2, 3, 10], pa.int32()),
                "a": pa.array(["x", "y", "x", "x", None, "z"]),
                "x": pa.array([10, 20, 30, 5, 7, None], pa.int32()),
                "d": pa.array([1.5, 2.5, 0.0, 0.0, None, 3.5]),
                "b": pa.array([True, False, True, None, None, True]),
            }
        ),
        "w": pa.table(
            {
                "k": pa.array([1, 2], pa.int32()),
                "jan": pa.array([10, None], pa.int32()),
                "feb": pa.array([20, 40], pa.int32()),
                "s": pa.array(["p", "q"]),
            }
        ),
        "n2": pa.table({"g": pa.array([1, 2], pa.int32()), "nm": pa.array(["one", "two"])}),
        "dd": pa.table(
            {
                "d": pa.array([datetime.date(2020, 1, 1), datetime.date(2020, 2, 1)]),
                "v": pa.array([1, 2], pa.int32()),
                "n": pa.array([-1, 2], pa.int32()),
            }
        ),
    }


@cache
def structs() -> Tables:
    """Columns of structs, with NULLs and lists in them: a NULL and a struct of NULLs are two things."""
    s = [{"a": 1, "b": "x", "c": [1, None]}, {"a": 3, "b": None, "c": []}, None, {"a": None, "b": None, "c": None},
         {"a": 1, "b": "x", "c": [1, None]}, {"a": -1, "b": "a long text, with 'quotes'", "c": [2]}]  # fmt: skip
    t = [{"x": 1.5, "y": True}, {"x": None, "y": False}, {"x": 1.5, "y": True}, None,
         {"x": -0.0, "y": None}, {"x": 0.0, "y": None}]  # fmt: skip
    lists = pa.list_(pa.int64())
    return {
        "r": pa.table({
            "k": pa.array([1, 2, 3, 4, 5, 6], pa.int32()),
            "s": pa.array(s, pa.struct([("a", pa.int32()), ("b", pa.string()), ("c", lists)])),
            "t": pa.array(t, pa.struct([("x", pa.float64()), ("y", pa.bool_())])),
        })
    }  # fmt: skip


@cache
def lists() -> Tables:
    """Columns of lists: NULLs, lists of nothing and NULLs in lists are three things."""
    day = datetime.date(2020, 1, 1)
    xs = [[1, 2, 3], [], None, [4, None], [5], [4, 4, None]]
    ds = [[1.5], [2.5, -0.0], [], None, [float("nan"), None, float("inf")], [0.0, float("nan")]]
    ss = [["a", "b c"], [None], [], None, ["x,y", ""], ["é", "null"]]
    return {
        "l": pa.table({
            "k": pa.array([1, 2, 3, 4, 5, 6], pa.int32()),
            "x": pa.array([1, 2, 2, None, 5, 4], pa.int64()),
            "s": ["a,b", "", "x,y,z", None, "q", "a,b"],
            "xs": pa.array(xs, pa.list_(pa.int32())),
            "ds": pa.array(ds, pa.large_list(pa.float64())),
            "ss": pa.array(ss, pa.list_(pa.string())),
            "days": pa.array([[day], None, [day, None], [], [day], None], pa.list_(pa.date32())),
        })
    }  # fmt: skip
