"""Execution: runs a program stage by stage.

For each pipeline it picks the target by the work at hand (small work is interpreted: a kernel takes longer to compile than
the interpreter takes for some 100,000 row-steps), resolves what the kernel's parameters stand for, runs it over partitions
and workers, and reads the status block once. A stage whose table was full is run again with a larger one; stages never
mutate their inputs.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never, cast

import numpy as np

from gquery import stopwatch
from gquery.adaptive import adapt, expected
from gquery.config import Settings
from gquery.device import Device, cpu_device
from gquery.distributed.place import Placed, place
from gquery.distributed.schedule import run_partitions
from gquery.dtypes import Field, Schema
from gquery.errors import InternalError, InterruptError, OutOfMemoryError
from gquery.interrupt import check, current
from gquery.kernels import bulk, host
from gquery.kernels.code import Binding, BuildPart, ColumnPart, Constant, Content, StatePart
from gquery.kernels.kernel import Parameter
from gquery.kernels.targets import compile_many, get_target
from gquery.measure import Meter, named_range, traffic_of
from gquery.operators import collect, prefix
from gquery.operators.base import Frame, JoinIndex, Launch, SinkRun, State
from gquery.operators.collect import CollectRun
from gquery.operators.group import GroupRun
from gquery.operators.join_table import BuildRun
from gquery.operators.reduce import ReduceRun
from gquery.operators.rows import bulk_inputs, run_bulk
from gquery.planner.physical import (
    Build,
    Bulk,
    Collect,
    Group,
    JoinTable,
    Pipeline,
    Probe,
    Program,
    ReadOne,
    ReadRange,
    ReadStage,
    ReadTable,
    Reduce,
    Sink,
    Source,
    Stage,
)
from gquery.planner.pipeline import WIDE, Unit, units
from gquery.table import Buffer, Table

UNIT = 1024  # rows that one count of a Collect covers
MORSEL = 131_072
PYTHON_STEPS, CPU_STEPS, GPU_STEPS = (
    2**20,
    2**25,
    2**38,
)  # row-steps of a nested loop after which an interrupt is looked for
SHARED_STATE = 2**22  # bytes of state a worker above which fewer workers share the work
TRIAL_SECONDS = 0.05  # a pipeline that the interpreter has run for longer goes on compiled, at the next unit of rows
BREAK_EVEN_SECONDS = 0.03  # a pipeline that was interpreted for longer, in all runs of its program, is worth compiling
TINY = 300  # row-steps that the interpreter takes faster than a GPU is launched


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


@dataclass
class Run:
    """The state of one run of a program."""

    program: Program
    context: ExecutionContext
    frames: dict[int, Frame] = field(default_factory=dict)
    joins: dict[int, JoinIndex] = field(default_factory=dict)
    matched: dict[int, Any] = field(default_factory=dict)  # FULL joins: which build rows matched, by build stage
    reports: list[StageReport] = field(default_factory=list)


def run(program: Program, context: ExecutionContext) -> Table:
    """The result of a program."""
    return run_with_report(program, context)[0]


def run_with_report(program: Program, context: ExecutionContext) -> tuple[Table, list[StageReport]]:
    """The result of a program, and what each stage did."""
    state = Run(program, context)
    last_use = _last_uses(program)
    with context.device.activate():
        _prepare(state)
        watch = stopwatch.current()
        if watch is not None:
            watch.begin([_weight(s) for s in program.stages])
        for stage in program.stages:
            start = time.perf_counter()
            report = StageReport(stage.number, stage.label, "", 0, 0.0)
            if watch is not None:
                watch.stage(stage.number)
            try:
                check()
                with named_range(f"stage {stage.number}: {stage.label}"):
                    _stage(state, stage, report)
            except (
                InterruptError,
                KeyboardInterrupt,
            ) as error:  # what was made so far is freed now, not with the error
                for made in (state.frames, state.joins, state.matched):
                    made.clear()
                traceback.clear_frames(error.__traceback__)
                raise
            if context.meter is not None:
                _measure(state, stage, context.meter)
            report.seconds = time.perf_counter() - start
            state.reports.append(report)
            for number in [n for n, last in last_use.items() if last == stage.number]:
                state.frames.pop(number, None)
                state.joins.pop(number, None)
    frame = state.frames[program.stages[-1].number]
    columns = tuple(frame.columns[s.column.id] for s in program.outputs)
    fields = tuple(
        Field(n, s.column.dtype, s.phys.nullable) for n, s in zip(program.names, program.outputs, strict=True)
    )
    return Table(Schema(fields), columns, frame.rows), state.reports


def _measure(state: Run, stage: Stage, meter: Meter) -> None:
    """What a stage made, for its report; waits until it is there."""
    state.context.device.synchronize()
    frame = state.frames.get(stage.number)
    if frame is not None:
        meter.rows_out[stage.number] = frame.rows
        if isinstance(stage.work, Pipeline) and isinstance(stage.work.sink, Collect):
            meter.wrote(stage.number, sum(c.nbytes for c in frame.columns.values()))
    if not state.context.device.is_cuda:
        held = {id(b): b.nbytes for f in state.frames.values() for c in f.columns.values() for b in c.buffers}
        parts = {id(p): p.nbytes for j in state.joins.values() for p in j.parts.values() if isinstance(p, Buffer)}
        meter.peak_bytes = max(meter.peak_bytes, sum(held.values()) + sum(parts.values()))


def _weight(stage: Stage) -> float:
    """The work of a stage, roughly, for progress bars."""
    return float(max(stage.work.work, stage.work.rows, 1)) if isinstance(stage.work, Pipeline) else 1.0


def _stage(state: Run, stage: Stage, report: StageReport) -> None:
    """Run a stage. Where memory runs out in the midst of an array function, it runs once more with all room that can be
    made; an error that is raised then holds no frames, so that the next query has their memory."""
    device = state.context.device
    device.task = stage.label
    failures: list[str] = []
    while len(failures) < 2:
        try:
            match stage.work:
                case Pipeline():
                    _pipeline(state, stage, stage.work, report)
                case _:
                    at = _bulk_device(state, stage.work)
                    report.target = at.name
                    state.frames[stage.number] = run_bulk(stage.work, state.frames, state.joins, state.matched, at)
            return
        except MemoryError as error:  # NumPy's and CuPy's; the traceback, and with it the arrays, is let go of here
            failures.append(str(error) or "no memory is left")
        except OutOfMemoryError:
            _forget(state)
            raise
        device.make_room()
    _forget(state)
    raise device.exhausted(stage.label, failures[-1])


def _forget(state: Run) -> None:
    for made in (state.frames, state.joins, state.matched):
        made.clear()
    state.context.device.make_room()


def _prepare(state: Run) -> None:
    """Compile the kernels of the pipelines that will surely not be interpreted, all at once, at a program's first run."""
    program, context = state.program, state.context
    if context.meter is not None and not context.counts:
        return  # each kernel compiles when it is first run, so that its own time is known
    if context.target == "python" or program.memory.setdefault(("prepared", context.counts), False):
        return
    program.memory["prepared", context.counts] = True
    kernels = []
    for stage in program.stages:
        work = stage.work
        if isinstance(work, Pipeline) and work.host is None:
            if work.work + _state_size(work.sink) / 64 >= context.settings.interpret_limit:
                work = expected(work)
                kernels += [u.kernel for u in _units(program, stage, work, context.target, context.counts)]
    if len(kernels) > 1:
        with stopwatch.part("compile"):
            compile_many(get_target(context.target), kernels)


