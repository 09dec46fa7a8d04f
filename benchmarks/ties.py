"""Rows of a query with a LIMIT, compared up to ties: of rows that are equal by ORDER BY's keys any may be among those taken.

DuckDB says for a query without its LIMIT which rank each row has that could be there. Rows of a rank that is taken as a
whole have to be there, each as often; of the first rank and the last some may be. A query with a LIMIT alone may take any rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from sqlglot import exp, parse_one

from tests.support.harness import compare

Row = tuple[Any, ...]
_DIGITS = 8  # of floats that are told apart


def difference(oracle: Any, sql: str, got: Sequence[Row], want: Sequence[Row], types: Sequence[str]) -> str | None:
    """How rows differ from DuckDB's by more than which of equal ones were taken; None where they do not. ``oracle`` is a
    connection of DuckDB's that answers the query with ``want``."""
    wrong = compare(got, want, False, types)
    taken = None if wrong is None or len(got) != len(want) else _limit(sql)
    if taken is None:
        return wrong
    ranked, first = taken
    rows = sorted(oracle.execute(ranked.format(first + len(want))).fetchall(), key=lambda row: row[-1])
    within = Counter(row[-1] for row in rows[first : first + len(want)])
    required, choices = Counter[str](), dict[int, Counter[str]]()
    for rank, group in groupby(rows, key=lambda row: row[-1]):
        written = Counter(_written(row[:-1]) for row in group)
        if written.total() == within[rank]:
            required += written
        elif within[rank]:
            choices[rank] = written  # the first or the last rank: some of its rows
    given = Counter(map(_written, got))
    missing, others = required - given, given - required
    for rank in choices:  # what is in none of the others' rows has to be of this one
        elsewhere = sum((c for r, c in choices.items() if r != rank), Counter[str]())
        if (others - elsewhere).total() > within[rank]:
            missing += choices[rank]
    alien = others - sum(choices.values(), Counter[str]())
    if not missing and not alien:
        return None
    return f"{wrong}; ties considered {missing.total()} rows are missing, {alien.total()} are none of the result's"


def _limit(sql: str) -> tuple[str, int] | None:
    """The text that asks for the rank of each row, up to one that is put in, and how many rows are skipped; None for a query that
    has no LIMIT of a number, or GROUP BY ALL."""
    tree = parse_one(sql.rstrip().rstrip(";"), read="duckdb")
    limit, offset, order = (tree.args.get(k) for k in ("limit", "offset", "order"))
    group = tree.args.get("group")
    if (group is not None and group.args.get("all")) or not isinstance(tree, exp.Select):
        return None
    if limit is None or not isinstance(limit.expression, exp.Literal):
        return None
    if offset is not None and not isinstance(offset.expression, exp.Literal):
        return None
    skipped = 0 if offset is None else int(offset.expression.name)
    for part in ("limit", "offset", "order"):
        tree.set(part, None)
    if tree.args.get("distinct") is not None:  # ranks would make equal rows different ones
        tree = exp.select("*").from_(tree.subquery("rows"))
    elif order is not None:
        items = {i.alias.lower(): i.this for i in tree.expressions if isinstance(i, exp.Alias)}
        for key in order.expressions:
            key.set("this", _expression(key.this, tree.expressions, items))
    rank = "rank() OVER ()" if order is None else f"rank() OVER ({order.sql('duckdb')})"
    tree = tree.select(f"{rank} AS rank_of_row", dialect="duckdb")
    text = tree.sql("duckdb").replace("{", "{{").replace("}", "}}")
    return f"SELECT * FROM ({text}) WHERE rank_of_row <= {{}}", skipped


def _expression(key: exp.Expr, items: Sequence[exp.Expr], named: dict[str, exp.Expr]) -> exp.Expr:
    """What a key of ORDER BY stands for: the item of SELECT that it names or counts, or itself."""
    if isinstance(key, exp.Literal) and not key.is_string:
        return items[int(key.name) - 1].unalias().copy()
    if isinstance(key, exp.Column) and not key.table and key.name.lower() in named:
        return named[key.name.lower()].copy()
    return key


def _written(row: Sequence[Any]) -> str:
    return repr([f"{v:.{_DIGITS}g}" if isinstance(v, float) else v for v in row])
