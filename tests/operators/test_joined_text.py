"""Texts that a GPU joins: on a CPU the same array functions give what the host makes, with NULLs, dictionaries and constants."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import gquery
from gquery.columns.arrow import export_column
from gquery.device.device import Device
from gquery.operators import host_rows
from gquery.operators.base import Frame
from gquery.operators.host_rows import run_host_rows
from gquery.operators.joined_text import joins_text, run_joined_text
from gquery.planner.physical import HostRows

ROWS = 3_000
QUERIES = [
    "SELECT a || b AS x FROM t",
    "SELECT a || ', ' || b || '' AS x, b || a AS y, n FROM t",
    "SELECT concat(a, '-', b, c) AS x FROM t WHERE n % 3 = 0",
    "SELECT c || concat(a, b || 'é') || 'end' AS x FROM t",
    "SELECT concat(a || b, c) AS x, concat(a, NULL) AS y FROM t",
    "SELECT a || c AS x, count(*) FROM t GROUP BY 1",
    "SELECT x FROM (SELECT DISTINCT a || 'q' || b AS x FROM t) WHERE x > 'b' ORDER BY x LIMIT 40",
    "SELECT coalesce(a, '?') || coalesce(b, '') AS x FROM t ORDER BY n DESC LIMIT 7",
    "SELECT c || b AS x FROM t WHERE n < 0",
]


def _table() -> pa.Table:
    words = ["", "a", "bé", "a longer text of more than sixteen bytes", None, "\x00z"]
    many = [None if n % 7 == 0 else f"value {n * 7919 % ROWS}" for n in range(ROWS)]
    return pa.table(
        {
            "a": [words[n % 6] for n in range(ROWS)],
            "b": many,
            "c": pa.array([words[n % 4] for n in range(ROWS)]).dictionary_encode(),
            "n": range(ROWS),
        }
    )


def _texts(work: HostRows, frame: Frame) -> list[list[Any]]:
    return [export_column(frame.columns[s.column.id]).to_pylist() for s, _ in work.made]


@pytest.mark.parametrize("sql", QUERIES)
def test_the_texts_are_those_that_the_host_makes(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    joined = 0

    def both(work: HostRows, frame: Frame, device: Device, workers: int, label: str) -> Frame:
        nonlocal joined
        made = run_host_rows(work, frame, device, workers, label)
        if joins_text(work):
            joined += 1
            assert _texts(work, run_joined_text(work, frame, device)) == _texts(work, made)
        return made

    monkeypatch.setattr(host_rows, "run_host_rows", both)
    with gquery.connect("cpu", threads=1) as connection:
        connection.register("t", _table())
        connection.sql(sql).fetchall()
    assert joined


def test_other_calls_are_left_to_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def noting(work: HostRows, *rest: Any) -> Frame:
        seen.append(joins_text(work))
        return run_host_rows(work, *rest)

    monkeypatch.setattr(host_rows, "run_host_rows", noting)
    with gquery.connect("cpu", threads=1) as connection:
        connection.register("t", _table())
        connection.sql("SELECT upper(a || b) FROM t").fetchall()
        connection.sql("SELECT a || n FROM t").fetchall()
    assert seen
    assert not all(seen)


@pytest.mark.cuda
@pytest.mark.parametrize("sql", QUERIES)
def test_a_gpu_joins_and_is_recorded(sql: str) -> None:
    with gquery.connect("cuda") as connection, gquery.connect("cpu") as beside:
        for each in (connection, beside):
            each.register("t", _table())
        connection.set("interpret_limit", 0)
        want = sorted(beside.sql(sql).fetchall(), key=repr)
        for _ in range(10):
            assert sorted(connection.sql(sql).fetchall(), key=repr) == want
        prepared = connection._plans.find(sql, None, connection.settings)
        assert prepared is not None
        assert prepared.feedback.replay.refused is None
