"""Row groups that a query does not need are not read, and no row that it needs is missed: statistics of every kind of type and
writer, LIMIT, hive folders, what is kept between queries. DuckDB answers over the same data in memory."""

from __future__ import annotations

import datetime
import itertools
import math
import random
import threading
from decimal import Decimal
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery import tuning
from gquery.columns.domain import ANY, ONLY_NULL, VALUES, Domain, Interval
from gquery.expression.types import BIGINT, DOUBLE, UBIGINT, VARCHAR, Bounds, DType, Kind
from gquery.io.extents import Extent, extent_of
from gquery.io.parquet import ParquetSource
from tests.support.harness import compare
from tests.support.tuned import Tune

ROWS, GROUP = 400, 20
START = datetime.datetime(1969, 12, 25)


def _column(make: Any) -> list[Any]:
    """Rising values with NULLs among them; the rows 100 to 139, which are two row groups, are NULL."""
    return [None if i % 7 == 3 or 100 <= i < 140 else make(i - 150) for i in range(ROWS)]


def _float(i: int) -> float:
    return math.nan if i % 31 == 0 else -0.0 if i == 0 else i / 4


TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "i8": pa.array(_column(lambda i: i // 4), pa.int8()),
        "i64": pa.array(_column(lambda i: i * 10**15), pa.int64()),
        "u32": pa.array(_column(lambda i: (i + 150) * 10_700_000), pa.uint32()),
        "u64": pa.array(_column(lambda i: 2**63 + i * 10**16), pa.uint64()),
        "dec": pa.array(_column(lambda i: Decimal(i) / 100), pa.decimal128(9, 2)),
        "wide": pa.array(_column(lambda i: Decimal(i * 10**34 + 7) / 100), pa.decimal128(38, 2)),
        "day": pa.array(_column(lambda i: datetime.date(1970, 1, 1) + datetime.timedelta(days=i)), pa.date32()),
        "time": pa.array(_column(lambda i: START + datetime.timedelta(hours=i, microseconds=1)), pa.timestamp("us")),
        "ms": pa.array(_column(lambda i: START + datetime.timedelta(hours=i)), pa.timestamp("ms")),
        "sec": pa.array(_column(lambda i: START + datetime.timedelta(hours=i)), pa.timestamp("s")),
        "zoned": pa.array(_column(lambda i: START + datetime.timedelta(hours=i)), pa.timestamp("us", "UTC")),
        "f32": pa.array(_column(_float), pa.float32()),
        "f64": pa.array(_column(_float), pa.float64()),
        "bit": pa.array(_column(lambda i: i > 0), pa.bool_()),
        "text": pa.array(_column(lambda i: f"{chr(ord('a') + (i + 150) // 20)}ä{'long ' * 20}{i:04}"), pa.string()),
        "short": pa.array(_column(lambda i: f"{i + 150:04}"), pa.string()),
        "none": pa.nulls(ROWS, pa.int32()),
    }
)
WRITERS: dict[str, dict[str, Any]] = {
    "usual": {},
    "without statistics": {"write_statistics": False},
    "statistics of some": {"write_statistics": ["id", "i64", "text"]},
    "old": {"version": "1.0", "use_dictionary": False},
    "without the schema": {"store_schema": False, "use_deprecated_int96_timestamps": False},
    "int96": {"use_deprecated_int96_timestamps": True},
    "integer decimals": {"store_decimal_as_integer": True, "write_page_index": True},
}


def _literal(value: Any, name: str) -> str:
    match value:
        case str():
            return f"'{value}'"
        case datetime.datetime():
            return f"{'TIMESTAMPTZ' if value.tzinfo else 'TIMESTAMP'} '{value}'"
        case datetime.date():
            return f"DATE '{value}'"
        case float():
            return f"'{value}'::{'FLOAT' if name == 'f32' else 'DOUBLE'}"
        case _:
            return str(value)


