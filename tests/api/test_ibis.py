"""The backend of Ibis: the same expressions on gquery and on DuckDB, tables, and errors."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import gquery

ibis = pytest.importorskip("ibis")
# Ibis sets an option that pandas will drop, and its DuckDB backend calls what DuckDB has renamed
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*infer_string"),
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
]

TABLE = pa.table(
    {
        "k": ["a", "b", "a", None, "c"],
        "v": [1, 2, 3, 4, None],
        "f": [1.5, None, 2.5, 0.0, -1.0],
        "t": [True, False, None, True, False],
        "d": pa.array([18262, 18793, None, 18321, 18321], pa.date32()),
        "z": pa.array([10**15, 10**15 + 3_600_000_000, None, 5, -(10**15)], pa.timestamp("us")),
    }
)
OTHER = pa.table({"k": ["a", "b", "q"], "w": [10, 20, 30]})

EXPRESSIONS: dict[str, Callable[[Any, Any], Any]] = {
    "columns": lambda t, o: t.select("k", "v"),
    "arithmetic": lambda t, o: t.mutate(x=t.v + 1, y=t.f / 2, z=t.v % 2, w=-t.f),
    "filter": lambda t, o: t.filter(t.v > 1, t.k == "a"),
    "boolean": lambda t, o: t.filter(t.t | (t.v > 3)),
    "case": lambda t, o: t.mutate(c=ibis.cases((t.v > 2, "big"), (t.v > 1, "middle"), else_="small")),
    "null": lambda t, o: t.mutate(n=t.v.isnull(), c=ibis.coalesce(t.v, 0), f=t.f.fill_null(7.0)),
    "text": lambda t, o: t.select(u=t.k.upper(), n=t.k.length(), s=t.k.startswith("a"), x=t.k.replace("a", "xy")),
    "dates": lambda t, o: t.select(y=t.d.year(), m=t.d.month(), q=t.d.quarter(), t=t.d.truncate("M")),
    "times": lambda t, o: t.select(h=t.z.hour(), m=t.z.minute(), d=t.z.date()),
    "casts": lambda t, o: t.select(x=t.v.cast("string"), y=t.f.cast("int64"), z=t.v.cast("float64")),
    "aggregate": lambda t, o: t.aggregate(n=t.count(), s=t.v.sum(), m=t.f.mean(), least=t.f.min(), most=t.k.max()),
    "groups": lambda t, o: t.group_by("k").agg(n=t.count(), s=t.v.sum(), u=t.v.nunique()).order_by("k"),
    "having": lambda t, o: t.group_by("k").having(t.count() > 1).agg(s=t.v.sum()),
    "filtered aggregate": lambda t, o: t.aggregate(s=t.v.sum(where=t.f > 0)),
    "moments": lambda t, o: t.aggregate(s=t.v.std(), p=t.v.var(how="pop")),
    "distinct": lambda t, o: t.select("k").distinct().order_by("k"),
    "join": lambda t, o: t.join(o, "k").order_by("v"),
    "left join": lambda t, o: t.left_join(o, "k").select("k", "v", "w").order_by("v"),
    "semi join": lambda t, o: t.semi_join(o, "k").order_by("v"),
    "anti join": lambda t, o: t.anti_join(o, "k").order_by("v"),
    "union": lambda t, o: ibis.union(t, t).order_by("v", "k"),
    "intersect": lambda t, o: ibis.intersect(t.select("k"), o.select("k")).order_by("k"),
    "difference": lambda t, o: ibis.difference(t.select("k"), o.select("k")).order_by("k"),
    "order and limit": lambda t, o: t.order_by(ibis.desc("v")).limit(2, offset=1),
    "in": lambda t, o: t.filter(t.k.isin(["a", "c"])),
    "in a table": lambda t, o: t.filter(t.k.isin(o.k)),
    "scalar": lambda t, o: t.v.sum(),
    "column": lambda t, o: t.v + 1,
    "in memory": lambda t, o: t.join(ibis.memtable({"v": [1, 3], "name": ["one", "three"]}), "v").order_by("v"),
    "sql": lambda t, o: t.sql("SELECT k, count(*) AS n FROM t GROUP BY k").order_by("k"),
}


@pytest.fixture(scope="module")
def backends() -> Iterator[tuple[Any, Any]]:
    ours, connection = ibis.gquery.connect("python"), duckdb.connect()
    for name, table in (("t", TABLE), ("o", OTHER)):
        ours.create_table(name, table)
        connection.register(name, table)
    theirs = ibis.duckdb.from_connection(connection)
    yield ours, theirs
    ours.disconnect()


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions(name: str, backends: tuple[Any, Any]) -> None:
    found, wanted = (EXPRESSIONS[name](b.table("t"), b.table("o")).to_pyarrow() for b in backends)
    assert found.equals(wanted) if isinstance(found, pa.Table) else found == wanted, f"{found}\n{wanted}"


def test_tables(backends: tuple[Any, Any]) -> None:
    ours, _ = backends
    view = ours.create_view("view_of_t", ours.table("t").select("k"))
    assert view.count().execute() == 5
    assert "view_of_t" in ours.list_tables(like="view")
    ours.drop_view("view_of_t")
    empty = ours.create_table("empty", schema={"a": "int64", "b": "string"})
    assert empty.execute().empty and empty.schema() == ibis.schema({"a": "int64", "b": "string"})
    ours.drop_table("empty")
    assert "empty" not in ours.list_tables()
    assert sum(b.num_rows for b in ours.table("t").to_pyarrow_batches(chunk_size=2)) == 5


def test_files(tmp_path: Any, backends: tuple[Any, Any]) -> None:
    import pyarrow.parquet as pq

    pq.write_table(TABLE, tmp_path / "t.parquet")
    assert backends[0].read_parquet(str(tmp_path / "t.parquet")).v.sum().execute() == 10


def test_over_a_connection() -> None:
    with gquery.connect("python") as db:
        db.register("t", TABLE)
        from gquery.api.ibis import Backend

        assert Backend.from_connection(db).table("t").v.max().execute() == 4


def test_refusals_are_gquerys(backends: tuple[Any, Any]) -> None:
    with pytest.raises(gquery.NotSupportedError, match="HUGEINT"):
        backends[0].sql("SELECT v::HUGEINT AS h FROM t").execute()
    with pytest.raises(ibis.common.exceptions.TableNotFound):
        backends[0].table("no such table")


def test_narwhals_takes_a_relation() -> None:
    nw = pytest.importorskip("narwhals")
    with gquery.connect("python") as db:
        frame = nw.from_native(db.from_data(TABLE))
        sums = (
            frame.filter(nw.col("v") > 0).group_by("k").agg(nw.col("v").sum().alias("s"), nw.len().alias("n")).sort("k")
        )
        assert sums.collect("pyarrow").to_native().to_pylist() == [
            {"k": None, "s": 4, "n": 1}, {"k": "a", "s": 4, "n": 2}, {"k": "b", "s": 2, "n": 1},
        ]  # fmt: skip
        assert frame.with_columns(u=nw.col("k").str.to_uppercase()).collect("pyarrow").shape == (5, 7)
        assert len(db.sql("SHOW TABLES")) == 1
        del frame, sums
        gc.collect()
        assert len(db.sql("SHOW TABLES")) == 0  # nothing is left of it
