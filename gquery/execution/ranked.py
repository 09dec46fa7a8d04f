"""A program on several ranks: all run the same stages, each on a device of its own over its part of the rows.

Ranks are threads of this process. A rank has a run, feedback and a device; with others it shares a `Comm` and nothing else. One
that fails ends all: the first error is raised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from itertools import combinations
from typing import cast

from gquery import tuning
from gquery.columns.table import Table
from gquery.device.array import Array
from gquery.device.peer import has_peer_access
from gquery.distributed.cheapest_cuts import cheapest
from gquery.distributed.cuts import Cuts, LoadedPlaces, cut_tables, located_by
from gquery.distributed.divide_groups import groups_divided
from gquery.distributed.divide_joins import divided
from gquery.distributed.localize import localized
from gquery.distributed.placement import place
from gquery.distributed.ranks import Ranks
from gquery.distributed.stage_placement import Placement
from gquery.distributed.transport import Comm, RankAbortedError, run_ranks
from gquery.errors import InterruptError
from gquery.execution.exchange import gathered
from gquery.execution.feedback import RankedFeedback, RunFeedback
from gquery.execution.measure import Meter
from gquery.execution.prepare import prepare
from gquery.execution.run_stages import reading_scalars, result_of, run_stages
from gquery.execution.speculation import MisspeculationError, Speculation
from gquery.execution.state import ExecutionContext, Rank, Run, StageReport
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import AbortableTarget
from gquery.planner.physical import Program
from gquery.runtime.records import replace
from gquery.runtime.tuples import NamedTuple


def ranked(program: Program, ranks: int, feedback: RunFeedback) -> RankedFeedback:
    """How so many ranks run a program; found out once. Its tables are loaded."""
    known = feedback.ranked
    if known is not None and known.program is program and len(known.ranks) == ranks:
        return known
    cuts = _cuts(program, ranks)
    placement = place(program, lambda read: located_by(cuts, read), Ranks.of_devices(ranks))
    programs = tuple([localized(program, placement, rank) for rank in range(ranks)])
    of_ranks = tuple([feedback.for_rank() for _ in programs])
    made = feedback.ranked = RankedFeedback(program, programs, cuts, placement, of_ranks)
    return made


def for_ranks(program: Program, context: ExecutionContext) -> Program:
    """The program as several ranks run it, with large joins and many groups divided among them; itself where one device has all
    rows."""
    ranks = len(context.ranks)
    return all_divided(program, Ranks.of_devices(ranks), _cuts(program, ranks)) if ranks else program


def all_divided(program: Program, ranks: Ranks, cuts: Cuts) -> Program:
    """The program with large joins and many groups divided among ranks, where that makes it cheaper."""
    return groups_divided(divided(program, ranks, cuts), ranks, cuts)


def _cuts(program: Program, ranks: int) -> Cuts:
    """Where its tables are cut. Small ones that are joined with a large one are, by sorted columns, if that is cheaper."""
    limits, places = tuning.distribution, LoadedPlaces(ranks)

    def cut(joined_bytes: int | None, by_groups: bool) -> Cuts:
        return cut_tables(program, places, limits.replicated_bytes, limits.alone_bytes, joined_bytes, by_groups)

    return cheapest(program, Ranks.of_devices(ranks), cut, limits.joined_bytes)


def run_ranked(made: RankedFeedback, context: ExecutionContext) -> tuple[Table, list[StageReport]]:
    """The result of a program on a device for each rank, but for what is fetched last, and what the stages did."""
    try:
        return run_all(made, context, not may_speculate(context))
    except MisspeculationError:
        for known in made.ranks:
            known.misspeculated()
        return run_all(made, context, waits=True)


def may_speculate(context: ExecutionContext) -> bool:
    """Whether ranks take numbers as they were in the run before: each looks at the abort flags of the others in their memory."""
    pairs = combinations(context.ranks, 2)
    return context.meter is None and all(a.is_cuda and b.is_cuda and has_peer_access(a, b) for a, b in pairs)


def run_all(made: RankedFeedback, context: ExecutionContext, waits: bool) -> tuple[Table, list[StageReport]]:
    """The result, but for what is fetched last; MisspeculationError where a rank took a number for another one."""
    devices = context.ranks
    workers = max(1, context.settings.worker_count // len(devices))
    settings = replace(context.settings, threads=workers)
    meters = [None if context.meter is None else Meter(d, context.meter.counts) for d in devices]

    known = dict(made.heavy)

    def work(comm: Comm) -> _Ran:
        own = replace(context, device=devices[comm.rank], settings=settings, meter=meters[comm.rank], ranks=())
        return _run_rank(made, own, Rank(comm, made.placement, made.cuts, heavy=dict(known)), waits)

    ran = run_ranks(work, len(devices))
    made.heavy.update(ran[0].heavy)
    table, reports = ran[0].table, reports_of([r.reports for r in ran], made.placement)
    assert table is not None
    if context.meter is not None:
        measure(context.meter, [m for m in meters if m is not None], made.placement)
    return table, reports


def reports_of(of_ranks: Sequence[list[StageReport]], placement: Placement) -> list[StageReport]:
    """What the stages did: the first rank's reports, with the rows of all ranks and with their reports."""
    made = []
    for stages, placed in zip(zip(*of_ranks, strict=True), placement, strict=True):
        first = stages[0]
        is_divided = placed.reads == "part" and not placed.alone
        rows = sum(r.rows for r in stages) if is_divided else first.rows
        made.append(replace(first, rows=rows, of_ranks=stages))
    return made


