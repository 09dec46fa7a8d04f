"""Scripts that make macros, of values, of aggregates and of tables, and ask queries that call them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.fuzzing.data import BLOB, BOOL, CLOCK, DATE, DEC, INT, STR, TABLES, TIME, ZONED
from tests.fuzzing.names import Name, Names
from tests.fuzzing.windows import of_peers

if TYPE_CHECKING:
    from tests.fuzzing.grammar import Grammar

_KINDS = (INT, STR, DEC, DATE, TIME, BOOL, BLOB, CLOCK, ZONED)


@dataclass(frozen=True)
class Macro:
    """A macro that queries can call: the kinds of its arguments, of which the last may be left out, and of its value."""

    name: str
    kind: str
    arguments: tuple[str, ...]
    defaults: int = 0
    aggregates: bool = False


def script(g: Grammar) -> tuple[str, ...]:
    """Macros, the later ones over the earlier, and queries over them."""
    tape, out = g.tape, []
    for n in range(tape.count(2, 3)):
        shape = tape.below(4)
        out.append(_table(g, n) if shape == 0 else _aggregate(g, n) if shape == 1 else _scalar(g, n))
    out += [g.statement() for _ in range(tape.count(2, 3))]
    if (windowed := [m for m in g.macros if m.aggregates]) and tape.chance(50):
        out.append(_over(g, tape.one(windowed)))
    return tuple(out)


def _over(g: Grammar, macro: Macro) -> str:
    """A query of an aggregate's macro with OVER behind it."""
    tape = g.tape
    g.ctes.clear()
    source, names, terms = g.source(0)
    by = f"PARTITION BY {g.column(tape.one(_KINDS), names, ())} " if tape.chance(50) else ""
    call = f"{called(g, macro, names, (), 0)} OVER ({by}{of_peers(g, names)})"
    where = f" WHERE {' AND '.join(terms)}" if terms else ""
    return f"SELECT {call} AS c0, {g.column(tape.one(_KINDS), names, ())} AS c1 FROM {source}{where}"


def _scalar(g: Grammar, n: int) -> str:
    tape = g.tape
    below = [m for m in g.macros if not m.aggregates]
    inner_macro = tape.one(below) if below and tape.chance(40) else None
    kind = tape.one(_KINDS) if inner_macro is None else inner_macro.kind
    arguments = (tape.one((kind, *_KINDS)), *(tape.one(_KINDS) for _ in range(tape.below(2))))
    defaults = tape.below(len(arguments) + 1) if tape.chance(40) else 0
    names = tuple(Name(f"a{m}", k, made=True) for m, k in enumerate(arguments))
    body = g.value(kind, names, (), 2, 0) if inner_macro is None else called(g, inner_macro, names, (), 1)
    if inner_macro is None and tape.chance(25):
        source, inner, terms = g.source(0)
        terms.append(g.condition(names, inner))
        body = f"(SELECT {g.aggregate(kind, inner)} FROM {source} WHERE {' AND '.join(terms)})"
    listed = [
        f"a{m}" if m < len(arguments) - defaults else f"a{m} := {g.literal(k)}" for m, k in enumerate(arguments)
    ]
    g.macros.append(Macro(f"m{n}", kind, arguments, defaults))
    return f"CREATE OR REPLACE MACRO m{n}({', '.join(listed)}) AS {body}"


def _aggregate(g: Grammar, n: int) -> str:
    """An aggregate of its argument, behind which OVER may stand."""
    tape, kind = g.tape, g.tape.one((INT, STR, DATE, DEC))
    keep = " FILTER (WHERE a0 IS NOT NULL)" if tape.chance(25) else ""
    g.macros.append(Macro(f"m{n}", kind, (kind,), aggregates=True))
    return f"CREATE OR REPLACE MACRO m{n}(a0) AS {tape.one(('min', 'max'))}(a0){keep}"


def _table(g: Grammar, n: int) -> str:
    tape = g.tape
    kinds = [tape.one(_KINDS) for _ in range(tape.count(1, 3))]
    alias = g.fresh("x")
    names = g.columns(alias)
    items = ", ".join(f"{g.value(k, names, (), 1, 0)} AS c{m}" for m, k in enumerate(kinds))
    text = f"SELECT {items} FROM {tape.one(TABLES)} AS {alias} WHERE {alias}.i16 {tape.one(('<', '>=', '<>'))} a0"
    g.table_macros.append((f"m{n}", tuple(Name(f"c{m}", k, made=True) for m, k in enumerate(kinds))))
    return f"CREATE OR REPLACE MACRO m{n}(a0) AS TABLE {text}"


def called(g: Grammar, macro: Macro, names: Names, outer: Names, size: int) -> str:
    """A call: arguments by place or by name."""
    tape = g.tape
    g.fails = True  # its body is over values of any size
    given = len(macro.arguments) - tape.below(macro.defaults + 1)
    values = [g.value(k, names, outer, size, 0) for k in macro.arguments[:given]]
    if len(values) > 1 and tape.chance(25):
        return f"{macro.name}({values[0]}, {', '.join(f'a{m} := {v}' for m, v in enumerate(values[1:], 1))})"
    return f"{macro.name}({', '.join(values)})"
