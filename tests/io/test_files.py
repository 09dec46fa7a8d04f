"""Files: CSV of every dialect, JSON, Arrow IPC, partitions, patterns, URIs and file systems; what is wrong with them."""

from __future__ import annotations

import datetime
import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest

import gquery
from gquery import errors
from gquery.io.csv_dialect import Given, sniff
from gquery.io.files import format_of, items_of, resolve

TABLE = pa.table(
    {
        "id": pa.array([1, 2, None], pa.int32()),
        "s": ["x", None, "a;b\n\"c\""],
        "day": [datetime.date(2024, 1, 1), None, datetime.date(1960, 1, 1)],
        "x": [1.5, None, -2.0],
        "ok": [True, False, None],
    }
)  # fmt: skip


@pytest.fixture
def db() -> Iterator[gquery.Connection]:
    with gquery.connect(device="python") as connection:
        yield connection


def types(relation: Any) -> list[str]:
    return [str(t) for t in relation.types]


# ---- CSV -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,x\n2,y\n",
        "a;b;c\n1;2,5;x\n2;3,5;y\n",
        "a|b\n1|x,y\n\n2|z,w\n",
        "1,2,3\n4,5,6\n",
        "n\tname\n1\tx\n2\t\n",
        'id,text\n1,"a, b"\n2,"c\nd"\n3,"e ""f"""\n',
        "d,t,b\n2024-01-01,2024-01-01 10:00:00,true\n2024-01-02,2024-01-02 11:30:00,false\n",
        "a,b\n1,\n,2.5\n",
        "\ufeffname,n\nx,1\n",
        "only\n1\n2\n",
        "a,b\r\n1,x\r\n2,y\r\n",
        "k,v\nx,1\ny,1e3\n",
    ],
)
def test_csv_is_read_as_by_duckdb(db: gquery.Connection, tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode())
    mine, theirs = db.sql(f"FROM '{path}'"), duckdb.sql(f"FROM read_csv('{path}')")
    assert mine.columns == [c.removeprefix("\ufeff") for c in theirs.columns]
    assert types(mine) == [str(t) for t in theirs.types]
    assert mine.fetchall() == theirs.fetchall()


