"""The catalog: which tables and views there are, by name without letter case.

Tables are sources that a Scan reads; views are SQL text, bound anew wherever they are used. Every change counts the
version up, and a kept plan is used only while it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gquery.errors import CatalogError, did_you_mean
from gquery.table import TableSource


@dataclass(frozen=True)
class View:
    """A named query, with names for its columns where CREATE VIEW gave them."""

    name: str
    sql: str
    columns: tuple[str, ...] = ()


@dataclass
class Catalog:
    """Tables and views of a connection. ``open_file`` gives the source for a file's path (``FROM 'file.parquet'``)."""

    open_file: Callable[[str | Sequence[str]], TableSource] | None = None
    version: int = 0
    _entries: dict[str, TableSource | View] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def lookup(self, name: str) -> TableSource | View | None:
        """The table or view of that name, or None."""
        return self._entries.get(name.lower())

    def get(self, name: str) -> TableSource | View:
        """The table or view of that name; CatalogError, with candidates, where there is none."""
        found = self.lookup(name)
        if found is None:
            raise CatalogError(f"table {name!r} does not exist.{did_you_mean(name, self.names())}")
        return found

    def register(self, name: str, entry: TableSource | View, replace: bool = True) -> None:
        """Adds a table or view; CatalogError where the name is taken and ``replace`` is not asked for."""
        if not replace and name.lower() in self._entries:
            kind = "view" if isinstance(self._entries[name.lower()], View) else "table"
            raise CatalogError(f"{kind} {name!r} already exists")
        self._entries[name.lower()] = entry
        self._names[name.lower()] = name
        self.version += 1

    def drop(self, name: str, if_exists: bool = False) -> bool:
        """Removes a table or view; whether there was one. CatalogError where there is none, unless ``if_exists``."""
        if self.lookup(name) is None:
            if if_exists:
                return False
            self.get(name)
        del self._entries[name.lower()], self._names[name.lower()]
        self.version += 1
        return True

    def names(self) -> tuple[str, ...]:
        """The names of all tables and views, sorted."""
        return tuple(sorted(self._names.values(), key=str.lower))

    def tables(self) -> tuple[str, ...]:
        """The names of tables alone, sorted."""
        return tuple(n for n in self.names() if not isinstance(self.lookup(n), View))
