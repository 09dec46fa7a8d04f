"""One column of a result as an array, where it lies: NumPy's, CuPy's, and by their protocols everyone's.

The array of a column without NULLs whose physical type is the type's own width is the result's memory itself; narrower
physical types widen into a new one. On the host that memory may be a table's as well, so it is handed out for reading
alone; on a GPU, where nothing is read-only, a result has memory of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gquery.columns.arrow_buffers import read_only
from gquery.columns.arrow_intervals import total_micros
from gquery.columns.loops import on_gpus
from gquery.device.array import is_masked
from gquery.device.device import cuda_device
from gquery.errors import InterfaceError
from gquery.expression.interval import split_words
from gquery.expression.types import Kind, PhysicalType
from gquery.runtime.records import cached_property

if TYPE_CHECKING:
    from gquery.columns.table import ColumnData
    from gquery.device.device import Device
    from gquery.expression.types import DType

_NUMPY = {
    Kind.BOOLEAN: "bool", Kind.TINYINT: "int8", Kind.SMALLINT: "int16", Kind.INTEGER: "int32", Kind.BIGINT: "int64",
    Kind.UTINYINT: "uint8", Kind.USMALLINT: "uint16", Kind.UINTEGER: "uint32", Kind.UBIGINT: "uint64",
    Kind.REAL: "float32", Kind.DOUBLE: "float64", Kind.DATE: "int32", Kind.TIMESTAMP: "int64", Kind.DECIMAL: "float64",
    Kind.TIMESTAMPTZ: "int64", Kind.INTERVAL: "int64", Kind.TIME: "int64",
}  # fmt: skip


class ResultColumn:
    """A column of a result. ``valid`` is an array of truth values, None where there is no NULL."""

    def __init__(self, name: str, column: ColumnData) -> None:
        self.name = name
        self.dtype: DType = column.dtype
        self._column = column

    def __len__(self) -> int:
        return self._column.length

    def __repr__(self) -> str:
        return f"<column {self.name} {self.dtype} of {len(self)} rows on {self.device.name}>"

    @property
    def device(self) -> Device:
        """Where the values lie."""
        return self._column.data.devices[0]

    @property
    def valid(self) -> Any:
        validity = self._column.validity
        return None if validity is None else _handed_out(validity.on(self.device)[: len(self)].view("bool"))

    @cached_property
    def values(self) -> Any:
        """The values on their device, 0 under NULL: dates as days, timestamps as microseconds since 1970, times as
        those since midnight, intervals as microseconds, decimals as floats. InterfaceError for text."""
        column, kind = self._column, self.dtype.kind
        if kind not in _NUMPY:
            raise InterfaceError(f'Column "{self.name}" of type {self.dtype} is no array of numbers; Arrow can hold it')
        data, type_ = _handed_out(column.data.on(self.device)), _NUMPY[kind]
        if kind is Kind.DECIMAL:
            return self._floats(data)
        if kind is Kind.INTERVAL:
            return self._micros(data)
        if column.physical_type is PhysicalType.I128:
            data = data[::2].view("uint64") if kind is Kind.UBIGINT else data[::2]
        data = data[: len(self)]
        if kind is Kind.BOOLEAN or (kind is Kind.UBIGINT and data.dtype == "int64"):
            return data.view(type_)
        return _as(data, type_)

    def _floats(self, data: Any) -> Any:
        scale = 10.0**self.dtype.scale
        if self._column.physical_type is not PhysicalType.I128:
            data = data[: len(self)]
            return data / scale if self.device.is_cpu else on_gpus().decimals(data, scale)
        data = data[: 2 * len(self)]
        if self.device.is_cuda:
            return on_gpus().wide_decimals(data, scale)
        return (data[1::2] * 2.0**64 + data[::2].view("uint64")) / scale

    def _micros(self, data: Any) -> Any:
        if self._column.physical_type is not PhysicalType.I128:
            return _as(data[: len(self)], "int64")
        try:
            words = self.device.to_host(data[: 2 * len(self)]).reshape(-1, 2)
            return self.device.from_host(total_micros(*split_words(words)))
        except OverflowError as error:
            raise InterfaceError(f'Column "{self.name}": {error}; Arrow can hold it') from None

    def to_numpy(self) -> Any:
        """A NumPy array, masked where there are NULLs; dates and timestamps as datetime64, intervals as timedelta64, text,
        times and what is carried alone as Python objects."""
        if self.dtype.kind in (Kind.VARCHAR, Kind.NULL):
            from gquery.columns.arrow import export_column

            return export_column(self._column).to_numpy(zero_copy_only=False)
        if self.dtype.is_opaque or self.dtype.kind is Kind.TIME:
            from gquery.columns.arrow import export_column
            from gquery.columns.python_values import python_values

            found = np.empty(len(self), object)
            for n, value in enumerate(python_values(export_column(self._column))):
                found[n] = value
            return found
        to_host = self.device.to_host
        values = to_host(self.values)
        if self.dtype.kind is Kind.DATE:
            values = values.astype("datetime64[D]")
        elif self.dtype.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
            values = values.view("datetime64[us]")
        elif self.dtype.kind is Kind.INTERVAL:
            values = values.view("timedelta64[us]")
        values = values.view()
        values.flags.writeable = False
        if self.valid is None or bool(to_host(self.valid).all()):
            return values
        return np.ma.masked_array(values, mask=~to_host(self.valid))

    def to_cupy(self) -> Any:
        """A CuPy array on the column's GPU, or on the first one."""
        values = self._without_nulls()
        return values if self.device.is_cuda else cuda_device().from_host(values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.to_numpy()
        if is_masked(array):
            raise InterfaceError(f'Column "{self.name}" has NULLs; to_numpy() gives a masked array')
        return array if dtype is None and not copy else np.array(array, dtype=dtype)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if not self.device.is_cuda:
            raise AttributeError(f'Column "{self.name}" lies on the CPU')
        interface: dict[str, Any] = dict(self.values.__cuda_array_interface__)
        if self.valid is not None:
            interface["mask"] = self.valid
        return interface

    def __dlpack__(self, **options: Any) -> Any:
        values = self._without_nulls()
        if isinstance(values, np.ndarray) and (options.get("max_version") or (0,))[0] < 1:
            values = values.copy()  # the protocol's first version cannot say that an array is to be read alone
        return values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, ordinal = self.values.__dlpack_device__()
        return int(kind), int(ordinal)

    def _without_nulls(self) -> Any:
        valid = self.valid
        if valid is not None and (on_gpus().count(valid) if self.device.is_cuda else np.count_nonzero(valid)) < len(self):
            raise InterfaceError(f'Column "{self.name}" has NULLs, which an array cannot tell: use coalesce, or Arrow')
        return self.values


def _as(values: Any, dtype: str) -> Any:
    """Numbers as those of a type: where they lie, if they are such numbers."""
    if isinstance(values, np.ndarray):
        return values.astype(dtype, copy=False)
    return values if values.dtype == dtype else on_gpus().converted(values, dtype)


def _handed_out(array: Any) -> Any:
    """An array of the result as others may have it."""
    return read_only(array) if isinstance(array, np.ndarray) else array
