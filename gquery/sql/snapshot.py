"""What a catalog had when a transaction began: tables do not change, others take their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from gquery.runtime.records import dataclass


class Entries(Protocol):
    """What has another dictionary of its entries after each change."""

    entries: Any


@dataclass(frozen=True)
class Snapshot:
    """Dictionaries with what they had, and what has others after each change with those that it had."""

    tables: tuple[tuple[dict[str, Any], dict[str, Any]], ...]
    others: tuple[tuple[Entries, Any], ...]

    @staticmethod
    def of(tables: Sequence[dict[str, Any]], others: Sequence[Entries]) -> Snapshot:
        return Snapshot(tuple((t, {**t}) for t in tables), tuple((o, o.entries) for o in others))

    def restore(self) -> None:
        """Puts all back. Dictionaries are filled in place, as catalogs over another have them; a name that stays is there at
        every moment, for other threads."""
        for now, then in self.tables:
            now.update(then)
            for name in now.keys() - then.keys():
                del now[name]
        for holder, entries in self.others:
            holder.entries = entries
