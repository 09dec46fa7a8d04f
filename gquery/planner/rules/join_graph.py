"""The cheapest tree of a group of inner joins, and the plan that it stands for (`join_order` says what is searched and why)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from gquery import tuning
from gquery.expression.expr import Call, Column, Expr
from gquery.expression.traverse import conjunction
from gquery.expression.types import BOOLEAN
from gquery.planner.logical.bounds import comparison
from gquery.planner.logical.cardinality import Estimator
from gquery.planner.logical.key_ranges import KeyPair, pairs_selectivity
from gquery.planner.logical.nodes import Filter, Join, JoinKind, Plan
from gquery.planner.logical.properties import equality, is_unique
from gquery.planner.logical.tree import column_ids, used_columns
from gquery.planner.rules.infer_predicates import equal_columns
from gquery.planner.rules.join_cost import Matching, Tree, cost_of, leaf, least_cost


class JoinGraph:
    """Relations as bits of a mask, conditions as edges between them."""

    def __init__(self, relations: list[Plan], terms: tuple[Expr, ...], probe_side: int, estimator: Estimator) -> None:
        self.estimator = estimator
        self.count = len(relations)
        self.home = {c.id: i for i, r in enumerate(relations) for c in r.columns}
        self.probe_side = 1 << probe_side
        classes = equal_columns(terms)
        self.classes = list({min(c.id for c in columns): columns for columns in classes.values()}.values())
        self.others: list[tuple[int, Expr]] = []  # (relations, condition) of all that is not column = column
        self.neighbours = [0] * self.count
        self.around: dict[int, int] = {}
        self.relations = list(relations)
        for columns in self.classes:
            homes = [self.home[c.id] for c in columns]
            for a in homes:
                for b in homes:
                    if a != b:
                        self.neighbours[a] |= 1 << b
            self._equal_inside(columns)
        for t in terms:
            pair = equality(t)
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
        for columns in self.classes:
            at = [(1 << self.home[c.id], c) for c in columns]
            self.edges.append((_union(bit for bit, _ in at), at))
        least = tuning.cardinality.least_rows
        self.base = [leaf(1 << i, r, max(self.estimator.rows(r), least)) for i, r in enumerate(self.relations)]
        self.keys: dict[tuple[int, int], KeyPair] = {}  # by two columns
        # (relations, share of rows that the conditions keep): asked for each pair of subsets, and known from here on
        self.kept = [(mask, self._kept(mask)) for mask in dict.fromkeys(mask for mask, _ in self.others)]
        self.ranges = [mask for mask in self.around_two if self._comparisons(mask)]  # pairs of which one is sorted

    def _equal_inside(self, columns: tuple[Column, ...]) -> None:
        """Two columns of one relation that must be equal because both equal a third: a filter on the relation."""
        first: dict[int, Column] = {}
        for c in columns:
            i = self.home[c.id]
            if i in first:
                equal = Call("eq", (first[i], c), BOOLEAN, first[i].nullable or c.nullable)
                self.relations[i] = Filter(self.relations[i], equal)
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
            a, b = _bits(mask)
            left, right = (column_ids(self.relations[i]) for i in (a, b))
            return self.estimator.pairs_kept(terms, left, right, min(self.base[a].rows, self.base[b].rows))
        for term in terms:
            kept *= self.estimator.selectivity(term)
        return kept

    def _comparisons(self, mask: int) -> bool:
        """Whether a condition over two relations compares a value of one with one of the other."""
        a, b = (column_ids(self.relations[i]) for i in _bits(mask))
        return any(comparison(t, a, b) is not None for m, t in self.others if m == mask)

    def _connect_by_others(self) -> None:
        """Conditions that are no equalities join only what nothing else does: every row would meet every row."""
        for mask, _ in self.others:
            members = list(_bits(mask))
            if len(members) == 2 and not self._reach(1 << members[0]) & mask & ~(1 << members[0]):
                self.neighbours[members[0]] |= 1 << members[1]
                self.neighbours[members[1]] |= 1 << members[0]
                self.around.clear()

    # -- searching

    def best(self) -> Plan:
        return self._plan(self.tree)

    @cached_property
    def tree(self) -> Tree:
        """The cheapest tree that was found."""
        parts = [self._search(part) for part in self._components()]
        parts.sort(key=lambda t: (not t.mask & self.probe_side, t.rows))
        tree = parts[0]
        for part in parts[1:]:  # no condition between them: a cross join, the small ones first
            tree = self._join(tree, part)
        return tree

    def _components(self) -> list[int]:
        left, out = (1 << self.count) - 1, []
        while left:
            part = self._reach(left & -left)
            out.append(part)
            left &= ~part
        return out

    def _reach(self, mask: int) -> int:
        while (more := mask | self._around(mask)) != mask:
            mask = more
        return mask

    def _around(self, mask: int) -> int:
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

    def _search(self, part: int) -> Tree:
        members = list(_bits(part))
        if len(members) == 1:
            return self.base[members[0]]
        if len(members) > tuning.join_order.most_by_dp:
            return self._greedy(members)
        found: dict[int, Tree] = {1 << i: self.base[i] for i in members}
        least = least_cost()
        for number, (a, b) in enumerate(self._pairs(members)):
            if number > tuning.join_order.most_pairs:  # nearly everything is joined with everything
                return self._greedy(members)
            left, right, known = found[a], found[b], found.get(a | b)
            if known is None:
                found[a | b] = self._join(left, right)
            elif (
                left.cost + right.cost + (left.rows + right.rows) * least < known.cost
            ):  # else whatever they cost together
                found[a | b] = self._join(left, right, known)
        return found[part]

    def _pairs(self, members: list[int]) -> Iterator[tuple[int, int]]:
        """All (connected subset, connected subset beside it), each once, smaller results before larger (DPccp)."""
        for i in reversed(members):
            low = (1 << (i + 1)) - 1
            for a in self._grown(1 << i, low):
                banned = a | ((a & -a) - 1) | (a & -a)
                near = self._around(a) & ~banned
                for j in sorted(_bits(near), reverse=True):
                    for b in self._grown(1 << j, banned | (near & ((1 << (j + 1)) - 1))):
                        yield a, b

    def _grown(self, mask: int, banned: int) -> Iterator[int]:
        yield mask
        near = self._around(mask) & ~banned
        subset = near & -near
        grown: list[int] = []
        while subset:
            grown.append(subset)
            subset = (subset - near) & near
        for s in grown:
            yield from self._grown(mask | s, banned | near)

    def _greedy(self, members: list[int]) -> Tree:
        trees = [self.base[i] for i in members]
        known: dict[tuple[int, int], Tree] = {}

        def joined(a: Tree, b: Tree) -> Tree:
            key = (a.mask, b.mask)
            if key not in known:
                known[key] = self._join(a, b)
            return known[key]

        while len(trees) > 1:
            near = [self._around(t.mask) for t in trees]
            options = [(joined(a, b), a, b) for i, a in enumerate(trees) for b in trees[i + 1 :] if near[i] & b.mask]
            best, a, b = min(options, key=lambda o: o[0].rows + o[0].cost - o[1].cost - o[2].cost)
            trees = [t for t in trees if t is not a and t is not b] + [best]
        return trees[0]

    def _join(self, a: Tree, b: Tree, known: Tree | None = None) -> Tree:
        """Two trees as one, or the tree that is ``known`` of their relations where that costs no more. The cheaper side is the
        build side; the probe side is always streamed."""
        if b.mask & self.probe_side or (not a.mask & self.probe_side and b.rows > a.rows):
            a, b = b, a
        pairs = self._equalities(a.mask, b.mask)
        rows = a.rows * b.rows * pairs_selectivity([self._keys(x, y) for x, y in pairs], a.rows, b.rows)
        for mask, kept in self.kept:
            if mask & ~(a.mask | b.mask) == 0 and mask & a.mask and mask & b.mask:
                rows *= kept
        rows = max(rows, tuning.cardinality.least_rows)
        left, right = {x.id for x, _ in pairs}, {y.id for _, y in pairs}
        unique_a, unique_b = any(key <= left for key in a.keys), any(key <= right for key in b.keys)
        keys = (a.keys if unique_b else ()) + (b.keys if unique_a else ())
        both = a.mask | b.mask
        by: Matching = (
            "equal"
            if pairs
            else "range"
            if any(m & ~both == 0 and m & a.mask and m & b.mask for m in self.ranges)
            else "all"
        )
        cost = cost_of(a, b, by, unique_b)
        if unique_a and not unique_b and not a.mask & self.probe_side:
            other = cost_of(b, a, by, True)
            if other < cost:
                a, b, cost = b, a, other
        if known is not None and not a.cost + b.cost + cost < known.cost:
            return known
        width = a.width + b.width
        materialize = a.streamed * tuning.join_costs.materialize_source + rows * width
        return Tree(a.mask | b.mask, rows, a.cost + b.cost + cost, keys, rows, materialize, a.streamed, width, a, b)

    def _keys(self, x: Column, y: Column) -> KeyPair:
        """What is known of an equality: asked for each pair of subsets that it joins, and the same for all."""
        found = self.keys.get((x.id, y.id))
        if found is None:
            found = self.keys[x.id, y.id] = self.estimator.keys_of(x, y)
        return found

    def _equalities(self, a: int, b: int) -> list[tuple[Column, Column]]:
        """One (left column, right column) for each class of equal columns that both sides hold."""
        out: list[tuple[Column, Column]] = []
        probe_side, on_probe_side = self.probe_side, False
        for mask, columns in self.edges:
            if mask & a and mask & b:
                left: Column | None = None
                right: Column | None = None
                for bit, c in columns:
                    # a column of the probe side is there without a probe
                    if bit & a and (left is None or (bit & probe_side and not on_probe_side)):
                        left, on_probe_side = c, bool(bit & probe_side)
                    if bit & b and right is None:
                        right = c
                assert left is not None and right is not None
                out.append((left, right))
        return out

    # -- the plan

    def _plan(self, tree: Tree) -> Plan:
        if tree.left is None or tree.right is None:
            return self.relations[tree.mask.bit_length() - 1]
        a, b = tree.left, tree.right
        left, right = self._plan(a), self._plan(b)
        terms: list[Expr] = []
        for x, _ in self._equalities(a.mask, b.mask):
            y = self._build_key(x, b.mask, right)
            terms.append(Call("eq", (x, y), BOOLEAN, x.nullable or y.nullable))
        terms.extend(t for mask, t in self.others if mask & ~tree.mask == 0 and mask & a.mask and mask & b.mask)
        return Join(left, right, JoinKind.INNER, conjunction(tuple(terms)))

    def _build_key(self, x: Column, mask: int, right: Plan) -> Column:
        """Of the equal columns on the build side, the one that is known to be unique: its table needs no chains."""
        columns = next(c for c in self.classes if x in c)
        choices = [c for c in columns if 1 << self.home[c.id] & mask]
        return next((c for c in choices if is_unique(right, frozenset((c.id,)))), choices[0])


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _union(masks: Iterable[int]) -> int:
    out = 0
    for mask in masks:
        out |= mask
    return out
