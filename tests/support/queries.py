"""Random queries over random tables with NULLs, from a seed. Every query has one right answer, in any order of rows.

The generator stays where answers are exact, so that a comparison decides the same way in both engines: small integers,
doubles that are multiples of 0.25, ORDER BY over all result columns wherever there is a LIMIT. Sums of integers are
cast to BIGINT, as DuckDB's HUGEINT would change the types above them.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa

INT, DEC, DBL, STR, BOOL, DATE = "int", "dec", "dbl", "str", "bool", "date"
KINDS = (INT, DEC, DBL, STR, BOOL, DATE)
SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("j", pa.int64()),
        ("k", pa.int16()),
        ("d", pa.decimal128(9, 2)),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("t", pa.date32()),
    ]
)
COLUMNS = {"i": INT, "j": INT, "k": INT, "d": DEC, "f": DBL, "s": STR, "b": BOOL, "t": DATE}
TABLES = ("t0", "t1", "t2", "t3")


@cache
def random_tables(seed: int) -> dict[str, pa.Table]:
    """``t0`` to ``t3``: seven rows to forty, now and then none or one; NULLs from none to nearly all."""
    rng = random.Random(seed)
    return {name: _table(rng, rng.choice((0, 1, 7, 15, 15, 25, 25, 40, 40)) if name != "t0" else 30) for name in TABLES}


def _table(rng: random.Random, rows: int) -> pa.Table:
    nulls = {name: rng.choice((0, 0, 0.1, 0.3, 0.9)) for name in COLUMNS}
    spread = rng.choice((2, 8, 20))

    def value(name: str) -> Any:
        if rng.random() < nulls[name]:
            return None
        match name:
            case "i" | "j" | "k":
                return rng.randint(-2, spread) * (10**10 if name == "j" and spread == 8 else 1)
            case "d":
                return Decimal(rng.randint(-50, 50) * 25).scaleb(-2)
            case "f":
                return rng.randint(-20, 20) / 4
            case "s":
                return rng.choice(("", "a", "ab", "b", "bab", "c", "ça"))
            case "b":
                return rng.random() < 0.5
            case _:
                return datetime.date(1970, 1, 1) + datetime.timedelta(days=rng.randint(-400, 400))

    return pa.table([pa.array([value(n) for _ in range(rows)], SCHEMA.field(n).type) for n in COLUMNS], schema=SCHEMA)


@dataclass(frozen=True)
class Ref:
    """A column in scope."""

    sql: str
    kind: str


Scope = tuple[Ref, ...]


class Generator:
    """Writes one query. ``scope`` holds the columns of the query at hand, ``outer`` those of the queries around it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.aliases = 0
        self.ctes: dict[str, list[str]] = {}  # those in scope: the kinds of their columns
        self.bodies: list[tuple[str, list[str]]] = []  # derived tables without CTEs, to be written again

    def alias(self) -> str:
        self.aliases += 1
        return f"x{self.aliases}"

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    # ---- queries -------------------------------------------------------------------------------------------------

    def query(self) -> str:
        if self.chance(0.3):
            return self.with_clause() + self.body()
        return self.body()

    def body(self) -> str:
        if self.chance(0.15):
            kinds = [self.rng.choice(KINDS) for _ in range(self.rng.randint(1, 3))]
            union = self.rng.choice((" UNION ALL ", " UNION ALL ", " UNION "))
            return union.join(self.select(1, (), kinds)[0] for _ in range(self.rng.randint(2, 3)))
        return self.select(0, ())[0]

    def with_clause(self) -> str:
        """One to three CTEs, each of which may use those before it; what follows takes most of its tables from them."""
        parts: list[str] = []
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            body, kinds = self.select(1, ())
            if self.chance(0.2):
                body = f"{body if 'ORDER BY' not in body else f'({body})'} UNION ALL {self.select(1, (), kinds)[0]}"
            name = self.rng.choice((self.alias(), self.alias(), "t3"))  # which then hides a table
            if name in self.ctes:
                name = self.alias()
            names = f"({', '.join(f'c{i}' for i in range(len(kinds)))})" if self.chance(0.2) else ""
            kept = self.rng.choice(("", "", "", "MATERIALIZED ", "NOT MATERIALIZED "))
            parts.append(f"{name}{names} AS {kept}({body})")
            self.ctes[name] = kinds
        return f"WITH {', '.join(parts)} "

    def select(self, depth: int, outer: Scope, want: list[str] | None = None) -> tuple[str, list[str]]:
        """A SELECT and the kinds of its columns ``c0``, ``c1``, ...; of the kinds ``want`` if told."""
        tables, scope, terms = self.relations(depth)
        if self.chance(0.5):
            terms.append(self.predicate(scope, outer, 2, depth))
        grouped = self.chance(0.35)
        having = ""
        if grouped:
            keys = [self.value(k, scope, (), 1, 9) for k in self.kinds(0, 2)] if want is None else []
            key_kinds = self.last_kinds if want is None else []
            items = [(f"({e})", k) for e, k in zip(keys, key_kinds)]
            for kind in want or self.kinds(1, 3):
                items.append((self.aggregate(kind, scope), kind))
            tail = " GROUP BY " + ", ".join(str(i + 1) for i in range(len(keys))) if keys else ""
            if self.chance(0.3):
                kind = self.rng.choice((INT, DEC, DATE))
                compare = self.rng.choice(("<", ">=", "<>"))
                having = f" HAVING {self.aggregate(kind, scope)} {compare} {self.literal(kind)}"
        else:
            kinds = want or self.kinds(1, 4)
            items = [(self.value(kind, scope, outer, 2, depth), kind) for kind in kinds]
            tail = ""
        distinct = "DISTINCT " if self.chance(0.12) else ""
        select = ", ".join(f"{e} AS c{i}" for i, (e, _) in enumerate(items))
        where = f" WHERE {' AND '.join(f'({t})' for t in terms)}" if terms else ""
        text = f"SELECT {distinct}{select} FROM {tables}{where}{tail}{having}"
        if self.chance(0.2) and want is None:
            order = ", ".join(f"{i + 1}{self.rng.choice(('', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST'))}"
                              for i in range(len(items)))  # fmt: skip
            text += f" ORDER BY {order}"
            if self.chance(0.7):
                text += f" LIMIT {self.rng.randint(0, 12)}" + (f" OFFSET {self.rng.randint(1, 5)}" * self.chance(0.3))
        return text, [kind for _, kind in items]

    def kinds(self, low: int, high: int) -> list[str]:
        self.last_kinds = [self.rng.choice(KINDS) for _ in range(self.rng.randint(low, high))]
        return self.last_kinds

    def relations(self, depth: int) -> tuple[str, Scope, list[str]]:
        """The FROM clause, its columns, and join conditions that go to WHERE."""
        text, scope = self.relation(depth)
        terms: list[str] = []
        for _ in range(self.rng.choice((0, 0, 1, 1, 2)) if depth < 2 else self.rng.choice((0, 0, 1))):
            right, columns = self.relation(depth)
            condition = self.equality(scope, columns)
            both = scope + columns
            join = self.rng.choice(
                (",", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI", "ANTI")
            )
            if join in ("SEMI", "ANTI"):
                text += f" {join} JOIN {right} ON {condition}"
                continue
            if join == ",":
                text += f" CROSS JOIN {right}"
                terms.append(condition)
            else:
                if self.chance(0.3):
                    condition += f" AND {self.predicate(both, (), 1, 9)}"
                text += f" {join} {right} ON {condition}"
            scope = both
        return text, scope, terms

    def relation(self, depth: int) -> tuple[str, Scope]:
        name = self.alias()
        if self.ctes and self.chance(0.6):
            cte = self.rng.choice(sorted(self.ctes))
            return f"{cte} AS {name}", tuple(Ref(f"{name}.c{i}", kind) for i, kind in enumerate(self.ctes[cte]))
        if depth < 2 and self.chance(0.2):
            body, kinds = self.derived(depth + 1)
            return f"({body}) AS {name}", tuple(Ref(f"{name}.c{i}", kind) for i, kind in enumerate(kinds))
        table = self.rng.choice([t for t in TABLES if t not in self.ctes])
        return f"{table} AS {name}", tuple(Ref(f"{name}.{c}", kind) for c, kind in COLUMNS.items())

    def derived(self, depth: int) -> tuple[str, list[str]]:
        """A derived table: now and then one that was written before, or one with CTEs of its own."""
        if self.bodies and not self.ctes and self.chance(0.4):
            return self.rng.choice(self.bodies)
        around = dict(self.ctes)
        text = self.with_clause() if self.chance(0.1) else ""
        body, kinds = self.select(depth, ())
        self.ctes = around
        if not around:
            self.bodies.append((text + body, kinds))
        return text + body, kinds

    def equality(self, left: Scope, right: Scope) -> str:
        pairs = [(a, b) for a in left for b in right if a.kind == b.kind and a.kind not in (DBL, BOOL)]
        if not pairs:
            return "TRUE"
        if self.chance(0.12):
            a, b = self.rng.choice(pairs)
            return f"{a.sql} {self.rng.choice(('<', '>=', '<>', 'IS DISTINCT FROM', 'IS NOT DISTINCT FROM'))} {b.sql}"
        chosen = self.rng.sample(pairs, min(len(pairs), self.rng.choice((1, 1, 1, 2))))
        return " AND ".join(f"{a.sql} = {b.sql}" for a, b in chosen)

    # ---- expressions ---------------------------------------------------------------------------------------------

    def literal(self, kind: str) -> str:
        match kind:
            case "int":
                return str(self.rng.randint(-3, 12))
            case "dec":
                return f"{self.rng.randint(-40, 40) / 4:.2f}"
            case "dbl":
                return f"{self.rng.randint(-20, 20) / 4}e0"
            case "str":
                return self.rng.choice(("''", "'a'", "'ab'", "'b'"))
            case "bool":
                return self.rng.choice(("TRUE", "FALSE"))
            case _:
                return f"DATE '{1969 + self.rng.randint(0, 2)}-0{self.rng.randint(1, 9)}-15'"

    def column(self, kind: str, scope: Scope, outer: Scope) -> str:
        places = [r.sql for r in scope if r.kind == kind]
        beyond = [r.sql for r in outer if r.kind == kind]
        if beyond and self.chance(0.35):
            return self.rng.choice(beyond)
        return self.rng.choice(places) if places else self.literal(kind)

    def value(self, kind: str, scope: Scope, outer: Scope, size: int, depth: int) -> str:
        """An expression of a kind. ``size`` bounds its height; subqueries are nested while ``depth`` is below 2."""

        def sub(k: str = kind) -> str:
            return self.value(k, scope, outer, size - 1, depth)

        if size == 0 or self.chance(0.4):
            return self.column(kind, scope, outer) if self.chance(0.85) else self.literal(kind)
        if self.chance(0.06):
            return f"coalesce({sub()}, {self.literal(kind)})"
        if self.chance(0.15):
            predicate = self.predicate(scope, outer, size - 1, 9)
            return f"CASE WHEN {predicate} THEN {sub()}{f' ELSE {sub()}' if self.chance(0.7) else ''} END"
        if self.chance(0.08):
            return f"nullif({sub()}, {self.literal(kind)})"
        if depth < 2 and kind in (INT, DEC, DATE) and self.chance(0.12):
            return self.scalar(kind, scope + outer, depth)
        match kind:
            case "int":
                shapes: list[Callable[[], str]] = [
                    lambda: f"({sub()} + {sub()})",
                    lambda: f"({sub()} - {self.literal(INT)})",
                    lambda: f"({self.column(INT, scope, outer)} * {self.rng.randint(-2, 3)})",
                    lambda: f"({sub()} // {self.rng.choice((1, 2, 3, 0, -2))})",
                    lambda: f"({sub()} % {self.rng.choice((2, 3, 5, 0))})",
                    lambda: f"extract(month FROM {sub(DATE)})",
                    lambda: f"({sub(DATE)} - {self.literal(DATE)})",
                    lambda: f"abs({self.column(INT, scope, outer)})",
                ]
            case "dec":
                shapes = [
                    lambda: f"({sub()} + {sub()})",
                    lambda: f"({sub()} - {sub()})",
                    lambda: f"({self.column(DEC, scope, outer)} * {self.literal(DEC)})",
                    lambda: f"({sub()} * {self.rng.randint(-2, 3)})",
                    lambda: f"(- {sub()})",
                ]
            case "dbl":
                shapes = [
                    lambda: f"({sub()} + {sub()})",
                    lambda: f"({sub()} - {self.literal(DBL)})",
                    lambda: f"({sub()} * 0.5e0)",
                    lambda: f"CAST({sub(DEC)} AS DOUBLE)",
                ]
            case "str":
                shapes = [
                    lambda: f"({sub()} || {sub()})",
                    lambda: f"substring({sub()} FROM 1 FOR {self.rng.randint(1, 2)})",
                    lambda: f"upper({self.column(STR, scope, outer)})",
                ]
            case "bool":
                return f"({self.predicate(scope, outer, size - 1, depth)})"
            case _:
                shapes = [lambda: f"({sub()} + {self.rng.randint(-40, 40)})"]
        return self.rng.choice(shapes)()

    def scalar(self, kind: str, outer: Scope, depth: int) -> str:
        tables, scope, terms = self.relations(2)
        if self.chance(0.7):
            terms.append(self.correlation(scope, outer))
        where = f" WHERE {' AND '.join(f'({t})' for t in terms)}" if terms else ""
        return f"(SELECT {self.aggregate(kind, scope)} FROM {tables}{where})"

    def correlation(self, scope: Scope, outer: Scope) -> str:
        condition = self.equality(outer, scope)
        if self.chance(0.3):
            kind = self.rng.choice((INT, DATE))
            condition += f" AND {self.column(kind, scope, ())} {self.rng.choice(('<', '<>', '>='))} "
            condition += self.column(kind, outer, ())
        return condition

    def aggregate(self, kind: str, scope: Scope) -> str:
        argument = self.value(kind, scope, (), 1, 9)
        match kind:
            case "int":
                any_kind = self.value(self.rng.choice(KINDS), scope, (), 1, 9)
                shapes = [
                    "count(*)", f"count({any_kind})", f"CAST(sum({argument}) AS BIGINT)", f"min({argument})",
                    f"count(DISTINCT {any_kind})",
                ]  # fmt: skip
            case "dec":
                shapes = [f"sum({argument})", f"min({argument})", f"max({argument})"]
            case "dbl":
                number = self.value(self.rng.choice((INT, DEC, DBL)), scope, (), 1, 9)
                shapes = [f"sum({argument})", f"avg({number})", f"max({argument})"]
            case _:
                shapes = [f"min({argument})", f"max({argument})"]
        return self.rng.choice(shapes)

    def predicate(self, scope: Scope, outer: Scope, size: int, depth: int) -> str:
        """A condition, now and then NULL."""

        def value(kind: str) -> str:
            return self.value(kind, scope, outer, size, 9)

        if size > 0 and self.chance(0.35):
            a, b = (self.predicate(scope, outer, size - 1, depth) for _ in range(2))
            return self.rng.choice((f"({a} AND {b})", f"({a} OR {b})", f"NOT ({a})"))
        if depth < 2 and self.chance(0.25):
            return self.subquery(scope, outer, depth)
        kind = self.rng.choice((INT, INT, DEC, DBL, STR, DATE))
        a = value(kind)
        match self.rng.randint(0, 9):
            case 0:
                return f"{a} IS {self.rng.choice(('', 'NOT '))}NULL"
            case 1:
                return (
                    f"{a} {self.rng.choice(('', 'NOT '))}IN ({self.literal(kind)}, {self.literal(kind)}, {value(kind)})"
                )
            case 2:
                return f"{a} BETWEEN {self.literal(kind)} AND {value(kind)}"
            case 3:
                pattern = self.rng.choice(("a%", "%b", "%a%", "_", "a_%", ""))
                return f"{value(STR)} {self.rng.choice(('', 'NOT '))}LIKE '{pattern}'"
            case 4:
                return self.column(BOOL, scope, outer)
            case 5:
                return f"{a} IS {self.rng.choice(('', 'NOT '))}DISTINCT FROM {value(kind)}"
            case _:
                other = self.literal(kind) if self.chance(0.5) else value(kind)
                return f"{a} {self.rng.choice(('=', '<>', '<', '<=', '>', '>='))} {other}"

    def subquery(self, scope: Scope, outer: Scope, depth: int) -> str:
        """EXISTS, IN or a comparison with a scalar subquery, correlated or not, negated or not."""
        around = scope + outer
        if self.chance(0.3):
            kind = self.rng.choice((INT, DEC, DATE))
            compare = self.rng.choice(("=", "<", ">="))
            return f"{self.column(kind, scope, outer)} {compare} {self.scalar(kind, around, depth)}"
        tables, inner, terms = self.relations(2)
        if self.chance(0.6):
            terms.append(self.correlation(inner, around))
        if self.chance(0.4):
            terms.append(self.predicate(inner, around, 1, depth + 1))
        where = f" WHERE {' AND '.join(f'({t})' for t in terms)}" if terms else ""
        negate = self.rng.choice(("", "NOT "))
        if self.chance(0.5):
            return f"{negate}EXISTS (SELECT 1 FROM {tables}{where})"
        kind = self.rng.choice((INT, STR, DATE))
        chosen = self.value(kind, inner, (), 1, 9)
        return f"{self.column(kind, scope, outer)} {negate}IN (SELECT {chosen} FROM {tables}{where})"
