"""The catalog: which tables and views there are, by name without letter case.

Tables are sources that a Scan reads; views are SQL text, bound anew wherever they are used. Every change counts the
version up, and a prepared plan is used only while it stands. Rows that INSERT appends wait beside their table
(`columns.appended`); who looks it up finds one that has them all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import field
from typing import Any, Protocol, runtime_checkable

from gquery.columns.appended import Appended, Storage
from gquery.columns.seen_keys import SeenKeys, list_keys
from gquery.columns.table import TableSource
from gquery.errors import CatalogError, did_you_mean
from gquery.functions import AGGREGATES
from gquery.functions.registry import scalar_names
from gquery.functions.user import UserFunction
from gquery.functions.windows import WINDOWS
from gquery.planner.logical.nodes import Query
from gquery.runtime.records import dataclass
from gquery.sql.constraints import NONE, Columns, Constraints, columns_of
from gquery.sql.definitions import Definitions, View
from gquery.sql.noted import ALL, Noted, note
from gquery.sql.schemas import MAIN, joined, last, schema_of, split


@runtime_checkable
class BoundRelation(Protocol):
    """What stands for a query that is bound already: a relation of the DataFrame API."""

    def bound_query(self) -> Query: ...


@dataclass
class Catalog(Definitions):
    """Tables and views of a connection. ``open_file`` gives the source for a file's path (``FROM 'file.parquet'``)."""

    open_file: Callable[..., TableSource] | None = None  # (paths, format or None, options by name)
    find_files: Callable[[list[str], str], list[str]] | None = None  # the paths that patterns mean, by format
    variable: Callable[[str, bool], TableSource | BoundRelation | UserFunction | None] | None = None
    check: Callable[[UserFunction], None] | None = None  # refuses a function that the connection cannot compile
    rows: Callable[[Query], list[tuple[Any, ...]]] | None = None  # of a query that is run while another is bound
    storage: Storage | None = None  # for rows that INSERT appends
    scans: int = 0  # how often a name meant a Python variable: such a plan is good for one caller only
    _entries: dict[str, TableSource | View] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)
    _functions: dict[str, UserFunction] = field(default_factory=dict)
    _constraints: dict[str, Constraints] = field(default_factory=dict)  # of tables that have some
    _appended: dict[str, Appended] = field(default_factory=dict)
    _seen_keys: dict[str, SeenKeys] = field(default_factory=dict)  # of tables to which rows were appended alone
    _changing: threading.RLock = field(default_factory=threading.RLock)  # of those who append, and put rows in place
    grown: dict[str, list[TableSource] | None] = field(default_factory=dict)  # what a transaction appended; None: not that alone
    is_branch: bool = False  # a transaction's
    _given: Mapping[str, Any] = field(default_factory=dict)
    _below: Catalog | None = None

    def over(self, names: Mapping[str, Any]) -> Catalog:
        """This catalog with relations and Python functions that one query may use besides, before all others."""
        made = copy(self)
        made._given, made._below = {n.lower(): v for n, v in names.items()}, self._below or self
        return made

    def stored(self, schema: str = "") -> Catalog:
        """What views see: tables, views and functions of the catalog alone, no names of a caller; with ``schema`` as where that
        is in use."""
        made = copy(self._below or self)
        made.variable = made.rows = None
        if schema and schema.lower() != self.schemas.current:
            made.schemas = copy(self.schemas)
            made.schemas.current = schema.lower()
        return made

    def given(self, name: str) -> BoundRelation | None:
        """The relation that the query was given under that name."""
        found = self._given.get(name.lower())
        if found is not None:
            note(ALL, self)
        return found if found is not None and isinstance(found, BoundRelation) else None  # the test of a protocol is slow

    def scan(self, name: str) -> TableSource | BoundRelation | None:
        """The table that a Python variable of the caller holds; CatalogError where it holds something else."""
        found = self.variable(name, False) if self.variable is not None else None
        if found is not None:
            self.is_for_one_use()
        return found if not isinstance(found, UserFunction) else None

    def is_for_one_use(self) -> None:
        """What is bound now is good for one use, as what a variable of a caller makes is."""
        (self._below or self).scans += 1

    def function(self, name: str) -> UserFunction | None:
        """The Python function of that name: given with the query, created, or a variable of the caller."""
        found = self._given.get(name.lower()) or self._functions.get(name.lower())
        note(("function", name.lower()), found)
        if found is None and self.variable is not None:
            found = self.variable(name, True)
            if found is not None:
                self.is_for_one_use()
        if not isinstance(found, UserFunction):
            return None
        if self.check is not None:
            self.check(found)
        return found

    def create_function(self, name: str, function: UserFunction) -> None:
        """Adds a Python function, in place of one that has the name."""
        self._functions[name.lower()] = function
        self._count_up()

    def lookup(self, name: str) -> TableSource | View | None:
        """The table or view of that name, or None. A table has all rows that were appended to it."""
        key = self._key(name)
        if key in self._appended:
            self._put_in_place(key)
        found = self._entries.get(key)
        note(("table", key), found)
        return found

    def taken(self, name: str) -> TableSource | View | None:
        """What has the name that a table is to get, or None."""
        return self._entries.get(self.schemas.new(name).lower())

    def schema_of(self, name: str) -> str:
        """The schema of the table that a name means, in lower case."""
        return schema_of(self._key(name))

    def _key(self, name: str) -> str:
        """Under which the table is kept that a name means. CatalogError for one in a schema that is not there."""
        if self.schemas.current == MAIN:
            return self.schemas.key(name, self._entries) if "." in name or '"' in name else name.lower()
        note(ALL, self)
        return self.schemas.key(name, self._entries)

    def still_has(self, noted: Noted) -> bool:
        """Whether all names mean what they meant then. Rows that wait beside a table make it another one."""
        if noted.get(("macros", ""), self._macros.entries) is not self._macros.entries or self.schemas.current != MAIN:
            return False
        return all(
            (self._functions if kind == "function" else self._entries).get(name) is found and name not in self._appended
            for (kind, name), found in noted.items()
            if kind != "macros"
        )

    def shape(self, name: str) -> TableSource:
        """The table of that name as `table` has it, for who asks for its columns alone: rows may be missing."""
        note(ALL, self)
        found = self._entries.get(self._key(name))
        return self.table(name) if found is None or isinstance(found, View) else found

    def constraints(self, name: str) -> Constraints:
        """What a table asks of its rows."""
        note(ALL, self)
        return self._constraints.get(self._key(name), NONE)

    def has_columns(self, name: str, columns: Columns, constraints: Constraints) -> bool:
        """Whether there is a table of that name with these columns and constraints."""
        table = self._entries.get(self._key(name))
        if table is None or isinstance(table, View):
            return False
        return columns_of(table) == columns and self.constraints(name) == constraints

    def append(
        self,
        name: str,
        columns: Columns,
        constraints: Constraints,
        rows: TableSource | list[tuple[Any, ...]],
        before: TableSource | None = None,
    ) -> bool:
        """Appends rows to a table: those of another, which agree on no key with those of ``before``, or rows of Python values;
        False, and nothing is done, where it is not known of these that they agree on none. CatalogError where the table has no
        longer these columns, asks for something else, or is another than the one that they were held against."""
        key = self._key(name)
        with self._changing:
            is_other = before is not None and self.lookup(name) is not before
            if is_other or not self.has_columns(name, columns, constraints):
                raise CatalogError(f"table {name!r} was changed meanwhile; this statement has changed nothing")
            fresh: list[set[tuple[Any, ...]]] = []
            if isinstance(rows, list) and constraints.keys:
                seen = self._keys_of(name, columns, constraints)
                given = None if seen is None else seen.fresh(dict(enumerate(zip(*rows, strict=True))))
                if given is None:
                    return False
                fresh = given
            self._behind(name).add(rows)
            if key in self._seen_keys and not (fresh and self._seen_keys[key].add(fresh)):
                del self._seen_keys[key]
            self._count_up()
        return True

    def _behind(self, name: str) -> Appended:
        """What is appended to a table."""
        key = self._key(name)
        if key not in self._appended:
            table = self._entries[key]
            assert self.storage is not None and not isinstance(table, View)
            self._appended[key] = Appended(name, table.schema, self.storage)
        return self._appended[key]

    def _keys_of(self, name: str, columns: Columns, constraints: Constraints) -> SeenKeys | None:
        """The keys of a table; None where they are not listed."""
        key = self._key(name)
        if key not in self._seen_keys:
            at = {column.lower(): n for n, (column, _) in enumerate(columns)}
            places = [[at[c] for c in asked.columns] for asked in constraints.keys]
            assert self.storage is not None
            made = list_keys(self.table(name), places, [t for _, t in columns], self.storage.values)
            if made is None:
                return None
            self._seen_keys[key] = made
        return self._seen_keys[key]

    def count_again(self) -> None:
        """Count the rows that wait under a new memory limit."""
        with self._changing:
            for appended in self._appended.values():
                appended.count_again()

    def _put_in_place(self, key: str) -> None:
        """Puts the rows that were appended to a table behind its own. No plan is of the rows before: `append` counted up."""
        with self._changing:
            if key in self._appended:
                assert self.storage is not None
                before = self._entries[key]
                assert not isinstance(before, View)
                pieces = self._appended[key].pieces()
                self._entries[key] = self.storage.unite(self._names[key], [before, *pieces])
                del self._appended[key]
                if (grown := self.grown.setdefault(key, []) if self.is_branch else None) is not None:
                    grown += pieces

    def get(self, name: str) -> TableSource | View:
        """The table or view of that name; CatalogError, with candidates, where there is none."""
        found = self.lookup(name)
        if found is None:
            raise CatalogError(f"table {name!r} does not exist.{did_you_mean(name, self.names())}")
        return found

    def view(self, name: str) -> View | None:
        """The view of that name, or None."""
        key = self._key(name)
        found = self._entries.get(key)
        note(("table", key), found)
        return found if isinstance(found, View) else None

    def table(self, name: str) -> TableSource:
        """The table of that name; CatalogError where there is none, or a view."""
        found = self.get(name)
        if isinstance(found, View):
            raise CatalogError(f"{name!r} is a view")
        return found

    def register(
        self, name: str, entry: TableSource | View, replace: bool = True, constraints: Constraints = NONE
    ) -> None:
        """Adds a table or view, to the schema in use where its name has none; CatalogError where the name is taken and
        ``replace`` is not asked for."""
        whole = self.schemas.new(name)
        found = self._entries.get(whole.lower())
        if not replace and found is not None:
            raise CatalogError(f"{'view' if isinstance(found, View) else 'table'} {name!r} already exists")
        self._put(whole, entry, constraints)

    def _put(self, whole: str, entry: TableSource | View, constraints: Constraints) -> None:
        """Puts a table or view where one of that name is, or may be."""
        key = whole.lower()
        with self._changing:
            self._forget(key)
            self._entries[key], self._names[key] = entry, whole
            if constraints != NONE:
                self._constraints[key] = constraints
            self._count_up()

    def _forget(self, key: str) -> None:
        """Forgets what is known of a table beside its rows."""
        for known in (self._constraints, self._appended, self._seen_keys):
            known.pop(key, None)
        if self.is_branch:
            self.grown[key] = None

    def drop(self, name: str, if_exists: bool = False) -> bool:
        """Removes a table or view; whether there was one. CatalogError where there is none, unless ``if_exists``."""
        if if_exists and not self.has_schema_of(name):
            return False
        key = self._key(name)
        if key not in self._entries:
            if if_exists:
                return False
            self.get(name)
        with self._changing:
            del self._entries[key], self._names[key]
            self._forget(key)
            self._count_up()
        return True

    # ---- schemas -----------------------------------------------------------------------------------------------------

    def drop_schema(self, name: str, if_exists: bool, cascade: bool) -> None:
        """Removes a schema, with ``cascade`` all that is in it. CatalogError where there is none, unless ``if_exists``, where
        there is something in it, and for that which is always there."""
        if if_exists and not self.schemas.has(last(name)):
            return
        if (written := self.schemas.get(name)) == MAIN:
            raise CatalogError("schema 'main' cannot be dropped")
        with self._changing:
            inside = [k for k in self._names if schema_of(k) == written.lower()]
            if inside and not cascade:
                shown = ", ".join(sorted(self._names[k] for k in inside))
                raise CatalogError(f"schema {written!r} is not empty: {shown}; DROP SCHEMA ... CASCADE drops all of it")
            for key in inside:
                del self._entries[key], self._names[key]
                self._forget(key)
            self.schemas.drop(joined((written,)))
            self._count_up()

    def exchange(
        self,
        name: str,
        before: TableSource,
        after: TableSource,
        constraints: Constraints,
        new: Constraints | None = None,
    ) -> None:
        """Puts another table in the place of the one that a change was made of, or the same with ``new`` constraints.
        CatalogError where the table or its constraints are others meanwhile, or it has more rows: the changes of another
        thread would be lost."""
        with self._changing:
            if self.lookup(name) is not before or self.constraints(name) != constraints:
                raise CatalogError(f"table {name!r} was changed meanwhile; this statement has changed nothing")
            self._put(self._names[self._key(name)], after, constraints if new is None else new)

    def rename(self, name: str, new: str) -> None:
        """Gives a table another name; CatalogError where that is taken."""
        with self._changing:
            table, key = self.table(name), self._key(name)
            whole = joined((*split(self._names[key])[:-1], new))
            if whole.lower() != key:
                if whole.lower() in self._entries:
                    raise CatalogError(f"table {new!r} already exists")
                self._put(whole, table, self.constraints(name))
                self.drop(name)
            else:
                self._names[key] = whole
                self._count_up()

    # ---- transactions (`sql.branch`) ---------------------------------------------------------------------------------

    def put_all_in_place(self) -> None:
        """Puts all rows that were appended behind their tables' own."""
        for key in tuple(self._appended):
            self._put_in_place(key)

    def replace(self, key: str, entry: TableSource | View | None, name: str, constraints: Constraints) -> None:
        """Puts what a transaction has under a key in the place of what is there; None takes that away."""
        if entry is None:
            del self._entries[key], self._names[key]
            self._forget(key)
        else:
            self._put(name, entry, constraints)

    def put_behind(self, key: str, rows: TableSource) -> None:
        """Appends rows that a transaction has made to the table of a key."""
        self._behind(self._names[key]).add(rows)
        self._seen_keys.pop(key, None)

    # ---- names -------------------------------------------------------------------------------------------------------

    def names(self) -> tuple[str, ...]:
        """The names of all tables and views, sorted."""
        note(ALL, self)
        return tuple(sorted(map(self.schemas.shown, self._names.values()), key=str.lower))

    def tables(self) -> tuple[str, ...]:
        """The names of tables alone, sorted."""
        return tuple(n for n in self.names() if self.view(n) is None)

    def functions(self) -> tuple[str, ...]:
        """The names of all functions, the connection's own among them, sorted."""
        note(ALL, self)
        return tuple(sorted(n for n in {*scalar_names(), *AGGREGATES, *WINDOWS, *self._functions} if not n.startswith("_")))

