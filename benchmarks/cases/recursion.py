"""Recursion: what is reached over as many edges as there are rows, from one node of a random graph and along many chains of
a hundred; and a counter, which takes nothing but rounds.

In the random graph a node has two edges, so that a few dozen rounds reach four of five nodes; along chains rounds are as large as
each other, so that what is done again for all rows so far would show.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.data import Maker, Tables
from benchmarks.measure import Answer, Case, Checks, Dataset

EDGES_A_NODE = 2
LENGTH = 100
ROUNDS = 10_000
_REACH = (
    "WITH RECURSIVE r(n) AS (SELECT a FROM e WHERE a < {starts} GROUP BY a UNION SELECT e.b FROM r JOIN e ON r.n = e.a) "
    "SELECT count(*), sum(n) FROM r"
)
_COUNT = (
    f"WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < {ROUNDS}) SELECT count(*), sum(n) FROM r"
)


def cases(rows: int) -> Iterator[Case]:
    chains = max(rows // LENGTH, 1)
    random, lines = Dataset("random edges", partial(_random, rows)), Dataset("chains", partial(_chains, rows, chains))
    yield Case("recursion/reach", _REACH.format(starts=1), rows, random, _reached, None, None)
    yield Case("recursion/chains", _REACH.format(starts=chains), rows, lines, partial(_all, chains), None, None)
    yield Case("recursion/count", _COUNT, rows, lines, _counted, None, None)


def _random(rows: int, make: Maker) -> Tables:
    nodes = max(rows // EDGES_A_NODE, 1)
    a = make.random(rows, nodes, 1)
    a[0] = 0  # where it starts
    return {"e": {"a": a, "b": make.random(rows, nodes, 2)}}


def _chains(rows: int, chains: int, make: Maker) -> Tables:
    a = make.permutation(rows, 1)
    return {"e": {"a": a, "b": a + chains}}


def _reached(make: Maker, tables: Tables, answer: Answer) -> Checks:
    a, b = tables["e"]["a"], tables["e"]["b"]
    known = make.xp.zeros(int(max(a.max(), b.max())) + 1, np.bool_)
    known[0] = True
    count = 0
    while (now := int(known.sum())) > count:
        count = now
        known[b[known[a]]] = True
    yield from _sums(answer, count, int(make.xp.flatnonzero(known).sum()))


def _all(chains: int, make: Maker, tables: Tables, answer: Answer) -> Checks:
    nodes = tables["e"]["a"].size + chains
    yield from _sums(answer, nodes, nodes * (nodes - 1) // 2)


def _counted(make: Maker, tables: Any, answer: Answer) -> Checks:
    yield from _sums(answer, ROUNDS, ROUNDS * (ROUNDS + 1) // 2)


def _sums(answer: Answer, count: int, total: int) -> Checks:
    yield "the number of nodes", int(answer.integers(0)[0]), count
    yield "their sum", int(answer.integers(1)[0]), total
