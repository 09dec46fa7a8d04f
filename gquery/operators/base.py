"""What sinks share at run time: frames, states, and the four parts of a sink.

A sink's life: `allocate` makes its state (one for each worker, or one that all share), kernels write into it,
`finalize` combines the states and makes a frame or a join table. Stages never mutate their inputs, so a stage whose
table was full is run again with a larger one (`grow`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gquery.columns.table import ColumnData, ColumnStatistics
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.expression.types import PhysicalType
from gquery.kernels.targets.capabilities import Capabilities
from gquery.kernels.values import ValueProperties

if TYPE_CHECKING:
    from gquery.planner.physical import JoinTable

State = dict[str, Any]  # arrays and numbers by the names that `StatePart` bindings give them


@dataclass(frozen=True)
class Frame:
    """The columns that a stage made, by column id."""

    columns: dict[int, ColumnData]
    rows: int
    rank_values: dict[int, ColumnData] = field(
        default_factory=dict
    )  # RankEncode: for each code column the values it ranks


@dataclass(frozen=True)
class JoinIndex:
    """A join table: arrays and numbers by the names that `BuildPart` bindings give them, and the rows they number. ``table``
    is its description as it was built, which may not be as it was planned. ``entries``: at most so many rows are in it."""

    parts: dict[str, Any]
    frame: Frame
    table: JoinTable
    rows: int


class DuplicateKeysError(Exception):
    """A build that was expected to have no key twice has one."""


@dataclass(frozen=True)
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


class SinkRun(ABC):
    """A sink at run time."""

    roles: tuple[str, ...] = ("main",)  # the kernels to run, one after another
    shared = False  # one state for all workers and partitions

    def __init__(self, launch: Launch, label: str) -> None:
        self.launch = launch
        self.label = label

    @property
    def device(self) -> Device:
        """Where the state lies and the kernels run."""
        return self.launch.device

    @abstractmethod
    def allocate(self) -> State:
        """A fresh state."""

    def for_workers(self, state: State, workers: int) -> list[State]:
        """The shared state as each worker has it."""
        return [state] * workers

    def after(self, role: str, state: State) -> None:  # noqa: B027  (most sinks have one kernel)
        """What happens between two kernels of a shared state."""

    def grow(self) -> bool:
        """Make the next states larger after a table was full; False where that cannot help."""
        return False

    @abstractmethod
    def finalize(self, states: Sequence[State]) -> Frame | JoinIndex:
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


def words_a_row(physical_type: PhysicalType) -> int:
    """Elements of the buffer that make one row."""
    return 2 if physical_type in (PhysicalType.I128, PhysicalType.VIEW) else 1


def narrow(values: Array, physical_type: PhysicalType) -> Array:
    """An array of register words (int64, float64, or two words a row) in a physical type's element type."""
    return values if values.dtype == physical_type.numpy else values.astype(physical_type.numpy)
