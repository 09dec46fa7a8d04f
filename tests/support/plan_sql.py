"""A logical plan written back as DuckDB SQL, so that DuckDB can say whether a rule kept a query's meaning.

This tests the optimizer by itself, without lowering or kernels. SINGLE joins are written as LEFT ones: the error for
two matches is the engine's to raise.
"""

from __future__ import annotations

from typing import assert_never

from gquery.expression import expr as ex
from gquery.expression.windows import FrameBound, WindowCall
from gquery.planner.logical import nodes
from gquery.planner.logical.shared import definitions
from gquery.profile.explain import literal

_OPERATORS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "int_divide": "//", "modulo": "%", "eq": "=",
    "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "concat": "||",
    "is_distinct_from": "IS DISTINCT FROM", "is_not_distinct_from": "IS NOT DISTINCT FROM",
}  # fmt: skip


def query_sql(query: nodes.Query) -> str:
    """SQL whose rows are the query's, as a bag."""
    outputs = ", ".join(f"c{c.id}" for c in query.outputs)
    shared = ", ".join(
        f"d{d.number} AS MATERIALIZED (SELECT * FROM {plan_sql(d.plan)})" for d in definitions(query.plan)
    )
    return f"{f'WITH {shared} ' if shared else ''}SELECT {outputs} FROM {plan_sql(query.plan)}"


def plan_sql(plan: nodes.Plan) -> str:
    """A parenthesized SELECT that names its columns ``c<id>``."""
    return f"({_select(plan)}) AS q{id(plan)}"


def _columns(plan: nodes.Plan) -> str:
    return ", ".join(f"c{c.id}" for c in plan.columns) or "1 AS none"


def _select(plan: nodes.Plan) -> str:
    match plan:
        case nodes.Scan():
            names = plan.source.schema.names
            shown = ", ".join(f'"{names[f]}" AS c{c.id}' for c, f in zip(plan.columns, plan.fields, strict=True))
            return f'SELECT {shown or "1 AS none"} FROM "{plan.source.name}"'
        case nodes.Values(columns=columns, rows=rows):
            if not rows:
                nulls = ", ".join(f"NULL::{c.dtype} AS c{c.id}" for c in columns) or "1 AS none"
                return f"SELECT {nulls} WHERE FALSE"
            named = [[f"{sql(e)} AS c{c.id}" for c, e in zip(columns, row, strict=True)] for row in rows]
            return " UNION ALL ".join("SELECT " + (", ".join(shown_row) or "1 AS none") for shown_row in named)
        case nodes.Range():
            return f"SELECT range AS c{plan.column.id} FROM range({plan.start}, {plan.stop}, {plan.step})"
        case nodes.Shared(definition=d):
            given = ", ".join(f"c{o.id} AS c{c.id}" for c, o in zip(plan.columns, plan.outputs, strict=True))
            return f"SELECT {given or '1 AS none'} FROM d{d.number}"
        case nodes.Filter(source=s, predicate=p):
            return f"SELECT * FROM {plan_sql(s)} WHERE {sql(p)}"
        case nodes.Project(source=s, exprs=exprs):
            return f"SELECT {', '.join(f'{sql(e)} AS c{c.id}' for c, e in exprs) or '1 AS none'} FROM {plan_sql(s)}"
        case nodes.Aggregate(source=s, keys=keys, aggregates=calls):
            made = [f"{sql(e)} AS c{c.id}" for c, e in keys] + [f"{_call(a)} AS c{c.id}" for c, a in calls]
            by = f" GROUP BY {', '.join(sql(e) for _, e in keys)}" if keys else ""
            return f"SELECT {', '.join(made) or '1 AS none'} FROM {plan_sql(s)}{by}"
        case nodes.Window(source=s, partition=partition, order=sort_keys, calls=windows):
            by = f"PARTITION BY {', '.join(map(sql, partition))} " if partition else ""
            over = by + (f"ORDER BY {_keys(sort_keys)} " if sort_keys else "")
            values = ", ".join(f"{_window(call, over)} AS c{c.id}" for c, call in windows)
            return f"SELECT *, {values} FROM {plan_sql(s)}"
        case nodes.Unnest(source=s, lists=lists):
            if plan.ordinal is not None or plan.kept:
                raise AssertionError("numbers of elements, and rows for none, have no other text")
            return f"SELECT *, {', '.join(f'unnest({sql(e)}) AS c{c.id}' for c, e in lists)} FROM {plan_sql(s)}"
        case nodes.Sort(source=s, keys=sort_keys, limit=limit, offset=offset):
            return f"SELECT * FROM {plan_sql(s)} ORDER BY {_keys(sort_keys)}{_limit(limit, offset)}"
        case nodes.Limit(source=s, limit=limit, offset=offset):
            return f"SELECT * FROM {plan_sql(s)}{_limit(limit, offset)}"
        case nodes.Join():
            return _join(plan)
        case nodes.UnionAll():
            rows_of = [
                (s, [f"c{x.id} AS c{c.id}" for c, x in zip(plan.columns, row, strict=True)])
                for s, row in zip(plan.sources, plan.inputs, strict=True)
            ]
            return " UNION ALL ".join(f"SELECT {', '.join(r) or '1 AS none'} FROM {plan_sql(s)}" for s, r in rows_of)
        case nodes.Fixpoint() | nodes.WorkingTable():
            raise AssertionError("a recursion has no other text")
        case nodes.Apply():
            raise AssertionError("an Apply is left")
        case _:
            assert_never(plan)


