"""Values of lists and groups are counted by slots or by a sort, and compared by ranks: answers are DuckDB's either way."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gquery.functions.list_ranks import NO_VALUE, ranks
from tests.support.harness import Tables, assert_same, connect
from tests.support.marks import one_in

ROWS = 600
INT, DOUBLE, TEXT = pa.int64(), pa.float64(), pa.string()
Maker = Callable[[random.Random], Any]
VALUES: dict[str, tuple[pa.DataType, Maker]] = {
    "few": (pa.int32(), lambda rng: rng.randint(-3, 3)),
    "wide": (INT, lambda rng: rng.choice([-(2**63), 2**63 - 1, 0, rng.randint(-(2**63), 2**63 - 1)])),
    "unsigned": (pa.uint64(), lambda rng: rng.choice([0, 2**63, 2**64 - 1, rng.randint(0, 9)])),
    "sparse": (INT, lambda rng: rng.randint(0, 5) * 2**40),
    "double": (DOUBLE, lambda rng: rng.choice([1.5, -1.5, math.nan, math.inf, -math.inf, 1e-300])),
    "zeros": (DOUBLE, lambda rng: rng.choice([0.0, 1.0])),
    "real": (pa.float32(), lambda rng: rng.choice([0.1, math.nan, 2.5])),
    "text": (TEXT, lambda rng: rng.choice(["", "a", "ä", "ab", "b", "NULL"])),
    "texts": (TEXT, lambda rng: f"t{rng.randint(0, 10**6)}"),
    "date": (pa.date32(), lambda rng: dt.date(2024, 1, 1) + dt.timedelta(rng.randint(-3, 3))),
    "moment": (pa.timestamp("us"), lambda rng: dt.datetime(1, 1, 1) + dt.timedelta(rng.choice([0, 1, 3_000_000]))),
    "time": (pa.time64("us"), lambda rng: dt.time(rng.randint(0, 3), 1)),
    "decimal": (pa.decimal128(9, 2), lambda rng: Decimal(rng.randint(-3, 3)).scaleb(-2)),
    "large": (pa.decimal128(38, 2), lambda rng: Decimal(rng.choice([-(10**37), 10**37, 5])).scaleb(-2)),
    "truth": (pa.bool_(), lambda rng: rng.random() < 0.5),
    "bytes": (pa.binary(), lambda rng: rng.choice([b"", b"\0", b"a"])),
}  # fmt: skip


def _values(name: str, nulls: float) -> tuple[pa.Array, pa.Array]:
    type_, make = VALUES[name]
    rng = random.Random(name)

    def value() -> Any:
        return None if rng.random() < nulls else make(rng)

    lists = [None if rng.random() < 0.1 else [value() for _ in range(rng.randint(0, 5))] for _ in range(ROWS)]
    return pa.array([value() for _ in range(ROWS)], type_), pa.array(lists, pa.list_(type_))


def _table(name: str, nulls: float = 0.2) -> Tables:
    values, lists = _values(name, nulls)
    rng = random.Random(1)
    groups = {
        "few_groups": [rng.randint(0, 5) for _ in range(ROWS)],
        "groups": [rng.randint(0, ROWS) for _ in range(ROWS)],
    }
    return {"t": pa.table({"i": pa.array(range(ROWS)), "x": values, "xs": lists, **groups})}


NANS = ("double", "real")  # histograms of DuckDB count all values as NaN where there is one, `list_distinct` keeps each
NOT_IN_MAPS = ("time", "bytes")
STATEMENTS = (
    "SELECT histogram(x) FROM t",
    "SELECT few_groups, histogram(x) FROM t GROUP BY few_groups",
    "SELECT groups, histogram(x) FROM t GROUP BY groups",
    "SELECT histogram(x) FROM t WHERE i < 0",
    "SELECT histogram(x) FROM t WHERE x IS NULL",
    "SELECT i, list_histogram(xs) FROM t",
    "SELECT i, list_sort(list_distinct(xs)), list_unique(xs), list_unique([x, NULL, x]) FROM t",
    "SELECT i, list_sort(xs), list_reverse_sort(xs), list_reverse(xs) FROM t",
    "SELECT i, list_sort(xs, 'DESC', 'NULLS FIRST'), list_sort(xs, 'ASC', 'NULLS FIRST'), list_sort(xs, 'DESC') FROM t",
    "SELECT i, list_sort([x, x, NULL], 'DESC', 'NULLS LAST'), list_sort([x]) FROM t",
    "SELECT few_groups, list_sort(list(x)), list_max(list(x)), list_min(list(x)) FROM t GROUP BY few_groups",
    "SELECT t.i, list_has_any(t.xs, u.xs), list_has_all(t.xs, u.xs), list_sort(list_intersect(t.xs, u.xs)) "
    "FROM t JOIN t u ON t.i = u.i + 1",
    "SELECT i, list_contains(xs, x), list_position(xs, x), list_min(xs), list_max(xs) FROM t",
)


@pytest.mark.parametrize("name", one_in(2, [n for n in VALUES if n not in NOT_IN_MAPS]))
def test_counts_are_duckdbs(name: str) -> None:
    tables = _table(name)
    for sql in STATEMENTS:
        if name not in NANS or ("histogram" not in sql and "distinct" not in sql):
            assert_same(sql, tables)


@pytest.mark.parametrize("name", ["few", "text", "wide"])
def test_without_nulls(name: str) -> None:
    tables = _table(name, 0.0)
    for sql in STATEMENTS:
        assert_same(sql, tables)


def test_many_rows_of_few_values() -> None:
    rng = np.random.default_rng(3)
    n = 5000
    columns = {
        "g": rng.integers(0, 40, n),
        "text": np.array(["red", "green", "blue"])[rng.integers(0, 3, n)],
        "wide": np.array([-(2**63), 5, 2**63 - 1])[rng.integers(0, 3, n)],
        "double": np.array([-0.0, 1.5, np.inf])[rng.integers(0, 3, n)],
        "late": np.where(np.arange(n) < 2000, 0, rng.integers(-(2**62), 2**62, n)),
    }
    tables = {"t": pa.table(columns)}
    for x in ("text", "wide", "double", "late"):
        assert_same(f"SELECT histogram({x}) FROM t", tables)
        assert_same(f"SELECT g, histogram({x}) FROM t GROUP BY g", tables)


def test_nested_values() -> None:
    rows = [{"a": n % 3, "b": None if n % 5 == 0 else "x" * (n % 2)} for n in range(200)]
    tables = {
        "t": pa.table({"g": [n % 7 for n in range(200)], "s": rows, "l": [[n % 2, None][: n % 3] for n in range(200)]})
    }
    assert_same("SELECT g, histogram(s), histogram(l) FROM t GROUP BY g", tables)


def test_both_zeros_are_one_value() -> None:
    tables = {"t": pa.table({"x": [-0.0, 0.0, None, -0.0]})}
    assert_same("SELECT histogram(x) FROM t", tables)
    assert_same("SELECT list_unique([x, 0.0]), list_contains([x], 0.0), list_position([1.0, x], 0) FROM t", tables)


def test_nans_of_other_bits_are_one_value() -> None:
    words = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001, 0], np.uint64)
    for repeats in (1, 1000):
        (found,) = ranks(pa.array(np.tile(words.view(np.float64), repeats)))
        assert len({*found.tolist()}) == 2 and found[0] == found[1] == found[2] > found[3]


@pytest.mark.parametrize("name", VALUES)
def test_ranks_are_those_of_a_sort(name: str) -> None:
    for nulls in (0.0, 0.2, 1.0):
        values = _values(name, nulls)[0][7:]  # an array with an offset
        (found,) = ranks(values)
        known = [(v, r) for v, r in zip(values.to_pylist(), found.tolist(), strict=True) if v is not None]
        assert sum(r == NO_VALUE for r in found.tolist()) == values.null_count
        key = [((v != v, v if v == v else 0), r) for v, r in known]
        assert [r for _, r in sorted(key)] == sorted(r for _, r in known)
        assert len({k for k, _ in key}) == len({r for _, r in known})


def test_top_k_takes_equal_counts_as_they_come() -> None:
    tables = {"t": pa.table({"g": [1] * 7 + [2] * 3, "x": [5, 9, 9, None, 7, 7, 5, 1, 3, 3]})}
    for target in ("python", "cpu"):
        found = connect(target, 1, tables).sql("SELECT g, approx_top_k(x, 2) FROM t GROUP BY g ORDER BY g").fetchall()
        assert found == [(1, [5, 9]), (2, [3, 1])]


def test_nans_are_counted_as_one_value() -> None:
    tables = {"t": pa.table({"x": [math.nan, 1.0, math.nan, None]})}
    for target in ("python", "cpu"):
        ((found,),) = connect(target, 1, tables).sql("SELECT histogram(x)::VARCHAR FROM t").fetchall()
        assert found == "{1.0=1, nan=2}"


def test_sums_and_places() -> None:
    tables = {**_table("few"), "u": _table("wide")["t"]}
    assert_same("SELECT i, list_sum(xs), list_sum([x, x]), list_grade_up(xs) FROM t", tables)
    assert_same("SELECT list_sum(list(x)) FROM t WHERE i < 0", tables)
    assert_same("SELECT i, list_sum([x // 4, x // 4]) FROM u", tables)
