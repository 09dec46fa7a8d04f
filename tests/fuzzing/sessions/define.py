"""Statements that make, alter and drop schemas, tables, views, sequences, macros and variables."""

from __future__ import annotations

from dataclasses import replace

from tests.fuzzing.sessions.catalog import MAIN, Catalog, Column, Table, quoted, said
from tests.fuzzing.sessions.values import (
    BIG,
    BOOL,
    DATE,
    DBL,
    DEC,
    INT,
    JSON,
    KINDS,
    SMALL,
    STR,
    STRUCT,
    TIME,
    Values,
    constant,
)
from tests.fuzzing.tape import Tape

_MACROS = ("of_n", "Made", "f two", "select", "größe", "f")
_KEYS = INT, STR, BIG, DATE
_TO = {  # what ALTER TYPE makes of a column
    INT: (BIG, STR, DBL, DEC, SMALL),
    BIG: (INT, STR),
    SMALL: (INT, STR),
    STR: (JSON, INT, DATE),
    DBL: (DEC, INT),
    DEC: (DBL, STR),
    BOOL: (INT, STR),
    DATE: (TIME, STR),
    TIME: (DATE,),
    JSON: (STR,),
}


def schema(tape: Tape, catalog: Catalog) -> str:
    if len(catalog.schemas) > 1 and tape.chance(25):
        name = tape.one(catalog.schemas[1:])
        catalog.schemas.remove(name)
        catalog.tables = [t for t in catalog.tables if t.schema != name]
        return f"DROP SCHEMA {said(tape, name)} CASCADE"
    name = catalog.new_name(tape)
    if name not in catalog.schemas:
        catalog.schemas.append(name)
    return f"CREATE SCHEMA {tape.one(('', 'IF NOT EXISTS '))}{quoted(name)}"


def _columns(tape: Tape, catalog: Catalog, most: int) -> list[Column]:
    names: list[str] = []
    for _ in range(tape.count(1, most)):
        if (name := catalog.new_name(tape)).lower() not in {n.lower() for n in names}:
            names.append(name)
    return [Column(name, tape.one(KINDS)) for name in names]


def table(tape: Tape, catalog: Catalog) -> str:
    """CREATE TABLE with constraints."""
    made = Table(tape.one(catalog.schemas), catalog.new_name(tape), _columns(tape, catalog, 5))
    parts = [f"{quoted(c.name)} {c.kind}{_constraints(tape, c)}" for c in made.columns]
    keys = made.of(*_KEYS)
    if keys and tape.chance(35):
        made.key = tape.one(keys).name
        parts.append(f"{tape.one(('PRIMARY KEY', 'UNIQUE'))} ({said(tape, made.key)})")
    head = tape.one(("CREATE TABLE", "CREATE OR REPLACE TABLE", "CREATE TABLE IF NOT EXISTS"))
    name = f"{quoted(made.schema)}.{quoted(made.name)}" if made.schema != MAIN else quoted(made.name)
    catalog.add(made)
    return f"{head} {name} ({', '.join(parts)})"


def _constraints(tape: Tape, column: Column) -> str:
    out = " NOT NULL" if tape.chance(8) else ""
    if tape.chance(20):
        out += f" DEFAULT {constant(tape, column.kind)}"
    if tape.chance(8) and column.kind in (INT, STR, DEC):
        out += f" CHECK ({quoted(column.name)} <> {constant(tape, column.kind)})"
    return out


def table_of_query(tape: Tape, catalog: Catalog) -> str:
    """CREATE TABLE AS of constants, so that tables have rows from the start."""
    columns = _columns(tape, catalog, 4)
    rows = [", ".join(constant(tape, c.kind) for c in columns) for _ in range(tape.count(1, 4))]
    made = Table(tape.one(catalog.schemas), catalog.new_name(tape), columns)
    casts = ", ".join(f"c{n}::{c.kind} AS {quoted(c.name)}" for n, c in enumerate(columns))
    listed = ", ".join(f"c{n}" for n in range(len(columns)))
    name = f"{quoted(made.schema)}.{quoted(made.name)}" if made.schema != MAIN else quoted(made.name)
    catalog.add(made)
    return f"CREATE OR REPLACE TABLE {name} AS SELECT {casts} FROM (VALUES {', '.join(f'({r})' for r in rows)}) AS r({listed})"


def view(tape: Tape, catalog: Catalog) -> str | None:
    if not catalog.tables:
        return None
    source = tape.one(catalog.tables)
    values = Values(tape, catalog, source.columns)
    made = Table(tape.one(catalog.schemas), catalog.new_name(tape), [])
    kept = [c for c in source.columns if tape.chance(70)] or source.columns[:1]
    new = Column(catalog.new_name(tape), tape.one(KINDS))
    items = [values.column(c) for c in kept]
    if new.name.lower() not in {c.name.lower() for c in kept}:
        items.append(f"{values.of(new.kind)} AS {quoted(new.name)}")
        kept = [*kept, new]
    made.columns, made.is_view = kept, True
    where = f" WHERE {values.of(BOOL)}" if tape.chance(30) else ""
    name = f"{quoted(made.schema)}.{quoted(made.name)}"
    catalog.add(made)
    return f"CREATE OR REPLACE VIEW {name} AS SELECT {', '.join(items)} FROM {source.said(tape)}{where}"


