"""Grouped sums and distinct values: by number of groups, and by how the keys lie and are spread.

*uniform* keys are 0 to n - 1, *sparse* ones any 64-bit numbers, *skewed* ones uniform with half of all rows in one key,
*sorted* ones uniform and in order, *unique* ones any numbers and no two the same. Keys and values are int64.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cases.sizes import short
from benchmarks.data import CHECK, Maker, Tables, exact_sum, fingerprint, mix
from benchmarks.measure import Answer, Case, Checks, Dataset

SIZES = (2, 4, 1_000, 100_000, 1_000_000, 10_000_000, 50_000_000)
TARGETS = {4: 1.0, 1_000: 2.0, 1_000_000: 6.0, 50_000_000: 19.0}
LIBCUDF = {4: 8.4, 1_000: 6.1, 1_000_000: 9.4, 50_000_000: 19.4}
LIBCUDF_SKEWED = {1_000: 39.8, 1_000_000: 76.4, 50_000_000: 71.7}
SKEW = 1.5  # times the uniform case at most
_VALUES = 1_000_000_007


def cases(rows: int) -> Iterator[Case]:
    grouped = "SELECT k, sum(v) FROM t GROUP BY k"
    for size in SIZES:
        n = min(size, rows // 2)
        uniform = f"group/uniform/{short(n)}"
        for kind in ("uniform", "skewed", "sorted", "sparse") if size in TARGETS else ("uniform", "sparse"):
            data = Dataset(f"{kind} keys, {n}", partial(_keys, rows, n, kind))
            name = f"group/{kind}/{short(n)}"
            if kind == "skewed":
                yield Case(name, grouped, rows, data, _sums, LIBCUDF_SKEWED.get(size), times=(uniform, SKEW))
            else:
                yield Case(name, grouped, rows, data, _sums, LIBCUDF.get(size), TARGETS.get(size))
    data = Dataset("unique keys", partial(_keys, rows, rows, "unique"))
    yield Case(f"group/unique/{short(rows)}", grouped, rows, data, _sums)
    n = max(2, int(min(1_000_000, rows // 2) ** 0.5))
    for kind in ("dense", "sparse"):
        data = Dataset(f"two {kind} keys", partial(_two_keys, rows, n, kind == "sparse"))
        sql = "SELECT a, b, sum(v) FROM t GROUP BY a, b"
        yield Case(f"group/two-{kind}/{short(n * n)}", sql, rows, data, _sums_of_two)
    for size in (1_000, 1_000_000):
        n = min(size, rows // 2)
        data = Dataset(f"string keys, {n}", partial(_string_keys, rows, n))
        yield Case(f"group/string/{short(n)}", grouped, rows, data, _sums_of_strings)
    for size in (1_000_000, 50_000_000):
        n = min(size, rows // 2)
        for kind in ("uniform", "sparse"):
            data = Dataset(f"{kind} keys, {n}", partial(_keys, rows, n, kind))
            sql = "SELECT count(DISTINCT k) FROM t"
            yield Case(f"distinct/count/{kind}/{short(n)}", sql, rows, data, _count_distinct, target=8.0)
            sql = "SELECT DISTINCT k FROM t"
            libcudf = 16.4 if size == 50_000_000 else None
            yield Case(f"distinct/rows/{kind}/{short(n)}", sql, rows, data, _distinct, libcudf)


def _keys(rows: int, n: int, kind: str, make: Maker) -> Tables:
    k = make.unique(rows, 1) if kind == "unique" else make.random(rows, n, 1)
    match kind:
        case "skewed":
            k *= make.random(rows, 2, 3)
        case "sorted":
            k.sort()
        case "sparse":
            k = make.sparse(k)
        case _:
            pass
    return {"t": {"k": k, "v": make.random(rows, _VALUES, 2)}}


def _two_keys(rows: int, n: int, is_sparse: bool, make: Maker) -> Tables:
    a, b = make.random(rows, n, 1), make.random(rows, n, 2)
    if is_sparse:
        a, b = make.sparse(a), make.sparse(b)
    return {"t": {"a": a, "b": b, "v": make.random(rows, _VALUES, 3)}}


def _string_keys(rows: int, n: int, make: Maker) -> Tables:
    number = make.random(rows, n, 1)
    strings = make.strings(make.numbered(number, "key-", 9), n)
    return {"t": {"k": strings, "v": make.random(rows, _VALUES, 2)}, CHECK: {"k": number}}


def _sums(make: Maker, tables: Tables, answer: Answer) -> Checks:
    t, key, total = tables["t"], answer.integers(0), answer.integers(1)
    yield from _compare(make, t["k"], t["v"], key, total)


def _sums_of_two(make: Maker, tables: Tables, answer: Answer) -> Checks:
    t = tables["t"]
    both = _combined(t["a"], t["b"])
    yield from _compare(make, both, t["v"], _combined(answer.integers(0), answer.integers(1)), answer.integers(2))


def _combined(a: Any, b: Any) -> Any:
    """One number for two; that two pairs get the same is improbable."""
    return (mix(a.view(np.uint64)) * np.uint64(3) + mix(b.view(np.uint64))).view(np.int64)


def _compare(make: Maker, k: Any, v: Any, key: Any, total: Any) -> Checks:
    xp = make.xp
    yield "the number of groups", int(key.size), int(xp.unique(k).size)
    yield "the fingerprint of the sums", fingerprint(key, total), fingerprint(k, v)


def _sums_of_strings(make: Maker, tables: Tables, answer: Answer) -> Checks:
    number, v, xp = tables[CHECK]["k"], tables["t"]["v"], make.xp
    sums = xp.bincount(number, weights=v)  # exact: below 2**53
    sums = xp.sort(sums[xp.bincount(number) > 0].astype(np.int64))
    total = xp.sort(answer.integers(1))
    yield "the number of groups", answer.rows, int(sums.size)
    yield "the sums that differ", int((sums != total).sum()) if answer.rows == sums.size else -1, 0


def _count_distinct(make: Maker, tables: Tables, answer: Answer) -> Checks:
    yield "the count", int(answer.integers(0)[0]), int(make.xp.unique(tables["t"]["k"]).size)


def _distinct(make: Maker, tables: Tables, answer: Answer) -> Checks:
    key = make.xp.unique(tables["t"]["k"])
    yield "the number of rows", answer.rows, int(key.size)
    yield "the sum", exact_sum(answer.integers(0)), exact_sum(key)
