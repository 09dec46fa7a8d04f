"""What the forms that `gquery.sql.reshape` binds are given and give, and rows that stand below one another for each row."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from gquery.expression.expr import TRUE, Case, Column, Expr, Literal, new_column
from gquery.expression.types import INTEGER, VARCHAR
from gquery.functions import call
from gquery.planner.logical.nodes import Join, JoinKind, Plan, Project, UnionAll, Values

Part = tuple[str, exp.Expr]  # of a form: what it is, and its node
Relation = tuple[Plan, tuple[str, ...], tuple[Column, ...]]  # with the names of its columns


def stacked(
    plan: Plan, kept: Sequence[Column], entries: Sequence[Sequence[Expr]], labels: Sequence[str]
) -> tuple[Plan, Column, list[Column]]:
    """Each row of a plan once an entry: its kept columns, the entry's label and values. The values of all entries have the types
    of the first one's. A row's entries come one behind the other."""
    number, label = new_column("entry", INTEGER, False), new_column("name", VARCHAR, False)
    rows = tuple((Literal(n, INTEGER), Literal(text, VARCHAR)) for n, text in enumerate(labels))
    pairs = Join(plan, Values((number, label), rows), JoinKind.INNER, TRUE)
    values: list[tuple[Column, Expr]] = []
    for choice in zip(*entries, strict=True):
        e = choice[-1]
        if len(choice) > 1:
            tests = tuple(call("eq", number, Literal(n, INTEGER)) for n in range(len(choice) - 1))
            e = Case(tuple(zip(tests, choice[:-1], strict=True)), e)
        values.append((new_column("value", e.dtype, e.nullable), e))
    made = Project(pairs, (*((c, c) for c in kept), (label, label), *values))
    return made, label, [c for c, _ in values]


def value_rows(columns: tuple[Column, ...], rows: Sequence[tuple[Expr, ...]]) -> Plan:
    """Constant rows. Lists are made by functions, so that rows with such are one query each."""
    if len(rows) < 2 or not any(c.dtype.is_opaque for c in columns):
        return Values(columns, tuple(rows))
    inputs = [tuple(new_column(c.name, c.dtype, c.nullable) for c in columns) for _ in rows]
    one_row = Values((), ((),))
    parts = [Project(one_row, tuple(zip(made, row, strict=True))) for made, row in zip(inputs, rows, strict=True)]
    return UnionAll(tuple(parts), tuple(inputs), columns)
