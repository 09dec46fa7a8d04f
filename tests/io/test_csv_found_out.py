"""What of CSV files is found out: days and times of other forms, quotes, comments, lines before the table; as DuckDB does."""

from __future__ import annotations

import gzip
import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import gquery
from gquery import errors

DAYS = (
    "25/12/2024", "12/25/2024", "01/02/2024", "1/2/2024", "25.12.2024", "25-12-2024", "2024/12/25", "2024.1.2", "25 12 2024",
    "25/12/24", "12/25/24", "24-01-02", "32-11-10", "31/02/2024", "29/02/2023", "29/02/2024", "99/99/9999", "25-Dec-2024",
    " 25/12/2024 ", "1.2.3", "25/12-2024", "2024-02-30", "12/25", "25/12/02024",
)  # fmt: skip
TIMES = (
    "10:00", "10:00:00", "1:02:03", "10:00:00.5", "23:59:59.123456", "25:00", "10:60:00", "10:00 AM", "10:00:00+01", "24:30",
)  # fmt: skip
MOMENTS = (
    "25/12/2024 10:00:00", "12/25/2024 10:00:00", "12/25/2024 10:00:00 PM", "12/25/2024 12:00:00 am", "25.12.2024 1:02:03",
    "2024/12/25 10:00:00", "25/12/2024 10:00", "25/12/24 10:00:00", "2024-12-25 10:00:00 PM", "25/12/2024 10:00:00.5",
    "25/12/2024T10:00:00", "25/12/2024 24:00:01", "2024-12-25 10:00:00.123456789", "1969-12-31 23:59:59.999999999",
)  # fmt: skip
TEXTS = (
    "a,b\n1,'x'\n2,'y'\n", "a,b\n'1','x,y'\n'2','y'\n", "a,b\n1,it's\n2,'y'\n", "a,b\nit's,1\nhe's,2\n",
    "a,b\n1,\"x\"\"y\"\n2,\"x\\\"\n", 'a,b\n1,"x\\"y,z"\n2,q\n', 'a,b\n1,"x\\\\"\n2,q\n', "a,b\n1,\"2\n3,4\n",
    "a,b\n\"1,2\n3,4\n", "id,text\n1,say \"hi\"\n2,x\n", "a,b\n1,2,\n3,4,\n", "a,b,\n1,2,\n3,4,\n", "a,b\n1,\n2,\n",
    "# c\na,b\n1,2\n", "#a,b\n1,2\n", "a,b\n1,2\n#x\n3,4\n", "#\n#\na,b\n1,2\n", "a,b\n1,#2\n3,4\n",
    "x\n1\n2\n# end\n", "title\na,b\n1,2\n", "title\n\na,b\n1,2\n3,4\n", "x y z\nfoo\na,b\n1,2\n", "\n\na,b\n1,2\n", "\n1\n2\n",
    "a,b\n\n1,2\n\n3,4\n", "25/12/2024,1\n31/01/2025,2\n", "10:00:00,a\n11:00:00,b\n", "25/12/2024\n26/12/2024\n",
    'title\n"a","b"\n"1","x"\n"2",""\n', "text\nhello, world\nfoo\n", "text\nfoo\nhello, world\n1;2\nx,y\n",
    "\"25/12/2024\",x\n\"26/12/2024\",y\n", "d;v\n25/12/2024;1,5\n", "a,b\r\n\"x\r\ny\",1\r\nz,2\r\n", "a|b\n1|'2|3'\n",
    "\n", "\n\n", "\r\n", 'text\n"a"\n"b"\n"c",9\n"d"\n', 'x\ny\nz "w", q\n"v"\n', 'c\n"a;b"\n"c"\n"d";"e"\n"f"\n',
)  # fmt: skip


@pytest.fixture
def db() -> Iterator[gquery.Connection]:
    with gquery.connect(device="python") as connection:
        yield connection


def _same(db: gquery.Connection, source: str) -> None:
    ours, theirs = db.sql(f"FROM {source}"), duckdb.sql(f"FROM {source}")
    got = (ours.columns, [str(t) for t in ours.types], ours.fetchall())
    assert got == (theirs.columns, [str(t) for t in theirs.types], theirs.fetchall()), source


def _column(path: Path, cells: Any) -> str:
    path.write_text("c,n\n" + "".join(f"{cell},x\n" for cell in cells))
    return f"'{path}'"


@pytest.mark.parametrize("kind", [DAYS, TIMES, MOMENTS], ids=["days", "times", "moments"])
def test_days_and_times(kind: tuple[str, ...], db: gquery.Connection, tmp_path: Path) -> None:
    for n, cell in enumerate(kind):
        if cell in ("1.2.3", "24:30"):  # a timestamp, and an error, to DuckDB alone
            continue
        _same(db, _column(tmp_path / f"{n}.csv", [cell]))
        _same(db, _column(tmp_path / f"{n}.null.csv", ["", cell, "", cell]))
        _same(db, _column(tmp_path / f"{n}.word.csv", [cell, "word"]))


def test_columns_of_days_have_one_format(db: gquery.Connection, tmp_path: Path) -> None:
    cells = ("01/02/2024", "12/25/2024", "25/12/2024", "25.12.2024", "13/01/2024 10:00:00")
    for n, pair in enumerate(itertools.product(cells, repeat=2)):
        path = tmp_path / f"{n}.csv"
        path.write_text("a,b,c\n" + ",".join([*pair, "x"]) + "\n")
        _same(db, f"'{path}'")


