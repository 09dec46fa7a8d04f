"""Tables that are in memory already: Arrow data, dicts of NumPy or CuPy arrays.

Arrow columns are encoded when a query first uses them, so that registering is cheap and an unsupported column that
nobody uses does no harm. CuPy columns stay on their GPU. What others could write to is copied (`gquery.columns.ownership`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gquery import tuning
from gquery.columns.domain import Restriction, ScanUse
from gquery.columns.looked_over import bounds_and_order, contiguous, sample_of, unsigned_pairs
from gquery.columns.numbered import NumberedRows, NumberedTable
from gquery.columns.statistics import Sampled, sampled
from gquery.columns.store import TableStore, check_names, new_version
from gquery.columns.table import ColumnData, ColumnStatistics, Table, TableSource
from gquery.device.array import Array, is_masked
from gquery.device.buffer import Buffer
from gquery.device.device import Device, adopt
from gquery.errors import InterfaceError
from gquery.expression.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    REAL,
    SMALLINT,
    TINYINT,
    UBIGINT,
    UINTEGER,
    USMALLINT,
    UTINYINT,
    DType,
    Field,
    PhysicalType,
    Schema,
)
from gquery.io.fetched_rows import RowFetcher, check_nullable
from gquery.io.first_rows import FirstRows
from gquery.runtime import interrupt

if TYPE_CHECKING:
    import pyarrow as pa

    from gquery.columns.ownership import Origin


class ArrowSource:
    """Columns in memory: Arrow arrays, and CuPy arrays that stay on their GPU. Encoded at first use, then kept; the arrays
    are given up then. ``origin`` tells whose they are, None that gquery made them. See `planner.late_fetch` for `fetch`."""

    def __init__(
        self,
        name: str,
        names: Sequence[str] | Mapping[str, DType | None],
        arrays: Sequence[Any],
        rows: int,
        narrow: bool = True,
        origin: Origin | None = None,
    ) -> None:
        """``names`` may have a type each, where Arrow's says less: texts that are JSON."""
        self.name = name
        self._types = names if isinstance(names, Mapping) else {}
        self._origin = origin
        self._arrays = list(arrays)
        self._owner: Any = None  # of the memory that the arrays lie in, to be kept while one of them is needed
        self._taken: set[int] = set()  # arrays in memory of our own
        self.is_live = origin is not None and origin.is_shared  # its columns are as they are when they are loaded
        self._columns: dict[int, ColumnData] = {}
        self._rows = rows
        self._narrow = narrow
        self._version = new_version()
        self._lock = interrupt.Lock()
        self._numbered = NumberedTable()
        self.schema = Schema(tuple(self._field(n, a) for n, a in zip(names, arrays, strict=True)))
        check_names(self.schema, name)
        self._fetcher = RowFetcher(name, self.schema)

    def _field(self, name: str, array: Any) -> Field:
        if _is_cupy(array):
            return Field(name, _array_type(array, name), False)
        from gquery.columns.arrow import dtype_of

        dtype = self._types.get(name) or dtype_of(array.type)
        if self._origin is not None:
            self._origin.structure(array, name)
        return Field(name, dtype, array.null_count > 0 or _has_null_entries(array))

    @property
    def rows(self) -> int:
        return self._rows

    @property
    def version(self) -> int:
        return self._version

    def statistics(self, field: int) -> ColumnStatistics:
        """Exact for columns that have been loaded, the NULL count before."""
        column = self._columns.get(field)
        if column is not None:
            return column.statistics
        array = self._arrays[field]
        return ColumnStatistics(null_count=0 if _is_cupy(array) or not self.schema.fields[field].nullable else None)

    def has_nulls(self, field: int) -> bool:
        """Whether the field may hold NULLs."""
        return self.statistics(field).null_count != 0

    def is_unique(self, field: int) -> bool:
        """Whether no value comes twice and none is NULL, for certain."""
        return self.statistics(field).is_unique

    def load(self, fields: Sequence[int]) -> Table:
        """The columns in the order that is asked for."""
        with self._lock:
            missing = sorted({f for f in fields if f not in self._columns})
            self._columns |= self._encoded(missing, None)
            for f in missing:
                self._arrays[f] = None
                self._fetcher.forget(f)
            if all(a is None for a in self._arrays):
                self._owner = None
            columns = tuple(self._columns[f] for f in fields)
        return Table(Schema(tuple(self.schema.fields[f] for f in fields)), columns, self._rows)

    def keep(self, owner: Any = None) -> ArrowSource:
        """Take what the arrays hold now. ``owner`` is an object that keeps their memory as it is, so that there is time until
        a column is used; without one long columns are encoded and short ones copied."""
        self._owner = owner
        if owner is None:
            with self._lock:
                every = range(len(self._arrays))
                self.load([f for f in every if self._rows > tuning.ownership.copied_rows or _is_cupy(self._arrays[f])])
                for f in every:
                    if self._arrays[f] is not None and self._origin is not None:
                        self._arrays[f] = self._origin.take(self._arrays[f], self.schema.fields[f].name)
                        self._taken.add(f)
        self.is_live = False
        return self

    def restricted(self, uses: Sequence[ScanUse]) -> Restriction:
        """The first rows, where a LIMIT needs few of columns that are not encoded yet. See `DivisibleSource`."""
        rows = max((self._rows if use.rows is None else use.rows for use in uses), default=self._rows)
        if rows > tuning.reading.largest_part * self._rows or all(
            f in self._columns for use in uses for f in use.fields
        ):
            return Restriction(self)
        return Restriction(FirstRows(self, rows, self.first))

    def first(self, fields: Sequence[int], rows: int) -> dict[int, ColumnData]:
        """The first rows of columns, by field. What is not encoded yet stays so."""
        with self._lock:
            held = {f: self._columns[f].slice(0, rows) for f in fields if f in self._columns}
            return held | self._encoded([f for f in fields if f not in held], rows)

    def fetchable(self, fields: Sequence[int], loaded: bool) -> list[int]:
        """Those of the fields of which rows can be fetched: among those that are encoded, or among the others."""
        from gquery.columns.pick import is_pickable

        with self._lock:
            if loaded:
                return [f for f in fields if f in self._columns]
            arrays = {f: self._arrays[f] for f in fields if f not in self._columns and not self.is_live}
        return [f for f, array in arrays.items() if not _is_cupy(array) and is_pickable(array.type)]

    def numbered(self) -> NumberedRows:
        """The same table with the number of each row in its last field."""
        return self._numbered.of(self)

    def fetch(self, fields: Sequence[int], rows: Array) -> dict[int, ColumnData]:
        """By field, its values in the rows of these numbers (on the host), if it is not encoded; it stays so."""
        with self._lock:
            left = [f for f in fields if f not in self._columns]
            arrays = {f: (self._arrays[f], None if f in self._taken else self._origin) for f in left}
        return self._fetcher.fetch(arrays, rows)

    def _encoded(self, fields: Sequence[int], rows: int | None) -> dict[int, ColumnData]:
        """Columns made of the arrays, of all rows or the first ones. DataError where a column that had no NULL has got one, on
        which plans rest that are made already."""
        arrays = {f: self._arrays[f] if rows is None else self._arrays[f][:rows] for f in fields}
        made: dict[int, ColumnData] = {}
        for f in [f for f in fields if _is_cupy(arrays[f])]:
            array = arrays.pop(f)
            with Device("cuda", int(array.device.id)).activate():
                own = array if self._origin is None else copy_of(array)
                made[f] = import_device_array(own, self.schema.fields[f].dtype)
        for origin, of in ((None, self._taken & arrays.keys()), (self._origin, arrays.keys() - self._taken)):
            made |= self._imported({f: arrays[f] for f in sorted(of)}, origin)
        for f, column in made.items():
            check_nullable(column, self.schema.fields[f], self.name)
        return made

    def _imported(self, arrays: Mapping[int, Any], origin: Origin | None) -> dict[int, ColumnData]:
        if not arrays:
            return {}
        from gquery.columns.import_arrow import import_columns

        wanted = [self.schema.fields[f] for f in arrays]
        made = import_columns(list(arrays.values()), wanted, self._narrow, origin=origin)
        return dict(zip(arrays, made, strict=True))

    def held(self) -> list[tuple[int, ColumnData]]:
        """The columns that are encoded already, with the numbers of their fields."""
        with self._lock:
            return sorted(self._columns.items(), key=lambda kept: kept[0])


