"""Statements that give rows: SELECT with COLUMNS, structs of whole rows, PIVOT and UNPIVOT, SUMMARIZE, DESCRIBE, SHOW."""

from __future__ import annotations

from tests.fuzzing.sessions.catalog import Catalog, quoted, said
from tests.fuzzing.sessions.values import BOOL, INT, KINDS, NUMBERS, Values, text
from tests.fuzzing.tape import Tape

_SHOWN = "column_name, column_type"
_DESCRIBED = f'{_SHOWN}, "null", key'  # a default is shown as it was written, where DuckDB writes it anew
_LISTS = (
    "SHOW TABLES",
    "SELECT table_schema, table_name, table_type FROM information_schema.tables",
    "SELECT schema_name, table_name, has_primary_key, column_count FROM duckdb_tables()",
    "SELECT current_schema()",
)
_LISTS_OF_COLUMNS = (
    "SHOW ALL TABLES",
    "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns",
    "SELECT view_name, column_count FROM duckdb_views() WHERE NOT internal",
)
_SUMMARY = "column_name, column_type, min, max, count, null_percentage"


def select(tape: Tape, catalog: Catalog) -> str | None:
    """Expressions over a table, with a name now and then."""
    if not catalog.tables:
        return f"SELECT {Values(tape, catalog, []).of(tape.one(KINDS))}"
    table = tape.one(catalog.tables)
    alias = quoted(catalog.new_name(tape)) if tape.chance(30) else ""
    values = Values(tape, catalog, table.columns, alias)
    items = []
    for _ in range(tape.count(1, 3)):
        name = f" AS {quoted(catalog.new_name(tape))}" if tape.chance(60) else ""
        items.append(values.of(tape.one(KINDS)) + name)
    where = f" WHERE {values.of(BOOL)}" if tape.chance(30) else ""
    return f"SELECT {', '.join(items)} FROM {table.said(tape)}{' AS ' + alias if alias else ''}{where}"


def rows(tape: Tape, catalog: Catalog) -> str | None:
    """A whole table."""
    if not catalog.tables:
        return None
    name = tape.one(catalog.tables).said(tape)
    return tape.one(
        (f"SELECT * FROM {name}", f"FROM {name}", f"TABLE {name}", f"SELECT * FROM {name} ORDER BY ALL LIMIT 2")
    )


def stars(tape: Tape, catalog: Catalog) -> str | None:
    """Stars and COLUMNS."""
    if not catalog.tables:
        return None
    table = tape.one(catalog.tables)
    column = tape.one(table.columns)
    values = Values(tape, catalog, table.columns)
    named, kind = said(tape, column.name), column.kind if column.kind in KINDS else INT
    item = tape.one(
        (
            "COLUMNS(*)",
            f"* EXCLUDE ({named})",
            f"* REPLACE ({values.of(kind)} AS {named})",
            f"* RENAME ({named} AS {quoted(catalog.new_name(tape))})",
            "COLUMNS(c -> c LIKE '%a%')",
            f"COLUMNS([{text(column.name)}])",
            "COLUMNS('.*')",
            "COLUMNS(*)::VARCHAR",
            "max(COLUMNS(*))",
            f"COLUMNS(* EXCLUDE ({named}))",
            "COLUMNS('(.)(.*)') AS '\\2_\\1'",
            "count(COLUMNS(*)), count(*)",
            "concat(*COLUMNS(*))",
            "coalesce(*COLUMNS('a|b'))",
            f"COLUMNS(lambda c: c <> {text(column.name)})",
            "* LIKE '%e%'",
            'min(COLUMNS(*)) AS "min_\\0"',
            "COLUMNS(*) IS NULL",
            f"COLUMNS(r.* EXCLUDE ({named}))",
            "struct_pack(*COLUMNS(*))",
            "[*COLUMNS('a|b')]",
        )
    )
    return f"SELECT {item} FROM {table.said(tape)} AS r"


def whole(tape: Tape, catalog: Catalog) -> str | None:
    """A row as a struct, by the name of its table."""
    if not catalog.tables:
        return None
    table = tape.one(catalog.tables)
    alias = tape.one(("r", '"select"', '"Row"'))
    column = said(tape, tape.one(table.columns).name)
    item = tape.one(
        (
            alias,
            f"{alias}.*",
            f"{alias}.{column}",
            f"to_json({alias})",
            f"({alias}).{column}",
            f"typeof({alias})",
            f"count({alias})",
        )
    )
    return f"SELECT {item} FROM {table.said(tape)} AS {alias}"


def groups(tape: Tape, catalog: Catalog) -> str | None:
    if not catalog.tables:
        return None
    table = tape.one(catalog.tables)
    values = Values(tape, catalog, table.columns)
    key, kind = values.of(tape.one(KINDS), 1), tape.one(KINDS)
    value = values.of(kind, 1)
    calls = [
        "count({0})",
        "min({0})",
        "max({0})",
        "count(DISTINCT {0})",
        "list({0} ORDER BY {0})",
        "any_value({1})",
        "first({1})",
        "mode({1})",
    ]
    calls += (
        ["sum({0})", "avg({0})", "median({0})"]
        if kind in NUMBERS
        else ["string_agg({0}::VARCHAR, ',' ORDER BY {0})", "max({0})"]
    )
    call = tape.one(calls).format(value, key)
    having = f" HAVING {tape.one(('count(*) > 1', 'min(' + value + ') IS NOT NULL'))}" if tape.chance(20) else ""
    return f"SELECT {key}, {call}, count(*) AS n FROM {table.said(tape)} GROUP BY {tape.one(('ALL', '1', key))}{having}"


