"""What is kept is owned: data that changes under a connection, and results that are written to, change no answer."""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import gquery
from gquery import tuning
from gquery.columns.ownership import Origin, copied
from gquery.errors import DataError, FileError
from gquery.runtime.threads import run_phases
from tests.support.tuned import Tune

ROWS = 3000
SELF_JOIN = "SELECT count(*) FROM {t} a JOIN {t} b ON a.o = b.o"
QUERIES = (
    SELF_JOIN,
    "SELECT o, count(*), sum(f) FROM {t} GROUP BY o ORDER BY o LIMIT 5",
    "SELECT o, f, s FROM {t} ORDER BY f, o LIMIT 5",
    "SELECT count(DISTINCT o), min(o), max(o), sum(f) FROM {t}",
    "SELECT count(*) FROM {t} WHERE s >= 'v5' AND f > 0.5",
)


def arrays() -> dict[str, Any]:
    generator = np.random.default_rng(5)
    f = generator.integers(0, 2**20, ROWS) / 2**20  # sums of which are exact, whoever adds them in whatever order
    return {"o": np.arange(ROWS) % 1000, "f": f, "w": np.arange(ROWS) << 40}


def strings() -> list[str]:
    return [f"v{i}" for i in range(ROWS)]


@pytest.fixture(params=["python", "cpu"])
def db(request: Any) -> Iterator[gquery.Connection]:
    with gquery.connect(device=request.param) as connection:
        yield connection


Forms = dict[str, Callable[[dict[str, Any]], Any]]
FORMS: Forms = {
    "dict": lambda a: a | {"s": strings()},
    "arrow": lambda a: pa.table({k: pa.array(v) for k, v in a.items()} | {"s": pa.array(strings())}),
    "dictionary": lambda a: pa.table(
        {k: pa.DictionaryArray.from_arrays(pa.array(np.arange(ROWS)), pa.array(v)) for k, v in a.items()}
        | {"s": pa.array(strings()).dictionary_encode()}
    ),
    "pandas": lambda a: pd.DataFrame(a | {"s": strings()}, copy=False),
    "polars": lambda a: pl.DataFrame(a | {"s": strings()}),
    "stream": lambda a: pa.table({k: pa.array(v) for k, v in a.items()} | {"s": pa.array(strings())}).to_reader(),
}


def answers(db: gquery.Connection, name: str) -> list[Any]:
    return [db.sql(query.format(t=name)).fetchall() for query in QUERIES]


def spoil(values: dict[str, Any]) -> None:
    values["o"][5], values["o"][6], values["w"][:] = 2**30, -(2**62), -1
    values["f"][:] = -5.0


@pytest.mark.parametrize("form", FORMS)
def test_arrays_below_a_table_change(db: gquery.Connection, form: str) -> None:
    values = arrays()
    db.register("t", FORMS[form](values))
    before = answers(db, "t")
    spoil(values)
    assert answers(db, "t") == before


def test_a_table_holds_what_its_data_were_when_it_was_registered(db: gquery.Connection) -> None:
    values = arrays()
    frame = pd.DataFrame(arrays() | {"s": strings()})
    db.register("t", values | {"s": strings()})
    db.register("frame", frame)
    data = db.from_data(values)
    spoil(values)
    frame.loc[5, "o"], frame["f"], frame.loc[7, "s"] = 2**30, -5.0, "z"
    with gquery.connect(device="python") as fresh:
        fresh.register("t", arrays() | {"s": strings()})
        expected = answers(fresh, "t")
    assert answers(db, "t") == expected
    assert answers(db, "frame") == expected
    assert data.filter("o > 999 OR o < 0 OR f < 0").fetchall() == []
    frame = pd.DataFrame({"o": np.arange(5)})
    db.register("frame", frame)
    assert db.sql(SELF_JOIN.format(t="frame")).fetchall() == [(5,)]
    frame.loc[4, "o"] = 0
    db.register("frame", frame)
    assert db.sql(SELF_JOIN.format(t="frame")).fetchall() == [(7,)]


