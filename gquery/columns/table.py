"""Columns and tables in memory, and the protocol of what a query can scan.

Between storage and kernels stands `ColumnData`: a logical type, the physical type that holds it, and buffers
(`device.buffer`). `import_arrow` makes columns from Arrow, `arrow` gives them back; `io` has the sources that a Scan
reads.

Validity is one byte a row: kernels load it as they load data, and a bitmap would save little where most columns have
no NULL at all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from gquery import tuning
from gquery.columns.opaque import Opaque
from gquery.columns.zones import Zones
from gquery.device.buffer import Buffer
from gquery.expression.frozen import frozen_open, frozen_single
from gquery.expression.types import Bounds, DType, PhysicalType, Schema
from gquery.runtime.records import cached_property, replace

if TYPE_CHECKING:
    import pyarrow as pa


Frequent: TypeAlias = tuple[tuple[int, float], ...]
"""Physical integers and the share of rows that have each, the most frequent first."""


@frozen_open
class ColumnStatistics:
    """What is known of a column's values, exact unless said otherwise. ``None`` is "not known"."""

    bounds: Bounds | None = None  # of physical integers, 0 for NULLs among them; codes for dictionary strings
    null_count: int | None = None
    distinct: int | None = None  # an estimate
    is_sorted: bool = False  # non-decreasing, no NULLs
    is_unique: bool = False  # proved: no value twice, no NULLs
    values: Bounds | None = None  # of physical integers, NULLs left out
    zones: Zones | None = None  # of physical integers, where rows that lie together have values that lie together
    longest_run: int | None = None  # of a sorted column: no value has more rows
    frequent: Frequent = ()  # an estimate: the values that have far more rows than others

    def of_some_rows(self) -> ColumnStatistics:
        """What holds of any part of the rows, in their order."""
        return replace(self, null_count=0 if self.null_count == 0 else None, zones=None)


class TableSource(Protocol):
    """What a Scan reads: a registered Arrow table, Parquet files, a stored result."""

    name: str
    schema: Schema

    @property
    def rows(self) -> int:
        """How many rows the table has."""

    @property
    def version(self) -> int:
        """A number that changes when the data does."""

    def statistics(self, field: int) -> ColumnStatistics:
        """What is known of the field at a position, loaded or not."""

    def has_nulls(self, field: int) -> bool:
        """Whether the field may hold NULLs: a part of its statistics that may be had for less."""

    def is_unique(self, field: int) -> bool:
        """Whether no value comes twice and none is NULL, for certain: likewise."""

    def load(self, fields: Sequence[int]) -> Table:
        """The fields at these positions, in this order. What is loaded stays with the source."""


class Dictionary:
    """The values of a dictionary-encoded string column: sorted bytewise, no value twice, none NULL, never empty.

    Code i stands for ``values[i]``, so codes compare as strings do. Identity is equality: two columns with one
    Dictionary compare by code. What comes from another process is compared by ``digest``.
    """

    def __init__(self, values: pa.Array) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def result_values(self) -> pa.Array:
        """The values in the type that results have, where they fit it: with offsets of 32 bits."""
        import pyarrow as pa

        from gquery.runtime.arrow_compute import cast

        return self.values if self.values.nbytes >= 2**31 else cast(self.values, pa.string())

    @cached_property
    def strings(self) -> list[str]:
        """The values as Python strings, in code order."""
        return list(self.values.to_pylist())

    @cached_property
    def digest(self) -> bytes:
        """What tells the values from others: 16 bytes, the same in every process and for offsets of 32 and 64 bits."""
        from gquery.columns.arrow_buffers import text_digest

        return text_digest(self.values)

    @cached_property
    def listed(self) -> list[bytes] | None:
        """The values in UTF-8, in code order, where they are few and short."""
        limits = tuning.memory
        few = len(self) <= limits.listed_entries and self.values.nbytes <= limits.listed_bytes
        return [s.encode("utf-8") for s in self.strings] if few else None

    @cached_property
    def _texts(self) -> tuple[memoryview, memoryview]:
        """The offsets of the values, and their bytes. Of hundreds of thousands few are looked at, so none is made a string."""
        from gquery.columns.arrow_buffers import offsets_of

        return memoryview(offsets_of(self.values)), memoryview(self.values.buffers()[2] or b"")

    def _text(self, code: int) -> bytes:
        offsets, characters = self._texts
        return bytes(characters[offsets[code] : offsets[code + 1]])

    def lower_bound(self, value: str) -> int:
        """The first code whose string is not less than ``value`` (``len(self)`` if none)."""
        if self.listed is not None:
            return bisect_left(self.listed, value.encode("utf-8"))
        return bisect_left(range(len(self)), value.encode("utf-8"), key=self._text)

    def is_at(self, value: str, code: int) -> bool:
        """Whether a string is that of a code; of one behind the last none is."""
        if code >= len(self):
            return False
        return (self._text(code) if self.listed is None else self.listed[code]) == value.encode("utf-8")

    def code_of(self, value: str) -> int | None:
        """The code of a string, None where it is not there."""
        code = self.lower_bound(value)
        return code if self.is_at(value, code) else None

    def __repr__(self) -> str:
        return f"Dictionary({len(self)} values)"


