"""Random queries over lists: values and columns, what makes them (`[a, b]`, ``list(x ORDER BY x)``, functions, lambdas, slices),
what looks into them, and lists through joins, groups, set operations, windows, subqueries and CTEs.

All lists of a statement have elements of one kind. What an order decides is ordered: ``list`` by its values, the results of
functions that keep no order by `list_sort`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.fuzzing.data import BOOL, CLOCK, DATE, DBL, DEC, INT, STR, TABLES, TIME, ZONED
from tests.fuzzing.items import COMPARE, SETS, Items

if TYPE_CHECKING:
    from tests.fuzzing.grammar import Grammar

# NaN is one value, of which DuckDB's list_distinct(['nan'::DOUBLE, 'nan'::DOUBLE]) keeps two
_NUMBER = "nullif(f64, 'nan'::DOUBLE)"
_COLUMNS = {
    INT: ("i32", "i8", "i64"), STR: ("str", "txt"), DEC: ("dec", "d18"), DATE: ("day",), BOOL: ("yes",), DBL: (_NUMBER,),
    TIME: ("ts",), CLOCK: ("clk",), ZONED: ("moment",),
}  # fmt: skip
_TYPES = {
    INT: "BIGINT", STR: "VARCHAR", DEC: "DECIMAL(18,4)", DATE: "DATE", BOOL: "BOOLEAN", DBL: "DOUBLE", TIME: "TIMESTAMP",
    CLOCK: "TIME", ZONED: "TIMESTAMPTZ",
}  # fmt: skip


class Lists(Items):
    """Writes one query over lists whose elements are of one kind."""

    distinct = 25

    def __init__(self, g: Grammar) -> None:
        self.g, self.tape = g, g.tape
        self.kind = self.tape.one((INT, STR, INT, DEC, DATE, BOOL, INT, STR, DBL, TIME, CLOCK, ZONED))

    def statement(self) -> str:
        """One of the shapes."""
        shapes = (
            self._plain,
            self._joined,
            self._unnested,
            self._grouped,
            self._sets,
            self._windows,
            self._nested,
            self._shared,
        )
        return self.tape.one(shapes)()

    # ---- relations: k, v, xs, ys -------------------------------------------------------------------------------------

    def base(self) -> str:
        """A relation of a key, a value and two lists."""
        tape, table = self.tape, self.tape.one(TABLES)
        key, v = tape.one(("i8", "i32", "i16")), tape.one(_COLUMNS[self.kind])
        if tape.chance(50):
            order = tape.one(("", " DESC", " NULLS FIRST", " DESC NULLS LAST"))
            keep = f" FILTER (WHERE {v} IS NOT NULL)" if tape.chance(20) else ""
            made = f"list({v} ORDER BY {v}{order}){keep}"
            ks = f"list({key} ORDER BY {key}) AS ks"
            return (
                f"(SELECT {key} AS k, min({tape.one(('i64', 'i16'))}) AS n, {made} AS xs, {ks} FROM {table} GROUP BY 1)"
            )
        items = ", ".join(self.element() for _ in range(tape.count(1, 3)))
        first = f"CAST([{items}] AS {_TYPES[self.kind]}[])"
        if tape.chance(30):
            first = f"CASE WHEN i16 > {tape.count(-1, 3)} THEN {first} END"
        elif tape.chance(20):
            first = f"{first}[{tape.count(1, 2)}:{tape.count(0, 2)}]"
        where = f" WHERE i16 <= {tape.count(0, 6)}" if tape.chance(30) else ""
        ks = f"[{key}, {tape.one(('i64', 'NULL', '1'))}] AS ks"
        return f"(SELECT {key} AS k, i64 AS n, {first} AS xs, {ks} FROM {table}{where})"

    def element(self) -> str:
        """A value of a table's column, a constant or NULL."""
        tape = self.tape
        if tape.chance(15):
            return "NULL" if tape.chance(40) else self.constant()
        return tape.one(_COLUMNS[self.kind])

    def constant(self) -> str:
        """A constant of the kind of the elements."""
        made = self.g.literal(self.kind)
        return "0.5e0" if "nan" in made else made

    # ---- values ------------------------------------------------------------------------------------------------------

    def value(self, a: str, size: int = 2) -> str:
        """A list of elements over a relation ``a``."""
        tape = self.tape
        if size == 0 or tape.chance(30):
            return f"{a}.xs"

        def sub() -> str:
            return self.value(a, size - 1)

        shapes: list[Callable[[], str]] = [
            lambda: f"list_sort({sub()})",
            lambda: f"list_reverse({sub()})",
            lambda: f"({sub()})[{tape.count(-2, 2)}:{tape.count(-1, 3)}]",
            lambda: f"list_concat({sub()}, {sub()})",
            lambda: f"list_append({sub()}, {self.constant()})",
            lambda: f"list_prepend({self.constant()}, {sub()})",
            lambda: f"list_sort(list_distinct({sub()}))",
            lambda: f"list_filter({sub()}, lambda e: e {tape.one(('=', '<>', '>', '<='))} {self.constant()})",
            lambda: f"list_filter({sub()}, lambda e: e IS NOT NULL)",
            lambda: f"list_filter({sub()}, lambda e, i: i {tape.one(('=', '<>', '>', '<='))} {tape.count(1, 3)})",
            lambda: f"[e FOR e IN {sub()} IF e {tape.one(('=', '<>', '>', '<='))} {self.constant()}]",
            lambda: f"coalesce({sub()}, [{self.constant()}])",
            lambda: f"CASE WHEN {self.test(a, 0)} THEN {sub()} ELSE {sub()} END",
        ]
        if self.kind == INT:
            shapes.append(
                lambda: f"list_transform({sub()}, lambda e: e {tape.one(('+ 1', '* 2', '% 3', '- ' + a + '.k'))})"
            )
            shapes.append(lambda: f"[e + {tape.count(0, 2)} FOR e IN {sub()}]")
            shapes.append(lambda: f"list_transform({sub()}, lambda e, i: e * i - {a}.k)")
        if self.kind == STR:
            shapes.append(
                lambda: f"list_transform({sub()}, lambda e: {tape.one(('upper(e)', 'e || e', 'coalesce(e, chr(65))'))})"
            )
        return tape.one(shapes)()

    def scalar(self, a: str) -> str:
        """A value that is found in a list."""
        tape, xs = self.tape, self.value(a, 1)
        shapes: list[Callable[[], str]] = [
            lambda: f"len({xs})",
            lambda: f"({xs})[{tape.count(-3, 3)}]",
            lambda: f"({xs})[{a}.k]",
            lambda: f"list_position({xs}, {self.constant()})",
            lambda: f"list_min({xs})",
            lambda: f"list_max({xs})",
            lambda: f"list_count({xs})",
            lambda: f"list_sum({a}.ks)::BIGINT",
            lambda: f"list_contains({xs}, {self.constant()})",
            lambda: f"list_has_any({xs}, {self.value(a, 1)})",
            lambda: f"list_has_all({xs}, {self.value(a, 0)})",
            lambda: f"list_has_all({xs}, [{self.constant()}])",
            lambda: f"list_has_any({xs}, [{self.constant()}, {self.constant()}])",
            lambda: f"({xs} {tape.one(COMPARE)} {self.value(a, 1)})",
            lambda: f"list_unique({xs})",
            lambda: f"list_last({xs})",
        ]
        if self.kind in (INT, STR):
            shapes += 5 * [lambda: f"array_to_string({xs}, '-')", lambda: f"CAST({xs} AS VARCHAR)"]
        return tape.one(shapes)()

    def item(self, a: str) -> str:
        """What stands in a SELECT."""
        tape = self.tape
        if tape.chance(12):
            return f"[{self.value(a, 1)}, {a}.xs]"
        if self.kind in (INT, STR) and tape.chance(18):
            return f"array_to_string({self.value(a, 1)}, '-')"
        if tape.chance(40):
            return self.value(a)
        return self.scalar(a) if tape.chance(65) else tape.one((f"{a}.k", f"{a}.ks"))

    def test(self, a: str, size: int = 1) -> str:
        """A predicate over lists."""
        tape = self.tape
        shapes: list[Callable[[], str]] = [
            lambda: f"len({a}.xs) {tape.one(('=', '>', '<='))} {tape.count(0, 3)}",
            lambda: f"list_contains({a}.xs, {self.constant()})",
            lambda: f"{self.constant()} {tape.one(('IN', 'NOT IN'))} {a}.xs",
            lambda: f"{self.constant()} {tape.one(('= ANY', '<> ALL'))}({self.value(a, size)})",
            lambda: f"{a}.xs.len() {tape.one(('=', '>'))} {tape.count(0, 3)}",
            lambda: f"{a}.xs {tape.one(COMPARE)} {self.value(a, size)}",
            lambda: f"{a}.xs IS {tape.one(('', 'NOT '))}NULL",
            lambda: f"({a}.xs)[{tape.count(1, 2)}] {tape.one(COMPARE)} {self.constant()}",
        ]
        return f"({tape.one(shapes)()})"

    # ---- statements --------------------------------------------------------------------------------------------------

    def _joined(self) -> str:
        tape = self.tape
        how = tape.one(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"))
        on = tape.one(("x.k = y.k", "x.k = y.k", "x.xs = y.xs", "x.k = len(y.xs)"))
        if how == "JOIN" and tape.chance(30):
            on = "x.k = y.k AND x.xs < y.xs"  # lists of other types than each other other joins refuse to compare
        names = ("x",) if how in ("SEMI JOIN", "ANTI JOIN") else ("x", "y")
        return (
            f"SELECT {self._items(*names)} FROM {self.base()} AS x {how} {self.base()} AS y ON {on}{self._where('x')}"
        )

    def _unnested(self) -> str:
        tape, base, xs = self.tape, self.base(), self.value("x", 1)
        shapes = (
            f"SELECT x.k, unnest({xs}) AS u FROM {base} AS x",
            f"SELECT x.k, t.u FROM {base} AS x, unnest({xs}) AS t(u){self._where('x')}",
            f"SELECT x.k, t.u FROM {base} AS x LEFT JOIN LATERAL (SELECT unnest({xs}) AS u) AS t ON TRUE",
            f"SELECT u, count(*) AS n, min(k) AS m FROM (SELECT x.k, unnest({xs}) AS u FROM {base} AS x) AS z GROUP BY u",
            f"SELECT x.k, unnest({xs}) AS u, unnest(x.ks) AS w FROM {base} AS x{self._where('x')}",
        )
        return tape.one(shapes)

    def _grouped(self) -> str:
        tape, base = self.tape, self.base()
        keys = "x.k, x.n, x.xs, x.ks"
        shapes = (
            f"SELECT {self.value('x', 1)} AS c0, count(*) AS c1, min(x.k) AS c2 FROM {base} AS x{self._where('x')} GROUP BY 1",
            f"SELECT {self.value('x')} AS c0, {self.scalar('x')} AS c1, count(*) AS c2 FROM {base} AS x GROUP BY {keys}",
            f"SELECT x.k % 3 AS c0, list(x.n ORDER BY x.n) AS c1, count(x.xs) AS c2 FROM {base} AS x GROUP BY 1",
            f"SELECT x.k % 3 AS c0, min(x.xs) AS c1, max({self.value('x', 1)}) AS c2 FROM {base} AS x GROUP BY 1",
            f"SELECT count(DISTINCT x.xs) AS c0, count(x.ks) AS c1 FROM {base} AS x{self._where('x')}",
            f"SELECT x.k % 2 AS c0, first(x.xs ORDER BY x.xs) AS c1, {self._last()} AS c2 FROM {base} AS x GROUP BY 1",
            f"SELECT x.k % 2 AS c0, list({self.scalar('x')} ORDER BY x.k, x.n, x.xs, x.ks) AS c1 FROM {base} AS x GROUP BY 1",
        )
        return tape.one(shapes)

    def _last(self) -> str:
        return self.tape.one(
            ("last(x.xs ORDER BY x.k, x.n, x.xs)", "any_value(x.ks ORDER BY x.ks)", "count(len(x.xs))")
        )

    def _sets(self) -> str:
        tape = self.tape
        parts = [f"SELECT {self.value('x', 1)} AS c0, x.k AS c1 FROM {self.base()} AS x{self._where('x')}"]
        for _ in range(tape.count(1, 2)):
            parts.append(
                f"{tape.one(SETS)} SELECT {self.value('x', 1)}, x.k FROM {self.base()} AS x{self._where('x')}"
            )
        return " ".join(parts)

    def _windows(self) -> str:
        tape = self.tape
        frame = tape.one(("", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING"))
        every = "ORDER BY x.k, x.n, x.xs, x.ks"
        of_rows = (
            f"list(x.n) OVER ({every}{frame})",
            f"list(x.k) OVER (PARTITION BY x.k % 2 {every}{frame})",
            f"first_value(x.xs) OVER ({every}{frame})",
            f"{tape.one(('lag', 'lead'))}(x.xs{tape.one(('', ', 2'))}) OVER (PARTITION BY x.k % 3 {every})",
        )
        of_peers = (
            f"count(*) OVER (PARTITION BY {self.value('x', 1)})",
            f"rank() OVER (ORDER BY {self.value('x', 1)}{tape.one(('', ' DESC'))})",
            "len(list(x.k) OVER (PARTITION BY x.k))",
        )  # one of rows alone: of two it is not told which values of rows that are the same stand in one row
        calls = f"{tape.one(of_rows)} AS c1, {tape.one(of_peers)} AS c2"
        return f"SELECT x.xs AS c0, {calls} FROM {self.base()} AS x{self._where('x')}"

    def _nested(self) -> str:
        tape = self.tape
        x, y = self.base(), self.base()
        shapes = (
            f"SELECT x.k, (SELECT list(y.n ORDER BY y.n) FROM {y} AS y WHERE y.k = x.k) AS c1 FROM {x} AS x",
            f"SELECT x.k, x.xs FROM {x} AS x WHERE {tape.one(('', 'NOT '))}EXISTS (SELECT 1 FROM {y} AS y WHERE y.xs = x.xs)",
            f"SELECT x.k, x.xs FROM {x} AS x WHERE x.k IN (SELECT unnest(y.ks) FROM {y} AS y)",
            f"SELECT x.k FROM {x} AS x WHERE x.xs {tape.one(('', 'NOT '))}IN (SELECT y.xs FROM {y} AS y WHERE y.xs IS NOT NULL)",
            f"SELECT x.k, (SELECT max(u) FROM (SELECT unnest(x.ks) AS u) AS z) AS c1 FROM {x} AS x",
            f"SELECT x.k, (SELECT y.xs FROM {y} AS y WHERE y.k = x.k ORDER BY y.xs LIMIT 1) AS c1 FROM {x} AS x",
        )
        return tape.one(shapes)

    def _shared(self) -> str:
        tape = self.tape
        how = tape.one(("JOIN", "LEFT JOIN", "FULL JOIN"))
        items = self._items("x", "y")
        on = f"x.k = y.k + {tape.count(0, 1)}"
        return f"WITH w AS (SELECT * FROM {self.base()} AS z) SELECT {items} FROM w AS x {how} w AS y ON {on}"
