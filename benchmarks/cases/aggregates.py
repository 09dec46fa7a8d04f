"""Aggregates beyond sums by one key: grouping sets, distinct values, medians, extremes of text, and sums of narrow rows.

Groups are uniform; texts are digits of equal length, with nothing before them or a prefix that all have, in which case eight
bytes tell few of them apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cases.sizes import short
from benchmarks.data import CHECK, Maker, Tables, exact_sum, fingerprint, mix
from benchmarks.measure import Answer, Case, Checks, Dataset

GROUPS = 1_000_000
VALUES = 1_000_000
DIGITS = 15  # a text's number fits an int64
PREFIX = "key-"
CLOSE = 0.1  # what an estimate of different values may be off
CUBE_KEYS, CUBE_VALUES = 8, 5  # columns of CUBE, and different values of each: 390,625 groups, 1,679,616 rows
CUBE_ROWS = 1_000_000
NARROW = 10  # narrow rows, for every row that other cases have
_CHUNK = 1 << 26  # rows a step of a check


def cases(rows: int) -> Iterator[Case]:
    n = min(GROUPS, rows // 10)
    values = Dataset("values by groups", partial(_values, rows, n))
    name = f"/{short(n)}"
    yield Case(f"aggregate/median{name}", "SELECT k, median(v) FROM t GROUP BY k", rows, values, _medians, target=30.0)
    arg_max = "SELECT k, arg_max(v, o) FROM t GROUP BY k"
    yield Case(f"aggregate/arg-max{name}", arg_max, rows, values, _latest, target=8.0)
    few = "SELECT g, count(DISTINCT u) FROM t GROUP BY g"
    yield Case("aggregate/distinct-by-100", few, rows, values, _distinct, target=25.0)
    estimate = "SELECT approx_count_distinct(o) FROM t"
    yield Case("aggregate/approx-distinct", estimate, rows, values, _about, target=3.0)
    rollup = "SELECT coalesce(a, -1), coalesce(b, -1), sum(v) FROM t GROUP BY ROLLUP (a, b)"
    pairs = Dataset("pairs of a thousand", partial(_pairs, rows))
    yield Case("aggregate/rollup", rollup, rows, pairs, _rolled_up, target=6.0)
    coarse = Dataset("rows of a cube", partial(_cube_rows, min(rows, CUBE_ROWS)))
    yield Case(f"aggregate/cube-{CUBE_KEYS}", _cube_text(), min(rows, CUBE_ROWS), coarse, _cubed)
    for kind, prefix in (("text", ""), ("prefixed", PREFIX)):
        for groups in sorted({1, 100, n}):
            data = Dataset(f"{kind} by {groups}", partial(_texts, rows, groups, prefix))
            sql = "SELECT k, min(s) FROM t GROUP BY k" if groups > 1 else "SELECT 0, min(s) FROM t"
            yield Case(f"aggregate/min-{kind}/{short(groups)}", sql, rows, data, partial(_least, len(prefix)))
    for groups, target in ((100, 8.0), (10_000_000, 150.0)):
        count = rows * NARROW
        groups = min(groups, rows)
        data = Dataset(f"narrow rows, {groups}", partial(_narrow, count, groups))
        sql = "SELECT k, sum(v) FROM t GROUP BY k"
        yield Case(f"aggregate/narrow/{short(groups)}", sql, count, data, partial(_sums, groups), target=target)


# ---- data ------------------------------------------------------------------------------------------------------------


def _values(rows: int, groups: int, make: Maker) -> Tables:
    return {
        "t": {
            "k": make.random(rows, groups, 1), "g": make.random(rows, 100, 2), "u": make.random(rows, VALUES, 3),
            "v": 2 * make.random(rows, 1_000, 4), "o": make.permutation(rows, 5),
        }
    }  # fmt: skip


def _pairs(rows: int, make: Maker) -> Tables:
    side = min(1_000, max(rows // 100, 2))
    return {"t": {"a": make.random(rows, side, 1), "b": make.random(rows, side, 2), "v": make.random(rows, 1_000, 3)}}


def _cube_keys() -> list[str]:
    return [f"k{i}" for i in range(CUBE_KEYS)]


def _cube_text() -> str:
    """The keys as one number, a digit each; the greatest digit is that of NULL."""
    digits = " + ".join(f"coalesce({k}, {CUBE_VALUES}) * {(CUBE_VALUES + 1) ** i}" for i, k in enumerate(_cube_keys()))
    return f"SELECT {digits}, sum(v) FROM t GROUP BY CUBE ({', '.join(_cube_keys())})"


def _cube_rows(rows: int, make: Maker) -> Tables:
    keys = {k: make.random(rows, CUBE_VALUES, i) for i, k in enumerate(_cube_keys())}
    return {"t": {**keys, "v": make.random(rows, 1_000, CUBE_KEYS)}}


def _texts(rows: int, groups: int, prefix: str, make: Maker) -> Tables:
    number = make.random(rows, 10**DIGITS, 1)
    strings = make.strings(make.numbered(number, prefix, DIGITS), rows)
    key = make.random(rows, groups, 2)
    return {"t": {"k": make.integers(key, groups), "s": strings}, CHECK: {"k": key, "n": number}}


def _narrow(rows: int, groups: int, make: Maker) -> Tables:
    return {"t": {"k": make.narrow(rows, groups, 1), "v": make.narrow(rows, 100, 2)}}


# ---- checks ----------------------------------------------------------------------------------------------------------


class _Groups:
    """The rows by group and another column: the order, and where each group begins and ends."""

    def __init__(self, make: Maker, key: Any, second: Any, below: int) -> None:
        xp = make.xp
        both = key * np.int64(below) + second
        self.order = xp.argsort(both)
        self.key = both[self.order] // below
        change = xp.flatnonzero(self.key[1:] != self.key[:-1]) + 1
        self.begin = xp.concatenate([xp.zeros(1, change.dtype), change])
        self.last = xp.concatenate([change, xp.full(1, key.size, change.dtype)]) - 1
        self.keys = self.key[self.begin]


def _medians(make: Maker, tables: Tables, answer: Answer) -> Checks:
    t = tables["t"]
    groups = _Groups(make, t["k"], t["v"], 2_000)
    low, high = (groups.begin + groups.last) // 2, (groups.begin + groups.last + 1) // 2
    v = t["v"][groups.order]
    expected = (v[low] + v[high]) // 2  # values are even
    got = fingerprint(answer.integers(0), answer.integers(1))
    yield "the number of groups", answer.rows, int(groups.keys.size)
    yield "the fingerprint of the medians", got, fingerprint(groups.keys, expected)


def _latest(make: Maker, tables: Tables, answer: Answer) -> Checks:
    t = tables["t"]
    groups = _Groups(make, t["k"], t["o"], t["o"].size)
    expected = t["v"][groups.order[groups.last]]
    got = fingerprint(answer.integers(0), answer.integers(1))
    yield "the number of groups", answer.rows, int(groups.keys.size)
    yield "the fingerprint of the values", got, fingerprint(groups.keys, expected)


def _distinct(make: Maker, tables: Tables, answer: Answer) -> Checks:
    t, xp = tables["t"], make.xp
    group = xp.unique(t["g"] * VALUES + t["u"]) // VALUES
    got = fingerprint(answer.integers(0), answer.integers(1))
    yield "the fingerprint of the counts", got, fingerprint(group, xp.ones_like(group))


def _about(make: Maker, tables: Tables, answer: Answer) -> Checks:
    rows = int(tables["t"]["o"].size)
    off = abs(int(answer.integers(0)[0]) / rows - 1)
    yield "off by too much", int(off > CLOSE), 0


def _rolled_up(make: Maker, tables: Tables, answer: Answer) -> Checks:
    t, xp = tables["t"], make.xp
    none = xp.full_like(t["a"], -1)
    levels = [_both(t["a"], t["b"]), _both(t["a"], none), _both(none, none)]
    got = fingerprint(_both(answer.integers(0), answer.integers(1)), answer.integers(2))
    yield "the number of groups", answer.rows, sum(int(xp.unique(k).size) for k in levels)
    yield "the fingerprint of the sums", got, sum(fingerprint(k, t["v"]) for k in levels) % 2**64


def _both(a: Any, b: Any) -> Any:
    """One number for two; that two pairs get the same is improbable."""
    return (mix(a.view(np.uint64)) * np.uint64(3) + mix(b.view(np.uint64))).view(np.int64)


def _least(skipped: int, make: Maker, tables: Tables, answer: Answer) -> Checks:
    check, xp = tables[CHECK], make.xp
    order = xp.lexsort(xp.stack([check["n"], check["k"]]))
    key = check["k"][order]
    first = xp.concatenate([xp.ones(1, np.bool_), key[1:] != key[:-1]])
    expected = check["n"][order][first]
    yield "the number of groups", answer.rows, int(expected.size)
    text = answer.bytes(1, skipped + DIGITS)[:, skipped:].astype(np.int64) - ord("0")
    number = xp.zeros(answer.rows, np.int64)
    for place in range(DIGITS):
        number = 10 * number + text[:, place]
    got = fingerprint(answer.integers(0), number)
    yield "the fingerprint of the texts", got, fingerprint(key[first], expected)


def _sums(groups: int, make: Maker, tables: Tables, answer: Answer) -> Checks:
    t, xp = tables["t"], make.xp
    k, v = (t[name].data.on(make.device) for name in "kv")
    seen, total = xp.zeros(groups, np.bool_), 0
    for at in range(0, int(k.size), _CHUNK):
        key = k[at : at + _CHUNK].astype(np.int64)
        seen[key] = True
        total += fingerprint(key, v[at : at + _CHUNK].astype(np.int64))
    yield "the number of groups", answer.rows, int(seen.sum())
    yield "the sum of the keys", exact_sum(answer.integers(0)), exact_sum(xp.flatnonzero(seen))
    got = fingerprint(answer.integers(0), answer.integers(1))
    yield "the fingerprint of the sums", got, total % 2**64


def _cubed(make: Maker, tables: Tables, answer: Answer) -> Checks:
    t, xp = tables["t"], make.xp
    levels = [xp.zeros_like(t["v"])]
    for i, k in enumerate(_cube_keys()):
        unit = (CUBE_VALUES + 1) ** i
        levels = [level + digit * unit for level in levels for digit in (t[k], CUBE_VALUES)]
    got = fingerprint(answer.integers(0), answer.integers(1))
    yield "the number of groups", answer.rows, sum(int(xp.unique(level).size) for level in levels)
    yield "the fingerprint of the sums", got, sum(fingerprint(level, t["v"]) for level in levels) % 2**64