def test_a_variable_is_read_by_each_sql(db: gquery.Connection) -> None:
    frame = pd.DataFrame({"o": np.arange(1000) % 500, "f": np.zeros(1000)})
    pair = {"o": frame["o"].to_numpy().copy(), "f": np.zeros(1000)}
    for name in ("frame", "pair"):
        assert db.sql(SELF_JOIN.format(t=name)).fetchall() == [(2000,)]
    before = [db.sql(f"SELECT max(o), sum(f) FROM {name}") for name in ("frame", "pair")]
    frame.loc[5, "o"], frame["f"] = 2**30, 1.0
    pair["o"][5], pair["f"][:] = 2**30, 1.0
    assert [r.fetchall() for r in before] == [[(499, 0.0)]] * 2
    for name in ("frame", "pair"):
        assert db.sql(SELF_JOIN.format(t=name)).fetchall() == [(1998,)]
        assert db.sql(f"SELECT max(o), sum(f) FROM {name}").fetchall() == [(2**30, 1000.0)]


@pytest.mark.parametrize("rows", [1000, 120_000])
def test_large_and_small_columns_are_copied(rows: int, tune: Tune) -> None:
    """Columns that are cut into pieces, those that are viewed, and those whose bounds or NULLs a change falsifies."""
    tune(tuning.encoding, one_thread=20_000, piece=1 << 15)
    tune(tuning.ownership, copied_rows=1 << 15)
    numbers = np.arange(rows)
    values = {
        "narrowed": numbers % 100, "kept": numbers << 32, "float": numbers / 8, "byte": (numbers % 3).astype(np.int8),
        "truth": numbers % 2 == 0, "wide": (numbers % 50).astype(np.uint64) + np.uint64(2**63),
    }  # fmt: skip
    with gquery.connect(device="cpu") as db:
        query = "SELECT " + ", ".join(f"min({c}), max({c}), count({c}), count(*)" for c in values) + " FROM t"
        for held in (values, pa.table(values), pd.DataFrame(values, copy=False)):
            db.register("t", held)
            before = db.sql(query).fetchall()
            kept = {c: v.copy() for c, v in values.items()}
            for v in values.values():
                v[:] = v[::-1].copy()
                v[: rows // 2] = 1
            assert db.sql(query).fetchall() == before
            for c, v in kept.items():
                values[c][:] = v


def handed_out(relation: Any) -> Iterator[Any]:
    """Every NumPy array that a relation's ways out give, made writable where that can be."""
    yield from relation.fetchnumpy().values()
    for name in relation.columns:
        column = relation.column(name)
        yield column.to_numpy()
        yield np.asarray(column)
        yield column.values
        yield np.from_dlpack(column)
        yield np.from_dlpack(First(column))
        for chunk in relation.to_arrow_table().column(name).chunks:
            yield from (np.frombuffer(b, np.uint8) for b in chunk.buffers() if b is not None)
            yield chunk.to_numpy(zero_copy_only=False)
    for frame in (relation.df(), relation.df(copy=False), relation.df("pyarrow")):
        yield from (frame[c].to_numpy() for c in frame.columns)
        yield from (b for b in frame._mgr.arrays if isinstance(b, np.ndarray))
    yield from (s.to_numpy() for s in relation.pl())


class First:
    """An array by the first version of DLPack, which knows no arrays that are only read."""

    def __init__(self, column: Any) -> None:
        self.column = column

    def __dlpack__(self, **_: Any) -> Any:
        return self.column.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self.column.__dlpack_device__()


@pytest.mark.parametrize(
    "query", ["FROM t", "SELECT o + 0 AS o, f FROM t", "FROM kept", "SELECT o, f FROM t LIMIT 1000"]
)
def test_results_are_written_to(db: gquery.Connection, query: str) -> None:
    db.register("t", {"o": np.arange(ROWS) << 40, "f": np.arange(ROWS) / 8})
    db.sql("CREATE TABLE kept AS FROM t")
    totals = "SELECT sum(o), sum(f), max(o), count(DISTINCT o) FROM {}"
    result = db.sql(query)
    db.register("again", result)
    before = [db.sql(totals.format(name)).fetchall() for name in ("t", "kept", "again")]
    written = 0
    for array in handed_out(result):
        try:
            array.flags.writeable = True
            array[:] = 1
            written += 1
        except (ValueError, TypeError):
            continue
    frame = result.df()
    frame.loc[0, "o"] = 77  # which a frame that is a copy allows
    assert [db.sql(totals.format(name)).fetchall() for name in ("t", "kept", "again")] == before
    assert written


def test_a_stored_sum_stays(db: gquery.Connection) -> None:
    values = np.arange(6.0)
    db.register("t", pa.table({"x": values}))
    db.sql("CREATE TABLE kept AS SELECT x FROM t")
    result = db.sql("SELECT x FROM t")
    assert result.fetchall()
    values[:] = -1
    assert db.sql("SELECT sum(x) FROM kept").fetchall() == [(15.0,)]
    assert sum(result.to_arrow_table().column("x").to_pylist()) == 15


def test_memory_that_goes_away(db: gquery.Connection) -> None:
    """Arrow over memory that its owner frees or overwrites: what was used once is not read there again."""
    memory = (ctypes.c_double * ROWS)(*range(ROWS))
    array = pa.Array.from_buffers(pa.float64(), ROWS, [None, pa.py_buffer(memory)])
    db.register("t", pa.table({"x": array}))
    before = db.sql("SELECT sum(x), count(*) FROM t").fetchall()
    ctypes.memset(memory, 255, ctypes.sizeof(memory))
    assert db.sql("SELECT sum(x), count(*) FROM t").fetchall() == before


# ---- Arrow that is not valid ---------------------------------------------------------------------------------------


def raw(type_: pa.DataType, rows: int, *buffers: Any) -> pa.Array:
    """An array that nobody has checked, as another library's C stream may hold it."""
    return pa.Array.from_buffers(type_, rows, [None if b is None else pa.py_buffer(b) for b in buffers])


def words(*values: int, type_: Any = np.int32) -> Any:
    return np.array(values, type_)


DAMAGED: dict[str, Callable[[], pa.Array]] = {
    "no UTF-8": lambda: raw(pa.string(), 2, None, words(0, 1, 2), b"\xff\xfe"),
    "offsets that fall": lambda: raw(pa.string(), 3, None, words(0, 3, 1, 3), b"abc"),
    "offsets beyond": lambda: raw(pa.large_string(), 3, None, words(0, 900, 1, 3, type_=np.int64), b"abc"),
    "codes beyond": lambda: pa.DictionaryArray.from_arrays(words(0, 7), pa.array(["x"]), safe=False),
    "negative codes": lambda: pa.DictionaryArray.from_arrays(words(0, -7), pa.array(["x"]), safe=False),
    "a dictionary without UTF-8": lambda: pa.DictionaryArray.from_arrays(
        words(0, 0), raw(pa.string(), 1, None, words(0, 1), b"\xff"), safe=False
    ),
    "decimals": lambda: raw(pa.decimal128(5, 2), 1, None, words(10**9, 0, type_=np.int64)),
    "wide decimals": lambda: raw(pa.decimal128(5, 2), 1, None, words(1, 5, type_=np.int64)),
    "dates within a day": lambda: raw(pa.date64(), 1, None, words(12345, type_=np.int64)),
    "views": lambda: raw(pa.string_view(), 1, None, words(50, 0, 7, 9)),
    "views beyond": lambda: raw(pa.string_view(), 1, None, words(50, 0x61616161, 0, 9), b"a" * 20),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_arrow_is_refused_by_name(db: gquery.Connection, damage: str) -> None:
    array = DAMAGED[damage]()
    given = pa.table({"good": pa.array(range(len(array))), "bad": array})
    for data in (given, {"good": list(range(len(array))), "bad": array}):
        with pytest.raises(DataError, match=r'Column "bad" of t is not valid Arrow data: '):
            db.register("t", data)
            db.sql("SELECT min(bad), count(DISTINCT bad) FROM t").fetchall()
        if isinstance(data, pa.Table):
            assert db.sql("SELECT count(good) FROM t").fetchall() == [(len(array),)]
    with pytest.raises(DataError, match='Column "bad" of given'):
        db.sql("SELECT bad FROM given").fetchall()
    assert db.sql("SELECT 1").fetchall() == [(1,)]


def test_copies_are_equal() -> None:
    """Slices of arrays of many types, with NULLs, at offsets of every kind."""
    one = pa.array([None, True, False])
    samples = [
        one, one.cast(pa.int8()), pa.array([1, None, -3]), pa.array([1.5, None, 2.5], pa.float16()),
        pa.array(["a", None, "ccc" * 9]), pa.array(["a", None, "ccc" * 9], pa.large_string()),
        pa.array(["a", None, "ccc" * 9], pa.string_view()), pa.array(["a", None, "b"]).dictionary_encode(),
        pa.array([[1], None, [2, 3]]), pa.array([{"x": 1}, None, {"x": 2}]),
        pa.array([b"abc", None, b"d"]), pa.array([b"abc", None, b"def"], pa.binary(3)), pa.nulls(3),
        pa.array([1, None, 3]).cast(pa.decimal128(30, 2)), pa.array([1, None, 3]).cast(pa.decimal256(60, 2)),
        pa.array([1, None, 3], pa.timestamp("ns", "UTC")), pa.array([1, None, 3], pa.time32("s")),
        pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int8())),
        pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["x", "y"])),
    ]  # fmt: skip
    chance = random.Random(3)
    for sample in samples:
        array = pa.concat_arrays([sample] * 10)
        for _ in range(20):
            low = chance.randrange(30)
            part = array.slice(low, chance.randrange(31 - low))
            made = copied(part)
            made.validate(full=True)
            if pa.types.is_run_end_encoded(part.type):  # these come as plain values
                assert made.type == part.type.value_type and made.to_pylist() == part.to_pylist()
            else:
                assert made.type == part.type and made.equals(part)
            theirs = {b.address for b in part.buffers() if b is not None and b.size}
            assert not len(part) or not theirs & {b.address for b in made.buffers() if b is not None and b.size}


