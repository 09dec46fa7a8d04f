"""What a table asks of its rows: columns without NULL, conditions, keys; and the values of columns that an INSERT does not name.

The catalog has them by table, apart from its rows: what makes new rows of a table (`gquery.api.changes`) asks for them before it
puts these in place. Names of columns are in lower case; expressions are texts, which are bound where they are used.
"""

from __future__ import annotations

import re
from collections.abc import Set

from gquery.columns.table import TableSource
from gquery.errors import CatalogError
from gquery.expression.types import DType
from gquery.runtime.records import dataclass, replace

Columns = tuple[tuple[str, DType], ...]


def columns_of(table: TableSource) -> Columns:
    """Names and types of a table's columns."""
    return tuple((f.name, f.dtype) for f in table.schema.fields)


@dataclass(frozen=True)
class Check:
    """A condition that is not false of any row, and the columns that it names."""

    text: str
    columns: frozenset[str]


@dataclass(frozen=True)
class Key:
    """Columns on which no two rows agree, but where one of them is NULL."""

    columns: tuple[str, ...]
    is_primary: bool

    @property
    def kind(self) -> str:
        return "PRIMARY KEY" if self.is_primary else "UNIQUE"


@dataclass(frozen=True)
class Constraints:
    """See above. ``table`` is the name that the table had when the conditions were written, which may use it."""

    table: str = ""
    not_null: frozenset[str] = frozenset()
    defaults: tuple[tuple[str, str], ...] = ()
    checks: tuple[Check, ...] = ()
    keys: tuple[Key, ...] = ()

    def default(self, column: str) -> str | None:
        """The text of a column's default."""
        return dict(self.defaults).get(column.lower())

    def draws_from(self, sequence: str) -> bool:
        """Whether a default calls nextval of a sequence."""
        call = re.compile(rf"nextval\s*\(\s*'(?:main\.)?{re.escape(sequence)}'", re.IGNORECASE)
        return any(call.search(text) for _, text in self.defaults)

    def names_function(self, name: str) -> bool:
        """Whether a default or a condition may call a function of that name."""
        call = re.compile(rf'\b{re.escape(name)}"?\s*\(', re.IGNORECASE)
        return any(call.search(text) for text in (*(t for _, t in self.defaults), *(c.text for c in self.checks)))

    def with_default(self, column: str, text: str | None) -> Constraints:
        """With another default of a column, or none."""
        others = tuple(d for d in self.defaults if d[0] != column.lower())
        return replace(self, defaults=others if text is None else (*others, (column.lower(), text)))

    def with_not_null(self, column: str, is_asked: bool) -> Constraints:
        """With a column that may be NULL, or may not. One of a primary key never is."""
        own = frozenset((column.lower(),))
        if not is_asked and self.is_primary(column):
            return self
        return replace(self, not_null=self.not_null | own if is_asked else self.not_null - own)

    def with_key(self, key: Key) -> Constraints:
        """With a key; columns of a primary one are never NULL. CatalogError for a second primary one."""
        if key.is_primary and any(k.is_primary for k in self.keys):
            raise CatalogError(f"table {self.table!r} has more than one PRIMARY KEY")
        made = replace(self, keys=(*self.keys, key))
        return replace(made, not_null=self.not_null | frozenset(key.columns)) if key.is_primary else made

    def keys_among(self, changed: Set[str]) -> tuple[Key, ...]:
        """The keys that have one of these columns."""
        return tuple(k for k in self.keys if not changed.isdisjoint(k.columns))

    def key_of(self, column: str) -> str | None:
        """How DESCRIBE shows that a column is one of a key's."""
        own = [k for k in self.keys if column.lower() in k.columns]
        return ("PRI" if any(k.is_primary for k in own) else "UNI") if own else None

    def is_primary(self, column: str) -> bool:
        """Whether a column is one of the primary key."""
        return self.key_of(column) == "PRI"

    def check_free(self, column: str, what: str, keys: bool = True) -> None:
        """CatalogError where a condition names a column, or one of the keys, of which ``what`` says what it is to do."""
        for check in self.checks:
            if column.lower() in check.columns:
                raise CatalogError(f"column {column!r} cannot {what}: CHECK ({check.text}) names it")
        for key in self.keys if keys else ():
            if column.lower() in key.columns:
                raise CatalogError(f"column {column!r} cannot {what}: {key.kind} ({', '.join(key.columns)}) names it")

    def without(self, column: str) -> Constraints:
        """Without a column and the conditions that name it alone; CatalogError where one names others too."""
        alone = frozenset((column.lower(),))
        left = replace(self, checks=tuple(c for c in self.checks if c.columns != alone))
        left.check_free(column, "be dropped")
        return left.with_default(column, None).with_not_null(column, False)

    def renamed(self, column: str, new: str) -> Constraints:
        """With another name of a column, which no condition names."""
        if column.lower() == new.lower():
            return self
        self.check_free(column, "be renamed", keys=False)
        old, own = column.lower(), new.lower()
        keys = tuple(replace(k, columns=tuple(own if c == old else c for c in k.columns)) for k in self.keys)
        default, is_asked = self.default(old), old in self.not_null
        left = replace(self, keys=()).without(old)
        return replace(left.with_default(own, default).with_not_null(own, is_asked), keys=keys)


NONE = Constraints()
