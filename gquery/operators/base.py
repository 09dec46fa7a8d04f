"""What sinks share at run time: frames, states, and the four parts of a sink.

A sink's life: `allocate` makes a state (one for each worker, or one that all share), kernels write into it,
`finalize` combines the states and makes a frame or a join table. Stages never mutate their inputs, so a stage whose
table was full is run again with a larger one (`grow`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import field, fields
from typing import TYPE_CHECKING, Generic, TypeVar

from gquery.columns.table import ColumnData, ColumnStatistics
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.errors import InternalError
from gquery.expression.expr import SortKey
from gquery.expression.frozen import frozen_open, frozen_single
from gquery.expression.types import PhysicalType
from gquery.kernels.bindings import Argument, JoinName, StatePart
from gquery.kernels.builtin.elements import converted, hide_nulls
from gquery.kernels.targets.capabilities import Capabilities
from gquery.kernels.values import ValueProperties
from gquery.runtime.records import dataclass, replace

if TYPE_CHECKING:
    from gquery.planner.physical import JoinTable, Stored


@frozen_open
class KnownOrder:
    """An order in which the rows of a frame are known: by these keys, columns of the frame, rows with equal ones as they stand.
    ``rows``: which stands at each position (uint32); None: each at its own."""

    keys: tuple[SortKey, ...]
    rows: Array | None


@frozen_open
class Frame:
    """The columns that a stage made, by column id."""

    columns: dict[int, ColumnData]
    rows: int
    # RankEncode: for each code column the values it ranks
    rank_values: dict[int, ColumnData] = field(default_factory=dict)
    # int64, one, on the GPU: how many rows there are, where ``rows`` is the most; see `Count`
    number: Array | None = None
    known_order: KnownOrder | None = None


@frozen_single
class JoinArrays:
    """What probes read of a join table: arrays, owned by the table, and numbers. None stands for what its layout does not have.
    A *slot* is a place that a key has."""

    count: int = 0  # rows of the build side
    null_keys: int | None = None  # how many of them have a NULL among their keys, at least; None where no probe asks
    bits: Buffer | None = None  # uint32, a bit a slot: which keys there are
    slots: Buffer | None = None  # what each slot holds: 0 for nothing, a row's number plus 1, or an inline payload
    keys: Buffer | None = None  # int64, inline keys: the key of each slot, 0 where it is empty
    pairs: Buffer | None = None  # int64, inline keys: for each slot the key, and what it holds
    capacity: int | None = None  # inline keys: slots but that of the key 0, which stands behind them
    mask: int | None = None  # a hash table of row numbers: its slots less 1
    starts: Buffer | None = None  # uint32: where the range of each slot begins, and the end of the last
    order: Buffer | None = None  # uint32: the numbers of rows by slot; what there is in it, where ``gathers``
    gathers: int | None = None  # 0 where the rows lie in the order of their slots
    filter: Buffer | None = None  # uint32: which of the keys' high bits there are
    filter_shift: int | None = None  # how many low bits of a key do not count in it
    sorted_keys: Buffer | None = None  # int64, by place in ``order``: the value that the rows of a slot are sorted by
    key_starts: Buffer | None = None  # uint32: where the buckets of those begin, see `kernels.builtin.key_buckets`
    key_scale: Buffer | None = None  # int64: how a key's bucket is found
    # int64: a tree of greatest values over the places, see `kernels.primitives.ranges`
    reach_tree: Buffer | None = None
    reach_leaves: int | None = None  # where its leaves begin

    @property
    def buffers(self) -> list[Buffer]:
        """All arrays."""
        return [b for f in fields(self) if isinstance(b := getattr(self, f.name), Buffer)]

    def part(self, name: JoinName) -> Buffer | int:
        """What a `BuildPart` stands for. InternalError where the layout has no such thing."""
        found: Buffer | int | None = getattr(self, name)
        if found is None:
            raise InternalError(f"a join table has no {name}")
        return found


@dataclass(slots=True)
class JoinIndex:
    """A join table and the rows that it numbers. ``table`` is its description as it was built, which may not be as it was
    planned. ``rows``: at most so many rows are in it. ``longest``: the most build rows that one probe can match; None before
    somebody asked."""

    arrays: JoinArrays
    frame: Frame
    table: JoinTable
    rows: int
    longest: int | None = None


class SinkState:
    """What a sink's kernels write into, and the numbers that they read: a record a sink, whose fields are called as `StatePart`
    bindings call them. Its arrays lie on the run's device. None stands for what the sink's layout does not have."""

    __slots__ = ()
    windows: int = 1  # launches over the same rows, of which each fills a part of the state

    def part(self, part: StatePart) -> Argument:
        """What a kernel's parameter stands for. InternalError where the layout has no such thing."""
        found: Array | int | None
        if part.number is None:
            found = getattr(self, part.part)
        else:
            several: Sequence[Array | None] = getattr(self, part.part)
            found = several[part.number]
        if found is None:
            raise InternalError(f"{type(self).__name__} has no {part.part}")
        return found

    def each_window(self) -> Iterator[SinkState]:
        """The state as it is for each of these launches."""
        yield self


