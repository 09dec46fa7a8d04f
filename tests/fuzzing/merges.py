"""MERGE INTO of random scripts. The source has one row for each key, so that no row of the table meets two of them: which of
several is taken nobody tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzzing.data import COLUMNS, EDGES, TABLES
from tests.fuzzing.names import Name, Names

if TYPE_CHECKING:
    from tests.fuzzing.changes import Changes

_KEYS = ("i32", "i64", "str")


def merge(c: Changes) -> str:
    """One MERGE of the table ``z``."""
    tape, key = c.tape, c.tape.one(_KEYS)
    others = [n for n in c.columns if n != key and tape.chance(60)]
    bool_or = {n: "bool_or" if COLUMNS[n][0] == "bool" else "max" for n in others}
    listed = ", ".join([key, *(f"{bool_or[n]}({n}) AS {n}" for n in others)])
    where = f" WHERE i32 <= {tape.count(-2, 5)}" if tape.chance(50) else ""
    source = f"(SELECT {listed} FROM {tape.one((*TABLES, 'z'))}{where} GROUP BY {key})"
    theirs = _names("y", (key, *others))
    on = tape.one((f"z.{key} = y.{key}", f"z.{key} = y.{key}", f"z.{key} IS NOT DISTINCT FROM y.{key}"))
    if tape.chance(25):
        on += f" AND {c.g.predicate(c.names() + theirs, (), 1, 0)}"
    clauses: list[str] = []
    returns = True
    whole: set[int] = set()  # kinds of rows of which no others are left
    for _ in range(tape.count(1, 3)):
        shape = tape.one((0, 0, 2, 3))
        names = (c.names() + theirs, (), theirs, c.names())[shape]
        only, action = _and(c, names), _insert(c, names) if shape == 2 else _change(c, names)
        if shape in whole:
            continue
        whole |= set() if only else {shape}
        returns &= shape != 3  # DuckDB returns wrong values of these: `tests/api/test_merge.py`
        kind = ("MATCHED", "", f"NOT MATCHED{tape.one(('', ' BY TARGET'))}", "NOT MATCHED BY SOURCE")[shape]
        clauses.append(f"{kind}{only} THEN {action}")
    text = f"MERGE INTO z USING {source} AS y ON {on}{''.join(f' WHEN {clause}' for clause in clauses)}"
    returned = tape.one(("*", "merge_action, *", "merge_action, i32, str"))
    return f"{text} RETURNING {returned}" if returns and tape.chance(40) else text


def _names(alias: str, columns: tuple[str, ...]) -> Names:
    return tuple(Name(f"{alias}.{n}", COLUMNS[n][0], n in EDGES) for n in columns)


def _and(c: Changes, names: Names) -> str:
    return f" AND {c.g.predicate(names, (), 1, 0)}" if c.tape.chance(50) else ""


def _change(c: Changes, names: Names) -> str:
    """What is done with a row of the table."""
    shape = c.tape.below(6)
    if shape == 0:
        return "DELETE"
    if shape == 1:
        return "DO NOTHING"
    return f"UPDATE SET {c.sets(names)}"


def _insert(c: Changes, names: Names) -> str:
    tape = c.tape
    shape = tape.below(5)
    if shape == 0:
        return "DO NOTHING"
    if shape == 1:
        return "INSERT DEFAULT VALUES"
    some = [n for n in c.columns if tape.chance(50)] or ["i32"]
    values = ", ".join("DEFAULT" if tape.chance(10) else c.new_value(n, names) for n in some)
    return f"INSERT ({', '.join(some)}) VALUES ({values})"