def _predicates(rng: random.Random, each: int = 6) -> list[str]:
    """Of each column so many of fifteen, drawn anew for each generator, and those that name special values."""
    out = []
    for name in TABLE.column_names:
        if name in ("none", "bit"):
            continue
        values = [v for v in TABLE[name].to_pylist() if v is not None]
        a, b, c = (_literal(v, name) for v in rng.sample(values, 3))
        every = [f"{name} {op} {a}" for op in ("=", "<", "<=", ">", ">=", "<>")]
        every += [f"{name} BETWEEN {a} AND {b}", f"{name} BETWEEN {b} AND {a}", f"{name} IN ({a}, {b}, {c})"]
        every += [f"{name} < {a} OR {name} > {b}", f"{name} IS NULL OR {name} = {c}", f"{a} > {name}"]
        every += [f"{name} IS NOT DISTINCT FROM {a}", f"NOT ({name} < {a})", f"({name} = {a} AND id < 50) OR id = 399"]
        out += rng.sample(every, each)
    out += ["bit", "NOT bit", "bit IS NULL", "bit = true AND id < 250", "none IS NULL", "none IS NOT NULL", "none = 1"]
    out += [
        "short LIKE '03%'",
        "text LIKE 'cä%'",
        "starts_with(short, '039')",
        "short LIKE '%9'",
        "short LIKE '_3%'",
        "short LIKE '0#3%' ESCAPE '#'",
        "short LIKE '0123'",
        "short NOT LIKE '03%'",
        "i64 = NULL",
    ]
    out += ["i8 > 3.5", "dec > 0.005", "day < TIMESTAMP '1970-01-05 12:00:00'", "time >= DATE '1969-12-28'"]
    out += ["f64 > 0", "f64 = 0", "f64 < 0", "f32 >= 0.25::DOUBLE", "f64 = 'nan'::DOUBLE", "f64 < 'nan'::DOUBLE"]
    return out


