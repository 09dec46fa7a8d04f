"""The cheapest tree of a group of inner joins of which one is streamed, and the plan that it stands for (`join_order` says what
is searched and why)."""

from __future__ import annotations

from math import inf

from gquery import tuning
from gquery.expression.expr import Column, Expr
from gquery.expression.traverse import conjunction
from gquery.planner.logical.equal_columns import EqualColumns, equal
from gquery.planner.logical.key_ranges import pairs_selectivity
from gquery.planner.logical.nodes import Join, JoinKind, Plan
from gquery.planner.logical.properties import is_unique
from gquery.planner.rules.join_cost import Matching, Tree, cost_of, least_cost
from gquery.planner.rules.join_graph import JoinGraph, bits
from gquery.runtime.records import cached_property

_ONE_ROW: frozenset[int] = frozenset()  # the key of what has one row at most


class JoinSearch:
    """What is found in a graph where ``probe_side`` is the relation that is streamed: the cheapest tree, or none where each costs
    ``most`` or more."""

    def __init__(self, graph: JoinGraph, probe_side: int, most: float = inf) -> None:
        self.graph, self.most = graph, most
        self.probe_side = 1 << probe_side
        self.columns: dict[int, dict[int, Column]] = {}  # of a left side, by relations

    def best(self) -> Plan:
        assert self.tree is not None
        return self._plan(self.tree)

    @property
    def cost(self) -> float:
        """What the cheapest tree costs."""
        return inf if self.tree is None else self.tree.cost

    @cached_property
    def tree(self) -> Tree | None:
        """The cheapest tree that was found."""
        parts = [tree for part in self.graph.components() if (tree := self._search(part)) is not None]
        if len(parts) < len(self.graph.components()):
            return None
        parts.sort(key=lambda t: (not t.mask & self.probe_side, t.rows))
        tree = parts[0]
        for part in parts[1:]:  # no condition between them: a cross join, the small ones first
            tree = self._join(tree, part)
        return tree

    def _search(self, part: int) -> Tree | None:
        graph = self.graph
        members = list(bits(part))
        if len(members) == 1:
            return graph.base[members[0]]
        pairs = None if len(members) > tuning.join_order.most_by_dp else graph.pairs_in(part)
        if pairs is None:  # as well where nearly everything is joined with everything
            return self._greedy(members)
        found: dict[int, Tree] = {1 << i: graph.base[i] for i in members}
        least = least_cost()
        for a, b in pairs:
            left, right, known = found.get(a), found.get(b), found.get(a | b)
            if left is None or right is None:
                continue
            most = self.most if known is None else known.cost
            if most == inf or left.cost + right.cost + (left.rows + right.rows) * least < most:
                # else it is dearer, whatever they cost together
                found[a | b] = self._join(left, right, known)
        return found.get(part)

    def _greedy(self, members: list[int]) -> Tree:
        trees = [self.graph.base[i] for i in members]
        known: dict[tuple[int, int], Tree] = {}

        def joined(a: Tree, b: Tree) -> Tree:
            key = (a.mask, b.mask)
            if key not in known:
                known[key] = self._join(a, b)
            return known[key]

        while len(trees) > 1:
            near = [self.graph.around_of(t.mask) for t in trees]
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
        if len(pairs) == 1:  # of most joins
            ((x, y),) = pairs
            unique_a = _ONE_ROW in a.keys or frozenset((x.id,)) in a.keys
            unique_b = _ONE_ROW in b.keys or frozenset((y.id,)) in b.keys
        else:
            left, right = {x.id for x, _ in pairs}, {y.id for _, y in pairs}
            unique_a, unique_b = any(map(left.issuperset, a.keys)), any(map(right.issuperset, b.keys))
        by: Matching = "equal" if pairs else self._matching(a.mask, b.mask)
        stream, build, cost = a, b, cost_of(a, b, by, unique_b)
        if unique_a and not unique_b and not a.mask & self.probe_side:
            other = cost_of(b, a, by, True)
            if other < cost:
                stream, build, cost = b, a, other
        cost += stream.cost + build.cost
        if known is not None and not cost < known.cost:
            return known  # most of them: the rest is not asked for
        rows = self._rows(pairs, a, b)
        keys = (a.keys if unique_b else ()) + (b.keys if unique_a else ())
        width = a.width + b.width
        materialize = stream.streamed * tuning.join_costs.materialize_source + rows * width
        return Tree(a.mask | b.mask, rows, cost, keys, rows, materialize, stream.streamed, width, stream, build)

    def _matching(self, a: int, b: int) -> Matching:
        """How two sides without equal columns meet."""
        both = a | b
        return "range" if any(m & ~both == 0 and m & a and m & b for m in self.graph.ranges) else "all"

    def _rows(self, pairs: list[tuple[Column, Column]], a: Tree, b: Tree) -> float:
        """How many rows two trees have together."""
        graph = self.graph
        if len(pairs) == 1:
            kept = graph.keys_of(*pairs[0]).selectivity(a.rows, b.rows)
        else:
            kept = pairs_selectivity([graph.keys_of(x, y) for x, y in pairs], a.rows, b.rows)
        rows = a.rows * b.rows * kept
        if graph.kept:
            both = a.mask | b.mask
            for mask, kept in graph.kept:
                if mask & ~both == 0 and mask & a.mask and mask & b.mask:
                    rows *= kept
        return max(rows, tuning.cardinality.least_rows)

    def _equalities(self, a: int, b: int) -> list[tuple[Column, Column]]:
        """One (left column, right column) for each class of equal columns that both sides hold."""
        known = self.graph.columns
        right = known.get(b) or self.graph.columns_in(b)
        left = self._left_columns(a) if a & self.probe_side else known.get(a) or self.graph.columns_in(a)
        return [(left[n], right[n]) for n in left if n in right]

    def _left_columns(self, mask: int) -> dict[int, Column]:
        """By class the column that a left side gives which has the probe side: one of that is there without a probe."""
        found = self.columns.get(mask)
        if found is None:
            found = self.columns[mask] = {**self.graph.columns_in(mask), **self.graph.columns_in(self.probe_side)}
        return found

    # -- the plan

    def _plan(self, tree: Tree) -> Plan:
        if tree.left is None or tree.right is None:
            return self.graph.relations[tree.mask.bit_length() - 1]
        a, b = tree.left, tree.right
        left, right = self._plan(a), self._plan(b)
        terms: list[Expr] = []
        for x, _ in self._equalities(a.mask, b.mask):
            same = next(c for c in self.graph.classes if x in c.columns)
            terms.append(equal(x, self._build_key(same, b.mask, right), same.null_safe))
        terms.extend(t for mask, t in self.graph.others if mask & ~tree.mask == 0 and mask & a.mask and mask & b.mask)
        return Join(left, right, JoinKind.INNER, conjunction(tuple(terms)))

    def _build_key(self, same: EqualColumns, mask: int, right: Plan) -> Column:
        """Of the equal columns on the build side, the one that is known to be unique: its table needs no chains."""
        choices = [c for c in same.columns if 1 << self.graph.home[c.id] & mask]
        return next((c for c in choices if is_unique(right, frozenset((c.id,)))), choices[0])
