"""INSERT of VALUES whose values are constants: the expressions, and the parameters among them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from gquery.expression.expr import Call, Cast, Expr, Literal
from gquery.expression.traverse import walk
from gquery.expression.types import Kind
from gquery.functions import cast
from gquery.planner.logical.nodes import Plan, Values
from gquery.planner.rules.draw_random import draws
from gquery.planner.rules.fix_moment import reads_clock

Row = tuple[Expr, ...]


def constant_rows(plan: Plan, places: Sequence[int], others: Sequence[Expr]) -> tuple[Row, ...] | None:
    """For each row of VALUES the values of all columns of a table; ``places``: the columns that have the values, where other
    columns have those of ``others``, whose types they all have. None where one is no constant, is new each time, or has
    months, which Python's values have not."""
    types = [e.dtype for e in others]
    if not isinstance(plan, Values) or any(t.is_opaque or t.is_nested or t.kind is Kind.INTERVAL for t in types):
        return None
    at = {place: n for n, place in enumerate(places)}
    missing = tuple(e for n, e in enumerate(others) if n not in at)
    if any(reads_clock(p) or draws(p) for p in (plan, Values((), (missing,)))):
        return None
    if not all(isinstance(x, Literal | Cast | Call) for row in (*plan.rows, missing) for e in row for x in walk(e)):
        return None
    return tuple(
        tuple(cast(row[at[n]], t) if n in at else others[n] for n, t in enumerate(types)) for row in plan.rows
    )


def parameters_of(
    written: Sequence[exp.Expr], places: Sequence[int], columns: int
) -> tuple[tuple[str | None, ...], ...] | None:
    """For each row and column the name of the parameter that stands there alone; None where one is a part of a value."""
    rows = []
    for row in written:
        names: list[str | None] = [None] * columns
        for place, value in zip(places, row.expressions if isinstance(row, exp.Tuple) else [row], strict=True):
            if isinstance(value, exp.Placeholder | exp.Parameter):
                names[place] = value.name or "1"
            elif value.find(exp.Placeholder, exp.Parameter) is not None:
                return None
        rows.append(tuple(names))
    return tuple(rows)
