"""Columns of types that gquery does not compute with pass through unchanged, or are refused by name and type."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import gquery
from gquery.columns.arrow import dtype_of
from gquery.errors import BindError, NotSupportedError
from tests.support.arrow_types import carried, known, table_of

CARRIED = {name: array for name, _, array in carried()}
EVERY = {**dict(known()), **CARRIED}
TIMES = 3
TABLE = table_of(EVERY, TIMES)
ROWS = TABLE.num_rows
FEW = table_of({n: CARRIED[n] for n in ("binary_view", "uuid", "items", "record")}, TIMES)
PLACES = [("python", 1), ("python", 3), ("cpu", 1), ("cpu", 3)]


@pytest.fixture(params=PLACES, ids=lambda p: f"{p[0]}-{p[1]}")
def connection(request: pytest.FixtureRequest) -> Iterator[gquery.Connection]:
    target, partitions = request.param
    with gquery.connect(device=target, partitions=partitions) as made:
        if target == "cpu":
            made.sql("SET interpret_limit = 0")
        made.register("t", TABLE if target == "python" else FEW)
        yield made


def check(connection: gquery.Connection, sql: str, rows: Sequence[int | None]) -> None:
    """The query gives these rows of the table, each column with its own Arrow type where it is carried."""
    made = connection.sql(sql).to_arrow_table()
    numbers = pa.array(rows, pa.int64())
    for name in made.column_names:
        source = TABLE.column(name)
        values = python(source)
        assert python(made.column(name)) == [None if r is None else values[r] for r in rows], (sql, name)
        held = dtype_of(source.type).arrow or source.type  # of lists and the like without dictionaries, runs and views
        assert made.column(name).type == held or name not in CARRIED, (sql, name)
        made.column(name).validate(full=True)
    assert len(numbers) == made.num_rows


def python(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; durations come back as intervals without months, and both are lengths of time here."""

    def value(v: Any) -> Any:
        is_length = isinstance(v, pa.MonthDayNano)
        return dt.timedelta(30 * v.months + v.days, 0, v.nanoseconds // 1000) if is_length else v

    return [value(v) for v in column.to_pylist()]


EACH = list(range(ROWS))
QUERIES: list[tuple[str, Sequence[int | None]]] = [
    ("SELECT * FROM t", [*EACH]),
    ("SELECT * FROM t WHERE id % 2 = 1", [n for n in EACH if n % 2]),
    ("SELECT * FROM t WHERE id > 100", []),
    ("SELECT * FROM t LIMIT 4", EACH[:4]),
    ("SELECT * FROM t LIMIT 3 OFFSET 5", EACH[5:8]),
    ("SELECT * FROM t ORDER BY id DESC", EACH[::-1]),
    ("SELECT * FROM t ORDER BY id DESC LIMIT 2", EACH[:-3:-1]),
    ("SELECT a.* FROM t a JOIN t b ON a.id = b.id + 1 ORDER BY a.id", EACH[1:]),
    ("SELECT b.* FROM t a LEFT JOIN t b ON b.id = a.id + 4 ORDER BY a.id", [*EACH[4:], None, None, None, None]),
    ("SELECT a.* FROM t a FULL JOIN (SELECT id + 7 i FROM t) b ON a.id = b.i ORDER BY a.id", [*EACH, *[None] * 7]),
    ("SELECT * FROM t WHERE id < 2 UNION ALL SELECT * FROM t WHERE id > 6", [0, 1, 7, 8]),
    ("WITH u AS (SELECT * FROM t WHERE id > 2) SELECT * FROM u WHERE id < 5", [3, 4]),
    ("SELECT t.* FROM t, (SELECT g, max(id) m FROM t GROUP BY g) u WHERE t.id = u.m ORDER BY id", EACH[-2:]),
]


@pytest.mark.parametrize(("sql", "rows"), QUERIES, ids=[sql for sql, _ in QUERIES])
def test_carried_unchanged(connection: gquery.Connection, sql: str, rows: Sequence[int | None]) -> None:
    check(connection, sql, rows)


@pytest.mark.parametrize("name", CARRIED)
def test_validity_is_known(name: str) -> None:
    values = TABLE.column(name).to_pylist()
    has_nulls = "union" not in name  # a union is never NULL, its member may be
    nulls = sum(v is None for v in values) if has_nulls else 0
    with gquery.connect(device="python") as connection:
        connection.register("t", TABLE.select(["id", name]))
        assert connection.sql(f'SELECT count("{name}"), count(*) FROM t').fetchall() == [(ROWS - nulls, ROWS)]
        assert connection.sql(f'SELECT id FROM t WHERE "{name}" IS NULL').to_arrow_table().num_rows == nulls
        found = connection.sql(f'SELECT CASE WHEN id > 4 THEN "{name}" END c, coalesce("{name}", "{name}") d FROM t')
        assert found.to_arrow_table().to_pydict() == {"c": [None] * 5 + values[5:], "d": values}


def test_values_of_two_tables(connection: gquery.Connection) -> None:
    """Numbers of rows of two tables meet in one column."""
    names = [n for n in FEW.column_names if n not in ("id", "g")]
    other = pa.concat_tables([FEW.slice(n, 1) for n in (0, 3, 8)])
    connection.register("o", other)
    for name in names:
        mine, others = FEW.column(name).to_pylist(), other.column(name).to_pylist()
        union = f'SELECT "{name}" c FROM t UNION ALL SELECT "{name}" FROM o UNION ALL SELECT NULL UNION ALL '
        found = connection.sql(union + f'SELECT "{name}" FROM t').to_arrow_table()
        assert found.to_pydict() == {"c": [*mine, *others, None, *mine]}
        chosen = connection.sql(
            f'SELECT CASE WHEN t.id = 3 THEN t."{name}" ELSE o."{name}" END c FROM t, o WHERE t.id = o.id'
        )
        assert chosen.to_arrow_table().to_pydict() == {"c": others}
    nothing = connection.sql(
        "SELECT * FROM (SELECT NULL AS items UNION ALL SELECT items FROM t) WHERE items IS NULL LIMIT 1"
    )
    assert nothing.fetchall() == [(None,)]


def test_stored_and_registered_again(connection: gquery.Connection) -> None:
    whole = connection.table("t").to_arrow_table()
    connection.sql("CREATE TABLE stored AS SELECT * FROM t")
    connection.register("again", connection.sql("SELECT * FROM stored"))
    connection.register("arrow", connection.sql("SELECT * FROM again").to_arrow_table())
    for name in ("stored", "again", "arrow"):
        assert connection.table(name).to_arrow_table().equals(whole)
    batches = connection.table("arrow").to_arrow_reader(2)
    assert batches.read_all().combine_chunks() == whole.combine_chunks()


def test_types_are_told() -> None:
    with gquery.connect(device="python") as connection:
        connection.register("t", TABLE)
        told = {row[0]: row[1] for row in connection.sql("DESCRIBE t").fetchall()}
        for name, type_, _ in carried():
            assert told[name] == type_
        assert [str(t) for t in connection.table("t").types] == list(told.values())


def duckdb_takes() -> Iterator[str]:
    """The types that DuckDB reads from Arrow, and Parquet keeps as what they are."""
    for name, array in EVERY.items():
        if name.startswith(("null", "span", "duration", "runs", "sparse", "dictionary_of_lists", "time64[ns]")):
            continue  # not of Parquet: Arrow refuses, or stores what only Arrow reads as that
        try:
            duckdb.from_arrow(pa.table({"c": array})).filter("c IS NULL").count("*").fetchall()
        except duckdb.Error:
            continue
        yield name


def test_parquet_is_read_by_duckdb(tmp_path: Path) -> None:
    names = list(duckdb_takes())
    assert len(names) > 35
    path = tmp_path / "t.parquet"
    with gquery.connect(device="python") as connection:
        original = TABLE.select(["id", *names])
        connection.register("t", original)
        connection.sql("SELECT * FROM t").to_parquet(path, row_group_size=4)
        oracle = duckdb.connect()
        oracle.register("o", original)
        for name in names:
            differ = f'SELECT count(*) FROM o JOIN \'{path}\' f USING (id) WHERE o."{name}" IS DISTINCT FROM f."{name}"'
            assert oracle.execute(differ).fetchall() == [(0,)], name
        found = connection.read_parquet(path).to_arrow_table()
        assert found.to_pydict() == original.to_pydict()
        few = connection.sql(f"SELECT uuid, id FROM '{path}' WHERE id IN (2, 7)").to_arrow_table()
        assert few.to_pydict() == {"uuid": [TABLE.column("uuid").to_pylist()[n] for n in (2, 7)], "id": [2, 7]}


def test_several_files(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    not_in_parquet = ("span", "runs", "sparse", "dense", "dict", "decimal_tens")
    names = [n for n in CARRIED if not n.startswith(not_in_parquet) and "view" not in n]  # Arrow cannot slice views
    for number in range(2):
        pq.write_table(TABLE.select(names).slice(number * 4, 4), tmp_path / f"{number}.parquet", row_group_size=3)
    with gquery.connect(device="python", partitions=3) as connection:
        found = connection.read_parquet(tmp_path).to_arrow_table()
        assert found.to_pydict() == TABLE.select(names).slice(0, 8).to_pydict()
    pq.write_table(pa.table({"a.b": [[1]], "a": [[2]], "c": [{"b": 3}]}), tmp_path / "dots.parquet")
    found = gquery.read_parquet(tmp_path / "dots.parquet").to_arrow_table()
    assert found.to_pydict() == {"a.b": [[1]], "a": [[2]], "c": [{"b": 3}]}


def test_json_and_ipc(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(
        '{"id": 1, "tags": [1, 2], "at": {"x": null}}\n{"id": 2, "tags": null, "at": {"x": 1}}\n'
    )
    found = gquery.read_json(tmp_path / "a.json")
    assert [str(t) for t in found.types] == ["BIGINT", "BIGINT[]", "STRUCT(x BIGINT)"]
    assert found.fetchall() == duckdb.read_json(str(tmp_path / "a.json")).fetchall()
    with pa.ipc.new_file(tmp_path / "a.arrow", TABLE.schema) as file:
        file.write_table(TABLE)
    kept = gquery.read_ipc(tmp_path / "a.arrow").to_arrow_table()
    assert all(python(kept.column(n)) == python(TABLE.column(n)) for n in TABLE.column_names)


def test_python_values() -> None:
    table = FEW.append_column("pairs", TABLE.column("pairs")).select(["items", "record", "pairs"])
    with gquery.connect(device="python") as connection:
        connection.register("t", table)
        want = duckdb.from_arrow(table).fetchall()
        assert connection.table("t").fetchall() == want
        assert [list(v) for v in connection.table("t").fetchnumpy().values()] == [
            list(v) for v in zip(*want, strict=True)
        ]
        shown = str(connection.sql("SELECT * FROM t LIMIT 1"))
        assert "[1, NULL]" in shown and "{'a': 1, 'b': [x]}" in shown and "BIGINT" not in shown
        twice = pa.table({"m": pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64()))})
        connection.register("twice", twice)
        assert connection.table("twice").fetchall() == [([("a", 1), ("a", 2)],)]


REFUSED = [
    ("SELECT DISTINCT uuid FROM t", "DISTINCT"),
    ("SELECT * FROM t UNION SELECT * FROM t", "UNION without ALL"),
    ("SELECT uuid, count(*) FROM t GROUP BY uuid", "GROUP BY"),
    ("SELECT uuid, count(*) FROM t GROUP BY 1", "GROUP BY"),
    ("SELECT uuid FROM t GROUP BY ALL", "GROUP BY"),
    ("SELECT * FROM t ORDER BY uuid", "ORDER BY"),
    ("SELECT uuid FROM t ORDER BY ALL", "ORDER BY"),
    ("SELECT uuid FROM t UNION ALL SELECT uuid FROM t ORDER BY 1", "ORDER BY"),
    ("SELECT uuid = uuid FROM t", "="),
    ("SELECT a.id FROM t a JOIN t b ON a.uuid = b.uuid", "="),
    ("SELECT * FROM t a JOIN t b USING (uuid)", "="),
    ("SELECT id FROM t WHERE uuid IN (SELECT uuid FROM t)", "a comparison"),
    ("SELECT uuid IS DISTINCT FROM uuid FROM t", "IS DISTINCT FROM"),
    ("SELECT max(uuid) FROM t", "max"),
    ("SELECT list(uuid) FROM t", "list"),
    ("SELECT count(DISTINCT uuid) FROM t", "count(DISTINCT)"),
    ("SELECT len(uuid) FROM t", "len"),
    ("SELECT concat(uuid, 'a') FROM t", "concat"),
    ("SELECT uuid || 'a' FROM t", "||"),
    ("SELECT greatest(uuid, uuid) FROM t", "greatest"),
    ("SELECT nullif(uuid, uuid) FROM t", "nullif"),
    ("SELECT uuid::VARCHAR FROM t", "CAST to VARCHAR"),
    ("SELECT TRY_CAST(uuid AS INTEGER) FROM t", "CAST to INTEGER"),
    ("SELECT uuid.a FROM t", ".a"),
    ("SELECT CASE uuid WHEN uuid THEN 1 END FROM t", "="),
    ("SELECT id FROM t WHERE uuid", "CAST to BOOLEAN"),
    ("SELECT id FROM t WHERE uuid > 'a'", ">"),
]


@pytest.mark.parametrize(("sql", "what"), REFUSED, ids=[sql for sql, _ in REFUSED])
def test_refused_by_name(sql: str, what: str) -> None:
    with gquery.connect(device="python") as connection:
        connection.register("t", FEW)
        with pytest.raises(NotSupportedError) as raised:
            connection.sql(sql)
        text = str(raised.value)
        assert f"not supported: {what}" in text or what == "not supported"
        if what != "not supported":
            assert 'of column "uuid" of type UUID' in text or "USING" in sql
            assert "SELECT * EXCLUDE (uuid)" in text
        assert connection.sql("SELECT 1").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT items FROM t UNION ALL SELECT id FROM t", "INTEGER[] and BIGINT"),
        ("SELECT CASE WHEN id > 1 THEN items ELSE id END FROM t", "INTEGER[] and BIGINT"),
    ],
)
def test_mixed_with_other_types(sql: str, text: str) -> None:
    with gquery.connect(device="python") as connection:
        connection.register("t", FEW)
        with pytest.raises(BindError) as raised:
            connection.sql(sql)
        assert text in str(raised.value)


