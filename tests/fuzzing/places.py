"""Predicates over several values at once, and subqueries whose rows are cut by an order: rows of values, EXISTS of groups,
correlated LIMIT and OFFSET.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzzing.data import BLOB, BOOL, CLOCK, DATE, DEC, INT, STR, TIME, ZONED
from tests.fuzzing.names import Names

if TYPE_CHECKING:
    from tests.fuzzing.grammar import Grammar

_PLAIN = (INT, STR, DEC, DATE, TIME, BLOB, CLOCK, ZONED)
_NOT = ("", "NOT ")


def of_rows(g: Grammar, names: Names, outer: Names) -> str:
    """A comparison of rows of values, or whether a row is among some."""
    tape = g.tape
    kinds = [tape.one(_PLAIN) for _ in range(tape.count(2, 3))]

    def row(small: bool = False) -> str:
        return f"({', '.join(g.literal(k) if small else g.value(k, names, outer, 1, 0) for k in kinds)})"

    if tape.chance(40):
        columns = f"({', '.join(g.column(k, names, outer) for k in kinds)})"
        return f"({columns} {tape.one(_NOT)}IN ({row(True)}, {row(True)}))"
    how = tape.one(("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
    return f"({row()} {how} {row(tape.chance(30))})"


def among_rows(g: Grammar, names: Names, outer: Names, source: str, inner: Names, where: str) -> str:
    """Whether a row of values is among those of a subquery that depends on nothing around it and has no NULL: gquery takes the
    standard's meaning of the others, as documented."""
    tape = g.tape
    kinds = [tape.one(_PLAIN) for _ in range(2)]
    chosen = [g.column(k, inner, ()) for k in kinds]
    there = " AND ".join(f"{c} IS NOT NULL" for c in chosen)
    of_both = [g.column(k, names, outer) for k in kinds]
    listed = f"SELECT {', '.join(chosen)} FROM {source}{where}{' AND ' if where else ' WHERE '}{there}"
    known = " AND ".join(f"{c} IS NOT NULL" for c in of_both)
    return f"({known} AND ({', '.join(of_both)}) {tape.one(_NOT)}IN ({listed}))"


def first_of(g: Grammar, kind: str, source: str, inner: Names, where: str) -> str:
    """A scalar subquery: one of its values in their own order."""
    tape = g.tape
    chosen = g.column(kind, inner, ())
    end = tape.one(("", " DESC", " NULLS FIRST", " DESC NULLS LAST"))
    offset = f" OFFSET {tape.count(0, 2)}" if tape.chance(40) else ""
    distinct = "DISTINCT " if tape.chance(15) else ""
    return f"(SELECT {distinct}{chosen} FROM {source}{where} ORDER BY {chosen}{end} LIMIT 1{offset})"


def exists_of_groups(g: Grammar, source: str, inner: Names, where: str) -> str:
    """Whether a group of a subquery has what HAVING asks for."""
    tape = g.tape
    key = g.column(tape.one((INT, STR, BOOL)), inner, ())
    having = f"count(*) {tape.one(('>', '=', '<'))} {tape.count(1, 3)}"
    return f"({tape.one(_NOT)}EXISTS (SELECT {key} FROM {source}{where} GROUP BY {key} HAVING {having}))"
