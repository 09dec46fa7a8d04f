"""Where tables of files are cut on a cluster: joined ones at the same keys, found by footers and single row groups."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery import tuning
from gquery.cluster import direct_comm, worker
from gquery.cluster.divisions import Divisions
from gquery.cluster.engine import this_engine
from gquery.cluster.moving import packed
from gquery.cluster.sorted_rows import SortedRows, UnsortedError, ValueCut, about_even, may_be_sorted
from gquery.cluster.tables import ClusterTable, Described, FileTable, agreed
from gquery.columns.table import ColumnStatistics, Dictionary
from gquery.expression.types import VARCHAR, Bounds, PhysicalType
from gquery.io.parquet import ParquetPart, ParquetSource
from gquery.io.parquet_files import RowGroup
from tests.support.harness import compare
from tests.support.tuned import Tune
from tests.support.two_workers import two_workers
from tpch import queries
from tpch.generate import files as tpch_files
from tpch.generate import generate

pytest.importorskip("distributed")

RANKS = (1, 2, 3, 8)


def written(path: Path, table: dict[str, Any], rows: int, **options: Any) -> ParquetSource:
    pq.write_table(pa.table(table), path, row_group_size=rows, **options)
    return ParquetSource([str(path)])


# ---- rows by their values ------------------------------------------------------------------------------------------------

KEYS: dict[str, list[int]] = {
    "unique": list(range(100, 400)),
    "runs over row groups": [n // 70 for n in range(300)],
    "one key": [5] * 300,
    "sparse": [n * n - 1000 for n in range(300)],
    "two keys": [1] * 299 + [2],
}


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("group", [1, 7, 64, 300])
@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
def test_rows_are_found_by_their_values(keys: list[int], group: int, ranks: int, tmp_path: Path) -> None:
    source = written(tmp_path / "t.parquet", {"k": keys}, group)
    assert may_be_sorted(source, 0)
    cut = SortedRows(source, 0).cut(ranks)
    assert cut.bounds == tuple([keys[at] for at in about_even(source.all_groups, ranks)[1:-1]])
    assert cut.starts == (0, *[sum(k < b for k in keys) for b in cut.bounds], 300)
    bounds = [-(10**9), min(keys), max(keys), max(keys) + 1, 250]
    assert SortedRows(source, 0).below(bounds) == tuple([sum(k < b for k in keys) for b in bounds])


def test_tables_are_cut_where_a_row_group_begins_that_is_near() -> None:
    groups = [RowGroup(n, 0, n, rows) for n, rows in enumerate([100, 99, 101, 100])]
    assert about_even(groups, 2) == (0, 199, 400)
    assert about_even(groups, 4) == (0, 100, 199, 300, 400)
    assert about_even([RowGroup(0, 0, 0, 96), RowGroup(1, 0, 1, 104)], 2) == (0, 100, 200)  # a rank would have 4 % more
    assert about_even(groups, 3) == (0, 133, 266, 400)
    assert about_even([RowGroup(0, 0, 0, 100)], 3) == (0, 33, 66, 100) and about_even([], 2) == (0, 0, 0)
    assert about_even(groups[:1], 1) == (0, 100)


def test_no_row_group_is_read_that_cannot_hold_the_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = written(tmp_path / "t.parquet", {"k": range(1000), "v": range(1000)}, 100)
    read: list[int] = []
    values = SortedRows._values

    def counted(self: SortedRows, number: int) -> Any:
        read.append(number)
        return values(self, number)

    monkeypatch.setattr(SortedRows, "_values", counted)
    assert SortedRows(source, 0).below([300, 455]) == (300, 455)
    assert read == [4]


@pytest.mark.parametrize(
    "keys",
    [[3, 1, 2] * 100, list(range(300, 0, -1)), [None, *range(299)], ["a"] * 300, [0.5] * 300],
    ids=["in no order", "descending", "NULL", "text", "floats"],
)
def test_what_is_not_sorted_integers(keys: list[Any], tmp_path: Path) -> None:
    assert not may_be_sorted(written(tmp_path / "t.parquet", {"k": keys}, 64), 0)


def test_files_without_statistics(tmp_path: Path) -> None:
    assert not may_be_sorted(written(tmp_path / "t.parquet", {"k": range(300)}, 64, write_statistics=False), 0)


def test_a_column_that_is_unsorted_within_a_row_group(tmp_path: Path) -> None:
    source = written(tmp_path / "t.parquet", {"k": [1, 0, 3, 2] * 75}, 300)
    assert may_be_sorted(source, 0)
    with pytest.raises(UnsortedError):
        SortedRows(source, 0).cut(2)


# ---- which cuts are chosen -----------------------------------------------------------------------------------------------


class Asked:
    """What a worker would be asked, answered here; ``questions`` counts."""

    def __init__(self, sources: Sequence[ParquetSource], ranks: int) -> None:
        self.ranks, self.questions = ranks, 0
        self.divisions = Divisions(ranks, self)
        self.tables = [ClusterTable(s, self) for s in sources]

    def starts(self, table: ClusterTable) -> tuple[int, ...]:
        return self.divisions.first_starts(table)

    def describe(self, table: FileTable, starts: Sequence[int], fields: Sequence[int]) -> list[Sequence[Described]]:
        raise AssertionError("to choose cuts no column is described")

    def value_cut(self, table: FileTable, field: int) -> ValueCut | None:
        found: ValueCut | None = self._try(lambda rows: rows.cut(self.ranks), table, field)
        return found

    def rows_below(self, table: FileTable, field: int, bounds: Sequence[int]) -> tuple[int, ...] | None:
        found: tuple[int, ...] | None = self._try(lambda rows: rows.below(bounds), table, field)
        return found

    def _try(self, answer: Callable[[SortedRows], Any], table: FileTable, field: int) -> Any:
        self.questions += 1
        try:
            return answer(SortedRows(ParquetSource(table.asked.paths), field))
        except UnsortedError:
            return None


@pytest.fixture
def small(tune: Tune) -> None:
    """Tables of any size are cut, and no rank may have many more rows than others."""
    tune(tuning.cluster, whole_bytes=0)
    tune(tuning.distribution, uneven_rows=2)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("first", [0, 1])
def test_tables_with_the_same_keys_are_cut_alike(first: int, tmp_path: Path) -> None:
    """Whichever is used first, so that no later join needs another cut."""
    orders = written(tmp_path / "o.parquet", {"o": range(300), "c": [n % 7 for n in range(300)]}, 64)
    lines = written(tmp_path / "l.parquet", {"n": range(900, 0, -1), "o": [n // 3 for n in range(900)]}, 100)
    asked = Asked([orders, lines], 3)
    starts = {n: asked.starts(asked.tables[n]) for n in (first, 1 - first)}
    assert starts == {0: (0, 100, 200, 300), 1: (0, 300, 600, 900)}
    assert asked.questions == 2
    assert asked.starts(asked.tables[0]) == starts[0] and asked.questions == 2


@pytest.mark.usefixtures("small")
def test_a_table_that_is_unevenly_cut_by_another_is_cut_by_itself(tmp_path: Path) -> None:
    orders = written(tmp_path / "o.parquet", {"o": range(300)}, 64)
    lines = written(tmp_path / "l.parquet", {"o": [*range(100), *[n // 4 for n in range(400, 1200)]]}, 100)
    asked = Asked([orders, lines], 3)
    assert asked.starts(asked.tables[0]) == (0, 100, 200, 300)
    assert asked.starts(asked.tables[1]) == (0, 300, 600, 900)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("statistics", [True, False])
def test_where_no_field_serves_rows_are_cut_evenly(statistics: bool, tmp_path: Path) -> None:
    fields = {"one": [1] * 300, "none": [n * 7 % 31 for n in range(300)]}
    sorted_later = {} if statistics else {"k": range(300)}
    source = written(tmp_path / "t.parquet", fields | sorted_later, 300, write_statistics=statistics)
    asked = Asked([source], 4)
    assert asked.starts(asked.tables[0]) == (0, 75, 150, 225, 300)


@pytest.mark.usefixtures("small")
def test_the_second_sorted_field_serves_where_the_first_has_few_values(tmp_path: Path) -> None:
    source = written(tmp_path / "t.parquet", {"year": [n // 150 for n in range(300)], "day": range(300)}, 50)
    asked = Asked([source], 3)
    first = asked.divisions._first(asked.tables[0])
    assert first is not None and (first.field, first.starts) == (1, (0, 100, 200, 300))


# ---- queries -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with two_workers() as made:
        yield made


def tables(seed: int) -> dict[str, tuple[pa.Table, int, dict[str, Any]]]:
    """Tables with their row groups' size and how they are written: sorted by one key, with all that may be odd about it."""
    rng = random.Random(seed)
    keys = sorted(rng.choices(range(-5, 200), k=400))
    long_runs = sorted([*[7] * 150, *rng.choices(range(200), k=250)])
    other = {"v": rng.choices(range(30), k=400), "s": [f"text {n % 17}" for n in range(400)]}
    return {
        "one": (pa.table({"k": list(range(200)), "c": rng.choices([1, 2, None], k=200)}), 60, {}),
        "many": (pa.table({"k": keys, **other}), 70, {}),
        "long": (pa.table({"k": long_runs, **other}), 40, {}),
        "same": (pa.table({"k": [11] * 400, **other}), 90, {}),
        "nulls": (pa.table({"k": [None, *keys[1:]], **other}), 55, {}),
        "down": (pa.table({"k": keys[::-1], **other}), 55, {}),
        "mixed": (pa.table({"k": rng.sample(keys, 400), **other}), 400, {}),
        "bare": (pa.table({"k": keys, **other}), 55, {"write_statistics": False}),
        "days": (pa.table({"k": pa.array(keys, pa.date32()), **other}), 80, {}),
        "few": (pa.table({"k": [3, 3], "v": [1, 2], "s": ["x", "y"]}), 1, {}),
        "none": (
            pa.table({"k": pa.array([], pa.int64()), "v": pa.array([], pa.int64()), "s": pa.array([], pa.string())}),
            1,
            {},
        ),
    }


