"""Statements that change rows: INSERT, UPDATE, DELETE, MERGE, with RETURNING and ON CONFLICT."""

from __future__ import annotations

from tests.fuzzing.sessions.catalog import Catalog, Column, Table, quoted, said
from tests.fuzzing.sessions.values import BOOL, KINDS, Values, constant
from tests.fuzzing.tape import Tape


def _filled(table: Table) -> list[Column]:
    return [c for c in table.columns if c.kind in KINDS]


def _returning(tape: Tape, catalog: Catalog, table: Table) -> str:
    if not tape.chance(30):
        return ""
    values = Values(tape, catalog, table.columns)
    named = f"{values.of(tape.one(KINDS))} AS {quoted(catalog.new_name(tape))}"
    items = tape.one(("*", named, f"{named}, *"))
    return f" RETURNING {items}"


def insert(tape: Tape, catalog: Catalog) -> str | None:
    if not catalog.written:
        return None
    table = tape.one(catalog.written)
    columns = [c for c in _filled(table) if c.name == table.key or tape.chance(85)] or _filled(table)[:1]
    if not columns:
        return None
    if len(columns) == len(table.columns) and tape.chance(40):
        listed = ""
    else:
        columns = list(reversed(columns)) if tape.chance(20) else columns
        listed = f" ({', '.join(said(tape, c.name) for c in columns)})"
    values = Values(tape, catalog, [])
    width = tape.count(1, 3)
    rows = [
        "(" + ", ".join("DEFAULT" if tape.chance(6) else values.of(c.kind, tape.below(2)) for c in columns) + ")"
        for _ in range(width)
    ]
    source = f"VALUES {', '.join(rows)}"
    if tape.chance(20):
        other = tape.one(catalog.tables)
        own = Values(tape, catalog, other.columns)
        source = f"SELECT {', '.join(own.of(c.kind, 1) for c in columns)} FROM {other.said(tape)}"
    elif tape.chance(8):
        named = ", ".join(f"{values.of(c.kind, 1)} AS {quoted(c.name)}" for c in reversed(columns))
        listed, source = " BY NAME", f"SELECT {named}"
    conflict = ""
    if table.key and tape.chance(60):
        key = said(tape, table.key)
        changed = tape.one([c for c in columns if c.name != table.key] or columns)
        conflict = tape.one((
            " ON CONFLICT DO NOTHING", f" ON CONFLICT ({key}) DO NOTHING",
            f" ON CONFLICT ({key}) DO UPDATE SET {said(tape, changed.name)} = excluded.{said(tape, changed.name)}",
        ))  # fmt: skip
    verb = (
        tape.one(("INSERT INTO", "INSERT INTO", "INSERT OR IGNORE INTO", "INSERT OR REPLACE INTO"))
        if table.key and not conflict
        else "INSERT INTO"
    )
    return f"{verb} {table.said(tape)}{listed} {source}{conflict}{_returning(tape, catalog, table)}"


def update(tape: Tape, catalog: Catalog) -> str | None:
    if not catalog.written:
        return None
    table = tape.one(catalog.written)
    if not _filled(table):
        return None
    alias = quoted(catalog.new_name(tape)) if tape.chance(25) else ""
    values = Values(tape, catalog, table.columns, alias)
    changed = tape.one(_filled(table))
    parts = [f"{said(tape, changed.name)} = {values.of(changed.kind)}"]
    if tape.chance(25) and (other := tape.one(_filled(table))) != changed:
        parts.append(f"{said(tape, other.name)} = {values.of(other.kind)}")
    where = f" WHERE {values.of(BOOL)}" if tape.chance(70) else ""
    named = f"{table.said(tape)}{tape.one((' AS ', ' ')) + alias if alias else ''}"
    return f"UPDATE {named} SET {', '.join(parts)}{where}{_returning(tape, catalog, table)}"


def delete(tape: Tape, catalog: Catalog) -> str | None:
    if not catalog.written:
        return None
    table = tape.one(catalog.written)
    alias = quoted(catalog.new_name(tape)) if tape.chance(25) else ""
    where = f" WHERE {Values(tape, catalog, table.columns, alias).of(BOOL)}"
    named = f"{table.said(tape)}{' AS ' + alias if alias else ''}"
    return f"DELETE FROM {named}{where}{_returning(tape, catalog, table)}"


def merge(tape: Tape, catalog: Catalog) -> str | None:
    """MERGE with one row, which a row of the table meets at most by what decides both."""
    if not catalog.written:
        return None
    table = tape.one(catalog.written)
    columns = _filled(table)
    if not columns or len(columns) < len(table.columns):
        return None
    key = tape.one(columns)
    changed = tape.one(columns)
    row = ", ".join(f"{constant(tape, c.kind)}::{c.kind} AS {quoted(c.name)}" for c in columns)
    alias, source = quoted(catalog.new_name(tape)), "new rows"
    matched = tape.one(
        ("DELETE", f"UPDATE SET {said(tape, changed.name)} = {quoted(source)}.{said(tape, changed.name)}", "DO NOTHING")
    )
    listed = ", ".join(said(tape, c.name) for c in columns)
    given = ", ".join(f"{quoted(source)}.{said(tape, c.name)}" for c in columns)
    inserted = tape.one((f"INSERT ({listed}) VALUES ({given})", "INSERT BY NAME", "DO NOTHING"))
    return (
        f"MERGE INTO {table.said(tape)} AS {alias} USING (SELECT {row}) AS {quoted(source)}"
        f" ON {alias}.{said(tape, key.name)} = {quoted(source)}.{said(tape, key.name)}"
        f" WHEN MATCHED THEN {matched} WHEN NOT MATCHED THEN {inserted}"
    )
