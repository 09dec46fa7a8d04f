"""A group of inner joins as a graph: relations, the conditions between them, and the subsets that hang together.

Nothing here depends on which relation is streamed: `join_search` finds the cheapest tree for one, and asks this for both that
may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from gquery import tuning
from gquery.expression.expr import Column, Expr
from gquery.planner.logical.bounds import comparison
from gquery.planner.logical.cardinality import Estimator
from gquery.planner.logical.equal_columns import EqualColumns, equal, equal_columns
from gquery.planner.logical.key_ranges import KeyPair
from gquery.planner.logical.nodes import Filter, Plan
from gquery.planner.logical.properties import same_columns
from gquery.planner.logical.tree import column_ids, used_columns
from gquery.planner.rules.join_cost import leaf


class JoinGraph:
    """Relations as bits of a mask, conditions as edges between them."""

    def __init__(self, relations: list[Plan], terms: tuple[Expr, ...], estimator: Estimator) -> None:
        self.estimator = estimator
        self.count = len(relations)
        self.home = {c.id: i for i, r in enumerate(relations) for c in r.columns}
        classes = equal_columns(terms)
        self.classes = list({id(c): c for c in classes.values()}.values())
        self.others: list[tuple[int, Expr]] = []  # (relations, condition) of all that makes no two columns equal
        self.neighbours = [0] * self.count
        self.around: dict[int, int] = {}
        self.relations = list(relations)
        for same in self.classes:
            homes = [self.home[c.id] for c in same.columns]
            for a in homes:
                for b in homes:
                    if a != b:
                        self.neighbours[a] |= 1 << b
            self._equal_inside(same)
        for t in terms:
            pair = same_columns(t)
            if pair is not None and pair[0].id in classes:
                continue
            mask = 0
            for i in used_columns(t):
                mask |= 1 << self.home[i] if i in self.home else 0
            if mask & (mask - 1):
                self.others.append((mask, t))
            else:  # of one relation, or constant: pushing down would have left none
                i = max(mask.bit_length() - 1, 0)
                self.relations[i] = Filter(self.relations[i], t)
        self._connect_by_others()
        # (relations that hold a column of the class, and for each relation its columns)
        self.edges: list[tuple[int, list[tuple[int, Column]]]] = []
        for same in self.classes:
            at = [(1 << self.home[c.id], c) for c in same.columns]
            self.edges.append((_union(bit for bit, _ in at), at))
        least = tuning.cardinality.least_rows
        self.base = [leaf(1 << i, r, max(self.estimator.rows(r), least)) for i, r in enumerate(self.relations)]
        self.keys: dict[tuple[int, int], KeyPair] = {}  # by two columns
        self.columns: dict[int, dict[int, Column]] = {}  # by relations
        self.pairs: dict[int, list[tuple[int, int]]] = {}  # by relations
        # (relations, share of rows that the conditions keep): asked for each pair of subsets, and known from here on
        self.kept = [(mask, self._kept(mask)) for mask in dict.fromkeys(mask for mask, _ in self.others)]
        self.ranges = [mask for mask in self.around_two if self._comparisons(mask)]  # pairs of which one is sorted

    def _equal_inside(self, same: EqualColumns) -> None:
        """Two columns of one relation that must be equal because both equal a third: a filter on the relation."""
        first: dict[int, Column] = {}
        for c in same.columns:
            i = self.home[c.id]
            if i in first:
                self.relations[i] = Filter(self.relations[i], equal(first[i], c, same.null_safe))
            first.setdefault(i, c)

    @property
    def around_two(self) -> list[int]:
        """The pairs of relations that conditions which are no equalities speak of."""
        return [mask for mask in dict.fromkeys(mask for mask, _ in self.others) if mask.bit_count() == 2]

    def _kept(self, mask: int) -> float:
        """The share of rows that all conditions over some relations keep."""
        terms = [t for m, t in self.others if m == mask]
        kept = 1.0
        if mask.bit_count() == 2:
            a, b = bits(mask)
            left, right = (column_ids(self.relations[i]) for i in (a, b))
            return self.estimator.pairs_kept(terms, left, right, min(self.base[a].rows, self.base[b].rows))
        for term in terms:
            kept *= self.estimator.selectivity(term)
        return kept

    def _comparisons(self, mask: int) -> bool:
        """Whether a condition over two relations compares a value of one with one of the other."""
        a, b = (column_ids(self.relations[i]) for i in bits(mask))
        return any(comparison(t, a, b) is not None for m, t in self.others if m == mask)

    def _connect_by_others(self) -> None:
        """Conditions that are no equalities join only what nothing else does: every row would meet every row."""
        for mask, _ in self.others:
            members = list(bits(mask))
            if len(members) == 2 and not self._reach(1 << members[0]) & mask & ~(1 << members[0]):
                self.neighbours[members[0]] |= 1 << members[1]
                self.neighbours[members[1]] |= 1 << members[0]
                self.around.clear()

    # -- subsets

    def components(self) -> list[int]:
        left, out = (1 << self.count) - 1, []
        while left:
            part = self._reach(left & -left)
            out.append(part)
            left &= ~part
        return out

    def _reach(self, mask: int) -> int:
        while (more := mask | self.around_of(mask)) != mask:
            mask = more
        return mask

    def around_of(self, mask: int) -> int:
        """The relations that a condition connects with some of these: asked again and again for each set of them."""
        found = self.around.get(mask)
        if found is None:
            found, rest = 0, mask
            while rest:
                low = rest & -rest
                found |= self.neighbours[low.bit_length() - 1]
                rest ^= low
            found = self.around[mask] = found & ~mask
        return found

    def pairs_in(self, part: int) -> list[tuple[int, int]] | None:
        """All (connected subset, connected subset beside it) of some relations, each once, smaller results before larger; None
        where they are too many."""
        most = tuning.join_order.most_pairs + 1
        found = self.pairs.get(part)
        if found is None:
            found = self.pairs[part] = list(islice(self._pairs(list(bits(part))), most + 1))
        return found if len(found) <= most else None

    def _pairs(self, members: list[int]) -> Iterator[tuple[int, int]]:
        """The pairs of `pairs_in`, by DPccp."""
        for i in reversed(members):
            low = (1 << (i + 1)) - 1
            for a in self._grown(1 << i, low):
                banned = a | ((a & -a) - 1) | (a & -a)
                near = rest = self.around_of(a) & ~banned
                while rest:
                    high = 1 << (rest.bit_length() - 1)
                    rest ^= high
                    for b in self._grown(high, banned | (near & ((high << 1) - 1))):
                        yield a, b

    def _grown(self, mask: int, banned: int) -> list[int]:
        """A connected subset and all that it grows into without what is banned."""
        found: list[int] = []
        self._grow(mask, banned, found)
        return found

    def _grow(self, mask: int, banned: int, found: list[int]) -> None:
        found.append(mask)
        near = self.around_of(mask) & ~banned
        subset = near & -near
        while subset:
            self._grow(mask | subset, banned | near, found)
            subset = (subset - near) & near

    # -- conditions

    def keys_of(self, x: Column, y: Column) -> KeyPair:
        """What is known of an equality: asked for each pair of subsets that it joins, and the same for all."""
        found = self.keys.get((x.id, y.id))
        if found is None:
            found = self.keys[x.id, y.id] = self.estimator.keys_of(x, y)
        return found

    def columns_in(self, mask: int) -> dict[int, Column]:
        """By the number of each class of equal columns the first that some relations hold."""
        found = self.columns.get(mask)
        if found is None:
            found = self.columns[mask] = {}
            for n, (held, columns) in enumerate(self.edges):
                if held & mask:
                    for bit, c in columns:
                        if bit & mask:
                            found[n] = c
                            break
        return found


def bits(mask: int) -> Iterator[int]:
    """The numbers of the relations in a mask."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _union(masks: Iterable[int]) -> int:
    out = 0
    for mask in masks:
        out |= mask
    return out
