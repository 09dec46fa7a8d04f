"""Columns that do not fit a device's limit go through it in chunks: DuckDB's answers, the limit kept by the device's own account.

The interpreter under test refuses a read of a row that is not in the chunk; a CPU that stands for a device counts what lies
there.
"""

from __future__ import annotations

import gc
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.columns.arrow import export_table
from gquery.device.chunks import ChunkBuffers
from gquery.device.section import Section
from gquery.errors import InterruptError, OutOfMemoryError
from gquery.execution import streamed_texts
from gquery.kernels.builtin import text_scan
from gquery.kernels.targets import capabilities as targets
from tests.support.harness import compare, expect
from tests.support.lanes import answer as answer_of_lanes
from tests.support.marks import one_in
from tests.support.tuned import Tune

TARGETS = ["python", "cpu"]
ROWS = 5000
LIMIT = 150_000
CONSTANTS = 1000  # bytes of patterns and the like, which stay with plans


def tables(rows: int = ROWS) -> dict[str, pa.Table]:
    r = np.random.default_rng(8)
    half = r.random(rows) < 0.1
    text = ["x" * (row % 13) + str(row * 7 % 1000) + "é" * (row % 3) for row in range(rows)]
    t = {
        "id": np.arange(rows), "k": r.integers(0, 7, rows), "v": r.integers(0, 10**12, rows), "q": r.integers(0, 50, rows),
        "o": np.sort(r.integers(0, rows // 3 + 1, rows)), "f": r.integers(0, 999, rows) / 8,
        "n": pa.array(r.integers(0, 10**9, rows), mask=half), "nothing": pa.array([None] * rows, pa.int64()),
        "s": pa.array(text, pa.string(), mask=half),
        "w": pa.array([int(x) * 10**20 for x in r.integers(0, 99, rows)], pa.decimal128(38, 0)),
    }  # fmt: skip
    u = {"o": np.arange(0, rows, 5), "p": np.arange(0, rows, 5) % 11}
    return {"t": pa.table(t), "u": pa.table(u)}


TABLES = tables()

QUERIES = [
    "SELECT sum(v * q), count(*), max(v), min(n), sum(f) FROM t WHERE q < 24 AND v < 900000000000",
    "SELECT k, sum(v), count(n), avg(q), sum(w) FROM t GROUP BY k",
    "SELECT count(nothing), sum(nothing), max(nothing), sum(v) FROM t",
    "SELECT count(*), sum(v), min(id) FROM t WHERE s LIKE '%99%' OR s LIKE '%é'",
    "SELECT o, sum(v), count(*) FROM t GROUP BY o HAVING sum(v) > 2500000000000",
    "SELECT id, v, n, q FROM t WHERE v % 97 = 3",
    "SELECT u.p, sum(t.v), count(*) FROM t JOIN u ON t.o = u.o WHERE t.q < 40 GROUP BY u.p",
    "SELECT count(*), sum(u.p) FROM u WHERE o NOT IN (SELECT id FROM t WHERE v % 3 = 0)",
    "SELECT sum(a.c) FROM (SELECT o, count(*) c FROM t WHERE v % 2 = 0 GROUP BY o) a JOIN u ON a.o = u.o",
]


def connection(target: str, limit: int = LIMIT, **made: Any) -> gquery.Connection:
    one = gquery.connect(device=target, devices=[0], threads=2, memory_limit=limit)
    for name, table in (made or TABLES).items():
        one.register(name, table)
    return one


@pytest.fixture(autouse=True)
def nothing_stays(tune: Tune) -> None:
    """No column has room on the device beyond its kernel, and few groups are segments already."""
    tune(tuning.streaming, most_resident=0.0)
    tune(tuning.group_layouts, least_segments=1, least_segments_cpu=1)


def answer(made: gquery.Connection, query: str, among: dict[str, pa.Table] = TABLES) -> None:
    """DuckDB's answer, within the limit."""
    types, want = expect(query, among)
    wrong = compare(made.sql(query).fetchall(), want, False, types)
    assert wrong is None, wrong
    assert made.device.account.peak <= LIMIT


def streamed(made: gquery.Connection, query: str) -> list[str]:
    """What each stage streams."""
    (text,) = made.sql("EXPLAIN ANALYZE " + query).fetchall()[0]
    return re.findall(r"streamed [\d.]+ \w+", text)


def left(made: gquery.Connection) -> int:
    """Bytes that lie on the device while nothing runs."""
    gc.collect()
    return made.device.account.taken


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("query", one_in(2, QUERIES))
def test_answers(target: str, query: str) -> None:
    made = connection(target)
    for _ in range(2):
        answer(made, query)
    assert left(made) < CONSTANTS
    assert streamed(made, query)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows", [0, 1, 1024, 1025])
def test_few_rows(target: str, rows: int) -> None:
    """Tables of no row and of one chunk."""
    few = tables(rows)
    made = connection(target, **few)
    for query in QUERIES:
        answer(made, query, few)


@pytest.mark.parametrize("target", TARGETS)
def test_a_long_text(target: str) -> None:
    """A chunk that is large for its rows is cut again, as far as rows go."""
    texts = {"t": pa.table({"s": ["a" * 20_000 if row == 1500 else "b" * (row % 50) for row in range(6000)]})}
    made = connection(target, **texts)
    answer(made, "SELECT count(*), sum(length(s)) FROM t WHERE s LIKE '%aaa%' OR s LIKE '%bbb'", texts)


@pytest.mark.parametrize("rows", [3000, 5000])
def test_text_scans(rows: int, tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of texts are scanned as they come; a chunk of its own is a text that is longer."""
    tune(tuning.text_scans, least_rows=1, most_frequent=1.0)
    tune(tuning.streaming, chunk_bytes=8000)
    tune(tuning.materialization, unit=256)
    monkeypatch.setitem(targets._BY_NAME, "cpu", replace(targets._BY_NAME["cpu"], scans_text=True))
    seen: list[int] = []
    mark = text_scan.mark_matches

    def noting(texts: text_scan.Texts, *rest: Any) -> None:
        seen.append(texts.rows)
        mark(texts, *rest)

    monkeypatch.setattr(streamed_texts, "mark_matches", noting)
    few = tables(rows)
    words = ("x", "special", "spec")
    long = [None if row % 7 == 0 else "x" * (row % 50) + words[row % 3] + str(row) for row in range(rows)]
    long[rows // 2] = "y" * 9000 + "special"
    given = {"t": few["t"].append_column("l", pa.array(long)), "u": few["u"]}
    made = connection("cpu", **given)
    made.sql("SET interpret_limit = 0")
    for _ in range(2):
        answer(made, "SELECT count(*), sum(id) FROM t WHERE l LIKE '%special%'", given)
        answer(made, "SELECT k, count(*), sum(v) FROM t WHERE l NOT LIKE '%spec%ial%' GROUP BY k", given)
    assert sum(seen) == 4 * rows and len(seen) > 30
    assert left(made) < CONSTANTS + 1000


def test_what_fits_stays(tune: Tune) -> None:
    """Columns have room on the device in the order in which they come; others are streamed, in later runs, too."""
    tune(tuning.streaming, most_resident=0.5)
    made = connection("cpu")
    query = "SELECT sum(v), sum(q), sum(k), sum(f) FROM t"
    for _ in range(3):
        answer(made, query)
        assert 0 < left(made) <= LIMIT / 2
        assert len(streamed(made, query)) == 1
    answer(made, "SELECT count(*) FROM (SELECT DISTINCT o FROM t)")


@pytest.mark.parametrize("n", range(1, 8, 2))
def test_a_copy_that_fails(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is raised once, nothing stays, and the connection answers."""
    made, copy, calls = connection("cpu"), ChunkBuffers._copy, iter(range(1, 1000))

    def failing(*arguments: Any) -> None:
        if next(calls) == n:
            raise MemoryError("a copy")
        copy(*arguments)

    monkeypatch.setattr(ChunkBuffers, "_copy", failing)
    query = "SELECT k, sum(v), sum(f), max(n) FROM t GROUP BY k"
    answer(made, query)  # a stage whose memory ran out runs once more with all room that can be made
    monkeypatch.setattr(ChunkBuffers, "_copy", lambda *_: (_ for _ in ()).throw(MemoryError("a copy")))
    with pytest.raises(OutOfMemoryError):
        made.sql(query).fetchall()
    assert left(made) < CONSTANTS
    monkeypatch.setattr(ChunkBuffers, "_copy", copy)
    answer(made, query)


def test_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    made, copy = connection("cpu"), ChunkBuffers._copy

    def interrupting(*arguments: Any) -> None:
        made.interrupt()
        copy(*arguments)

    query = "SELECT k, sum(v), sum(f), max(n) FROM t GROUP BY k"
    with monkeypatch.context() as patch:
        patch.setattr(ChunkBuffers, "_copy", interrupting)
        with pytest.raises(InterruptError):
            made.sql(query).fetchall()
    assert left(made) < CONSTANTS
    answer(made, query)


@pytest.mark.parametrize("target", TARGETS)
def test_a_limit_that_is_too_small(target: str, tune: Tune) -> None:
    """Two chunks of the fewest rows have to fit: one error with operator, bytes, remedy."""
    tune(tuning.materialization, unit=1024)
    made = connection(target, 12_000)
    with pytest.raises(
        OutOfMemoryError, match=r"cpu:1 in .*two chunks of the columns.* wanted.*Remedies: raise memory_limit"
    ):
        made.sql("SELECT sum(v), sum(f), sum(n) FROM t").fetchall()
    assert left(made) < CONSTANTS
    answer(made, "SELECT sum(q) FROM t")


def test_addresses_of_many_rows() -> None:
    """Where a column of more than 2**32 rows would begin is told exactly."""
    part = Section(np.zeros(4, np.int64), 2**33 + 5)
    assert part.origin(2**45) == 2**45 - 8 * (2**33 + 5)


LANES = [
    "SELECT u.p, sum(t.v), count(*) FROM t JOIN u ON t.o = u.o WHERE t.q < 5 AND t.k > 0 GROUP BY u.p",
    "SELECT o, sum(v), count(*) FROM t GROUP BY o HAVING sum(v) > 2500000000000",
    "SELECT id, v, n FROM t WHERE v % 97 = 3",
    "SELECT count(*), sum(v) FROM t WHERE s LIKE '%99%'",
]


@pytest.mark.parametrize("query", LANES)
def test_a_gpu_s_way(query: str, tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bitmaps, selection vectors and segments of a GPU, over chunks."""
    tune(tuning.materialization, compacted_least_rows=1, compacted_most_selectivity=1.0, compacted_least_probes=0)
    tune(tuning.materialization, compacted_most_heads=1.0)
    few = tables(700)
    made = connection("cpu", 40_000, **few)
    copied: list[int] = []
    copy = ChunkBuffers._copy

    def counting(self: ChunkBuffers, number: int, *rest: Any) -> None:
        copied.append(number)
        copy(self, number, *rest)

    monkeypatch.setattr(ChunkBuffers, "_copy", counting)
    table = answer_of_lanes(made, query, monkeypatch)
    types, want = expect(query, few)
    wrong = compare(list(zip(*(c.to_pylist() for c in export_table(table).columns), strict=True)), want, False, types)
    assert wrong is None, wrong
    assert set(copied) == {0, 1}, "a kernel goes through several chunks"


@pytest.mark.cuda
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("unit", [1024, 32])
def test_answers_on_a_gpu(query: str, unit: int, tune: Tune) -> None:
    """Chunks of page-locked memory that are copied beside the kernels, with and without a selection before."""
    tune(tuning.materialization, unit=unit)
    if unit == 32:
        tune(tuning.materialization, compacted_least_rows=1, compacted_most_selectivity=1.0, compacted_least_probes=0)
    tune(tuning.streaming, chunk_bytes=1 << 20, locked_bytes=1 << 16)
    rows = 300_000
    if rows not in _LARGE:
        _LARGE[rows] = tables(rows)
    types, want = expect(query, _LARGE[rows])
    made = gquery.connect("cuda", memory_limit="64MB")
    made.sql("SET interpret_limit = 0")
    for name, table in _LARGE[rows].items():
        made.register(name, table)
    for _ in range(3):
        wrong = compare(made.sql(query).fetchall(), want, False, types)
        assert wrong is None, wrong
    assert streamed(made, query)


_LARGE: dict[int, dict[str, pa.Table]] = {}
