"""Window functions: ranks, running and whole sums, extremes of so many rows, averages of a range of values, and the first
rows of each partition.

The same calls over one partition of all rows, over partitions of which one has half of all rows, and over frames of 10, 1,000
and 100,000 rows stand beside those of equal partitions and of the shortest frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cases.sizes import short
from benchmarks.data import Maker, Tables, fingerprint
from benchmarks.measure import Answer, Case, Checks, Dataset

ROWS_A_PARTITION = 100
WIDTH = 100
VALUES = 1_000
ORDERED = "PARTITION BY p ORDER BY o"
TOP = 2
FRAMES = (10, 1_000, 100_000)
FRAMES_APART = 2.0  # times the shortest frame, at most
ONE_PARTITION, HALF_IN_ONE = 1.3, 1.5  # times equal partitions, at most


def cases(rows: int) -> Iterator[Case]:
    data = Dataset("partitions", partial(_partitions, rows, _uniform))
    reach = 10 * max(rows // ROWS_A_PARTITION, 1)  # ten rows of a partition or so
    for name, call, expected, target in (
        ("rank", f"v, u, rank() OVER ({ORDERED})", _rank, 30.0),
        ("row-number", f"row_number() OVER ({ORDERED})", _rank, None),
        ("running-sum", f"sum(v) OVER ({ORDERED} ROWS UNBOUNDED PRECEDING)", _running, 35.0),
        ("whole-sum", "sum(v) OVER (PARTITION BY p)", _whole, 12.0),
        ("sliding-max", f"max(v) OVER ({ORDERED} ROWS {WIDTH - 1} PRECEDING)", partial(_sliding, WIDTH), 45.0),
        ("range-average", f"avg(v) OVER ({ORDERED} RANGE {reach} PRECEDING)", partial(_ranged, reach), 60.0),
    ):
        yield Case(
            f"window/{name}", f"SELECT o, {call} AS w FROM t", rows, data, partial(_same, expected), None, target
        )
    numbered = f"SELECT *, row_number() OVER ({ORDERED}) AS r FROM t"
    yield Case(
        f"window/top-{TOP}", f"SELECT p, o FROM ({numbered}) WHERE r <= {TOP}", rows, data, _first_rows, None, 15.0
    )
    yield from _spread(rows)
    one = Dataset("one partition", partial(_partitions, rows, _all_in_one))
    for call, frame in (("max", _sliding), ("sum", _summed)):
        for width in FRAMES:
            yield Case(
                f"window/frame-{call}/{short(width)}",
                f"SELECT o, {call}(v) OVER (ORDER BY o ROWS {width - 1} PRECEDING) AS w FROM t",
                rows,
                one,
                partial(_same, partial(frame, width)),
                times=None if width == FRAMES[0] else (f"window/frame-{call}/{short(FRAMES[0])}", FRAMES_APART),
            )


def _spread(rows: int) -> Iterator[Case]:
    """The calls of equal partitions over one partition of all rows, and over one that has half of them."""
    calls = (
        ("rank", f"v, u, rank() OVER ({ORDERED})", _rank),
        ("running-sum", f"sum(v) OVER ({ORDERED} ROWS UNBOUNDED PRECEDING)", _running),
        ("sliding-max", f"max(v) OVER ({ORDERED} ROWS {WIDTH - 1} PRECEDING)", partial(_sliding, WIDTH)),
    )
    for where, keys, factor in (("one", _all_in_one, ONE_PARTITION), ("skewed", _half_in_one, HALF_IN_ONE)):
        data = Dataset(f"partitions, {where}", partial(_partitions, rows, keys))
        for name, call, expected in calls:
            check = partial(_same, expected)
            sql = f"SELECT o, {call} AS w FROM t"
            yield Case(f"window/{name}/{where}", sql, rows, data, check, times=(f"window/{name}", factor))


def _uniform(rows: int, make: Maker) -> Any:
    return make.random(rows, max(rows // ROWS_A_PARTITION, 1), 1).astype(np.int32)


def _all_in_one(rows: int, make: Maker) -> Any:
    return make.xp.zeros(rows, np.int32)


def _half_in_one(rows: int, make: Maker) -> Any:
    p = _uniform(rows, make)
    p[::2] = 0
    return p


def _partitions(rows: int, keys: Callable[[int, Maker], Any], make: Maker) -> Tables:
    p = keys(rows, make)
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
    got = fingerprint(answer.integers(0), answer.integers(len(answer.table.columns) - 1))
    yield "the fingerprint of the rows", got, fingerprint(s.o, expected(s).astype(np.int64))


def _first_rows(make: Maker, tables: Tables, answer: Answer) -> Checks:
    s = _Sorted(make, tables)
    first = s.at - s.begin < TOP
    yield "the number of rows", answer.rows, int(first.sum())
    got = fingerprint(answer.integers(1), answer.integers(0))
    yield "the fingerprint of the rows", got, fingerprint(s.o[first], s.base[first] // s.rows)


def _rank(s: _Sorted) -> Any:
    return s.at - s.begin + 1


def _running(s: _Sorted) -> Any:
    return s.sums[s.at + 1] - s.sums[s.begin]


def _whole(s: _Sorted) -> Any:
    return s.sums[s.end] - s.sums[s.begin]


def _sliding(width: int, s: _Sorted) -> Any:
    """Extremes of the last 1, 2, 4, ... rows, of which two cover ``width`` rows."""
    found, covered = s.v.copy(), 1
    while covered < width:
        step = min(covered, width - covered)
        found = s.xp.maximum(found, found[s.xp.maximum(s.at - step, s.begin)])
        covered += step
    return found


def _summed(width: int, s: _Sorted) -> Any:
    return s.sums[s.at + 1] - s.sums[s.xp.maximum(s.at - width + 1, s.begin)]


def _ranged(reach: int, s: _Sorted) -> Any:
    low = s.xp.searchsorted(s.key, s.xp.maximum(s.key - reach, s.base))
    return (s.sums[s.at + 1] - s.sums[low]) / (s.at + 1 - low)
