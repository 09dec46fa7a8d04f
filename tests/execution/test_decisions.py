"""How a stage runs is decided once, and again as soon as a fact is another one: rows, tables, settings, what runs have told."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery.columns.arrow import export_table
from gquery.columns.import_arrow import import_table
from gquery.columns.store import TableStore
from gquery.columns.table import Table
from gquery.execution import ExecutionContext, run
from gquery.execution.feedback import RunFeedback
from gquery.execution.specialize import specialize

ROWS = 3_000
JOIN = "SELECT b.g, sum(p.w) AS w, count(*) AS n FROM p JOIN b ON p.k = b.k GROUP BY b.g ORDER BY b.g"


class Swapped:
    """Two tables whose rows can be changed behind a program's back, within what is known of their columns."""

    def __init__(self) -> None:
        rng = np.random.default_rng(5)
        self.keys = rng.permutation(np.arange(ROWS) * 7919)
        self.connection = gquery.connect(device="cpu")
        self.connection.sql("SET interpret_limit = 0")
        self.p = self._stored("p", {"k": rng.choice(self.keys, 5 * ROWS), "w": np.arange(5 * ROWS)})
        self.b = self._stored("b", {"k": self.keys, "g": np.arange(ROWS) % 7})
        self.whole: dict[str, Table] = {"p": self.p.table, "b": self.b.table}

    def _stored(self, name: str, columns: dict[str, Any]) -> TableStore:
        store = TableStore(name, import_table(pa.table(columns), True))
        self.connection._catalog.register(name, store)
        return store

    def take(self, p: int, b: int) -> None:
        """The first rows of each table from now on."""
        self.p.table, self.b.table = self.whole["p"].slice(0, p), self.whole["b"].slice(0, b)

    @property
    def context(self) -> ExecutionContext:
        return self.connection._context()

    def expected(self) -> list[tuple[int, int, int]]:
        """The rows of `JOIN`."""
        p, b = (export_table(t.table) for t in (self.p, self.b))
        of_key: dict[int, list[int]] = {}
        for key, g in zip(b["k"].to_pylist(), b["g"].to_pylist(), strict=True):
            of_key.setdefault(key, []).append(g)
        found: dict[int, tuple[int, int]] = {}
        for key, w in zip(p["k"].to_pylist(), p["w"].to_pylist(), strict=True):
            for g in of_key.get(key, ()):
                total, n = found.get(g, (0, 0))
                found[g] = total + w, n + 1
        return [(g, *found[g]) for g in sorted(found)]


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    return list(zip(*export_table(table).to_pydict().values(), strict=True))


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The stages that something was decided for."""
    noted: list[int] = []

    def watched(pipeline: Any, facts: Any) -> Any:
        noted.append(facts.stage)
        return specialize(pipeline, facts)

    monkeypatch.setattr("gquery.execution.decide.specialize", watched)
    return noted


def test_a_hot_run_decides_nothing(decided: list[int]) -> None:
    tables = Swapped()
    first = tables.connection.sql(JOIN).fetchall()
    tables.connection.sql(JOIN).fetchall()
    decided.clear()
    assert tables.connection.sql(JOIN).fetchall() == first == tables.expected()
    assert decided == []


def test_other_rows_are_decided_for_anew(decided: list[int]) -> None:
    """Hardly any rows, all of them, none: a table that was decided for few would be too small, or of another layout."""
    tables = Swapped()
    program, feedback = tables.connection.program(JOIN), RunFeedback()
    for p, b in ((20, 3), (5 * ROWS, ROWS), (0, 0), (20, ROWS), (5 * ROWS, 2), (5 * ROWS, ROWS)):
        tables.take(p, b)
        decided.clear()
        for _ in range(3):
            assert rows_of(run(program, tables.context, feedback)) == tables.expected()
        assert decided


def test_keys_that_stand_twice_later() -> None:
    """Kernels of a table of unique keys find one row of several."""
    tables = Swapped()
    program, feedback = tables.connection.program(JOIN), RunFeedback()
    unique = tables.expected()
    for _ in range(3):
        assert rows_of(run(program, tables.context, feedback)) == unique
    keys = tables.keys.copy()
    keys[1] = keys[0]
    table, before = import_table(pa.table({"k": keys, "g": np.arange(ROWS) % 7}), True), tables.whole["b"]
    columns = [replace(c, statistics=o.statistics) for c, o in zip(table.columns, before.columns, strict=True)]
    tables.b.table = Table(before.schema, tuple(columns), ROWS)
    twice = tables.expected()
    assert twice != unique
    for _ in range(3):
        assert rows_of(run(program, tables.context, feedback)) == twice
    tables.b.table = tables.whole["b"]
    assert rows_of(run(program, tables.context, feedback)) == unique


def test_settings_are_facts(decided: list[int]) -> None:
    tables = Swapped()
    program, feedback = tables.connection.program(JOIN), RunFeedback()
    for name, value in (("threads", 3), ("partitions", 3), ("interpret_limit", 10**9), ("threads", 1)):
        settings = tables.connection.settings.with_option(name, value)
        decided.clear()
        for _ in range(3):
            assert rows_of(run(program, replace(tables.context, settings=settings), feedback)) == tables.expected()
        assert decided


def test_two_threads_with_other_facts() -> None:
    """Each finds decisions of the other, which are not for it."""
    tables = Swapped()
    program, feedback = tables.connection.program(JOIN), RunFeedback()
    expected, failures = tables.expected(), []

    def work(context: ExecutionContext) -> None:
        try:
            for _ in range(30):
                assert rows_of(run(program, context, feedback)) == expected
        except BaseException as error:
            failures.append(error)

    several = replace(tables.context, settings=tables.connection.settings.with_option("partitions", 3))
    threads = [threading.Thread(target=work, args=(c,)) for c in (tables.context, several, tables.context)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_file_that_changes_between_hot_runs(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    text = f"SELECT k, sum(v) FROM '{path}' GROUP BY k ORDER BY k"
    connection = gquery.connect(device="cpu")
    for rows, keys in ((50, 5), (20_000, 3_000), (0, 1), (50, 50)):
        k, v = np.arange(rows) % keys, np.arange(rows)
        pq.write_table(pa.table({"k": k, "v": v}), path)
        expected = [(n, int(v[k == n].sum())) for n in range(min(rows, keys))]
        for _ in range(3):
            assert connection.sql(text).fetchall() == expected


def test_a_table_that_is_registered_anew() -> None:
    connection = gquery.connect(device="cpu")
    for rows in (10, 4_000, 0, 10):
        connection.register("t", pa.table({"k": np.arange(rows) % 3, "v": np.arange(rows)}))
        for _ in range(3):
            assert connection.sql("SELECT sum(v), count(*) FROM t WHERE k = 1").fetchall() == [
                (sum(range(1, rows, 3)) if rows else None, len(range(1, rows, 3)))
            ]
