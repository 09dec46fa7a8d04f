"""Window functions: ranks, running and whole sums, extremes of so many rows, averages of a range of values, and the first
rows of each partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.data import Maker, Tables, fingerprint
from benchmarks.measure import Answer, Case, Checks, Dataset

ROWS_A_PARTITION = 100
WIDTH = 100
VALUES = 1_000
ORDERED = "PARTITION BY p ORDER BY o"
TOP = 2


def cases(rows: int) -> Iterator[Case]:
    data = Dataset("partitions", partial(_partitions, rows))
    reach = 10 * max(rows // ROWS_A_PARTITION, 1)  # ten rows of a partition or so
    for name, call, expected, target in (
        ("rank", f"v, u, rank() OVER ({ORDERED})", _rank, 30.0),
        ("row-number", f"row_number() OVER ({ORDERED})", _rank, None),
        ("running-sum", f"sum(v) OVER ({ORDERED} ROWS UNBOUNDED PRECEDING)", _running, 35.0),
        ("whole-sum", "sum(v) OVER (PARTITION BY p)", _whole, 12.0),
        ("sliding-max", f"max(v) OVER ({ORDERED} ROWS {WIDTH - 1} PRECEDING)", _sliding, 45.0),
        ("range-average", f"avg(v) OVER ({ORDERED} RANGE {reach} PRECEDING)", partial(_ranged, reach), 60.0),
    ):
        yield Case(
            f"window/{name}", f"SELECT o, {call} AS w FROM t", rows, data, partial(_same, expected), None, target
        )
    numbered = f"SELECT *, row_number() OVER ({ORDERED}) AS r FROM t"
    yield Case(
        f"window/top-{TOP}", f"SELECT p, o FROM ({numbered}) WHERE r <= {TOP}", rows, data, _first_rows, None, 15.0
    )


def _partitions(rows: int, make: Maker) -> Tables:
    p = make.random(rows, max(rows // ROWS_A_PARTITION, 1), 1).astype(np.int32)
    values = {"v": make.random(rows, VALUES, 3), "u": make.random(rows, VALUES, 4)}
    return {"t": {"p": p, "o": make.permutation(rows, 2), **values}}


class _Sorted:
    """The table by partition and order: where each row's partition begins, and its values."""

    def __init__(self, make: Maker, tables: Tables) -> None:
        t, self.xp = tables["t"], make.xp
        self.rows = t["o"].size
        self.key = t["p"].astype(np.int64) * self.rows + t["o"]
        order = self.xp.argsort(self.key)
        self.key, self.o, self.v = self.key[order], t["o"][order], t["v"][order]
        self.base = self.key - self.o
        self.begin = self.xp.searchsorted(self.key, self.base)
        self.end = self.xp.searchsorted(self.key, self.base + self.rows)
        self.at = self.xp.arange(self.rows)
        self.sums = self.xp.concatenate([self.xp.zeros(1, np.int64), self.xp.cumsum(self.v)])


def _same(expected: Callable[[_Sorted], Any], make: Maker, tables: Tables, answer: Answer) -> Checks:
    s = _Sorted(make, tables)
    got = fingerprint(make.xp, answer.integers(0), answer.integers(len(answer.table.columns) - 1))
    yield "the fingerprint of the rows", got, fingerprint(make.xp, s.o, expected(s).astype(np.int64))


def _first_rows(make: Maker, tables: Tables, answer: Answer) -> Checks:
    s = _Sorted(make, tables)
    first = s.at - s.begin < TOP
    yield "the number of rows", answer.rows, int(first.sum())
    got = fingerprint(make.xp, answer.integers(1), answer.integers(0))
    yield "the fingerprint of the rows", got, fingerprint(make.xp, s.o[first], s.base[first] // s.rows)


def _rank(s: _Sorted) -> Any:
    return s.at - s.begin + 1


def _running(s: _Sorted) -> Any:
    return s.sums[s.at + 1] - s.sums[s.begin]


def _whole(s: _Sorted) -> Any:
    return s.sums[s.end] - s.sums[s.begin]


def _sliding(s: _Sorted) -> Any:
    found = s.v.copy()
    for k in range(1, WIDTH):
        s.xp.maximum(found, s.v[s.xp.maximum(s.at - k, s.begin)], out=found)
    return found


def _ranged(reach: int, s: _Sorted) -> Any:
    low = s.xp.searchsorted(s.key, s.xp.maximum(s.key - reach, s.base))
    return (s.sums[s.at + 1] - s.sums[low]) / (s.at + 1 - low)