def taken_by_threads(array: pa.ChunkedArray, tune: Tune) -> pa.ChunkedArray:
    """A column as threads take it, in pieces that are small."""
    tune(tuning.ownership, piece_rows=3, piece_bytes=5, long_column=1)
    return run_phases([Origin("t", is_shared=True).taking(array, "bad")], 2)[0]


def test_long_text_is_taken_in_pieces(tune: Tune) -> None:
    """Chunks and slices of text with NULLs, ASCII and not, become one array in memory of its own."""
    chance = random.Random(4)
    for type_ in (pa.string(), pa.large_string()):
        for words_ in (["a", "", "bcd" * 3], ["a", None, "ß€", "x" * 20]):
            whole = pa.array([chance.choice(words_) for _ in range(40)], type_)
            for _ in range(10):
                cuts = sorted(chance.sample(range(40), 4))
                array = pa.chunked_array([whole.slice(a, b - a) for a, b in itertools.pairwise(cuts)], type_)
                made = taken_by_threads(array, tune)
                made.validate(full=True)
                assert made.num_chunks == 1 and made.type == type_ and made.to_pylist() == array.to_pylist()
                assert made.chunk(0).buffers()[2].address != whole.buffers()[2].address


def test_long_columns_of_one_width_and_of_codes_are_taken_in_pieces(tune: Tune) -> None:
    """Chunks and slices with NULLs keep their chunks, and dictionaries of their own, in memory of ours."""
    chance = random.Random(5)
    numbers = [chance.choice([0, 1, -7, None, 99]) for _ in range(40)]
    texts = pa.array([None if n is None else f"t{n}" for n in numbers]).dictionary_encode()
    decimals = pa.array(numbers, pa.int64()).cast(pa.decimal128(21, 2))
    for whole in (pa.array(numbers, pa.float64()), pa.array(numbers, pa.int16()), decimals, texts):
        for full in (whole, whole.drop_null()):
            for _ in range(10):
                cuts = sorted(chance.sample(range(len(full)), 4))
                array = pa.chunked_array([full.slice(a, b - a) for a, b in itertools.pairwise(cuts)])
                made = taken_by_threads(array, tune)
                made.validate(full=True)
                assert made.type == array.type and made.num_chunks == array.num_chunks and made.equals(array)
                theirs = {b.address for c in array.chunks for b in buffers_of(c)}
                assert not theirs & {b.address for c in made.chunks for b in buffers_of(c)}


