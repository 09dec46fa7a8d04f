"""LIMIT, OFFSET, DISTINCT ON and samples: which rows of a query are left.

A constant LIMIT is a `Limit`. Any other is a filter over the number of the row (`Window`), as are a share of the rows and the
first row of each group that DISTINCT ON keeps. A sample takes rows by numbers that are made of their places and a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from gquery.errors import BindError, Error, NotSupportedError
from gquery.expression.expr import Column, Expr, Literal, SortKey, new_column
from gquery.expression.traverse import conjunction
from gquery.expression.types import BIGINT, DOUBLE, INT64, UBIGINT
from gquery.expression.windows import WHOLE_PARTITION, WindowCall
from gquery.functions import call, cast
from gquery.functions.casts import bare
from gquery.functions.registry import is_null_literal
from gquery.planner.logical.nodes import Filter, Limit, Plan, Project, Sort, Window
from gquery.sql.parse import located

Bind = Callable[[exp.Expr, str], Expr]  # of an expression without columns, in a clause
_ALL = Literal(INT64.high, BIGINT)
ROWID = "rowid"


def numbered(plan: Plan, partition: Sequence[Expr] = (), order: Sequence[SortKey] = ()) -> tuple[Plan, Column]:
    """The plan with the number of each row in its partition, from 1."""
    number = new_column("row_number", BIGINT, False)
    made = WindowCall("row_number", (), BIGINT, False)
    return Window(plan, tuple(partition), tuple(order), ((number, made),)), number


def with_rowid(plan: Plan) -> tuple[Plan, Column]:
    """The plan with the place of each row, from 0: the column ``rowid`` of a table."""
    rows, number = numbered(plan)
    rowid = new_column(ROWID, BIGINT, False)
    own = tuple((c, c) for c in plan.columns)
    return Project(rows, (*own, (rowid, call("subtract", number, Literal(1, BIGINT))))), rowid


def first_of_each(plan: Plan, keys: Sequence[Expr], order: Sequence[SortKey]) -> Plan:
    """The first row in an order of all that agree on the keys."""
    rows, number = numbered(plan, keys, order)
    return _only(plan, rows, call("eq", number, Literal(1, BIGINT)))


def limited(plan: Plan, node: exp.Expr, bind: Bind, sql: str) -> Plan:
    """The plan under the LIMIT and OFFSET (or FETCH) of a node, where it has them."""
    limit, offset = node.args.get("limit"), node.args.get("offset")
    skip = _bound(offset.expression, "OFFSET", bind, sql) if offset is not None else None
    if limit is not None and (options := limit.args.get("limit_options")) is not None and options.args.get("percent"):
        return _share(plan, _percentage(limit.expression, bind, sql), skip)
    if isinstance(limit, exp.Fetch):
        count = limit.args.get("count")
        most = _bound(count, "FETCH", bind, sql) if count is not None else 1  # FETCH FIRST ROW ONLY
    else:
        most = _bound(limit.expression, "LIMIT", bind, sql) if limit is not None else None
    if not isinstance(most, Expr) and not isinstance(skip, Expr):
        return plan if most is None and not skip else Limit(plan, most, skip or 0)
    rows, number = numbered(plan)
    place = _behind(number, skip)
    terms = [] if most is None else [call("le", place, call("coalesce", _expr(most), _ALL))]
    return _only(plan, rows, conjunction((*terms, call("gt", place, Literal(0, BIGINT)))))


def _share(plan: Plan, percent: float, skip: int | Expr | None) -> Plan:
    """A share of all rows, behind those that are skipped."""
    count = new_column("count", BIGINT, False)
    rows, number = numbered(plan)
    rows = Window(rows, (), (), ((count, WindowCall("count", (), BIGINT, False, WHOLE_PARTITION)),))
    place = _behind(number, skip)
    most = call("multiply", Literal(percent / 100, DOUBLE), cast(count, DOUBLE))
    there = (call("gt", place, Literal(0, BIGINT)), call("le", cast(place, DOUBLE), most))
    return _only(plan, rows, conjunction(there))


def _behind(number: Column, skip: int | Expr | None) -> Expr:
    """The number of a row, counted behind those that are skipped."""
    if not skip:
        return number
    return call("subtract", number, call("coalesce", _expr(skip), Literal(0, BIGINT)))


def _expr(bound: int | Expr) -> Expr:
    return bound if isinstance(bound, Expr) else Literal(bound, BIGINT)


def _only(plan: Plan, rows: Plan, predicate: Expr) -> Plan:
    """Rows of a plan without what was made to choose them."""
    return Project(Filter(rows, predicate), tuple((c, c) for c in plan.columns))


def _bound(node: exp.Expr, clause: str, bind: Bind, sql: str) -> int | Expr | None:
    """How many rows: a number, None for no bound, or an expression without columns."""
    if isinstance(node, exp.Var) and node.name.upper() == "ALL":
        return None
    e = bare(bind(node, clause))
    if isinstance(e, Literal) and e.value is None:
        return None
    try:
        if isinstance(e, Literal) and not e.dtype.is_integer:
            e = cast(e, BIGINT)
        if not isinstance(e, Literal):
            return cast(cast(e, UBIGINT), BIGINT)  # which raises an error where it is negative
    except Error as error:
        raise located(error, sql, node) from None
    if e.value < 0:
        raise located(BindError(f"{clause} cannot be negative"), sql, node)
    return int(e.value)


def _percentage(node: exp.Expr, bind: Bind, sql: str) -> float:
    e = bare(bind(node, "LIMIT"))
    if is_null_literal(e):
        return 100.0
    if not (isinstance(e, Literal) and e.value is not None and e.dtype.is_numeric):
        raise located(NotSupportedError("not supported: LIMIT with a percentage that is no constant"), sql, node)
    percent = e.value / 10**e.dtype.scale if e.dtype.is_decimal else float(e.value)
    if not 0 <= percent <= 100:
        raise located(BindError("the percentage of LIMIT must be between 0 and 100"), sql, node)
    return percent


# ---- samples ---------------------------------------------------------------------------------------------------------


def sampled(plan: Plan, node: exp.Expr | None, bind: Bind, sql: str) -> Plan:
    """The plan's rows that a TABLESAMPLE or USING SAMPLE takes. A number of rows is taken exactly, as is a share by the method
    *reservoir*; by others each row is taken with the same chance. The same seed takes the same rows."""
    if node is None:
        return plan
    method = node.args["method"].name.lower()
    if method not in ("system", "bernoulli", "reservoir"):
        raise located(
            BindError(f"there is no method {method!r} of sampling: system, bernoulli or reservoir"), sql, node
        )
    seed = node.args.get("seed")
    given = _bound(seed, "the seed of a sample", bind, sql) if seed is not None and seed is not False else None
    rows, chance = _chances(plan, given)
    percent = node.args.get("percent")
    if percent is not None:
        share = _percentage_of_sample(percent, bind, sql)
        if method != "reservoir":
            return _only(plan, rows, call("lt", chance, Literal(share / 100, DOUBLE)))
        chosen = _share(Sort(rows, (SortKey(chance),)), share, None)
        return Project(chosen, tuple((c, c) for c in plan.columns))
    if method != "reservoir":
        raise located(BindError(f"a sample by the method {method} is a percentage, no number of rows"), sql, node)
    most_rows = _bound(node.args["size"], "a sample", bind, sql)
    if not isinstance(most_rows, int):
        raise located(NotSupportedError("not supported: a sample of a size that is no constant"), sql, node)
    return Project(Sort(rows, (SortKey(chance),), most_rows), tuple((c, c) for c in plan.columns))


def _percentage_of_sample(node: exp.Expr, bind: Bind, sql: str) -> float:
    try:
        return _percentage(node, bind, sql)
    except BindError:
        raise located(BindError("the percentage of a sample must be between 0 and 100"), sql, node) from None


def _chances(plan: Plan, seed: int | Expr | None) -> tuple[Plan, Expr]:
    """A plan's rows, and a number from 0 up to 1 for each: the same in each run with a seed, another in each without."""
    if not isinstance(seed, int):
        return plan, call("random")
    from gquery.functions.chance import drawn

    rows, number = numbered(plan)
    return rows, drawn(seed & INT64.high, (number,))
