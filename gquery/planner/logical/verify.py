"""Checks that a plan is sound: run after every rule in tests and under GQUERY_VERIFY=1. (`verify_program` checks what is
made of it.)

A rule that loses a column, makes an id twice or compares two types fails here, with its name, and not in a kernel.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from functools import partial

from gquery.errors import InternalError
from gquery.expression.expr import Call, Case, Column, Expr, InSubquery
from gquery.expression.traverse import walk as walk_expr
from gquery.planner.logical.nodes import (
    Aggregate,
    Apply,
    Definition,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    Query,
    Shared,
    UnionAll,
    Values,
)
from gquery.planner.logical.shared import definitions
from gquery.planner.logical.tree import (
    cached,
    column_ids,
    expressions,
    free_columns,
    has_subquery,
    made_columns,
    subqueries,
    walk,
)

_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "is_distinct_from", "is_not_distinct_from"})


def is_verifying() -> bool:
    """Whether plans and programs are checked as they are made: under test, and where GQUERY_VERIFY asks for it."""
    return os.environ.get("GQUERY_VERIFY", "0") not in ("", "0")


def verify(query: Query, finished: bool = False) -> None:
    """Raises InternalError for a broken plan. ``finished``: subqueries and Applies must be gone."""
    problems = list(_problems(query.plan, finished))
    for d in definitions(query.plan):
        problems += _definition(d)
    missing = free_columns(query.plan)
    if missing:
        problems.append(f"columns {sorted(missing)} are used and made nowhere")
    have = {c.id: c for c in query.plan.columns}
    problems.extend(f"result column {c.name}#{c.id} is not in the plan" for c in query.outputs if c.id not in have)
    problems += _hidden_nulls("the result", [(c, have[c.id]) for c in query.outputs if c.id in have])
    if len(query.outputs) != len(query.names):
        problems.append("the result has more or fewer names than columns")
    if problems:
        raise InternalError("unsound plan: " + "; ".join(dict.fromkeys(problems)))


def _problems(plan: Plan, finished: bool) -> list[str]:
    out: list[str] = []
    seen: set[int] = set()
    nodes = [n for p in (plan, *(d.plan for d in definitions(plan))) for n in walk(p)]
    met: set[int] = set()
    for node in nodes:
        for e in expressions(node):
            for s in subqueries(e):
                if id(s.plan) not in met:  # the binder may use one subquery in several places
                    met.add(id(s.plan))
                    nodes.extend(walk(s.plan))
    for node in nodes:
        what = type(node).__name__
        for c in made_columns(node):
            if c.id in seen:
                out.append(f"{what} makes {c.name}#{c.id}, which another node makes too")
            seen.add(c.id)
        out.extend(cached(node, "_problems", partial(_of_node, node)))  # a rule leaves most nodes as they are
        if finished and isinstance(node, Apply):
            out.append("an Apply is left")
        if finished and any(has_subquery(e) for e in expressions(node)):
            out.append(f"a subquery is left in a {what}")
    return out


def _of_node(node: Plan) -> list[str]:
    """What is wrong with a node over what lies below it."""
    what, out = type(node).__name__, _node(node)
    if len({c.id for c in node.columns}) < len(node.columns):
        out.append(f"{what} gives a column twice")
    out.extend(f"two inputs of {what} give column {i}" for i in _given_twice(node))
    below = {c.id: c for c in _inputs(node)}
    for e in expressions(node):
        out.extend(_expression(e, below, what))
    return out


def _given_twice(plan: Plan) -> list[int]:
    """The columns that two inputs of a node give: then one hides the other."""
    if len(plan.sources) < 2:
        return []
    return [i for i, n in Counter(i for s in plan.sources for i in column_ids(s)).items() if n > 1]


def _definition(d: Definition) -> list[str]:
    what = f"definition {d.number} {d.name}".rstrip()
    out = [f"{what} uses column {i}, which it does not make" for i in sorted(free_columns(d.plan))]
    have = {c.id: c for c in d.plan.columns}
    for c in d.outputs:
        if c.id not in have:
            out.append(f"{what} does not make its output {c.name}#{c.id}")
    out += _hidden_nulls(what, [(c, have[c.id]) for c in d.outputs if c.id in have])
    return out


def _use(plan: Shared) -> list[str]:
    """What is wrong with how a use maps the columns of its definition to its own."""
    if len(plan.fields) != len(plan.columns) or any(not 0 <= f < len(plan.definition.outputs) for f in plan.fields):
        return ["a use of a definition asks for a column that it does not have"]
    return [
        f"a use takes {made.name} {made.dtype}{' NULL' * made.nullable} as {c.dtype}{' NULL' * c.nullable}"
        for c, made in zip(plan.columns, plan.outputs, strict=True)
        if c.dtype != made.dtype or (made.nullable and not c.nullable)
    ]


def _hidden_nulls(what: str, made: Iterable[tuple[Column, Expr]]) -> list[str]:
    """The columns that are called NOT NULL, made of values that may be NULL."""
    return [f"{what} calls {c.name}#{c.id} NOT NULL, it is nullable" for c, e in made if e.nullable and not c.nullable]


def _inputs(plan: Plan) -> tuple[Column, ...]:
    match plan:
        case Join(left=a, right=b) | Apply(left=a, right=b):
            return a.columns + b.columns
        case UnionAll() | Values():
            return ()
        case _:
            source = getattr(plan, "source", None)
            return tuple(getattr(source, "columns", ()))


def _node(plan: Plan) -> list[str]:
    match plan:
        case Filter(predicate=p) | Join(condition=p) | Apply(condition=p) if p.dtype.kind.value != "BOOLEAN":
            return [f"{type(plan).__name__} on a {p.dtype}"]
        case Join(kind=kind, mark=mark) | Apply(kind=kind, mark=mark) if (kind is JoinKind.MARK) != (mark is not None):
            return ["a MARK join without a mark, or a mark on another join"]
        case Project(exprs=exprs):
            return _hidden_nulls("Project", exprs)
        case Aggregate(sets=sets) if sets is not None and len(sets.sets) == 0:
            return ["grouping sets without a set"]
        case Aggregate(keys=keys, aggregates=calls):  # what is known of a call's value may be more than its form says
            out = [f"{a.function} with a filter of {a.filter.dtype}" for _, a in calls
                   if a.filter is not None and a.filter.dtype.kind.value != "BOOLEAN"]  # fmt: skip
            return out + _hidden_nulls("Aggregate", keys)
        case UnionAll():
            out = []
            for s, row in zip(plan.sources, plan.inputs, strict=True):
                have = {c.id: c for c in s.columns}
                pairs = [*zip(plan.columns, row, strict=True)]
                takes = [
                    f"UNION ALL takes {x.name} {x.dtype} as {c.dtype}"
                    for c, x in pairs
                    if x.dtype != c.dtype or x.id not in have
                ]
                out += takes + _hidden_nulls("UNION ALL", [(c, have.get(x.id, x)) for c, x in pairs])
            return out
        case Shared():
            return _use(plan)
        case Values(rows=rows):
            out = ["a row of VALUES of another width" for row in rows if len(row) != len(plan.columns)]
            return out or [
                problem for row in rows for problem in _hidden_nulls("VALUES", zip(plan.columns, row, strict=True))
            ]
        case _:
            return []


def _expression(e: Expr, below: dict[int, Column], what: str) -> list[str]:
    out: list[str] = []
    for x in walk_expr(e):
        match x:
            case Column(id=i, name=name):
                made = below.get(i)
                if made is not None and made.dtype != x.dtype:
                    out.append(f"{what} reads {name}#{i} as {x.dtype}, it is {made.dtype}")
                if made is not None and made.nullable and not x.nullable:
                    out.append(f"{what} reads {name}#{i} as NOT NULL, it is nullable")
            case Call(function=f, args=(a, b)) if f in _COMPARISONS and a.dtype != b.dtype:
                out.append(f"{f} of {a.dtype} and {b.dtype}")
            case Case(branches, otherwise):
                kinds = {str(v.dtype) for _, v in branches} | {str(otherwise.dtype)}
                if len(kinds) > 1:
                    out.append(f"CASE of {' and '.join(sorted(kinds))}")
            case InSubquery(args, plan) if tuple(a.dtype for a in args) != tuple(c.dtype for c in plan.columns):
                out.append("IN (subquery) of other types")
            case _:
                pass
    return out
