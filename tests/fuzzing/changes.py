"""Scripts that change a table and ask it between the changes: INSERT, UPDATE, DELETE, TRUNCATE, views, prepared statements, and
the same question again with other constants, for which a plan is there already.

The table ``z`` is made of one of the others; every statement's answer, or count of rows, is DuckDB's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.fuzzing.data import BLOB, BOOL, CLOCK, COLUMNS, DATE, DBL, DEC, EDGES, INT, STR, TABLES, TIME, ZONED
from tests.fuzzing.merges import merge
from tests.fuzzing.names import Name, Names

if TYPE_CHECKING:
    from tests.fuzzing.grammar import Grammar

_ALWAYS = ("i32", "i64", "str")
_OTHERS = ("i8", "e16", "e64", "dec", "edec", "d18", "f64", "f32", "txt", "day", "ts", "yes", "dur", "raw", "clk", "moment")
_CONSTANT = re.compile(r"(?<=[=<>] )-?\d+(?![\d.e%'])|(?<=[=<>] )'[^']*'(?![:|])")
_WHOLE = re.compile(r"(?<=[=<>] )-?\d+(?![\d.e%'])")


class Changes:
    """Writes one script."""

    def __init__(self, g: Grammar) -> None:
        self.g, self.tape = g, g.tape
        self.columns: tuple[str, ...] = ()
        self.asked: list[str] = []
        self.prepared = 0
        self.is_primary = False  # whether (i32, i64) is a primary key

    def script(self) -> tuple[str, ...]:
        """Statements, of which the last asks for the whole table."""
        tape = self.tape
        self.columns = (*_ALWAYS, *(c for c in _OTHERS if tape.chance(35)))
        out = self._create()
        self.g.own = ("z", self.columns)
        self.asked = [self._question() for _ in range(tape.count(1, 2))]
        out += self.asked
        out += self._insert() if self.is_primary else []
        steps: tuple[Callable[[], list[str]], ...] = (
            self._insert, self._update, self._delete, self._insert, self._update, self._again, self._prepare, self._execute,
            self._rare, self._rare, self._merge, self._merge, *[self._insert] * (2 * self.is_primary),
        )  # fmt: skip
        for _ in range(tape.count(1, 5)):
            out += tape.one(steps)()
            out += self._again() if tape.chance(50) else []
        return (*out, *self._again(), "SELECT * FROM z")

    def _create(self) -> list[str]:
        tape = self.tape
        where = f" WHERE i16 <= {tape.count(-2, 6)}" if tape.chance(40) else ""
        rows = f"SELECT {', '.join(self.columns)} FROM {tape.one(TABLES)}{where}"
        if "dur" in self.columns or tape.chance(50):
            return [f"CREATE OR REPLACE TABLE z AS {rows}"]
        columns = ", ".join(f"{c} {_TYPES[c]}{self._asked(c)}" for c in self.columns)
        both = ", CHECK (i32 <= i64)" if tape.chance(10) else ""
        if tape.chance(60):
            primary = "PRIMARY KEY (i32, i64)"
            key = tape.one((primary, "UNIQUE (i64)", primary, "UNIQUE (str, i32)", primary, "UNIQUE (i32), UNIQUE (i64, str)"))
            self.is_primary = key.startswith("PRIMARY")
            order = ", ".join(self.columns)  # no other row may be the first in another engine
            both += f", {key}"
            first = f"row_number() OVER (PARTITION BY {tape.one(('i32', 'i64'))} ORDER BY {order}) = 1"
            rows += f" QUALIFY {first}" if tape.chance(70) else ""
        return [f"CREATE OR REPLACE TABLE z ({columns}{both})", f"INSERT INTO z {rows}", "DESCRIBE z"]

    def _asked(self, column: str) -> str:
        """Constraints of a column."""
        tape, kind = self.tape, COLUMNS[column][0]
        out = " NOT NULL" if tape.chance(12) else ""
        if tape.chance(25):
            out += f" DEFAULT {self._constant(column)}"
        if tape.chance(15) and kind in (INT, STR, DEC):
            out += f" CHECK ({column} {tape.one(('<', '<=', '<>', '>='))} {self._constant(column)})"
        return out

    def _constant(self, column: str) -> str:
        """A constant that DuckDB shows as it is written."""
        return {INT: "3", STR: "'b'"}.get(COLUMNS[column][0], "NULL")

    def _question(self) -> str:
        tape, g = self.tape, self.g
        if tape.chance(30):
            kind = tape.one((INT, STR, DEC))
            return f"SELECT count(*), min(z.i64), max(z.str) FROM z WHERE {g.column(kind, self.names(), ())} = {g.literal(kind)}"
        return g.select((), 1)[0]

    def names(self) -> Names:
        return tuple(Name(f"z.{c}", COLUMNS[c][0], c in EDGES) for c in self.columns)

    # ---- steps -------------------------------------------------------------------------------------------------------

    def _again(self) -> list[str]:
        """A question that was asked, now and then with other constants."""
        text = self.tape.one(self.asked)
        return [_CONSTANT.sub(self._other, text) if self.tape.chance(70) else text]

    def _other(self, found: re.Match[str]) -> str:
        if self.tape.chance(40):
            return found[0]
        return str(self.g.literal(STR if found[0].startswith("'") else INT))

    def _prepare(self) -> list[str]:
        """A question of which a number is a parameter."""
        text = self.tape.one(self.asked)
        if (found := _WHOLE.search(text)) is None:
            return self._again()
        self.prepared += 1
        return [f"PREPARE p{self.prepared} AS {text[: found.start()]}$1{text[found.end() :]}", *self._execute()]

    def _execute(self) -> list[str]:
        tape = self.tape
        if not self.prepared:
            return self._again()
        return [
            f"EXECUTE p{tape.count(1, self.prepared)}({tape.one((self.g.literal(INT), 'NULL'))})"
            for _ in range(tape.count(1, 2))
        ]

    def _insert(self) -> list[str]:
        """Rows; of a key that the table has now and then in place of those. (Of keys with NULL DuckDB takes the first alone.)"""
        text = self._plain_insert()
        if not self.is_primary or self.tape.chance(25):
            return [text + self._returning()]
        value = self.tape.one(("excluded.str", "z.str || excluded.str", "DEFAULT"))
        where = self.tape.one(("", "", " WHERE excluded.str <> z.str"))
        return [text + self.tape.one((" ON CONFLICT DO NOTHING", f" ON CONFLICT (i64, i32) DO UPDATE SET str = {value}{where}"))]

    def _plain_insert(self) -> str:
        tape, g = self.tape, self.g
        shape = tape.below(4)
        if shape == 0:
            some = [c for c in self.columns if tape.chance(50)] or ["i32"]
            rows = [
                ", ".join(tape.one(("NULL", "DEFAULT")) if tape.chance(20) else self._fitting(c) for c in some)
                for _ in range(tape.count(1, 3))
            ]
            return f"INSERT INTO z ({', '.join(some)}) VALUES {', '.join(f'({row})' for row in rows)}"
        if shape == 1:
            where = f" WHERE {g.predicate(self.names(), (), 1, 1)}"
            return f"INSERT INTO z SELECT * FROM z{where if tape.chance(80) else ''} ORDER BY ALL LIMIT 30"
        table, where = tape.one(TABLES), f" WHERE i8 <= {tape.count(-3, 6)}" if tape.chance(60) else ""
        if shape == 2:
            some = [c for c in self.columns if tape.chance(50)] or ["str"]
            return f"INSERT INTO z BY NAME SELECT {', '.join(reversed(some))} FROM {table}{where}"
        return f"INSERT INTO z SELECT {', '.join(self.columns)} FROM {table}{where}"

    def _fitting(self, column: str) -> str:
        kind = COLUMNS[column][0]
        if kind == INT and column not in ("i8", "e16") and self.tape.chance(20):
            return self.tape.one(("2147483647", "-2147483648", "1.4", "'7'", "2.5e0"))
        return str(self.g.literal(kind))

    def new_value(self, column: str, names: Names) -> str:
        """An expression that fits a column, as far as that can be told."""
        tape, kind = self.tape, COLUMNS[column][0]
        value = "NULL" if tape.chance(10) else self.g.value(kind, names, (), 2, tape.below(2))
        if kind in (INT, DEC, DBL):  # a value that does not fit is an error, whose rows nothing tells
            return f"TRY_CAST({value} AS {_TYPES.get(column, COLUMNS[column][1])})"
        return value

    def sets(self, names: Names) -> str:
        """What a change puts into some columns."""
        tape, found = self.tape, []
        for c in dict.fromkeys(tape.one(self.columns) for _ in range(tape.count(1, 3))):
            value = self.new_value(c, names)
            found.append(f"{c} = {'DEFAULT' if tape.chance(5) else value}")
        return ", ".join(found)

    def _update(self) -> list[str]:
        where = f" WHERE {self.g.predicate(self.names(), (), 2, 1)}" if self.tape.chance(85) else ""
        return [f"UPDATE z SET {self.sets(self.names())}{where}{self._returning()}"]

    def _delete(self) -> list[str]:
        return [f"DELETE FROM z WHERE {self.g.predicate(self.names(), (), 2, 1)}{self._returning()}"]

    def _merge(self) -> list[str]:
        return [merge(self), "SELECT * FROM z"]

    def _returning(self) -> str:
        """What a change gives of the rows that it adds, changes or takes away."""
        tape = self.tape
        if not tape.chance(25):
            return ""
        kinds = [tape.one((INT, STR, DATE, DEC)) for _ in range(tape.count(1, 2))]
        listed = ", ".join(self.g.value(k, self.names(), (), 1, 0) for k in kinds)
        return f" RETURNING {tape.one(('*', listed, f'*, {listed}'))}"

    def _alter(self) -> list[str]:
        """A column that comes, changes its name or its type, and goes."""
        tape, g = self.tape, self.g
        if tape.chance(30):
            column = tape.one(self.columns)
            change = tape.one(("DROP DEFAULT", f"SET DEFAULT {self._constant(column)}", "SET NOT NULL", "DROP NOT NULL"))
            return [f"ALTER TABLE z ALTER {column} {change}", *self._insert(), "DESCRIBE z", "SELECT * FROM z"]
        kind = tape.one(tuple(_OF_KIND))
        default = f" DEFAULT {g.literal(kind)}" if tape.chance(30) else ""
        out = [f"ALTER TABLE z ADD COLUMN added {_OF_KIND[kind]}{default}", "SELECT * FROM z"]
        if tape.chance(60):
            out += [
                f"UPDATE z SET added = {g.literal(kind)} WHERE {g.predicate(self.names(), (), 1, 0)}",
                "SELECT * FROM z",
            ]
        if tape.chance(60):
            out += ["ALTER TABLE z ALTER added TYPE VARCHAR", "SELECT added, count(*) FROM z GROUP BY ALL"]
        if tape.chance(40):
            out += ["ALTER TABLE z RENAME added TO changed", "SELECT max(changed), count(changed) FROM z"]
        return [*out, f"ALTER TABLE z DROP COLUMN {'changed' if 'changed' in out[-1] else 'added'}"]

    def _rare(self) -> list[str]:
        tape, g = self.tape, self.g
        shape = tape.below(6)
        if shape == 4:
            return self._alter()
        if shape == 5:  # of one change: DuckDB gives a transaction up where a statement fails, and gquery goes on
            change = tape.one((self._insert, self._update, self._delete))()
            return ["BEGIN", *change, tape.one(("COMMIT", "ROLLBACK", "ROLLBACK")), "SELECT * FROM z"]
        if shape == 0:
            self.asked.append("SELECT * FROM v")
            keep = g.predicate(self.names(), (), 1, 0)
            return [f"CREATE OR REPLACE VIEW v AS SELECT i32, str, i64 FROM z WHERE {keep}", "SELECT * FROM v"]
        if shape == 1:
            return ["TRUNCATE z"]
        if shape == 2:
            kind = tape.one(tuple(_OF_KIND))
            made = f"SELECT *, {g.value(kind, self.names(), (), 1, 0)} AS extra FROM z"
            return [f"CREATE OR REPLACE TABLE zz AS {made}", "SELECT * FROM zz", "SELECT count(*), max(extra) FROM zz"]
        return ["DELETE FROM z WHERE NULL", "INSERT INTO z SELECT * FROM z WHERE FALSE"]


_OF_KIND = {INT: "BIGINT", STR: "VARCHAR", DATE: "DATE", TIME: "TIMESTAMP", BOOL: "BOOLEAN", DEC: "DECIMAL(9,2)",
            BLOB: "BLOB", CLOCK: "TIME", ZONED: "TIMESTAMPTZ"}  # fmt: skip
_TYPES = {
    "i8": "TINYINT", "i32": "INTEGER", "i64": "BIGINT", "e16": "SMALLINT", "e64": "BIGINT", "dec": "DECIMAL(9,2)",
    "edec": "DECIMAL(4,1)", "d18": "DECIMAL(18,4)", "f64": "DOUBLE", "f32": "FLOAT", "str": "VARCHAR", "txt": "VARCHAR",
    "day": "DATE", "ts": "TIMESTAMP", "yes": "BOOLEAN", "raw": "BLOB", "clk": "TIME", "moment": "TIMESTAMPTZ",
}  # fmt: skip