def test_csv_options(db: gquery.Connection, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("# a comment\nk#v#d\n1#-#01/02/2024\n2#b#03/02/2024\n")
    options = "delim='#', skip=1, nullstr='-', types={'K': 'SMALLINT'}, timestampformat='%d/%m/%Y', filename=true"
    relation = db.sql(f"FROM read_csv('{path}', {options})")
    assert types(relation)[:2] == ["SMALLINT", "VARCHAR"]
    first = relation.fetchall()[0]
    assert (first[:2], first[3]) == ((1, None), str(path))
    assert db.read_csv(path, sep="#", skip=2, header=False, names=["x"]).columns == ["x", "column1", "column2"]
    assert types(db.read_csv(path, sep="#", skip=1, all_varchar=True)) == ["VARCHAR"] * 3
    assert db.read_csv(path, delim="#", skip=1, columns={"a": "INTEGER", "b": "VARCHAR", "c": "VARCHAR"}).columns == [
        "a",
        "b",
        "c",
    ]
    path.write_text("a,b\n1,2\n3\n4,5\n")
    assert db.read_csv(path, header=True, delim=",", ignore_errors=True).fetchall() == [(1, 2), (4, 5)]
    with pytest.raises(errors.FileError, match=r"CSV file .*x.csv"):
        db.read_csv(path, header=True, delim=",")
    with pytest.raises(errors.NotSupportedError, match='no option delm.*Did you mean "delim"'):
        db.sql(f"FROM read_csv('{path}', delm=',')")
    with pytest.raises(errors.NotSupportedError, match="type SOMETHING"):
        db.read_csv(path, types={"a": "SOMETHING"})
    with pytest.raises(errors.InterfaceError, match='no column "z"'):
        db.read_csv(path, header=True, delim=",", types={"z": "BIGINT"})
    with pytest.raises(errors.BindError, match="true or false"):
        db.read_csv(path, header="maybe")
    with pytest.raises(errors.ProgrammingError):
        db.sql(f"FROM read_csv('{path}', delim=x)")


OPTIONS = [
    "nullstr=['NA', '']", "nullstr='NA'", "nullstr='NA', allow_quoted_nulls=false", "allow_quoted_nulls=false",
    "header='yes'", "header=1", "header=false", "all_varchar='t'", "types=['VARCHAR', 'DOUBLE']", "types={'A': 'DOUBLE'}",
    "names=['x']", "quote=''", "delim='\\t', header=true", "filename='f'", "filename=true", "hive_partitioning=false",
    "auto_detect=true", "sample_size=-1", "parallel=true", "ignore_errors='no'", "skip=1, header=false",
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS)
def test_options_do_what_they_do_in_duckdb(db: gquery.Connection, tmp_path: Path, options: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text('a,b,c\n1,"NA",x\n2,NA,""\n3,,y\n' if "DOUBLE" not in options else "a,b,c\n1,2,x\n")
    query = f"FROM read_csv('{path}', {options})"
    mine, theirs = db.sql(query), duckdb.sql(query)
    assert (mine.columns, types(mine)) == (theirs.columns, [str(t) for t in theirs.types])
    assert mine.fetchall() == theirs.fetchall()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("nullstr=[]", "nullstr is a list of texts"), ("nullstr=5", "nullstr is a list of texts"),
        ("nullstr=['a', 5]", "nullstr is a list of texts"), ("nullstr=NULL", "nullstr is NULL"),
        ("skip=1.5", "skip is an integer"), ("skip=-1", "skip is an integer"), ("skip='1'", "skip is an integer"),
        ("skip=true", "skip is an integer"), ("names='xy'", "names is a list of texts"),
        ("names=[1]", "names is a list of texts"), ("delim=',', sep=';'", "delim is given twice"),
        ("delim=',', delim=';'", "delim is given twice"), ("delim='ab'", "delim is one ASCII character"),
        ("delim=''", "delim is one ASCII character"), ("quote='ab'", "quote is one ASCII character"),
        ("escape='ab'", "escape is one ASCII character"), ("header=2", "header is true or false"),
        ("auto_detect=false", "auto_detect = false"), ("sample_size='x'", "sample_size is an integer"),
        ("format='csv'", "no option format"), ("maximum_object_size=3", "no option maximum_object_size"),
        ("thousands=','", "no option thousands"), ("dateformat='%Q'", "%Q in dateformat"),
        ("encoding='x'", "encoding is one of"), ("decimal_separator=';'", "decimal_separator is one of"),
        ("timestampformat='%f'", "%f in timestampformat"), ("timestampformat='%-d'", "%-d in timestampformat"),
        ("timestampformat=5", "timestampformat is a text"), ("filename=5.5", "filename is true or false"),
        ("filename='A'", 'a column "A" in the files'), ("types='VARCHAR'", "types maps columns"),
        ("types={'a': 'INT', 'A': 'INT'}", "stands twice"), ("types={'a': 5}", "type is named by a text"),
        ("types=['INT', 'INT', 'INT', 'INT']", "types for 4 columns"), ("columns=['INT']", "columns maps columns"),
        ("'y.csv'", "a list of them"), ("true", "a list of them"), ("filesystem='x'", "no file system"),
    ],
)  # fmt: skip
def test_options_that_are_not_understood(db: gquery.Connection, tmp_path: Path, options: str, text: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b,c\n1,2,3\n")
    with pytest.raises(errors.Error) as raised:
        db.sql(f"FROM read_csv('{path}', {options})")
    assert text in str(raised.value)
    assert not isinstance(raised.value, errors.InternalError)


def test_options_of_other_formats(db: gquery.Connection, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"a": 1}\n')
    assert db.read_json(path, format="newline_delimited", maximum_object_size=100).fetchall() == [(1,)]
    with pytest.raises(errors.FileError, match="not of the format array"):
        db.read_json(path, format="array")
    refused: list[tuple[Any, str]] = [
        (lambda: db.read_json(path, format="csv"), "format is one of"),
        (lambda: db.read_json(path, nullstr="a"), "no option nullstr"),
        (lambda: db.read_parquet(path, parallel=True), "no option parallel"),
        (lambda: db.read_csv(path, DELIM=",", sep=","), "given twice"),
        (lambda: db.read_csv(path, types={"a": "INT", "A": "INT"}), "names a column twice"),
        (lambda: db.read_csv(5), "by a text or a path"),
        (lambda: db.read_csv(None), "by a text or a path"),
        (lambda: db.read_csv([path, 5]), "by a text or a path"),
    ]
    for call, text in refused:
        with pytest.raises(errors.Error, match=text) as raised:
            call()
        assert not isinstance(raised.value, errors.InternalError)


def test_options_of_what_is_written(db: gquery.Connection, tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_text("kept")
    relation = db.sql("SELECT 1 AS a")
    refused: list[tuple[Any, str]] = [
        (lambda: relation.to_parquet(path, compression="foo"), "Unsupported compression"),
        (lambda: relation.to_parquet(path, nonsense=1), "nonsense"),
        (lambda: relation.to_parquet(path, row_group_size="a"), "a whole number"),  # type: ignore[arg-type]
        (lambda: relation.to_csv(path, sep="ab"), "to_csv"),
        (lambda: relation.to_csv(path, header="no"), "header is True or False"),  # type: ignore[arg-type]
        (lambda: relation.to_csv(path, quoting_style="x"), "quoting style"),
    ]
    for call, text in refused:
        with pytest.raises(errors.InterfaceError, match=text):
            call()
        assert path.read_text() == "kept"


def test_csv_from_the_shell_of_a_compressed_file(db: gquery.Connection, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "x.csv.gz", "wt") as file:
        file.write("a,b\n1,x\n")
    assert db.sql(f"FROM '{tmp_path}/x.csv.gz'").fetchall() == [(1, "x")]


def test_dialects() -> None:
    assert sniff(b"").names == ("column0",)
    assert sniff(b"a,a,\n1,2,3\n").names == ("a", "a_1", "column2")
    assert sniff(b'a,b\n"1,2\n', Given(",", True)).names == ("a", "b")


# ---- JSON and Arrow --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "b": "x"}\n{"a": 2, "c": 1.5}\n',
        json.dumps([{"a": 1, "b": "x"}, {"a": 2, "b": None, "c": True}], indent=1),
        '{\n "a": 1\n}\n{\n "a": 2\n}\n',
    ],
)
def test_json(db: gquery.Connection, tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    theirs = duckdb.sql(f"FROM read_json('{path}')")
    assert db.sql(f"FROM '{path}'").columns == theirs.columns
    for name in ("read_json", "read_json_auto", "read_ndjson"):
        assert db.sql(f"FROM {name}('{path}')").fetchall() == theirs.fetchall()
    assert db.read_json(path).fetchall() == theirs.fetchall()


def test_bad_json(db: gquery.Connection, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for text in ('{"a": ', "[1, 2"):
        path.write_text(text)
        with pytest.raises(errors.FileError, match=r"x.json"):
            db.read_json(path)
    path.write_text('{"a": {"b": 1}, "c": 2}\n')
    assert db.sql(f"SELECT c FROM '{path}'").fetchall() == [(2,)]
    for query in ("SELECT a", "SELECT count(a)", "SELECT c", "SELECT a IS NULL"):
        assert db.sql(f"{query} FROM '{path}'").fetchall() == duckdb.sql(f"{query} FROM '{path}'").fetchall()
    with pytest.raises(errors.BindError, match=r"cannot compare BIGINT with STRUCT\(b BIGINT\)"):
        db.sql(f"SELECT c FROM '{path}' WHERE c IN (SELECT a FROM '{path}')")
    assert db.sql("SELECT NULL AS n").fetchall() == [(None,)]


@pytest.mark.parametrize("make", [pa.ipc.new_file, pa.ipc.new_stream])
def test_ipc(db: gquery.Connection, tmp_path: Path, make: Any) -> None:
    path = tmp_path / "x.arrow"
    with make(str(path), TABLE.schema) as writer:
        writer.write_table(TABLE)
    assert db.sql(f"FROM '{path}'").to_arrow_table().to_pydict() == TABLE.to_pydict()
    assert db.read_ipc(path).to_arrow_table().schema.types == TABLE.schema.types
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(errors.FileError, match="Arrow file"):
        db.read_ipc(path)


def test_files_that_change_are_read_again(db: gquery.Connection, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a\n1\n")
    assert db.sql(f"FROM '{path}'").fetchall() == [(1,)]
    path.write_text("a,b\n10,x\n20,y\n")
    os.utime(path, ns=(1, 1))
    assert db.sql(f"FROM '{path}'").fetchall() == [(10, "x"), (20, "y")]


# ---- many files ------------------------------------------------------------------------------------------------------


@pytest.fixture
def partitions(tmp_path: Path) -> Path:
    for year in (2023, 2024):
        for kind in ("a b", "c"):
            folder = tmp_path / f"year={year}" / f"kind={kind.replace(' ', '%20')}"
            folder.mkdir(parents=True)
            pq.write_table(pa.table({"v": [year, 1]}), folder / "part.parquet")
            (folder / "part.csv").write_text(f"v,w\n{year},x\n")
    return tmp_path


@pytest.mark.parametrize("asked", ["one.parquet", "folder", "folder/*.parquet", "folder/a.parquet"])
def test_each_change_of_files_is_noticed(db: gquery.Connection, tmp_path: Path, asked: str) -> None:
    """Also of a file that another one takes the place of, with the same size and time, of one beside it, and of one that goes."""
    (tmp_path / "folder").mkdir()
    first = tmp_path / ("one.parquet" if asked == "one.parquet" else "folder/a.parquet")
    sql = f"SELECT sum(v) FROM read_parquet('{tmp_path / asked}')"

    def put(path: Path, value: int) -> None:
        pq.write_table(pa.table({"v": [value]}), tmp_path / "made")
        os.utime(tmp_path / "made", ns=(10**18, 10**18))
        (tmp_path / "made").replace(path)

    put(first, 1)
    assert [db.sql(sql).fetchall() for _ in range(3)] == [[(1,)]] * 3
    put(first, 2)
    assert [db.sql(sql).fetchall() for _ in range(3)] == [[(2,)]] * 3
    put(tmp_path / "folder/b.parquet", 40)
    both = asked in ("folder", "folder/*.parquet")
    assert [db.sql(sql).fetchall() for _ in range(3)] == [[(42 if both else 2,)]] * 3
    first.unlink()
    if both:
        assert db.sql(sql).fetchall() == [(40,)]
    else:
        with pytest.raises(errors.FileError, match="There is no file"):
            db.sql(sql).fetchall()


def test_partitions(db: gquery.Connection, partitions: Path) -> None:
    query = "SELECT year, kind, sum(v) AS v FROM {} GROUP BY ALL ORDER BY ALL"
    expected = [(y, k, y + 1) for y in (2023, 2024) for k in ("a b", "c")]
    for source in (f"'{partitions}/**/*.parquet'", f"'{partitions}/*/*/*.parquet'", f"read_parquet('{partitions}')"):
        assert db.sql(query.format(source)).fetchall() == expected
    assert types(db.read_parquet(partitions)) == ["BIGINT", "VARCHAR", "BIGINT"]
    assert db.sql(f"SELECT DISTINCT year FROM '{partitions}/**/*.parquet' WHERE kind = 'c'").fetchall() == [
        (2023,),
        (2024,),
    ]
    assert db.read_parquet(partitions, hive_partitioning=False).columns == ["v"]
    assert db.read_csv(f"{partitions}/*/*/*.csv", filename=True).columns == ["v", "w", "kind", "year", "filename"]
    files = [f"{partitions}/year=2023/kind=c/part.parquet", f"{partitions}/year=2024/kind=c/part.parquet"]
    assert db.sql(f"SELECT sum(year) FROM read_parquet({files})").fetchall() == [(2 * 2023 + 2 * 2024,)]


def test_keys_of_partitions(db: gquery.Connection, tmp_path: Path) -> None:
    for day, n in (("2024-01-01", "1"), ("__HIVE_DEFAULT_PARTITION__", "02")):
        folder = tmp_path / f"day={day}" / f"n={n}" / "v=7"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"v": [1]}), folder / "x.parquet")
    relation = db.read_parquet(tmp_path)
    assert list(zip(relation.columns, types(relation), strict=True)) == [
        ("v", "BIGINT"),
        ("day", "DATE"),
        ("n", "VARCHAR"),
    ]
    assert relation.fetchall() == [(7, datetime.date(2024, 1, 1), "1"), (7, None, "02")]
    pq.write_table(pa.table({"v": [1]}), tmp_path / "x.parquet")
    assert db.read_parquet(tmp_path).columns == ["v"]


