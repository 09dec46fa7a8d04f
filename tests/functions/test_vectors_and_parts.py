"""Distances of lists, and what takes a list of names: parts of dates, groups of patterns; entries of maps, parts of paths."""

from __future__ import annotations

import calendar
import datetime
import random

import duckdb
import pyarrow as pa
import pytest

import gquery
from gquery import errors
from tests.support.harness import compare

DISTANCES = ("distance", "inner_product", "negative_inner_product", "cosine_similarity", "cosine_distance")
PAIRS = (("x", "y"), ("fx", "fy"), ("x", "fy"), ("i", "i"), ("x", "NULL"))
OVER = [f"list_{name}({a}, {b})" for name in DISTANCES for a, b in PAIRS if name != "cosine_distance" or a != "fx"]  # digits lost
OVER += [
    "regexp_extract(s, '(\\d+)-([a-z]*)', ['n', 'w'])",
    "regexp_extract(s, '(\\d+)(-)?([A-Z])?', ['n', 'dash', 'w'], 'i')",
    "date_part(['year', 'isodow', 'epoch', 'hour'], ts)",
    "date_part(['y', 'doy'], d).doy",
    "date_part(['hour', 'minute'], ts::TIME)",
    "map_contains_entry(m, s, k)",
    "map_contains_entry(m, '1-a', k)",
    "map_contains_entry(m, s, NULL)",
    "parse_path(s || '/b//c\\d.txt')",
    "parse_path(s || '/b//c\\d.txt', 'forward_slash')",
]


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_as_in_duckdb(device: str) -> None:
    r = random.Random(5)
    sizes = [r.randrange(5) for _ in range(300)]

    def vectors(rate: float) -> list[list[float] | None]:
        return [None if r.random() < rate else [r.choice((0.0, 1.5, -2.25, 7.0, 1e9)) for _ in range(n)] for n in sizes]

    x, y, s = vectors(0.1), vectors(0.1), ["1-a", "22-BC", "x", "", None, "/7-q"]
    table = pa.table({
        "x": x, "y": y, "fx": pa.array(vectors(0), pa.list_(pa.float32())), "fy": pa.array(vectors(0.2), pa.list_(pa.float32())),
        "i": [[n, 2] for n in sizes], "s": [r.choice(s) for _ in sizes], "k": [r.choice((1, 2, None)) for _ in sizes],
    })  # fmt: skip
    rows = "SELECT *, TIMESTAMP '2024-02-29 23:59:58.5' + k * INTERVAL 100 HOUR AS ts, DATE '2023-12-30' + k::INTEGER AS d, "
    rows += "CASE WHEN k > 1 THEN MAP {'1-a': 2, 'x': NULL} ELSE MAP {'1-a': 1} END AS m FROM t"
    ours, theirs = gquery.connect(device=device), duckdb.connect()
    if device == "cpu":
        ours.set("interpret_limit", 0)
    for db in (ours, theirs):
        db.register("t", table)
    for sql in OVER:
        text = f"SELECT {sql} AS v FROM ({rows})"
        want, got = theirs.sql(text), ours.sql(text)
        types = [str(t) for t in want.types]
        assert [str(t).replace('"', "") for t in got.types] == [t.replace('"', "") for t in types], sql
        assert (found := compare(got.fetchall(), want.fetchall(), True, types)) is None, f"{sql}: {found}"


@pytest.mark.parametrize(("sql", "kind", "message"), [
    ("SELECT list_distance([1, 2], [3])", errors.DataError, "a list of 2 values and one of 1"),
    ("SELECT list_distance([1, 2], [3, NULL])", errors.DataError, "the right list has a NULL"),
    ("SELECT list_distance(['a'], ['b'])", errors.BindError, "no function matches list_distance"),
    ("SELECT list_inner_product(1, 2)", errors.BindError, "no function matches list_inner_product"),
    ("SELECT regexp_extract('a', '(a)', ['x', 'y'])", errors.BindError, "2 names, and '.a.' has 1 groups"),
    ("SELECT regexp_extract('a', '(a)(b)', ['x', 'X'])", errors.BindError, "twice"),
    ("SELECT regexp_extract('a', '(a)', [])", errors.NotSupportedError, "no list of constant texts"),
    ("SELECT regexp_extract('a', s, ['x']) FROM (VALUES ('a')) t(s)", errors.BindError, "a pattern that is a constant"),
    ("SELECT date_part(['year', 'nothing'], DATE '2024-01-01')", errors.BindError, "no part of a date"),
    ("SELECT date_part([s], DATE '2024-01-01') FROM (VALUES ('year')) t(s)", errors.NotSupportedError, "no list of constant"),
    ("SELECT map_contains_entry([1], 1, 1)", errors.BindError, "no function matches map_contains_entry"),
])  # fmt: skip
def test_errors(sql: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        gquery.connect(device="python").sql(sql).fetchall()


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_units_that_have_passed_between_moments(device: str) -> None:
    """From the later one back a month is as long as in front of it, which it is not for TIMESTAMPs: about ends of months."""
    r = random.Random(11)

    def moment() -> datetime.datetime | None:
        year, month, day = r.choice((1, 1582, 1969, 2000, 2001, 2004, 9998)), r.randint(1, 12), r.choice((1, 28, 29, 30, 31, 31))
        last = calendar.monthrange(year, month)[1]
        made = datetime.datetime(year, month, min(day, last), r.choice((0, 0, 12, 23)), r.choice((0, 30)), tzinfo=datetime.UTC)
        return None if r.random() < 0.05 else made

    kind = pa.timestamp("us", "UTC")
    t = pa.table({name: pa.array([moment() for _ in range(2000)], kind) for name in "ab"})
    theirs = duckdb.connect()
    theirs.sql("SET TimeZone = 'UTC'")
    ours = gquery.connect(device=device)
    theirs.register("t", t)
    ours.register("t", t)
    pairs = ("a, b", "a, b::TIMESTAMP", "a::DATE, b", "a::TIMESTAMP, b::TIMESTAMP", "a, NULL", "NULL, b::DATE")
    for unit in ("month", "quarter", "year", "decade", "week", "hour"):
        sql = f"SELECT {', '.join(f'date_sub({unit!r}, {pair})' for pair in pairs)} FROM t"
        assert ours.sql(sql).fetchall() == theirs.sql(sql).fetchall(), unit