def measure(meter: Meter, of_ranks: Sequence[Meter], placement: Placement) -> None:
    """What the meter of a run has of its ranks: rows are those of all, times those of the first one."""
    first = of_ranks[0]
    meter.kernels, meter.peak_bytes = first.kernels, max(m.peak_bytes for m in of_ranks)
    for number, placed in enumerate(placement):
        if number in first.steps:
            parts = [m.steps[number] for m in of_ranks] if placed.reads == "part" else [first.steps[number]]
            meter.steps[number] = [sum(counts) for counts in zip(*parts, strict=True)]
        if number in first.rows_out:
            own = [first] if placed.makes == "whole" else of_ranks
            meter.rows_out[number] = sum(m.rows_out[number] for m in own)


class _Ran(NamedTuple):
    """What a rank has made. ``handed_over`` is kept until all ranks have ended, since others may read it."""

    table: Table | None  # the first rank's alone
    reports: list[StageReport]
    handed_over: object
    heavy: Mapping[int, Array]


def _run_rank(made: RankedFeedback, context: ExecutionContext, rank: Rank, waits: bool) -> _Ran:
    feedback, program = made.ranks[rank.comm.rank], made.programs[rank.comm.rank]
    state = Run(program, context, feedback, Speculation(feedback, context.device, waits), rank=rank)
    cuda = cast(AbortableTarget, get_target("cuda")) if context.device.stays else None
    try:
        with nullcontext() if cuda is None else cuda.without_drafts():
            table = run_rank_stages(state, rank)
        state.speculation.validate_all()
        context.device.synchronize()
    except (InterruptError, KeyboardInterrupt, MisspeculationError, RankAbortedError):
        context.device.synchronize()  # what others read of this rank, and what it reads of others, stays until then
        raise
    except Exception:
        if waits or not state.speculation.has_failed():
            context.device.synchronize()
            raise
        raise MisspeculationError from None  # it comes of arrays that aborted kernels did not write
    return _Ran(table, state.reports, rank.handed_over, rank.heavy)


def run_rank_stages(state: Run, rank: Rank, has_run: bool = False) -> Table | None:
    """Run all stages of a rank. The result is the first rank's alone; what was speculated is not validated yet. Where all ranks
    know that the program ``has_run``, nobody waits for kernels that another compiles."""
    program = state.program
    if rank.comm.rank == 0:
        with reading_scalars(state):
            prepare(state)
    if not has_run:
        rank.comm.agree("kernels", True)  # those of one are those of all
    run_stages(state, 0, len(program.stages))
    last = len(program.stages) - 1
    if rank.placement[last].makes == "part":
        with reading_scalars(state):
            state.frames[last] = gathered(state, rank, last, state.frames[last], only_first=True)
    return result_of(program, state.frames) if rank.comm.rank == 0 else None