def _last_uses(program: Program) -> dict[int, int]:
    """For each stage but the last, the last stage that reads what it made."""
    last: dict[int, int] = {}
    for stage in program.stages:
        for number in _inputs(stage.work):
            last[number] = stage.number
    last.pop(program.stages[-1].number, None)
    return last


def _inputs(work: Pipeline | Bulk) -> list[int]:
    if not isinstance(work, Pipeline):
        return bulk_inputs(work)
    found = [work.source.stage] if isinstance(work.source, ReadStage) else []
    return found + [s.table.stage for s in work.steps if isinstance(s, Probe)]


# ---- pipelines ------------------------------------------------------------------------------------------------------


def _pipeline(state: Run, stage: Stage, pipeline: Pipeline, report: StageReport) -> None:
    frame = _read(state, pipeline.source)
    pipeline = adapt(pipeline, frame.rows, state.joins)
    wanted = prefix.rows_wanted(pipeline)
    if wanted is None:
        result = _whole(state, stage, pipeline, frame, report)
    else:
        result = _first_rows(state, stage, pipeline, frame, wanted, report)
    if isinstance(result, JoinIndex):
        state.joins[stage.number] = result
    else:
        state.frames[stage.number] = result


def _first_rows(
    state: Run, stage: Stage, pipeline: Pipeline, frame: Frame, wanted: int, report: StageReport
) -> Frame | JoinIndex:
    """A pipeline over the first rows of its source, more of them until enough came out."""
    device = state.context.device
    length = prefix.first_length(pipeline, wanted, device.is_cuda)
    while True:
        part = prefix.prefix(frame, length, device)
        result = _whole(state, stage, pipeline, part, report)
        assert isinstance(result, Frame)
        if result.rows >= wanted or part.rows == frame.rows:
            return result
        length = prefix.next_length(length, result.rows, wanted)
        report.attempts += 1