def buffers_of(array: pa.Array) -> list[pa.Buffer]:
    """Those with bytes, the dictionary's among them."""
    inner = array.dictionary.buffers() if pa.types.is_dictionary(array.type) else []
    return [b for b in [*array.buffers(), *inner] if b is not None and b.size]


@pytest.mark.parametrize("damage", ["a code beyond", "a code below", "a dictionary", "digits"])
def test_a_long_column_that_is_damaged_is_refused_by_name(damage: str, tune: Tune) -> None:
    labels = pa.array(["a", "b"])

    def coded(codes: list[int], values: pa.Array = labels) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), values, safe=False)

    match damage:
        case "a code beyond":
            array = coded([0, 1] * 5 + [2])
        case "a code below":
            array = coded([0, 1] * 5 + [-1])
        case "a dictionary":
            array = coded([0] * 9, DAMAGED["no UTF-8"]())
        case _:
            array = pa.Array.from_buffers(
                pa.decimal128(3, 0), 9, pa.array([5] * 8 + [1000], pa.decimal128(9, 0)).buffers()
            )
    with pytest.raises(DataError, match=r'Column "bad" of t is not valid Arrow data: '):
        taken_by_threads(pa.chunked_array([array]), tune)


@pytest.mark.parametrize("damage", ["no UTF-8", "offsets that fall", "offsets beyond"])
def test_long_text_that_is_damaged_is_refused_by_name(damage: str, tune: Tune) -> None:
    good, bad = pa.array(["ab"] * 7), DAMAGED[damage]()
    with pytest.raises(DataError, match=r'Column "bad" of t is not valid Arrow data: '):
        taken_by_threads(pa.chunked_array([good.cast(bad.type), bad, good.cast(bad.type)]), tune)


