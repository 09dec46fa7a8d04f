"""Sorts of whole tables, by one and by two keys, and the first rows of an order."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.data import Maker, Tables, fingerprint
from benchmarks.measure import Answer, Case, Checks, Dataset

TOP = 10


def cases(rows: int) -> Iterator[Case]:
    one = Dataset("one key", partial(_one, rows))
    yield Case("sort/int64", "SELECT k FROM t ORDER BY k", rows, one, _sorted)
    yield Case("sort/int64-payload", "SELECT k, v FROM t ORDER BY k", rows, one, _sorted_with_payload)
    yield Case(f"sort/top-{TOP}", f"SELECT k, v FROM t ORDER BY k DESC LIMIT {TOP}", rows, one, _top)
    doubles = Dataset("doubles", partial(_doubles, rows))
    yield Case(f"sort/double-top-{TOP}", f"SELECT k, v FROM t ORDER BY k LIMIT {TOP}", rows, doubles, _top_double)
    two = Dataset("two keys", partial(_two, rows))
    yield Case("sort/int32-int64-desc", "SELECT a, b FROM t ORDER BY a, b DESC", rows, two, _by_two, 130.8, 40.0)


def _one(rows: int, make: Maker) -> Tables:
    return {"t": {"k": make.unique(rows, 1), "v": make.random(rows, 1_000_000_007, 2)}}


def _doubles(rows: int, make: Maker) -> Tables:
    """Doubles that are integers of up to 53 bits, so that checks are exact."""
    return {"t": {"k": make.random(rows, 1 << 53, 1).astype(np.float64), "v": make.random(rows, 1_000_000_007, 2)}}


def _two(rows: int, make: Maker) -> Tables:
    a = make.random(rows, max(rows // 10, 1), 1).astype(np.int32)
    return {"t": {"a": a, "b": make.unique(rows, 2)}}


def _sorted(make: Maker, tables: Tables, answer: Answer) -> Checks:
    expected = make.xp.sort(tables["t"]["k"])
    got = answer.integers(0)
    yield "the rows that differ", int((got != expected).sum()) if got.size == expected.size else -1, 0


def _sorted_with_payload(make: Maker, tables: Tables, answer: Answer) -> Checks:
    yield from _sorted(make, tables, answer)
    t = tables["t"]
    got = fingerprint(answer.integers(0), answer.integers(1))
    yield "the fingerprint of the rows", got, fingerprint(t["k"], t["v"])


def _top(make: Maker, tables: Tables, answer: Answer) -> Checks:
    t, xp = tables["t"], make.xp
    best = xp.sort(t["k"])[::-1][:TOP]
    got = answer.integers(0)
    yield "the rows that differ", int((got != best).sum()) if got.size == best.size else -1, 0
    payload = t["v"][xp.argsort(t["k"])[::-1][:TOP]]
    yield "the payloads that differ", int((answer.integers(1) != payload).sum()), 0


def _top_double(make: Maker, tables: Tables, answer: Answer) -> Checks:
    t, xp = tables["t"], make.xp
    first = xp.argsort(t["k"])[:TOP]
    got = fingerprint(answer.integers(0), answer.integers(1))
    yield "the fingerprint of the rows", got, fingerprint(t["k"][first].astype(np.int64), t["v"][first])


def _by_two(make: Maker, tables: Tables, answer: Answer) -> Checks:
    t = tables["t"]
    a, b = answer.integers(0), answer.integers(1)
    wrong = (a[1:] < a[:-1]) | ((a[1:] == a[:-1]) & (b[1:] > b[:-1]))
    yield "the rows out of order", int(wrong.sum()), 0
    yield "the fingerprint of the rows", fingerprint(b, a), fingerprint(t["b"], t["a"].astype(np.int64))
