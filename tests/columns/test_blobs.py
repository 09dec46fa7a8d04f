"""BLOB: bytes come in as Arrow has them, are compared, grouped and looked into as in DuckDB, and leave as they are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery.errors import BindError, ConversionError, NotSupportedError
from tests.support.harness import assert_same, connect

BLOBS = [b"\xaa\x01", b"abc", None, b"", b"abc", b"\x00\xff'\"\\ ~", b"a", b"a\x00"]
TABLES = {
    "t": pa.table(
        {
            "id": pa.array(range(8), pa.int32()),
            "b": pa.array(BLOBS, pa.binary()),
            "v": pa.array(BLOBS[::-1], pa.binary_view()),
            "w": pa.array(BLOBS, pa.large_binary()),
            "f": pa.array([b"ab", None, b"\xff\x00", b"ab", b"\x00\x01", b"ba", None, b"aa"], pa.binary(2)),
            "s": ["abc", None, r"\xFF\x00a", "", "a b", r"\x41", "616263", "0aFF"],
        }
    ),
    "e": pa.table({"b": pa.array([], pa.binary()), "n": pa.array([], pa.int32())}),
}
QUERIES = [
    "SELECT id, b, v, w, f FROM t",
    "SELECT b, count(*), min(id), max(v) FROM t GROUP BY b",
    "SELECT b, v FROM t WHERE b > 'a'::BLOB OR f = 'ab'::BLOB OR b = ''::BLOB",
    "SELECT b = v, b < v, b IS DISTINCT FROM v, b IN ('abc'::BLOB, v), b BETWEEN ''::BLOB AND 'b'::BLOB, greatest(b, v) FROM t",
    "SELECT min(b), max(b), count(DISTINCT b), first(b ORDER BY id), arg_max(b, id), any_value(b), arg_min(id, b) FROM t",
    "SELECT x.id, y.id FROM t x JOIN t y ON x.b = y.v",
    "SELECT x.id, y.id FROM t x LEFT JOIN t y ON x.b < y.b AND y.id > 4",
    "SELECT DISTINCT b FROM t UNION SELECT f FROM t",
    "SELECT b FROM t EXCEPT SELECT 'abc'::BLOB",
    "SELECT coalesce(s::BLOB, 'a'::BLOB), 'a'::BLOB, coalesce(b, ('x' || id)::BLOB), ('x' || id)::BLOB FROM t",
    "SELECT DISTINCT CAST(CAST(CASE WHEN false THEN 'a'::BLOB END AS VARCHAR) AS BLOB) FROM t",
    "SELECT least(unhex(hex(concat(s, '-2'))), b), greatest(b, unhex(hex(concat(s, id))), v) FROM t",
    "SELECT id, CASE WHEN id > 5 THEN unhex(concat(s, '')) ELSE b END, CASE WHEN id < 6 THEN v ELSE unhex(concat(s)) END FROM t",
    "SELECT id FROM t WHERE id > 5 AND CASE WHEN b IS NULL THEN FALSE ELSE unhex(concat(s, '')) > b END",
    "SELECT octet_length(b), hex(v), to_hex(f), base64(b), md5(w), sha256(b), sha1(b), b::VARCHAR, f::VARCHAR FROM t",
    "SELECT b || v, b || ''::BLOB, b || 'x', typeof(b || v), typeof(b || 'x') FROM t",
    "SELECT s::BLOB, encode(s), decode(encode(s)), hex(s), TRY_CAST(s || chr(233) AS BLOB), TRY_CAST(s || '\\x' AS BLOB) FROM t",
    "SELECT unhex(s), unhex('A'), from_hex('') FROM t WHERE id > 5",
    "SELECT from_base64(base64(b)) = b, unhex(hex(b)) = b, from_base64('YWJj') FROM t",
    "SELECT id, lag(b) OVER (ORDER BY id), rank() OVER (ORDER BY b), count(*) OVER (PARTITION BY b) FROM t",
    "SELECT CASE WHEN id > 2 THEN b ELSE 'x'::BLOB END, coalesce(b, v), nullif(b, 'abc'::BLOB) FROM t",
    "SELECT (SELECT max(b) FROM t), id FROM t WHERE b IN (SELECT v FROM t WHERE id < 5)",
    "SELECT DISTINCT ON (b) b, id FROM t ORDER BY b, id",
    "SELECT * FROM (VALUES ('a'::BLOB), (NULL)) x(y)",
    "SELECT max(b), count(b), octet_length(min(b)) FROM e",
]


@pytest.mark.parametrize("sql", QUERIES)
def test_as_duckdb(sql: str) -> None:
    assert_same(sql, TABLES, targets=("python",))


def test_compiled() -> None:
    for sql in QUERIES[1:12:4]:
        assert_same(sql, TABLES, targets=("cpu",))


def test_order() -> None:
    assert_same("SELECT id, b FROM t ORDER BY b DESC, id", TABLES, True, targets=("python",))


def test_in_and_out(tmp_path: Path) -> None:
    db = connect("python", 1, TABLES)
    result = db.sql("SELECT b, v, w, f FROM t")
    table = result.to_arrow_table()
    assert table.schema.types == [pa.binary(), pa.binary_view(), pa.large_binary(), pa.binary(2)]
    assert result.fetchall()[0] == (b"\xaa\x01", b"a\x00", b"\xaa\x01", b"ab")
    assert result.df()["b"].tolist() == BLOBS
    assert db.sql("SELECT b || b AS b FROM t").to_arrow_table().schema.types == [pa.binary()]
    path = tmp_path / "t.parquet"
    pq.write_table(TABLES["t"].select(["id", "b", "w"]), path, row_group_size=3)
    assert db.sql(f"SELECT id FROM '{path}' WHERE b = 'abc'::BLOB").fetchall() == [(1,), (4,)]
    db.sql(f"COPY (SELECT b, encode(s) AS s FROM t) TO '{tmp_path / 'out.parquet'}'")
    assert pq.read_table(tmp_path / "out.parquet").column("b").to_pylist() == BLOBS
    db.sql(f"COPY (SELECT b FROM t WHERE id < 2) TO '{tmp_path / 'out.csv'}'")
    assert (tmp_path / "out.csv").read_text() == "b\n\\xAA\\x01\nabc\n"


def test_tables_and_parameters() -> None:
    db = gquery.connect(device="python")
    db.sql(
        "CREATE TABLE t(n INTEGER, b BLOB DEFAULT 'zz'::BLOB); INSERT INTO t VALUES (1, '\\xAA'::BLOB), (2, 'abc'), (3, NULL)"
    )
    db.sql("INSERT INTO t (n) VALUES (4)")
    db.sql("INSERT INTO t VALUES (5, ?)", [b"\x00\xff"])
    db.sql("UPDATE t SET b = 'q'::BLOB || b WHERE n = 1")
    assert db.sql("SELECT b FROM t ORDER BY n").fetchall() == [
        (b"q\xaa",),
        (b"abc",),
        (None,),
        (b"zz",),
        (b"\x00\xff",),
    ]
    assert db.sql("SELECT n FROM t WHERE b = $x", {"x": b"abc"}).fetchall() == [(2,)]


@pytest.mark.parametrize(
    ("sql", "kind", "text"),
    [
        ("SELECT 'é'::BLOB", ConversionError, "could not convert"),
        ("SELECT 'a\\b'::BLOB", ConversionError, "could not convert"),
        ("SELECT 1::BLOB", BindError, "cannot CAST"),
        ("SELECT decode('\\xFF'::BLOB)", ConversionError, "no text in UTF-8"),
        ("SELECT unhex('ZZ')", ConversionError, "no hexadecimal digits"),
        ("SELECT from_base64('!!')", ConversionError, "no Base64"),
        ("SELECT upper(b) FROM t", NotSupportedError, "upper of column"),
        ("SELECT b[1] FROM t", NotSupportedError, "[]"),
        ("SELECT b LIKE 'a' FROM t", NotSupportedError, "LIKE"),
        ("SELECT list(b) FROM t", NotSupportedError, "lists of BLOB"),
    ],
)
def test_what_is_refused(sql: str, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as raised:
        connect("python", 1, TABLES).sql(sql).fetchall()
    assert text in str(raised.value)
