"""An adversary for those who read pages of Parquet: PyArrow writes random tables in random ways, and gquery gives PyArrow's rows,
whole and filtered under a memory limit, which reads selected rows alone; of damaged files the same rows, or one clear error.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery import tuning
from gquery.errors import FileError
from gquery.io import parquet
from gquery.kernels.builtin import narrowing, parquet_pages
from gquery.kernels.targets import get_target
from tests.support.tuned import Tune

SEEDS = [*range(4), *(pytest.param(n, marks=pytest.mark.slow) for n in range(4, 60))]
DAY = datetime.date(1995, 1, 1)
ENCODINGS = {
    "integers": ("PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"),
    "texts": ("PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"),
}


@pytest.fixture(autouse=True)
def ready(tune: Tune) -> None:
    """Every kernel at once, for columns of any size, and rows selected whatever memory there is."""
    tune(tuning.encoding, compiled_rows=0)
    tune(tuning.reading, selected_memory=0.0, selected_share=2.0, coded_rows=1, one_thread=0)
    for kernel in (*narrowing.LOOPS.values(), *parquet_pages.KERNELS):
        get_target("cpu").compile(kernel.kernel)


def column(kind: str, rows: int, r: random.Random) -> pa.Array:
    few = r.random() < 0.6
    span = r.choice((2, 9, 60)) if few else 10**6
    numbers = [r.randint(-span, span) for _ in range(rows)]
    if r.random() < 0.2:
        numbers.sort()
    null = r.choice((0, 0, 0, 0, 0, 0.01, 0.4, 1))
    made: list[Any] = [None if r.random() < null else n for n in numbers]
    match kind:
        case "text":
            long = r.choice((1, 1, 40))
            return pa.array([None if n is None else f"{'é' * (n % 2)}{n}" * long for n in made], pa.string())
        case "date":
            return pa.array([None if n is None else DAY + datetime.timedelta(n % 3000) for n in made], pa.date32())
        case "time":
            return pa.array(
                [None if n is None else n * 10**6 for n in made], pa.timestamp(r.choice(("us", "us", "ms")))
            )
        case "decimal":
            type_ = pa.decimal128(r.choice((9, 15, 18, 30)), 2)
            return pa.array([None if n is None else Decimal(n) / 100 for n in made], type_)
        case "float":
            return pa.array([None if n is None else n / 4 for n in made], r.choice((pa.float32(), pa.float64())))
        case "bool":
            return pa.array([None if n is None else n > 0 for n in made], pa.bool_())
        case "list":
            return pa.array([None if n is None else [n, None, 3][: n % 4] for n in made], pa.list_(pa.int32()))
        case _:
            return pa.array(made, r.choice((pa.int32(), pa.int64(), pa.int64())))


def table_of(r: random.Random) -> pa.Table:
    kinds = ["int", "text", *r.choices(("int", "text", "date", "time", "decimal", "float", "bool", "list"), k=2)]
    rows = r.choice((0, 1, 70, 900))
    made = [column(kind, rows, r) for kind in kinds]
    fields = [pa.field(f"c{i}", array.type, bool(array.null_count) or r.random() < 0.7) for i, array in enumerate(made)]
    return pa.Table.from_arrays(made, schema=pa.schema(fields))


def options(table: pa.Table, r: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {
        "compression": r.choice(("none", "snappy", "snappy", "zstd", "gzip", "lz4")),
        "version": r.choice(("1.0", "2.4", "2.6")),
        "data_page_version": r.choice(("1.0", "2.0")),
        "data_page_size": r.choice((64, 500, 1 << 20)),
        "write_batch_size": r.choice((1, 16, 1024)),
        "dictionary_pagesize_limit": r.choice((32, 200, 1 << 20)),
        "store_decimal_as_integer": r.random() < 0.6,
        "write_statistics": r.random() < 0.8,
        "write_page_checksum": r.random() < 0.2,
    }
    if r.random() < 0.5:
        return made | {"use_dictionary": r.choice((True, ["c0"], ["c1"]))}
    kinds = {f.name: _kind(f.type) for f in table.schema}
    chosen = {name: r.choice(ENCODINGS[kind]) for name, kind in kinds.items() if kind}
    return made | {"use_dictionary": False, "column_encoding": chosen}


def _kind(type_: pa.DataType) -> str:
    return "integers" if type_ in (pa.int32(), pa.int64()) else "texts" if type_ == pa.string() else ""


def write(path: Path, table: pa.Table, r: random.Random) -> None:
    """Into row groups, of which some are empty."""
    chosen = options(table, r)
    with pq.ParquetWriter(path, table.schema, **chosen) as writer:
        at = 0
        while at < len(table) or at == 0:
            size = r.choice((0, 1, 50, 333, 900))
            writer.write_table(table[at : at + size], row_group_size=max(size, 1))
            at += size or (not len(table))


def reference(path: Path) -> list[tuple[Any, ...]] | None:
    """The rows that PyArrow reads; None where it refuses the file, or a value is none of Python's."""
    try:
        table = pq.read_table(path)
        table.validate(full=True)
        return list(zip(*(c.to_pylist() for c in table.columns), strict=True))
    except (OSError, pa.ArrowException, ValueError, OverflowError):
        return None


