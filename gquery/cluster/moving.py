"""What goes from one process of a cluster to another, as bytes: programs without their tables, values without devices.

A table is sent as the key that it has on the cluster, and each side puts its own in that place. A buffer is sent as an array of
the host. Of dictionaries a process has one for each digest, so that columns which have the same one compare by codes.

What large arrays hold stands beside the pickled bytes, since Dask sends arrays as they lie and copies bytes at each step. It is
copied when a value is packed, where whoever packs goes on and may write to its arrays while they wait to be sent, and again when
it is unpacked, where a value can be unpacked more than once. Large arrays of integers go as their distance from the least one,
in as few bytes as that takes: words of aggregates and encoded keys have 64 bits whatever their values are.
"""

from __future__ import annotations

import io
import pickle
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import cloudpickle
import numpy as np

from gquery import tuning
from gquery.columns.table import Dictionary
from gquery.device.buffer import Buffer
from gquery.device.device import Device, cpu_device
from gquery.runtime.forking import free_in_child
from gquery.runtime.tuples import NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

_dictionaries: WeakValueDictionary[bytes, Dictionary] = WeakValueDictionary()
_lock = free_in_child(threading.Lock())


class Packed(NamedTuple):
    """A value as bytes: ``head`` is its pickle, ``buffers`` hold what its arrays hold, each as an array of uint8."""

    head: bytes
    buffers: tuple[Any, ...] = ()


class _Reductions(dict[type, Callable[[Any], tuple[Any, ...]]]):
    """By type how values are made again that are not as others; those of subclasses are found when one first comes."""

    def __missing__(self, kind: type) -> Callable[[Any], tuple[Any, ...]]:
        base = next((b for b in (Buffer, Dictionary, Device) if issubclass(kind, b)), None)
        if base is None:
            raise KeyError(kind)
        self[kind] = self[base]
        return self[base]


def _of_buffer(value: Buffer) -> tuple[Any, ...]:
    at = value.devices[0]
    return _buffer, (np.ascontiguousarray(at.to_host(value.on(at))),)


def _of_array(value: np.ndarray) -> Any:
    found = _narrowed(value)
    return value.__reduce_ex__(5) if found is None else (_widened, found)


_reductions = _Reductions(
    {
        Buffer: _of_buffer,
        Dictionary: lambda value: (_dictionary, (value.digest, value.values)),
        Device: lambda value: (cpu_device, ()),
        np.ndarray: _of_array,
    }
)


class _Packing(pickle.Pickler):
    """A pickler of values. It has no method that is asked about each object, which took most of the time of small values."""

    dispatch_table = _reductions


class _ProgramPacking(pickle.Pickler):
    """A pickler of code, too, for which it asks cloudpickle's, and that knows the tables of a cluster by their identity."""

    dispatch_table = cloudpickle.Pickler.dispatch_table

    def __init__(
        self, file: io.BytesIO, beside: Callable[[pickle.PickleBuffer], bool], tables: Mapping[int, str]
    ) -> None:
        super().__init__(file, protocol=5, buffer_callback=beside)
        self._code = cloudpickle.Pickler(io.BytesIO(), protocol=5)
        self._tables = tables

    def persistent_id(self, value: Any) -> str | None:
        """The key of a table."""
        return self._tables.get(id(value))

    def reducer_override(self, value: Any) -> Any:
        """How buffers, dictionaries, devices and arrays are made again."""
        try:
            reduction = _reductions[type(value)]
        except KeyError:
            return self._code.reducer_override(value)
        return reduction(value)


class _Unpacking(pickle.Unpickler):
    def __init__(self, data: Packed, table: Callable[[str], object], copies: bool) -> None:
        super().__init__(io.BytesIO(data.head), buffers=[b.copy() for b in data.buffers] if copies else data.buffers)
        self._table = table

    def persistent_load(self, key: Any) -> object:
        """The table that a key stands for here."""
        return self._table(key)


def packed(value: object, copies: bool = True) -> Packed:
    """A value, which has no code, as bytes. What does not ``copy`` has large arrays of the value itself: they must stay as they
    are until they are sent."""
    return _packed(value, lambda file, beside: _Packing(file, protocol=5, buffer_callback=beside), copies)


def packed_program(value: object, tables: Mapping[int, str]) -> Packed:
    """A program or what belongs to it as bytes, with code that the other process cannot import; ``tables`` gives the keys of
    those that stay behind, by the ids of their sources."""
    return _packed(value, lambda file, beside: _ProgramPacking(file, beside, tables), copies=True)


def _packed(
    value: object, pickler: Callable[[io.BytesIO, Callable[[pickle.PickleBuffer], bool]], Any], copies: bool
) -> Packed:
    file, beside = io.BytesIO(), list[Any]()

    def is_within(buffer: pickle.PickleBuffer) -> bool:
        array = np.frombuffer(buffer.raw(), np.uint8)
        if array.nbytes < tuning.cluster.beside_bytes:
            return True
        beside.append(array.copy() if copies else array)
        return False

    pickler(file, is_within).dump(value)
    return Packed(file.getvalue(), tuple(beside))


def unpacked(data: Packed, table: Callable[[str], object] = str, copies: bool = True) -> Any:
    """The value; ``table`` gives what is put in the place of a table of that key. Without ``copies`` its large arrays are those
    of the data: it is unpacked once."""
    return _Unpacking(data, table, copies).load()


def _narrowed(array: np.ndarray) -> tuple[np.ndarray, int, np.dtype[Any]] | None:
    """The values of a large array of integers less the least of them, that one, and the array's type; None where they take no
    fewer bytes so."""
    if array.dtype.kind not in "iu" or array.itemsize == 1 or array.ndim != 1 or array.nbytes < tuning.cluster.beside_bytes:
        return None
    low, high = int(array.min()), int(array.max())
    kind = np.min_scalar_type(high - low)
    if kind.itemsize >= array.itemsize:
        return None
    return np.subtract(array, array.dtype.type(low)).astype(kind), low, array.dtype


def _widened(narrow: np.ndarray, low: int, dtype: np.dtype[Any]) -> np.ndarray:
    made = narrow.astype(dtype)
    made += dtype.type(low)
    return made


def _buffer(array: Any) -> Buffer:
    return Buffer(array)


def _dictionary(digest: bytes, values: pa.Array) -> Dictionary:
    with _lock:
        found = _dictionaries.get(digest)
        if found is None:
            found = _dictionaries[digest] = Dictionary(values)
        return found
