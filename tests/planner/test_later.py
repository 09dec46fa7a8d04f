"""Stages of a template's program get the constants of a query when they are asked for, each once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import pyarrow as pa
import pytest

import gquery
from gquery.execution.replay import may_be_recorded
from gquery.planner.later import Later, pattern_of
from gquery.planner.physical import Program

SQL = "SELECT k, sum(v) AS total FROM t JOIN u ON t.k = u.id WHERE v < {} AND u.n > {} GROUP BY k ORDER BY total, k LIMIT 3"


def _hit() -> tuple[gquery.Connection, gquery.Relation, Program]:
    connection = gquery.connect("cpu")
    connection.register("t", pa.table({"k": [1, 2, 3, 1, 2], "v": [5, 6, 7, 8, None]}))
    connection.register("u", pa.table({"id": [1, 2, 3], "n": [1, 2, 3]}))
    connection.sql(SQL.format(7, 0)).fetchall()
    relation = connection.sql(SQL.format(8, 1))
    prepared = connection._plans.find(SQL.format(8, 1), None, connection.settings)
    assert prepared is not None and prepared.template == "hit" and prepared.program is not None
    return connection, relation, prepared.program


def test_nothing_is_bound_before_it_runs() -> None:
    connection, relation, program = _hit()
    stages = program.stages
    assert isinstance(stages, Later)
    with mock.patch("gquery.execution.run"):
        relation.execute()
    assert not may_be_recorded(program, connection._context())
    assert len(pattern_of(program)) == len(stages) > 1
    assert not stages.bound, "who replays a program asks for no stage of it"
    assert connection.sql(SQL.format(8, 1)).fetchall() == [(2, 6), (3, 7)]
    assert stages.bound == frozenset(range(len(stages)))


def test_stages_are_those_that_are_bound_at_once() -> None:
    _, _, program = _hit()
    assert isinstance(program.stages, Later)
    last = program.stages[-1]
    assert program.stages.bound == {len(program.stages) - 1}
    assert tuple(program.stages)[-1] is last is program.stages[len(program.stages) - 1]
    assert program.stages[1:] == tuple(program.stages)[1:]
    assert [s.number for s in program.stages] == [s.number for s in pattern_of(program)]
    assert tuple(program.stages) != tuple(pattern_of(program))
    with pytest.raises(IndexError):
        program.stages[len(program.stages)]


def test_threads_get_the_same_items() -> None:
    """A query may be run by several threads at once."""
    calls: list[str] = []
    both = threading.Barrier(4)

    def bind(text: str) -> str:
        calls.append(text)
        return text.upper()

    later = Later(("a", "b", "c"), bind)

    def read(_: int) -> list[int]:
        both.wait()
        return [id(item) for item in later]

    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(read, range(4))
    assert all(other == first for other in others)
    assert sorted(calls) == ["a", "b", "c"]


def test_what_fails_fails_again() -> None:
    """An error leaves nothing behind."""
    later = Later((0, 1), lambda n: 1 // n)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            later[0]
    assert later[1] == 1 and later.bound == {1}
