"""Runtime feedback: what runs of a program leave for later runs of it.

A `RunFeedback` stands beside a program, held by whoever holds the program (`api.plan_cache`): programs are never changed.
Several threads may run one program at once. What they report of a stage is merged under a lock, and read as a snapshot.
Kernels that are made twice by accident are equal, so their stores take no lock while they make one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from gquery.execution.dataflow import Dataflow
from gquery.execution.stage_feedback import (
    NO_FEEDBACK,
    BuiltTable,
    Cached,
    OutputKey,
    ScalarSite,
    StageFeedback,
    UnitsKey,
)
from gquery.execution.stage_scalars import Expected, StageScalars
from gquery.runtime.records import dataclass, replace

if TYPE_CHECKING:
    from gquery.columns.table import Table
    from gquery.device.arena import Arena
    from gquery.device.array import Array
    from gquery.device.device import Device
    from gquery.distributed.cuts import Cuts
    from gquery.distributed.stage_placement import Placement
    from gquery.execution.decision import Decision
    from gquery.expression.slots import Recorder, SlotValues
    from gquery.kernels.kernel import Kernel
    from gquery.operators.codegen import Unit
    from gquery.operators.group_output import GroupOutput
    from gquery.operators.thread_states import StateForm
    from gquery.planner.physical import Program

K = TypeVar("K")
V = TypeVar("V")


class Store(Generic[K, V]):
    """What is made once for each key, and found by others."""

    def __init__(self) -> None:
        self._made: dict[K, V] = {}

    def get(self, key: K, make: Callable[[], V]) -> V:
        """What was made for a key, or is made now."""
        found = self._made.get(key)
        return self._made.setdefault(key, make()) if found is None else found

    def __iter__(self) -> Iterator[K]:
        return iter(list(self._made))

    def items(self) -> list[tuple[K, V]]:
        """All that was made, with its keys."""
        return list(self._made.items())


class Recorded(Protocol):
    """A recorded run of a program (`execution.recording`)."""

    program: Program

    def play(self, device: Device, arena: Arena, is_current: Callable[[], bool] = ...) -> Table | None:
        """The result of another run; None where the recording is of no use any more, or ``is_current`` says that, which is asked
        while the GPU works."""

    def release(self) -> None:
        """Let go of what it holds."""


@dataclass
class ReplayProgress:
    """How far a program has come to being replayed (`execution.replay`): only who has the lock of a GPU's arena changes it."""

    runs: int = 0  # behind the first
    kernels: tuple[Kernel, ...] | None = None  # that are compiled for it; None: nobody has looked
    asks_at: float = 0.0  # when it is looked again whether they are there, by `time.monotonic`
    rehearsed: RunFeedback | None = None
    recorded: Recorded | None = None
    given_up: int = 0  # recordings that did not fit any more
    refused: str | None = None  # why the program is never recorded


class RecordedStages(Protocol):
    """The first stages of a template's programs, recorded for all constants (`execution.template_recording`)."""

    def release(self) -> None:
        """Let go of what it holds."""


@dataclass
class TemplateProgress:
    """How far a template has come to being replayed (`execution.template_replay`): only who has the lock of a GPU's arena changes
    it, but for ``runs``."""

    runs: int = 0  # of plans that had not run before
    kernels: tuple[Kernel, ...] | None = None
    asks_at: float = 0.0
    recorded: RecordedStages | None = None
    given_up: int = 0  # recordings one after another that soon did not fit any more
    refused: str | None = None  # as in `ReplayProgress`
    bounds: Mapping[ScalarSite, int] = field(default_factory=dict)  # of counts, in the recording that was given up last


class Units(Protocol):
    """Keeps the kernels of a template (`execution.shared_units`)."""

    def get(self, key: UnitsKey, values: SlotValues, make: Callable[[], tuple[Unit, ...]]) -> tuple[Unit, ...]: ...

    def find(self, key: UnitsKey, values: SlotValues) -> tuple[Unit, ...] | None: ...

    def guards(self, key: UnitsKey, units: tuple[Unit, ...]) -> Recorder | None: ...


