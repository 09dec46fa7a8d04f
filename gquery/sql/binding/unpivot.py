"""UNPIVOT: a row for each of several columns, with that column's name and value."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from gquery.errors import BindError, Error
from gquery.expression.expr import Column, Expr, IsNull, Not, new_column
from gquery.expression.traverse import conjunction
from gquery.expression.types import NULL
from gquery.functions import unified
from gquery.planner.logical.nodes import Filter, Plan, Project
from gquery.runtime.records import dataclass
from gquery.sql.binding.columns import expanded
from gquery.sql.binding.expr import ExprBinder
from gquery.sql.ctes import Queries
from gquery.sql.grouping_sets import keys_of
from gquery.sql.parse import located
from gquery.sql.reshaped_rows import Part, Relation, stacked
from gquery.sql.scope import Scope


@dataclass(frozen=True)
class _Entry:
    """What becomes one row: its name, the columns that it uses, its values."""

    name: str
    used: tuple[str, ...]
    values: tuple[Expr, ...]


def unpivot(query: Queries, parts: Sequence[Part], plan: Plan, scope: Scope, keeps_nulls: bool) -> Relation:
    """The rows of an UNPIVOT over a FROM clause: the columns that it does not use, a name, and values. A row with a NULL among
    its values is left out unless ``keeps_nulls``."""
    names = [n.name for mark, p in parts if mark == "value" for n in keys_of(p)] or ["value"]
    label = next((p.name for mark, p in parts if mark == "name"), "name")
    nodes = [n for mark, p in parts if mark == "on" for n in _each(query, p, scope)]
    entries = [_entry(query, n, scope, len(names)) for n in nodes]
    used = {c.lower() for entry in entries for c in entry.used}
    rest = [(name, e) for name, e in scope.star() if name.lower() not in used]
    plan, kept = _as_columns(plan, rest)
    columns = [_one_type(query, choice, nodes) for choice in zip(*(e.values for e in entries), strict=True)]
    made, name, values = stacked(plan, kept, list(zip(*columns, strict=True)), [e.name for e in entries])
    if not keeps_nulls and any(v.nullable for v in values):
        made = Filter(made, conjunction(tuple(Not(IsNull(v)) for v in values if v.nullable)))
    return made, (*(n for n, _ in rest), label, *names), (*kept, name, *values)


def _each(query: Queries, node: exp.Expr, scope: Scope) -> list[exp.Expr]:
    """The entries that one of ON stands for: ``*`` and COLUMNS are several."""
    if isinstance(node, exp.Star):
        node = exp.Columns(this=node)
    try:
        return expanded(node, scope.star, named=False)
    except Error as error:
        raise located(error, query.sql, node) from None


def _entry(query: Queries, node: exp.Expr, scope: Scope, count: int) -> _Entry:
    inner = node.this if isinstance(node, exp.Alias) else node
    exprs = keys_of(inner)
    if len(exprs) != count:
        raise located(BindError(f"UNPIVOT: {len(exprs)} columns for {count} names of values"), query.sql, node)
    used = [_column(query, e) for e in exprs]
    binder = ExprBinder(query, scope, "UNPIVOT")
    name = node.alias if isinstance(node, exp.Alias) else "_".join(scope.spelling(u) for u in used)
    return _Entry(name, tuple(used), tuple(binder.bind(e) for e in exprs))


def _column(query: Queries, node: exp.Expr) -> str:
    """The only column of an expression."""
    names = list(dict.fromkeys(c.name for c in node.find_all(exp.Column)))
    if len(names) != 1:
        raise located(BindError("UNPIVOT takes expressions of one column each"), query.sql, node)
    return names[0]


def _as_columns(plan: Plan, rest: Sequence[tuple[str, Expr]]) -> tuple[Plan, tuple[Column, ...]]:
    """The plan with columns for what is kept: USING of a FULL join makes an expression of one."""
    if all(isinstance(e, Column) for _, e in rest):
        return plan, tuple(e for _, e in rest if isinstance(e, Column))
    kept = [(e if isinstance(e, Column) else new_column(n, e.dtype, e.nullable), e) for n, e in rest]
    others = {c.id: c for c in plan.columns if all(c.id != k.id for k, _ in kept)}
    return Project(plan, (*kept, *((c, c) for c in others.values()))), tuple(k for k, _ in kept)


def _one_type(query: Queries, values: Sequence[Expr], nodes: Sequence[exp.Expr]) -> list[Expr]:
    """Values under one another in a column; texts and others take a cast."""
    texts = [v.dtype.is_string for v in values if v.dtype != NULL]
    if any(texts) and not all(texts):
        types = " and ".join(dict.fromkeys(str(v.dtype) for v in values if v.dtype != NULL))
        error = BindError(f"UNPIVOT of columns of types {types}: an explicit CAST is required")
        raise located(error, query.sql, nodes[0])
    return unified(values, "UNPIVOT")
