"""One pipeline over all its rows: an attempt has its kernels run over partitions by workers, and its status block read once.
An attempt whose table was full is followed by one with a larger table; stages never mutate their inputs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import cast

from gquery import tuning
from gquery.device.array import Array
from gquery.device.device import cpu_device
from gquery.distributed.place import Placed, place
from gquery.distributed.schedule import RunRange, run_partitions
from gquery.errors import InternalError
from gquery.execution.attempt import Attempt
from gquery.execution.decision import Decision
from gquery.execution.measure import traffic_of
from gquery.execution.sinks import sink_of
from gquery.execution.speculation import raised
from gquery.execution.state import Run, StageReport
from gquery.execution.streamed import on_host, stream, streamed_parts
from gquery.expression.facts import BITMAP_BITS
from gquery.kernels.builtin import scans
from gquery.kernels.registers import reset_arena
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import AbortableTarget, Compiled, MorselTarget
from gquery.kernels.targets.capabilities import capabilities
from gquery.kernels.targets.python import make_ready
from gquery.kernels.targets.python_pace import looking
from gquery.operators.base import Frame, JoinIndex, OutgrownError, SinkRun, SinkState
from gquery.operators.codegen import Unit
from gquery.operators.materialize import MaterializeState
from gquery.operators.scan_ranges import Ranges, ScanRanges
from gquery.planner.physical import Group, Materialize, Probe, Stage
from gquery.runtime import stopwatch
from gquery.runtime.interrupt import check, current
from gquery.runtime.records import replace


class Runner:
    """One pipeline, run until its sink is large enough."""

    def __init__(
        self, state: Run, stage: Stage, decision: Decision, frame: Frame, scan: ScanRanges, report: StageReport
    ) -> None:
        self.state, self.stage, self.frame, self.scan, self.decision = state, stage, frame, scan, decision
        self.pipeline, self.name, self.target = decision.runs.pipeline, decision.runs.target, decision.able
        self.label, self.report = stage.label, report
        device = state.context.device
        self.device = cpu_device() if device.is_cuda and not self.target.has_own_memory else device
        self._switched: dict[int, int] = {}  # for each partition the row at which the interpreter handed over

    def run(self) -> Frame | JoinIndex:
        """What the pipeline made."""
        context = self.state.context
        while True:
            attempt = self._begin()
            if "select" in attempt.units:
                attempt = self._select(attempt)
            sink = sink_of(attempt, self.stage, self.decision)
            rows = self.frame.rows if attempt.selection is None else int(attempt.selection.size)
            partitions = place(rows, self._partitions(), tuning.materialization.unit, self.device)
            run_partitions(sink, partitions, sink.launch.workers, self._range(attempt))
            if self._full(attempt, sink):
                self.report.attempts += 1
                continue
            if attempt.counters is not None and context.meter is not None:
                counted = self.device.to_host(attempt.counters) if attempt.units else [rows]  # all go into a table as they lie
                context.meter.steps[self.stage.number] = list(map(int, counted))
            result = sink.finalize()
            if self.target.is_interpreted:
                reset_arena()
            if self.target.runs_morsels and isinstance(self.pipeline.sink, Group) and isinstance(result, Frame):
                self.state.feedback.made_groups(self.stage.number, result.rows)
            return result

    def _begin(self) -> Attempt:
        """A new attempt, before its first kernel."""
        counts = self.state.context.counts
        made = self.decision.units
        counters = self.device.zeros(len(self.pipeline.steps) + 1, "int64") if counts else None
        status: dict[str, Array | None] = {}
        looked_at: list[str] = []
        for unit in made:
            later = self.state.speculation.status(unit.sites) if unit.sites and self.target.has_own_memory else None
            if unit.sites and later is None:
                looked_at.append(unit.role)
                later = self.device.zeros(-(-len(unit.sites) // BITMAP_BITS), "uint32")
            status[unit.role] = later
        for step in self.pipeline.steps:
            if isinstance(step, Probe) and step.records_matches:
                rows = self.state.joins[step.table.stage].frame.rows
                self.state.matched[step.table.stage] = self.device.zeros(max(rows, 1), "uint8", self.label)
        units = {u.role: u for u in made}
        return Attempt(
            self.state,
            self.frame,
            self.label,
            self.device,
            units,
            status,
            tuple(looked_at),
            counters,
            self.scan,
            self.frame.number,
        )

    def _range(self, attempt: Attempt) -> RunRange:
        """What runs one kernel over one partition."""
        return partial(self._run_range if self.state.context.meter is None else self._measured_range, attempt)

    def _select(self, attempt: Attempt) -> Attempt:
        """The attempt with the rows that get past the first steps."""
        rows, run = self.frame.rows, self._range(attempt)
        make = self.device.empty if self.frame.number is None else self.device.zeros
        bits = make(-(-rows // BITMAP_BITS), "uint32", self.label)
        for partition in place(rows, self._partitions(), tuning.materialization.unit, self.device):
            run("select", partition, [MaterializeState(tuning.materialization.unit, bits)])
        selection, count = scans.counted_rows_of_bits(bits, rows, behind=rows)  # where the last segment ends
        scan = ScanRanges(((0, count.bound),))
        return replace(attempt, selection=selection, scan=scan, number=count.number)

    def _partitions(self) -> int:
        sink = self.pipeline.sink
        alone = isinstance(sink, Group) and sink.layout == "row-id hash"
        return 1 if alone else self.state.context.settings.partitions

    def _full(self, attempt: Attempt, sink: SinkRun[SinkState]) -> bool:
        """Whether a table was full and the pipeline is to run again; raises what else the status block says."""
        retry = False
        for role in attempt.looked_at:
            status = attempt.status[role]
            assert status is not None
            for site in raised(self.device.to_host(status), attempt.units[role].sites):
                if not site.retry:
                    raise site.error(site.message)
                retry = True
        if not retry:
            return False
        if not sink.grow():
            raise InternalError(f"{self.label}: a hash table of its largest size is full")
        from gquery.operators.group import GroupRun  # queries without groups do without

        assert isinstance(sink, GroupRun)
        self.state.feedback.grew(self.stage.number, sink.capacity)
        return True

    # ---- one kernel over one partition ----

    def _measured_range(self, attempt: Attempt, role: str, partition: Placed, states: Sequence[SinkState]) -> None:
        """The same with a report. What is not the kernel's own time is done before: compiling, copies to the device."""
        unit, meter, target = attempt.units[role], self.state.context.meter, get_target(self.name)
        assert meter is not None
        ready = target.is_ready(unit.kernel)
        start = time.perf_counter()
        compiled = target.compile(unit.kernel)
        self.report.compile_seconds += time.perf_counter() - start
        measured = on_host(attempt, streamed_parts(attempt, unit, self.pipeline))
        arrays = [(p.name, b, measured.value(unit, b, states[0])) for p, b in unit.parameters]
        rows = sum(hi - lo for lo, hi in attempt.scan.within(partition.lo, partition.hi))
        traffic = traffic_of(arrays, unit.selectivities, rows, self.frame.rows, role, self.name)
        arrays.clear()
        report = meter.kernel(self.stage.number, role, target, compiled, ready)
        meter.launch(report, traffic, lambda: self._run_range(attempt, role, partition, states))

    def _run_range(self, attempt: Attempt, role: str, partition: Placed, states: Sequence[SinkState]) -> None:
        unit = attempt.units[role]
        target = get_target(self.name)
        start = time.perf_counter()
        with stopwatch.part("compile"):
            compiled = target.compile(unit.kernel)
        self.report.compile_seconds += time.perf_counter() - start
        ranges = attempt.scan.within(partition.lo, partition.hi)
        parts = streamed_parts(attempt, unit, self.pipeline)
        if not parts:
            self._run_kernel(attempt, unit, compiled, ranges, states)
            return
        self.report.streamed_bytes += stream(
            attempt,
            parts,
            ranges,
            self.pipeline,
            lambda part, rows: self._run_kernel(part, unit, compiled, rows, states),
        )

    def _run_kernel(
        self, attempt: Attempt, unit: Unit, compiled: Compiled, ranges: Ranges, states: Sequence[SinkState]
    ) -> None:
        target = get_target(self.name)
        distinct = [states[0]] if states[0] is states[-1] else list(states)
        arguments = [attempt.arguments(unit, s, target) for s in distinct]
        if self.target.runs_morsels:
            if len(arguments) < len(states):
                arguments *= len(states)
            self._run_morsels(compiled, ranges, arguments, self._failure(attempt, unit))
        elif self.target.is_interpreted:
            self._interpret(attempt, unit, ranges, states[0], arguments[0])
        else:
            number = attempt.number
            with nullcontext() if number is None else cast(AbortableTarget, target).limited_to(number):
                self._run_windows(attempt, unit, ranges, states[0], arguments[0])

    def _run_windows(
        self, attempt: Attempt, unit: Unit, ranges: Ranges, state: SinkState, arguments: list[object]
    ) -> None:
        """Queue a GPU's launches of a kernel over ranges of rows: one for each window, or several where rows take long."""
        target = get_target(self.name)
        compiled = target.compile(unit.kernel)
        step = self._rows_at_once(tuning.interpreting.loop_steps_gpu, max((b - a for a, b in ranges), default=1))
        for part in state.each_window():
            given = arguments if part.windows == 1 else attempt.arguments(unit, part, target)
            for first, last in ranges:
                for lo in range(first, last, step):
                    check()
                    target.run(compiled, lo, min(lo + step, last), given, unit.shared_words)
                    if lo + step < last:
                        attempt.device.synchronize()

    def _failure(self, attempt: Attempt, unit: Unit) -> Callable[[], bool]:
        """Says whether the attempt has failed, so that no more rows need be run: a table of groups is full, or a value does not
        fit. Other sinks go on, and so does the kernel that selects rows, since what comes behind them counts on all rows."""
        status = attempt.status[unit.role]
        if status is None or not isinstance(self.pipeline.sink, Group) or unit.role != "main":
            return lambda: False
        return lambda: bool(status.any())

    def _run_morsels(
        self, compiled: Compiled, ranges: Ranges, arguments: Sequence[Sequence[object]], failed: Callable[[], bool]
    ) -> None:
        """Run ranges of rows on threads of the CPU, until the query is interrupted or the attempt has failed."""
        token, watch = current(), stopwatch.current()
        cpu = cast(MorselTarget, get_target("cpu"))
        step = self._rows_at_once(tuning.interpreting.loop_steps_cpu, tuning.threads.morsel_rows)
        taken = ranges[0][0] if ranges else 0

        def is_stopped() -> bool:  # asked before each morsel, under the scheduler's lock
            nonlocal taken
            if watch is not None:
                watch.advance(taken / self.frame.rows)
            taken += step
            return (token is not None and token.is_stopped()) or failed()

        cpu.run_morsels(compiled, ranges, arguments, step, is_stopped)
        check()

    def _rows_at_once(self, steps: int, most: int) -> int:
        """Rows between two looks at whether the query is interrupted: fewer where each meets many rows of a build side. Where
        they are materialized, whole units: a count covers one."""
        least = self.decision.unit if isinstance(self.pipeline.sink, Materialize) else 1
        return max(1, min(most, int(steps / self.decision.fan_out)) // least) * least

    def _interpret(
        self, attempt: Attempt, unit: Unit, ranges: Ranges, state: SinkState, arguments: Sequence[object]
    ) -> None:
        """Run one unit of rows after another; if that takes longer than it should, the rest is compiled for the CPU, whose
        states are laid out alike. A kernel that writes what another one counted goes over at the same row: a count covers
        the rows of one call."""
        target = get_target(self.name)
        compiled = target.compile(unit.kernel)
        may_switch = self.pipeline.host is None and not capabilities(self.state.context.target).is_interpreted
        unit_rows = self._rows_at_once(tuning.interpreting.loop_steps, tuning.materialization.unit)
        make_ready(compiled, min(unit_rows, attempt.scan.rows))
        start = time.perf_counter()
        rows_of = ranges[0][0] if ranges else 0  # the partition
        agreed = self._switched.pop(rows_of, None) if unit.role == "write" else None
        failed = self._failure(attempt, unit)

        def look() -> None:  # within a unit
            check()
            if may_switch and time.perf_counter() - start > tuning.interpreting.most_seconds:
                raise OutgrownError

        units = ((lo, min(lo + unit_rows, last)) for first, last in ranges for lo in range(first, last, unit_rows))
        for n, (lo, hi) in enumerate(units, 1):
            check()
            if failed():
                break
            with looking(look):
                target.run(compiled, lo, hi, arguments)
            due = time.perf_counter() - start > tuning.interpreting.trial_seconds if agreed is None else n == agreed
            if may_switch and due and (following := next(units, None)) is not None:
                self._switched[rows_of] = n
                cpu = cast(MorselTarget, get_target("cpu"))
                again = attempt.arguments(unit, state, cpu)
                with stopwatch.part("compile"):
                    compiled = cpu.compile(unit.kernel)
                rest = attempt.scan.within(following[0], ranges[-1][1])
                self._run_morsels(compiled, rest, [again], failed)
                break
        self.state.feedback.interpreted(self.stage.number, time.perf_counter() - start)