def kept_source(name: str, data: Any, narrow: bool = True) -> TableSource:
    """A source for data as they are now, which does not see what their owner writes later."""
    from gquery.columns.ownership import changes_in_place, unchanging

    if changes_in_place(data):
        source = source_of(name, data, narrow)
        return source.keep() if isinstance(source, ArrowSource) else source
    held = unchanging(data)
    source = source_of(name, held, narrow)
    return source.keep(held) if isinstance(source, ArrowSource) else source


def source_of(name: str, data: Any, narrow: bool = True) -> TableSource:
    """A source for what can be registered: Arrow streams (PyArrow, pandas, Polars, DuckDB relations), a dict of
    one-dimensional arrays (NumPy, CuPy, anything with ``__cuda_array_interface__`` or DLPack) or lists, a Table.
    InterfaceError for anything else."""
    import pyarrow as pa

    from gquery.columns.ownership import caller_origin

    if isinstance(data, Table):
        return TableStore(name, data)
    if isinstance(data, Mapping):
        return _source_of_arrays(name, data, narrow)
    try:
        if isinstance(data, pa.Table):
            table = data
        elif isinstance(data, pa.RecordBatch):
            table = pa.Table.from_batches([data])
        elif _has_objects(data):
            raise InterfaceError(f'"{name}" cannot be registered: Python objects of Polars are no Arrow data')
        elif hasattr(data, "__arrow_c_stream__"):
            table = pa.table(data)
        elif type(data).__module__.split(".")[0] == "pandas":  # before pandas 2.2
            table = pa.Table.from_pandas(data)
        else:
            raise InterfaceError(
                f'"{name}" cannot be registered: a {type(data).__name__} has no __arrow_c_stream__ and is no dict'
            )
    except MemoryError:
        raise
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:  # the last for Python's integers beyond 64 bits
        raise InterfaceError(f'"{name}" cannot be registered as Arrow data: {error}') from error
    return ArrowSource(name, table.column_names, table.columns, table.num_rows, narrow, caller_origin(name))