QUERIES = [
    "SELECT sum(c), count(*), sum(v) FROM {0} a JOIN {1} b USING (k)",
    "SELECT k, count(*), sum(b.v) FROM {0} a LEFT JOIN {1} b USING (k) GROUP BY k",
    "SELECT k, s, v FROM {1} ORDER BY k, v, s LIMIT 7",
    "SELECT a.k, b.k, c FROM {0} a FULL JOIN {1} b ON a.k = b.k",
    "SELECT k, n FROM (SELECT k, count(*) AS n FROM {1} GROUP BY k HAVING count(*) > 1) JOIN {0} USING (k)",
    "SELECT count(*) FROM {0} WHERE k IN (SELECT k FROM {1} WHERE v < 20)",
    "SELECT k FROM {0} WHERE k NOT IN (SELECT k FROM {1} WHERE v < 20)",
    "SELECT s, count(DISTINCT k) FROM {1} GROUP BY s",
    "SELECT count(*), sum(x.v) FROM {1} x JOIN {1} y ON x.k = y.k AND x.v < y.v",
]


@pytest.mark.parametrize(
    ("ranks", "every"), [(3, 3), *[pytest.param(ranks, 1, marks=pytest.mark.slow) for ranks in RANKS]]
)
def test_answers(ranks: int, every: int, client: Any, tmp_path: Path, tune: Tune) -> None:
    """Each table is asked a third of the queries; the slow tests ask all."""
    tune(tuning.cluster, whole_bytes=0)
    tune(tuning.distribution, uneven_rows=5)
    duck = duckdb.connect()
    with gquery.connect(device="python", cluster=client, workers=ranks, threads=1) as db:
        for name, (table, rows, options) in tables(ranks).items():
            path = tmp_path / f"{name}.parquet"
            pq.write_table(table, path, row_group_size=rows, **options)
            for each in (duck, db):
                each.sql(f"CREATE VIEW {name} AS SELECT * FROM '{path}'")
        for number, name in enumerate([n for n in tables(ranks) if n != "one"]):
            one = "(SELECT DATE '1970-01-01' + CAST(k AS INTEGER) AS k, c FROM one)" if name == "days" else "one"
            for sql in QUERIES[number % every :: every]:
                text = sql.format(one, name)
                want = duck.sql(text)
                types = [str(t) for t in want.types]
                found = compare(db.sql(text).fetchall(), want.fetchall(), "ORDER BY" in sql, types)
                assert found is None, (text, found)


