"""Statements over tables whose columns are lists, structs or maps: what their grammars share."""

from __future__ import annotations

from typing import ClassVar, Protocol

from tests.fuzzing.tape import Tape

COMPARE = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
SETS = ("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")


class Items(Protocol):
    """A grammar that makes a table, an entry of a SELECT list and a predicate."""

    tape: Tape
    distinct: ClassVar[int]  # percent of the plain statements

    def base(self) -> str: ...
    def item(self, a: str, /) -> str: ...
    def test(self, a: str, /, size: int = 1) -> str: ...

    def _items(self, *aliases: str) -> str:
        made = [self.item(self.tape.one(aliases)) for _ in range(self.tape.count(1, 3))]
        return ", ".join(f"{item} AS c{n}" for n, item in enumerate(made))

    def _where(self, a: str) -> str:
        return f" WHERE {self.test(a)}" if self.tape.chance(40) else ""

    def _plain(self) -> str:
        tape, distinct = self.tape, "DISTINCT " if self.tape.chance(self.distinct) else ""
        text = f"SELECT {distinct}{self._items('x')} FROM {self.base()} AS x{self._where('x')}"
        if tape.chance(35):
            text += f" ORDER BY ALL{tape.one(('', ' DESC', ' NULLS FIRST'))} LIMIT {tape.count(0, 9)}"
        return text