def test_dataframe_verbs_refuse() -> None:
    with gquery.connect(device="python") as connection:
        connection.register("t", FEW)
        relation = connection.table("t")
        calls: list[Any] = [
            relation.distinct,
            lambda: relation.sort("uuid"),
            lambda: relation.filter("uuid IN (SELECT uuid FROM t)"),
        ]
        for call in calls:
            with pytest.raises(NotSupportedError, match='column "uuid" of type UUID'):
                call()


def test_formats_and_libraries_that_cannot_hold_a_column(tmp_path: Path) -> None:
    path = tmp_path / "kept.csv"
    path.write_text("kept")
    with gquery.connect(device="python") as connection:
        connection.register("t", TABLE)
        refused = {
            "span": "INTERVAL",
            "duration_us": "INTERVAL",
            "sparse_union": "UNION",
        }
        for name, type_ in refused.items():
            with pytest.raises(NotSupportedError, match=f'Parquet with column "{name}" of type {type_}.*EXCLUDE'):
                connection.sql(f"SELECT id, {name} FROM t").to_parquet(path)
        for name in CARRIED:
            with pytest.raises(NotSupportedError, match=r"CSV with column .*EXCLUDE"):
                connection.sql(f'SELECT id, "{name}" FROM t').to_csv(path)
        assert path.read_text() == "kept"
        for name in ("decimal_wide", "sparse_union"):
            with pytest.raises(NotSupportedError, match=f'Polars with column "{name}".*EXCLUDE'):
                connection.sql(f"SELECT {name}, id FROM t").pl()
        with pytest.raises(NotSupportedError, match='pandas with column "sparse_union"'):
            connection.sql("SELECT sparse_union, id FROM t").df()
        connection.sql("SELECT * EXCLUDE (sparse_union, dense_union) FROM t").df()


