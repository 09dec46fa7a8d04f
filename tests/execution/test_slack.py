"""Runs whose counts have slack, on lanes: arrays have room for more rows than there are, and only a number says how many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery.device.array import Array
from gquery.device.recording import CannotRecordError
from gquery.execution import ExecutionContext
from gquery.execution.feedback import RunFeedback
from gquery.execution.run_stages import run_stages
from gquery.execution.speculation import Speculation
from gquery.execution.state import Run
from gquery.kernels.readback import Count, scalar_readback
from gquery.kernels.targets import get_target
from gquery.operators.base import Frame, words_a_row
from tests.support.lanes import Lanes

ROWS = 700
QUERIES = {
    "filter": "SELECT k, v, s FROM t WHERE v < 20",
    "no row": "SELECT k, s FROM t WHERE v < -5",
    "all rows": "SELECT k, s FROM t WHERE v > -5",
    "join": "SELECT a.k, b.s FROM t a JOIN (SELECT k, s FROM t WHERE v < 30) b ON a.k = b.k WHERE a.v > 10",
    "rows of rows": "SELECT k + 1 AS j, s FROM (SELECT k, s, v FROM t WHERE v < 60 OFFSET 0) WHERE k % 3 = 0",
    "several matches": "SELECT a.k, b.s FROM t a JOIN (SELECT v AS w, s FROM t WHERE k < 40) b ON a.v = b.w",
    "semi": "SELECT k FROM t WHERE v IN (SELECT v FROM t WHERE k < 9 AND v > 3)",
    "groups": "SELECT g, count(*), sum(w) FROM (SELECT v % 7 AS g, k AS w FROM t WHERE v < 50) GROUP BY g",
    "sums": "SELECT count(*), sum(v), max(s) FROM (SELECT v, s FROM t WHERE v < 50 AND k > 3)",
}
ORDERED = {
    "sort": "SELECT k, v, s FROM t WHERE v < 20 ORDER BY v DESC, k",
    "equal keys": "SELECT k, v FROM t WHERE v < 20 ORDER BY v % 3",
    "texts": "SELECT s, k FROM t WHERE v < 20 ORDER BY s DESC NULLS FIRST, k",
    "nulls": "SELECT k, n FROM t WHERE k % 2 = 0 ORDER BY n NULLS FIRST, k DESC",
    "nulls last": "SELECT k, n FROM t WHERE k % 2 = 0 ORDER BY n DESC NULLS LAST, k",
    "doubles": "SELECT k, d FROM t WHERE v < 30 ORDER BY d, k",
    "wide sums": "SELECT v, sum(w) AS x FROM t GROUP BY v ORDER BY x DESC, v",
    "first rows": "SELECT k, v FROM t WHERE v < 60 ORDER BY v, k LIMIT 7",
    "first of ties": "SELECT k, s FROM t WHERE v < 60 ORDER BY v DESC, k LIMIT 5 OFFSET 3",
    "offset": "SELECT k FROM t WHERE v < 60 ORDER BY k DESC OFFSET 300",
    "offset behind the last": "SELECT k FROM t WHERE v < 60 ORDER BY k OFFSET 5000",
    "fewer than the limit": "SELECT k, s FROM t WHERE k < 3 ORDER BY k DESC LIMIT 5",
    "no row": "SELECT k, s FROM t WHERE v < -5 ORDER BY s, k",
    "one row": "SELECT k, s FROM t WHERE k = 5 ORDER BY s, k",
    "rows that are all there": "SELECT k, v FROM t ORDER BY v, k LIMIT 9",
    "more behind a sort": "SELECT k + 1 AS j, s FROM (SELECT k, s FROM t WHERE v < 60 ORDER BY v, k LIMIT 20) WHERE k % 2 = 0",
    "a join behind a sort": "SELECT a.k, b.s FROM (SELECT k, v FROM t WHERE v < 60 ORDER BY v, k LIMIT 20) a "
    "JOIN t b ON a.k + 1 = b.k",
    "groups": "SELECT v % 7 AS g, count(*), max(s) FROM t WHERE v < 50 GROUP BY g ORDER BY 2 DESC, 1",
}


class Slack(Speculation):
    """Waits for numbers, and takes more rows than there are."""

    def read_scalar(self, array: Array | int, expected: int | None = None) -> int:
        return int(array) if isinstance(array, int) else int(np.asarray(array).item())

    def read_count(self, array: Array, most: int | None, varies: bool = False) -> Count:
        number = np.asarray(array).reshape(1).astype(np.int64)
        return Count(int(number[0]) * 2 + 70, number)

    def read_most(self, array: Array) -> int:
        return int(np.asarray(array).item()) + 9


def _table() -> pa.Table:
    rng = np.random.default_rng(3)
    v = rng.integers(0, 100, ROWS)
    return pa.table(
        {"k": np.arange(ROWS), "v": v, "s": [None if n % 11 == 0 else "x" * (n % 30) for n in v]}
        | {
            "n": [None if n % 5 == 0 else int(n) % 9 for n in v],
            "d": v / 7 - 5,
            "w": [Decimal(10**34) * int(n) for n in v],
        }
    )


def _rows(frame: Frame) -> list[tuple[Any, ...]]:
    """The rows of a frame that count, in their order, by the ids of its columns."""
    count = frame.rows if frame.number is None else int(frame.number[0])
    columns = []
    for _, column in sorted(frame.columns.items()):
        part = column.slice(0, count)
        valid = np.ones(count, bool) if part.validity is None else part.validity.host.astype(bool)
        if part.physical_type.is_string:
            ends, characters = part.data.host, part.characters.host if part.characters is not None else np.empty(0)
            values: list[Any] = [bytes(characters[ends[n] : ends[n + 1]]) for n in range(count)]
        else:
            values = part.data.host.reshape(count, words_a_row(part.physical_type)).tolist()
        columns.append([x if ok else None for x, ok in zip(values, valid, strict=True)])
    return list(zip(*columns, strict=True))


def _run(connection: gquery.Connection, sql: str, slack: bool) -> list[tuple[Any, ...]]:
    program = connection.program(sql, "cuda")
    context = ExecutionContext("cuda", connection.device, replace(connection.settings, interpret_limit=0, partitions=1))
    feedback = RunFeedback()
    speculation = (Slack if slack else Speculation)(feedback, connection.device, waits=True)
    state = Run(program, context, feedback, speculation, bound=[] if slack else None)
    with scalar_readback(speculation):
        run_stages(state, 0, len(program.stages))
    return _rows(state.frames[len(program.stages) - 1])


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Iterator[gquery.Connection]:
    lanes = Lanes()
    for module in ("gquery.execution.prepare", "gquery.execution.runner", "gquery.execution.variants"):
        monkeypatch.setattr(f"{module}.get_target", lambda name: lanes if name == "cuda" else get_target(name))
    with gquery.connect(device="cpu", partitions=1) as made:
        made.register("t", _table())
        yield made


@pytest.mark.parametrize("name", QUERIES)
def test_rows_behind_the_last_do_no_harm(connection: gquery.Connection, name: str) -> None:
    with_slack, without = (_run(connection, QUERIES[name], slack) for slack in (True, False))
    assert sorted(with_slack, key=repr) == sorted(without, key=repr)


@pytest.mark.parametrize("name", ORDERED)
def test_rows_behind_the_last_are_sorted_behind(connection: gquery.Connection, name: str) -> None:
    assert _run(connection, ORDERED[name], slack=True) == _run(connection, ORDERED[name], slack=False)


def test_a_kernel_that_counts_on_rows_is_not_recorded() -> None:
    from gquery.execution.attempt import known_rows

    assert known_rows(Frame({}, 7)) == 7
    with pytest.raises(CannotRecordError):
        known_rows(Frame({}, 7, number=np.array([5])))
