"""Joins by order, and rows that two tables share: to ranges, to the latest row before (ASOF), INTERSECT."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.data import Maker, Tables, exact_sum
from benchmarks.measure import Answer, Case, Checks, Dataset

RANGES = 1_000
SPAN = 1_000_000  # from where a range begins to where the next one does; half of it lies in the range
SYMBOLS = 1_000


def cases(rows: int) -> Iterator[Case]:
    between = "SELECT count(*), sum(r.v) FROM p JOIN r ON p.k BETWEEN r.lo AND r.hi"
    yield Case("join/ranges", between, rows, Dataset("ranges", partial(_ranges, rows)), _in_ranges, target=8.0)
    crossing = Dataset("ranges that overlap", partial(_overlapping, rows))
    yield Case("join/ranges/overlapping", between, rows, crossing, _in_overlapping)
    for name, by, symbols, target in (("asof", "", 1, 80.0), ("asof-by", "p.s = b.s AND ", SYMBOLS, None)):
        sql = f"SELECT count(*), sum(b.v) FROM p ASOF JOIN b ON {by}p.k >= b.k"
        data = Dataset(f"{symbols} in time", partial(_times, rows, symbols))
        yield Case(f"join/{name}", sql, rows, data, partial(_latest, symbols), target=target)
    both = Dataset("two sets", partial(_sets, rows))
    yield Case("set/intersect", "SELECT k FROM t INTERSECT SELECT k FROM u", rows, both, _shared, target=35.0)


def _ranges(rows: int, make: Maker) -> Tables:
    number = make.permutation(RANGES, 1)
    low = number * SPAN
    p = {"k": make.random(rows, RANGES * SPAN, 2)}
    return {"p": p, "r": {"lo": low, "hi": low + (SPAN // 2 - 1), "v": number * 3 + 1}}


def _in_ranges(make: Maker, tables: Tables, answer: Answer) -> Checks:
    k = tables["p"]["k"]
    found = k[k % SPAN < SPAN // 2] // SPAN
    yield "the number of matches", int(answer.integers(0)[0]), int(found.size)
    yield "the sum of payloads", int(answer.integers(1)[0]), exact_sum(found * 3 + 1)


def _overlapping(rows: int, make: Maker) -> Tables:
    """Ranges of up to eight spans that begin anywhere; each hundredth reaches over a quarter of all. A row meets some seven."""
    whole = RANGES * SPAN
    low = make.random(RANGES, whole, 1)
    length = make.random(RANGES, 8 * SPAN, 3)
    length[:: RANGES // 10] = whole // 4
    p = {"k": make.random(rows, whole, 2)}
    return {"p": p, "r": {"lo": low, "hi": low + length, "v": make.random(RANGES, 1_000, 4)}}


def _in_overlapping(make: Maker, tables: Tables, answer: Answer) -> Checks:
    """What covers a row is what begins up to it, less what ended before."""
    k, (low, high, v), xp = tables["p"]["k"], (tables["r"][name] for name in ("lo", "hi", "v")), make.xp
    found = [0, 0]
    for ends, side, sign in ((low, "right", 1), (high, "left", -1)):
        order = xp.argsort(ends)
        place = xp.searchsorted(ends[order], k, side=side)
        sums = xp.concatenate([xp.zeros(1, v.dtype), xp.cumsum(v[order])])
        found = [found[0] + sign * exact_sum(place), found[1] + sign * exact_sum(sums[place])]
    yield "the number of matches", int(answer.integers(0)[0]), found[0]
    yield "the sum of payloads", int(answer.integers(1)[0]), found[1]


def _times(rows: int, symbols: int, make: Maker) -> Tables:
    """Rows of p a half unit off those of b, each of which has a time of its own."""
    return {
        "p": {"s": make.random(rows, symbols, 1), "k": make.random(rows, 2 * rows, 2)},
        "b": {
            "s": make.random(rows, symbols, 3),
            "k": 2 * make.permutation(rows, 4) + 1,
            "v": make.random(rows, 1_000, 5),
        },
    }


def _latest(symbols: int, make: Maker, tables: Tables, answer: Answer) -> Checks:
    p, b, xp = tables["p"], tables["b"], make.xp
    below = 2 * int(p["k"].size) + 1
    right = b["s"] * below + b["k"]
    order = xp.argsort(right)
    right, v = right[order], b["v"][order]
    place = xp.searchsorted(right, p["s"] * below + p["k"], side="right") - 1
    place, s = place[place >= 0], p["s"][place >= 0]
    found = v[place[right[place] // below == s]]
    yield "the number of matches", int(answer.integers(0)[0]), int(found.size)
    yield "the sum of payloads", int(answer.integers(1)[0]), exact_sum(found)


def _sets(rows: int, make: Maker) -> Tables:
    return {"t": {"k": make.random(rows, rows, 1)}, "u": {"k": make.random(rows, rows, 2) + rows // 2}}


def _shared(make: Maker, tables: Tables, answer: Answer) -> Checks:
    xp = make.xp
    first, second = xp.unique(tables["t"]["k"]), xp.unique(tables["u"]["k"])
    both: Any = xp.sort(xp.concatenate([first, second]))
    shared = both[1:][both[1:] == both[:-1]]
    yield "the number of rows", answer.rows, int(shared.size)
    yield "the sum", exact_sum(answer.integers(0)), exact_sum(shared)