def filters(table: pa.Table, r: random.Random) -> Iterator[tuple[str, Any]]:
    """Conditions on columns, and what they say in Python."""
    for at, field in enumerate(table.schema):
        values = [v for v in table.column(at).to_pylist() if v is not None]
        if not values or field.type == pa.list_(pa.int32()):
            continue
        low, high = sorted((r.choice(values), r.choice(values)))

        def between(row: Any, at: int = at, low: Any = low, high: Any = high) -> bool:
            return row[at] is not None and low <= row[at] <= high

        yield f"{field.name} BETWEEN {literal(low)} AND {literal(high)}", between
        if isinstance(low, str):
            yield f"{field.name} = {literal(low)}", lambda row, at=at, low=low: row[at] == low


def literal(value: Any) -> str:
    match value:
        case str():
            return f"'{value}'"
        case datetime.datetime():
            return f"TIMESTAMP '{value}'"
        case datetime.date():
            return f"DATE '{value}'"
        case float():
            return f"{value}::DOUBLE"
        case _:
            return str(value)


def connected() -> gquery.Connection:
    return gquery.connect("python", memory_limit="1GB", threads=2)


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows were selected, each time that some were."""
    seen: list[int] = []
    whole = parquet.ParquetPart.__init__

    def made(self: Any, source: Any, groups: Any, selection: Any = None) -> None:
        if selection is not None:
            seen.append(sum(g.count for g in selection.groups))
        whole(self, source, groups, selection)

    monkeypatch.setattr(parquet.ParquetPart, "__init__", made)
    return seen


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_are_those_of_pyarrow(seed: int, tmp_path: Path) -> None:
    r, path = random.Random(seed), tmp_path / "x.parquet"
    for number in range(5):
        table = table_of(r)
        write(path, table, r)
        want = reference(path)
        assert want is not None
        with connected() as db:
            assert repr(db.sql(f"SELECT * FROM '{path}'").fetchall()) == repr(want), number
        for condition, holds in filters(table, r):
            with connected() as db:
                got = db.sql(f"SELECT * FROM '{path}' WHERE {condition}").fetchall()
            assert repr(got) == repr([row for row in want if holds(row)]), (number, condition)


SELECTED = (
    "i BETWEEN -20 AND 15", "i < -40 OR i > 40", "i = 49", "i > 30 AND i % 2 = 0", "t = 'v3'", "t IN ('v1', 'v5', 'none')",
    "d BETWEEN DATE '1995-01-11' AND DATE '1995-02-09'", "m <= 0.05", "f >= 0 AND i < 0",
)  # fmt: skip


@pytest.mark.parametrize("condition", SELECTED)
def test_selected_rows(condition: str, tmp_path: Path, chosen: list[int]) -> None:
    """By integers, texts, dates, decimals; other columns are read by kernels, by Arrow, and have NULLs."""
    path, n = tmp_path / "x.parquet", list(range(1000))
    table = pa.table({
        "i": pa.array([(7 * k) % 100 - 50 for k in n], pa.int32()), "t": [f"v{k % 10}" for k in n],
        "d": pa.array([DAY + datetime.timedelta(k % 100) for k in n]),
        "m": pa.array([Decimal(k % 10) / 100 for k in n], pa.decimal128(5, 2)),
        "s": [f"text {k}" * (k % 4) for k in n], "o": [None if k % 3 else k for k in n], "f": [k / 4 for k in n],
        "l": [[k] * (k % 3) for k in n],
    })  # fmt: skip
    pq.write_table(table, path, row_group_size=170, store_decimal_as_integer=True)
    with connected() as db, gquery.connect("python") as plain:
        got = db.sql(f"SELECT * FROM '{path}' WHERE {condition}").fetchall()
        assert got == plain.sql(f"SELECT * FROM '{path}' WHERE {condition}").fetchall()
        assert len(chosen) == 1 and len(got) <= chosen[0] < 1000
        again = f"SELECT count(*), min(s), sum(f) FROM '{path}' WHERE {condition.replace('5', '6')}"
        assert db.sql(again).fetchall() == plain.sql(again).fetchall()
        assert len(chosen) <= 1  # what was read so once is read whole the second time


def test_a_selection_that_is_not_worth_it(tmp_path: Path, tune: Tune, chosen: list[int]) -> None:
    """Rows that a filter keeps after all, columns of little size, and connections without a limit."""
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": [0] + [50] * 998 + [100], "y": range(1000)}), path)
    tune(tuning.reading, selected_memory=0.0, selected_share=0.6)
    sql = f"SELECT sum(y) FROM '{path}' WHERE x BETWEEN 40 AND 60"
    with connected() as db:
        assert db.sql(sql).fetchall() == [(998 * 999 // 2,)] and not chosen
    tune(tuning.reading, selected_memory=0.2, selected_share=2.0)
    for limit in ("1GB", None):
        with gquery.connect("python", memory_limit=limit) as db:
            assert db.sql(sql).fetchall() == [(998 * 999 // 2,)] and not chosen


@pytest.mark.parametrize("seed", SEEDS)
def test_damaged_files(seed: int, tmp_path: Path) -> None:
    """Bytes in front of the footer are changed."""
    r, path, right = random.Random(seed), tmp_path / "x.parquet", 0
    for number in range(8):
        table = table_of(r)
        write(path, table, r)
        made = bytearray(path.read_bytes())
        end = len(made) - 8 - int.from_bytes(made[-8:-4], "little")
        for _ in range(r.choice((1, 2, 9)) if end > 4 else 0):
            at = r.randrange(4, min(end, r.choice((30, 300, end)) + 4))
            made[at] = r.choice((made[at] ^ (1 << r.randrange(8)), 0, 255, r.randrange(256)))
        path.write_bytes(made)
        want = reference(path)
        conditions = [("true", lambda row: True), *filters(table, r)]
        for condition, holds in (conditions[0], r.choice(conditions)):
            with connected() as db:
                try:
                    got = repr(db.sql(f"SELECT * FROM '{path}' WHERE {condition}").fetchall())
                except FileError:
                    got = ""
            if want is not None:
                assert got in ("" if condition != "true" else None, repr([row for row in want if holds(row)])), number
                right += bool(got)
    assert right or seed >= 6  # of some seeds all is refused


def damaged(path: Path, change: Any, **options: Any) -> None:
    """A file of a column of three values in many rows, whose first page is changed."""
    table = pa.table({"x": pa.array([n % 3 for n in range(2000)], pa.int64())})
    pq.write_table(table, path, compression="none", write_statistics=False, **options)
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    made = bytearray(path.read_bytes())
    change(made, chunk.data_page_offset, chunk.data_page_offset + chunk.total_compressed_size)
    path.write_bytes(made)


def out_of_range(made: bytearray, start: int, end: int) -> None:
    last = made.index(b"PAR1", 4) if b"PAR1" in made[4:-4] else len(made)
    footer = len(made) - 8 - int.from_bytes(made[-8:-4], "little")
    assert last > start
    made[footer - 200 : footer - 100] = b"\xff" * 100  # codes of 2 bits: 3 is none of them


def sizes(made: bytearray, start: int, _: int) -> None:
    assert made[start : start + 2] == b"\x15\x00" or made[start : start + 2] == b"\x15\x06"
    made[start + 3 : start + 5] = b"\xf0\xff"  # more bytes than the file has


def nothing_left(made: bytearray, start: int, end: int) -> None:
    footer = len(made) - 8 - int.from_bytes(made[-8:-4], "little")
    made[footer - 300 : footer] = bytes(300)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("change", [out_of_range, sizes, nothing_left])
def test_pages_that_lie(change: Any, version: str, tmp_path: Path) -> None:
    """A code that is not in the dictionary, a size that is not there, a page that ends early."""
    path = tmp_path / "x.parquet"
    damaged(path, change, data_page_version=version)
    for condition in ("true", "x = 1"):
        with connected() as db:
            if reference(path) is None:
                with pytest.raises(FileError, match="Cannot read the Parquet file"):
                    db.sql(f"SELECT * FROM '{path}' WHERE {condition}").fetchall()
            else:
                want = [row for row in reference(path) or () if condition == "true" or row[0] == 1]
                assert db.sql(f"SELECT * FROM '{path}' WHERE {condition}").fetchall() == want
