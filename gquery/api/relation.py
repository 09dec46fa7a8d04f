"""Relation: a query whose rows are made when they are first asked for, and then kept.

The names of methods are DuckDB's. ``repr`` of a relation that has not run yet runs it for the first rows only.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gquery.api.dataframe.verbs import Verbs
from gquery.errors import InterfaceError, PointingAt
from gquery.expression.types import DType
from gquery.result.output import Outputs
from gquery.result.python_rows import PythonRows, python_rows
from gquery.runtime.arguments import checked
from gquery.runtime.boundary import boundary

if TYPE_CHECKING:
    import pyarrow as pa

    from gquery.api.connection import Connection
    from gquery.api.plan_cache import Parameters, PreparedPlan
    from gquery.columns.table import Table
    from gquery.planner.logical.nodes import Query

_SHOWN = 40


@checked
class Relation(Outputs, PythonRows, Verbs):
    """The rows of one query. Made by `Connection.sql`; errors of the data are raised when the rows are asked for."""

    def __init__(
        self,
        connection: Connection,
        prepared: PreparedPlan | None,
        text: str | None = None,
        params: Parameters = None,
        result: Table | None = None,
        show_text: bool = False,
    ) -> None:
        self._connection = connection
        self._prepared = prepared
        self._text = text
        self._params = params
        self._result = result
        self._show_text = show_text
        self._rows: Iterator[tuple[Any, ...]] | None = None

    # ---- what it is ------------------------------------------------------------------------------------------------

    @boundary
    def bound_query(self) -> Query:
        """The logical plan of the rows, as the binder made it: of those that it has had, or would have now."""
        if self._prepared is None:
            return self._connection.from_data(self.to_arrow_table()).bound_query()
        if self._result is None and self._text is not None:
            self._prepared = self._connection.current_plan(self._prepared, self._text, self._params)
        return self._prepared.bound

    @property
    def prepared(self) -> PreparedPlan | None:
        """The plan of the rows; None where they come from no query."""
        return self._prepared

    @property
    def connection(self) -> Connection:
        """What runs the query."""
        return self._connection

    def __narwhals_lazyframe__(self) -> Any:
        """``narwhals.from_native(relation)``: a lazy frame that gquery runs, by way of Ibis (`gquery[ibis]`)."""
        from gquery.api.ibis import narwhals_frame

        return narwhals_frame(self)

    @property
    def columns(self) -> list[str]:
        """The names of the columns; a name may come twice."""
        if self._prepared is not None:
            return list(self._prepared.shape.names)
        return list(self.table().schema.names)

    @property
    def types(self) -> list[DType]:
        """The logical types of the columns; ``str`` gives the SQL names."""
        if self._prepared is not None:
            return [c.dtype for c in self._prepared.shape.outputs]
        return [f.dtype for f in self.table().schema]

    dtypes = types

    @property
    def is_message(self) -> bool:
        """Whether this is what a statement says that is no query: "Success", or a count of rows that were stored."""
        return self._prepared is None and self.columns in (["Success"], ["Count"])

    @property
    def description(self) -> list[tuple[Any, ...]]:
        """The columns as PEP 249 describes them: name, type, and five None."""
        return [(n, str(t), None, None, None, None, None) for n, t in zip(self.columns, self.types, strict=True)]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns; runs the query."""
        return self.table().rows, len(self.columns)

    def __len__(self) -> int:
        return self.table().rows

    def explain(self, level: str = "optimized", format: str = "text") -> str:  # noqa: A002  (a public keyword)
        """How the query runs; see `Connection.explain`."""
        if self._prepared is None:
            raise InterfaceError("This result comes from no query")
        return self._connection.explain_plan(self._prepared, level, format, self._text or "")

    # ---- rows ------------------------------------------------------------------------------------------------------

    @boundary
    def table(self) -> Table:
        """The result in memory; runs the query at the first call."""
        if self._result is None:
            prepared = self._prepared
            assert prepared is not None
            with PointingAt(self._text):
                self._result = self._connection.run_recorded(prepared)
                if self._result is None:
                    self._prepared = self._connection.current_plan(prepared, self._text, self._params)
                    self._result = self._connection.run_plan(self._prepared)
        return self._result

    execute = table

    @boundary
    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that were not fetched yet, as tuples of Python values (int, float, Decimal, str, bool, date,
        datetime, None). Fetching begins anew behind them: a second call gives all rows again."""
        rows = list(self.unfetched())
        self._rows = None
        return rows

    @boundary
    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None after the last."""
        return next(self.unfetched(), None)

    @boundary
    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """The next ``size`` rows, fewer at the end."""
        return [row for _, row in zip(range(size), self.unfetched(), strict=False)]

    def unfetched(self) -> Iterator[tuple[Any, ...]]:
        """The rows that `fetchone` and `fetchmany` have not given yet."""
        if self._rows is None:
            self._rows = python_rows(self.to_arrow_table(), self._result_types)
        return self._rows

    # ---- display ---------------------------------------------------------------------------------------------------

    def show(self, max_rows: int = _SHOWN) -> None:
        """Print the result as a box."""
        print(self._draw(max_rows))

    def __repr__(self) -> str:
        return self._draw(_SHOWN)

    def __str__(self) -> str:
        return self._draw(_SHOWN)

    @boundary
    def _repr_html_(self) -> str:
        from gquery.result.display import render_html, text_html

        if self._show_text:
            return text_html("\n".join(str(v) for row in self for v in row))
        table, total = self._peek(_SHOWN)
        return render_html(self.columns, self.types, self._shown_rows(table.slice(0, _SHOWN)), total)

    @boundary
    def _draw(self, max_rows: int) -> str:
        from gquery.result.display import Box, render

        if self._show_text:
            return "\n".join(str(v) for row in self for v in row)
        rows, total = self.preview(max_rows)
        width = shutil.get_terminal_size((120, 24)).columns
        return render(self.columns, self.types, rows, total, Box(max_rows, width))

    @boundary
    def preview(self, max_rows: int = _SHOWN) -> tuple[list[tuple[Any, ...]], int]:
        """The rows that a box of so many shows, and how many the result has: -1 where it has more and nobody counted
        them. What has not run yet is run for the first rows only."""
        table, total = self._peek(max_rows)
        if total > max_rows:  # the renderer leaves out the middle: it need not be made Python
            import pyarrow as pa

            half = max_rows // 2
            table = pa.concat_tables([table.slice(0, max_rows - half), table.slice(total - half)])
        elif total < 0:
            table = table.slice(0, max_rows)
        return self._shown_rows(table), total

    def _shown_rows(self, table: pa.Table) -> list[tuple[Any, ...]]:
        from gquery.api.shown import shown_rows

        return list(shown_rows(table, self.types))

    def _peek(self, rows: int) -> tuple[pa.Table, int]:
        """Rows to show and how many there are, -1 for "more". What has run is taken as it is."""
        if self._result is not None or self._prepared is None:
            return self.to_arrow_table(), self.table().rows
        self._prepared = self._connection.current_plan(self._prepared, self._text, self._params)
        from gquery.planner.preview import preview_rows

        few = preview_rows(self._prepared.bound.plan, rows)
        part = self._connection.run_plan(self._connection.limited_plan(self._prepared, few + 1))
        if part.rows <= few:  # that was all of it
            self._result = part
            return self.to_arrow_table(), part.rows
        from gquery.columns.arrow import export_table

        return export_table(part), -1


def message(connection: Connection, columns: Mapping[str, Sequence[Any]], show_text: bool = False) -> Relation:
    """The result of a statement that is no query: a small table; ``show_text`` prints its values without a box."""
    import pyarrow as pa

    from gquery.columns.arrow import integer_array, string_array
    from gquery.columns.import_arrow import import_table

    arrays: dict[str, pa.Array] = {}
    for name, values in columns.items():
        match name:
            case "Success":
                arrays[name] = pa.nulls(len(values), pa.bool_())
            case "Count":
                arrays[name] = integer_array(values)
            case _:
                arrays[name] = string_array(values).cast(pa.string())
    return Relation(connection, None, result=import_table(pa.table(arrays)), show_text=show_text)
