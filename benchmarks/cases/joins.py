"""Joins of a probe side of all rows with a build side of 1,000 rows up to as many: by size, skew and order of the probes.

*sparse* keys are any 64-bit numbers, *dense* ones 0 to n - 1 in random order; each key is once on the build side. Every
probe finds its row; its column ``w`` repeats the payload that it should find, for the check alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cases.sizes import short
from benchmarks.data import Maker, Tables, exact_sum, mix
from benchmarks.measure import Answer, Case, Checks, Dataset

SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
TARGET, LIBCUDF = 20.0, 27.2  # of two sides of 100 million rows
MATCHES = 4  # build rows a key where keys are not unique
_COUNT = "SELECT count(*), sum(b.v) FROM p JOIN b ON p.k = b.k"


def cases(rows: int) -> Iterator[Case]:
    for size in SIZES:
        n = min(size, rows)
        for kind in ("sparse", "dense"):
            data = Dataset(f"{kind} keys, {n}", partial(_sides, rows, n, kind == "sparse", "random"))
            is_whole = n == rows
            reference = (LIBCUDF, TARGET) if is_whole else (None, None)
            yield Case(f"join/{kind}/{short(n)}", _COUNT, rows, data, _sums, *reference)
            if is_whole:
                sql = "SELECT p.v, b.v FROM p JOIN b ON p.k = b.k"
                yield Case(f"join/{kind}/rows/{short(n)}", sql, rows, data, _pairs, *reference)
    n = min(10_000_000, rows)
    for order in ("skewed", "sorted"):
        for kind in ("sparse", "dense"):
            data = Dataset(f"{order} {kind} keys", partial(_sides, rows, n, kind == "sparse", order))
            name = f"join/{kind}/{order}/{short(n)}"
            yield Case(
                name, _COUNT, rows, data, _sums, times=(f"join/{kind}/{short(n)}", 1.5) if order == "skewed" else None
            )
    data = Dataset("several rows a key", partial(_repeated, rows, n // MATCHES))
    yield Case(f"join/sparse/{MATCHES}-a-key/{short(n)}", _COUNT, rows, data, _sums)
    data = Dataset("half match", partial(_sides, rows, n, True, "half"))
    yield Case(f"join/sparse/half-match/{short(n)}", _COUNT, rows, data, _sums)
    sql = "SELECT count(*), sum(p.w) FROM p WHERE EXISTS (SELECT 1 FROM b WHERE p.k = b.k)"
    yield Case(f"join/sparse/semi/{short(n)}", sql, rows, data, _sums)


def _sides(rows: int, n: int, is_sparse: bool, order: str, make: Maker) -> Tables:
    """The tables p and b. Where both have as many rows, each build row is found once; else at random."""
    number = make.permutation(n, 1)
    wanted = make.permutation(n, 2) if n == rows and order == "random" else make.random(rows, n, 2)
    match order:
        case "skewed":
            wanted *= make.random(rows, 2, 5)
        case "sorted":
            wanted.sort()
        case "half":
            wanted += n * make.random(rows, 2, 5)
        case _:
            pass
    w = make.xp.where(wanted < n, _payload(wanted), -1)
    key = make.sparse if is_sparse else _same
    return {
        "p": {"k": key(wanted), "v": make.random(rows, 1_000, 3), "w": w},
        "b": {"k": key(number), "v": _payload(number)},
    }


def _repeated(rows: int, n: int, make: Maker) -> Tables:
    """Every key `MATCHES` times on the build side, and a fourth as many probes that find all of them, so that as many rows
    come out as in the other cases."""
    number = make.xp.concatenate([make.permutation(n, seed) for seed in range(MATCHES)])
    wanted = make.random(rows // MATCHES, n, 9)
    columns = {"k": make.sparse(wanted), "v": make.random(rows // MATCHES, 1_000, 3), "w": _payload(wanted)}
    return {"p": columns, "b": {"k": make.sparse(number), "v": _payload(number)}}


def _payload(number: Any) -> Any:
    """What a build row carries, made from its number."""
    return (mix(number.view(np.uint64)) % np.uint64(1_000_003)).astype(np.int64)


def _same(number: Any) -> Any:
    return number


def _expected(tables: Tables) -> tuple[int, int]:
    """Rows that come out, and the sum of their payloads."""
    w, build = tables["p"]["w"], tables["b"]["k"]
    found = w[w >= 0]
    return int(found.size), exact_sum(found) if build.size else 0


def _sums(make: Maker, tables: Tables, answer: Answer) -> Checks:
    count, total = _expected(tables)
    number = tables["b"]["k"]
    each = int(number.size) // int(make.xp.unique(number).size)
    yield "the number of matches", int(answer.integers(0)[0]), count * each
    yield "the sum of payloads", int(answer.integers(1)[0]), total * each


def _pairs(make: Maker, tables: Tables, answer: Answer) -> Checks:
    v, w = tables["p"]["v"], tables["p"]["w"]
    yield "the number of rows", answer.rows, int(w.size)
    yield "the sum of probe values", exact_sum(answer.integers(0)), exact_sum(v)
    yield "the sum of payloads", exact_sum(answer.integers(1)), exact_sum(w)
    yield "the sum of products", exact_sum(answer.integers(0) * answer.integers(1)), exact_sum(v * w)
