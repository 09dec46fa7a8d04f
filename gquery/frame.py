"""Relation: a query whose rows are made when they are first asked for, and then kept; and the PEP 249 cursor over it.

The names of methods are DuckDB's. ``repr`` of a relation that has not run yet runs it for the first rows only.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gquery.dataframe.verbs import Verbs
from gquery.dtypes import DType
from gquery.errors import InterfaceError
from gquery.stopwatch import part

if TYPE_CHECKING:
    import pyarrow as pa

    from gquery.planner.logical import Query
    from gquery.session import Connection, Parameters, Planned
    from gquery.table import Table

_PEEK = 1_000  # rows that `show` makes of a result that has not run
_SHOWN = 40


class Relation(Verbs):
    """The rows of one query. Made by `Connection.sql`; errors of the data are raised when the rows are asked for."""

    def __init__(
        self,
        connection: Connection,
        planned: Planned | None,
        text: str | None = None,
        params: Parameters = None,
        result: Table | None = None,
        show_text: bool = False,
    ) -> None:
        self._connection = connection
        self._planned = planned
        self._text = text
        self._params = params
        self._result = result
        self._show_text = show_text
        self._arrow: pa.Table | None = None
        self._rows: Iterator[tuple[Any, ...]] | None = None

    # ---- what it is ------------------------------------------------------------------------------------------------

    def bound_query(self) -> Query:
        """The logical plan of the rows, as the binder made it."""
        if self._planned is None:
            return self._connection.from_data(self.to_arrow_table()).bound_query()
        return self._planned.bound

    @property
    def columns(self) -> list[str]:
        """The names of the columns; a name may come twice."""
        if self._planned is not None:
            return list(self._planned.bound.names)
        return list(self.table().schema.names)

    @property
    def types(self) -> list[DType]:
        """The logical types of the columns; ``str`` gives the SQL names."""
        if self._planned is not None:
            return [c.dtype for c in self._planned.bound.outputs]
        return [f.dtype for f in self.table().schema]

    dtypes = types

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

    def explain(self, level: str = "optimized", format: str = "text") -> str:  # noqa: A002
        """How the query runs; see `Connection.explain`."""
        if self._planned is None:
            raise InterfaceError("This result comes from no query")
        return self._connection.explain_plan(self._planned, level, format, self._text or "")

    # ---- rows ------------------------------------------------------------------------------------------------------

    def table(self) -> Table:
        """The result in memory; runs the query at the first call."""
        if self._result is None:
            assert self._planned is not None
            self._planned = self._connection.current_plan(self._planned, self._text, self._params)
            self._result = self._connection.run_plan(self._planned)
        return self._result

    execute = table

    def to_arrow_table(self) -> pa.Table:
        """The result as a PyArrow table."""
        if self._arrow is None:
            table = self.table()
            with part("fetch"):
                self._arrow = table.to_arrow()
        return self._arrow

    arrow = to_arrow_table

    def to_arrow_reader(self, batch_size: int = 1_000_000) -> pa.RecordBatchReader:
        """The result as a reader of record batches."""
        import pyarrow as pa

        table = self.to_arrow_table()
        return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(batch_size))

    def df(self) -> Any:
        """The result as a pandas DataFrame; dates become datetime64, decimals stay exact."""
        return self.to_arrow_table().to_pandas(date_as_object=False)

    to_df = df

    def pl(self) -> Any:
        """The result as a Polars DataFrame."""
        import polars

        return polars.from_arrow(self.to_arrow_table())

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that were not fetched yet, as tuples of Python values (int, float, Decimal, str, bool, date,
        datetime, None)."""
        return list(self._iterator())

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None after the last."""
        return next(self._iterator(), None)

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """The next ``size`` rows, fewer at the end."""
        return [row for _, row in zip(range(size), self._iterator(), strict=False)]

    def _iterator(self) -> Iterator[tuple[Any, ...]]:
        if self._rows is None:
            self._rows = _python_rows(self.to_arrow_table())
        return self._rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return _python_rows(self.to_arrow_table())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_arrow_table().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self.to_arrow_table().schema.__arrow_c_schema__()

    # ---- display ---------------------------------------------------------------------------------------------------

    def show(self, max_rows: int = _SHOWN) -> None:
        """Print the result as a box."""
        print(self._draw(max_rows))

    def __repr__(self) -> str:
        return self._draw(_SHOWN)

    def __str__(self) -> str:
        return self._draw(_SHOWN)

    def _repr_html_(self) -> str:
        from gquery.display import render_html, text_html

        if self._show_text:
            return text_html("\n".join(str(v) for row in self for v in row))
        table, total = self._peek(_SHOWN)
        return render_html(self.columns, self.types, list(_python_rows(table.slice(0, _SHOWN))), total)

    def _draw(self, max_rows: int) -> str:
        from gquery.display import render

        if self._show_text:
            return "\n".join(str(v) for row in self for v in row)
        rows, total = self.preview(max_rows)
        width = shutil.get_terminal_size((120, 24)).columns
        return render(self.columns, self.types, rows, total, max_rows, width)

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
        return list(_python_rows(table)), total

    def _peek(self, rows: int) -> tuple[pa.Table, int]:
        """Rows to show and how many there are, -1 for "more". What has run is taken as it is."""
        if self._result is not None or self._planned is None:
            return self.to_arrow_table(), self.table().rows
        few = max(rows, _PEEK)
        self._planned = self._connection.current_plan(self._planned, self._text, self._params)
        part = self._connection.run_plan(self._connection.limited_plan(self._planned, few + 1))
        if part.rows <= few:  # that was all of it
            self._result = part
            return self.to_arrow_table(), part.rows
        return part.to_arrow(), -1


class Cursor:
    """A PEP 249 cursor: the tables of its connection, and one result at a time."""

    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._result: Relation | None = None
        self._closed = False

    def execute(self, operation: str, parameters: Parameters = None) -> Cursor:
        """Run a statement; its rows are fetched from the cursor."""
        if self._closed:
            raise InterfaceError("The cursor is closed")
        self._result = self.connection.sql(operation, parameters)
        self._result.table()
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Any]) -> Cursor:
        """Run a statement once for each of the parameters."""
        for parameters in seq_of_parameters:
            self.execute(operation, parameters)
        return self

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        return self._result.description if self._result is not None else None

    @property
    def rowcount(self) -> int:
        return len(self._result) if self._result is not None else -1

    def fetchone(self) -> tuple[Any, ...] | None:
        return self._rows().fetchone()

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        return self._rows().fetchmany(self.arraysize if size is None else size)

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows().fetchall()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while (row := self.fetchone()) is not None:
            yield row

    def setinputsizes(self, sizes: Any) -> None:
        """Nothing: values carry their sizes (PEP 249 asks for the method)."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Nothing (PEP 249 asks for the method)."""

    def close(self) -> None:
        self._closed = True
        self._result = None

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rows(self) -> Relation:
        if self._closed or self._result is None:
            raise InterfaceError("The cursor is closed" if self._closed else "Nothing was executed")
        return self._result


def message(connection: Connection, columns: Mapping[str, Sequence[Any]], show_text: bool = False) -> Relation:
    """The result of a statement that is no query: a small table; ``show_text`` prints its values without a box."""
    import pyarrow as pa

    from gquery.table import Table

    types = {"Success": pa.bool_(), "Count": pa.int64()}
    arrays = {name: pa.array(list(values), types.get(name, pa.string())) for name, values in columns.items()}
    return Relation(connection, None, result=Table.from_arrow(pa.table(arrays)), show_text=show_text)


def _python_rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Rows as tuples, made a batch at a time."""
    for batch in table.to_batches(max_chunksize=10_000):
        yield from zip(*(c.to_pylist() for c in batch.columns), strict=True)