def _whole(state: Run, stage: Stage, pipeline: Pipeline, frame: Frame, report: StageReport) -> Frame | JoinIndex:
    """A pipeline over all rows of a frame."""
    report.rows = frame.rows
    context = state.context
    is_result = stage.number == state.program.stages[-1].number
    lies = prefix.as_it_lies(pipeline, frame, context.device, is_result)
    if lies is not None and context.meter is None:
        report.target = "none"
        return lies
    name = _target_of(state, stage, pipeline, frame.rows)
    if frame.rows >= WIDE > pipeline.rows:  # more than was estimated: the index needs 64 bits
        pipeline = replace(pipeline, rows=frame.rows)
    runner = _Runner(state, stage, pipeline, frame, name, report)
    result = runner.run()
    report.target = runner.name
    return result


def _read(state: Run, source: Source) -> Frame:
    match source:
        case ReadTable(table, fields, columns):
            wanted = sorted(set(fields))
            loaded = dict(zip(wanted, table.load(wanted).columns, strict=True)) if wanted else {}
            rows = next(iter(loaded.values())).length if loaded else table.rows
            return Frame({s.column.id: loaded[f] for s, f in zip(columns, fields, strict=True)}, rows)
        case ReadStage(number, columns, origins):
            frame = state.frames[number]
            return Frame({s.column.id: frame.columns[o] for s, o in zip(columns, origins, strict=True)}, frame.rows)
        case ReadRange(rows=rows):
            return Frame({}, rows)
        case ReadOne():
            return Frame({}, 1)
        case _:
            assert_never(source)


def _target_of(state: Run, stage: Stage, pipeline: Pipeline, rows: int) -> str:
    """The target that runs a pipeline: the interpreter for host functions, and for small work as long as that is cheaper
    than a compiler: not where the kernel is there already, nor where earlier runs have shown that it is worth one."""
    context = state.context
    if pipeline.host is not None or context.target == "python":
        return "python"
    work = rows * max(1.0, pipeline.work / max(pipeline.rows, 1)) + _state_size(pipeline.sink) / 64
    for step in pipeline.steps:
        if isinstance(step, Probe) and step.table.layout == "loop":
            work *= max(1, state.joins[step.table.stage].frame.rows)
    if work >= context.settings.interpret_limit:
        return context.target
    if context.target == "cuda" and work < TINY:
        return "python"
    spent = state.program.memory.get(("interpreted", stage.number), 0.0)
    if spent > BREAK_EVEN_SECONDS or _is_ready(state.program, stage, pipeline, context.target):
        return context.target
    return "python"


