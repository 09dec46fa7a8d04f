"""What a transaction sees and changes: a catalog of its own, which COMMIT makes a part of the connection's.

Tables do not change, others take their places, so a branch of a catalog has copies of its dictionaries, and ROLLBACK forgets it.
COMMIT takes over what the branch has otherwise than it had it at BEGIN. What somebody else has changed meanwhile, too, is a
conflict: then nothing is taken over. Rows that the transaction only appends to a table without keys go behind those that it
has by then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any

from gquery.columns.table import TableSource
from gquery.errors import OperationalError
from gquery.runtime.records import dataclass
from gquery.sql.catalog import Catalog
from gquery.sql.constraints import NONE
from gquery.sql.definitions import View

Tables = dict[str, tuple[Any, Any, Any]]  # entry, name and constraints, by the key of each


@dataclass(frozen=True)
class Branch:
    """A catalog over another, and what that had when the transaction began."""

    catalog: Catalog
    tables: Tables
    others: tuple[dict[str, Any], ...]  # functions, macros, schemas and sequences
    version: int

    def commit(self, base: Catalog) -> None:
        """Takes over what has changed; OperationalError, and nothing is done, where that has changed in ``base``, too."""
        own = self.catalog
        with base._changing:
            base.put_all_in_place()
            own.put_all_in_place()
            base.schemas.current = own.schemas.current
            if own.version != self.version:
                self._take_over(base)
            base.schemas.leave_dropped()

    def _take_over(self, base: Catalog) -> None:
        own, now = self.catalog, _tables(base)
        put: Tables = {}
        grown: dict[str, Sequence[TableSource]] = {}
        for key, made in _differences(_tables(own), self.tables, _is_same_table):
            pieces = own.grown.get(key)
            if _is_same_table(now.get(key), self.tables.get(key)):
                put[key] = made
            elif pieces is not None and _takes_rows(now.get(key), made):
                grown[key] = pieces
            else:
                raise _conflict("table or view", (made or self.tables[key])[1])
        taken = []
        for what, holder, made_there, then in zip(_KINDS, _others(base), _others(own), self.others, strict=True):
            changed = dict(_differences(made_there, then, _is_same))
            if any(not _is_same(holder.get(name), then.get(name)) for name in changed):
                raise _conflict(what, next(iter(changed)))
            taken.append({n: v for n, v in {**holder, **changed}.items() if v is not None})
        for key, found in put.items():
            base.replace(key, *(found or (None, "", NONE)))
        for key, rows in grown.items():
            for piece in rows:
                base.put_behind(key, piece)
        functions, base._macros.entries, base.schemas.entries, base.sequences.entries = taken
        base._functions.update(functions)
        for name in base._functions.keys() - functions.keys():
            del base._functions[name]
        base._count_up()


_KINDS = ("function", "macro", "schema", "sequence")


def branch(base: Catalog) -> Branch:
    """A catalog that has what another has now."""
    with base._changing:
        base.put_all_in_place()
        own = copy(base)
        own._entries, own._names = {**base._entries}, {**base._names}
        own._functions, own._constraints = {**base._functions}, {**base._constraints}
        own._appended, own._seen_keys, own.grown, own.is_branch = {}, {}, {}, True
        own._macros, own.schemas, own._sequences = copy(base._macros), copy(base.schemas), copy(base.sequences)
        own._changing = threading.RLock()
        return Branch(own, _tables(own), tuple(map(dict, _others(own))), own.version)


def _tables(catalog: Catalog) -> Tables:
    return {k: (e, catalog._names[k], catalog._constraints.get(k, NONE)) for k, e in catalog._entries.items()}


def _others(catalog: Catalog) -> tuple[dict[str, Any], ...]:
    return catalog._functions, catalog._macros.entries, catalog.schemas.entries, catalog.sequences.entries


def _differences(own: dict[str, Any], then: dict[str, Any], is_same: Callable[[Any, Any], bool]) -> Iterator[tuple[str, Any]]:
    """What is otherwise than it was, None for what is gone."""
    for key in {**then, **own}:
        if not is_same(own.get(key), then.get(key)):
            yield key, own.get(key)


def _is_same(one: Any, other: Any) -> bool:
    return one is other


def _is_same_table(one: tuple[Any, Any, Any] | None, other: tuple[Any, Any, Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    return one[0] is other[0] and one[1:] == other[1:]


def _takes_rows(now: tuple[Any, Any, Any] | None, made: tuple[Any, Any, Any] | None) -> bool:
    """Whether a table takes rows that were made for what it was: it has the same columns, and asks them for the same."""
    if now is None or made is None or isinstance(now[0], View) or isinstance(made[0], View):
        return False
    return bool(now[0].schema == made[0].schema and now[1:] == made[1:] and not now[2].keys)


def _conflict(what: str, name: str) -> OperationalError:
    return OperationalError(f"{what} {name!r} was changed by another transaction meanwhile; this one is rolled back")
