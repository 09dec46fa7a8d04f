"""Rows of a relation as Python's own values, under Polars' names; `Relation` is a `PythonRows`. All of it runs the query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from gquery.errors import DataError, InterfaceError, did_you_mean
from gquery.expression.nested_types import inner_types
from gquery.expression.types import UUID, DType
from gquery.result.output import distinct_names
from gquery.runtime.arguments import checked
from gquery.runtime.boundary import boundary

_Maker = Callable[[Any], Any]

if TYPE_CHECKING:
    import pyarrow as pa

    from gquery.columns.table import Table


@checked
class PythonRows(ABC):
    """Values: int, float, Decimal, str, bool, date, datetime, list, dict, None."""

    @abstractmethod
    def table(self) -> Table:
        """The result in memory."""

    @abstractmethod
    def to_arrow_table(self) -> pa.Table:
        """The result as a PyArrow table."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return python_rows(self.to_arrow_table(), self._result_types)

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """The names of the columns."""

    @property
    @abstractmethod
    def types(self) -> list[DType]:
        """The types of the columns."""

    @property
    def _result_types(self) -> list[DType]:
        """The same of the rows that are there: a plan has to be made once more to tell them."""
        return [f.dtype for f in self.table().schema]

    @property
    def schema(self) -> dict[str, DType]:
        """The types of the columns by their names; runs nothing."""
        return dict(zip(distinct_names(self.columns), self.types, strict=True))

    @property
    def width(self) -> int:
        """How many columns there are; runs nothing."""
        return len(self.columns)

    @property
    def height(self) -> int:
        """How many rows there are."""
        return self.table().rows

    def is_empty(self) -> bool:
        """Whether there is no row."""
        return self.table().rows == 0

    @boundary
    def rows(self, named: bool = False) -> list[Any]:
        """All rows as tuples, or, ``named``, as dicts."""
        return list(self.iter_rows(named))

    @boundary
    def iter_rows(self, named: bool = False) -> Iterator[Any]:
        """The rows one by one, as tuples or, ``named``, as dicts."""
        if not named:
            return iter(self)
        names = distinct_names(self.columns)
        return (dict(zip(names, row, strict=True)) for row in self)

    @boundary
    def row(self, index: int, named: bool = False) -> Any:
        """One row, from the first (0) on, or from the last (-1) back."""
        rows = self.table().rows
        if not -rows <= index < rows:
            raise InterfaceError(f"there is no row {index}: the result has {rows}")
        (row,) = python_rows(self.to_arrow_table().slice(index % rows, 1), self._result_types)
        return dict(zip(distinct_names(self.columns), row, strict=True)) if named else row

    @boundary
    def item(self, row: int | None = None, column: int | str | None = None) -> Any:
        """One value: the only one there is, or that of a row and a column, by its number or its name."""
        rows, names = self.table().rows, self.columns
        if row is None and column is None:
            if (rows, len(names)) != (1, 1):
                raise InterfaceError(
                    f"item takes a row and a column of a result of {rows} rows and {len(names)} columns"
                )
            row = column = 0
        if row is None or column is None:
            raise InterfaceError("item takes a row and a column, or neither")
        return self.row(row)[self._place(column)]

    @boundary
    def to_dicts(self) -> list[dict[str, Any]]:
        """A dict for each row."""
        return self.rows(named=True)

    @boundary
    def to_dict(self) -> dict[str, list[Any]]:
        """A list of values for each column, by its name."""
        names, rows = distinct_names(self.columns), list(self)
        return {name: [row[at] for row in rows] for at, name in enumerate(names)}

    def _place(self, column: int | str) -> int:
        names = self.columns
        if isinstance(column, str):
            found = [at for at, name in enumerate(names) if name.lower() == column.lower()]
            if not found:
                raise InterfaceError(f'There is no column "{column}".{did_you_mean(column, names)}')
            return found[0]
        if not -len(names) <= column < len(names):
            raise InterfaceError(f"there is no column {column}: the result has {len(names)}")
        return column


def python_rows(table: pa.Table, types: Sequence[DType] = ()) -> Iterator[tuple[Any, ...]]:
    """Rows as tuples, made a batch at a time. ``types``: those of the columns, which tell UUIDs from texts."""
    made = [(n, f) for n, t in enumerate(types) if (f := _maker(t)) is not None]
    return chain.from_iterable(_tuples(batch, made) for batch in table.to_batches(max_chunksize=10_000))


def _tuples(batch: pa.RecordBatch, made: Sequence[tuple[int, _Maker]]) -> Iterator[tuple[Any, ...]]:
    from gquery.columns.python_values import python_values

    try:
        columns = [python_values(c) for c in batch.columns]
    except OverflowError:
        raise DataError(
            "a date or timestamp outside the years 1 to 9999, which Python does not have: read it by to_arrow_table()"
        ) from None
    for n, make in made:
        columns[n] = [None if v is None else make(v) for v in columns[n]]
    return zip(*columns, strict=True)


def _maker(dtype: DType) -> _Maker | None:
    """What makes UUIDs of the texts in a value; None where there are none."""
    if dtype == UUID:
        import uuid

        return uuid.UUID
    inner = [_maker(t) or _same for t in inner_types(dtype)]
    if all(f is _same for f in inner):
        return None
    makers = [_unless_null(f) for f in inner]

    def made(value: Any) -> Any:
        if dtype.element is not None:
            return [makers[0](v) for v in value]
        if dtype.is_struct:
            if isinstance(value, tuple):
                return tuple(f(v) for f, v in zip(makers, value, strict=True))
            return {k: f(v) for f, (k, v) in zip(makers, value.items(), strict=True)}
        key, item = makers
        if isinstance(value, list):  # a map with a key that comes twice
            return [(key(k), item(v)) for k, v in value]
        return {key(k): item(v) for k, v in value.items()}

    return made


def _unless_null(f: _Maker) -> _Maker:
    return lambda value: None if value is None else f(value)


def _same(value: Any) -> Any:
    return value
