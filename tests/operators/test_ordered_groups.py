"""Aggregates that look at the rows of a group in an order: many groups, skewed ones, shared orders, and what is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery.errors import BindError
from tests.support.harness import assert_same


def _tables(rows: int, groups: int, seed: int = 3) -> dict[str, pa.Table]:
    rng = np.random.default_rng(seed)
    null = rng.random(rows) < 0.1
    keys = np.where(rng.random(rows) < 0.5, 0, rng.integers(0, groups, rows))  # half of all rows in one group
    words = np.array(["", "a", "ab", "b", "a longer text than eight bytes", "ä"], dtype=object)
    return {
        "t": pa.table(
            {
                "k": pa.array(keys, mask=rng.random(rows) < 0.05),
                "x": pa.array(rng.normal(0, 1e6, rows), mask=null),
                "i": pa.array(rng.integers(-9, 9, rows), mask=null),
                "s": pa.array(words[rng.integers(0, 6, rows)], mask=rng.random(rows) < 0.1),
                "o": np.arange(rows),
            }
        )
    }


@pytest.mark.parametrize("groups", [1, 7, 900])
def test_skewed_groups(groups: int) -> None:
    tables = _tables(2000, groups)
    sql = ("SELECT k, median(x), quantile_disc(s, 0.4), mode(i), mode(s), first(x), last(s), string_agg(s, '; '), mad(i), "
           "arg_max(s, x), arg_min(o, i), count(*) FROM t GROUP BY k")  # fmt: skip
    assert_same(sql, tables, targets=["python"])


def test_compiled_on_several_threads() -> None:
    assert_same("SELECT k, median(x), mode(s), string_agg(s, '-'), first(i), arg_min(o, x) FROM t GROUP BY k",
                _tables(30_000, 300), targets=["cpu"])  # fmt: skip


def test_without_groups() -> None:
    assert_same(
        "SELECT median(x), quantile_cont(i, 0.9), mode(s), string_agg(s, ''), first(x), last(i) FROM t",
        _tables(3000, 2),
    )


@pytest.mark.parametrize("key", ["o // 7 - 5", "o // 7 * 1000", "o", "s IS NULL", "(o % 5)::UTINYINT"])
def test_keys_with_and_without_gaps(key: str) -> None:
    sql = f"SELECT {key} AS key, median(x), mode(i), bit_xor(o), last(s), count(*), stddev(i) FROM t GROUP BY key"
    assert_same(sql, _tables(200, 3), targets=["python"])


def test_every_fraction() -> None:
    shares = [0, 0.01, 0.07, 0.29, 0.3, 0.57, 0.999, 1, -0.3, -1]
    calls = ", ".join(f"quantile_disc(o, {q}), quantile_cont(o, {q}), quantile_cont(x, {q}::DOUBLE)" for q in shares)
    for rows in (1, 2, 3, 10, 100):
        assert_same(f"SELECT {calls} FROM t", _tables(rows, 1), targets=["python"], ranks=[1])


def test_calls_of_one_order_share_a_stage() -> None:
    db = gquery.connect("python")
    db.register("t", _tables(50, 3)["t"])
    shown = db.explain("SELECT k, median(x), quantile_cont(x, 0.1), string_agg(s, ',') FROM t GROUP BY k", "physical")
    assert shown.count(" in order to (") == 1


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("quantile_cont(x, 1.5)", "the fraction of quantile_cont is not within -1 and 1"),
        ("quantile(x, o)", "the fraction of quantile has to be a constant number"),
        ("percentile_disc(x, NULL)", "the fraction of percentile_disc is NULL"),
        ("listagg(s, s)", "the separator of listagg has to be a constant text"),
        ("quantile_cont(s, 0.5)", r"no function matches quantile_cont\(VARCHAR"),
        ("min_by(x)", r"no function matches min_by\(DOUBLE\)"),
    ],
)
def test_refused(sql: str, message: str) -> None:
    db = gquery.connect("python")
    db.register("t", _tables(5, 2)["t"])
    with pytest.raises(BindError, match=message):
        db.sql(f"SELECT {sql} FROM t")


def test_another_fraction_of_the_same_text() -> None:
    db = gquery.connect("python")
    db.register("t", _tables(101, 1)["t"])
    for share, want in ((0.5, 50), (0.25, 25), (0.75, 75), (1, 100)):
        assert db.sql(f"SELECT quantile_disc(o, {share}) FROM t").fetchall() == [(want,)]
    for text in ("-", "; ", ""):
        assert db.sql(f"SELECT string_agg(o::VARCHAR, '{text}') FROM t WHERE o < 3").fetchall() == [
            (f"0{text}1{text}2",)
        ]


@pytest.mark.parametrize("key", ["k", "k, s, x"])
def test_a_filter_guards_arguments_that_may_fail(key: str) -> None:
    db = gquery.connect("python")
    db.register("t", _tables(60, 2)["t"])
    made = "sum(ln(i)) {0}, median(sqrt(i)) {0}, first(ln(i) ORDER BY o) {0}"
    want = f"SELECT {key}, {made.format('')} FROM t WHERE i > 0 GROUP BY {key} ORDER BY ALL"
    got = f"SELECT {key}, {made.format('FILTER (WHERE i > 0)')} FROM t GROUP BY {key} HAVING max(i) > 0 ORDER BY ALL"
    assert db.sql(got).fetchall() == db.sql(want).fetchall()
