"""Columns whose values kernels do not look at: lists, structs, maps, BLOB, UUID and their like.

The rows of such a column are numbers into an `Opaque`, the Arrow values as they came, so that kernels move plain integers: 4
bytes a row at most, whatever a list holds. The values are taken by those numbers when a result leaves, or when a function on
the host asks for them. NULLs are known beside the numbers, so ``IS NULL`` and ``count`` work.

Two kinds of types lie so. A LIST has elements of a type that is computed with: functions (`gquery.functions.lists`) look into
its Arrow arrays, aggregates and functions make new ones, and UNNEST makes rows of its elements; a BLOB is looked into by
`gquery.functions.blobs`. Any other is carried alone;
what would need its values is refused while binding (`gquery.functions.opaque`).

Why numbers and not (start, length) pairs into the elements: a column that comes from Arrow, one that a stage made and one whose
rows are of both then lie alike, and whatever carries one opaque column (joins, groups, sorts, ranks, files of a limited memory)
carries them all. The price is one look-up more where an element is read, which happens on the host.

Lists that a stage makes are not there while the query is planned. A `Pending` stands for them in the plan, and the columns of a
run have the `Opaque` that the stage has made (`operators.made_lists`). Values of several origins meet as numbers of all of
them, one after another where all are known, else in *spaces* of 2^32 numbers each: no frame has more rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from gquery.errors import InternalError, NotSupportedError
from gquery.expression.facts import ROW_ID_BITS

if TYPE_CHECKING:
    import pyarrow as pa


class Opaque:
    """The values that the row numbers of an opaque column stand for. Identity is equality, as with `Dictionary`: columns
    with one Opaque have numbers of one space. ``parts`` are those whose values stand here one after another. ``stands_for``: what
    a plan had for these values, where a run has made them."""

    def __init__(
        self, values: pa.ChunkedArray, parts: tuple[Opaque, ...] = (), stands_for: Pending | None = None
    ) -> None:
        self._values = values
        self.stands_for = stands_for
        self._starts: dict[int, int] = {}
        self._parts = parts  # kept alive: their identities are keys
        at = 0
        for part in parts:
            self._starts[id(part)] = at
            at += len(part)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def values(self) -> pa.ChunkedArray:
        """The Arrow values."""
        return self._values

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of the values."""
        return self.values.type

    @property
    def nbytes(self) -> int:
        """Bytes of the Arrow values."""
        return int(self.values.nbytes)

    @property
    def spaces(self) -> int:
        """How many spaces of numbers it takes where values of several origins meet, not all of which are known."""
        return 1

    @property
    def numbers(self) -> int:
        """What is above all numbers of its values."""
        return len(self)

    def start_of(self, part: Opaque) -> int:
        """The number here of another's first value."""
        return self._starts[id(part)]

    def starts_in(self, whole: Opaque) -> tuple[int, ...]:
        """What makes numbers of this one numbers of ``whole``, which `gathered` has made of it and others: an amount a space."""
        return (0 if whole is self else whole.start_of(self),)

    @property
    def is_pending(self) -> bool:
        """Whether it stands for values that are not there while planning."""
        return False

    @property
    def pending(self) -> tuple[Opaque, ...]:
        """What of it a run is to make."""
        return ()

    def resolved(self, made: Mapping[Opaque, Opaque]) -> Opaque:
        """The values in a run, which has made some."""
        return self

    def origins(self) -> Iterator[tuple[Opaque, Opaque]]:
        """What stands for values in a plan, and what a run has made in its place."""
        if self.stands_for is not None:
            yield self.stands_for, self

    def take(self, numbers: pa.Array) -> pa.ChunkedArray:
        """The values of these numbers in memory of their own, NULL for NULL."""
        import pyarrow as pa

        if not len(self.values):
            return pa.chunked_array([pa.nulls(len(numbers), self.type)])
        # a run's own values are never written to
        if self.stands_for is not None and (run := _neighbours(numbers)) is not None:
            return self.values.slice(run, len(numbers))
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

        ok, rows = _words(numbers)
        rows = np.where(ok, rows, -1)
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


class Pending(Opaque):
    """Values that a stage of the plan makes: they are known in a run alone. Identity is equality here as well."""

    def __init__(self) -> None:
        self._starts, self._parts, self.stands_for = {}, (), None

    def __len__(self) -> int:
        return 1 << ROW_ID_BITS

    @property
    def values(self) -> pa.ChunkedArray:
        """None: a plan has no values."""
        raise InternalError("lists that a stage makes are asked for before it has run")

    @property
    def nbytes(self) -> int:
        """None yet."""
        return 0

    @property
    def is_pending(self) -> bool:
        """It does."""
        return True

    @property
    def pending(self) -> tuple[Opaque, ...]:
        """All of it."""
        return (self,)

    def resolved(self, made: Mapping[Opaque, Opaque]) -> Opaque:
        """What the run has made."""
        return made[self]


