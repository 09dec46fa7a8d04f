"""Transactions: BEGIN, COMMIT and ROLLBACK of a connection, in SQL and as methods.

Tables do not change, others take their places: the catalog as it was is all that ROLLBACK needs (`sql.catalog`). All cursors of
a connection share its transaction, as they share its tables, and see what it has changed. A statement that fails changes
nothing, and the transaction goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never, cast

from gquery.api.changes import Changes
from gquery.errors import CatalogError
from gquery.runtime.boundary import boundary

if TYPE_CHECKING:
    from gquery.api.changes import Returned
    from gquery.api.connection import Connection
    from gquery.api.relation import Relation
    from gquery.sql import statement as st


class Transactions(Changes):
    """See above."""

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
                self._catalog.begin()
            case st.Transaction("commit"):
                self._catalog.commit()
            case _:
                self._catalog.rollback()

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

    @boundary
    def begin(self) -> None:
        """Begin a transaction: `rollback` puts tables, views and functions back as they are now. OperationalError where one
        has begun already."""
        self._check_open()
        self._catalog.begin()

    @boundary
    def commit(self) -> None:
        """End the transaction and keep its changes. Nothing where none has begun: each statement takes effect at once."""
        self._check_open()
        if self._catalog.in_transaction:
            self._catalog.commit()

    @boundary
    def rollback(self) -> None:
        """End the transaction and undo its changes. Nothing where none has begun (pandas and SQLAlchemy call it when they are
        done)."""
        self._check_open()
        if self._catalog.in_transaction:
            self._catalog.rollback()