def joined(tape: Tape, catalog: Catalog) -> str | None:
    """A table beside another by equal values, or by USING."""
    if not catalog.tables:
        return None
    one, two = tape.one(catalog.tables), tape.one(catalog.tables)
    pairs = [(a, b) for a in one.columns for b in two.columns if a.kind == b.kind]
    if not pairs:
        return None
    a, b = tape.one(pairs)
    how = tape.one(("JOIN", "LEFT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"))
    key, other = said(tape, a.name), said(tape, b.name)
    both = f'{one.said(tape)} AS l {how} {two.said(tape)} AS "R"'
    if tape.chance(30) and a.name == b.name:
        return f"SELECT {tape.one(('*', key))} FROM {both} USING ({key})"
    item = "*" if how.startswith(("SEMI", "ANTI")) or tape.chance(50) else "r.*, l.*"
    return f"SELECT {item} FROM {both} ON l.{key} = r.{other}"


def pivot(tape: Tape, catalog: Catalog) -> str | None:
    if not catalog.tables:
        return None
    table = tape.one(catalog.tables)
    on, value = tape.one(table.columns), tape.one(table.columns)
    call = tape.one(("count(*)", f"max({said(tape, value.name)})", f"count({said(tape, value.name)}) AS n"))
    by = f" GROUP BY {said(tape, tape.one(table.columns).name)}" if tape.chance(50) else ""
    if tape.chance(40):
        kinds = [c for c in table.columns if c.kind == value.kind]
        names = ", ".join(said(tape, c.name) for c in kinds)
        into = ' INTO NAME "the name" VALUE "the value"' if tape.chance(50) else ""
        return tape.one(
            (f"UNPIVOT {table.said(tape)} ON {names}{into}", f"FROM {table.said(tape)} UNPIVOT (v FOR k IN ({names}))")
        )
    return f"PIVOT {table.said(tape)} ON {said(tape, on.name)} USING {call}{by}"


def described(tape: Tape, catalog: Catalog) -> str:
    """What there is."""
    if not catalog.tables or tape.chance(25):
        has_views = any(t.is_view for t in catalog.tables)  # of which one may rest on what is gone
        return tape.one(_LISTS if has_views else (*_LISTS, *_LISTS_OF_COLUMNS))
    table = tape.one(catalog.tables)
    name, said_of = (
        table.said(tape),
        _SHOWN if table.is_view else _DESCRIBED,
    )  # DuckDB shows keys that a view's columns have
    return tape.one(
        (
            f"SELECT {said_of} FROM (DESCRIBE {name})",
            f"SELECT {_SUMMARY} FROM (SUMMARIZE {name})",
            f"SELECT {_SHOWN} FROM (DESCRIBE SELECT * FROM {name})",
            f"SELECT {_SUMMARY} FROM (SUMMARIZE SELECT * FROM {name})",
            f"SELECT cid, name, type, pk FROM pragma_table_info({text(name)})",
        )
    )


def variables(tape: Tape, catalog: Catalog) -> str:
    names = [*catalog.variables, catalog.new_name(tape)]
    calls = [f"getvariable({text(tape.one(names))})", f"typeof(getvariable({text(tape.one(names))}))"]
    if catalog.sequences and tape.chance(50):
        calls = [f"nextval({text(quoted(tape.one(catalog.sequences)))})"]
    return f"SELECT {tape.one(calls)}"


def nested_query(tape: Tape, catalog: Catalog) -> str | None:
    """WITH, subqueries and set operations over names that are keywords."""
    if not catalog.tables:
        return None
    table = tape.one(catalog.tables)
    alias, name = quoted(catalog.new_name(tape)), quoted(catalog.new_name(tape))
    kind, rows_of = tape.one(KINDS), table.said(tape)
    value, other = Values(tape, catalog, table.columns).of(kind), Values(tape, catalog, []).of(kind)
    made = f"SELECT {value} AS {name} FROM {rows_of}"
    both = tape.one(("UNION", "UNION ALL", "EXCEPT", "INTERSECT"))
    return tape.one(
        (
            f"WITH {alias} AS ({made}) SELECT {name}, count(*) FROM {alias} GROUP BY {name}",
            f"SELECT {name} FROM ({made}) AS {alias} ORDER BY {name} DESC NULLS LAST LIMIT 1",
            f"SELECT {value} FROM {rows_of} {both} SELECT {other}",
            f"SELECT (SELECT max({value}) FROM {rows_of}) AS {name}",
            f"SELECT {alias}.{name} FROM (SELECT {value} FROM {rows_of}) AS {alias}({name})",
            f"SELECT unnest([{value}]) AS {name} FROM {rows_of}",
            f"SELECT {name} FROM ({made}) WHERE {name} IS NOT NULL",
            f"SELECT row_number() OVER (PARTITION BY {value} ORDER BY {value}) AS {name} FROM {rows_of}",
            f"SELECT DISTINCT {value} AS {name} FROM {rows_of}",
        )
    )
