"""Reads the SQL of ``tests/differential/*.sql``: queries separated by empty lines.

A comment line before a query tags it: ``-- ordered`` (the order of rows is compared), ``-- one rank`` (huge doubles cancel out,
in the order of the rows alone), ``-- cpu`` (it also runs compiled on the CPU; all run interpreted, and on a GPU where there is
one) and ``-- compiled`` (it runs compiled alone: the interpreter would take seconds). The file's head names its tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support import tables
from tests.support.paths import TESTS

FOLDER = TESTS / "differential"
_TABLES: dict[str, Callable[[], tables.Tables]] = {
    "all_types": tables.all_types,
    "joins": tables.joins,
    "edges": tables.edges,
    "intervals": tables.intervals,
    "shared": tables.shared,
    "pivots": tables.pivots,
    "lists": tables.lists,
    "structs": tables.structs,
}


@dataclass(frozen=True)
class Case:
    name: str
    sql: str
    tables: Callable[[], tables.Tables]
    tags: frozenset[str]

    @property
    def ordered(self) -> bool:
        return "ordered" in self.tags

    @property
    def ranks(self) -> tuple[int, ...]:
        """How many ranks run it."""
        return (1,) if "one rank" in self.tags else (1, 3)


def read_cases() -> list[Case]:
    """All cases of all files, named ``file:line``."""
    return [case for path in sorted(FOLDER.glob("*.sql")) for case in _read(path)]


def _read(path: Path) -> list[Case]:
    cases: list[Case] = []
    make: Callable[[], tables.Tables] | None = None
    tags: set[str] = set()
    lines: list[str] = []
    for number, line in enumerate([*path.read_text().splitlines(), ""], 1):
        if line.startswith("-- tables:"):
            make = _TABLES[line.removeprefix("-- tables:").strip()]
        elif line.startswith("--"):
            tags.add(line.removeprefix("--").strip())
        elif line.strip():
            lines.append(line)
        elif lines:
            assert make is not None and tags <= {"ordered", "cpu", "one rank", "compiled"}, (
                f"{path.name}:{number}: {tags}"
            )
            cases.append(Case(f"{path.stem}:{number - len(lines)}", "\n".join(lines), make, frozenset(tags)))
            tags, lines = set(), []
    return cases
