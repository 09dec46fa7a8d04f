"""What a run of a program consists of: where it runs, what its stages made, what they report."""

from __future__ import annotations

from dataclasses import field

from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.execution.feedback import RunFeedback
from gquery.execution.measure import Meter
from gquery.execution.speculation import Speculation
from gquery.operators.base import Frame, JoinIndex
from gquery.planner.physical import (
    Program,
)
from gquery.runtime.records import dataclass
from gquery.settings import Settings


@dataclass(frozen=True)
class ExecutionContext:
    """Where and how a program runs: the name of the target that compiled pipelines run on, its device, the settings."""

    target: str
    device: Device
    settings: Settings
    meter: Meter | None = None  # of a run that is analyzed

    @property
    def counts(self) -> bool:
        """Whether kernels count the rows that get past each of their steps."""
        return self.meter is not None and self.meter.counts


@dataclass
class StageReport:
    """What a stage did: for EXPLAIN ANALYZE and for tests."""

    number: int
    label: str
    target: str
    rows: int
    seconds: float
    compile_seconds: float = 0.0
    attempts: int = 1
    blocks: int = 0  # of rows of the source, where some are left out
    skipped_blocks: int = 0


@dataclass
class Run:
    """The state of one run of a program."""

    program: Program
    context: ExecutionContext
    feedback: RunFeedback
    speculation: Speculation
    frames: dict[int, Frame] = field(default_factory=dict)
    joins: dict[int, JoinIndex] = field(default_factory=dict)
    tables: dict[int, dict[int, ColumnData]] = field(default_factory=dict)  # by the id of the source: columns by field
    matched: dict[int, Array] = field(
        default_factory=dict
    )  # FULL joins: build rows that matched (uint8), by build stage
    reports: list[StageReport] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dataflow = self.feedback.dataflow(self.program)