def _has_objects(data: Any) -> bool:
    """Whether a data frame of Polars has columns of Python objects, which it exports as addresses."""
    if type(data).__module__.split(".")[0] != "polars":
        return False
    return any("Object" in str(dtype) for dtype in data.schema.dtypes()) if hasattr(data, "schema") else False


def _source_of_arrays(name: str, data: Mapping[Any, Any], narrow: bool) -> TableSource:
    import pyarrow as pa

    from gquery.columns.ownership import caller_origin

    arrays: list[Any] = []
    for key, values in data.items():
        if _is_tensor(values):
            values = adopt(values)
        if _is_cupy(values):
            arrays.append(values)
            continue
        if isinstance(values, np.ndarray) and values.ndim != 1:
            raise InterfaceError(f'Column "{key}" of {name} has {values.ndim} dimensions; a column has one')
        try:
            array = values if isinstance(values, (pa.Array, pa.ChunkedArray)) else _from_array(values)
        except MemoryError:
            raise
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InterfaceError(f'Column "{key}" of {name} cannot be registered: {error}') from error
        arrays.append(array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array]))
    lengths = {str(k): len(a) for k, a in zip(data, arrays, strict=True)}
    if len(set(lengths.values())) > 1:
        raise InterfaceError(f"The columns of {name} differ in length: {lengths}")
    rows = next(iter(lengths.values()), 0)
    return ArrowSource(name, [str(k) for k in data], arrays, rows, narrow, caller_origin(name))


def _from_array(values: Any) -> pa.Array:
    import pyarrow as pa

    if is_masked(values):
        return pa.array(values.data, mask=np.ma.getmaskarray(values))
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        native = values.astype(values.dtype.newbyteorder("="), copy=False)
        return pa.array(np.ascontiguousarray(native))
    return pa.array(values)


def _has_null_entries(array: Any) -> bool:
    """Whether an Arrow column holds NULLs that its ``null_count`` does not count: those of a dictionary, or of runs."""
    import pyarrow as pa

    if pa.types.is_run_end_encoded(array.type):
        return any(c.values.null_count for c in array.chunks)
    return pa.types.is_dictionary(array.type) and any(c.dictionary.null_count for c in array.chunks)


