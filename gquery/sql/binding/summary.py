"""SUMMARIZE and DESCRIBE as queries: a row for each column of what they are asked of."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from gquery.expression.expr import Case, Column, Expr, Literal, new_column
from gquery.expression.nested_types import known_type
from gquery.expression.types import BIGINT, DOUBLE, VARCHAR, DType, Kind, decimal
from gquery.functions import call, cast
from gquery.planner.logical.nodes import Aggregate, Plan, Values
from gquery.sql.binding.columns import column_node
from gquery.sql.binding.expr import ExprBinder
from gquery.sql.binding.groups import GroupedScope
from gquery.sql.binding.origins import Origins
from gquery.sql.constraints import NONE
from gquery.sql.ctes import Queries
from gquery.sql.reshaped_rows import Relation, stacked
from gquery.sql.scope import Scope

_DESCRIBED = ("column_name", "column_type", "null", "key", "default", "extra")
_PERCENTAGE = decimal(9, 2)
_MOMENTS = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TIME)
_QUARTILES = {"q25": "0.25", "q50": "0.5", "q75": "0.75"}
_SUMMARIZED = (
    "column_name", "column_type", "min", "max", "approx_unique", "avg", "std", *_QUARTILES, "count", "null_percentage",
)  # fmt: skip


def described(query: Queries, plan: Plan, scope: Scope) -> Relation:
    """Names and types of the columns of a FROM clause, and what the tables that they are of ask of them."""
    columns = tuple(new_column(n, VARCHAR, n in _DESCRIBED[3:]) for n in _DESCRIBED)
    origins, rows = Origins(query), list[tuple[str | None, ...]]()
    for name, e in scope.star():
        constraints, own = origins.of(plan, e) if isinstance(e, Column) else (NONE, "")
        is_nullable = "NO" if own.lower() in constraints.not_null else "YES"
        rows.append((name, _type(e), is_nullable, constraints.key_of(own), constraints.default(own), None))
    return Values(columns, tuple(tuple(Literal(v, VARCHAR) for v in row) for row in rows)), _DESCRIBED, columns


def summary(query: Queries, plan: Plan, scope: Scope) -> Relation:
    """Extremes, distinct values, moments and quartiles of each column, as texts."""
    columns = scope.star()
    groups = GroupedScope(scope)
    binder = ExprBinder(query, scope, "SUMMARIZE", groups)
    entries = [_entry(e, binder.bind) for _, e in columns]
    result: Plan = Aggregate(plan, (), tuple(groups.aggregates))
    result, name, values = stacked(result, (), entries, [n for n, _ in columns])
    return result, _SUMMARIZED, (name, *values)


def _type(e: Expr) -> str:
    return str(known_type(e.dtype))


def _entry(e: Expr, bound: Callable[[exp.Expr], Expr]) -> list[Expr]:
    """What is said of a column, as expressions over one aggregate of all rows."""
    dtype, column = e.dtype, column_node("column", e)

    def of(name: str, *more: str) -> Expr:
        return bound(exp.Anonymous(this=name, expressions=[column.copy(), *map(exp.Literal.number, more)]))

    missing: Expr = Literal(None, VARCHAR)
    has_order = dtype.kind not in (Kind.OPAQUE, Kind.NULL)
    extremes = [cast(of(name), VARCHAR) if has_order else missing for name in ("min", "max")]
    unique = of("approx_count_distinct") if has_order else Literal(0 if dtype.kind is Kind.NULL else None, BIGINT)
    mean = _mean(dtype, bound, column)
    spread = cast(of("stddev"), VARCHAR) if dtype.is_numeric else missing
    has_quartiles = dtype.is_numeric or dtype.kind in _MOMENTS

    def quartile(share: str) -> Expr:
        found = cast(of("quantile_cont", share), dtype)
        shown = cast(found, VARCHAR)
        return Case(((call("isfinite", found), shown),), missing) if dtype.is_float else shown

    quartiles = [quartile(q) if has_quartiles else missing for q in _QUARTILES.values()]
    count = bound(exp.Anonymous(this="count", expressions=[exp.Star()]))
    known = of("count")
    share = call("divide", cast(call("subtract", count, known), DOUBLE), cast(count, DOUBLE))
    nulls = cast(call("multiply", share, Literal(100.0, DOUBLE)), _PERCENTAGE)
    nulls = Case(((call("eq", count, Literal(0, BIGINT)), Literal(None, _PERCENTAGE)),), nulls)
    return [Literal(_type(e), VARCHAR), *extremes, unique, mean, spread, *quartiles, count, nulls]


def _mean(dtype: DType, bound: Callable[[exp.Expr], Expr], column: exp.Expr) -> Expr:
    """The mean of numbers and, as a moment, of dates and moments; of times of the day a time."""
    if dtype.is_numeric:
        return cast(cast(bound(exp.Anonymous(this="avg", expressions=[column.copy()])), DOUBLE), VARCHAR)
    if dtype.kind not in _MOMENTS:
        return Literal(None, VARCHAR)
    micros = bound(exp.Anonymous(this="avg", expressions=[exp.Anonymous(this="epoch_us", expressions=[column.copy()])]))
    moment = call("make_timestamp", cast(micros, BIGINT))
    return cast(cast(moment, dtype) if dtype.kind in (Kind.TIME, Kind.TIMESTAMPTZ) else moment, VARCHAR)
