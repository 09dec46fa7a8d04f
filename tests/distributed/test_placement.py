"""Where rows lie and what is exchanged: tables joined on sorted keys meet without an exchange, what cannot is gathered."""

from __future__ import annotations

import tracemalloc
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.distributed.cuts import LoadedPlaces, cut_tables, located_by, table_reads
from gquery.distributed.placement import place
from gquery.distributed.ranks import Ranks
from gquery.distributed.stage_placement import Placement
from tests.support.tuned import Tune

ORDERS = 300


def connection() -> gquery.Connection:
    """``orders`` and ``lines`` are sorted by the order, ``lines`` has one to five of each; ``other`` is in no order."""
    lines = [o for o in range(ORDERS) for _ in range(1 + o % 5)]
    db = gquery.connect(device="python")
    db.register("orders", pa.table({"o": range(ORDERS), "c": [n * 7 % 40 for n in range(ORDERS)]}))
    db.register(
        "lines", pa.table({"o": lines, "v": [n % 13 for n in range(len(lines))], "n": [None, *range(len(lines) - 1)]})
    )
    db.register("other", pa.table({"k": [n * 11 % 97 for n in range(97)], "w": range(97)}))
    return db


def placement(
    sql: str,
    ranks: int = 3,
    parted_bytes: int | None = None,
    db: gquery.Connection | None = None,
    numbers: Mapping[str, Any] | None = None,
) -> Placement:
    program = (db or connection()).program(sql)
    cuts = cut_tables(program, LoadedPlaces(ranks), 0, 0)
    never = 2**62
    given = {
        "cut_frame_rows": never,
        "parted_bytes": never if parted_bytes is None else parted_bytes,
        **(numbers or {}),
    }
    limits = replace(tuning.distribution, **given)
    return place(program, lambda read: located_by(cuts, read), Ranks(ranks, limits))


def gathers(sql: str) -> int:
    return sum(len(p.gathers) for p in placement(sql))


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "FULL JOIN"])
def test_tables_joined_on_sorted_keys_exchange_no_rows(kind: str) -> None:
    placed = placement(f"SELECT orders.c, lines.v FROM lines {kind} orders ON lines.o = orders.o")
    pipelines = [p for p in placed if not p.gathers]
    assert all(p.reads == "part" for p in pipelines) and not any(p.merges for p in placed)


def test_a_join_on_other_keys_builds_of_the_whole_table() -> None:
    placed = placement("SELECT sum(w + v) FROM lines JOIN other ON v = k")
    assert [p.reads for p in placed] == ["whole", "part"] and placed[-1].merges


def test_groups_by_the_key_of_a_cut_lie_on_one_rank() -> None:
    assert not any(p.merges for p in placement("SELECT o, sum(v) FROM lines GROUP BY o"))
    assert any(p.merges for p in placement("SELECT v, count(*) FROM lines GROUP BY v"))


GROUPS = "SELECT n % 50 AS k, count(*) AS m FROM lines GROUP BY k"


def test_large_groups_become_parts_of_all_groups() -> None:
    first, last = placement(f"SELECT m, count(*) FROM ({GROUPS}) GROUP BY m", parted_bytes=500)
    assert (first.makes, first.merges, last.reads) == ("part", True, "part") and first.parts is not None
    assert "its part of the groups merged by the hash of keys, about" in first.text(3)
    assert placement(GROUPS, parted_bytes=1_000_000)[0].makes == "whole"


def test_groups_by_the_keys_of_parts_exchange_nothing_more() -> None:
    placed = placement(f"SELECT k, sum(j) FROM (SELECT k, m % 3 AS j FROM ({GROUPS})) GROUP BY k", parted_bytes=0)
    assert sum(p.merges for p in placed) == 1


