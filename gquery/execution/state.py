"""What a run of a program consists of: where it runs, what its stages made, what they report."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from gquery import tuning
from gquery.columns.opaque import Opaque
from gquery.columns.table import ColumnData, Table
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.distributed.cuts import Cuts
from gquery.distributed.stage_placement import Placement
from gquery.execution.feedback import RankedFeedback, RunFeedback
from gquery.execution.measure import Meter
from gquery.execution.speculation import Speculation
from gquery.kernels.patterns import ScannedPattern
from gquery.operators.base import Frame, JoinIndex
from gquery.operators.codegen import Unit
from gquery.planner.later import pattern_of
from gquery.planner.physical import Build, JoinTable, Pipeline, Program
from gquery.runtime.records import dataclass
from gquery.settings import Settings
from gquery.tuning.dividing import Distribution

if TYPE_CHECKING:
    from gquery.distributed.transport import Comm


class Remote(Protocol):
    """Ranks in other processes (`gquery.cluster`)."""

    size: int

    def placed(self, program: Program, feedback: RunFeedback) -> RankedFeedback:
        """How the ranks run a program."""
        ...

    def for_ranks(self, program: Program) -> Program:
        """The program as the ranks run it, with large joins and many groups divided among them."""
        ...

    def run(
        self, program: Program, context: ExecutionContext, feedback: RunFeedback
    ) -> tuple[Table, list[StageReport]]:
        """The result of a program, and what its stages did."""
        ...


@dataclass(frozen=True)
class ExecutionContext:
    """Where and how a program runs: the name of the target that compiled pipelines run on, its device, the settings. ``ranks``
    are the devices of several ranks; none where one device has all rows."""

    target: str
    device: Device
    settings: Settings
    meter: Meter | None = None  # of a run that is analyzed
    ranks: tuple[Device, ...] = ()
    remote: Remote | None = None  # the ranks of a cluster

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
    received_bytes: int = 0  # from other ranks
    heavy_keys: int = 0  # whose rows do not go where their hash says
    streamed_bytes: int = 0  # of columns that went through the device in chunks
    parts: int = 0  # in files, that it was made in, one after another
    spilled_bytes: int = 0  # of these
    of_ranks: tuple[StageReport, ...] = ()  # what the stage did on each of several ranks


@dataclass(frozen=True, eq=False)
class BoundArguments:
    """What a launch of a kernel is given, parameter by parameter."""

    unit: Unit
    values: list[object]


@dataclass(frozen=True, eq=False)
class BoundPattern:
    """A text scan by a pattern that depends on slots: parameter ``name`` of a kernel. ``packed`` is the pattern on the device."""

    unit: Unit
    name: str
    pattern: ScannedPattern
    packed: Array


@dataclass
class Rank:
    """What tells the run of one rank from those of others. ``wholes`` are frames of which it has gathered all rows, by stage;
    those that the first rank has gathered alone are ``wholes_of_first``, of which others keep their part. ``handed_over`` is
    what others may still read."""

    comm: Comm
    placement: Placement
    cuts: Cuts
    wholes: dict[int, Frame] = field(default_factory=dict)
    wholes_of_first: dict[int, Frame] = field(default_factory=dict)
    by_hash: dict[int, Frame] = field(
        default_factory=dict
    )  # rows that came by their hash, by the stage that reads them
    heavy: dict[int, Array] = field(default_factory=dict)  # hashes of heavy keys, by the stage whose rows are probed
    received_bytes: int = 0  # from other ranks, in the stage that runs
    handed_over: object = None
    written_to: tuple[object, ...] = ()  # of others, which this rank is writing to
    limits: Distribution = field(default_factory=lambda: tuning.distribution)  # those of the other ranks, too

    def leaves(self, stage: int) -> bool:
        """Whether the rank leaves a stage to the first one."""
        return self.comm.rank > 0 and self.placement[stage].alone

    @property
    def left(self) -> frozenset[int]:
        """The stages that the rank leaves to the first one."""
        return frozenset(n for n in range(len(self.placement)) if self.leaves(n))

    def whole(self, stage: int) -> Frame:
        """All rows of a frame that were gathered."""
        found = self.wholes.get(stage)
        return self.wholes_of_first[stage] if found is None else found

    def release(self, stage: int) -> None:
        """Let go of the rows of a frame that were gathered."""
        self.wholes.pop(stage, None)
        self.wholes_of_first.pop(stage, None)


@dataclass
class Unbuilt:
    """The rows of a join table that did not fit memory, in files, and the pipelines that made them and that build the table of a
    part of them."""

    rows: Frame
    first: Pipeline
    build: Pipeline

    @property
    def table(self) -> JoinTable:
        """The table as it is built of parts."""
        assert isinstance(self.build.sink, Build)
        return self.build.sink.table


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
    unbuilt: dict[int, Unbuilt] = field(default_factory=dict)  # join tables that did not fit memory, by build stage
    reports: list[StageReport] = field(default_factory=list)
    bound_patterns: list[BoundPattern] | None = None  # as ``bound``
    bound: list[BoundArguments] | None = None  # of all kernels, where the run is recorded for other constants, too
    lists: dict[Opaque, Opaque] = field(default_factory=dict)  # what stages have made of a plan's `Pending`
    rank: Rank | None = None  # where other ranks run other parts of the rows
    is_round: bool = False  # of a recursion: what its last stage makes is read by kernels, as other stages' frames are

    def __post_init__(self) -> None:
        self.dataflow = self.feedback.dataflow(self.program)

    def forget(self) -> None:
        """Let go of what the stages have made."""
        for made in (self.frames, self.joins, self.matched, self.unbuilt):
            made.clear()

    def makes_result(self, stage: int) -> bool:
        """Whether no kernel reads what a stage makes, so that its columns may lie in any way."""
        return not self.is_round and stage == pattern_of(self.program)[-1].number

    def leaves(self, stage: int) -> bool:
        """Whether another rank runs a stage."""
        return self.rank is not None and self.rank.leaves(stage)

    def merges(self, stage: int) -> bool:
        """Whether the states of several ranks become one at the end of a stage."""
        return self.rank is not None and self.rank.placement[stage].merges