@pytest.mark.parametrize("name", CARRIED)
def test_results_own_their_values(name: str) -> None:
    """A result is no view of what was registered, nor of what is stored."""

    def addresses(column: pa.ChunkedArray) -> set[int]:
        return {b.address for c in column.chunks for b in buffers_of(c) if b is not None and b.size}

    with gquery.connect(device="python") as connection:
        connection.register("t", TABLE.select([name]))
        connection.sql("CREATE TABLE s AS SELECT * FROM t")
        held = addresses(TABLE.column(name))
        for table in ("t", "s"):
            found = connection.table(table).to_arrow_table().column(0)
            source: Any = connection._catalog.get(table)
            held |= addresses(source.load([0]).columns[0].dictionary.values)
            assert not held & addresses(found)


def buffers_of(array: pa.Array) -> list[Any]:
    return list(array.buffers()) + (buffers_of(array.dictionary) if pa.types.is_dictionary(array.type) else [])


def test_long_columns() -> None:
    """More rows than are encoded in one piece."""
    import pyarrow.compute as pc

    rows = 1_100_000
    numbers = pa.array(range(rows))
    offsets = pa.array(range(rows + 1), pa.int32())
    table = pa.table({
        "id": numbers,
        "items": pa.ListArray.from_arrays(offsets, numbers),
        "runs": pc.run_end_encode(pc.divide(numbers, 1000)),
        "truth": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0] * (rows // 2), pa.int8())),
        "zone": pa.array(numbers.cast(pa.timestamp("s", "UTC"))),
    })  # fmt: skip
    for narrow in ("true", "false"):
        with gquery.connect(device="cpu") as connection:
            connection.sql(f"SET narrow = {narrow}")
            connection.register("t", table)
            found = connection.sql("SELECT * FROM t LIMIT 3 OFFSET 1099990").to_arrow_table()
            assert found.to_pydict() == table.slice(1099990, 3).to_pydict()
            assert connection.sql("SELECT count(items), max(zone) FROM t").fetchall() == [
                (rows, table["zone"][-1].as_py())
            ]