def test_groups_are_parted_where_the_table_is_cut_that_they_are_joined_with() -> None:
    placed = placement(f"SELECT c, m FROM orders JOIN ({GROUPS}) ON o = k", parted_bytes=0)
    (parts,) = [p.parts for p in placed if p.parts is not None]
    assert parts.cut is not None and all(p.reads == "part" and not p.gathers for p in placed), placed


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN"])
def test_groups_by_several_keys_are_parted_where_one_of_them_is_cut(kind: str) -> None:
    both = "SELECT n % 50 AS k, v AS w, count(*) AS m FROM lines GROUP BY ALL"
    placed = placement(f"SELECT n, m FROM lines {kind} ({both}) ON o = k AND v = w", parted_bytes=0)
    (parts,) = [p.parts for p in placed if p.parts is not None]
    assert parts.cut is not None and all(p.reads == "part" and not p.gathers for p in placed), placed
    placed = placement(f"SELECT n, m FROM lines {kind} ({both}) ON n = k AND v = w", parted_bytes=0)
    assert [p.parts.cut for p in placed if p.parts is not None] == [None]


def test_one_of_several_keys_says_not_where_a_group_lies() -> None:
    both = "SELECT n % 50 AS k, v, count(*) AS m FROM lines GROUP BY ALL"
    placed = placement(f"SELECT k, sum(m) FROM ({both}) GROUP BY k", parted_bytes=0)
    assert sum(p.merges for p in placed) == 2


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT v FROM lines ORDER BY v LIMIT 3",
        "SELECT v FROM lines ORDER BY v",
        "SELECT o, v FROM lines UNION ALL SELECT k, w FROM other",
        "SELECT count(*) FROM lines a JOIN other b ON a.v = b.k JOIN other c ON b.w = c.w AND a.n < c.k",
    ],
)
def test_what_needs_all_rows_gathers(sql: str) -> None:
    assert gathers(sql) >= 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM orders WHERE c NOT IN (SELECT v FROM lines WHERE o > 3)",
        "SELECT count(*) FROM lines WHERE v IN (SELECT k FROM other WHERE w > 3)",
    ],
)
def test_arrays_over_keys_are_built_in_parts_and_merged(sql: str) -> None:
    build, probe = placement(sql)[:2]
    assert (build.reads, build.makes, build.merges) == ("part", "whole", True) and probe.reads == "part"


NETWORK = {"received_ps": 2000.0, "copied_ps": 600.0, "placed_ps": 5000.0, "unmerged_most": 0.9}


@pytest.mark.parametrize(
    ("values", "merged"),
    [(range(97), True), ([n * 1000 for n in range(97)], False)],
    ids=["dense keys", "keys of a wide range"],
)
def test_arrays_that_cost_more_to_move_than_rows_are_made_of_all_rows(values: Sequence[int], merged: bool) -> None:
    """Of a table: a bitmap for one byte a row, or of a range a thousand times as wide; else all rows are read."""
    db = connection()
    db.register("keyed", pa.table({"key": [values[n * 11 % 97] for n in range(97)], "w": range(97)}))
    sql = "SELECT count(*) FROM lines WHERE n IN (SELECT key FROM keyed WHERE w > 3)"
    build = placement(sql, db=db, numbers=NETWORK)[0]
    assert (build.reads, build.merges) == (("part", True) if merged else ("whole", False))
    assert placement(sql, db=db)[0].merges


def test_few_rows_of_a_located_key_are_taken_where_they_lie() -> None:
    """Or gathered first, for what follows to need no exchange: join tables and groups of them."""
    sql = """WITH s AS MATERIALIZED (SELECT o, n FROM lines WHERE v = 3)
        SELECT count(*) FROM lines JOIN s USING (o) WHERE EXISTS (SELECT 1 FROM s x WHERE x.o = lines.o AND x.n < lines.n)"""
    for most, gathered in ((2**20, 2), (0, 0)):
        placed = placement(sql, numbers={"gathered_rows": 2**20, "gathered_located_rows": most})
        assert sum(bool(p.gathers) for p in placed) == gathered, placed


def test_a_frame_that_all_ranks_have_is_not_cut_to_move_an_array_of_a_wide_range() -> None:
    db = connection()
    db.register("keyed", pa.table({"key": [n * 11 % 97 * 10_000 for n in range(97)], "w": range(97)}))
    sql = "SELECT count(*) FROM lines WHERE n IN (SELECT key + 1 FROM (SELECT * FROM keyed ORDER BY w LIMIT 90) WHERE w > 3)"
    for numbers, merged in ((NETWORK, False), (NETWORK | {"unmerged_most": 0.0}, True)):
        builds = placement(sql, db=db, numbers=numbers | {"cut_frame_rows": 1, "alone_rows": 1})
        assert any(p.merges for p in builds[:-1]) is merged, builds