def test_several_files_of_text(db: gquery.Connection, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,x\n")
    (tmp_path / "b.csv").write_text("a,b\n1.5,\n")
    assert db.sql(f"FROM '{tmp_path}/*.csv'").fetchall() == [(1.0, "x"), (1.5, None)]
    (tmp_path / "c.csv").write_text("a,b\nword,x\n")
    rows = [("1", "x"), ("1.5", None), ("word", "x")]  # a column that is text in one file is text in all
    assert db.sql(f"FROM '{tmp_path}/*.csv'").fetchall() == rows
    (tmp_path / "a.ndjson").write_text('{"a": 1}')
    (tmp_path / "b.ndjson").write_text('{"a": true}')
    with pytest.raises(errors.FileError, match="No file matches"):
        db.sql(f"FROM '{tmp_path}/*.tsv'")
    with pytest.raises(errors.FileError, match="say the format"):
        db.sql(f"FROM '{tmp_path}/x'")


def test_file_systems(db: gquery.Connection, partitions: Path) -> None:
    """Object stores go through pyarrow.fs: here a local folder plays one."""
    store = fs.SubTreeFileSystem(str(partitions), fs.LocalFileSystem())
    assert db.read_parquet("*/*/*.parquet", filesystem=store).columns == ["v", "kind", "year"]
    assert db.read_parquet("year=2024", filesystem=store).to_arrow_table().num_rows == 4
    assert len(resolve(items_of("**/*.csv", store), "csv", store)) == 4
    assert db.read_csv("year=2024/kind=c/part.csv", filesystem=store).fetchall() == [(2024, "x", "c", 2024)]
    for missing in ("nowhere.parquet", "n*.parquet"):
        with pytest.raises(errors.FileError):
            db.read_parquet(missing, filesystem=store)
    with pytest.raises(errors.InterfaceError, match="no file system"):
        db.read_parquet("x", filesystem=3)
    path = partitions / "year=2024" / "kind=c" / "part.parquet"
    assert db.sql(f"SELECT v FROM 'file://{path}'").fetchall() == [(2024,), (1,)]
    assert db.sql(f"SELECT count(*) FROM read_parquet('file://{partitions}/*/*/*.parquet')").fetchall() == [(8,)]
    with pytest.raises(errors.FileError):
        db.sql("FROM 'nosuch://bucket/x.parquet'")


def test_formats_by_name() -> None:
    assert [format_of(p) for p in ("x.PQ", "a/x.csv.gz", "s3://b/x.ndjson?region=eu", "x.feather", "x")] == [
        "parquet",
        "csv",
        "json",
        "ipc",
        None,
    ]
    assert format_of(["x.csv", "y.parquet"]) == "csv"


def test_columns_by_name(tmp_path: Path) -> None:
    """Files with other columns than others are put together by names; new files are found, and those that changed."""
    folder = tmp_path / "k=1"
    folder.mkdir()
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", None]}), folder / "1.parquet")
    pq.write_table(pa.table({"c": [1.5], "a": pa.array([3], pa.int32())}), folder / "2.parquet")
    pq.write_table(pa.table({"a": [7], "b": ["z"]}), folder / "3.parquet")
    (tmp_path / "1.csv").write_text("a,b\n1,x\n")
    (tmp_path / "2.csv").write_text("b,c\ny,2.5\n")
    db = gquery.connect(device="python")
    queries = [
        f"SELECT * FROM read_parquet('{folder}/*.parquet', union_by_name = true) ORDER BY ALL",
        f"SELECT sum(c), k FROM read_parquet('{tmp_path}/**/*.parquet', union_by_name = 1, filename = 1) GROUP BY k ORDER BY k",
        f"SELECT x.a FROM read_parquet(['{folder}/1.parquet'], union_by_name = true) x JOIN '{folder}/3.parquet' y ON x.a < y.a",
        f"SELECT * FROM read_csv('{tmp_path}/*.csv', union_by_name = true) ORDER BY ALL",
    ]
    for sql in queries:
        assert db.sql(sql).fetchall() == duckdb.sql(sql).fetchall(), sql
    pq.write_table(pa.table({"B": ["y"], "d": [True]}), folder / "4.parquet")
    pq.write_table(pa.table({"a": [8]}), folder / "3.parquet")
    for sql in queries[:2]:
        assert db.sql(sql).fetchall() == duckdb.sql(sql).fetchall(), sql
    with pytest.raises(errors.BindError, match="union_by_name is true or false"):
        db.sql(f"FROM read_parquet('{folder}/*.parquet', union_by_name = 'x')")
