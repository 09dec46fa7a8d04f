"""Relations of random queries beside tables and derived ones: joins whose columns are merged, by order and by place, stars,
values, ranges, samples. Which rows they have depends on no order that a query does not tell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.fuzzing.data import BLOB, CLOCK, COLUMNS, DATE, DBL, DEC, INT, KINDS, STR, TABLES, TIME, ZONED
from tests.fuzzing.names import Name, Names

if TYPE_CHECKING:
    from tests.fuzzing.grammar import Grammar

_OF_ROWS = (INT, STR, DEC, DBL, DATE, TIME, BLOB, CLOCK, ZONED)  # of ON and USING
_ORDERED = (INT, DATE, DEC, TIME, STR, CLOCK, ZONED)  # of ASOF


def relation(g: Grammar) -> tuple[str, Names]:
    """A relation in parentheses or a call, and its columns without an alias."""
    shapes: tuple[Callable[[Grammar], tuple[str, Names]], ...] = (
        _merged, _asof, _asof, _positional, _star, _values, _series, _from_first, _sample, _columns, _numbered,
    )  # fmt: skip
    return g.tape.one(shapes)(g)


def _plain(g: Grammar, kind: str) -> str:
    """A column of a table whose values are small, by its own name."""
    return g.tape.one(
        [c for c, (k, _) in COLUMNS.items() if k == kind and c not in ("ed18", "ed38", "edec", "eu64", "e64")]
    )


def _side(g: Grammar, names: tuple[str, ...], kinds: tuple[str, ...], table: str = "") -> str:
    listed = ", ".join(f"{_plain(g, kind)} AS {name}" for name, kind in zip(names, kinds))
    return f"(SELECT {listed} FROM {table or g.tape.one(TABLES)})"


def _merged(g: Grammar) -> tuple[str, Names]:
    """USING and NATURAL: the key is one column."""
    tape = g.tape
    kind, a, b = tape.one(_OF_ROWS), tape.one(KINDS), tape.one(KINDS)
    how = tape.one(("", "LEFT ", "RIGHT ", "FULL ", "SEMI ", "ANTI "))
    left, right = _side(g, ("k", "a"), (kind, a)), _side(g, ("k", "b"), (kind, b))
    natural = tape.chance(50)
    join = f"{left} AS x {'NATURAL ' if natural else ''}{how}JOIN {right} AS y{'' if natural else ' USING (k)'}"
    join = f"({join})" if tape.chance(55) else join
    if how in ("SEMI ", "ANTI "):
        return f"(SELECT k AS c0, a AS c1 FROM {join})", _made(kind, a)
    return f"(SELECT k AS c0, a AS c1, b AS c2 FROM {join})", _made(kind, a, b)


def _asof(g: Grammar) -> tuple[str, Names]:
    """The right side has one row for each key and place in the order, so that it does not matter which is the last."""
    tape = g.tape
    kind, order, a, b = tape.one(_OF_ROWS), tape.one(_ORDERED), tape.one(KINDS), tape.one(KINDS)
    left = _side(g, ("k", "o", "a"), (kind, order, a))
    place = _plain(g, order)
    right = (
        f"(SELECT {_plain(g, kind)} AS k, {place} AS o, {'min' if b != 'bool' else 'bool_or'}({_plain(g, b)}) AS b "
        f"FROM {tape.one(TABLES)} WHERE {place} IS NOT NULL GROUP BY ALL)"
    )
    how = tape.one(("", "LEFT ", "RIGHT ", "FULL "))
    compared = tape.one((">=", ">", "<=", "<"))
    on, listed = f"x.k = y.k AND x.o {compared} y.o", "SELECT x.k AS c0, a AS c1, b AS c2 FROM"
    text = f"({listed} {left} AS x ASOF {how}JOIN {right} AS y ON {on})"
    if how in ("RIGHT ", "FULL "):  # DuckDB 1.5.5 gives wrong rows of them, or never ends
        kept = "LEFT JOIN" if how == "FULL " else "JOIN"
        nearest = (
            f"(SELECT x.*, y.j, row_number() OVER (PARTITION BY x.i ORDER BY y.o{' DESC' * compared.startswith('>')}) AS n "
            f"FROM l AS x {kept} m AS y ON {on})"
        )
        number = "SELECT *, row_number() OVER () AS"
        sides = f"WITH l AS ({number} i FROM {left}), m AS ({number} j FROM {right})"
        g.otherwise[text] = (
            f"({sides} {listed} (SELECT * FROM {nearest} WHERE n = 1) AS x {how}JOIN m AS y ON x.j = y.j)"
        )
    return text, _made(kind, a, b)


def _positional(g: Grammar) -> tuple[str, Names]:
    tape = g.tape
    a, b = tape.one(KINDS), tape.one(KINDS)
    text = f"(SELECT x.{_plain(g, a)} AS c0, y.{_plain(g, b)} AS c1 FROM {tape.one(TABLES)} AS x "
    return f"{text}POSITIONAL JOIN {tape.one(TABLES)} AS y)", _made(a, b)


def _numbered(g: Grammar) -> tuple[str, Names]:
    """The rows of a table with their numbers, some of them."""
    tape = g.tape
    a, number = tape.one(KINDS), tape.one(("row_number() OVER ()", "row_number() OVER () - 1", "-row_number() OVER ()"))
    kept = ("", f" WHERE n = {tape.count(-3, 9)}", f" WHERE n BETWEEN {tape.count(-9, 3)} AND {tape.count(3, 40)}")
    rows = f"(SELECT {_plain(g, a)} AS a, {number} AS n FROM {tape.one(TABLES)})"
    return f"(SELECT a AS c0, n AS c1 FROM {rows}{tape.one(kept)})", _made(a, INT)


def _star(g: Grammar) -> tuple[str, Names]:
    """A star with columns left out, replaced and renamed."""
    tape = g.tape
    out, small = _plain(g, STR), _plain(g, INT)
    taken = _plain(g, DATE)
    text = f"SELECT * EXCLUDE ({out}) REPLACE ({small} % 3 AS {small}) RENAME ({taken} AS c0) FROM {tape.one(TABLES)}"
    names = tuple(
        Name("c0" if c == taken else c, kind, made=True) for c, (kind, _) in COLUMNS.items() if c not in (out,)
    )
    return f"({text})", names


def _columns(g: Grammar) -> tuple[str, Names]:
    """COLUMNS by a pattern: an expression, or an aggregate, of each."""
    tape = g.tape
    chosen = [c for c in ("i32", "i8", "i16", "i64") if tape.chance(60)] or ["i8"]
    pattern = f"'^({'|'.join(chosen)})$'"
    each = tape.one((f"COLUMNS({pattern}) + 1", f"max(COLUMNS({pattern}))", f"abs(COLUMNS({pattern}) % 5)"))
    columns = ", ".join(f"c{n}" for n in range(len(chosen)))
    alias = g.fresh("y")
    text = f"(SELECT * FROM (SELECT {each} FROM {tape.one(TABLES)}) AS {alias}({columns}))"
    return text, _made(*[INT] * len(chosen))


def _values(g: Grammar) -> tuple[str, Names]:
    tape = g.tape
    kinds = [tape.one((INT, STR, DATE, CLOCK, ZONED, BLOB)) for _ in range(tape.count(1, 3))]
    rows = [
        ", ".join("NULL" if n and tape.chance(15) else g.literal(kind) for kind in kinds)
        for n in range(tape.count(1, 4))
    ]
    columns = ", ".join(f"c{n}" for n in range(len(kinds)))
    others = ""
    if tape.chance(45):
        row = ", ".join(map(g.literal, kinds))
        others = f" {tape.one(('UNION ALL', 'UNION', 'EXCEPT', 'INTERSECT'))} VALUES ({row})"
    return f"(SELECT * FROM (VALUES {', '.join(f'({row})' for row in rows)}{others}) AS y({columns}))", _made(*kinds)


def _series(g: Grammar) -> tuple[str, Names]:
    tape = g.tape
    first, last, step = tape.count(-3, 3), tape.count(0, 12), tape.count(1, 4)
    how = tape.one(("range", "generate_series"))
    return f"(SELECT * FROM {how}({first}, {last}, {step}) AS y(c0))", _made(INT)


def _from_first(g: Grammar) -> tuple[str, Names]:
    tape = g.tape
    a, b = tape.one(KINDS), tape.one(KINDS)
    where = f" WHERE {_plain(g, INT)} > {tape.count(-1, 3)}" if tape.chance(50) else ""
    return f"(FROM {tape.one(TABLES)} SELECT {_plain(g, a)} AS c0, {_plain(g, b)} AS c1{where})", _made(a, b)


def _sample(g: Grammar) -> tuple[str, Names]:
    """Which rows a sample has is chance, how many is not."""
    tape = g.tape
    most = tape.count(0, 12)
    how = tape.one((f"USING SAMPLE {most} ROWS", f"USING SAMPLE reservoir({most} ROWS)", "USING SAMPLE 100%"))
    if tape.chance(50):
        return f"(SELECT count(*) AS c0 FROM (SELECT * FROM {tape.one(TABLES)} {how}) AS y)", _made(INT)
    how = tape.one(("TABLESAMPLE reservoir(100 ROWS)", "TABLESAMPLE 100%"))
    a, b = tape.one(KINDS), tape.one(KINDS)
    return f"(SELECT {_plain(g, a)} AS c0, {_plain(g, b)} AS c1 FROM {tape.one(TABLES)} AS y {how})", _made(a, b)


def _made(*kinds: str) -> Names:
    return tuple(Name(f"c{n}", kind, made=True) for n, kind in enumerate(kinds))
