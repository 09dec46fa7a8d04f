"""Schemas, and names of tables in them.

A table's name is one text, `st.t`, whose parts stand in quotes where they have a dot or a quote themselves. Without a schema it
means the table of the schema in use, if there is one, else that of ``main``, as in DuckDB. All schemas are of the database
``memory``. A catalog keeps tables of ``main`` under their own names, others behind that of their schema.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import field

from gquery.errors import CatalogError, did_you_mean
from gquery.runtime.records import dataclass

MAIN, DATABASE = "main", "memory"
INFORMATION = "information_schema"
SYSTEM = (INFORMATION, "pg_catalog")  # whose tables are made when they are asked for
_PART = re.compile(r'"((?:[^"]|"")*)"|([^".]+)')


def joined(parts: Sequence[str]) -> str:
    """Parts of a name as one text.

    >>> joined(["st", "t"]), joined(["a.b"])
    ('st.t', '"a.b"')
    """
    return ".".join(p if p and "." not in p and '"' not in p else '"' + p.replace('"', '""') + '"' for p in parts)


def split(name: str) -> tuple[str, ...]:
    """The parts of a name.

    >>> split('st."a.b"')
    ('st', 'a.b')
    """
    if "." not in name and '"' not in name:
        return (name,)
    return tuple(m[2] if m[1] is None else m[1].replace('""', '"') for m in _PART.finditer(name))


def last(name: str) -> str:
    """The name of a table without its schema."""
    return split(name)[-1]


def schema_of(name: str) -> str:
    """The schema of a table of this whole name."""
    parts = split(name)
    return parts[-2] if len(parts) > 1 else MAIN


@dataclass
class Schemas:
    """The schemas that were made, and the one in use. ``entries``: their names, by these in lower case; another dictionary
    after each change."""

    entries: dict[str, str] = field(default_factory=lambda: {MAIN: MAIN})
    current: str = MAIN  # in lower case

    def has(self, name: str) -> bool:
        """Whether there is a schema of that name."""
        return name.lower() in self.entries

    def key(self, name: str, tables: Container[str]) -> str:
        """Under which a catalog of these keys keeps the table that a name means. CatalogError for a schema that is not there."""
        parts = self._parts(name)
        if len(parts) == 1 and self.current != MAIN:
            key = joined((self.current, parts[0])).lower()
            return key if key in tables else joined(parts).lower()
        return joined(parts[-1:] if parts[0].lower() == MAIN else parts).lower() if len(parts) > 1 else name.lower()

    def new(self, name: str) -> str:
        """The whole name of a table to make: with its schema, but for one of ``main``. CatalogError as in `key`."""
        parts = self._parts(name)
        schema = parts[0].lower() if len(parts) > 1 else self.current
        return joined(parts[-1:]) if schema == MAIN else joined((self.entries[schema], parts[-1]))

    def shown(self, name: str) -> str:
        """The whole name of a table as it can be written now."""
        return name if self.current == MAIN or len(split(name)) > 1 else joined((MAIN, *split(name)))

    def _parts(self, name: str) -> tuple[str, ...]:
        """The table's name, behind its schema's where it has one."""
        if "." not in name and '"' not in name:
            return (name,)
        parts = split(name)
        if len(parts) > 2 and parts[0].lower() == DATABASE:
            parts = parts[1:]
        elif len(parts) == 2 and parts[0].lower() == DATABASE and not self.has(DATABASE):
            parts = MAIN, parts[1]
        if len(parts) > 2:
            raise CatalogError(f"database {parts[0]!r} does not exist; all schemas are in database {DATABASE}")
        if len(parts) == 2:
            self.get(joined(parts[:1]))
        return parts

    def get(self, name: str) -> str:
        """The schema of that name, as it was written; CatalogError where there is none."""
        parts = split(name)
        if len(parts) == 2 and parts[0].lower() == DATABASE:
            parts = parts[1:]
        elif len(parts) == 1 and parts[0].lower() == DATABASE and not self.has(DATABASE):
            parts = (MAIN,)
        found = self.entries.get(parts[0].lower()) if len(parts) == 1 else None
        if found is None:
            raise CatalogError(f"schema {name!r} does not exist.{did_you_mean(name, tuple(self.entries.values()))}")
        return found

    def create(self, name: str, if_not_exists: bool) -> None:
        """Makes a schema; CatalogError where there is one of that name."""
        parts = split(name)
        if len(parts) > 1 and (len(parts) > 2 or parts[0].lower() != DATABASE):
            raise CatalogError(f"database {parts[0]!r} does not exist; all schemas are in database {DATABASE}")
        made = parts[-1]
        if self.has(made) or made.lower() in SYSTEM:
            if not if_not_exists:
                raise CatalogError(f"schema {made!r} already exists")
            return
        self.entries = {**self.entries, made.lower(): made}

    def drop(self, name: str) -> None:
        """Removes a schema, and leaves it where it is in use."""
        key = self.get(name).lower()
        self.entries = {n: s for n, s in self.entries.items() if n != key}
        self.leave_dropped()

    def leave_dropped(self) -> None:
        """Back to ``main`` where the schema in use is not there any more."""
        if self.current not in self.entries:
            self.current = MAIN
