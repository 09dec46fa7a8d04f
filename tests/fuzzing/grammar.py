"""Random queries: every kind of join and subquery, CTEs and derived tables that are used several times, groups, DISTINCT,
set operations, ORDER BY with LIMIT, expressions of all types, casts that fail.

An answer is the same in any order of rows: LIMIT stands behind an ORDER BY of all columns. What may fail for some rows (a cast,
an overflow) sets ``fails``: engines may look at rows that another never looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tests.fuzzing import aggregates as more_aggregates
from tests.fuzzing import clocks, pivots
from tests.fuzzing.data import (
    BLOB,
    BOOL,
    CLOCK,
    COLUMNS,
    DATE,
    DBL,
    DEC,
    EDGES,
    INT,
    KINDS,
    SPAN,
    STR,
    TABLES,
    TIME,
    ZONED,
)
from tests.fuzzing.macros import Macro, called
from tests.fuzzing.names import Name, Names
from tests.fuzzing.places import among_rows, exists_of_groups, first_of, of_rows
from tests.fuzzing.relations import relation as other_relation
from tests.fuzzing.sizes import TABLE, Sizes, grouped
from tests.fuzzing.tape import Tape
from tests.fuzzing.windows import named, qualified, window, window_of_groups

_TEXTS = ("''", "'a'", "'b'", "'ab'", "'ä'", "'A'", "'12'", "'%'", "'日'")
_COMPARE = ("=", "<", ">=", "<>", ">", "<=")
_SETS = (
    "UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL", "UNION ALL BY NAME", "UNION BY NAME",
)  # fmt: skip
_JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "SEMI JOIN", "ANTI JOIN", ",")
_CASTS = {
    INT: ("BIGINT", "INTEGER", "SMALLINT", "TINYINT", "UTINYINT", "UBIGINT"),
    DEC: ("DECIMAL(12,2)", "DECIMAL(5,1)", "DECIMAL(38,4)"),
    DBL: ("DOUBLE", "FLOAT"),
    STR: ("VARCHAR",),
    DATE: ("DATE",),
    TIME: ("TIMESTAMP",),
    BOOL: ("BOOLEAN",),
    SPAN: ("INTERVAL",),
    BLOB: ("BLOB",),
    CLOCK: ("TIME",),
    ZONED: ("TIMESTAMPTZ",),
}
_CASTABLE = {
    INT: (STR, DEC, DBL, BOOL),
    DEC: (INT, STR, DBL),
    DBL: (INT, DEC, STR),
    STR: (INT, DEC, DATE, BOOL, TIME, BLOB, CLOCK, ZONED),
    DATE: (STR, TIME, ZONED),
    TIME: (DATE, STR, CLOCK, ZONED),
    BOOL: (INT, STR),
    SPAN: (),
    BLOB: (STR,),
    CLOCK: (STR,),
    ZONED: (DATE, TIME, STR),
}
_COUNTED = (DATE, TIME, SPAN, CLOCK, ZONED)  # ``NULL + 1`` is a number, and no date, which it is then compared with


class Grammar:
    """Writes one query from a tape."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.fails = False
        self.skips = False  # a part of a condition need not be computed where the others decide
        self.ctes: list[tuple[str, Names]] = []  # that the query at hand may read
        self.sizes = Sizes()
        self.own: tuple[str, tuple[str, ...]] | None = None  # a table that a script has made, and its columns
        self.otherwise: dict[str, str] = {}  # what DuckDB is asked in place of a relation
        self.row_orders: set[str] = set()  # of windows that number rows
        self.macros: list[Macro] = []  # of values, and of tables with their columns
        self.table_macros: list[tuple[str, Names]] = []
        self.one_order = False
        self.ties = ""  # asks whether some rows are the same, which two such orders may number in two ways
        self._aliases = 0

    def fresh(self, stem: str) -> str:
        self._aliases += 1
        return f"{stem}{self._aliases}"

    # ---- queries -------------------------------------------------------------------------------------------------

    def statement(self) -> str:
        tape = self.tape
        self.ctes.clear()  # of the statement before in a script
        if tape.chance(25):
            text = self._with()
        elif tape.chance(12):
            text = self.set_operations()
        elif tape.chance(4):
            text = pivots.statement(self)
        else:
            text, _ = self.select((), 2)
        return text

    def _with(self) -> str:
        """CTEs that the query, subqueries and later CTEs read once, twice or three times."""
        parts, recursive = [], ""
        for _ in range(self.tape.count(1, 3)):
            name = self.fresh("w")
            if self.tape.chance(15):
                recursive = "RECURSIVE "
                parts.append(self._recursive(name))
                continue
            body, kinds = self.select((), 1)
            how = self.tape.one(("", "", "", "MATERIALIZED ", "NOT MATERIALIZED "))
            parts.append(f"{name} AS {how}({body})")
            self.ctes.append((name, tuple(Name(f"c{n}", kind) for n, kind in enumerate(kinds))))
            self.sizes.ctes[name] = self.sizes.last
        main, _ = self.select((), 2)
        return f"WITH {recursive}{', '.join(parts)} {main}"

    def _recursive(self, name: str) -> str:
        """A CTE that reads itself, a few rounds deep, and joins something in each."""
        tape, inner = self.tape, self.fresh("x")
        source, names, terms = self.source(0)
        rows, kind = self.sizes.last, tape.one(KINDS)
        first = f"SELECT {self.value(kind, names, (), 1, 0)} AS c0, 0 AS c1 FROM {source}"
        right, more = self.relation(0, None)
        others = self.sizes.last
        own = (Name(f"{inner}.c0", kind, made=True),)
        on = self.condition(own, more)
        join = tape.one(("JOIN", "JOIN", "JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN"))
        value = self.column(kind, own if join.startswith(("SEMI", "ANTI")) else more, ())
        step = f"SELECT {value}, {inner}.c1 + 1 FROM {name} AS {inner} {join} {right} ON {on}"
        self.fails = True  # a step's values are cast to the types of the first part
        where = f" WHERE {' AND '.join(terms)}" if terms else ""
        self.ctes.append((name, (Name("c0", kind, made=True), Name("c1", INT, made=True))))
        how = "UNION" if tape.chance(60) else "UNION ALL"
        most = tape.count(1, 2 if "=" in on else 1) if how == "UNION ALL" else tape.count(1, 4)
        growth = 1.0 if join.startswith(("SEMI", "ANTI")) else self.sizes.joined(1.0, others, join, on) or others
        while how == "UNION ALL" and not self.sizes.fit(self.sizes.recursive(rows, growth, most)):
            most, how = most - 1, "UNION ALL" if most > 1 else "UNION"
        most = max(most, 1)
        self.sizes.ctes[name] = self.sizes.recursive(rows, growth, most) if how == "UNION ALL" else grouped(rows, 1)
        return f"{name}(c0, c1) AS ({first}{where} {how} {step} WHERE {inner}.c1 < {most})"

    def set_operations(self) -> str:
        """Selects one after another, with a set operation between each two."""
        tape = self.tape
        kinds = [tape.one(KINDS) for _ in range(tape.count(1, 3))]
        text = self.select((), 1, kinds)[0]
        left = tape.count(1, 2)
        while left:
            left -= 1
            how, own = tape.one(_SETS), kinds
            if how.endswith("BY NAME") and not left and tape.chance(60):  # each side may lack columns of the other
                own = kinds[: tape.count(1, len(kinds))] if tape.chance(50) else [*kinds, tape.one(KINDS)]
            text += f" {how} {self.select((), 1, own)[0]}"
        return text

    def flat(self) -> str:
        """Expressions of all rows of a table, where both engines fail or neither does, unless conditions have several parts."""
        names = self.columns("x")
        items = [self.value(self.tape.one(KINDS), names, (), 3, 0) for _ in range(self.tape.count(1, 3))]
        return f"SELECT {', '.join(f'{e} AS c{n}' for n, e in enumerate(items))} FROM {self.tape.one(TABLES)} AS x"

    def grouped(self) -> str:
        """Many aggregates over the same groups."""
        tape = self.tape
        source, names, terms = self.source(tape.below(2))
        keys = [self.value(tape.one(KINDS), names, (), 1, 0) for _ in range(tape.below(3))]
        items = keys + [self.aggregate(tape.one((*[DBL] * 5, *KINDS)), names) for _ in range(tape.count(3, 8))]
        listed = ", ".join(str(n + 1) for n in range(len(keys)))
        group = f" GROUP BY {listed}" if keys else ""
        if keys and tape.chance(40):
            group = f" GROUP BY {self._grouping_sets(listed)}"
            if len(set(keys)) == len(keys):
                items.append(f"{tape.one(('grouping', 'grouping_id'))}({', '.join(keys[: tape.count(1, len(keys))])})")
        where = f" WHERE {' AND '.join(terms)}" if terms else ""
        return f"SELECT {', '.join(f'{item} AS c{n}' for n, item in enumerate(items))} FROM {source}{where}{group}"

    def windowed(self) -> str:
        """Several window functions over the same rows."""
        tape = self.tape
        source, names, terms = self.source(0)
        items = [window(self, kind, names) for kind in (tape.one((INT, DBL, DBL, *KINDS)) for _ in range(tape.count(2, 4)))]
        clause = ""
        if tape.chance(30):
            items, clause = named(items)
        qualify = f" QUALIFY {qualified(self, names)}" if tape.chance(20) else ""
        where = f" WHERE {' AND '.join(terms)}" if terms else ""
        if len(self.row_orders) > 1:
            self.ties = f"SELECT count(*) > count(DISTINCT row({', '.join(n.sql for n in names)})) FROM {source}{where}"
        return f"SELECT {', '.join(f'{item} AS c{n}' for n, item in enumerate(items))} FROM {source}{where}{clause}{qualify}"

    def select(self, outer: Names, depth: int, want: list[str] | None = None) -> tuple[str, list[str]]:
        """A SELECT, and the kinds of its columns ``c0``, ``c1``, ...; of those kinds if told. Subqueries nest ``depth`` deep."""
        source = self.source(depth)
        with self.sizes.within(self.sizes.last):
            text, kinds, rows = self._selected(source, self.sizes.last, outer, depth, want)
        self.sizes.last = rows
        return text, kinds

    def _selected(
        self, of: tuple[str, Names, list[str]], rows: float, outer: Names, depth: int, want: list[str] | None
    ) -> tuple[str, list[str], float]:
        """`select` of what stands in FROM, of so many rows; how many come of it."""
        tape, (source, names, terms) = self.tape, of
        if tape.chance(45):
            terms.append(self.predicate(names, outer, 2, depth))
        kinds = want or [tape.one(KINDS) for _ in range(tape.count(1, 4))]
        group, having, qualify = "", "", ""
        if tape.chance(35):
            keys = tape.count(0, min(2, len(kinds) - 1)) if want is None or len(kinds) > 1 else 0
            rows = grouped(rows, keys)
            items = [self.value(kind, names, (), 1, 0) for kind in kinds[:keys]]
            over_groups = 30 if keys or depth else 0
            items += [
                window_of_groups(self, items[:keys], names)
                if kind == INT and tape.chance(over_groups)
                else self.aggregate(kind, names)
                for kind in kinds[keys:]
            ]
            if keys:
                listed = ", ".join(str(n + 1) for n in range(keys))
                if tape.chance(20):
                    group = f" GROUP BY {self._grouping_sets(listed)}"
                    # of one key twice DuckDB says which of the two is left out
                    if kinds[-1] == INT and len(kinds) > keys == len(set(items[:keys])) and tape.chance(40):
                        some = items[: tape.count(1, keys)]
                        items[-1] = f"{tape.one(('grouping', 'grouping_id'))}({', '.join(some)})"
                else:
                    group = f" GROUP BY {listed if not tape.chance(15) else 'ALL'}"
            if tape.chance(25):
                having = f" HAVING {self.aggregate(INT, names)} {tape.one(_COMPARE)} {tape.count(0, 5)}"
        else:
            items, qualify = self._of_rows(kinds, names, outer, depth)
        clause = ""
        if tape.chance(20):
            items, clause = named(items)
        listed = ", ".join(f"{item} AS c{n}" for n, item in enumerate(items))
        where = f" WHERE {' AND '.join(terms)}" if terms else ""
        ordered = want is None and tape.chance(15)
        distinct = "DISTINCT " if tape.chance(12) else ""
        if ordered and distinct and tape.chance(60):  # of rows that are equal in all columns any is the first
            distinct = f"DISTINCT ON ({tape.count(1, len(items))}) "
        text = f"SELECT {distinct}{listed} FROM {source}{where}{group}{having}{clause}{qualify}"
        if ordered:
            ends = ("", " DESC", " NULLS FIRST", " DESC NULLS LAST")
            if tape.chance(15) and not distinct.endswith(") "):
                text += f" ORDER BY ALL{tape.one(ends)}"
            else:
                text += " ORDER BY " + ", ".join(f"{n + 1}{tape.one(ends)}" for n in range(len(items)))
            if tape.chance(60):
                most = tape.count(0, 9)
                rows = min(rows, 10 * TABLE)  # of what may be a share
                limit = tape.one((f"{most}", f"{most}", f"{most} + 1", f"{most}0%", f"least({most}, 3)"))
                rows = rows if limit.endswith("%") else min(rows, TABLE)
                text += f" LIMIT {limit}"
                text += f" OFFSET {tape.count(0, 4)}" if tape.chance(30) else ""
            if outer == () and depth < 2:
                text = f"SELECT * FROM ({text}) AS {self.fresh('o')}"
        return text, kinds, rows

    def _of_rows(self, kinds: Sequence[str], names: Names, outer: Names, depth: int) -> tuple[list[str], str]:
        """What stands in a SELECT without groups, and its QUALIFY. Rows that are the same in all columns may be numbered in
        another way by each order, and DISTINCT, joins and groups above would see that: so all windows have one."""
        tape = self.tape
        before = self.row_orders, self.one_order
        self.row_orders, self.one_order = set(), True
        with_windows = 15 if not outer else 0
        items = [
            window(self, kind, names) if tape.chance(with_windows) else self.value(kind, names, outer, 2, depth)
            for kind in kinds
        ]
        qualify = f" QUALIFY {qualified(self, names)}" if not outer and tape.chance(6) else ""
        self.row_orders, self.one_order = before
        return items, qualify

    def _grouping_sets(self, keys: str) -> str:
        return self.tape.one(
            (f"ROLLUP ({keys})", f"CUBE ({keys})", f"GROUPING SETS (({keys}), (), 1)", f"1, CUBE ({keys})")
        )

    # ---- FROM ----------------------------------------------------------------------------------------------------

    def columns(self, alias: str, among: Collection[str] = COLUMNS) -> Names:
        return tuple(Name(f"{alias}.{c}", kind, c in EDGES) for c, (kind, _) in COLUMNS.items() if c in among)

    def source(self, depth: int) -> tuple[str, Names, list[str]]:
        """A FROM clause, what can be read of it, and terms for WHERE."""
        tape, sizes = self.tape, self.sizes
        shared = (*self._derived(1), sizes.last) if depth == 2 and tape.chance(15) else None
        text, names = self.relation(depth, shared)
        rows = sizes.last
        terms: list[str] = []
        for _ in range((0, 1, 1, 2)[tape.below(4)] if depth else (0, 0, 1)[tape.below(3)]):
            if depth and tape.chance(10):
                how, right, both, found = self._lateral(names, rows)
                if found is not None:
                    text, names, rows = f"{text} {how} {right}", both, found
                continue
            right, more = self.relation(depth, shared)
            others = sizes.last
            how = tape.one(_JOINS)
            both = names + more
            on = self.condition(names, more) if how != "CROSS JOIN" or tape.chance(50) else ""
            found = sizes.joined(rows, others, how, on)
            if found is None:
                continue
            rows = found
            match how:
                case "CROSS JOIN" | ",":
                    text += f"{',' if how == ',' else ' CROSS JOIN'} {right}"
                    terms += [on] if on else []
                    names = both
                    if how == ",":  # a JOIN behind it would not see what stands before it
                        break
                case "SEMI JOIN" | "ANTI JOIN":
                    text += f" {how} {right} ON {on}"
                case _:
                    text += f" {how} {right} ON {on}"
                    names = both
        sizes.last = rows
        return text, names, terms

    def _lateral(self, left: Names, rows: float) -> tuple[str, str, Names, float | None]:
        """A join of so many rows with a subquery that uses columns of what stands before it; how many it gives, None where they
        are too many."""
        tape, alias = self.tape, self.fresh("x")
        with self.sizes.within(rows):
            source, names, terms = self.source(0)
        others, on = self.sizes.last, ""
        if tape.chance(70):
            on = self.condition(left, names)
            terms.append(on)
        kinds = [tape.one(KINDS) for _ in range(tape.count(1, 2))]
        found = self.sizes.joined(rows, others, "LEFT JOIN", on)
        if tape.chance(30):
            items = [self.aggregate(kind, names) for kind in kinds]
            found = rows if found is not None else None
        else:
            items = [self.value(kind, names, left, 1, 0) for kind in kinds]
        where = f" WHERE {' AND '.join(terms)}" if terms else ""
        if tape.chance(30):
            offset = f" OFFSET {tape.count(1, 2)}" if tape.chance(30) else ""
            where += f" ORDER BY ALL{tape.one(('', ' DESC'))} LIMIT {tape.count(1, 3)}{offset}"
        listed = ", ".join(f"{item} AS c{n}" for n, item in enumerate(items))
        made = _under(alias, tuple(Name(f"c{n}", kind) for n, kind in enumerate(kinds)))
        how = tape.one(("CROSS JOIN", "LEFT JOIN", "JOIN"))
        on = "" if how == "CROSS JOIN" else f" ON {'TRUE' if tape.chance(50) else self.condition(left, made)}"
        return how, f"LATERAL (SELECT {listed} FROM {source}{where}) AS {alias}{on}", left + made, found

    def _derived(self, depth: int) -> tuple[str, Names]:
        body, kinds = self.select((), depth - 1)
        return body, tuple(Name(f"c{n}", kind) for n, kind in enumerate(kinds))

    def relation(self, depth: int, shared: tuple[str, Names, float] | None) -> tuple[str, Names]:
        """A table, a CTE, a derived table, or one that stands beside it in the same text; a table where others are too large."""
        alias = self.fresh("x")
        text, names = self._relation(alias, depth, shared)
        if self.sizes.fit(self.sizes.last):
            return text, names
        self.sizes.last = TABLE
        return f"{self.tape.one(TABLES)} AS {alias}", self.columns(alias)

    def _relation(self, alias: str, depth: int, shared: tuple[str, Names, float] | None) -> tuple[str, Names]:
        tape, sizes = self.tape, self.sizes
        sizes.last = TABLE
        if self.table_macros and tape.chance(40):
            name, columns = tape.one(self.table_macros)
            return f"{name}({tape.count(-1, 4)}) AS {alias}", _under(alias, columns)
        if self.own is not None and tape.chance(70):
            return f"{self.own[0]} AS {alias}", self.columns(alias, self.own[1])
        if self.ctes and tape.chance(60):
            name, columns = tape.one(self.ctes)
            sizes.last = sizes.ctes[name]
            return f"{name} AS {alias}", _under(alias, columns)
        if shared is not None and tape.chance(60):
            sizes.last = shared[2]
            return f"({shared[0]}) AS {alias}", _under(alias, shared[1])
        if depth and tape.chance(15):
            body, columns = self._derived(depth)
            return f"({body}) AS {alias}", _under(alias, columns)
        if depth and tape.chance(4):
            body, columns = pivots.table(self)
            return f"({body}) AS {alias}", _under(alias, columns)
        if tape.chance(10):
            body, columns = other_relation(self)
            return f"{body} AS {alias}", _under(alias, columns)
        return f"{tape.one(TABLES)} AS {alias}", self.columns(alias)

    def condition(self, left: Names, right: Names) -> str:
        """What a join is on: mostly an equality, now and then a range, both, or anything."""
        tape = self.tape
        pairs = [(a, b) for a in left for b in right if a.kind == b.kind and a.kind != BOOL]
        if not pairs or tape.chance(8):
            return self.predicate(left + right, (), 1, 0)
        a, b = tape.one(pairs)
        if tape.chance(12):
            text = self._range(a, b, left, right)
            return f"{text} AND {self.predicate(left + right, (), 0, 0)}" if tape.chance(20) else text
        text = f"{a.sql} {'=' if not tape.chance(15) else tape.one(('<', '<>', '>=', 'IS NOT DISTINCT FROM'))} {b.sql}"
        if tape.chance(30):
            a, b = tape.one(pairs)
            text += f" AND {a.sql} {tape.one(_COMPARE)} {b.sql}"
        if tape.chance(12):
            text = f"({text} OR {self.predicate(left + right, (), 0, 0)})"
        if tape.chance(20):
            text += f" AND {self.predicate(left + right, (), 1, 0)}"
        return text

    def _range(self, a: Name, b: Name, left: Names, right: Names) -> str:
        """A range of one side's column, or intervals of both sides that overlap."""
        tape = self.tape
        ends = [n for n in right if n.kind == b.kind], [n for n in left if n.kind == a.kind]
        c, d = tape.one(ends[0]), tape.one(ends[1])
        shapes = (
            f"{a.sql} BETWEEN {b.sql} AND {c.sql}",
            f"{b.sql} BETWEEN {a.sql} AND {d.sql}",
            f"{a.sql} <= {c.sql} AND {b.sql} < {d.sql}",
            f"{a.sql} > {b.sql} AND {c.sql} >= {d.sql}",
        )
        return tape.one(shapes)

    # ---- expressions ---------------------------------------------------------------------------------------------

    def literal(self, kind: str) -> str:
        tape = self.tape
        match kind:
            case "int":
                return str(tape.one((0, 1, 2, 5, 3, -1, -2, 100, 127, 300)))
            case "dec":
                return tape.one(("0.0", "1.5", "-2.25", "0.25", "10.0", "99.9"))
            case "dbl":
                return tape.one(("0e0", "1.5e0", "-2.25e0", "1e3", "'nan'::DOUBLE", "'inf'::DOUBLE", "-0e0"))
            case "str":
                return tape.one(_TEXTS)
            case "date":
                return tape.one(
                    (
                        "DATE '2001-01-01'",
                        "DATE '2000-02-29'",
                        "DATE '1969-12-31'",
                        "DATE '0001-01-01'",
                        "DATE '2001-01-31'",
                    )
                )
            case "span":
                return tape.one(
                    (
                        "INTERVAL '1 day'",
                        "INTERVAL '1 month'",
                        "INTERVAL '-2 hours'",
                        "INTERVAL '0 day'",
                        "INTERVAL '-1 month 30 days'",
                    )
                )
            case "time":
                return tape.one((
                    "TIMESTAMP '2001-01-01 00:00:00'", "TIMESTAMP '1970-01-01 00:00:00.000001'",
                    "TIMESTAMP '2000-02-29 23:59:59.999999'", "TIMESTAMP '2001-01-31 00:00:00'",
                ))  # fmt: skip
            case "bool":
                return tape.one(("TRUE", "FALSE"))
            case _:
                return tape.one(clocks.LITERALS[kind])

    def column(self, kind: str, names: Names, outer: Names, small: bool = False) -> str:
        """A column of a kind; ``small`` leaves out those whose values reach to the ends of their type."""
        inner = [n.sql for n in names if n.kind == kind and not (small and n.edge)]
        around = [n.sql for n in outer if n.kind == kind and not (small and n.edge)]
        if around and (not inner or self.tape.chance(30)):
            inner, names = around, outer
        chosen = self.tape.one(inner) if inner else self.literal(kind)
        self.fails = self.fails or (small and any(n.made and n.sql == chosen for n in names))
        return chosen

    def number(self, kind: str, names: Names) -> str:
        """A column whose sums of squares and products are right in all digits that are compared: what a query inside this one has
        made may reach to the ends of its type, where DuckDB's moments are what is left of rounding."""
        chosen = self.column(kind, names, (), small=True)
        return f"TRY_CAST({chosen} AS TINYINT)" if any(n.made and n.sql == chosen for n in names) else chosen

    def value(self, kind: str, names: Names, outer: Names, size: int, depth: int) -> str:
        """An expression of a kind, at most ``size`` high."""
        tape = self.tape
        if size and self.macros and tape.chance(20):
            fitting = [m for m in self.macros if m.kind == kind and not m.aggregates]
            if fitting:
                return called(self, tape.one(fitting), names, outer, size - 1)
        if size == 0 or tape.chance(35):
            return self.literal(kind) if tape.chance(12) else self.column(kind, names, outer)

        def sub(k: str = kind) -> str:
            return self.untyped() or self.value(k, names, outer, size - 1, depth)

        match tape.below(12):
            case 0 | 1 | 2 | 3 | 4 | 5:
                return self._operation(kind, names, outer, size)
            case 6:
                otherwise = f" ELSE {sub()}" if tape.chance(70) else ""
                return f"CASE WHEN {self.predicate(names, outer, size - 1, 0)} THEN {sub()}{otherwise} END"
            case 7 if tape.chance(25):
                return f"either({sub()}, b := {sub()})" if tape.chance(70) else f"either({sub()})"
            case 7:
                first = sub()
                self.skips = self.skips or not any(n.sql in first for n in names)  # what stands behind a constant is left out
                return f"coalesce({first}, {sub()})"
            case 8:
                return f"nullif({sub()}, {self.literal(kind)})"
            case 9:
                return f"{tape.one(('greatest', 'least'))}({sub()}, {sub()})"
            case 10:
                return self._cast(kind, names, outer, size, depth)
            case _:
                return self._scalar(kind, names + outer, depth) if depth else sub()

    def untyped(self) -> str:
        """Now and then a NULL of no type, which stands for an argument."""
        return "NULL" if self.tape.chance(2) else ""

    def _cast(self, kind: str, names: Names, outer: Names, size: int, depth: int) -> str:
        tape = self.tape
        source = tape.one((kind, *(k for k, to in _CASTABLE.items() if kind in to)))
        inner = self.value(source, names, outer, size - 1, depth)
        if source == DBL and kind == STR:
            inner = self.column(
                INT, names, outer
            )  # text of a double is not the same in all its digits after arithmetic
        if tape.chance(60) or inner in _TEXTS:  # a constant that no cast takes fails before any row is looked at
            return f"TRY_CAST({inner} AS {tape.one(_CASTS[kind])})"
        self.fails = True
        return f"CAST({inner} AS {tape.one(_CASTS[kind])})"

    def _operation(self, kind: str, names: Names, outer: Names, size: int) -> str:
        """An operator or a function over smaller expressions."""

        def sub(k: str = kind) -> str:
            may_be_untyped = k != kind or kind not in _COUNTED
            return (may_be_untyped and self.untyped()) or self.value(k, names, outer, size - 1, 0)

        def small(k: str = kind) -> str:
            """An operand whose arithmetic fits; now and then one that need not."""
            if k not in _COUNTED and (null := self.untyped()):
                return null
            if self.tape.chance(15):
                self.fails = True
                return sub(k)
            return f"({self.column(k, names, outer, small=True)})"

        match kind:
            case "int" | "dec" | "dbl":
                return self._numeric(kind, sub, small, names, outer)
            case "str":
                return self._text(sub)
            case "date" | "time":
                return self._moment(kind, sub)
            case "span":
                return self._span(sub, names, outer)
            case "blob" | "clock" | "zoned":
                return clocks.operation(self, kind, sub)
            case _:
                return f"({self.predicate(names, outer, size - 1, 0)})"

    def _numeric(
        self, kind: str, sub: Callable[..., str], small: Callable[..., str], names: Names, outer: Names
    ) -> str:
        tape = self.tape

        def signed() -> str:
            """An operand of a signed type: the negatives of others and the bits of HUGEINT differ, as documented."""
            plain = tuple(n for n in names if not n.made)
            if kind != INT:
                return small()
            return (
                f"TRY_CAST({sub()} AS INTEGER)::BIGINT" if tape.chance(30) else f"({self.column(INT, plain, (), True)})"
            )

        exact: list[Callable[[], str]] = [
            lambda: f"({small()} + {small()})",
            lambda: f"({small()} - {small()})",
            lambda: f"({small()} * {tape.one(('2', '3', '-1', '0') if kind == INT else ('1.5', '-0.25'))})",
            lambda: f"(- {signed()})",
            lambda: f"abs({small()})",
        ]
        match kind:
            case "int" if tape.chance(15):
                return clocks.whole(self, sub)
            case "int":
                exact += [
                    lambda: f"({sub()} % {tape.one((2, 3, 7, 0, -2))})",
                    lambda: self._divided(signed(), "//", tape.one((2, 3, 0, -2))),
                    lambda: f"length({sub(STR)})",
                    lambda: f"extract({tape.one(('year', 'month', 'day', 'dow', 'doy'))} FROM {sub(DATE)})",
                    lambda: f"extract({tape.one(('month', 'day', 'minute'))} FROM {self.column(SPAN, names, outer)})",
                    lambda: f"sign({small()})",
                    lambda: f"({signed()} & 3)",
                    lambda: f"(~{signed()})",
                    lambda: f"{tape.one(('levenshtein', 'damerau_levenshtein'))}({sub(STR)}, {sub(STR)})",
                    lambda: f"extract({tape.one(('day', 'hour', 'second'))} FROM {sub(TIME)} - {sub(TIME)})",
                    lambda: f"extract({tape.one(('hour', 'second'))} FROM CAST({sub(TIME)} AS TIME) + INTERVAL '9 hours')",
                    lambda: f"({self.column(INT, tuple(n for n in names if not n.made), ())} {tape.one('&|')} 3)",
                    lambda: self.shifted(f"((TRY_CAST({sub()} AS TINYINT)::BIGINT & 255) << {tape.count(0, 9)})"),
                    lambda: f"(TRY_CAST({sub()} AS INTEGER) >> {tape.count(0, 33)})",
                    lambda: f"date_sub('{tape.one(('month', 'day', 'hour', 'year'))}', {sub(TIME)}, {sub(TIME)})",
                ]
            case "dec":
                exact += [lambda: f"round({small()}, 1)"]
            case _:
                exact = [
                    lambda: f"({sub()} + {sub()})",
                    lambda: f"({sub()} - {sub()})",
                    lambda: f"({sub()} * 0.5e0)",
                    lambda: f"(- {sub()})",
                    lambda: f"({sub(INT)} / 4)",
                    lambda: f"{tape.one(('abs', 'floor', 'ceil'))}({sub()})",
                    lambda: f"{tape.one(('jaro_similarity', 'jaro_winkler_similarity'))}({sub(STR)}, {sub(STR)})",
                ]
        return tape.one(exact)()

    def _text(self, sub: Callable[..., str]) -> str:
        tape = self.tape
        if tape.chance(12):
            return clocks.text(self, sub)
        shapes: list[Callable[[], str]] = [
            lambda: f"({sub()} || {sub()})",
            lambda: f"substring({sub()}, {tape.count(0, 3)}, {tape.count(0, 3)})",
            lambda: f"{tape.one(('upper', 'lower', 'trim', 'reverse'))}({sub()})",
            lambda: f"replace({sub()}, {self.literal(STR)}, {self.literal(STR)})",
            lambda: f"{tape.one(('left', 'right'))}({sub()}, {tape.count(0, 3)})",
            lambda: f"concat({sub()}, {sub(INT)})",
            lambda: f"{tape.one(('lpad', 'rpad'))}({sub()}, {tape.count(0, 5)}, 'x')",
            lambda: f"regexp_replace({sub()}, '{tape.one(('a', '[ab]+', '^.', 'b+'))}', 'z')",
        ]
        if tape.chance(20):
            shapes = [
                lambda: f"split_part({sub()}, {self.literal(STR)}, {tape.count(1, 3)})",
                lambda: f"translate({sub()}, {self.literal(STR)}, {self.literal(STR)})",
                lambda: f"hex({sub()})",
                lambda: f"format('{{}}|{{:>4}}', TRY_CAST({sub(INT)} AS BIGINT), {sub()})",
                lambda: f"printf('%03d/%-3s.', TRY_CAST({sub(INT)} AS BIGINT), {sub()})",
            ]
        return tape.one(shapes)()

    def _moment(self, kind: str, sub: Callable[..., str]) -> str:
        tape = self.tape
        if kind == TIME and tape.chance(15):
            return clocks.local(self, sub)
        if tape.chance(50):
            self.fails = True
            if kind == DATE:
                return f"({sub()} + {tape.one((1, -1, 30, 365))})"
            if tape.chance(30):
                amount = f"TRY_CAST({sub(INT)} AS TINYINT)"
                by = (
                    self.literal(SPAN),
                    f"to_days({amount})",
                    f"to_months({amount})",
                    f"INTERVAL ({amount}) HOUR",
                    f"({sub()} - {sub()})",
                )
                return f"({sub()} {tape.one('+-')} {tape.one(by)})"
            how = tape.one(("+", "+", "-"))
            return f"({sub()} {how} INTERVAL {tape.count(1, 40)} {tape.one(('DAY', 'HOUR', 'MONTH', 'YEAR', 'MONTH'))})"
        if tape.chance(20):
            return f"time_bucket(INTERVAL {tape.count(1, 9)} {tape.one(('DAY', 'WEEK'))}, {sub()})"
        if kind == DATE and tape.chance(25):
            return f"last_day({sub()})"
        if kind == DATE:
            return f"date_trunc('{tape.one(('month', 'year', 'day', 'week'))}', {sub()})::DATE"
        return f"date_trunc('{tape.one(('hour', 'day', 'month', 'year'))}', {sub()})"

    def _span(self, sub: Callable[..., str], names: Names, outer: Names) -> str:
        """An interval of others, of moments or of numbers."""
        tape = self.tape
        self.fails = True
        few = f"TRY_CAST({sub(INT)} AS TINYINT)"
        shapes: list[Callable[[], str]] = [
            lambda: f"({sub()} {tape.one('+-')} {sub()})",
            lambda: f"(- {sub()})",
            lambda: f"({sub()} * {tape.one(('2', '-1', '0', '0.5e0', few))})",
            lambda: self._divided(sub(), "/", tape.one((2, 3, 0))),
            lambda: f"({sub(TIME)} - {sub(TIME)})",
            lambda: f"({sub(ZONED)} - {sub(ZONED)})",
            lambda: f"age({sub(TIME)}, {sub(DATE)})",
            lambda: f"to_{tape.one(('days', 'months', 'hours', 'seconds'))}({few})",
            lambda: f"date_trunc('{tape.one(('month', 'day', 'hour'))}', {self.column(SPAN, names, outer)})",
        ]
        return tape.one(shapes)()

    def _divided(self, value: str, by: str, divisor: int) -> str:
        if not divisor:
            self.skips = True  # the quotient is NULL, whatever the value would be
        return f"({value} {by} {divisor})"

    def _scalar(self, kind: str, outer: Names, depth: int) -> str:
        """A subquery with one value, correlated or not."""
        source, names, terms = self.source(0)
        if self.tape.chance(70):
            terms.append(self.condition(outer, names))
        where = f" WHERE {' AND '.join(terms)}" if terms else ""
        if self.tape.chance(30):
            return first_of(self, kind, source, names, where)
        return f"(SELECT {self.aggregate(kind, names)} FROM {source}{where})"

    def aggregate(self, kind: str, names: Names) -> str:
        tape = self.tape
        fitting = [m for m in self.macros if m.kind == kind and m.aggregates]
        if fitting and tape.chance(50):
            return called(self, tape.one(fitting), names, (), 1)
        keep = f" FILTER (WHERE {self.predicate(names, (), 0, 0)})" if tape.chance(12) else ""
        if tape.chance(75 if kind == DBL else 50) and (made := more_aggregates.aggregate(self, kind, names, keep)) is not None:
            return made
        argument = self.value(kind, names, (), 1, 0)
        any_kind = self.value(tape.one(KINDS), names, (), 1, 0)
        match kind:
            case "int":
                small = self.column(INT, names, (), small=True)
                text = tape.one(
                    (
                        "count(*)",
                        f"count({any_kind})",
                        f"count(DISTINCT {any_kind})",
                        f"min({argument})",
                        f"max({argument})",
                    )
                )
                if tape.chance(25):
                    text = f"sum({tape.one(('', 'DISTINCT '))}{small})"
                    return f"CAST({text}{keep} AS BIGINT)"
            case "dec":
                small = self.column(DEC, names, (), small=True)
                text = tape.one((f"min({argument})", f"max({argument})", f"sum({small})", f"sum(DISTINCT {small})"))
            case "dbl":
                small = self.column(tape.one((INT, DBL, DEC)), names, (), small=True)
                text = tape.one(
                    (f"min({argument})", f"max({argument})", f"sum({self.column(DBL, names, ())})", f"avg({small})")
                )
            case "bool":
                text = tape.one((f"bool_and({argument})", f"bool_or({argument})"))
            case _:
                text = tape.one((f"min({argument})", f"max({argument})"))
        return text + keep

    # ---- predicates ----------------------------------------------------------------------------------------------

    def predicate(self, names: Names, outer: Names, size: int, depth: int) -> str:
        """A condition; NULL where a value is."""
        tape = self.tape
        if size and tape.chance(30):
            a, b = (self.predicate(names, outer, size - 1, depth) for _ in range(2))
            self.skips = True
            return tape.one((f"({a} AND {b})", f"({a} OR {b})", f"(NOT {a})"))
        if depth and tape.chance(25):
            return self.subquery(names, outer, depth)
        kind = tape.one(KINDS)
        a = self.value(kind, names, outer, size, 0)

        def other() -> str:
            return self.literal(kind) if tape.chance(50) else self.value(kind, names, outer, size, 0)

        match tape.below(11):
            case 0 if tape.chance(25):
                one, another = clocks.mixed(self, lambda k: self.value(k, names, outer, size, 0))
                return f"({one} {tape.one(_COMPARE)} {another})"
            case 0 | 1 | 2 | 3:
                return f"({a} {tape.one(_COMPARE)} {other()})"
            case 4:
                return f"({a} IS {tape.one(('', 'NOT '))}NULL)"
            case 5:
                return f"({a} {tape.one(('', 'NOT '))}IN ({other()}, {self.literal(kind)}, {self.literal(kind)}))"
            case 6:
                self.skips = True  # one bound may decide
                return f"({a} {tape.one(('', 'NOT '))}BETWEEN {other()} AND {other()})"
            case 7 if tape.chance(15):
                pattern = tape.one(("*a*", "a?", "[a-c]*", "*", "[!a]*", "?*b", ""))
                return f"({self.value(STR, names, outer, size, 0)} GLOB '{pattern}')"
            case 7:
                pattern = tape.one(("%a%", "a%", "%b", "_", "%ä%", "a_%", "", "%日%"))
                how = f"{tape.one(('', 'NOT '))}{tape.one(('LIKE', 'ILIKE'))}"
                return f"({self.value(STR, names, outer, size, 0)} {how} '{pattern}')"
            case 8:
                return f"({a} IS {tape.one(('', 'NOT '))}DISTINCT FROM {other()})"
            case 9:
                self.skips = True
                return of_rows(self, names, outer)
            case _:
                return f"({self.column(BOOL, names, outer)} IS {tape.one(('', 'NOT '))}{tape.one(('TRUE', 'FALSE'))})"

    def shifted(self, text: str) -> str:
        """DuckDB fails, now and then, at what it finds under a NULL."""
        self.fails = True
        return text

    def subquery(self, names: Names, outer: Names, depth: int) -> str:
        """EXISTS, IN, a comparison with ANY or ALL or with a scalar, correlated or not."""
        tape, around = self.tape, names + outer
        source, inner, terms = self.source(depth - 1)
        if tape.chance(8):
            where = f" WHERE {' AND '.join(terms)}" if terms else ""
            return among_rows(self, names, outer, source, inner, where)
        if tape.chance(60):
            terms.append(self.condition(around, inner))
        where = f" WHERE {' AND '.join(terms)}" if terms else ""
        match tape.below(6):
            case 0:
                return f"({tape.one(('', 'NOT '))}EXISTS (SELECT 1 FROM {source}{where}))"
            case 1:
                kind = tape.one((INT, STR, DEC, DATE, DBL, TIME, SPAN, BLOB, CLOCK, ZONED))
                chosen = f"SELECT {self.column(kind, inner, ())} FROM {source}{where}"
                return f"({self.column(kind, names, outer)} {tape.one(('', 'NOT '))}IN ({chosen}))"
            case 2:
                kind = tape.one((INT, STR, DEC, DATE, BLOB, CLOCK, ZONED))
                chosen = f"SELECT {self.aggregate(kind, inner)} FROM {source}{where}"
                return f"({self.column(kind, names, outer)} {tape.one(_COMPARE)} ({chosen}))"
            case 3:
                kind = tape.one((INT, STR, DEC, DATE, TIME, BLOB, CLOCK, ZONED))
                chosen = first_of(self, kind, source, inner, where)
                return f"({self.column(kind, names, outer)} {tape.one(_COMPARE)} {chosen})"
            case 4:
                return exists_of_groups(self, source, inner, where)
            case _:
                kind = tape.one((INT, DEC, DATE, CLOCK, ZONED))
                chosen = f"SELECT {self.column(kind, inner, ())} FROM {source}{where}"
                return f"({self.column(kind, names, outer)} {tape.one(_COMPARE)} {tape.one(('ANY', 'ALL'))} ({chosen}))"


def _under(alias: str, columns: Names) -> Names:
    return tuple(Name(f"{alias}.{c.sql}", c.kind, made=True) for c in columns)