@pytest.mark.parametrize("seed", range(8))
def test_many_days(seed: int, db: gquery.Connection, tmp_path: Path) -> None:
    """Each day of the years that Python has, in a format that is found out."""
    rng = random.Random(seed)
    order, sign = rng.choice(("dmY", "mdY", "Ymd")), rng.choice("/.- ")
    days = [(rng.randrange(1000, 9999), rng.randrange(1, 13), rng.randrange(1, 29)) for _ in range(300)]
    days += [(2000, 2, 29), (1900, 12, 31), (2023, 1, 13)]
    cells = [sign.join(f"{dict(zip('Ymd', day, strict=True))[p]:02}" for p in order) for day in days]
    source = _column(tmp_path / "days.csv", cells)
    _same(db, source)
    assert [(d.year, d.month, d.day) for d, _ in db.sql(f"FROM {source}").fetchall()] == days


@pytest.mark.parametrize("text", TEXTS)
def test_dialects(text: str, db: gquery.Connection, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode())
    _same(db, f"'{path}'")


OPTIONS = (
    "dateformat = '%d.%m.%Y'", "dateformat = '%d.%m.%Y', types = {'d': 'DATE'}", "types = {'d': 'VARCHAR'}",
    "all_varchar = true", "comment = '#'", "comment = ''", "force_not_null = ['s']", "column_types = {'n': 'DOUBLE'}",
    "compression = 'none'", "auto_detect = false, header = true, columns = {'d': 'VARCHAR', 's': 'VARCHAR', 'n': 'INTEGER'}",
    "buffer_size = 100000", "encoding = 'utf-8'", "skip = 1", "quote = '\"'", "escape = '\"'", "quote = ''''",
)  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS)
def test_options(options: str, db: gquery.Connection, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("d,s,n\n25.12.2024,,1\n31.01.2025,ö,2\n")
    _same(db, f"read_csv('{path}', {options})")


def test_days_that_do_not_fit_their_format(db: gquery.Connection, tmp_path: Path) -> None:
    source = _column(tmp_path / "x.csv", ["25.12.2024", "2024-12-25"])[1:-1]
    with pytest.raises(errors.FileError, match=r"'2024-12-25' is no day of the format %d.%m.%Y"):
        db.sql(f"FROM read_csv('{source}', dateformat = '%d.%m.%Y', types = {{'c': 'DATE'}})")
    assert str(db.sql(f"FROM read_csv('{source}', dateformat = '%d.%m.%Y')").types[0]) == "VARCHAR"


def test_encodings_and_compression(db: gquery.Connection, tmp_path: Path) -> None:
    text = "a,b\n1,ä\n"
    (tmp_path / "latin.csv").write_bytes(text.encode("latin-1"))
    (tmp_path / "wide.csv").write_bytes(text.encode("utf-16-le"))
    (tmp_path / "packed").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "packed.csv.zst").write_bytes(pa.compress(text.encode(), "zstd", asbytes=True))
    for source in (
        f"read_csv('{tmp_path}/latin.csv', encoding = 'latin-1')", f"read_csv('{tmp_path}/wide.csv', encoding = 'utf-16')",
        f"read_csv('{tmp_path}/packed', compression = 'gzip')", f"'{tmp_path}/packed.csv.zst'",
    ):  # fmt: skip
        _same(db, source)


def test_lines_that_may_be_rows_are(db: gquery.Connection, tmp_path: Path) -> None:
    """DuckDB leaves out some of these."""
    for n, (text, rows) in enumerate((
        ("a,b\n#1,2\n3,4\n", [("#1", 2), ("3", 4)]),
        ("name\nfoo\nbar, baz\n", [("foo",), ("bar, baz",)]),
        ("a\n1\n2,3\n", [("1",), ("2,3",)]),
        ("1\n2\n3,4\n5,6\n", [("1",), ("2",), ("3,4",), ("5,6",)]),
    )):  # fmt: skip
        path = tmp_path / f"{n}.csv"
        path.write_text(text)
        assert db.sql(f"FROM '{path}'").fetchall() == rows


def test_days_of_iso_come_first(db: gquery.Connection, tmp_path: Path) -> None:
    """They are found out by themselves. Behind other days they stay days, where DuckDB makes them timestamps."""
    path = tmp_path / "x.csv"
    path.write_text("a,b\n2024-12-25,25/12/2024\n")
    _same(db, f"'{path}'")
    path.write_text("a,b\n2024-12-25 10:00:00,25/12/2024 10:00:00\n")
    _same(db, f"'{path}'")
    path.write_text("a,b\n25/12/2024,2024-12-25\n")
    assert [str(t) for t in db.sql(f"FROM '{path}'").types] == ["DATE", "DATE"]


def test_rows_are_not_taken_for_lines_before_the_table(db: gquery.Connection, tmp_path: Path) -> None:
    """A file whose rows have different numbers of values is an error: none of them is left out in silence."""
    texts = (
        "a,b,c\n1,2,3\n4,5\n6,7,8\n", "a,b\n1,2\n3,4,5\n6,7\n", "a,b\n1,2,3\n4,5,6\n",
        "a,b\n1,2,\n3,4,5\n",
    )  # fmt: skip
    for n, text in enumerate(texts):
        path = tmp_path / f"{n}.csv"
        path.write_text(text)
        with pytest.raises(errors.FileError, match="Expected"):
            db.sql(f"FROM '{path}'")


def test_types_of_several_files(db: gquery.Connection, tmp_path: Path) -> None:
    for name, text in (("a", "k,v\n1,2024-01-01\n"), ("b", "k,v\nx,word\n"), ("c", "k,v\n1.5,2024-01-02\n"), ("d", "k,v\n")):
        (tmp_path / f"{name}.csv").write_text(text)
    for names in ("ab", "ba", "ac", "abc", "ad", "da"):
        files = [f"{tmp_path}/{n}.csv" for n in names]
        _same(db, f"read_csv({files})")