# ---- files that change ---------------------------------------------------------------------------------------------

KINDS = ("csv", "parquet", "ipc", "stream", "json")
CHANGES = {
    "the same columns": pa.table({"a": [7, 8, 9], "b": ["x", "y", "w"]}),
    "their order": pa.table({"b": ["x", "y", "z"], "a": [1, 2, 3]}),
    "a type": pa.table({"a": [1.5, 2.5], "b": ["x", "y"]}),
    "a NULL": pa.table({"a": [1, None], "b": ["x", "y"]}),
    "a column less": pa.table({"a": [7]}),
}


def write(table: pa.Table, path: Path, kind: str) -> None:
    """A file in place of what was there, with a time of its own."""
    new = path.with_suffix(".new")
    match kind:
        case "csv":
            csv.write_csv(table, new)
        case "parquet":
            pq.write_table(table, new)
        case "json":
            new.write_text("\n".join(json.dumps(row) for row in table.to_pylist()))
        case _:
            with (pa.ipc.new_file if kind == "ipc" else pa.ipc.new_stream)(str(new), table.schema) as file:
                file.write_table(table)
    os.replace(new, path)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", KINDS)
def test_files_change_between_planning_and_running(tmp_path: Path, kind: str, change: str) -> None:
    path, after = tmp_path / "x.data", CHANGES[change]
    write(pa.table({"a": [1, 2], "b": ["p", "q"]}), path, kind)
    with gquery.connect(device="python") as db:
        read = f"read_{'ipc' if kind == 'stream' else kind}"
        whole = getattr(db, read)(path)
        derived = whole.filter("a > 0")
        text = db.sql(f"SELECT b, a + 1 AS a FROM {read}('{path}')")
        assert db.sql(f"SELECT count(*) FROM {read}('{path}')").fetchall() == [(2,)]
        write(after, path, kind)
        rows = [tuple(row.values()) for row in after.to_pylist()]
        for relation, expected in ((whole, rows), (derived, [r for r in rows if r[0] is not None])):
            is_null_known = change == "a NULL" and relation.bound_query().outputs[0].nullable
            if change == "the same columns" or is_null_known:
                assert relation.fetchall() == expected
            else:
                with pytest.raises(FileError, match="make it anew"):
                    relation.fetchall()
        if "b" in after.column_names:  # SQL is bound anew
            assert [b for b, _ in text.fetchall()] == after["b"].to_pylist()
        assert db.sql(f"FROM {read}('{path}')").fetchall() == rows


@pytest.mark.parametrize("kind", KINDS)
def test_files_end_early_once_they_are_known(tmp_path: Path, kind: str) -> None:
    """No file is mapped: one that is cut short, in place, gives an error or what was read before, and never a signal."""
    path, rows = tmp_path / "x.data", 50_000
    write(pa.table({"a": np.arange(rows), "b": [f"text {n}" for n in range(rows)]}), path, kind)
    size = path.stat().st_size
    with gquery.connect(device="python") as db:
        read = f"read_{'ipc' if kind == 'stream' else kind}"
        relation = getattr(db, read)(path)
        query = f"SELECT sum(a), min(b), max(b) FROM {read}('{path}')"
        expected = db.sql(query).fetchall()
        for length in (size // 2, 40, 0):
            os.truncate(path, length)
            for run in (relation.fetchall, lambda: db.sql(query).fetchall()):
                try:
                    assert run() != expected or kind in ("csv", "json")
                except gquery.Error:
                    continue
        assert db.sql("SELECT 1").fetchall() == [(1,)]


def test_a_file_changes_while_it_is_read(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a\n1\n")
    with gquery.connect(device="python") as db:
        monkeypatch.setattr("gquery.io.files.File.stream", lambda *_: _changing(path))
        with pytest.raises(FileError, match="has changed while it was read"):
            db.sql(f"FROM '{path}'")


def _changing(path: Path) -> Any:
    with path.open("a") as file:
        file.write("2\n")
    return pa.input_stream(str(path))