@pytest.fixture(params=WRITERS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    pq.write_table(TABLE, tmp_path / "f.parquet", row_group_size=GROUP, **WRITERS[request.param])
    return tmp_path / "f.parquet"


@cache
def _oracle() -> Any:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("given", TABLE)
    connection.execute("CREATE TABLE f AS FROM given")
    return connection


def _check(db: gquery.Connection, path: object, rest: str, ordered: bool = False) -> None:
    oracle = _oracle()
    want = oracle.execute(f"SELECT id {rest.format(f='f')}").fetchall()
    got = db.sql(f"SELECT id {rest.format(f=repr(str(path)))}").fetchall()
    assert (wrong := compare(got, want, ordered, ["BIGINT"])) is None, f"{rest}: {wrong}"


def _skipped(db: gquery.Connection, sql: str) -> tuple[int, int]:
    """Row groups read and skipped by the first stage of a query."""
    import json

    (stage, *_) = json.loads(str(db.sql(f"EXPLAIN (ANALYZE, FORMAT json) {sql}")))["stages"]
    return stage["row_groups_read"], stage["row_groups_skipped"]


@pytest.mark.parametrize("each", [2, pytest.param(6, marks=pytest.mark.slow)])
def test_filters_keep_every_row(path: Path, each: int) -> None:
    """One connection for all: parts, what is kept of them and whole columns come in each other's way. Seven files draw their own
    predicates, so that nearly every one of a column comes up in one of them; a file of DuckDB's has three times as many."""
    db = gquery.connect("python")
    oracle = _oracle()
    for number, predicate in enumerate(_predicates(random.Random(path.stat().st_size), each)):
        if "zoned" in predicate and pq.read_schema(path).field("zoned").type != TABLE["zoned"].type:
            continue  # it has come to be another type
        want = oracle.execute(f"SELECT id FROM f WHERE {predicate}").fetchall()
        got = db.sql(f"SELECT id FROM '{path}' WHERE {predicate}").fetchall()
        assert sorted(got) == sorted(want), predicate
        if number % 8:
            continue
        fresh = gquery.connect("python").sql(f"SELECT * FROM '{path}' WHERE {predicate}").arrow()
        assert sorted(fresh["id"].to_pylist()) == sorted(i for (i,) in want), predicate
    assert db.sql(f"SELECT count(*), sum(id) FROM '{path}'").fetchall() == [(ROWS, ROWS * (ROWS - 1) // 2)]
    assert db.sql(f"SELECT * FROM '{path}'").arrow()["text"].to_pylist() == TABLE["text"].to_pylist()


def test_a_file_of_duckdb(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    oracle = _oracle()
    oracle.execute(f"COPY (FROM f ORDER BY id) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
    db = gquery.connect("python")
    for predicate in _predicates(random.Random(5)):
        want = oracle.execute(f"SELECT id FROM f WHERE {predicate}").fetchall()
        assert sorted(db.sql(f"SELECT id FROM '{path}' WHERE {predicate}").fetchall()) == sorted(want), predicate


def test_figures_are_true(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "f.parquet", row_group_size=GROUP)
    for where, read in {
        "WHERE id = 57": 1,
        "WHERE id BETWEEN 55 AND 65": 2,
        "WHERE id IN (1, 399)": 2,
        "WHERE id < 0": 0,
        "WHERE day IS NOT NULL AND id BETWEEN 90 AND 150": 2,  # two row groups between are nothing but NULL
        "WHERE short LIKE '039%' ": 1,
        "WHERE u64 > 9223372036854775808 + 2440000000000000000": 1,
        "WHERE f64 BETWEEN 60 AND 61": 1,
        "WHERE NOT bit AND id > 120": 1,
        "WHERE time = '1969-12-19 00:00:00.000001'": 1,
        "WHERE dec = 2.45": 1,
        "LIMIT 3": 1,
        "LIMIT 25": 2,
        "LIMIT 5 OFFSET 38": 3,
    }.items():
        db = gquery.connect("python")
        assert _skipped(db, f"SELECT id FROM '{tmp_path}/f.parquet' {where}") == (read, 20 - read), where
    db = gquery.connect("python")
    assert _skipped(db, f"SELECT max(i64) FROM '{tmp_path}/f.parquet'") == (20, 0)
    assert _skipped(db, f"SELECT max(i64) FROM '{tmp_path}/f.parquet' WHERE i64 > 0") == (20, 0)  # it is in memory


@pytest.mark.parametrize("limit", [0, 1, 19, 20, 21, 150, 399, 400, 1000])
def test_limit(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(TABLE, path, row_group_size=GROUP)
    for offset, where in itertools.product((0, 1, 20, 390, 500), ("", "WHERE id % 40 = 39", "WHERE short >= '0380'")):
        _check(gquery.connect("python"), path, f"FROM {{f}} {where} LIMIT {limit} OFFSET {offset}", ordered=True)


def test_limits_in_other_places(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(TABLE, path, row_group_size=GROUP)
    db = gquery.connect("python")
    for rest in (
        "FROM (SELECT id FROM {f} LIMIT 30) WHERE id > 25",
        "FROM (SELECT id FROM {f} WHERE id > 300 LIMIT 30) WHERE id % 2 = 0 LIMIT 3",
        "FROM (SELECT id FROM {f} LIMIT 30 OFFSET 100) LIMIT 50 OFFSET 20",
        "FROM ((SELECT id FROM {f} LIMIT 5) UNION ALL SELECT id FROM {f} WHERE id = 200) LIMIT 6",
        "FROM (SELECT id FROM {f} WHERE id > 397 UNION ALL SELECT id FROM {f}) LIMIT 6",
        "FROM (SELECT id FROM {f} ORDER BY id DESC LIMIT 5) LIMIT 3",
        "FROM (SELECT a.id FROM {f} a JOIN {f} b ON a.id = b.id + 395) LIMIT 30",
        "FROM {f} WHERE id IN (SELECT id + 300 FROM {f} LIMIT 2) LIMIT 5",
        "FROM {f} WHERE id > (SELECT max(id) - 5 FROM {f} WHERE id < 50) AND id < 48",
        "FROM (SELECT DISTINCT id // 100 AS id FROM {f}) ORDER BY id LIMIT 10",
    ):
        _check(db, path, rest)
        _check(gquery.connect("python"), path, rest)


def test_scans_of_one_table_read_one_part(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(TABLE, path, row_group_size=GROUP)
    for rest in (
        "FROM {f} WHERE id < 30 UNION ALL SELECT id FROM {f} WHERE id > 380",
        "FROM {f} a JOIN (SELECT id AS k FROM {f} WHERE id BETWEEN 100 AND 110) ON id = k + 200 WHERE id > 250",
        "FROM (SELECT count(*) AS id FROM {f} WHERE id < 30) UNION ALL SELECT count(*) FROM {f}",
    ):
        _check(gquery.connect("python"), path, rest)
    db = gquery.connect("python")
    sql = f"WITH c AS (SELECT id FROM '{path}' WHERE id < 50) SELECT count(*) FROM c a JOIN c b ON a.id = b.id + 1"
    assert db.sql(sql).fetchall() == [(49,)]


def test_what_is_read_in_parts_is_not_taken_for_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(TABLE, path, row_group_size=GROUP)
    db = gquery.connect("python")
    part, whole = f"SELECT max(id) FROM '{path}' WHERE id < 30", f"SELECT max(id), count(*) FROM '{path}'"
    assert db.sql(part).fetchall() == [(29,)]
    assert db.sql(whole).fetchall() == [(399, 400)]
    assert db.sql(part).fetchall() == [(29,)]
    pq.write_table(pa.table({"id": [5, 70]}), path)
    assert db.sql(part).fetchall() == [(5,)]
    assert db.sql(whole).fetchall() == [(70, 2)]
    pq.write_table(TABLE.slice(200), path, row_group_size=GROUP)
    assert db.sql(part).fetchall() == [(None,)]
    relation = db.sql(f"SELECT id FROM '{path}' WHERE id > 390")
    pq.write_table(TABLE.slice(0, 395), path, row_group_size=GROUP)
    assert relation.fetchall() == [(i,) for i in range(391, 395)]


def test_a_part_is_found_again_and_let_go(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(TABLE, path, row_group_size=GROUP)
    source = ParquetSource(path)
    scan = _scan(0, 45, 50)
    part = source.restricted([scan]).source
    part.load([0])
    assert source.restricted([scan]).source is part and part.rows == GROUP
    assert (part.statistics(0).bounds, source.statistics(0).bounds) == (Bounds(40, 59), Bounds(0, 399))
    assert len(source._cache._columns) == 1
    del part
    assert not source._cache._columns


def _scan(field: int, low: int, high: int) -> Any:
    from gquery.columns.domain import ScanUse

    return ScanUse((field,), lambda: {field: Domain((Interval(low, high),), False)})


def test_parts_that_cost_as_much_as_the_whole_end_in_it(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(TABLE, path, row_group_size=GROUP)
    source = ParquetSource(path)
    kept = [source.restricted([_scan(0, GROUP * g, GROUP * g + 1)]).source for g in range(20)]
    assert all(k is not source for k in kept)
    assert source.restricted([_scan(0, 0, 25)]).source is source
    assert source.restricted([_scan(0, 40, 41)]).source is kept[2]  # it is there
    assert source.restricted([_scan(1, 0, 3)]).source is not source  # another column
    source.load([0])
    assert source.restricted([_scan(0, 40, 41)]).source is source


def test_a_table_larger_than_memory_is_read_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"id": range(100_000)}), path, row_group_size=1000)
    db = gquery.connect("python", memory_limit=100_000)
    for low in range(0, 100_000, 700):
        sql = f"SELECT count(*) FROM '{path}' WHERE id BETWEEN {low} AND {low + 699}"
        assert db.sql(sql).fetchall() == [(min(700, 100_000 - low),)]


def test_hive_folders(tmp_path: Path) -> None:
    for year, kind in itertools.product(("2020", "2021", "__HIVE_DEFAULT_PARTITION__"), ("a", "b")):
        folder = tmp_path / f"year={year}" / f"kind={kind}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"x": [f"{year[:4]} {kind} {i}" for i in range(3)]}), folder / "part.parquet")
    for where in (
        "year = 2020",
        "year > 2020",
        "year IS NULL",
        "year IS NOT NULL AND kind = 'b'",
        "kind IN ('a', 'c')",
        "kind LIKE 'b%' AND year < 2021",
        "year = 1999",
        "year = 2020 AND x > '2020 a 0'",
    ):
        sql = f"SELECT x, year, kind FROM read_parquet('{tmp_path}/*/*/*.parquet', hive_partitioning = true) WHERE {where}"
        want = duckdb.sql(sql.replace("SELECT x, year", "SELECT x, year::BIGINT")).fetchall()
        assert compare(gquery.connect("python").sql(sql).fetchall(), want, False, ["", "", ""]) is None, where
    sql = f"SELECT count(*) FROM '{tmp_path}/*/*/*.parquet' WHERE year = 2020"
    db = gquery.connect("python")
    assert db.sql(sql).fetchall() == [(6,)]
    assert _skipped(db, f"SELECT sum(length(x)) FROM '{tmp_path}/*/*/*.parquet' WHERE year = 2020") == (2, 4)


def test_empty_row_groups_and_files(tmp_path: Path) -> None:
    schema = pa.schema({"id": pa.int64()})
    with pq.ParquetWriter(tmp_path / "a.parquet", schema) as writer:
        for values in ([], [1, 2], [], [3], []):
            writer.write_table(pa.table({"id": values}, schema), row_group_size=10)
    pq.write_table(pa.table({"id": []}, schema), tmp_path / "b.parquet")
    pq.write_table(pa.table({"id": [4, 5]}, schema), tmp_path / "c.parquet")
    for rest, want in {
        "WHERE id > 2": [3, 4, 5],
        "LIMIT 3": [1, 2, 3],
        "WHERE id = 9": [],
        "WHERE id >= 4 LIMIT 1": [4],
    }.items():
        db = gquery.connect("python")
        assert db.sql(f"SELECT id FROM '{tmp_path}/*.parquet' {rest}").fetchall() == [(i,) for i in want], rest


def test_a_limit_reads_the_first_pages_alone(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    rng = random.Random(1)
    pq.write_table(
        pa.table({f"c{n}": [rng.random() for _ in range(60_000)] for n in range(4)}), path, data_page_size=4096
    )
    db = gquery.connect("cpu")
    first = db.sql(f"SELECT * FROM '{path}' LIMIT 2").arrow()
    assert first.to_pydict() == pq.read_table(path).slice(0, 2).to_pydict()
    assert _skipped(db, f"SELECT c1 FROM '{path}' LIMIT 3") == (1, 0)


def test_a_filter_below_a_limit_goes_on_until_it_has_enough(tmp_path: Path, tune: Tune) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"x": [int(i >= 990) for i in range(1000)], "i": range(1000)}), path, row_group_size=1)
    tune(tuning.reading, largest_part=1.0)
    db = gquery.connect("python")
    assert db.sql(f"SELECT i FROM '{path}' WHERE x + 0 = 1 LIMIT 3").fetchall() == [(990,), (991,), (992,)]
    assert _skipped(gquery.connect("python"), f"SELECT i FROM '{path}' WHERE x + i >= 8 LIMIT 3") == (16, 984)


def test_threads_at_once(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(TABLE, path, row_group_size=GROUP)
    db = gquery.connect("python")
    wrong: list[str] = []

    def ask(low: int) -> None:
        got = db.cursor().execute(f"SELECT id FROM '{path}' WHERE id BETWEEN {low} AND {low + 30}").fetchall()
        if got != [(i,) for i in range(low, low + 31)]:
            wrong.append(str(low))

    threads = [threading.Thread(target=ask, args=(low,)) for low in range(0, 360, 15)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ---- statistics as writers leave them --------------------------------------------------------------------------------


def _chunk(**known: Any) -> Any:
    stats = {"has_null_count": True, "null_count": 0, "has_min_max": True, **known}
    return SimpleNamespace(statistics=SimpleNamespace(**stats))


class _Unreadable:
    has_null_count, null_count, has_min_max = True, 0, True

    @property
    def min(self) -> Any:
        raise OverflowError("Python has no such date")


@pytest.mark.parametrize(
    ("chunk", "dtype", "domain", "expected"),
    [
        (_chunk(min="a", max="b" * 64), VARCHAR, Domain.point("b" * 64 + "c"), True),  # cut short
        (_chunk(min="a", max="b"), VARCHAR, Domain.point("bc"), False),
        (_chunk(min=1, max=2, has_min_max=False), BIGINT, Domain.point(9), True),
        (_chunk(min=1, max=2, null_count=5), BIGINT, Domain.point(1), False),  # all NULL, whatever else they say
        (_chunk(min=1, max=2, has_null_count=False), BIGINT, ONLY_NULL, True),
        (_chunk(min=1, max=2), BIGINT, ONLY_NULL, False),
        (_chunk(min=2, max=1), BIGINT, Domain.point(9), True),  # no statistics at all
        (_chunk(min=-5, max=-1), UBIGINT, Domain.point(2**64 - 3), True),  # as signed
        (_chunk(min="1", max="2"), BIGINT, Domain.point(9), True),
        (_chunk(min=1, max=2), DType(Kind.DATE), Domain.point(9), True),  # of no certain unit
        (_chunk(min=1.0, max=2.0), DOUBLE, Domain((Interval(5.0, None),), False), True),  # a NaN
        (_chunk(min=1.0, max=2.0), DOUBLE, Domain.point(5.0), False),
        (_chunk(min=math.nan, max=math.nan), DOUBLE, Domain.point(5.0), True),
        (_chunk(min=0.0, max=0.0), DOUBLE, Domain.point(-0.0), True),
        (_chunk(min=1.0, max=2.0), DOUBLE, Domain((Interval(None, 0.5),), False), False),
        (SimpleNamespace(statistics=_Unreadable()), DType(Kind.DATE), Domain.point(9), True),
        (SimpleNamespace(statistics=None), BIGINT, Domain.point(9), True),
    ],
)
def test_what_statistics_say(chunk: Any, dtype: DType, domain: Domain, expected: bool) -> None:
    assert extent_of(chunk, dtype, 5).may_hold(domain, dtype) is expected


def test_no_row_of_an_empty_group_is_wanted() -> None:
    assert not Extent(0).may_hold(ANY, BIGINT) and Extent(1).may_hold(ANY, BIGINT)


def test_domains_are_sets() -> None:
    rng = random.Random(3)

    def some() -> tuple[Domain, set[int | None]]:
        pieces = [(low, low + rng.randrange(5)) for low in (rng.randrange(30) for _ in range(rng.randrange(4)))]
        null = rng.random() < 0.5
        held: set[int | None] = {i for low, high in pieces for i in range(low, high + 1)} | ({None} if null else set())
        return Domain.of((Interval(low, high) for low, high in pieces), null), held

    def holds(domain: Domain) -> set[int | None]:
        return {i for i in range(-1, 40) if domain.meets(i, i)} | ({None} if domain.null else set())

    for _ in range(500):
        (a, x), (b, y) = some(), some()
        assert holds(a) == x and holds(a.union(b)) == x | y and holds(a.intersection(b)) == x & y
        assert holds(a.intersection(VALUES)) == x - {None} and a.intersection(ANY) == a
        low, high = sorted((rng.randrange(40), rng.randrange(40)))
        assert a.meets(low, high) == any(i is not None and low <= i <= high for i in x)


@pytest.mark.parametrize("most", [4, 256])
@pytest.mark.parametrize("statistics", [True, False, ["b"]])
@pytest.mark.parametrize("null", [None, 0, 39])
def test_nulls_that_footers_tell(
    tmp_path: Path, tune: Tune, null: int | None, statistics: bool | list[str], most: int
) -> None:
    """`has_nulls` looks at less than `statistics` and says the same: before it, behind it, once the column is loaded. A NULL in
    the last row group alone is not missed, nor one of which no statistics tell. Of many row groups it is not known."""
    tune(tuning.reading, null_groups=most)
    path = tmp_path / "nulls.parquet"
    table = pa.table({"a": [None if i == null else i for i in range(40)], "b": range(40)})
    pq.write_table(table, path, row_group_size=4, write_statistics=statistics)
    source, other = ParquetSource(path), ParquetSource(path)
    told = null is not None or statistics is not True
    assert source.has_nulls(0) is (told or most < 10) and not source.is_unique(0)
    assert source.has_nulls(1) is (statistics is False or most < 10)
    assert (other.statistics(0).null_count != 0) is told and other.has_nulls(0) is told
    source.load([0])
    assert source.has_nulls(0) is (null is not None) and source.is_unique(0) is source.statistics(0).is_unique
    with gquery.connect("cpu") as connection:
        for condition in ("a IS NULL", "a IS NOT NULL", "b NOT IN (SELECT a FROM t)", "a > 38", "b < 3 AND a IS NULL"):
            sql = f"SELECT count(*), sum(b) FROM {{}} WHERE {condition}"
            assert connection.sql(f"WITH t AS (FROM '{path}') {sql.format('t')}").fetchall() == (
                duckdb.sql(f"WITH t AS (FROM '{path}') {sql.format('t')}").fetchall()
            )
        limited = connection.sql(f"SELECT * FROM '{path}' LIMIT 3")
        assert limited.fetchall() == [(None if i == null else i, i) for i in range(3)]
