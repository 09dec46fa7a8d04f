"""What a path leads to in many texts of JSON at once: as Python's reader says, text by text, and as DuckDB does."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
import gquery.kernels.host_calls  # says how texts are gone through
from gquery import tuning
from gquery.functions import json_scan
from gquery.functions.json_paths import MISSING, part_of, path_of
from gquery.kernels.primitives import json_scan as scan
from gquery.runtime.json_values import is_json, value_of, written
from tests.support.harness import assert_same
from tests.support.tuned import Tune

PATHS = [
    "$", "$.a", "$.a.b", "$[0]", "$[1].a", "$.a[1]", "b", "/a/0", "/0", "/a/b", "$.é", '$."a b"', "$[2]", "$.a[0].c", "$.a.a",
]  # fmt: skip
NAMES = ["a", "b", "c", "é", "0", "1", 'x"', "a b"]
NUMBERS = [0, 1, -1, 12, 10**17, 10**18, 10**19, -5, 2**63, 123456789012345678]
DOUBLES = [0.0, 1.5, -0.0, 0.1, 0.001, 1e-5, 1e22, 1.25e10, 123456789.125, 3.14159265358979, 100.0]
TEXTS = ["", "a", 'x"y', "é", "b\\", "line\n", "\1", "0", "日本", "😀"]
ANSWERS = ["as_json", "as_text", "as_scalar", "type_names", "lengths", "are_there", "are_json"]
BREAKS = ["", ",", "}", "]", '"', "1", " ", "\\", "x", "\\ud8", "00", "-"]


def value(r: random.Random, depth: int = 0) -> Any:
    match r.randrange(10 if depth < 4 else 6):
        case 0:
            return None
        case 1:
            return r.random() < 0.5
        case 2:
            return r.choice(NUMBERS)
        case 3:
            return r.choice(DOUBLES)
        case 4 | 5:
            return r.choice(TEXTS)
        case 6 | 7:
            return [value(r, depth + 1) for _ in range(r.randrange(4))]
        case _:
            return {r.choice(NAMES): value(r, depth + 1) for _ in range(r.randrange(4))}


def text(r: random.Random, is_broken: bool) -> str:
    separators = r.choice([(",", ":"), (", ", ": "), (" ,  ", " :\n")])
    made = json.dumps(value(r), ensure_ascii=r.random() < 0.3, separators=separators)
    if is_broken and r.random() < 0.3:
        at = r.randrange(len(made))
        made = made[:at] + r.choice(BREAKS) + made[at + r.randrange(2) :]
    return made.replace('"a":', '"a":1,"a":', 1) if r.random() < 0.1 else made


def texts(seed: int, rows: int, is_broken: bool) -> list[str | None]:
    r = random.Random(seed)
    return [None if r.random() < 0.05 else text(r, is_broken) for _ in range(rows)]


@pytest.mark.parametrize(
    ("path", "is_compiled"), [*[(path, True) for path in PATHS], ("$", False), ("$.a.b", False), ("/a/0", False)]
)
def test_parts_are_what_pythons_reader_finds(path: str, is_compiled: bool, tune: Tune) -> None:
    tune(tuning.built_in_kernels, compiled_texts=0, interpreted_rows=0 if is_compiled else 10**9, compiled_after=10**9)
    values, steps = texts(len(path), 1500 if is_compiled else 600, True), path_of(path)
    parts = json_scan.parts_at(pa.array(values), steps)
    assert parts is not None
    answered = 0
    for n, whole in enumerate(values):
        kind = int(parts.kinds[n])
        if whole is None or kind == scan.ASK:
            continue
        answered += 1
        assert is_json(whole), whole
        start = int(parts.starts[n])
        raw = parts.data[start : start + int(parts.sizes[n])].tobytes().decode()
        found = part_of(value_of(whole), steps)
        assert (found is MISSING) == (kind == scan.MISSING), whole
        if found is MISSING:
            continue
        assert written(value_of(raw)) == written(found), whole
        if kind in (scan.NULL, scan.TRUE, scan.FALSE, scan.INTEGER, scan.DECIMAL, scan.TEXT, 12, 13):
            assert raw == written(found), whole
        if isinstance(found, list):
            assert int(parts.elements[n]) == len(found), whole
    assert answered > len(values) / 2


@pytest.mark.parametrize("path", ["$", "$.a"])
@pytest.mark.parametrize("answer", [a for n, a in vars(json_scan).items() if n in ANSWERS], ids=ANSWERS)
def test_what_lies_under_null_is_nothing(answer: json_scan.Answer, path: str, tune: Tune) -> None:
    tune(tuning.built_in_kernels, compiled_texts=0)
    under = ['{"a": "\\n"}', '{"a": {"b": 1.50}}', "1.50", "{", '{"a":1}', ""] * 100
    whole = pa.array(under)
    hidden = pa.Array.from_buffers(pa.string(), len(under), [pa.py_buffer(bytes(len(under) // 8)), *whole.buffers()[1:]])
    assert hidden.null_count == len(under)
    types = {"type_names": pa.string(), "lengths": pa.uint64(), "are_there": pa.bool_(), "are_json": pa.bool_()}
    reader = json_scan.Reader(answer, str, str, types.get(answer.__name__, pa.string()))
    made = json_scan.by_parts(hidden, path_of(path), reader)
    assert made.null_count == len(under)


def test_what_is_rare_is_asked(tune: Tune) -> None:
    tune(tuning.built_in_kernels, compiled_texts=0)
    rare = ["", " ", "1 2", "[1,]", "nan", '"\\ud800"', '"\\ud83d\\ude00"', "01", "-", "1.", ".5", "1e", '"a', '"\n"', "[", "{}}"]
    deep = "[" * 70 + "]" * 70
    parts = json_scan.parts_at(pa.array([*rare, deep] * 40), ())
    assert parts is not None and (parts.kinds == scan.ASK).all()


def test_kinds_are_the_kernels() -> None:
    names = ["ASK", "MISSING", "NULL", "TRUE", "FALSE", "INTEGER", "DECIMAL", "OTHER_NUMBER", "TEXT", "ESCAPED", "OBJECT",
             "ARRAY", "COMPACT_OBJECT", "COMPACT_ARRAY"]  # fmt: skip
    assert [getattr(json_scan, n) for n in names] == [getattr(scan, n) for n in names] == list(range(14))


READERS = ["json_extract", "json_extract_string", "json_value", "json_type", "json_array_length", "json_exists"]
TABLES = {"t": pa.table({"n": np.arange(700), "j": texts(7, 700, False)})}


@pytest.mark.parametrize("reader", READERS)
def test_answers_are_duckdbs(reader: str, tune: Tune) -> None:
    tune(tuning.built_in_kernels, compiled_texts=0, interpreted_rows=0)
    items = ", ".join(f"{reader}(j, '{path}') AS c{n}" for n, path in enumerate(PATHS))
    assert_same(f"SELECT n, {items} FROM t", TABLES)


FAR = ["/99999999999999999999999", "/a/99999999999999999999", "$[999999999999999999]", "/٣", "$.٣", "/00"]


@pytest.mark.parametrize("path", FAR)
def test_places_beyond_all_arrays(path: str, tune: Tune) -> None:
    tune(tuning.built_in_kernels, compiled_texts=0, interpreted_rows=0)
    shapes = ['[0, 1, 2, %d, {"a": [1]}]', '{"a": [5], "99999999999999999999999": %d}', '{"٣": %d, "00": 2}']
    rows = [shapes[n % 3] % n if n % 4 else None for n in range(1200)]  # all different: else they are looked into once each
    with gquery.connect(device="cpu") as db:
        sql = f"SELECT json_extract(j, '{path}'), json_exists(j, '{path}') FROM t"
        db.register("t", pa.table({"j": rows}))
        many = db.sql(sql).fetchall()
        few = [row for low in range(0, 1200, 300) for row in _few(db, pa.table({"j": rows[low : low + 300]}), sql)]
        assert many == few


def test_few_and_many_rows_are_alike(tune: Tune) -> None:
    tune(tuning.built_in_kernels, compiled_texts=0, interpreted_rows=0)
    broken = pa.table({"n": np.arange(1200), "j": texts(9, 1200, True)})
    with gquery.connect(device="cpu") as db:
        db.register("t", broken)
        items = ", ".join(f"{f}(TRY_CAST(j AS JSON), '{p}') AS {f}_{n}" for f in READERS for n, p in enumerate(PATHS))
        sql = f"SELECT n, json_valid(j) AS ok, json_keys(TRY_CAST(j AS JSON)) AS names, {items} FROM t ORDER BY n"
        many = db.sql(sql).fetchall()
        few = [row for low in range(0, 1200, 400) for row in _few(db, broken.slice(low, 400), sql)]
    assert many == few


def _few(db: gquery.Connection, rows: pa.Table, sql: str) -> list[tuple[Any, ...]]:
    db.register("t", rows)
    return db.sql(sql).fetchall()


def test_malformed_texts_are_errors(tune: Tune) -> None:
    tune(tuning.built_in_kernels, compiled_texts=0, interpreted_rows=0)
    rows = [f'{{"a": {n}}}' for n in range(2000)]
    with gquery.connect(device="cpu") as db:
        db.register("t", pa.table({"j": rows}))
        assert db.sql("SELECT sum((j->>'$.a')::INT) FROM t").fetchall() == [(1999000,)]
        db.register("t", pa.table({"j": [*rows, "{"]}))
        with pytest.raises(gquery.ConversionError, match="malformed JSON"):
            db.sql("SELECT j->>'$.a' FROM t").fetchall()
