"""One pipeline over all its rows: the kernels' parameters are resolved, partitions and workers run, the status block is read
once. A pipeline whose table was full is run again with a larger one; stages never mutate their inputs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, assert_never

import numpy as np

from gquery import tuning
from gquery.device.buffer import Buffer
from gquery.device.device import cpu_device
from gquery.distributed.place import Placed, place
from gquery.distributed.schedule import RunRange, run_partitions
from gquery.errors import InternalError
from gquery.execution.measure import traffic_of
from gquery.execution.speculation import raised
from gquery.execution.state import Run, StageReport
from gquery.execution.variants import output_of, units_of
from gquery.expression.facts import BITMAP_BITS
from gquery.kernels import checks, host
from gquery.kernels.bindings import Binding, BuildPart, ColumnPart, Constant, Content, StatePart
from gquery.kernels.builtin import scans
from gquery.kernels.kernel import Parameter
from gquery.kernels.targets import get_target
from gquery.kernels.targets.capabilities import capabilities
from gquery.operators import materialize
from gquery.operators.base import Frame, JoinIndex, Launch, SinkRun, State
from gquery.operators.codegen import Unit
from gquery.operators.group import GroupRun
from gquery.operators.join_table import BuildRun
from gquery.operators.materialize import MaterializeRun
from gquery.operators.reduce import ReduceRun
from gquery.planner.physical import (
    Build,
    Group,
    Materialize,
    Pipeline,
    Probe,
    Reduce,
    Stage,
)
from gquery.runtime import stopwatch
from gquery.runtime.interrupt import check, current


class Runner:
    """One pipeline, run until its sink is large enough."""

    def __init__(
        self, state: Run, stage: Stage, pipeline: Pipeline, frame: Frame, name: str, report: StageReport
    ) -> None:
        self.state, self.stage, self.pipeline, self.frame, self.name = state, stage, pipeline, frame, name
        self.target = capabilities(name)
        self.label, self.report = stage.label, report
        self._switched: dict[int, int] = {}  # for each partition the row at which the interpreter handed over

    def run(self) -> Frame | JoinIndex:
        while True:
            context = self.state.context
            self.device = (
                context.device
                if self.target.has_own_memory
                else cpu_device()
                if context.device.is_cuda
                else context.device
            )
            sink = self._sink()
            made = units_of(self.state.feedback, self.stage.number, self.pipeline, self.name, context.counts)
            self.units = {u.role: u for u in made}
            self.counters = self.device.zeros(len(self.pipeline.steps) + 1, "int64") if context.counts else None
            self.status: dict[str, Any] = {}
            self.looked_at: list[str] = []  # roles whose errors are looked at as soon as the stage has ended
            for role, unit in self.units.items():
                self.status[role] = self._status(role, unit)
            for step in self.pipeline.steps:
                if isinstance(step, Probe) and step.records_matches:
                    rows = self.state.joins[step.table.stage].frame.rows
                    self.state.matched[step.table.stage] = self.device.zeros(max(rows, 1), "uint8", self.label)
            run = self._run_range if context.meter is None else self._measured_range
            rows = self.frame.rows if "select" not in self.units else self._select(run)
            partitions = place(rows, self._partitions(), tuning.materialization.unit, self.device)
            states = run_partitions(sink, partitions, sink.launch.workers, run)
            if not self._full(sink):
                if self.counters is not None and context.meter is not None:
                    context.meter.steps[self.stage.number] = self.device.to_host(self.counters).tolist()
                result = sink.finalize(states)
                if self.target.is_interpreted:
                    host.reset_arena()
                if self.target.runs_morsels and isinstance(sink, GroupRun) and isinstance(result, Frame):
                    self.state.feedback.made_groups(self.stage.number, result.rows)
                return result
            self.report.attempts += 1

    def _status(self, role: str, unit: Unit) -> Any:
        """Words for the errors of a kernel; none where it has none. They are looked at when the stage has ended, or with those
        of the others when the query has."""
        if not unit.sites:
            return None
        later = self.state.speculation.status(unit.sites) if self.target.has_own_memory else None
        if later is not None:
            return later
        self.looked_at.append(role)
        return self.device.zeros(-(-len(unit.sites) // BITMAP_BITS), "uint32")

    def _select(self, run: RunRange) -> int:
        """Find the rows that get past the first steps; how many there are."""
        rows = self.frame.rows
        bits = self.device.empty(-(-rows // BITMAP_BITS), "uint32", self.label)
        for partition in place(rows, self._partitions(), tuning.materialization.unit, self.device):
            run("select", partition, [{"bits": bits}])
        self.selection = scans.rows_of_bits(bits)
        return int(self.selection.size)

    def _partitions(self) -> int:
        sink = self.pipeline.sink
        alone = isinstance(sink, Group) and sink.layout == "row-id hash"
        return 1 if alone else self.state.context.settings.partitions

    def _sink(self) -> SinkRun:
        """The sink at run time."""
        sink, rows = self.pipeline.sink, self.frame.rows
        workers = self._workers(rows)
        launch = Launch(self.device, rows, workers, tuning.materialization.unit, self.target)
        match sink:
            case Materialize():
                mode = materialize.materialize_mode(self.pipeline.steps, self.target.has_warps)
                return MaterializeRun(sink, mode, launch, self.label, materialize.share(self.pipeline.steps))
            case Reduce():
                return ReduceRun(sink, launch, self.label)
            case Group():
                if sink.layout == "row-id hash":
                    scans.check_rows(rows)
                output = output_of(self.state.feedback, self.stage.number, sink, self.name)
                made = GroupRun(sink, launch, self.label, self.frame, output)
                if sink.layout != "direct-address":
                    known = self.state.feedback.stage(self.stage.number)
                    if self.target.runs_morsels and known.groups is not None:
                        made.expect(known.groups)
                    made.capacity = max(made.capacity, known.capacity)
                return made
            case Build(table):
                scans.check_rows(rows)
                return BuildRun(table, launch, self.label, self.frame, self._wants_nulls(table.stage))
            case _:
                assert_never(sink)

    def _wants_nulls(self, number: int) -> bool:
        works = [s.work for s in self.state.program.stages]
        steps = [step for w in works if isinstance(w, Pipeline) for step in w.steps]
        return any(isinstance(s, Probe) and s.table.stage == number and s.null_key for s in steps)

    def _workers(self, rows: int) -> int:
        if not self.target.runs_morsels:
            return 1
        sink = self.pipeline.sink
        if isinstance(sink, Group) and sink.layout == "row-id hash" and not sink.concurrent:
            return 1
        return max(1, min(self.state.context.settings.worker_count, -(-rows // tuning.threads.morsel_rows)))

    def _full(self, sink: SinkRun) -> bool:
        """Whether a table was full and the pipeline is to run again; raises what else the status block says."""
        retry = False
        for role in self.looked_at:
            for site in raised(self.device.to_host(self.status[role]), self.units[role].sites):
                if not site.retry:
                    raise site.error(site.message)
                retry = True
        if not retry:
            return False
        if not sink.grow():
            raise InternalError(f"{self.label}: a hash table of its largest size is full")
        assert isinstance(sink, GroupRun)
        self.state.feedback.grew(self.stage.number, sink.capacity)
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
        if self.target.runs_morsels:
            if len(arguments) < len(states):
                arguments *= len(states)
            self._run_morsels(compiled, partition.lo, partition.hi, arguments)
        elif self.target.is_interpreted:
            self._interpret(target, unit, partition, states[0], arguments[0])
        else:
            step = self._rows_at_once(tuning.interpreting.loop_steps_gpu, partition.hi - partition.lo)
            for lo in range(partition.lo, partition.hi, step):
                check()
                target.run(compiled, lo, min(lo + step, partition.hi), arguments[0], unit.shared_words)
                if lo + step < partition.hi:
                    self.device.synchronize()

    def _run_morsels(self, compiled: Any, lo: int, hi: int, arguments: Sequence[Any]) -> None:
        """Run rows on threads of the CPU, until the query is interrupted."""
        token, watch = current(), stopwatch.current()
        cpu: Any = get_target("cpu")
        step = self._rows_at_once(tuning.interpreting.loop_steps_cpu, tuning.threads.morsel_rows)
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
        least = tuning.materialization.unit if isinstance(self.pipeline.sink, Materialize) else 1
        return max(1, min(most, max(least, steps // inner // least * least)))

    def _interpret(self, target: Any, unit: Unit, partition: Placed, state: State, arguments: Sequence[Any]) -> None:
        """Run one unit of rows after another; if that takes longer than it should, the rest is compiled for the CPU, whose
        states are laid out alike. A kernel that writes what another one counted goes over at the same row: a count covers
        the rows of one call."""
        compiled = target.compile(unit.kernel)
        may_switch = self.pipeline.host is None and not capabilities(self.state.context.target).is_interpreted
        start = time.perf_counter()
        unit_rows = self._rows_at_once(tuning.interpreting.loop_steps, tuning.materialization.unit)
        agreed = self._switched.pop(partition.lo, None) if unit.role == "write" else None
        for lo in range(partition.lo, partition.hi, unit_rows):
            check()
            target.run(compiled, lo, min(lo + unit_rows, partition.hi), arguments)
            due = (
                time.perf_counter() - start > tuning.interpreting.trial_seconds
                if agreed is None
                else lo + unit_rows == agreed
            )
            if may_switch and due and lo + unit_rows < partition.hi:
                self._switched[partition.lo] = lo + unit_rows
                cpu: Any = get_target("cpu")
                again = [cpu.argument(p, v) for p, v in self._values(unit, state)]
                with stopwatch.part("compile"):
                    compiled = cpu.compile(unit.kernel)
                self._run_morsels(compiled, lo + unit_rows, partition.hi, [tuple(again)])
                break
        self.state.feedback.interpreted(self.stage.number, time.perf_counter() - start)

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
            case StatePart("selection"):
                return self.selection
            case StatePart(part):
                return state[part]
            case _:
                assert_never(binding)


def _address(array: Any) -> int:
    if not isinstance(array, np.ndarray):
        return int(array.data.ptr)
    address = int(array.ctypes.data)
    return checks.span_of(address, array.nbytes) if checks.ENABLED else address