def _state_size(sink: Sink) -> int:
    """Places that a sink's arrays have: making them costs time too."""
    match sink:
        case Group(layout="direct", packing=packing) | Build(table=JoinTable(layout="direct", packing=packing)):
            assert packing is not None
            return packing.size
        case _:
            return 0


def _units(program: Program, stage: Stage, pipeline: Pipeline, target: str, counts: bool = False) -> tuple[Unit, ...]:
    """The kernels of a pipeline, made at its first run."""
    sink = pipeline.sink
    layout = sink.layout if isinstance(sink, Group) else ""
    limbs = tuple(a.limb_bits for _, a in sink.aggregates) if isinstance(sink, Group | Reduce) else ()
    key = ("units", stage.number, target, layout, limbs, pipeline.rows >= WIDE, counts)
    found = program.memory.get(key)
    if found is None:
        found = program.memory[key] = units(pipeline, target, counts)
    return cast(tuple[Unit, ...], found)


def _is_ready(program: Program, stage: Stage, pipeline: Pipeline, target: str) -> bool:
    ready = get_target(target).is_ready
    return all(ready(u.kernel) for u in _units(program, stage, pipeline, target))


class _Runner:
    """One pipeline, run until its sink is large enough."""

    def __init__(
        self, state: Run, stage: Stage, pipeline: Pipeline, frame: Frame, name: str, report: StageReport
    ) -> None:
        self.state, self.stage, self.pipeline, self.frame, self.name = state, stage, pipeline, frame, name
        self.label, self.report = stage.label, report
        self._switched: dict[int, int] = {}  # for each partition the row at which the interpreter handed over

    def run(self) -> Frame | JoinIndex:
        while True:
            context = self.state.context
            self.device = (
                context.device if self.name == "cuda" else cpu_device() if context.device.is_cuda else context.device
            )
            sink = self._sink()
            made = _units(self.state.program, self.stage, self.pipeline, self.name, context.counts)
            self.units = {u.role: u for u in made}
            self.counters = self.device.zeros(len(self.pipeline.steps) + 1, "int64") if context.counts else None
            self.status = {
                role: self.device.zeros(max(1, -(-len(u.sites) // 32)), "uint32") for role, u in self.units.items()
            }
            for step in self.pipeline.steps:
                if isinstance(step, Probe) and step.records_matches:
                    rows = self.state.joins[step.table.stage].frame.rows
                    self.state.matched[step.table.stage] = self.device.zeros(max(rows, 1), "uint8", self.label)
            partitions = place(self.frame.rows, self._partitions(), UNIT, self.device)
            run = self._run_range if context.meter is None else self._measured_range
            states = run_partitions(sink, partitions, sink.launch.workers, run)
            if not self._full(sink):
                if self.counters is not None and context.meter is not None:
                    context.meter.steps[self.stage.number] = self.device.to_host(self.counters).tolist()
                result = sink.finish(states)
                if self.name == "python":
                    host.reset_arena()
                return result
            self.report.attempts += 1

    def _partitions(self) -> int:
        sink = self.pipeline.sink
        alone = isinstance(sink, Group) and sink.layout == "rows"
        return 1 if alone else self.state.context.settings.partitions

    def _sink(self) -> SinkRun:
        """The sink at run time."""
        sink, rows = self.pipeline.sink, self.frame.rows
        workers = self._workers(rows)
        launch = Launch(self.device, rows, workers, UNIT, self.name == "cuda")
        match sink:
            case Collect():
                mode = collect.collect_mode(self.pipeline.steps, self.name == "cuda")
                return CollectRun(sink, mode, launch, self.label)
            case Reduce():
                return ReduceRun(sink, launch, self.label)
            case Group():
                if sink.layout == "rows":
                    bulk.check_rows(rows)
                made = GroupRun(sink, launch, self.label, self.frame)
                if sink.layout != "direct":
                    grown = self.state.program.memory.get(("capacity", self.stage.number), 0)
                    made.capacity = max(made.capacity, grown)
                return made
            case Build(table):
                bulk.check_rows(rows)
                return BuildRun(table, launch, self.label, self.frame, self._wants_nulls(table.stage))
            case _:
                assert_never(sink)

    def _wants_nulls(self, number: int) -> bool:
        works = [s.work for s in self.state.program.stages]
        steps = [step for w in works if isinstance(w, Pipeline) for step in w.steps]
        return any(isinstance(s, Probe) and s.table.stage == number and s.null_key for s in steps)

    def _workers(self, rows: int) -> int:
        if self.name != "cpu":
            return 1
        sink = self.pipeline.sink
        if isinstance(sink, Group) and sink.layout == "rows":
            return 1
        return max(1, min(self.state.context.settings.worker_count, -(-rows // MORSEL)))

    def _full(self, sink: SinkRun) -> bool:
        """Whether a table was full and the pipeline is to run again; raises what else the status block says."""
        retry = False
        for role, unit in self.units.items():
            words = self.device.to_host(self.status[role])
            for n, site in enumerate(unit.sites):
                if not int(words[n >> 5]) >> (n & 31) & 1:
                    continue
                if not site.retry:
                    raise site.error(site.message)
                retry = True
        if not retry:
            return False
        if not sink.grow():
            raise InternalError(f"{self.label}: a hash table of its largest size is full")
        assert isinstance(sink, GroupRun)
        self.state.program.memory["capacity", self.stage.number] = sink.capacity  # later runs begin with it
        return True

    # ---- one kernel over one partition ----

    def _measured_range(self, role: str, partition: Placed, states: Sequence[State]) -> None:
        """The same with a report. What is not the kernel's own time is done before: compiling, copies to the device."""
        unit, meter, target = self.units[role], self.state.context.meter, get_target(self.name)
        assert meter is not None
        ready = target.is_ready(unit.kernel)
        start = time.perf_counter()
        compiled = target.compile(unit.kernel)
        self.report.compile_seconds += time.perf_counter() - start
        bound = [(p.name, unit.bindings[p.name]) for p in unit.kernel.parameters]
        arrays = [(name, b, self._value(unit, b, states[0])) for name, b in bound]
        rows = partition.hi - partition.lo
        traffic = traffic_of(arrays, unit.shares, rows, self.frame.rows, role, self.name)
        arrays.clear()
        report = meter.kernel(self.stage.number, role, target, compiled, ready)
        meter.launch(report, traffic, lambda: self._run_range(role, partition, states))

    def _run_range(self, role: str, partition: Placed, states: Sequence[State]) -> None:
        unit = self.units[role]
        target: Any = get_target(self.name)
        start = time.perf_counter()
        with stopwatch.part("compile"):
            compiled = target.compile(unit.kernel)
        self.report.compile_seconds += time.perf_counter() - start
        distinct = [states[0]] if states[0] is states[-1] else list(states)
        arguments = [tuple(target.argument(p, v) for p, v in self._values(unit, s)) for s in distinct]
        if self.name == "cpu":
            if len(arguments) < len(states):
                arguments *= len(states)
            self._run_morsels(compiled, partition.lo, partition.hi, arguments)
        elif self.name == "python":
            self._interpret(target, unit, partition, states[0], arguments[0])
        else:
            words = 0
            if unit.kernel.uses_private:
                sink = self.pipeline.sink
                assert isinstance(sink, Group) and sink.packing is not None
                words = sink.packing.size * len(sink.folds)
            step = self._rows_at_once(GPU_STEPS, partition.hi - partition.lo)
            for lo in range(partition.lo, partition.hi, step):
                check()
                target.run(compiled, lo, min(lo + step, partition.hi), arguments[0], words)
                if lo + step < partition.hi:
                    self.device.synchronize()

    def _run_morsels(self, compiled: Any, lo: int, hi: int, arguments: Sequence[Any]) -> None:
        """Run rows on threads of the CPU, until the query is interrupted."""
        token, watch = current(), stopwatch.current()
        cpu: Any = get_target("cpu")
        step = self._rows_at_once(CPU_STEPS, MORSEL)
        taken = lo

        def is_stopped() -> bool:  # asked before each morsel, under the scheduler's lock
            nonlocal taken
            if watch is not None:
                watch.advance(taken / self.frame.rows)
            taken += step
            return token is not None and token.is_stopped()

        cpu.run_morsels(compiled, lo, hi, arguments, step, is_stopped)
        check()

    def _rows_at_once(self, steps: int, most: int) -> int:
        """Rows between two looks at whether the query is interrupted: fewer where each meets all rows of a build side."""
        inner = 1
        for step in self.pipeline.steps:
            if isinstance(step, Probe) and step.table.layout == "loop":
                inner *= max(1, self.state.joins[step.table.stage].frame.rows)
        least = UNIT if isinstance(self.pipeline.sink, Collect) else 1
        return max(1, min(most, max(least, steps // inner // least * least)))

    def _interpret(self, target: Any, unit: Unit, partition: Placed, state: State, arguments: Sequence[Any]) -> None:
        """Run one unit of rows after another; if that takes longer than it should, the rest is compiled for the CPU, whose
        states are laid out alike. A kernel that writes what another one counted goes over at the same row: a count covers
        the rows of one call."""
        compiled = target.compile(unit.kernel)
        may_switch = self.pipeline.host is None and self.state.context.target != "python"
        key = ("interpreted", self.stage.number)
        start = time.perf_counter()
        unit_rows = self._rows_at_once(PYTHON_STEPS, UNIT)
        agreed = self._switched.pop(partition.lo, None) if unit.role == "write" else None
        for lo in range(partition.lo, partition.hi, unit_rows):
            check()
            target.run(compiled, lo, min(lo + unit_rows, partition.hi), arguments)
            due = time.perf_counter() - start > TRIAL_SECONDS if agreed is None else lo + unit_rows == agreed
            if may_switch and due and lo + unit_rows < partition.hi:
                self._switched[partition.lo] = lo + unit_rows
                cpu: Any = get_target("cpu")
                again = [cpu.argument(p, v) for p, v in self._values(unit, state)]
                with stopwatch.part("compile"):
                    compiled = cpu.compile(unit.kernel)
                self._run_morsels(compiled, lo + unit_rows, partition.hi, [tuple(again)])
                break
        memory = self.state.program.memory
        memory[key] = memory.get(key, 0.0) + time.perf_counter() - start

    def _values(self, unit: Unit, state: State) -> Iterator[tuple[Parameter, Any]]:
        """What each parameter of a kernel stands for: an array, or a number."""
        for parameter in unit.kernel.parameters:
            value = self._value(unit, unit.bindings[parameter.name], state)
            if not parameter.is_pointer and not isinstance(value, int | float):
                value = 0 if value is None or value.size == 0 else _address(value)
            yield parameter, value

    def _value(self, unit: Unit, binding: Binding, state: State) -> Any:
        match binding:
            case Constant(value):
                return value
            case Content(buffer):
                return buffer.on(self.device)
            case ColumnPart(owner, column, part):
                frame = self.frame if owner is None else self.state.joins[owner].frame
                stored = frame.columns[column]
                buffer_ = {"data": stored.data, "validity": stored.validity, "characters": stored.characters}[part]
                return None if buffer_ is None else buffer_.on(self.device, self.label)
            case BuildPart(number, "matched"):
                return self.state.matched[number]
            case BuildPart(number, part):
                found = self.state.joins[number].parts[part]
                return found.on(self.device, self.label) if isinstance(found, Buffer) else found
            case StatePart("status"):
                return self.status[unit.role]
            case StatePart("counters"):
                return self.counters
            case StatePart(part):
                return state[part]
            case _:
                assert_never(binding)


def _address(array: Any) -> int:
    return int(array.ctypes.data) if isinstance(array, np.ndarray) else int(array.data.ptr)


def _bulk_device(state: Run, work: Bulk) -> Device:
    """Where a bulk operation runs: small frames on the host, large ones where their columns lie."""
    context = state.context
    if not context.device.is_cuda:
        return context.device
    rows = sum(state.frames[n].rows for n in _inputs(work) if n in state.frames)
    return cpu_device() if rows < context.settings.interpret_limit else context.device
