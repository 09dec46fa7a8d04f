"""What a script believes there is: tables with their columns, views, sequences, macros, variables, and names for all of these.

A statement that fails leaves it behind the engines. Then later statements name what is not there, and fail in both.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from tests.fuzzing.tape import Tape

NAMES = (
    "a", "b", "select", "Mixed", "order", "größe", "two words", "from", "left", "x.y", "null", "group", "B2", "values", "end",
    "date", "count", "Σ", "it's", 'q"q', "case", "key", "index", "column", "all", "is", "list",
)  # fmt: skip
PLAIN = frozenset({"a", "b", "Mixed", "B2", "größe", "date", "count", "key", "index", "list"})  # that need no quotes
MAIN = "main"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def said(tape: Tape, name: str) -> str:
    """A name as a statement may write it: names are found in any case."""
    way = tape.below(10)
    if way < 5 and name in PLAIN:
        return name
    return quoted(name.swapcase() if way == 9 and name.isascii() else name)


@dataclass(frozen=True)
class Column:
    name: str
    kind: str  # a type as DuckDB writes it


@dataclass
class Table:
    schema: str
    name: str
    columns: list[Column]
    key: str = ""  # the column of its primary key
    is_view: bool = False

    def said(self, tape: Tape) -> str:
        name = said(tape, self.name)
        return name if self.schema == MAIN and not tape.chance(15) else f"{said(tape, self.schema)}.{name}"

    def of(self, *kinds: str) -> list[Column]:
        return [c for c in self.columns if c.kind in kinds]


@dataclass
class Catalog:
    schemas: list[str] = field(default_factory=lambda: [MAIN])
    tables: list[Table] = field(default_factory=list)
    sequences: list[str] = field(default_factory=list)
    macros: dict[str, str] = field(default_factory=dict)  # name to kind of what it gives
    variables: dict[str, str] = field(default_factory=dict)
    prepared: dict[str, int] = field(default_factory=dict)  # name to number of parameters

    def copy(self) -> Catalog:
        return copy.deepcopy(self)

    @property
    def written(self) -> list[Table]:
        return [t for t in self.tables if not t.is_view]

    def new_name(self, tape: Tape) -> str:
        return tape.one(NAMES)

    def add(self, table: Table) -> None:
        self.tables = [t for t in self.tables if not _is(t, table.schema, table.name)] + [table]

    def drop(self, table: Table) -> None:
        self.tables = [t for t in self.tables if t is not table]


def _is(table: Table, schema: str, name: str) -> bool:
    return (table.schema.lower(), table.name.lower()) == (schema.lower(), name.lower())
