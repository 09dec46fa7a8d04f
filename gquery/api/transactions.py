"""Transactions: BEGIN, COMMIT and ROLLBACK of a connection, in SQL and as methods.

Tables do not change, others take their places: the catalog as it was is all that ROLLBACK needs (`sql.catalog`). All cursors of
a connection share its transaction, as they share its tables, and see what it has changed. A statement that fails changes
nothing, and the transaction goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from gquery.api.changes import Changes
from gquery.runtime.boundary import boundary

if TYPE_CHECKING:
    from gquery.sql.statement import AlterTable, CreateMacro, CreateView, DropMacro, RenameTable, Transaction


class Transactions(Changes):
    """See above."""

    def _altered(self, statement: AlterTable | RenameTable | Transaction) -> None:
        """Runs a statement that changes a table's columns or name, or begins or ends a transaction."""
        from gquery.sql import statement as st

        match statement:
            case st.AlterTable(change):
                if change is not None:
                    self._change(change)
            case st.RenameTable(name, new):
                self._catalog.rename(name, new)
            case st.Transaction("begin"):
                self._catalog.begin()
            case st.Transaction("commit"):
                self._catalog.commit()
            case _:
                self._catalog.rollback()

    def _named(self, statement: CreateView | CreateMacro | DropMacro) -> None:
        """Gives a name to a text, or takes that of a macro away."""
        from gquery.sql import statement as st
        from gquery.sql.catalog import View

        match statement:
            case st.CreateView(name, sql, columns, or_replace, if_not_exists):
                if not (if_not_exists and self._catalog.lookup(name) is not None):
                    self._catalog.register(name, View(name, sql, columns), replace=or_replace)
            case st.CreateMacro(name, bodies, or_replace, if_not_exists):
                known = self._catalog.macros().get(name.lower(), ())
                if not (if_not_exists and any(m.is_table == bodies[0].is_table for m in known)):
                    self._catalog.create_macro(name, bodies, or_replace)
            case st.DropMacro(name, if_exists):
                self._catalog.drop_macro(name, if_exists)
            case _:
                assert_never(statement)

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