@dataclass(frozen=True)
class Shared:
    """What the plans of a template have in common, for a plan with these values of its slots. ``scalars`` are None for a run that
    is not like those of the template: it is recorded."""

    units: Units
    scalars: StageScalars | None
    values: SlotValues
    replay: TemplateProgress


@dataclass
class RankedFeedback:
    """How ranks run a program, each as its own has it (`distributed.localize`), and what the runs of each of them leave.
    ``heavy`` are the hashes of heavy keys by the stage whose rows are probed: all ranks of a run begin with the same ones."""

    program: Program
    programs: tuple[Program, ...]
    cuts: Cuts
    placement: Placement
    ranks: tuple[RunFeedback, ...]
    heavy: dict[int, Array] = field(default_factory=dict)


@dataclass
class PartsFeedback:
    """How a stage is made in parts: the program with the stages for that behind its own, and what runs of those leave."""

    program: Program
    feedback: RunFeedback


class RunFeedback:
    """What the runs of one program have found out, so that later ones need not."""

    def __init__(self) -> None:
        self.shared: Shared | None = None  # what other plans of the same template have, too
        self.units: Store[UnitsKey, tuple[Unit, ...]] = Store()
        self.outputs: Store[OutputKey, GroupOutput] = Store()
        self.scalars: Mapping[ScalarSite, int] | None = None  # that the last run read back; None before one has ended
        self.decisions: dict[int, Decision] = {}  # by stage, the last one
        self.forms: dict[int, StateForm] = {}  # by stage that makes groups on a CPU, the one whose kernels the last run had
        self.whole_scans: set[int] = set()  # the stages for which it does not pay to ask which blocks they have to scan
        self.replay = ReplayProgress()
        self.ranked: RankedFeedback | None = None
        self.parts: dict[Hashable, PartsFeedback] = {}  # by stage that did not fit memory, and form of its parts
        self.rows_in_parts: dict[int, int] = {}  # that a stage made of all parts of its rows in the last run
        self.is_short_of_memory = False  # whether something did not fit a limit at first
        self._nested: dict[int, RunFeedback] = {}  # of the programs of recursions, by stage
        self._stages: dict[int, StageFeedback] = {}
        self._dataflow: Dataflow | None = None
        self._prepared: set[bool] = set()
        self._lock = threading.Lock()

    def for_values(self, values: SlotValues, program: Program) -> RunFeedback:
        """What runs of another plan of the same template begin with: the kernels, what is known of the stages, and what they
        read, which depends on no constant."""
        made = RunFeedback()
        made.shared = None if self.shared is None else replace(self.shared, values=values)
        made.outputs = self.outputs
        made._stages, made._prepared, made.forms = self._stages.copy(), self._prepared.copy(), self.forms.copy()
        made._dataflow = None if self._dataflow is None else self._dataflow.of_like(program)
        return made

    def expected(self) -> Expected | None:
        """The scalars that a run may take as given: those of the last run, or before one has ended those that other plans of
        the template read back; None where there are none."""
        if self.scalars is not None:
            return Expected(self.scalars, None)
        if self.shared is None or self.shared.scalars is None:
            return None
        return self.shared.scalars.expected(self.shared.values)

    def ended(self, seen: Mapping[ScalarSite, int], on_gpu: bool) -> None:
        """A run has ended, and everything in it was right; it read these scalars back, on a CPU none."""
        if on_gpu and self.shared is not None and self.shared.scalars is not None:
            if seen != self.scalars:
                grown = [n for n, known in self._stages.copy().items() if known.capacity]
                self.shared.scalars.keep(self.shared.values, seen, grown)
            else:
                self.shared.scalars.enter_last()
        self.scalars = seen

    def misspeculated(self) -> None:
        """A run has to be made once more; what it took as given was wrong."""
        if self.scalars is None and self.shared is not None and self.shared.scalars is not None:
            self.shared.scalars.misspeculated()

    def stage(self, number: int) -> StageFeedback:
        """What is known of a stage now."""
        return self._stages.get(number, NO_FEEDBACK)

    def dataflow(self, program: Program) -> Dataflow:
        """What the stages of the program read of each other."""
        found = self._dataflow
        if found is None or found.program is not program:
            found = self._dataflow = Dataflow(program)
        return found

    def for_rank(self) -> RunFeedback:
        """What the runs of one rank begin with: the kernels are those of all ranks."""
        made = RunFeedback()
        made._stages, made.forms = self._stages.copy(), self.forms.copy()
        made.units, made.outputs = self.units, self.outputs
        made.shared = (
            None if self.shared is None else replace(self.shared, scalars=None)
        )  # a rank has numbers of its own
        return made

    def for_recording(self) -> RunFeedback:
        """What runs that are to be recorded begin with: the same kernels, what is known of the stages, no scalars."""
        made = RunFeedback()
        made.units, made.outputs = self.units, self.outputs
        made._stages = self._stages.copy()
        made._prepared = {False}
        return made

    def for_template_recording(self) -> RunFeedback:
        """The same for runs that are recorded for all constants: the kernels are the template's."""
        made = self.for_recording()
        made.units = Store()
        made.shared = None if self.shared is None else replace(self.shared, scalars=None)
        return made

    def begin_preparing(self, counts: bool) -> bool:
        """Whether the caller is the first that prepares the kernels of the program, those that count or those that do not."""
        if counts in self._prepared:  # it only grows
            return False
        with self._lock:
            is_first = counts not in self._prepared
            self._prepared.add(counts)
            return is_first

    def nested(self, number: int) -> RunFeedback:
        """What the runs of a program have left that stands in a stage of this one."""
        with self._lock:
            return self._nested.setdefault(number, RunFeedback())

    def found_duplicate_keys(self, number: int) -> None:
        """A build that was expected to have unique keys has one twice."""
        self._merge(number, lambda known: replace(known, duplicate_keys=True))

    def found_fan_out(self, number: int) -> None:
        """A morsel that was expected to give no more rows than it has gave more."""
        self._merge(number, lambda known: replace(known, fanned_out=True))

    def found_outgrown(self, number: int) -> None:
        """Interpreting a stage was given up."""
        self._merge(number, lambda known: replace(known, outgrown=True))

    def interpreted(self, number: int, seconds: float) -> None:
        """The interpreter ran a stage for so long."""
        self._merge(number, lambda known: replace(known, interpreted_seconds=known.interpreted_seconds + seconds))

    def grew(self, number: int, capacity: int) -> None:
        """A hash table was full, and is now of this capacity: later runs begin with it."""
        self._merge(number, lambda known: replace(known, capacity=max(known.capacity, capacity)))

    def made_groups(self, number: int, groups: int) -> None:
        """A stage that was compiled for a CPU made so many groups."""
        if self.stage(number).groups != groups:
            self._merge(number, lambda known: replace(known, groups=groups))

    def begins_small(self, number: int) -> None:
        """A table of groups found no room: the next ones grow as they are filled."""
        self._merge(number, lambda known: replace(known, capacity=0, groups=1))

    def requested(self, number: int) -> None:
        """The kernels of a stage are compiled in the background: they may be there at any time."""
        self._merge(number, lambda known: replace(known, is_requested=True, cached=None))

    def looked_up_cache(self, number: int, cached: Cached) -> None:
        """An earlier process has left this of a stage."""
        self._merge(number, lambda known: replace(known, cached=cached))

    def read_rows(self, number: int, rows: int) -> None:
        """The source of a stage gave so many rows."""
        if self.stage(number).rows != rows:  # most runs read what the last one did
            self._merge(number, lambda known: replace(known, rows=rows))

    def built(self, number: int, table: BuiltTable) -> None:
        """A stage built a join table."""
        known = self.stage(number).table
        if known is None or not known.is_like(table):
            self._merge(number, lambda known: replace(known, table=table))

    def _merge(self, number: int, change: Callable[[StageFeedback], StageFeedback]) -> None:
        with self._lock:
            self._stages[number] = change(self.stage(number))