def test_parameters_are_exact_or_refused() -> None:
    import numpy as np
    import pandas as pd

    with gquery.connect(device="python") as connection:

        def value(given: Any) -> Any:
            return connection.sql("SELECT ?", params=[given]).fetchall()[0][0]

        day = dt.datetime(2020, 1, 2)
        assert [value(v) for v in (pd.NaT, pd.NA, np.datetime64("NaT"), np.timedelta64("NaT"))] == [None] * 4
        assert [value(v) for v in (np.datetime64("2020-01-02T00", "ns"), pd.Timestamp(day))] == [day, day]
        assert [value(v) for v in (np.datetime64("2020-01-02"), np.array(5), np.array([5]))] == [day.date(), 5, [5]]
        for given, text in (
            (pd.Timestamp("2020-01-01 00:00:00.000000001"), "has nanoseconds"),
            (np.datetime64("2020-01-01T00:00:00.000000001"), "has nanoseconds"),
            (pd.Timedelta(1, "ns"), "has nanoseconds"),
            (np.longdouble(1), "no SQL type"),
            (np.array([[5]]), "no SQL type"),
            (dt.time(1, tzinfo=dt.UTC), "no SQL type"),
        ):
            with pytest.raises(gquery.InterfaceError, match=text):
                value(given)