@pytest.mark.parametrize("ranks", [2, 3, 8, 1000])
def test_cuts_are_made_between_two_keys(ranks: int) -> None:
    program = connection().program("SELECT sum(c + v) FROM lines JOIN orders ON lines.o = orders.o")
    cuts = cut_tables(program, LoadedPlaces(ranks), 0, 0)
    (one, keys), (two, others) = [(c.starts, c.keys) for c in cuts.values()]
    assert keys is others and len(one) == len(two) == ranks + 1
    assert (one[0], two[0]) == (0, 0) and {one[-1], two[-1]} == {ORDERS, 900}
    for starts in (one, two):
        assert list(starts) == sorted(starts)


def test_a_large_table_in_which_one_key_has_all_rows_is_cut_evenly() -> None:
    db = gquery.connect(device="python")
    db.register("t", pa.table({"a": [5] * 100, "b": range(100)}))
    program = db.program("SELECT a, min(a) FROM t GROUP BY a")
    (cut,) = cut_tables(program, LoadedPlaces(4), 0, 0).values()
    assert cut.starts in {(0, 0, 0, 0, 100), (0, 100, 100, 100, 100)}
    with tuning.using(replace(tuning.distribution, uneven_rows=0)):
        (cut,) = cut_tables(program, LoadedPlaces(4), 0, 0).values()
    assert cut.starts == (0, 25, 50, 75, 100) and cut.field is None


def test_a_table_with_few_values_is_cut_by_its_next_sorted_column(tune: Tune) -> None:
    tune(tuning.distribution, uneven_rows=0)
    db = gquery.connect(device="python")
    db.register("t", pa.table({"a": [n // 60 for n in range(100)], "b": range(100)}))
    (cut,) = cut_tables(db.program("SELECT a, b, count(*) FROM t GROUP BY a, b"), LoadedPlaces(4), 0, 0).values()
    assert (cut.field, cut.starts) == (1, (0, 25, 50, 75, 100))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32", "int32", "int64"])
def test_rows_below_bounds_are_found_where_they_lie(dtype: str) -> None:
    """A column is not converted to the bounds' type, which took minutes for 1.8 billion rows; bounds may be no values of it."""
    values = np.sort(np.random.default_rng(5).integers(0, 200 if dtype == "uint8" else 30_000, 100_000)).astype(dtype)
    db = gquery.connect(device="python")
    db.register("t", {"k": values})
    places, (read,) = LoadedPlaces(4), table_reads(db.program("SELECT sum(k) FROM t"))
    bounds = [-(2**63), -1, 0, 7, 199, 40_000, 2**32, 2**63 - 1, *places.bounds(read.source, 0)]
    tracemalloc.start()
    try:
        below = places.rows_below(read.source, 0, bounds)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert list(below) == [sum(v < b for v in values.tolist()) for b in bounds]
    assert most < values.nbytes


def test_small_tables_are_not_cut() -> None:
    assert not cut_tables(connection().program("SELECT sum(v) FROM lines"), LoadedPlaces(4), 10_000, 0)


def test_a_small_table_is_cut_as_a_large_one_is_that_it_is_joined_with() -> None:
    """On sorted columns of both; what is joined with it on others needs it whole."""
    sql = "SELECT sum(c + v) FROM lines JOIN orders ON lines.o = orders.o"
    places, program = LoadedPlaces(3), connection().program(sql)
    small, large = sorted(places.bytes_of(r.source, r.fields) or 0 for r in table_reads(program))
    assert len(cut_tables(program, places, large, 0)) == len(cut_tables(program, places, large, 0, small + 1)) == 1
    one, two = cut_tables(program, places, large, 0, small).values()
    assert one.keys is two.keys is not None
    assert not cut_tables(program, places, large + 1, 0, small)
    for other in ("SELECT sum(w + v) FROM lines JOIN other ON v = k", "SELECT sum(c + v) FROM lines JOIN orders ON v = c"):
        program = connection().program(other)
        large = max(places.bytes_of(r.source, r.fields) or 0 for r in table_reads(program))
        assert len(cut_tables(program, places, large, 0, 1)) == 1
