"""PIVOT and UNPIVOT of random queries: as tables in FROM, and as statements that find their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.fuzzing.data import BLOB, BOOL, DATE, DBL, DEC, INT, KINDS, STR
from tests.fuzzing.names import Name, Names

if TYPE_CHECKING:
    from tests.fuzzing.grammar import Grammar

_SUMMED = (INT, DEC)
_ON = tuple(k for k in KINDS if k != BLOB)  # IN of a PIVOT takes what is a constant without a call
_NAMED = tuple(k for k in _ON if k != DBL)  # columns are named by values: which zero names that of 0.0 and -0.0 is not told


def statement(g: Grammar) -> str:
    """A PIVOT whose columns are the values of the data."""
    inner, key, on, aggregates = _parts(g, 1, _NAMED)
    using = ", ".join(f"{text} AS a{n}" for n, (text, _) in enumerate(aggregates))
    group = f" GROUP BY {key.sql}" if g.tape.chance(70) else ""
    return f"PIVOT ({inner}) ON {', '.join(n.sql for n in on)} USING {using}{group}"


def table(g: Grammar) -> tuple[str, Names]:
    """A subquery over a PIVOT or an UNPIVOT, and its columns."""
    return _pivoted(g) if g.tape.chance(60) else _unpivoted(g)


def _parts(
    g: Grammar, most: int, on_kinds: Sequence[str]
) -> tuple[str, Name, list[Name], list[tuple[str, str]]]:
    """What is pivoted: a query of its key, what it is pivoted on, and what is aggregated; the aggregates and their kinds."""
    tape = g.tape
    source, names = g.relation(0, None)
    kinds = [tape.one(_ON), *(tape.one(on_kinds) for _ in range(tape.count(1, most)))]
    items = [f"{g.column(kind, names, ())} AS p{n}" for n, kind in enumerate(kinds)]
    on = [Name(f"p{n}", kind) for n, kind in enumerate(kinds)]
    aggregates: list[tuple[str, str]] = []
    for n in range(tape.count(1, 2)):
        kind = tape.one((*_SUMMED, STR, DATE, BOOL))
        items.append(f"{g.column(kind, names, (), small=True)} AS v{n}")
        shapes = [f"min(v{n})", f"max(v{n})", f"count(v{n})", f"count(DISTINCT v{n})"]
        shapes += [f"sum(v{n})", f"coalesce(sum(v{n}), 0)", f"sum(v{n} + 1)"] if kind in _SUMMED else []
        text = tape.one(shapes)
        aggregates.append((text, INT if text.startswith("count") else kind))
    return f"SELECT {', '.join(items)} FROM {source}", on[0], on[1:], aggregates


def _pivoted(g: Grammar) -> tuple[str, Names]:
    tape = g.tape
    inner, key, on, aggregates = _parts(g, 2, _ON)
    made = [""]
    columns: list[str] = []
    for m, name in enumerate(on):
        literals = list(dict.fromkeys(g.literal(name.kind) for _ in range(tape.count(1, 3))))
        to = "::BIGINT" if name.kind == INT and tape.chance(30) else ""
        values = [f"{text}{to} AS n{m}{k}" for k, text in enumerate(literals) if not text.startswith("-")]
        values += [f"NULL AS n{m}x"] if tape.chance(30) or not values else []
        columns.append(f"{name.sql} IN ({', '.join(values)})")
        made = [f"{before}_{v.split(' AS ')[1]}".lstrip("_") for before in made for v in values]
    using = ", ".join(f"{text} AS a{n}" for n, (text, _) in enumerate(aggregates))
    names = [Name(f"{before}_a{n}", kind, made=True) for before in made for n, (_, kind) in enumerate(aggregates)]
    group = f" GROUP BY {key.sql}" if tape.chance(60) else ""
    text = f"SELECT * FROM ({inner}) PIVOT ({using} FOR {' '.join(columns)}{group})"
    return text, (Name(key.sql, key.kind, made=True), *names)


def _unpivoted(g: Grammar) -> tuple[str, Names]:
    tape = g.tape
    source, names = g.relation(0, None)
    kind, key = tape.one((INT, STR, DEC, DATE, BOOL)), tape.one(KINDS)
    count = tape.count(1, 3)
    items = [f"{g.column(key, names, ())} AS k0"]
    items += [f"{g.column(kind, names, (), small=True)} AS u{n}" for n in range(count)]
    entries = ", ".join(f"u{n}{tape.one(('', f' AS w{n}'))}" for n in range(count))
    nulls = tape.one(("", " INCLUDE NULLS"))
    g.sizes.last *= count
    text = f"SELECT * FROM (SELECT {', '.join(items)} FROM {source}) UNPIVOT{nulls} (v FOR n IN ({entries}))"
    return text, (Name("k0", key, made=True), Name("n", STR, made=True), Name("v", kind, made=True))