def sequence(tape: Tape, catalog: Catalog) -> str:
    name = catalog.new_name(tape)
    if name not in catalog.sequences:
        catalog.sequences.append(name)
    options = tape.one(
        ("", " START 5", " INCREMENT 2", " START WITH 10 INCREMENT BY -1 MINVALUE 0 MAXVALUE 20", " MAXVALUE 3 CYCLE")
    )
    return f"CREATE {tape.one(('', 'OR REPLACE '))}SEQUENCE {quoted(name)}{options}"


def macro(tape: Tape, catalog: Catalog) -> str:
    name, kind = tape.one(_MACROS), tape.one(KINDS)  # none is that of a function
    parameter = tape.one(("v", "n", '"select"'))
    body = Values(tape, Catalog(), [Column(parameter.strip('"'), INT)]).of(kind)
    catalog.macros[name] = kind
    return f"CREATE OR REPLACE MACRO {quoted(name)}({parameter}) AS {body}"


def variable(tape: Tape, catalog: Catalog) -> str:
    name, kind = catalog.new_name(tape), tape.one(KINDS)
    value = Values(tape, catalog, []).of(kind)
    catalog.variables[name] = kind
    return f"SET VARIABLE {quoted(name)} = {value}"


def drop(tape: Tape, catalog: Catalog) -> str | None:
    if not catalog.tables:
        return None
    gone = tape.one(catalog.tables)
    what = "VIEW" if gone.is_view != tape.chance(5) else "TABLE"
    catalog.drop(gone)
    return f"DROP {what} {tape.one(('', 'IF EXISTS '))}{gone.said(tape)}"


def alter(tape: Tape, catalog: Catalog) -> str | None:
    """ALTER TABLE in one of its forms."""
    if not catalog.written:
        return None
    altered = tape.one(catalog.written)
    before = f"ALTER TABLE {altered.said(tape)} "
    column = tape.one(altered.columns)
    name = said(tape, column.name)
    at = altered.columns.index(column)
    match tape.below(12):
        case 0 | 1:
            new = Column(catalog.new_name(tape), tape.one(KINDS))
            if new.name.lower() not in {c.name.lower() for c in altered.columns}:
                altered.columns.append(new)
            default = f" DEFAULT {constant(tape, new.kind)}" if tape.chance(50) else ""
            return f"{before}ADD COLUMN {tape.one(('', 'IF NOT EXISTS '))}{quoted(new.name)} {new.kind}{default}"
        case 2:
            if len(altered.columns) > 1:
                altered.columns.pop(at)
            return f"{before}DROP COLUMN {tape.one(('', 'IF EXISTS '))}{name}"
        case 3 | 4:
            new_name = catalog.new_name(tape)
            if new_name.lower() not in {c.name.lower() for c in altered.columns}:
                altered.columns[at] = replace(column, name=new_name)
            return f"{before}RENAME {tape.one(('', 'COLUMN '))}{name} TO {quoted(new_name)}"
        case 5 | 6:
            kind = tape.one(_TO.get(column.kind, (column.kind,)))
            altered.columns[at] = replace(column, kind=kind)
            using = f" USING {name}::{kind}" if tape.chance(20) else ""
            how = tape.one(("SET DATA TYPE", "TYPE", "SET TYPE"))
            return f"{before}ALTER {tape.one(('', 'COLUMN '))}{name} {how} {kind}{using}"
        case 7:
            return f"{before}ALTER {name} SET DEFAULT {constant(tape, column.kind)}"
        case 8:
            return f"{before}ALTER COLUMN {name} {tape.one(('DROP DEFAULT', 'SET NOT NULL', 'DROP NOT NULL'))}"
        case 9:
            new_name = catalog.new_name(tape)
            catalog.drop(altered)
            altered.name = new_name
            catalog.add(altered)
            return f"{before}RENAME TO {quoted(new_name)}"
        case 10:
            if not altered.of(*_KEYS):
                return None
            altered.key = tape.one(altered.of(*_KEYS)).name
            return f"{before}ADD PRIMARY KEY ({quoted(altered.key)})"
        case _:
            return _field(tape, before, altered)


def _field(tape: Tape, before: str, altered: Table) -> str | None:
    """A field of a struct that comes, goes or is named anew; the column is then of a type that nothing else has."""
    structs = altered.of(STRUCT)
    if not structs:
        return None
    column = tape.one(structs)
    name = said(tape, column.name)
    action = tape.one((f"ADD COLUMN {name}.y VARCHAR", f'DROP COLUMN {name}."from"', f"RENAME COLUMN {name}.x TO z"))
    altered.columns[altered.columns.index(column)] = replace(column, kind="other")
    return before + action