def test_small_tables_are_cut_with_the_large_ones_that_they_are_joined_with(
    client: Any, tmp_path: Path, tune: Tune
) -> None:
    """Unless it is cheaper for each rank to have them whole, as where another join needs that."""
    tune(tuning.cluster, whole_bytes=900, joined_bytes=1)
    tune(tuning.distribution, uneven_rows=5)
    tune(tuning.worker_distribution, cut_frame_rows=16)
    duck = duckdb.connect()
    with gquery.connect(device="python", cluster=client, workers=3, threads=1) as db:
        for name in ("one", "many"):
            table, rows, _ = tables(3)[name]
            pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=rows)
            for each in (duck, db):
                each.sql(f"CREATE VIEW {name} AS SELECT * FROM '{tmp_path}/{name}.parquet'")
        built = "SELECT sum(c + v) FROM many JOIN one USING (k) WHERE c > 0"
        both = "SELECT sum(a.c + b.c + v) FROM many JOIN one a USING (k) JOIN one b ON v = b.k"
        parts = {sql: db.explain(sql, "physical").count("a part of the rows") for sql in (built, both)}
        assert parts == {built: 2, both: 1}
        for text in [built, both, *[sql.format("one", "many") for sql in QUERIES]]:
            want = duck.sql(text)
            found = compare(db.sql(text).fetchall(), want.fetchall(), "ORDER BY" in text, [str(t) for t in want.types])
            assert found is None, (text, found)


