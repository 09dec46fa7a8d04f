"""Transactions: BEGIN, COMMIT and ROLLBACK of a connection and of each cursor, in SQL and as methods.

As in DuckDB a cursor shares tables with its connection, and no transaction: until COMMIT nobody else sees what it changes, and it
sees the tables as they were at the first statement behind BEGIN. A transaction has a catalog of its own (`sql.branch`). A
statement that fails changes nothing, and the transaction goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, assert_never, cast

from gquery.api.changes import Changes
from gquery.errors import CatalogError, OperationalError
from gquery.runtime.boundary import boundary

if TYPE_CHECKING:
    from gquery.api.changes import Returned
    from gquery.api.connection import Connection
    from gquery.api.dbapi import Cursor
    from gquery.api.relation import Relation
    from gquery.sql import statement as st
    from gquery.sql.branch import Branch
    from gquery.sql.catalog import Catalog

_cursor: ContextVar[object] = ContextVar("the cursor that executes", default=None)
_NOBODY = object()  # has no transaction


@contextmanager
def executing(cursor: object) -> Iterator[None]:
    """Within it, statements are those of a cursor, and belong to its transaction."""
    token = _cursor.set(cursor)
    try:
        yield
    finally:
        _cursor.reset(token)


class Transactions(Changes):
    """See above. ``_branches``: the open transactions, by cursor or connection, None before the first statement in one; that of a
    cursor that is forgotten is rolled back."""

    _shared_catalog: Catalog
    _branches: MutableMapping[object, Branch | None]

    def _told(self, done: int | Returned) -> Relation:
        """What a statement that changed a table gives: how many rows it changed, or those of RETURNING."""
        from gquery.api.relation import Relation, message

        own = cast("Connection", self)
        return message(own, {"Count": [done]}) if isinstance(done, int) else Relation(own, done[0], result=done[1])

    def _altered(self, statement: st.AlterTable | st.RenameTable | st.Transaction | st.DropTable | st.DropView) -> None:
        """Runs a statement that changes a table's columns or name, drops it, or begins or ends a transaction."""
        from gquery.sql import statement as st
        from gquery.sql.definitions import View

        match statement:
            case st.AlterTable(change):
                if change is not None:
                    self._change(change)
            case st.RenameTable(name, new):
                self._catalog.rename(name, new)
            case st.DropTable(name, if_exists) | st.DropView(name, if_exists):
                found = None if if_exists and not self._catalog.has_schema_of(name) else self._catalog.lookup(name)
                kind = "view" if isinstance(statement, st.DropView) else "table"
                if found is not None and isinstance(found, View) != (kind == "view"):
                    raise CatalogError(f"{name!r} is no {kind}; DROP {'TABLE' if kind == 'view' else 'VIEW'} drops it")
                self._catalog.drop(name, if_exists)
            case st.Transaction("begin"):
                self._begin_transaction()
            case st.Transaction(how):
                self._end_transaction(how.upper())

    def _named(
        self,
        statement: st.CreateView | st.CreateMacro | st.DropMacro | st.CreateSchema | st.DropSchema | st.UseSchema
        | st.SetVariable | st.CreateSequence | st.DropSequence,
    ) -> None:
        """Gives a name a meaning, or takes it away, that is no table's."""
        from gquery.io.made_table import MadeTable
        from gquery.sql import statement as st
        from gquery.sql.definitions import View
        from gquery.sql.schemas import last, schema_of

        match statement:
            case st.CreateView(name, sql, columns, or_replace, if_not_exists):
                found = self._catalog.taken(name)
                if or_replace and isinstance(found, MadeTable):  # what `register` put there is a view to DuckDB
                    raise CatalogError(f"{name!r} is a table; DROP TABLE drops it")
                if not (if_not_exists and found is not None):
                    schema = schema_of(self._catalog.schemas.new(name))
                    self._catalog.register(name, View(last(name), sql, columns, schema), replace=or_replace)
            case st.CreateMacro(name, bodies, or_replace, if_not_exists):
                known = self._catalog.macros().get(name.lower(), ())
                if not (if_not_exists and any(m.is_table == bodies[0].is_table for m in known)):
                    self._check_unused(name, "made anew" if known else "made")
                    self._catalog.create_macro(name, bodies, or_replace)
            case st.DropMacro(name, if_exists):
                self._check_unused(name, "dropped")
                self._catalog.drop_macro(name, if_exists)
            case st.CreateSchema(name, if_not_exists):
                self._catalog.create_schema(name, if_not_exists)
            case st.DropSchema(name, if_exists, cascade):
                self._catalog.drop_schema(name, if_exists, cascade)
            case st.UseSchema(name):
                self._catalog.use(name)
            case st.CreateSequence(sequence, or_replace, if_not_exists):
                self._catalog.create_sequence(sequence, or_replace, if_not_exists)
            case st.DropSequence(name, if_exists):
                users = [t for t in self._catalog.tables() if self._catalog.constraints(t).draws_from(name)]
                if users:
                    raise CatalogError(f"defaults of table {users[0]!r} draw from sequence {name!r}; ALTER TABLE drops them")
                self._catalog.drop_sequence(name, if_exists)
            case st.SetVariable(name, query):
                from gquery.sql.binding.session import variable_of

                self._catalog.set_variable(name, None if query is None else variable_of(query, self._answer))
            case _:
                assert_never(statement)

    def _check_unused(self, macro: str, what: str) -> None:
        """CatalogError where a default or a CHECK calls a function of that name: it would have another meaning, or none."""
        for table in self._catalog.tables():
            if self._catalog.constraints(table).names_function(macro):
                raise CatalogError(f"macro {macro!r} cannot be {what}: a DEFAULT or CHECK of table {table!r} calls it")

    @property
    def _catalog(self) -> Catalog:
        if not self._branches or (owner := self._owner) not in self._branches:
            return self._shared_catalog
        found = self._branches[owner]
        if found is None:
            from gquery.sql.branch import branch

            with executing(_NOBODY):  # rows that wait are put in place for all
                found = branch(self._shared_catalog)
            self._branches[owner] = found
        return found.catalog

    @property
    def _owner(self) -> object:
        """Whose transaction it is: the cursor's that executes something, else the connection's own."""
        return _cursor.get() or self

    def _begin_transaction(self) -> None:
        if self._owner in self._branches:
            raise OperationalError("BEGIN within a transaction; COMMIT or ROLLBACK ends it first")
        self._branches[self._owner] = None

    def _end_transaction(self, statement: str) -> None:
        if self._owner not in self._branches:
            raise OperationalError(f"{statement} without a transaction; BEGIN begins one")
        ended = self._branches.pop(self._owner)
        if ended is None:
            return
        if statement == "COMMIT":
            ended.commit(self._shared_catalog)
        else:
            self._shared_catalog.schemas.current = ended.catalog.schemas.current
            self._shared_catalog.schemas.leave_dropped()

    @boundary
    def begin(self) -> None:
        """Begin a transaction: `rollback` puts tables, views and functions back, and nobody else sees changes before `commit`;
        those of others are not seen from its first statement on. OperationalError where one has begun already. A cursor has
        a transaction of its own."""
        self._check_open()
        self._begin_transaction()

    @boundary
    def commit(self) -> None:
        """End the transaction and keep its changes; OperationalError, and they are gone, where somebody else has changed the
        same tables meanwhile. Nothing where none has begun: each statement takes effect at once."""
        self._end_own("COMMIT")

    @boundary
    def rollback(self) -> None:
        """End the transaction and undo its changes. Nothing where none has begun (pandas and SQLAlchemy call it when they are
        done)."""
        self._end_own("ROLLBACK")

    def _forget_transaction(self, cursor: Cursor) -> None:
        """Roll back what a cursor has begun, if it has."""
        self._branches.pop(cursor, None)

    def _end_own(self, statement: str) -> None:
        self._check_open()
        if self._owner in self._branches:
            self._end_transaction(statement)
        elif self._owner is self and self._branches:
            raise OperationalError(f"the transaction is that of a cursor, whose own {statement.lower()}() ends it")