# ---- CuPy --------------------------------------------------------------------------------------------------------

_ARRAY_TYPES: dict[str, tuple[DType, PhysicalType]] = {
    "bool": (BOOLEAN, PhysicalType.BOOL), "int8": (TINYINT, PhysicalType.I8), "int16": (SMALLINT, PhysicalType.I16),
    "int32": (INTEGER, PhysicalType.I32), "int64": (BIGINT, PhysicalType.I64), "uint8": (UTINYINT, PhysicalType.U8),
    "uint16": (USMALLINT, PhysicalType.U16), "uint32": (UINTEGER, PhysicalType.U32), "uint64": (UBIGINT, PhysicalType.I64),
    "float32": (REAL, PhysicalType.F32), "float64": (DOUBLE, PhysicalType.F64),
}  # fmt: skip


def _is_tensor(array: Any) -> bool:
    """Whether an array is another library's, on a GPU or with DLPack."""
    if _is_cupy(array):
        return type(array).__module__.split(".")[0] != "cupy"
    return hasattr(array, "__dlpack_device__") and type(array).__module__.split(".")[0] not in ("numpy", "pyarrow")


def _is_cupy(array: Any) -> bool:
    return hasattr(array, "__cuda_array_interface__")


def _array_type(array: Any, name: str) -> DType:
    if array.ndim != 1 or str(array.dtype) not in _ARRAY_TYPES:
        raise InterfaceError(
            f'Column "{name}": a GPU array has one dimension and one of the types {", ".join(_ARRAY_TYPES)}, '
            f"not {array.ndim} and {array.dtype}"
        )
    return _ARRAY_TYPES[str(array.dtype)][0]


def copy_of(array: Any) -> Any:
    """A copy of a CuPy array on its GPU, which is made when this returns."""
    device = Device("cuda", int(array.device.id))
    made = device.empty(array.shape, array.dtype, "copying a column that was registered")
    with device.activate():
        device.xp.copyto(made, contiguous(array))
        device.synchronize()
    return made


def detached(table: Table) -> Table:
    """A result whose arrays on GPUs, which can be written to where they were handed out, are copied. Those on the host are
    handed out for reading alone."""

    def own(buffer: Buffer | None) -> Buffer | None:
        at = None if buffer is None else buffer.devices[0]
        return buffer if buffer is None or at is None or at.is_cpu else Buffer(copy_of(buffer.on(at)), at)

    def own_column(column: ColumnData) -> ColumnData:
        data, validity, characters = own(column.data), own(column.validity), own(column.characters)
        assert data is not None
        return replace(column, data=data, validity=validity, characters=characters)

    return Table(table.schema, tuple(own_column(c) for c in table.columns), table.rows)


def import_device_array(array: Any, dtype: DType) -> ColumnData:
    """An array of NumPy or CuPy as a column where it lies, without NULLs and without narrowing; its statistics are
    computed there. Nobody else may write to it."""
    physical_type = _ARRAY_TYPES[str(array.dtype)][1]
    rows = int(array.shape[0])
    array = contiguous(array)
    if not dtype.is_exact:
        return ColumnData(dtype, physical_type, rows, Buffer(array), statistics=ColumnStatistics(null_count=0))
    bounds, order = bounds_and_order(array)
    high = bounds.high
    if high >= 2**63:  # UBIGINT in its upper half: two words a row
        array, physical_type = unsigned_pairs(array), PhysicalType.I128
    elif physical_type is PhysicalType.BOOL:
        array = array.view("uint8")
    elif str(array.dtype) == "uint64":
        array = array.view("int64")
    seen = Sampled(rows) if order.rises else sampled(sample_of(array), rows)
    frequent = () if physical_type is PhysicalType.I128 else seen.frequent  # of words there
    distinct = min(seen.distinct, bounds.width)
    stats = ColumnStatistics(bounds, 0, distinct, order.never_falls, order.rises, frequent=frequent)
    return ColumnData(dtype, physical_type, rows, Buffer(array), statistics=stats)
