"""Tables that statements make and change: the part of a `Connection` that puts rows in a table's place, or behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gquery.api.plan_cache import Parameters, PreparedPlan
from gquery.api.planning import Plans
from gquery.errors import CatalogError, Error, IntegrityError
from gquery.runtime.recent import Recent
from gquery.runtime.records import replace
from gquery.runtime.tuples import NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

    from gquery.api.inserted_rows import Inserts
    from gquery.columns.table import ColumnData, Table, TableSource
    from gquery.io.column_cache import ColumnCache
    from gquery.io.made_table import MadeTable
    from gquery.sql.constraints import Constraints
    from gquery.sql.noted import Noted
    from gquery.sql.statement import AppendRows, ChangeTable, CreateTable, Returning

    Returned = tuple[PreparedPlan, Table]
    """A query of RETURNING, and its rows."""


class Creation(NamedTuple):
    """CREATE TABLE AS with the plan of its query, which holds as long as names mean what they did."""

    statement: CreateTable
    plan: PreparedPlan
    noted: Noted


class Changes(Plans):
    """See above. ``_creations`` has the last tables of queries that were created, by text."""

    _cache: ColumnCache
    _creations: Recent[str, Creation]
    _inserts: Inserts

    def _stored(self, name: str, table: Table) -> MadeTable:
        """A query's rows, as a table that queries read."""
        from gquery.io.made_table import MadeTable

        return MadeTable(name, table, self._cache, self.settings.narrow)

    def _create(self, statement: CreateTable, text: str | None, params: Parameters, noted: Noted) -> int:
        """Makes a table; how many rows it has. Its plan is kept for the same ``text``, if that is one statement's, on a CPU."""
        found = self._catalog.taken(statement.name)
        if statement.if_not_exists and found is not None:
            return 0
        if found is not None and self._is_view(statement.name):
            raise CatalogError(f"{statement.name!r} is a view; DROP VIEW drops it")
        if not statement.or_replace and found is not None:
            raise CatalogError(f"table {statement.name!r} already exists; CREATE OR REPLACE TABLE replaces it")
        made = Creation(statement, self._plan(statement.query), noted)
        rows = self._created(made)
        context = self._context()
        is_plain = self.device.is_cpu and not context.ranks and context.remote is None
        is_kept = text is not None and not params and is_plain and not made.plan.serves_one_run
        if text is not None and is_kept and self._catalog.still_has(noted):
            self._creations[text] = made
        return rows

    def _is_view(self, name: str) -> bool:
        from gquery.sql.definitions import View  # the shell's prompt comes before the engine

        return isinstance(self._catalog.taken(name), View)

    def _created(self, creation: Creation) -> int:
        name, constraints = creation.statement.name, creation.statement.constraints
        made = self._stored(name, self.run_plan(creation.plan))
        self._catalog.register(name, made, constraints=constraints)
        return made.rows

    def _create_again(self, text: str, params: Parameters) -> int | None:
        """How many rows a table has that a text makes which was run before; None where that has to be planned."""
        kept = self._creations.get(text)
        if kept is None or params or not kept.statement.or_replace or kept.plan.settings != self.settings:
            return None
        if kept.plan.has_new_data or not self._catalog.still_has(kept.noted):
            return None
        if self._is_view(kept.statement.name):
            return None
        return self._created(kept)

    def _forget_creations(self) -> None:
        """Forget plans of tables that are others now, which they hold."""
        kept = list(self._creations.items())
        if not all(self._catalog.still_has(c.noted) for _, c in kept):
            self._creations.clear()
            for text, creation in reversed(kept):
                if self._catalog.still_has(creation.noted):
                    self._creations[text] = creation

    def _change(self, statement: ChangeTable) -> int | Returned:
        """Puts the rows that a table is to have in place of those that it has; how many are changed or gone, or what RETURNING
        gives of these. Where another thread has changed the table meanwhile, nothing is done and CatalogError raised: its
        change would be lost."""
        if statement.query is None:
            return self._exchanged(statement, statement.before)
        rows = self.run_plan(self._plan(statement.query))
        result: int | Returned = abs(rows.rows - statement.before.rows)
        marked = None
        if statement.returning is not None:
            marked = self._stored(statement.name, rows)
            result = self._returned(statement.returning, marked, is_marked=True)
        if marked is not None and statement.goes:
            rows = self._left(marked)
        elif statement.is_marked:
            done = _counted(rows.columns[-1])
            if marked is None:
                result = done.total()
            rows = self._left(marked or self._stored(statement.name, rows)) if done["DELETE"] else _without_last(rows)
        self._exchanged(statement, self._stored(statement.name, rows))
        return result

    def _left(self, marked: TableSource) -> Table:
        """The rows of which the last column does not say that they go, without it."""
        from gquery.sql.binding.returning import left

        return self.run_plan(self._plan(left(marked)))

    def _exchanged(self, statement: ChangeTable, rows: TableSource) -> int:
        """Puts rows in place of a table's, if they are what it asks of its rows. Those that DELETE leaves have been there."""
        is_less = statement.goes or (not statement.is_marked and statement.new is None)
        if not is_less:
            asked = statement.constraints if statement.new is None else statement.new
            self._check(statement.name, rows, asked)
            changed = {n.lower() for n in statement.changed}
            self._check_keys(statement.name, rows, replace(asked, keys=asked.keys_among(changed)))
        self._catalog.exchange(statement.name, statement.before, rows, statement.constraints, statement.new)
        return 0

    def _check_keys(
        self, name: str, rows: TableSource, constraints: Constraints, existing: TableSource | None = None
    ) -> None:
        """IntegrityError where rows agree on a key of their table, with each other or with some that it has."""
        if constraints.keys:
            from gquery.sql.binding.constraints import check_keys

            check_keys(name, rows, constraints, self._catalog, existing)

    def _check(self, name: str, rows: TableSource, constraints: Constraints) -> None:
        """IntegrityError where rows are not what their table asks of them."""
        from gquery.sql.constraints import NONE

        if constraints != NONE:
            from gquery.sql.binding.constraints import check_rows

            check_rows(name, rows, constraints, self._catalog)

    def _returned(self, returning: Returning, rows: TableSource, is_marked: bool = False) -> Returned:
        """What RETURNING gives of rows, made now: they are put in place behind it."""
        from gquery.sql.binding.returning import returned

        plan = self._plan(returned(returning, self._catalog, rows, is_marked))
        return plan, self.run_plan(plan)

    # ---- INSERT ------------------------------------------------------------------------------------------------------

    def _append(self, statement: AppendRows, text: str | None, params: Parameters) -> int | Returned:
        """Puts the rows of an INSERT behind those of its table; how many, or what RETURNING gives of them. ``text`` is its SQL
        where it stands alone."""
        from gquery.api.inserted_rows import python_rows

        values = None if statement.values is None else python_rows(statement.values, statement.types)
        if values is None or not self._add(statement, values):
            rows = self.run_plan(self._plan(statement.query))
            made = self._stored(statement.name, rows)
            if statement.conflict is not None:
                from gquery.sql.binding.conflict import added, first_rows

                assert statement.conflict.key is not None
                key = statement.conflict.key
                made = self._stored(statement.name, self.run_plan(self._plan(first_rows(made, key, self._catalog))))
                if statement.conflict.kind != "nothing":
                    return self._merge(statement, made)
                rows = self.run_plan(self._plan(added(statement.name, made, key, self._catalog)))
                made = self._stored(statement.name, rows)
            self._check(statement.name, made, statement.constraints)
            before = self._catalog.table(statement.name) if statement.constraints.keys else None
            self._check_keys(statement.name, made, statement.constraints, before)
            result = None if statement.returning is None else self._returned(statement.returning, made)
            self._catalog.append(statement.name, statement.columns, statement.constraints, made, before)
            return rows.rows if result is None else result
        if text is not None and statement.parameters is not None:
            from gquery.sql.types import parameter_names

            self._inserts.by_text[text] = statement, values, parameter_names(params)
        return len(values)

    def _merge(self, statement: AppendRows, rows: TableSource) -> int | Returned:
        """Puts new rows behind those of a table, or in place of what some of them have, by its key."""
        from gquery.sql.binding.conflict import merged
        from gquery.sql.statement import ChangeTable

        assert statement.conflict is not None
        before, asked = self._catalog.table(statement.name), statement.constraints
        query = merged(statement.name, rows, statement.conflict, before, asked, self._catalog)
        changed = tuple(name for name, _ in statement.columns)
        change = ChangeTable(statement.name, before, query, asked, True, returning=statement.returning, changed=changed)
        return self._change(change)

    def _append_again(self, text: str, params: Parameters) -> int | None:
        """How many rows an INSERT whose text ran before puts behind its table; None where there is none such, and where its
        values need the whole way."""
        kept = self._inserts.by_text.get(text)
        if kept is None:
            return None
        from gquery.api.inserted_rows import with_parameters
        from gquery.sql.types import python_literals

        statement, before, names = kept
        assert statement.parameters is not None
        try:
            given = python_literals(params)
        except (Error, TypeError):
            return None
        if given.keys() != names:
            return None
        rows = with_parameters(before, statement.parameters, statement.types, given)
        if rows is None or not self._catalog.has_columns(statement.name, statement.columns, statement.constraints):
            return None
        return len(rows) if self._add(statement, rows) else None

    def _add(self, statement: AppendRows, rows: list[tuple[Any, ...]]) -> bool:
        """Puts rows of values behind those of a table, if they are known to be what it asks of its rows. Where they are not, or
        nobody knows, a query has to find out."""
        for n, (name, _) in enumerate(statement.columns):
            if name.lower() in statement.constraints.not_null and any(row[n] is None for row in rows):
                text = f"NOT NULL constraint failed: {statement.name}.{name}; this statement has changed nothing"
                raise IntegrityError(text)
        if not self._inserts.keeps(statement, rows, self._catalog):
            return False
        return self._catalog.append(statement.name, statement.columns, statement.constraints, rows)

    def _unite(self, name: str, tables: Sequence[TableSource]) -> TableSource:
        """One table that has the rows of several, which have the same types."""
        from gquery.io.made_table import MadeTable
        from gquery.sql.binding.sets import appended

        filled = [t for t in tables if t.rows] or [tables[0]]
        if len(filled) == 1 and (filled[0] is tables[0] or isinstance(filled[0], MadeTable)):
            return filled[0]
        return self._stored(name, self.run_plan(self._plan(appended(filled))))

    def _values(self, table: TableSource, fields: Sequence[int]) -> dict[int, list[Any]]:
        """The Python values of some columns of a table, by their places."""
        from gquery.columns.arrow import export_column
        from gquery.columns.python_values import python_values

        columns = table.load(fields).columns
        return {f: python_values(export_column(c)) for f, c in zip(fields, columns, strict=True)}

    def _count_rows(self, made: pa.Array | Table, label: str) -> None:
        """Count rows that wait to be a table's in the account of the connection's memory."""
        from gquery.columns.table import Table
        from gquery.io.column_cache import count_column

        device = self._cache.device
        if device is None or not device.keeps_columns:
            return
        if isinstance(made, Table):
            for column in made.columns:
                count_column(device, column, label)
        else:
            device.count(made, made.nbytes, label)


def _counted(marks: ColumnData) -> Counter[Any]:
    """How many rows have each of the marks that say what is done with them."""
    from gquery.columns.arrow import export_column
    from gquery.runtime.arrow_compute import value_counts

    return Counter({v["values"]: v["counts"] for v in value_counts(export_column(marks)).to_pylist() if v["values"]})


def _without_last(rows: Table) -> Table:
    from gquery.columns.table import Table
    from gquery.expression.types import Schema

    return Table(Schema(rows.schema.fields[:-1]), rows.columns[:-1], rows.rows)
