"""Joins whose rows match many others, within one unit of rows: they are interrupted, handed to a compiler, and cut small."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import gquery
from gquery import tuning
from gquery.errors import InterruptError
from gquery.execution import choose, program, runner
from gquery.execution.state import StageReport
from gquery.operators import specialize
from gquery.runtime import interrupt
from tests.support.tuned import Tune

QUERIES = {
    "reduce": "SELECT count(*), sum(a.i - b.i) FROM r AS a JOIN r AS b ON a.k = b.k WHERE a.i + b.i > 100",
    "group": "SELECT a.k, sum(b.i), max(a.i) FROM r AS a LEFT JOIN r AS b ON a.k = b.k AND a.i > b.i GROUP BY a.k",
    "materialize": "SELECT a.i, b.i FROM r AS a JOIN r AS b ON a.k = b.k WHERE a.i * b.i % 7 = 3",
    "outer": "SELECT a.i, b.i FROM r AS a LEFT JOIN r AS b ON a.k = b.k AND a.i + b.i = 211",
    "anti": "SELECT a.i FROM r AS a WHERE NOT EXISTS (SELECT 1 FROM r AS b WHERE a.k = b.k AND a.i + b.i > 700)",
    "loop": "SELECT a.i, b.i FROM r AS a JOIN r AS b ON a.i + b.i > 790",
}


def connected(device: str) -> gquery.Connection:
    """400 rows: 300 with one key, 90 with 30 keys, 10 with none."""
    connection = gquery.connect(device)
    skewed = "CASE WHEN i < 300 THEN 0 WHEN i < 390 THEN i // 3 END"
    connection.sql(f"CREATE TABLE r AS SELECT i, {skewed} AS k FROM range(400) AS q(i)")
    return connection


@pytest.mark.parametrize("sql", QUERIES.values(), ids=QUERIES)
def test_an_interrupt_ends_one_unit_of_rows(sql: str, tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    connection, plain, looks = connected("python"), interrupt.check, []
    connection.sql(sql).fetchall()
    tune(tuning.interpreting, paced_turns=64)

    def counted() -> None:
        looks.append(True)
        if len(looks) == 30:  # of units there are a few
            connection.interrupt()
        plain()

    monkeypatch.setattr(runner, "check", counted)
    with pytest.raises(InterruptError):
        connection.sql(sql).fetchall()
    assert len(looks) == 30


@pytest.mark.parametrize("sql", QUERIES.values(), ids=QUERIES)
def test_what_is_more_work_than_expected_is_compiled(sql: str, tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    want = sorted(connected("python").sql(sql).fetchall(), key=str)
    connection = connected("cpu")
    connection.sql("SET interpret_limit = 1000000000000")
    attempts: list[list[tuple[str, int]]] = []
    plain: Callable[..., tuple[object, list[StageReport]]] = program.run_with_report

    def noted(*arguments: object) -> object:
        _, reports = made = plain(*arguments)
        attempts.append([(r.target, r.attempts) for r in reports])
        return made

    monkeypatch.setattr(program, "run_with_report", noted)
    monkeypatch.setattr(choose, "is_ready", lambda *_: False)  # other tests may have compiled the kernels
    monkeypatch.setattr(choose, "cached", lambda *_: "nothing")
    tune(tuning.interpreting, paced_turns=64, most_seconds=-1.0)
    for _ in range(2):
        assert sorted(connection.sql(sql).fetchall(), key=str) == want
    first, second = attempts[-2:]
    outgrown = [n for n, (_, times) in enumerate(first) if times > 1]
    assert outgrown and all(first[n] == ("cpu", 2) and second[n] == ("cpu", 1) for n in outgrown)


@cache
def interpreted(sql: str) -> list[tuple[Any, ...]]:
    return sorted(connected("python").sql(sql).fetchall(), key=str)


@pytest.mark.parametrize("limit", [0, 10**12])
@pytest.mark.parametrize("steps", [1, 2000, 10**5])
@pytest.mark.parametrize("sql", QUERIES.values(), ids=QUERIES)
def test_units_are_small_where_rows_match_many(sql: str, steps: int, limit: int, tune: Tune) -> None:
    want = interpreted(sql)
    connection = connected("cpu")
    connection.sql(f"SET interpret_limit = {limit}")
    tune(tuning.interpreting, loop_steps_cpu=steps, loop_steps=steps)
    assert sorted(connection.sql(sql).fetchall(), key=str) == want


@pytest.mark.parametrize(
    ("sql", "turns"),
    [
        ("SELECT sum(b.i) FROM r AS a ASOF JOIN r AS b ON a.i >= b.i", 1),
        ("SELECT sum(b.i) FROM r AS a ASOF JOIN r AS b ON a.k = b.k AND a.i >= b.i", 1),
        ("SELECT count(*) FROM r AS a WHERE EXISTS (SELECT 1 FROM r AS b WHERE b.i > a.i)", 1),
        ("SELECT count(*) FROM r AS a JOIN r AS b ON a.i > b.i", 400),
    ],
)
def test_a_row_that_takes_the_first_of_a_range_goes_through_no_more(
    sql: str, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gquery.execution import decide

    found: list[float] = []

    def noting(*given: Any) -> float:
        found.append(specialize.fan_out(*given))
        return found[-1]

    monkeypatch.setattr(decide, "fan_out", noting)
    connection = connected("python")
    found.clear()
    connection.sql(sql).fetchall()
    assert max(found) == turns