def _keys(keys: tuple[ex.SortKey, ...]) -> str:
    return ", ".join(
        f"{sql(k.expr)} {'DESC' if k.descending else 'ASC'} NULLS {'FIRST' if k.nulls_first else 'LAST'}" for k in keys
    )


def _window(call: WindowCall, over: str) -> str:
    args = ", ".join(map(sql, call.args)) or "*" * (call.function == "count")
    inner = f" ORDER BY {_keys(call.order)}" if call.order else ""
    nulls = " IGNORE NULLS" if call.ignore_nulls else ""
    where = f" FILTER (WHERE {sql(call.filter)})" if call.filter is not None else ""
    frame = call.frame

    def bound(b: FrameBound) -> str:
        if b.amount is None:
            return b.kind
        return f"{sql(b.amount)} {b.kind}"

    ends = f"{frame.unit} BETWEEN {bound(frame.start)} AND {bound(frame.end)} EXCLUDE {frame.exclude}"
    distinct = "DISTINCT " if call.distinct else ""
    return f"{call.function}({distinct}{args}{inner}{nulls}){where} OVER ({over}{ends})"


def _limit(limit: int | None, offset: int) -> str:
    return (f" LIMIT {limit}" if limit is not None else "") + (f" OFFSET {offset}" if offset else "")


def _join(plan: nodes.Join) -> str:
    left, right, on = plan_sql(plan.left), plan_sql(plan.right), sql(plan.condition)
    shown = _columns(plan)
    match plan.kind:
        case nodes.JoinKind.INNER:
            return f"SELECT {shown} FROM {left} JOIN {right} ON {on}"
        case nodes.JoinKind.LEFT | nodes.JoinKind.SINGLE:
            return f"SELECT {shown} FROM {left} LEFT JOIN {right} ON {on}"
        case nodes.JoinKind.ASOF:
            return f"SELECT {shown} FROM {left} ASOF LEFT JOIN {right} ON {on}"
        case nodes.JoinKind.FULL:
            return f"SELECT {shown} FROM {left} FULL JOIN {right} ON {on}"
        case nodes.JoinKind.SEMI:
            return f"SELECT * FROM {left} WHERE EXISTS (SELECT 1 FROM {right} WHERE {on})"
        case nodes.JoinKind.ANTI:
            return f"SELECT * FROM {left} WHERE NOT EXISTS (SELECT 1 FROM {right} WHERE {on})"
        case nodes.JoinKind.MARK:
            assert plan.mark is not None
            return (
                f"SELECT *, CASE WHEN EXISTS (SELECT 1 FROM {right} WHERE {on}) THEN TRUE "
                f"WHEN EXISTS (SELECT 1 FROM {right} WHERE ({on}) IS NULL) THEN NULL ELSE FALSE END "
                f"AS c{plan.mark.id} FROM {left}"
            )


def _call(a: ex.AggregateCall) -> str:
    args = ", ".join(sql(e) for e in a.args) or "*"
    where = f" FILTER (WHERE {sql(a.filter)})" if a.filter is not None else ""
    function = "any_value" if a.function == "dependent_value" else a.function
    return f"{function}({'DISTINCT ' if a.distinct else ''}{args}){where}"


def sql(e: ex.Expr) -> str:
    match e:
        case ex.Column():
            return f"c{e.id}"
        case ex.Literal(value, dtype):
            return "NULL" if value is None and dtype.kind.value == "NULL" else f"({literal(value, dtype)})::{dtype}"
        case ex.Call(function=f, args=(a, b)) if f in _OPERATORS:
            return f"({sql(a)} {_OPERATORS[f]} {sql(b)})"
        case ex.Call(function="like", args=(a, b, *_)):
            return f"({sql(a)} LIKE {sql(b)})"
        case ex.Call(function="negate", args=(a,)):
            return f"(-{sql(a)})"
        case ex.Call(function=f, args=args):
            return f"{f.lstrip('_')}({', '.join(sql(a) for a in args)})"
        case ex.Cast(arg=arg, dtype=dtype, try_=try_):
            return f"{'TRY_' if try_ else ''}CAST({sql(arg)} AS {dtype})"
        case ex.Case(branches, otherwise):
            whens = " ".join(f"WHEN {sql(c)} THEN {sql(v)}" for c, v in branches)
            return f"(CASE {whens} ELSE {sql(otherwise)} END)"
        case ex.And(args):
            return "(" + " AND ".join(sql(a) for a in args) + ")"
        case ex.Or(args):
            return "(" + " OR ".join(sql(a) for a in args) + ")"
        case ex.Not(arg):
            return f"(NOT {sql(arg)})"
        case ex.IsNull(arg):
            return f"({sql(arg)} IS NULL)"
        case ex.In(arg, values):
            return f"({sql(arg)} IN ({', '.join(sql(ex.Literal(v, arg.dtype)) for v in values)}))"
        case ex.ScalarSubquery() | ex.Exists() | ex.InSubquery():
            raise AssertionError("a subquery is left")
        case _:
            assert_never(e)