S_co = TypeVar("S_co", bound=SinkState, covariant=True)


class DuplicateKeysError(Exception):
    """A build that was expected to have no key twice has one."""


class FannedOutError(Exception):
    """A morsel that was expected to give no more rows than it has gave more."""


class OutgrownError(Exception):
    """A pipeline that was expected to have little work has more than is to be interpreted."""


@frozen_open
class Launch:
    """How a stage is to be run: where, over how many rows, by how many workers."""

    device: Device
    rows: int
    workers: int
    unit: int  # rows that one count of a Materialize covers
    target: Capabilities

    @property
    def by_row(self) -> bool:
        """Whether counts are kept for each row, not for each unit."""
        return self.target.has_warps


class SinkRun(ABC, Generic[S_co]):
    """A sink at run time, for one attempt; it owns its states."""

    roles: tuple[str, ...] = ("main",)  # the kernels to run, one after another
    shared = False  # one state for all workers and partitions

    def __init__(self, launch: Launch, label: str) -> None:
        self.launch = launch
        self.label = label
        self.states: list[S_co] = []

    @property
    def device(self) -> Device:
        """Where the state lies and the kernels run."""
        return self.launch.device

    @abstractmethod
    def make_state(self) -> S_co:
        """A fresh state, before the first row; the caller owns it."""

    def allocate(self) -> S_co:
        """A fresh state, which `finalize` will read."""
        state = self.make_state()
        self.states.append(state)
        return state

    def for_workers(self, workers: int) -> Sequence[SinkState]:
        """The shared state as each worker has it."""
        return [self.states[0]] * workers

    def after(self, role: str) -> None:
        """What happens between two kernels of a shared state."""

    def grow(self) -> bool:
        """Make the next states larger after a table was full; False where that cannot help."""
        return False

    @abstractmethod
    def finalize(self) -> Frame | JoinIndex:
        """The result of all states."""


def make_column(
    what: ValueProperties, physical_type: PhysicalType, data: Array, validity: Array | None, rows: int, device: Device
) -> ColumnData:
    """A column from an array in its physical type's layout."""
    return ColumnData(
        dtype=what.dtype,
        physical_type=physical_type,
        length=rows,
        data=Buffer(data, device),
        validity=None if validity is None else Buffer(validity, device),
        dictionary=what.dictionary,
        statistics=ColumnStatistics(bounds=what.bounds),
    )


def words_part(word: str) -> StatePart:
    """The binding of a state's words as elements of a type, ``i64`` or ``f64``."""
    return StatePart("words_f64" if word == "f64" else "words_i64")


def with_flags(column: ColumnData, flags: Array, device: Device) -> ColumnData:
    """The column, of no text, with these flags (uint8) of rows that are not NULL, and 0 under NULL: sorts take what lies there
    for a part of the key. Its data is written over."""
    hide_nulls(column.data.on(device), flags, words_a_row(column.physical_type))
    return replace(column, validity=Buffer(flags, device), statistics=ColumnStatistics(column.statistics.bounds))


def words_a_row(physical_type: PhysicalType) -> int:
    """Elements of the buffer that make one row."""
    return 2 if physical_type in (PhysicalType.I128, PhysicalType.VIEW) else 1


def narrow(values: Array, physical_type: PhysicalType) -> Array:
    """An array of register words (int64, float64, or two words a row) in a physical type's element type."""
    return values if values.dtype == physical_type.numpy else converted(values, physical_type.numpy)


def null_column(stored: Stored, rows: int, device: Device) -> ColumnData:
    """A column of NULLs."""
    validity = Buffer(device.zeros(rows, "uint8"), device)
    if stored.physical_type.is_string:
        offsets = Buffer(device.zeros(rows + 1, "int64"), device)
        return ColumnData(
            stored.properties.dtype,
            PhysicalType.STRING64,
            rows,
            offsets,
            validity,
            Buffer(device.zeros(0, "uint8"), device),
        )
    words = 2 if stored.physical_type is PhysicalType.I128 else 1
    data = Buffer(device.zeros(rows * words, stored.physical_type.numpy), device)
    return ColumnData(
        stored.properties.dtype, stored.physical_type, rows, data, validity, dictionary=stored.properties.dictionary
    )