@pytest.fixture
def handed_over(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes that ranks hand over, one number an exchange and rank."""
    found: list[int] = []
    meet = direct_comm.DirectComm._meet

    def counted(self: direct_comm.DirectComm, call: str, values: Sequence[object]) -> list[Any]:
        made = packed(values)
        found.append(len(made.head) + sum(b.nbytes for b in made.buffers))
        return meet(self, call, values)

    monkeypatch.setattr(direct_comm.DirectComm, "_meet", counted)
    return found


@pytest.mark.parametrize("number", [3, 18])
def test_no_state_of_all_orders_is_exchanged(
    number: int, client: Any, handed_over: list[int], tune: Tune, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Orders and line items are cut at the same orders: what is exchanged is of the rows that are left."""
    tune(tuning.cluster, whole_bytes=100_000)
    tune(tuning.worker_distribution, hashed_most=1.0)  # no other order of rows, where it costs more
    folder = generate(0.01, tmp_path_factory.getbasetemp() / "tpch", echo=False)
    with gquery.connect(device="python", cluster=client, workers=3, threads=1) as db:
        for name, path in tpch_files(folder).items():
            db.sql(f"CREATE VIEW {name} AS SELECT * FROM '{path}'")
        text = db.explain(queries.sql(number), "physical")
        assert "a part of the rows" in text and "states merged" not in text, text
        assert db.sql(queries.sql(number)).fetchall()
    assert max(handed_over) < 20_000  # 15,000 orders


def test_values_of_row_groups_that_ranks_share_are_counted_once(client: Any, tmp_path: Path, tune: Tune) -> None:
    """Three ranks read five row groups in seven parts; of columns that are in no order each has all values."""
    tune(tuning.cluster, whole_bytes=0)
    key = np.arange(1000) // 4 * 10
    pq.write_table(pa.table({"k": key, "v": np.arange(1000) % 7}), tmp_path / "t.parquet", row_group_size=200)
    with gquery.connect(device="python", cluster=client, workers=3, threads=1) as db:
        assert db.sql(f"SELECT count(DISTINCT k), sum(v) FROM '{tmp_path}/t.parquet'").fetchall()[0][0] == 250
        cluster: Any = db._cluster
        ((_, table),) = cluster._files.items()
        assert (table.statistics(0).is_sorted, table.statistics(1).distinct) == (True, 7)
        assert table.statistics(0).distinct == 250


def test_rows_that_two_cuts_share_are_read_once(client: Any, tmp_path: Path, tune: Tune) -> None:
    """A table that is cut otherwise, a few rows apart, has its row groups read no second time."""
    tune(tuning.cluster, whole_bytes=0)
    tune(tuning.distribution, uneven_rows=50)
    read: list[int] = []
    load = ParquetPart.load

    def counted(self: ParquetPart, fields: Sequence[int]) -> pa.Table:
        read.extend(f for f in fields if not self.is_held(f))
        return load(self, fields)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ParquetPart, "load", counted)
        with gquery.connect(device="python", cluster=client, workers=2, threads=1) as db:
            for name, keys in {"a": range(1000), "b": [n * 2 // 3 for n in range(1200)]}.items():
                path = tmp_path / f"{name}.parquet"
                pq.write_table(pa.table({"k": list(keys), name: [1] * len(keys)}), path, row_group_size=400)
                db.sql(f"CREATE VIEW {name} AS SELECT * FROM '{path}'")
            assert db.sql("SELECT sum(a), max(k) FROM a").fetchall() == [(1000, 999)]
            assert db.sql("SELECT sum(b), max(k) FROM b").fetchall() == [(1200, 799)]
            before = len(read)
            assert db.sql("SELECT sum(a + b) FROM a JOIN b USING (k)").fetchall() == [(2400,)]
    assert 0 < before == len(read)


def test_files_that_change_are_cut_anew(client: Any, tmp_path: Path, tune: Tune) -> None:
    tune(tuning.cluster, whole_bytes=0)
    with gquery.connect(device="python", cluster=client, workers=3, threads=1) as db:
        for rows in (100, 70, 300):
            for name in ("a", "b"):
                pq.write_table(
                    pa.table({"k": range(rows), name: [1] * rows}), tmp_path / f"{name}.parquet", row_group_size=30
                )
            sql = f"SELECT sum(a + b) FROM '{tmp_path}/a.parquet' JOIN '{tmp_path}/b.parquet' USING (k)"
            assert db.sql(sql).fetchall() == [(2 * rows,)]
        cluster: Any = db._cluster
        opened = worker.session_of(cluster.key, this_engine()).tables
        assert len(opened._sources) == 2, "tables are kept as they were"
        assert {k for k, _ in opened._parts} | {t[0] for t in opened._tables} <= set(opened._sources)


def test_files_each_of_which_is_sorted(client: Any, tmp_path: Path, tune: Tune) -> None:
    """Of several files the rows rise within each; with hive partitions, by a column of the paths."""
    tune(tuning.cluster, whole_bytes=0)
    for part in range(3):
        (tmp_path / f"p={part}").mkdir()
        pq.write_table(
            pa.table({"k": range(100), "v": [part] * 100}), tmp_path / f"p={part}" / "x.parquet", row_group_size=40
        )
    duck = duckdb.connect()
    files = f"read_parquet('{tmp_path}/*/*.parquet', hive_partitioning = true)"
    with gquery.connect(device="python", cluster=client, workers=2, threads=1) as db:
        for sql in (
            f"SELECT p, count(*), sum(k) FROM {files} GROUP BY p ORDER BY p",
            f"SELECT k, sum(v) FROM {files} GROUP BY k ORDER BY k",
            f"SELECT count(*) FROM {files} a JOIN {files} b ON a.k = b.k AND a.p = b.p",
        ):
            assert db.sql(sql).fetchall() == duck.sql(sql).fetchall()


def test_equal_dictionaries_have_no_more_values_than_one() -> None:
    """Each rank counts its own: together they have those of one, which estimates stand on."""
    values = Dictionary(pa.array(["a", "b", "c"], pa.large_string()))
    own = ColumnStatistics(Bounds(0, 2), 0, 3, values=Bounds(0, 2))
    part = Described(PhysicalType.I8, 100, False, own, values, None)
    assert agreed(VARCHAR, [part] * 4).statistics.distinct == 3
