"""Tables that statements make and change: the part of a `Connection` that puts a query's rows in a table's place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gquery.api.planning import Plans
from gquery.errors import CatalogError

if TYPE_CHECKING:
    from gquery.columns.table import Table
    from gquery.io.column_cache import ColumnCache
    from gquery.io.made_table import MadeTable
    from gquery.sql.statement import ChangeTable


class Changes(Plans):
    """See above."""

    _cache: ColumnCache

    def _stored(self, name: str, table: Table) -> MadeTable:
        """A query's rows, as a table that queries read."""
        from gquery.io.made_table import MadeTable

        return MadeTable(name, table, self._cache, self.settings.narrow)

    def _change(self, statement: ChangeTable) -> int:
        """Puts the rows that a table is to have in place of those that it has; how many are new, changed or gone. Where another
        thread has changed the table meanwhile, nothing is done and CatalogError raised: its change would be lost."""
        rows = self.run_plan(self._plan(statement.query))
        count = abs(rows.rows - statement.before.rows)
        if statement.is_marked:
            from gquery.columns.arrow import export_column
            from gquery.columns.table import Table
            from gquery.expression.types import Schema

            marks = export_column(rows.columns[-1])
            count = sum(part.true_count for part in getattr(marks, "chunks", [marks]))
            rows = Table(Schema(rows.schema.fields[:-1]), rows.columns[:-1], rows.rows)
        made = self._stored(statement.name, rows)
        if self._catalog.lookup(statement.name) is not statement.before:
            raise CatalogError(f"table {statement.name!r} was changed meanwhile; this statement has changed nothing")
        self._catalog.register(statement.name, made)
        return count