class Spaces(Opaque):
    """The values of several, not all of which are known while planning: each has numbers from a multiple of 2^32 on."""

    def __init__(self, parts: tuple[Opaque, ...]) -> None:
        self._parts, self.stands_for = parts, None
        self._starts, self.spaces_before = {}, [0]
        for part in parts:
            self._starts[id(part)] = self.spaces_before[-1] << ROW_ID_BITS
            self.spaces_before.append(self.spaces_before[-1] + part.spaces)

    @property
    def spaces(self) -> int:
        """Those of all parts."""
        return self.spaces_before[-1]

    @property
    def numbers(self) -> int:
        """What is above all numbers of its values."""
        return self.spaces << ROW_ID_BITS

    def __len__(self) -> int:
        return self.numbers

    @property
    def values(self) -> pa.ChunkedArray:
        """None as one array: `take` has them."""
        raise InternalError("values of several origins are no one array")

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of the first part's values."""
        return self._parts[0].type

    @property
    def nbytes(self) -> int:
        """Bytes of the Arrow values."""
        return sum(p.nbytes for p in self._parts)

    @property
    def is_pending(self) -> bool:
        """Whether a part does."""
        return any(p.is_pending for p in self._parts)

    @property
    def pending(self) -> tuple[Opaque, ...]:
        """Those of all parts."""
        return tuple(made for p in self._parts for made in p.pending)

    def starts_in(self, whole: Opaque) -> tuple[int, ...]:
        """Those of all parts."""
        if whole is self or id(self) in whole._starts:
            return (0 if whole is self else whole.start_of(self),) * self.spaces
        assert isinstance(whole, Spaces)
        made: list[int] = []
        for n, (part, into) in enumerate(zip(self._parts, whole._parts, strict=True)):
            moved = (whole.spaces_before[n] - self.spaces_before[n]) << ROW_ID_BITS
            made += [moved + start for start in part.starts_in(into)]
        return tuple(made)

    def gathered(self, others: Sequence[Opaque]) -> Opaque | None:
        """Its parts, each together with that of the others; None where they are not alike."""
        if not all(isinstance(o, Spaces) and len(o._parts) == len(self._parts) for o in others):
            return None
        return _spaces_of(tuple(gathered([o._parts[n] for o in (self, *others)]) for n in range(len(self._parts))))

    def origins(self) -> Iterator[tuple[Opaque, Opaque]]:
        """Those of all parts."""
        for part in self._parts:
            yield from part.origins()

    def resolved(self, made: Mapping[Opaque, Opaque]) -> Opaque:
        """The same of what the run has made."""
        parts = tuple(p.resolved(made) for p in self._parts)
        same = len(parts) == len(self._parts) and all(a is b for a, b in zip(parts, self._parts, strict=True))
        return self if same else _spaces_of(parts)

    def take(self, numbers: pa.Array) -> pa.ChunkedArray:
        """The values of these numbers, each of the part into whose spaces it falls."""
        import pyarrow as pa

        ok, found = _words(numbers)
        part = np.searchsorted(self.spaces_before, found >> ROW_ID_BITS, side="right") - 1
        type_, chunks, at = self.type, [], np.zeros(len(found), np.int64)
        rows = 0
        for n, values in enumerate(self._parts):
            (places,) = np.nonzero(ok & (part == n))
            if len(places):
                own = found[places] - (self.spaces_before[n] << ROW_ID_BITS)
                taken = _as_type(values.take(_integers(own)), type_)
                chunks += taken.chunks
                at[places] = rows + np.arange(len(places))
                rows += len(places)
        if not rows:
            return pa.chunked_array([pa.nulls(len(found), type_)])
        whole = Opaque(pa.chunked_array(chunks, type_))
        return whole.take(_integers(at, ok))


def _words(numbers: pa.Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Where numbers are not NULL (bool), and the numbers, 0 for NULL (int64)."""
    from gquery.columns.arrow_buffers import bits_of, numpy_name, values_of

    ok = bits_of(numbers, 0).view(np.bool_)
    return ok, np.where(ok, values_of(numbers, numpy_name(numbers.type)), 0).astype(np.int64)


def _neighbours(numbers: pa.Array) -> int | None:
    """The first of numbers that follow each other; None of others."""
    rows = len(numbers)
    if not rows or numbers.null_count or numbers[-1].as_py() - numbers[0].as_py() != rows - 1:
        return None
    _, found = _words(numbers)
    return int(found[0]) if bool((found[1:] > found[:-1]).all()) else None


def _integers(values: Any, ok: Any = None) -> pa.Array:
    """An int64 array, NULL where ``ok`` is False."""
    import pyarrow as pa

    bitmap = None if ok is None else pa.py_buffer(np.packbits(ok, bitorder="little"))
    return pa.Array.from_buffers(pa.int64(), len(values), [bitmap, pa.py_buffer(values)])


_joined: WeakValueDictionary[tuple[int, ...], Opaque] = WeakValueDictionary()


def _spaces_of(parts: tuple[Opaque, ...]) -> Opaque:
    """The same object for the same parts: ranks that share values have one."""
    key = (0, *map(id, parts))
    found = _joined.get(key)
    if found is None:
        found = _joined[key] = Spaces(parts)
    return found


def joined(several: Sequence[Opaque]) -> Opaque:
    """The values of several, one after another, in the type of the first: the same object for the same ones."""
    import pyarrow as pa

    parts = tuple({id(o): o for o in several}.values())
    if len(parts) == 1:
        return parts[0]
    key = tuple(map(id, parts))
    found = _joined.get(key)
    if found is None and any(isinstance(p, Pending | Spaces) for p in parts):
        found = _spaces_of(parts)
    elif found is None:
        type_ = parts[0].type
        chunks = [c for p in parts for c in _as_type(p.values, type_).chunks]
        stands_for = parts[0].stands_for if all(p.stands_for is parts[0].stands_for for p in parts) else None
        found = _joined[key] = Opaque(pa.chunked_array(chunks, type_), parts, stands_for)
    return found


def gathered(several: Sequence[Opaque]) -> Opaque:
    """The values of what ranks have made for one column, one after another. It has as many spaces as each of them: kernels
    rely on a plan's bounds of the numbers."""
    first, *others = tuple({id(o): o for o in several}.values())
    if others and isinstance(first, Spaces) and (made := first.gathered(others)) is not None:
        return made
    return joined(several)


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