@frozen_single
class ColumnData:
    """One column in memory.

    ``data`` holds ``length`` values of the physical type (offsets of one more row for STRING32 and STRING64, two int64
    words a row for I128 and VIEW). ``validity`` is None where there is no NULL, else one byte a row, 1 for a value;
    payloads under NULL are zero. With a ``dictionary`` the physical type is an integer and holds codes, or numbers into
    an `Opaque`. ``characters`` are the UTF-8 bytes that offsets point into; the first offset need not be 0. ``owners``
    are the buffers that VIEW addresses point into.
    """

    dtype: DType
    physical_type: PhysicalType
    length: int
    data: Buffer
    validity: Buffer | None = None
    characters: Buffer | None = None
    dictionary: Dictionary | Opaque | None = None
    statistics: ColumnStatistics = ColumnStatistics()
    owners: tuple[Buffer, ...] = ()

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """Every buffer of the column itself (owners are others' buffers)."""
        return tuple(b for b in (self.data, self.validity, self.characters) if b is not None)

    @property
    def nbytes(self) -> int:
        """Bytes of one copy of each buffer."""
        return sum(b.nbytes for b in self.buffers)

    @property
    def held_bytes(self) -> int:
        """Bytes with the values that opaque rows stand for."""
        return self.nbytes + (self.dictionary.nbytes if isinstance(self.dictionary, Opaque) else 0)

    @property
    def used(self) -> int:
        """When a buffer of it was last asked for: greater is later."""
        return max(b.used for b in self.buffers)

    def slice(self, low: int, high: int) -> ColumnData:
        """Rows ``low`` to ``high`` as views of the same memory, wherever copies lie."""
        words = 2 if self.physical_type in (PhysicalType.I128, PhysicalType.VIEW) else 1
        extra = 1 if self.physical_type in (PhysicalType.STRING32, PhysicalType.STRING64) else 0
        statistics, zones = self.statistics.of_some_rows(), self.statistics.zones
        if zones is not None:
            statistics = replace(statistics, zones=zones.of_rows(low, high))
        return replace(
            self,
            length=high - low,
            data=self.data.slice(words * low, words * high + extra),
            validity=None if self.validity is None else self.validity.slice(low, high),
            statistics=statistics,
        )


@frozen_single
class Table:
    """Columns of equal length under a schema."""

    schema: Schema
    columns: tuple[ColumnData, ...]
    rows: int

    def slice(self, low: int, high: int) -> Table:
        """Rows ``low`` to ``high``."""
        high = max(low, min(high, self.rows))
        return Table(self.schema, tuple(c.slice(low, high) for c in self.columns), high - low)

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers of all columns."""
        return sum(c.nbytes for c in self.columns)
