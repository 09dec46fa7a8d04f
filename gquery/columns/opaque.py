"""Columns of types that gquery does not compute with: lists, structs, maps, BLOB, UUID, TIME, durations and their like.

Such a column is carried, not looked into. Its rows are numbers into an `Opaque`, the Arrow values as they came, so that
kernels move plain integers; the values are taken by those numbers when a result leaves. NULLs are known beside the numbers,
so ``IS NULL`` and ``count`` work. What would need the values themselves is refused while binding (`gquery.functions`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from gquery.errors import NotSupportedError

if TYPE_CHECKING:
    import pyarrow as pa


class Opaque:
    """The values that the row numbers of an opaque column stand for. Identity is equality, as with `Dictionary`: columns
    with one Opaque have numbers of one space. ``parts`` are those whose values stand here one after another."""

    def __init__(self, values: pa.ChunkedArray, parts: tuple[Opaque, ...] = ()) -> None:
        self.values = values
        self._starts: dict[int, int] = {}
        self._parts = parts  # kept alive: their identities are keys
        at = 0
        for part in parts:
            self._starts[id(part)] = at
            at += len(part)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of the values."""
        return self.values.type

    @property
    def nbytes(self) -> int:
        """Bytes of the Arrow values."""
        return int(self.values.nbytes)

    def start_of(self, part: Opaque) -> int:
        """The number here of another's first value."""
        return self._starts[id(part)]

    def take(self, numbers: pa.Array) -> pa.ChunkedArray:
        """The values of these numbers in memory of their own, NULL for NULL."""
        import pyarrow as pa

        if not len(self.values):
            return pa.chunked_array([pa.nulls(len(numbers), self.type)])
        try:
            taken = self.values.take(numbers)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # no kernel for a (nested) type, or more than 2 GB
            taken = pa.chunked_array(list(self._pieces(numbers)), self.type)
        if not any(word in str(self.type) for word in ("view", "dictionary")):
            return taken
        from gquery.columns.ownership import copied

        shared: dict[Any, Any] = {}  # what views point to, and dictionaries, are not copied by Arrow
        return pa.chunked_array([copied(c, shared) for c in taken.chunks], self.type)

    def _pieces(self, numbers: pa.Array) -> Iterator[pa.Array]:
        """The same as slices, one a run of neighbours within a chunk."""
        import pyarrow as pa

        ok = numbers.is_valid().to_numpy(zero_copy_only=False)
        rows = np.where(ok, numbers.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64), -1)
        ends = np.cumsum([len(c) for c in self.values.chunks])
        chunk = np.searchsorted(ends, rows, side="right")
        goes_on = (rows[1:] == rows[:-1] + 1) & (chunk[1:] == chunk[:-1]) & ok[1:] & ok[:-1]
        cuts = np.flatnonzero(~(goes_on | ~(ok[1:] | ok[:-1]))) + 1
        for low, high in zip([0, *cuts.tolist()], [*cuts.tolist(), len(rows)], strict=True):
            if low == high:
                continue
            if not ok[low]:
                yield pa.nulls(high - low, self.type)
                continue
            source = self.values.chunk(int(chunk[low]))
            first = int(rows[low]) - (int(ends[chunk[low]]) - len(source))
            yield pa.concat_arrays([source.slice(first, high - low)])


_joined: WeakValueDictionary[tuple[int, ...], Opaque] = WeakValueDictionary()


def joined(several: Sequence[Opaque]) -> Opaque:
    """The values of several, one after another, in the type of the first: the same object for the same ones."""
    import pyarrow as pa

    parts = tuple({id(o): o for o in several}.values())
    if len(parts) == 1:
        return parts[0]
    key = tuple(map(id, parts))
    found = _joined.get(key)
    if found is None:
        type_ = parts[0].type
        chunks = [c for p in parts for c in _as_type(p.values, type_).chunks]
        found = _joined[key] = Opaque(pa.chunked_array(chunks, type_), parts)
    return found


def _as_type(values: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    import pyarrow as pa

    if values.type == type_:
        return values
    try:
        return values.cast(type_)
    except MemoryError:
        raise
    except (pa.ArrowException, TypeError) as error:
        raise NotSupportedError(
            f"not supported: values of the Arrow types {type_} and {values.type} in one column: {error}"
        ) from None