def test_data_that_is_not_what_it_seems(tmp_path: Path) -> None:
    import pandas as pd
    import polars as pl

    with gquery.connect(device="python") as connection:
        with pytest.raises(gquery.InterfaceError, match="Python objects of Polars"):
            connection.register("o", pl.DataFrame({"a": pl.Series([object()])}))
        connection.register("p", pd.DataFrame({"a": pd.Series(pd.period_range("2020", periods=2, freq="D"))}))
        assert str(connection.table("p").types[0]) == "BIGINT (pandas.period)"
        assert connection.table("p").df()["a"].tolist() == pd.period_range("2020", periods=2, freq="D").tolist()
        path = tmp_path / "x.csv"
        path.write_bytes(b"a,b\n1,x\xff\n")
        with pytest.raises(gquery.FileError, match='Column "b" of .*x.csv" is not valid UTF-8'):
            connection.read_csv(path)
        path.write_text("a\n2020-01-01 00:00:00+02\n")
        assert [str(t) for t in connection.read_csv(path).types] == ["TIMESTAMP WITH TIME ZONE"]
        assert connection.read_csv(path).fetchall() == [(dt.datetime(2019, 12, 31, 22, tzinfo=dt.UTC),)]


def test_describe_tells_what_is_known() -> None:
    with gquery.connect(device="python") as connection:
        connection.register("t", FEW.append_column("zone", TABLE.column("zone_us")))
        found = connection.table("t").describe().to_arrow_table().to_pylist()
        told = {row["column_name"]: row for row in found}
        assert (told["items"]["count"], told["items"]["nulls"], told["items"]["min"]) == (6, 3, None)
        assert (told["zone"]["distinct"], told["zone"]["min"]) == (2, "1960-01-01 01:00:00+01:00")


