"""Predicates that are tested by text scans, in whole queries: a CPU that scans as a GPU does, lanes of a GPU, and a GPU."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.columns.arrow import export_table
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.execution import prepare, streamed_texts
from gquery.expression.types import PhysicalType
from gquery.kernels.builtin import text_scan
from gquery.kernels.kernel import Kernel
from gquery.kernels.patterns import ScannedPattern
from gquery.kernels.targets import begin as begin_with
from gquery.kernels.targets import capabilities as targets
from gquery.kernels.targets.base import Perhaps, Target
from tests.support.harness import assert_same
from tests.support.lanes import answer
from tests.support.marks import one_in
from tests.support.tuned import Tune

PREDICATES = [
    "s LIKE '%special%'", "s NOT LIKE '%special%'", "s NOT LIKE '%special%requests%'", "s LIKE 'sp%special%'",
    "s LIKE '%specialrequests%'", "contains(s, 'special')", "NOT contains(s, 'request')", "s LIKE '%50!%%requests%' ESCAPE '!'",
    "s LIKE '%日本語%'", "s LIKE '%special%' OR s LIKE '%requests%'", "s NOT LIKE '%special%' AND s NOT LIKE '%requests%'",
    "(s LIKE '%special%') IS NULL", "CASE WHEN s LIKE '%special%' THEN i > 100 ELSE s LIKE '%requests%' END",
    "u LIKE '%special%' AND s LIKE '%requests%'", "s LIKE '%special%' AND i % 3 = 1",
    "s LIKE '%_special%'", "s ILIKE '%SPECIAL%'",
    "s LIKE '%sp%' AND u NOT LIKE '%absent%'", "u LIKE '%special%special%'", "s LIKE NULL", "n LIKE '%special%'",
]  # fmt: skip


@cache
def tables() -> dict[str, pa.Table]:
    r = random.Random(8)
    pieces = ["special", "requests", "specia", "l", " ", "日本語", "50%", "é", "sp", "x"]
    texts = ["".join(r.choices(pieces, k=r.randrange(8))) + str(n) for n in range(3_000)]
    some = [None if r.random() < 0.2 else text for text in texts]
    nothing = pa.array([None] * 3_000, pa.string())
    return {"t": pa.table({"i": range(3_000), "s": some, "u": texts[::-1], "n": nothing})}


@pytest.fixture(params=["scan", "row by row"])
def scanning(request: pytest.FixtureRequest, tune: Tune, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The CPU scans texts for tables of any size; what is scanned for is noted."""
    tune(tuning.text_scans, least_rows=1, most_frequent=1.0 if request.param == "scan" else 0.0)
    return watched(monkeypatch)


def watched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    for name in ("cpu", "python"):
        monkeypatch.setitem(targets._BY_NAME, name, replace(targets._BY_NAME[name], scans_text=True))
    noted: list[str] = []
    real = streamed_texts.matched_texts

    def matched_texts(
        column: ColumnData, pattern: ScannedPattern, packed: Array, device: Device, context: str
    ) -> Array:
        noted.append(pattern.prepared.replace(b"\xff", b"%").decode())
        return real(column, pattern, packed, device, context)

    monkeypatch.setattr(streamed_texts, "matched_texts", matched_texts)
    return noted


def fresh() -> dict[str, pa.Table]:
    """The same tables, for connections of their own: no kernel was written before."""
    return dict(tables())


@cache
def tables_of(is_scanned: bool) -> dict[str, pa.Table]:
    """Some of them for each way to test predicates: no plan was made for the other. The interpreter goes through each byte."""
    return {"t": tables()["t"].slice(0, 1_000)}


@pytest.mark.parametrize("predicate", one_in(2, PREDICATES))
def test_answers_are_duckdbs(predicate: str, scanning: list[str]) -> None:
    given = tables_of(tuning.text_scans.most_frequent == 1.0)
    assert_same(f"SELECT i, s FROM t WHERE {predicate} ORDER BY i", given)
    assert_same(f"SELECT count(*), sum(i), sum(CASE WHEN {predicate} THEN i END) FROM t", given)
    assert_same(f"SELECT i % 5 AS g, count(*) FROM t WHERE {predicate} GROUP BY g ORDER BY g", given)


def test_what_is_scanned(scanning: list[str]) -> None:
    """Once a run, whatever kernels and partitions; nothing where few rows get to the test, or no part is long enough."""
    connection = gquery.connect(device="cpu", partitions=3)
    connection.sql("SET interpret_limit = 0")
    connection.register("t", tables()["t"])

    def scanned(predicate: str) -> list[str]:
        scanning.clear()
        connection.sql(f"SELECT i, s FROM t WHERE {predicate}").fetchall()
        return list(scanning)

    assert scanned("s LIKE '%special%'") == ["%special%"]
    assert scanned("contains(s, 'a%b')") == ["%a%b%"]
    assert scanned("s NOT LIKE '%special%requests%'") == ["%special%requests%"]
    assert scanned("s NOT LIKE '%special%' AND u NOT LIKE '%request%'") == ["%special%", "%request%"]
    assert scanned("i = 5 AND s LIKE '%special%'") == []
    assert scanned("s LIKE '%sp%'") == scanned("s LIKE 'special%'") == scanned("s LIKE '%spec_al%'") == []
    assert scanned("upper(s) LIKE '%SPECIAL%'") == []


