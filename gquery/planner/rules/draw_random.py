"""random() becomes a hash of the row's number and a seed, where it is written.

    Filter random() < 0.1        =>    Project i
      Range i                            Filter chance of (seed, n) < 0.1
                                           Window n = row_number()
                                             Range i

It runs before all other rules, in subqueries and in steps of recursions too: from here on a number belongs to its row, wherever
the expression goes. Each call has a seed of its own. In a recursion, whose step has the same rows numbered in each round, all
values of the row take part. `setseed` is done with here as well.
"""

from __future__ import annotations

from collections.abc import Callable

from gquery.errors import NotSupportedError, OutOfRangeError
from gquery.expression.expr import Column, Expr, Literal, new_column
from gquery.expression.traverse import conjunction, conjuncts, transform
from gquery.expression.types import BIGINT, INTEGER
from gquery.expression.windows import WindowCall
from gquery.functions import chance
from gquery.planner.logical.everywhere import map_subqueries
from gquery.planner.logical.nodes import (
    Aggregate,
    Apply,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Plan,
    Project,
    Query,
    Sort,
    Unnest,
    Values,
    Window,
    WorkingTable,
)
from gquery.planner.logical.shared import each, every_node
from gquery.planner.logical.tree import (
    expressions,
    map_expressions,
    transform_up,
    used_columns,
    walk,
)
from gquery.runtime.records import replace

Evaluate = Callable[[Expr], Literal]


def draws(plan: Plan) -> bool:
    """Whether a plan depends on chance."""
    return chance.may_be_drawn() and any(chance.draws(e) for p in every_node(plan) for e in expressions(p))


def draw_random(query: Query, evaluate: Evaluate | None) -> Query | None:
    """The query with numbers of rows in place of chance; None where it has none."""
    if not draws(query.plan):
        return None
    seeds, found = chance.current_seeds(), set[int]()
    for e in (x for p in every_node(query.plan) for x in expressions(p)):
        found |= _numbers(e)
    seed = seeds.next() if found else 0
    own = {number: chance.mixed(seed, k) for k, number in enumerate(sorted(found))}

    def one(q: Query) -> Query | None:
        plan = _Draws(own, seeds, evaluate).plan(q.plan)
        return None if plan is q.plan else replace(q, plan=plan)

    return each(query, one)


def _numbers(e: Expr) -> set[int]:
    """The numbers of the calls of random() in an expression."""
    number = chance.draw_number(e)
    return {number} if number is not None else set[int]().union(*map(_numbers, e.children))


class _Draws:
    """One query: ``seeds`` by the numbers of calls, and the connection's own."""

    def __init__(self, own: dict[int, int], seeds: chance.Seeds, evaluate: Evaluate | None) -> None:
        self.own, self.seeds, self.evaluate = own, seeds, evaluate
        self.is_step = False

    def plan(self, plan: Plan) -> Plan:
        """The plan with numbers of rows in place of chance."""
        outer, self.is_step = self.is_step, any(isinstance(n, WorkingTable) for n in walk(plan)) or self.is_step
        made = transform_up(plan, self._node)
        self.is_step = outer
        return made

    def _node(self, node: Plan) -> Plan:
        node = map_subqueries(node, self.plan)
        if isinstance(node, Fixpoint):
            step = self.plan(node.step.plan)
            return node if step is node.step.plan else replace(node, step=replace(node.step, plan=step))
        if any(chance.draws(e) for e in expressions(node)):
            node = map_expressions(node, lambda e: transform(e, self._seeded))
        return self._numbered(node) if any(_numbers(e) for e in expressions(node)) else node

    def _seeded(self, e: Expr) -> Expr:
        """NULL in place of setseed, which is done."""
        value = chance.seed_argument(e)
        if value is None:
            return e
        if not isinstance(value, Literal) and not used_columns(value) and self.evaluate is not None:
            value = self.evaluate(value)
        if not isinstance(value, Literal):
            raise NotSupportedError("not supported: setseed of a value that is no constant")
        if value.value is not None:
            if not -1 <= value.value <= 1:
                raise OutOfRangeError("setseed takes a number of -1 to 1")
            self.seeds.begin(float(value.value))
        return Literal(None, INTEGER)

    def _numbered(self, node: Plan) -> Plan:
        """The node over rows that have numbers."""
        match node:
            case Values(rows=rows):
                numbered = [[self._drawn(e, (Literal(k, BIGINT),)) for e in row] for k, row in enumerate(rows)]
                return Values(node.columns, tuple(map(tuple, numbered)))
            case Join() | Apply():
                return self._join(node)
            case Filter() | Sort() | Project() | Aggregate() | Window() | Unnest():
                number = new_column("row_number", BIGINT, False)
                source = Window(node.source, (), (), ((number, WindowCall("row_number", (), BIGINT, False)),))
                values = (number, *node.source.columns) if self.is_step else (number,)
                over = map_expressions(replace(node, source=source), lambda e: self._drawn(e, values))
                if isinstance(over, Project | Aggregate):
                    return over
                return Project(over, tuple((c, c) for c in node.columns))
            case _:
                raise AssertionError(node)

    def _join(self, node: Join | Apply) -> Plan:
        """A join whose condition leaves pairs to chance: a filter of the pairs."""
        if node.kind is not JoinKind.INNER:
            raise NotSupportedError("not supported: random() in the condition of a join other than INNER")
        terms = conjuncts(node.condition)
        certain = conjunction(tuple(t for t in terms if not _numbers(t)))
        return self._numbered(
            Filter(replace(node, condition=certain), conjunction(tuple(t for t in terms if _numbers(t))))
        )

    def _drawn(self, e: Expr, values: tuple[Column | Literal, ...]) -> Expr:
        def one(x: Expr) -> Expr:
            number = chance.draw_number(x)
            return x if number is None else chance.drawn(self.own[number], values)

        return transform(e, one)
