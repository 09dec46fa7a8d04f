"""Random queries over structs and maps: values and columns, what makes them and looks into them, and both as keys and as payload
of joins, groups, sets, windows, subqueries and CTEs.

A relation has a key ``k``, a number ``n``, two structs of one type ``st`` and ``su``, one with a list and a struct inside
``deep``, and a map ``mp``. Maps are compared by their entries in order, so that they are made in one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.fuzzing.data import BOOL, CLOCK, DATE, DBL, DEC, INT, STR, TABLES, TIME, ZONED
from tests.fuzzing.items import COMPARE, SETS, Items

if TYPE_CHECKING:
    from tests.fuzzing.grammar import Grammar

_COLUMNS = {
    INT: ("i32", "i8", "i64"), STR: ("str", "txt"), DEC: ("dec", "d18"), DATE: ("day",), BOOL: ("yes",), TIME: ("ts",),
    DBL: ("f64",), CLOCK: ("clk",), ZONED: ("moment",),
}  # fmt: skip
_TYPES = {
    INT: "BIGINT", STR: "VARCHAR", DEC: "DECIMAL(18,4)", DATE: "DATE", BOOL: "BOOLEAN", TIME: "TIMESTAMP", DBL: "DOUBLE",
    CLOCK: "TIME", ZONED: "TIMESTAMPTZ",
}  # fmt: skip
_ALL = "x.k, x.n, x.st, x.su, x.deep, x.mp"


class Nested(Items):
    """Writes one query over structs and maps whose fields are of two kinds."""

    distinct = 30

    def __init__(self, g: Grammar) -> None:
        self.g, self.tape = g, g.tape
        self.a = self.tape.one((INT, STR, DEC, DATE, DBL, TIME, BOOL, CLOCK, ZONED))
        self.b = self.tape.one((STR, INT, DBL, DATE, ZONED))
        self.key = self.tape.one((INT, STR))

    def statement(self) -> str:
        """One of the shapes."""
        joined = self._joined
        shapes = (self._plain, joined, joined, self._grouped, self._sets, self._windows, self._subqueries, self._shared)
        return self.tape.one(shapes)()

    # ---- relations ---------------------------------------------------------------------------------------------------

    def base(self) -> str:
        """A relation with the columns of all statements."""
        tape = self.tape
        where = f" WHERE i16 <= {tape.count(0, 6)}" if tape.chance(30) else ""
        key = tape.one(("i8", "i32", "i16"))
        deep = f"{{'l': [{self._of(INT)}, {self._of(INT)}], 's': {{'a': {self._of(self.b)}}}}}"
        return (
            f"(SELECT {key} AS k, i64 AS n, {self._struct()} AS st, {self._struct()} AS su, {self._maybe(deep)} AS deep, "
            f"{self._map()} AS mp FROM {tape.one(TABLES)}{where})"
        )

    def _of(self, kind: str) -> str:
        tape = self.tape
        if tape.chance(15):
            return f"({self.g.literal(kind)})::{_TYPES[kind]}"
        made = tape.one(_COLUMNS[kind])
        return f"CAST({'NULL' if tape.chance(5) else made} AS {_TYPES[kind]})"

    def _struct(self) -> str:
        tape = self.tape
        a, b = self._of(self.a), self._of(self.b)
        made = tape.one((f"{{'a': {a}, 'b': {b}}}", f"struct_pack(a := {a}, b := {b})"))
        return self._maybe(made)

    def _maybe(self, made: str) -> str:
        tape = self.tape
        if not tape.chance(30):
            return made
        condition = tape.one((f"i16 > {tape.count(-1, 3)}", "yes", "str IS NOT NULL"))
        return f"CASE WHEN {condition} THEN {made} END"

    def _map(self) -> str:
        """A map; keys are not NULL, and none comes twice."""
        tape, value = self.tape, self._of(self.a)
        if self.key == INT:
            first, second = f"coalesce({tape.one(('i8', 'i32'))}, 0)::BIGINT", "99::BIGINT"
        else:
            first, second = f"coalesce({tape.one(('str', 'txt'))}, '')", "'another'"
        made = tape.one((
            f"MAP {{{first}: {value}}}", f"MAP {{{first}: {value}, {second}: {self._of(self.a)}}}",
            f"map([{first}], [{value}])", f"map_from_entries([({first}, {value})])",
        ))  # fmt: skip
        return self._maybe(made)

    # ---- values ------------------------------------------------------------------------------------------------------

    def struct(self, x: str, size: int = 1) -> str:
        """A struct of the type of ``st``."""
        tape = self.tape
        if size == 0 or tape.chance(40):
            return f"{x}.{tape.one(('st', 'su'))}"

        def sub() -> str:
            return self.struct(x, size - 1)

        shapes: list[Callable[[], str]] = [
            lambda: f"CASE WHEN {self.test(x, 0)} THEN {sub()} ELSE {sub()} END",
            lambda: f"coalesce({sub()}, {sub()})",
            lambda: f"nullif({sub()}, {sub()})",
            lambda: f"{{'a': {sub()}.a, 'b': {sub()}.b}}",
            lambda: f"struct_pack(a := {sub()}['a'], b := {x}.deep.s.a)",
            lambda: f"[{sub()}, {sub()}][{tape.count(1, 2)}]",
            lambda: f"{tape.one(('greatest', 'least'))}({sub()}, {sub()})",
        ]
        return tape.one(shapes)()

    def map(self, x: str) -> str:
        """A map of the type of ``mp``."""
        tape = self.tape
        shapes = (
            f"{x}.mp", f"{x}.mp", f"map(map_keys({x}.mp), map_values({x}.mp))", f"map_from_entries(map_entries({x}.mp))",
            f"map_concat({x}.mp, {x}.mp)", f"CASE WHEN {x}.k > 1 THEN {x}.mp END",
        )  # fmt: skip
        return tape.one(shapes)

    def _map_key(self) -> str:
        return str(self.tape.one(("1", "99", "2", "NULL") if self.key == INT else ("'a'", "'another'", "''", "'ä'")))

    def scalar(self, x: str) -> str:
        """A value that is found in one of them."""
        tape = self.tape
        shapes: list[Callable[[], str]] = [
            lambda: f"{self.struct(x, 0)}.{tape.one(('a', 'b'))}",
            lambda: f"({self.struct(x)})['{tape.one(('a', 'b'))}']",
            lambda: f"({self.struct(x)})['{tape.one(('a', 'b'))}']",
            lambda: f"({self.struct(x)})['{tape.one(('a', 'b'))}']",
            lambda: f"({self.struct(x)})['{tape.one(('a', 'b'))}']",
            lambda: f"({self.struct(x)})['{tape.one(('a', 'b'))}']",
            lambda: f"struct_extract({self.struct(x)}, '{tape.one(('a', 'b'))}')",
            lambda: f"{x}.deep.s.a",
            lambda: f"{x}.deep.l[{tape.count(1, 3)}]",
            lambda: f"len({x}.deep.l)",
            lambda: f"({self.struct(x)} {tape.one(COMPARE)} {self.struct(x)})",
            lambda: f"({self.map(x)})[{self._map_key()}]",
            lambda: f"cardinality({self.map(x)})",
            lambda: f"map_contains({x}.mp, {tape.one(('99', '2')) if self.key == INT else self._map_key()})",
            lambda: f"({self.map(x)} {tape.one(COMPARE)} {self.map(x)})",
            lambda: f"map_keys({self.map(x)})[1]",
            lambda: f"len(map_entries({self.map(x)}))",
            lambda: f"map_values({self.map(x)})",
        ]
        if DBL not in (self.a, self.b):
            shapes.append(lambda: f"CAST({self.struct(x)} AS VARCHAR)")
        return tape.one(shapes)()

    def item(self, x: str) -> str:
        """What stands in a SELECT."""
        tape = self.tape
        shapes: list[Callable[[], str]] = [
            lambda: self.struct(x),
            lambda: self.map(x),
            lambda: self.scalar(x),
            lambda: self.scalar(x),
            lambda: self.scalar(x),
            lambda: f"{x}.{tape.one(('k', 'deep', 'n'))}",
            lambda: f"struct_insert({self.struct(x, 0)}, c := {x}.k)",
            lambda: f"{{'z': {self.struct(x, 0)}, 'm': {x}.mp}}",
            lambda: f"list_transform([{self.struct(x, 0)}, {self.struct(x, 0)}], lambda e: e.{tape.one(('a', 'b'))})",
            lambda: f"{x}.deep::STRUCT(l BIGINT[], s STRUCT(a {_TYPES[self.b]}))",
        ]
        return tape.one(shapes)()

    def test(self, x: str, size: int = 1) -> str:
        """A predicate over them."""
        tape = self.tape
        shapes: list[Callable[[], str]] = [
            lambda: f"{self.struct(x, size)} {tape.one(COMPARE)} {self.struct(x, size)}",
            lambda: f"{x}.{tape.one(('st', 'mp', 'deep'))} IS {tape.one(('', 'NOT '))}NULL",
            lambda: f"{self.struct(x, 0)}.a {tape.one(COMPARE)} {self.g.literal(self.a)}",
            lambda: f"{x}.mp[{self._map_key()}] {tape.one(COMPARE)} {x}.st.a",
            lambda: f"{x}.deep.l[1] {tape.one(('=', '>', '<='))} {tape.count(-2, 5)}",
            lambda: f"{x}.st BETWEEN {x}.su AND {self.struct(x, 0)}",
        ]
        return f"({tape.one(shapes)()})"

    # ---- statements --------------------------------------------------------------------------------------------------

    def _joined(self) -> str:
        tape = self.tape
        how = tape.one(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"))
        on = tape.one((
            "x.k = y.k", "x.mp = y.mp", "x.mp = y.mp", "x.mp = y.mp", "x.mp = y.mp", "x.mp = y.mp",
            "x.st = y.st", "x.st = y.su AND x.k = y.k", "x.st.a = y.st.a", "x.st.b = y.deep.s.a",
            "x.mp = y.mp", "x.st IS NOT DISTINCT FROM y.su", "x.deep = y.deep",
        ))  # fmt: skip
        names = ("x",) if how in ("SEMI JOIN", "ANTI JOIN") else ("x", "y")
        return (
            f"SELECT {self._items(*names)} FROM {self.base()} AS x {how} {self.base()} AS y ON {on}{self._where('x')}"
        )

    def _grouped(self) -> str:
        tape, base = self.tape, self.base()
        one, where = self.struct("x"), self._where("x")
        every = f"ORDER BY {_ALL}"
        shapes = (
            f"SELECT {one} AS c0, count(*) AS c1, min(x.k) AS c2, count(x.mp) AS c3 FROM {base} AS x{where} GROUP BY 1",
            f"SELECT {self.map('x')} AS c0, count(*) AS c1, max(x.k) AS c2 FROM {base} AS x{where} GROUP BY 1",
            f"SELECT x.k % 3 AS c0, {tape.one(('min', 'max'))}({one}) AS c1, count(DISTINCT x.su) AS c2 FROM {base} AS x{where} "
            "GROUP BY 1",
            f"SELECT x.st.a AS c0, x.deep.s.a AS c1, count(*) AS c2, max(x.n) AS c3 FROM {base} AS x GROUP BY ALL",
            f"SELECT x.k % 2 AS c0, list({one} {every}) AS c1, first(x.mp {every}) AS c2 FROM {base} AS x{where} GROUP BY 1",
            f"SELECT x.k % 2 AS c0, {tape.one(('arg_min', 'arg_max'))}(x.st, x.n {every}) AS c1 FROM {base} AS x GROUP BY 1",
            f"SELECT x.st AS c0, x.k % 2 AS c1, count(*) AS c2 FROM {base} AS x GROUP BY {tape.one(('ROLLUP', 'CUBE'))} (1, 2)",
            f"SELECT count(DISTINCT {one}) AS c0, count(DISTINCT x.mp) AS c1, count(x.su) AS c2 FROM {base} AS x{where}",
            f"SELECT x.deep AS c0, count(*) AS c1 FROM {base} AS x GROUP BY 1 HAVING count(*) > {tape.count(0, 2)}",
        )
        return tape.one(shapes)

    def _sets(self) -> str:
        tape, chosen = self.tape, self.tape.one(("st", "deep", "mp", "su"))
        parts = [f"SELECT x.{chosen} AS c0, x.k AS c1 FROM {self.base()} AS x{self._where('x')}"]
        for _ in range(tape.count(1, 2)):
            parts.append(f"{tape.one(SETS)} SELECT x.{chosen}, x.k FROM {self.base()} AS x{self._where('x')}")
        return " ".join(parts)

    def _windows(self) -> str:
        tape, every = self.tape, f"ORDER BY {_ALL}"
        frame = tape.one(("", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING"))
        of_rows = (
            f"first_value(x.st) OVER ({every}{frame})",
            f"last_value(x.mp) OVER (PARTITION BY x.k % 2 {every}{frame})",
            f"{tape.one(('lag', 'lead'))}({tape.one(('x.st', 'x.mp', 'x.deep', 'x.st.a'))}) OVER (PARTITION BY x.k % 3 {every})",
            f"list(x.st.a) OVER ({every}{frame})",
            f"row_number() OVER (PARTITION BY x.st {every})",
        )
        of_peers = (
            f"count(*) OVER (PARTITION BY {self.struct('x')})",
            f"rank() OVER (ORDER BY {self.struct('x')}{tape.one(('', ' DESC', ' NULLS FIRST'))})",
            f"dense_rank() OVER (PARTITION BY x.k ORDER BY {tape.one(('x.mp', 'x.deep', 'x.st'))})",
            "max(x.n) OVER (PARTITION BY x.mp)",
            "min(x.k) OVER (ORDER BY x.su)",
        )
        calls = f"{tape.one(of_rows)} AS c1, {tape.one(of_peers)} AS c2"
        qualify = f" QUALIFY rank() OVER (ORDER BY x.st, x.n) <= {tape.count(1, 9)}" if tape.chance(25) else ""
        return f"SELECT x.st AS c0, {calls} FROM {self.base()} AS x{self._where('x')}{qualify}"

    def _subqueries(self) -> str:
        tape = self.tape
        x, y = self.base(), self.base()
        not_ = tape.one(("", "NOT "))
        shapes = (
            f"SELECT x.k, (SELECT max(y.st) FROM {y} AS y WHERE y.k = x.k) AS c1 FROM {x} AS x",
            f"SELECT x.k, x.st FROM {x} AS x WHERE {not_}EXISTS (SELECT 1 FROM {y} AS y WHERE y.st = x.st)",
            f"SELECT x.k, x.mp FROM {x} AS x WHERE x.st {not_}IN (SELECT y.su FROM {y} AS y WHERE y.su IS NOT NULL)",
            f"SELECT x.k, (SELECT y.st FROM {y} AS y WHERE y.k = x.k ORDER BY y.st LIMIT 1) AS c1 FROM {x} AS x",
            f"SELECT x.k, u.a, u.b FROM {x} AS x, unnest([x.st, x.su]) AS t(u)",
            f"SELECT x.k, unnest(map_entries({self.map('x')})) AS u FROM {x} AS x{self._where('x')}",
            f"SELECT x.k, (SELECT count(*) FROM {y} AS y WHERE y.mp = x.mp) AS c1 FROM {x} AS x",
        )
        return tape.one(shapes)

    def _shared(self) -> str:
        tape = self.tape
        how = tape.one(("JOIN", "LEFT JOIN", "FULL JOIN"))
        items = self._items("x", "y")
        on = tape.one((f"x.k = y.k + {tape.count(0, 1)}", "x.st = y.su"))
        return f"WITH w AS (SELECT * FROM {self.base()} AS z) SELECT {items} FROM w AS x {how} w AS y ON {on}"
