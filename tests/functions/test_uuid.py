"""UUIDs: columns beside DuckDB, random ones, and what is wrong with texts."""

from __future__ import annotations

import random
import uuid

import duckdb
import pyarrow as pa
import pytest

import gquery
from gquery import errors
from tests.support.harness import compare

ASKED = [
    "SELECT TRY_CAST(s AS UUID), n FROM t",
    "SELECT u, count(*) FROM v GROUP BY u ORDER BY u",
    "SELECT min(u), max(u), count(DISTINCT u), first(u ORDER BY u DESC) FROM v",
    "SELECT u, n FROM v ORDER BY u DESC NULLS LAST, n",
    "SELECT a.n, b.n FROM v a JOIN v b ON a.u = b.u ORDER BY ALL",
    "SELECT n FROM v WHERE u IN ('00000000-0000-0000-0000-000000000001', '0000000000000000000000000000000f') ORDER BY n",
    "SELECT n, u = s, u < 'f0000000-0000-0000-0000-000000000000' FROM v WHERE u IS NOT NULL ORDER BY n",
    "SELECT n, lag(u) OVER (ORDER BY n), u::VARCHAR || '!', to_json(u) FROM v ORDER BY n",
    "SELECT u FROM v WHERE n < 9 UNION SELECT '00000000000000000000000000000001' ORDER BY 1",
    "SELECT typeof(u), typeof([u]), typeof({'u': u}) FROM v LIMIT 1",
]


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_columns_as_in_duckdb(device: str) -> None:
    r = random.Random(3)
    texts: list[str | None] = []
    for _ in range(300):
        digits = f"{r.choice((1, 15, r.getrandbits(128), r.getrandbits(127))):032x}"
        text = str(uuid.UUID(digits)) if r.random() < 0.5 else digits
        text = text.upper() if r.random() < 0.3 else text
        at = r.randrange(len(text))
        text = text[:at] + r.choice(("", "", "", "-", "g", "{")) + text[at:] if r.random() < 0.3 else text
        texts.append(None if r.random() < 0.1 else f"{{{text}}}" if r.random() < 0.1 else text)
    table = pa.table({"s": texts, "n": range(len(texts))})
    ours, theirs = gquery.connect(device=device), duckdb.connect()
    if device == "cpu":
        ours.set("interpret_limit", 0)
    for db in (ours, theirs):
        db.register("t", table)
        kept = "TRY_CAST(s AS UUID) IS NOT NULL OR s IS NULL"
        db.sql(f"CREATE TABLE v AS SELECT TRY_CAST(s AS UUID) AS u, s, n FROM t WHERE {kept}")
    for sql in ASKED:
        want = theirs.sql(sql)
        types = [str(t) for t in want.types]
        got = ours.sql(sql)
        assert [str(t) for t in got.types] == types, sql
        assert (found := compare(got.fetchall(), want.fetchall(), "ORDER" in sql, types)) is None, f"{sql}: {found}"


def test_defaults_differ() -> None:
    db = gquery.connect(device="python")
    db.sql("CREATE TABLE t (id UUID PRIMARY KEY DEFAULT gen_random_uuid(), x INTEGER)")
    for _ in range(2):
        db.sql("INSERT INTO t (x) VALUES (1), (2)")
    db.sql("INSERT INTO t (x) SELECT range FROM range(1000)")
    found = db.sql("SELECT id FROM t").fetchall()
    assert len({row[0] for row in found}) == 1004
    assert all(isinstance(row[0], uuid.UUID) and row[0].version == 4 for row in found)
    assert db.sql("SELECT uuid() AS u, range FROM range(3)").to_arrow_table().schema.field("u").type == pa.string()


FAULTS = [
    ("SELECT 'x'::UUID", errors.ConversionError, r"could not convert string 'x' to UUID\nLINE 1: .*\n {15}\^"),
    ("SELECT s::UUID FROM t", errors.ConversionError, "could not convert string '.*' to UUID"),
    ("INSERT INTO t VALUES ('1', 'x')", errors.ConversionError, "could not convert"),
    ("UPDATE t SET u = s", errors.ConversionError, "could not convert string '.*' to UUID"),
    ("SELECT u = 'x' FROM t", errors.ConversionError, "could not convert"),
    ("SELECT u::INTEGER FROM t", errors.BindError, "cannot CAST UUID to INTEGER"),
    ("SELECT 1::UUID", errors.BindError, "cannot CAST INTEGER to UUID"),
    ("SELECT [s]::UUID[] FROM t", errors.ConversionError, "to UUID"),
    ("SELECT u + 1 FROM t", errors.BindError, "no function matches"),
    ("SELECT upper(u) FROM t", errors.BindError, "no function matches upper"),
    ("SELECT sum(u) FROM t", errors.BindError, "no function matches sum"),
    ("SELECT u = 1 FROM t", errors.BindError, "cannot mix"),
    ("SELECT uuid_extract_timestamp(u) FROM t", errors.ConversionError, "not of version 7"),
]


@pytest.mark.parametrize(("sql", "kind", "message"), FAULTS)
def test_errors(sql: str, kind: type[Exception], message: str) -> None:
    """Nothing is changed by them."""
    db = gquery.connect(device="python")
    one = "00000000-0000-0000-0000-000000000001"
    db.sql(f"CREATE TABLE t (u UUID, s VARCHAR); INSERT INTO t VALUES ('{one}', 'x')")
    with pytest.raises(kind, match=message):
        db.sql(sql).fetchall()
    assert db.sql("FROM t").fetchall() == [(uuid.UUID(one), "x")]


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_python_gets_uuids_within_others(device: str) -> None:
    """As in DuckDB: in lists, structs with names and without, and in both sides of maps."""
    one = "'6f1c5e0a-0000-4000-8000-000000000001'::UUID"
    sql = (
        f"SELECT [u, NULL], {{'a': [{{'b': u}}], 'c': NULL::UUID, 'd': 1}}, (u, 1), map([u], [[u]]), NULL::UUID[], [1], "
        f"list(u) OVER () FROM (VALUES ({one}), (NULL)) t(u) WHERE u IS NOT NULL"
    )
    want = duckdb.sql(sql).fetchall()
    with gquery.connect(device=device) as connection:
        assert connection.sql(sql).fetchall() == want
        assert isinstance(want[0][0][0], uuid.UUID)
        connection.sql("CREATE TABLE t (u UUID[], s STRUCT(a UUID))")
        digits = "6f1c5e0a000040008000000000000001"
        connection.sql(f"INSERT INTO t VALUES (['{digits}'], {{'a': '{digits}'}}), (NULL, NULL)")
        assert connection.sql("SELECT * FROM t").fetchall() == [([uuid.UUID(digits)], {"a": uuid.UUID(digits)}), (None, None)]
        for wrong in ("['x']::UUID[]", "'[x]'::UUID[]", "{'a': 'x'}::STRUCT(a UUID)", "'[\"x\"]'::JSON::UUID[]"):
            with pytest.raises(errors.ConversionError):
                connection.sql(f"SELECT {wrong}").fetchall()
        for wrong in ("[1]::UUID[]", f"[{one}]::INTEGER[]"):
            with pytest.raises(errors.BindError):
                connection.sql(f"SELECT {wrong}").fetchall()