def test_other_constants_use_the_kernels(scanning: list[str]) -> None:
    """The pattern is a slot: a template serves another one with its own bitmap, and one without a long part anew."""
    connection = gquery.connect(device="cpu").register("t", tables()["t"])
    connection.sql("SET interpret_limit = 0")
    sql = "SELECT count(*) FROM t WHERE s NOT LIKE '{}' AND i < {}"
    for pattern in ("%special%requests%", "%request%special%", "%special%", "%l%", "%_pecial%", "%日本語%", "special%"):
        texts = tables()["t"]["s"].to_pylist()[:2_900]
        want = sum(1 for s in texts if s is not None and not _like(pattern, s))
        assert connection.sql(sql.format(pattern, 2_900)).fetchall() == [(want,)], pattern
    assert scanning == ["%special%requests%", "%request%special%", "%special%", "%日本語%"]


def _like(pattern: str, text: str) -> bool:
    import re

    parts = [re.escape(p) if p not in "%_" else {"%": ".*", "_": "."}[p] for p in re.split("([%_])", pattern) if p]
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def test_kernels_of_scans_are_compiled_with_the_query(scanning: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[Kernel] = []

    def begin(target: Target, kernels: Iterable[Kernel], perhaps: Perhaps) -> None:
        prepared.extend(dict.fromkeys(kernels))
        begin_with(target, prepared, perhaps)

    monkeypatch.setattr(prepare, "begin", begin)
    connection = gquery.connect(device="cpu").register("t", tables()["t"])
    connection.sql("SET interpret_limit = 0")
    connection.sql("SELECT count(*) FROM t WHERE s LIKE '%special%' AND u LIKE '%requests%'").fetchall()
    scans = text_scan.MARKS[PhysicalType.STRING32, 4, 1].kernel
    assert prepared.count(scans) == 1
    assert len(prepared) == len(set(prepared)) >= 5


def test_explained(scanning: list[str]) -> None:
    connection = gquery.connect(device="cpu").register("t", tables()["t"])
    connection.sql("SET interpret_limit = 0")
    shown = connection.explain("SELECT count(*) FROM t WHERE s NOT LIKE '%special%req!%%' ESCAPE '!'", "pipelines")
    assert "; text scan for s LIKE '%special%req!%%' ESCAPE '!'" in shown
    text = "\n".join(
        str(row) for row in connection.sql("EXPLAIN ANALYZE SELECT count(*) FROM t WHERE s LIKE '%special%'").fetchall()
    )
    assert "text scan for s LIKE '%special%'" in text


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("predicate", ["s NOT LIKE '%special%requests%'", "s LIKE '%special%' OR u LIKE '%requests%'"])
def test_on_lanes(predicate: str, partitions: int, tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel that a GPU runs, with its rows unrolled."""
    tune(tuning.text_scans, least_rows=1)
    noted = watched(monkeypatch)
    part = tables()["t"]
    connection = gquery.connect(device="cpu").register("t", part)
    sql = f"SELECT count(*) AS n, sum(i) AS s FROM t WHERE {predicate}"
    (found,) = export_table(answer(connection, sql, monkeypatch, partitions)).to_pylist()
    assert noted
    assert [tuple(found.values())] == gquery.connect(device="python").register("t", part).sql(sql).fetchall()


@pytest.mark.parametrize("compacts", [False, True], ids=["interleaved", "compacted"])
def test_before_a_join_on_lanes(compacts: bool, tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bit is read for several rows at once before their probes, and in a kernel of its own that selects rows."""
    tune(tuning.text_scans, least_rows=1)
    tune(tuning.loops, interleaved_rows=1)
    if compacts:
        tune(tuning.materialization, compacted_least_rows=1, compacted_most_selectivity=1.0, compacted_least_probes=0)
    noted = watched(monkeypatch)
    keys = pa.table({"k": range(0, 3_000, 3), "g": [n % 4 for n in range(1_000)]})
    connection = gquery.connect(device="cpu").register("t", tables()["t"]).register("d", keys)
    sql = "SELECT g, count(*) AS n, sum(i) AS s FROM t JOIN d ON i = k WHERE s NOT LIKE '%special%requests%' GROUP BY g"
    found = export_table(answer(connection, sql, monkeypatch)).to_pylist()
    assert noted
    want = gquery.connect(device="python").register("t", tables()["t"]).register("d", keys).sql(sql).fetchall()
    assert sorted(tuple(row.values()) for row in found) == sorted(want)


@pytest.mark.cuda
@pytest.mark.parametrize("predicate", PREDICATES)
def test_on_a_gpu(predicate: str, tune: Tune) -> None:
    tune(tuning.text_scans, least_rows=1)
    given = fresh()
    for _ in range(4):  # rehearsed, recorded and replayed at last
        assert_same(f"SELECT i, s FROM t WHERE {predicate} ORDER BY i", given, targets=["cuda"])
        assert_same(f"SELECT count(*), sum(CASE WHEN {predicate} THEN i END) FROM t", given, targets=["cuda"])
