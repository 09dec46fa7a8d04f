"""The optimizer: a fixed sequence of rules from the bound plan to the one that is run.

Each rule runs once (it reaches its own fixpoint in one walk): a new query is optimized in a few milliseconds, on the
way to a first answer in tens. Every rule is named, timed, and can be switched off by name; rules that later stages rely
on (subqueries gone, no DISTINCT aggregates, none that is made of others) cannot.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from time import perf_counter

from gquery.errors import InternalError
from gquery.expression.expr import Call
from gquery.expression.frozen import frozen_open
from gquery.planner.logical.cardinality import Estimator
from gquery.planner.logical.everywhere import transform_everywhere
from gquery.planner.logical.nodes import Aggregate, JoinKind, Limit, Plan, Project, Query, UnionAll, Values, Window
from gquery.planner.logical.shared import Kinds, all_kinds, each, kinds_of, uses
from gquery.planner.logical.tree import walk
from gquery.planner.logical.verify import is_verifying, verify
from gquery.planner.rules.common_subplans import common_subplans
from gquery.planner.rules.comparison_keys import comparison_keys
from gquery.planner.rules.decorrelate import decorrelate
from gquery.planner.rules.draw_random import draw_random
from gquery.planner.rules.drop_sorts import drop_sorts
from gquery.planner.rules.eliminate_distinct_aggregates import eliminate_distinct_aggregates
from gquery.planner.rules.expand_aggregates import expand_aggregates
from gquery.planner.rules.fix_moment import fix_moment
from gquery.planner.rules.fold_constants import Evaluate
from gquery.planner.rules.merge_projections import inline_renames, merge_projections
from gquery.planner.rules.prune_columns import prune_columns
from gquery.planner.rules.push_down_filter import push_down_filter
from gquery.planner.rules.recursive_steps import recursive_steps
from gquery.planner.rules.reduce_group_keys import reduce_group_keys
from gquery.planner.rules.reduce_outer_joins import reduce_outer_joins
from gquery.planner.rules.refresh_nullability import refresh_nullability
from gquery.planner.rules.simplify import simplify
from gquery.planner.rules.unnest_subqueries import unnest_subqueries
from gquery.runtime.interrupt import check as check_interrupt
from gquery.runtime.records import dataclass, replace


class Tools:
    """What rules work with: ``evaluate`` computes constant expressions, the estimator remembers what it found until a rule
    changes the query."""

    __slots__ = ("_estimator", "evaluate")

    def __init__(self, evaluate: Evaluate | None) -> None:
        self.evaluate = evaluate
        self._estimator: Estimator | None = None

    @property
    def estimator(self) -> Estimator:
        if self._estimator is None:
            self._estimator = Estimator()
        return self._estimator

    def forget(self) -> None:
        """The query is another one now."""
        self._estimator = None


Rewrite = Callable[[Query, Tools], Query | None]


@dataclass(frozen=True)
class Rule:
    """A named rewrite of a query; None says that it found nothing to do."""

    name: str
    rewrite: Rewrite
    required: bool = False  # what comes later does not work without it
    whole: bool = False  # takes the query with its definitions; others take each definition and the query by themselves
    for_uses: bool = False  # has nothing to do where no definition is used
    makes_uses: bool = False  # of definitions that it makes
    only: Kinds = 0  # behind the subqueries' end: has nothing to do where there is no such node (`shared.kinds`)


def _on_plan(rule: Callable[[Plan], Plan | None]) -> Rewrite:
    def rewrite(query: Query, _: Tools) -> Query | None:
        plan = rule(query.plan)
        return None if plan is None else replace(query, plan=plan)

    return rewrite


def _rare(name: str) -> Callable[[Plan], Plan | None]:
    """The function of a rule, and of its module, that few plans need: imported with the first that does."""
    found = _found(name)
    return lambda plan: found()(plan)


def _estimated(name: str) -> Rewrite:
    """The same of a rule that asks how many rows there are."""
    found = _found(name)

    def rewrite(query: Query, tools: Tools) -> Query | None:
        plan = found()(query.plan, tools.estimator)
        return None if plan is None else replace(query, plan=plan)

    return rewrite


def _found(name: str) -> Callable[[], Callable[..., Plan | None]]:
    @cache
    def found() -> Callable[..., Plan | None]:
        rule: Callable[..., Plan | None] = getattr(import_module(f"gquery.planner.rules.{name}"), name)
        return rule

    return found


def _expand_grouping_sets(plan: Plan) -> Plan | None:
    """No aggregate has grouping sets any more."""

    def without_sets(node: Plan) -> Plan:
        if not isinstance(node, Aggregate) or node.sets is None:
            return node
        from gquery.planner.rules.expand_grouping_sets import expanded  # as above

        return expanded(node, node.sets)

    new = transform_everywhere(plan, without_sets)
    return None if new is plan else new


def _linear_sums(plan: Plan) -> Plan | None:
    """`linear_sums`, where several aggregates of one node are of calls."""
    nodes = [n for n in walk(plan) if isinstance(n, Aggregate) and len(n.aggregates) > 1]
    if any(sum(bool(a.args) and isinstance(a.args[0], Call) for _, a in n.aggregates) > 1 for n in nodes):
        from gquery.planner.rules.linear_sums import linear_sums  # as above

        return linear_sums(plan)
    return None


def _group_by_arguments(query: Query, tools: Tools) -> Query | None:
    """`group_by_arguments`, where a key is made of columns, here or by a projection below."""
    found = [n for n in walk(query.plan) if isinstance(n, Aggregate) and n.keys]
    if not any(isinstance(n.source, Project) or any(e.children for _, e in n.keys) for n in found):
        return None
    from gquery.planner.rules.group_by_arguments import group_by_arguments  # as above

    plan = group_by_arguments(query.plan, tools.estimator)
    return None if plan is None else replace(query, plan=plan)


def _inline_shared(query: Query, _: Tools) -> Query | None:
    from gquery.planner.rules.inline_shared import inline_shared  # as above

    return inline_shared(query)


def _filter_shared(query: Query, tools: Tools) -> Query | None:
    from gquery.planner.rules.filter_shared import filter_shared

    return filter_shared(query, tools.evaluate)


def _simplify(query: Query, tools: Tools) -> Query | None:
    plan = simplify(query.plan, tools.evaluate)
    return None if plan is None else replace(query, plan=plan)


RULES: tuple[Rule, ...] = (
    # before all others: what random() gives is its row's
    Rule("draw_random", lambda query, tools: draw_random(query, tools.evaluate), required=True, whole=True),
    # what a recursion does in each round is a query of its own
    Rule(
        "recursive_steps",
        lambda query, tools: recursive_steps(query, lambda q: optimize(q, tools.evaluate)),
        required=True,
    ),
    # before all others, which know no grouping sets
    Rule("expand_grouping_sets", _on_plan(_expand_grouping_sets), required=True, makes_uses=True),
    # before all others, which take equal values for the same
    Rule("comparison_keys", _on_plan(comparison_keys), required=True),
    # before those that see through what is in place
    Rule("inline_shared", _inline_shared, whole=True, for_uses=True),
    # NOT IN is an ANTI join where there are no NULLs
    Rule("refresh_nullability", lambda query, _: refresh_nullability(query)),
    # subqueries become joins, and names that hide plans from each other go
    Rule("unnest_subqueries", _on_plan(unnest_subqueries), required=True),
    Rule("decorrelate", _on_plan(decorrelate), required=True, makes_uses=True),
    Rule("fix_moment", lambda query, _: fix_moment(query), required=True, whole=True),
    # before filters go down, to the rows whose numbers they are of
    Rule("number_rows", _on_plan(_rare("number_rows")), only=kinds_of(Window)),
    Rule("inline_renames", lambda query, _: inline_renames(query)),
    Rule("simplify", _simplify),
    # filters on the rows pass by the groups that are joined to them
    Rule(
        "whole_partitions", _on_plan(_rare("whole_partitions")), required=True, makes_uses=True, only=kinds_of(Window)
    ),
    # predicates go down, taking outer joins with them: less outer means further down
    Rule(
        "reduce_outer_joins", _on_plan(reduce_outer_joins), only=kinds_of(JoinKind.LEFT, JoinKind.FULL, JoinKind.SINGLE)
    ),
    Rule("anti_join", _on_plan(_rare("anti_join")), only=kinds_of(JoinKind.LEFT)),
    Rule("push_down_filter", _on_plan(push_down_filter)),
    # outer joins that could be inner ones are by now, and what filters their rows is below
    Rule(
        "nested_conditions",
        _on_plan(_rare("nested_conditions")),
        required=True,
        makes_uses=True,
        only=kinds_of(*JoinKind) & ~kinds_of(JoinKind.INNER),
    ),
    Rule("filter_shared", _filter_shared, whole=True, for_uses=True),
    Rule("propagate_empty", _on_plan(_rare("propagate_empty")), only=kinds_of(Values)),
    # before the join order, so that joins nothing depends on are not ordered; the pushed predicates are known by now
    Rule("prune_columns", lambda query, _: prune_columns(query), whole=True),
    Rule("eliminate_distinct_aggregates", _on_plan(eliminate_distinct_aggregates), required=True),
    Rule("expand_aggregates", _on_plan(expand_aggregates), required=True, makes_uses=True),
    Rule("reduce_group_keys", _on_plan(reduce_group_keys)),
    Rule("eager_aggregation", _estimated("eager_aggregation"), only=kinds_of(JoinKind.LEFT)),
    Rule("semi_join_reduction", _estimated("semi_join_reduction"), only=kinds_of(JoinKind.INNER, JoinKind.SEMI)),
    Rule("join_order", _estimated("join_order"), only=kinds_of(*JoinKind)),
    Rule("exists_by_extremes", _on_plan(_rare("exists_by_extremes")), only=kinds_of(JoinKind.SEMI, JoinKind.ANTI)),
    Rule("limit_into_sort", _on_plan(_rare("limit_into_sort")), only=kinds_of(Limit)),
    Rule("limit_windows", _on_plan(_rare("limit_windows")), only=kinds_of(Window)),
    Rule("drop_sorts", lambda query, _: drop_sorts(query), whole=True),
    Rule("merge_projections", _on_plan(merge_projections)),
    # behind those that put expressions into aggregates
    Rule("linear_sums", _on_plan(_linear_sums), only=kinds_of(Aggregate)),
    # behind those that put expressions into keys
    Rule("group_by_arguments", _group_by_arguments, only=kinds_of(Aggregate)),
    # again: outer joins became inner ones
    Rule("refresh_nullability_last", lambda query, _: refresh_nullability(query, is_pruned=True)),
    # again: conditions that moved into joins and filters leave columns that nothing above them needs
    Rule("prune_columns_last", lambda query, _: prune_columns(query), whole=True),
    # pruning would take from each copy what only the others ask for
    Rule("merge_aggregates", _on_plan(_rare("merge_aggregates")), only=kinds_of(*JoinKind, UnionAll)),
    Rule("common_subplans", lambda query, _: common_subplans(query), whole=True, makes_uses=True),
)


@frozen_open
class RuleStep:
    """What one rule did: for EXPLAIN, profiles and golden tests."""

    rule: str
    seconds: float
    query: Query
    changed: bool


def steps(
    query: Query, evaluate: Evaluate | None = None, disabled: frozenset[str] = frozenset(), check: bool | None = None
) -> list[RuleStep]:
    """The query after each rule, in order."""
    check = is_verifying() if check is None else check
    out: list[RuleStep] = []
    tools = Tools(evaluate)
    has_uses = bool(uses(query.plan))
    for rule in RULES:
        if rule.name in disabled and not rule.required:
            continue
        check_interrupt()
        start = perf_counter()
        new = _rewritten(rule, query, tools, has_uses)
        out.append(RuleStep(rule.name, perf_counter() - start, new or query, new is not None))
        if new is not None:
            query = new
            tools.forget()
            has_uses = (has_uses or rule.makes_uses) and bool(uses(query.plan))  # others make none, but the last
            if check:
                _verify_after(rule, query)
    if check:
        verify(query, finished=True)
    return out


def _rewritten(rule: Rule, query: Query, tools: Tools, has_uses: bool) -> Query | None:
    """The query as a rule leaves it, its definitions too; None where it found nothing to do."""
    if (rule.for_uses and not has_uses) or (rule.only and not all_kinds(query.plan) & rule.only):
        return None
    if rule.whole or not has_uses:
        return rule.rewrite(query, tools)
    return each(query, lambda q: None if rule.only and not all_kinds(q.plan) & rule.only else rule.rewrite(q, tools))


def optimize(query: Query, evaluate: Evaluate | None = None, disabled: frozenset[str] = frozenset()) -> Query:
    """The query rewritten by all rules but the disabled ones. ``evaluate`` computes constant expressions."""
    done = steps(query, evaluate, disabled)
    return done[-1].query if done else query


def _verify_after(rule: Rule, query: Query) -> None:
    try:
        verify(query)
    except InternalError as e:
        raise InternalError(f"after rule {rule.name}: {e}") from e