def test_one_name_and_several_arrow_types() -> None:
    """A union is of the Arrow type of its first part, or refused where Arrow cannot cast to it exactly."""
    with gquery.connect(device="python") as connection:
        spans = {"s": pa.array([b"abc", None], pa.binary(3)), "i": pa.array([[1], None], pa.large_list(pa.int32()))}
        connection.register("a", pa.table(spans))
        others = {"s": pa.array([b"ab", None], pa.binary(2)), "i": pa.array([[2], None], pa.list_(pa.int32()))}
        connection.register("b", pa.table(others))
        lists = connection.sql("SELECT i FROM a UNION ALL SELECT i FROM b").to_arrow_table()
        assert lists.to_pydict() == {"i": [[1], None, [2], None]}
        assert lists.schema.types == [pa.large_list(pa.int32())]
        with pytest.raises(NotSupportedError, match=r"fixed_size_binary\[3\] and fixed_size_binary\[2\] in one column"):
            connection.sql("SELECT s FROM a UNION ALL SELECT s FROM b").fetchall()


def test_unions_of_unions(connection: gquery.Connection) -> None:
    """The values of a union are numbered as they stand there, also within a union that holds its parts in another order."""
    connection.register("o", FEW.slice(3, 4))
    inner = "(SELECT items FROM o UNION ALL SELECT items FROM t)"
    found = connection.sql(
        f"SELECT items FROM t UNION ALL SELECT items FROM {inner} WHERE items IS NOT NULL"
    ).to_arrow_table()
    mine = FEW.column("items").to_pylist()
    assert found.column(0).to_pylist() == [*mine, *(v for v in [*mine[3:7], *mine] if v is not None)]


def test_a_recursion_carries_none() -> None:
    with gquery.connect(device="python") as connection:
        connection.register("t", FEW)
        for column, type_ in (("items", r"INTEGER\[\]"), ("record", "STRUCT"), ("[id]", r"BIGINT\[\]")):
            sql = f"WITH RECURSIVE r(n, c) AS (SELECT id, {column} FROM t UNION ALL SELECT n + 1, c FROM r WHERE n < 9) FROM r"
            with pytest.raises(NotSupportedError, match=f"of type {type_}.* in a recursive query"):
                connection.sql(sql)
