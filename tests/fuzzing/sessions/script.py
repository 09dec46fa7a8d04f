"""A script of 5 to 20 statements from a seed, and then the tables that it leaves."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.fuzzing.sessions import ask, define, modify
from tests.fuzzing.sessions.catalog import Catalog, quoted, said
from tests.fuzzing.sessions.values import BOOL, INT, KINDS, Values, constant
from tests.fuzzing.tape import Tape

Writer = Callable[[Tape, Catalog], "str | None"]
_LEAST, _MOST = 5, 20
_WRITERS: tuple[tuple[int, Writer], ...] = (
    (5, define.table_of_query),
    (3, define.table),
    (2, define.view),
    (1, define.schema),
    (2, define.sequence),
    (1, define.macro),
    (2, define.variable),
    (1, define.drop),
    (8, define.alter),
    (9, modify.insert),
    (6, modify.update),
    (2, modify.delete),
    (2, modify.merge),
    (9, ask.select),
    (6, ask.rows),
    (4, ask.stars),
    (2, ask.whole),
    (3, ask.groups),
    (2, ask.joined),
    (2, ask.pivot),
    (3, ask.described),
    (3, ask.variables),
    (4, ask.nested_query),
)
_BAG = tuple(writer for weight, writer in _WRITERS for _ in range(weight))
_QUOTES = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")


def script(seed: int) -> tuple[str, ...]:
    """The script of a seed."""
    tape, catalog = Tape(seed), Catalog()
    out = [define.table_of_query(tape, catalog)]
    kept: Catalog | None = None  # what there was at BEGIN
    for _ in range(tape.count(_LEAST - 1, _MOST - 1)):
        match tape.below(100):
            case n if n < 4 and kept is None:
                kept = catalog.copy()
                out.append(tape.one(("BEGIN", "BEGIN TRANSACTION", "START TRANSACTION")))
            case n if n < 20 and kept is not None:
                is_undone = tape.chance(60)
                catalog, kept = (kept if is_undone else catalog), None
                out.append("ROLLBACK" if is_undone else "COMMIT")
            case n if n >= 95:
                out.append(_prepared(tape, catalog))
            case _:
                if (made := tape.one(_BAG)(tape, catalog)) is not None:
                    out.append(made)
    out += [f"SELECT * FROM {t.said(tape)}" for t in catalog.tables[-2:]]
    return tuple(out)


def _prepared(tape: Tape, catalog: Catalog) -> str:
    """PREPARE, or EXECUTE of what is."""
    if catalog.prepared and tape.chance(60):
        name = tape.one(list(catalog.prepared))
        given = ", ".join(constant(tape, INT) for _ in range(catalog.prepared[name]))
        return f"EXECUTE {said(tape, name)}({given})" if given else f"EXECUTE {said(tape, name)}"
    name = catalog.new_name(tape)
    if not catalog.tables:
        catalog.prepared[name] = 1
        return f"PREPARE {quoted(name)} AS SELECT $1 + 1"
    table = tape.one(catalog.tables)
    values = Values(tape, catalog, table.columns)
    catalog.prepared[name] = 1
    compared = f"{values.of(INT)} {tape.one(('=', '<', '>='))} $1"
    asked = f"{values.of(tape.one(KINDS))} FROM {table.said(tape)}"
    return f"PREPARE {quoted(name)} AS SELECT {asked} WHERE {compared} OR {values.of(BOOL)}"


def construct(statement: str) -> str:
    """What a statement is, in a word or some: names of it are left out."""
    words = _QUOTES.sub("", statement).split()
    head = words[0].upper()
    if head == "ALTER":
        found = re.search(
            r"\b(ADD COLUMN|ADD PRIMARY KEY|DROP COLUMN|RENAME|TYPE|SET DEFAULT|DROP DEFAULT|SET NOT NULL|DROP NOT NULL)",
            statement,
        )
        return f"ALTER {found.group(1)}" if found else head
    if head == "CREATE":
        return next((f"CREATE {w}" for w in ("SCHEMA", "VIEW", "SEQUENCE", "MACRO", "TABLE") if w in words), head)
    if head == "SELECT":
        return next(
            (
                w
                for w in (
                    "SUMMARIZE",
                    "DESCRIBE",
                    "COLUMNS",
                    "GROUP BY",
                    "JOIN",
                    "UNION",
                    "nextval",
                    "getvariable",
                    "json",
                )
                if w in statement
            ),
            head,
        )
    return head
