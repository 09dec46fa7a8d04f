"""The search for a join order that is told what another tree costs: it finds the same tree, or none that is cheaper."""

from __future__ import annotations

import random
from math import inf

import pyarrow as pa
import pytest

import gquery
from gquery.planner.rules import join_order
from gquery.planner.rules.join_graph import JoinGraph
from gquery.planner.rules.join_search import JoinSearch


@pytest.mark.parametrize("seed", range(8))
def test_a_limit_of_cost_changes_no_tree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    db = gquery.connect("python")
    count = rng.randrange(3, 8)
    for n in range(count):
        rows = rng.choice((1, 3, 40, 500, 3000))
        keys = {f"k{k}": [rng.randrange(rng.choice((2, 30, 2000))) for _ in range(rows)] for k in range(3)}
        db.register(f"t{n}", pa.table(keys))
    near = [f"t{n}.k{rng.randrange(3)} = t{rng.randrange(n)}.k{rng.randrange(3)}" for n in range(1, count)]
    far = [f"t{a}.k{rng.randrange(3)} = t{b}.k{rng.randrange(3)}" for a, b in [rng.sample(range(count), 2) for _ in range(2)]]
    graphs: list[JoinGraph] = []

    class Kept(JoinSearch):
        def __init__(self, graph: JoinGraph, probe_side: int, most: float = inf) -> None:
            super().__init__(graph, probe_side, most)
            graphs.append(graph)

    monkeypatch.setattr(join_order, "JoinSearch", Kept)
    tables = ", ".join(f"t{n}" for n in range(count))
    db.explain(f"SELECT count(*) FROM {tables} WHERE {' AND '.join([*near, *far])} AND t0.k0 < {rng.randrange(1, 9)}")
    assert graphs
    for graph in graphs:
        for probe_side in range(count):
            cost = JoinSearch(graph, probe_side).cost
            for most in (cost / 3, cost, cost * 1.01, cost * 5):
                found = JoinSearch(graph, probe_side, most).cost
                assert found == cost if cost < most else found >= most


@pytest.mark.parametrize("seed", range(6))
def test_each_pair_of_connected_subsets_comes_once_and_in_order(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randrange(2, 7)
    edges = {frozenset((n, rng.randrange(n))) for n in range(1, count)}
    edges |= {frozenset(rng.sample(range(count), 2)) for _ in range(rng.randrange(5))}
    graph = object.__new__(JoinGraph)
    graph.count, graph.around, graph.pairs = count, {}, {}
    graph.neighbours = [sum(1 << m for m in range(count) if frozenset((n, m)) in edges and m != n) for n in range(count)]

    def touch(a: int, b: int) -> bool:
        return any(1 << min(e) & x and 1 << max(e) & y for e in edges for x, y in ((a, b), (b, a)))

    def hangs_together(mask: int) -> bool:
        parts = [1 << i for i in range(count) if mask >> i & 1]
        reached = parts[0]
        while more := sum(p for p in parts if not p & reached and touch(p, reached)):
            reached |= more
        return reached == mask

    sets = [m for m in range(1, 1 << count) if hangs_together(m)]
    wanted = {frozenset((a, b)) for a in sets for b in sets if not a & b and touch(a, b)}
    found = graph.pairs_in((1 << count) - 1)
    assert found is not None and len(found) == len(wanted)
    assert {frozenset(pair) for pair in found} == wanted
    joined = [a | b for a, b in found]
    for n, (a, b) in enumerate(found):  # the best tree of each side is known by then
        assert not {a, b} & set(joined[n:])
