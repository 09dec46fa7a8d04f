"""Replay of a program on several GPUs: all ranks' launches and exchanges are one CUDA graph.

It is recorded by the ranks' threads at the same time, each on the stream of its GPU's arena. A rank waits for marks on others'
streams where it reads what they hand over, so the graph knows what must have run before. It is launched once, on the first GPU,
and no host stands between the ranks any more. Where a rank finds another number than it took, its own launches do nothing from
there on, and those of others from the next exchange on (`Speculation.follow`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import cast

from gquery.columns.table import Table
from gquery.device.arena import Arena, arena_of
from gquery.device.array import Array
from gquery.device.recording import CannotRecordError, RecordingDevice
from gquery.distributed.stage_placement import StagePlacement
from gquery.distributed.transport import Comm, run_ranks
from gquery.execution.exchange import handed_to_each
from gquery.execution.feedback import RankedFeedback, RunFeedback
from gquery.execution.ranked import may_speculate, run_all, run_rank_stages
from gquery.execution.recording import Answer, Inputs, Recording, foreign, inputs_of, laid_out, recording_constants
from gquery.execution.replay import kernels_to_record, may_be_recorded, staying
from gquery.execution.speculation import Speculation
from gquery.execution.state import ExecutionContext, Rank, Run
from gquery.expression.frozen import frozen_single
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import AbortableTarget
from gquery.runtime.records import replace
from gquery.runtime.tuples import NamedTuple


class _Part(NamedTuple):
    """What the recording has of one rank; the first rank has the answer."""

    answer: Answer | None
    inputs: Inputs
    kept: list[object]


@frozen_single
class SeveralGpus:
    """A program on a GPU for each rank; see `replay.Way`."""

    made: RankedFeedback
    context: ExecutionContext

    @property
    def has_run(self) -> bool:
        """See `Way`."""
        return self.made.ranks[0].scalars is not None

    @property
    def arenas(self) -> Sequence[Arena]:
        """See `Way`."""
        return [arena_of(device.ordinal) for device in self.context.ranks]

    def may_record(self) -> bool:
        """See `Way`."""
        program, devices = self.made.program, self.context.ranks
        return (
            may_speculate(self.context)
            and len({d.ordinal for d in devices}) == len(devices)
            and all(may_be_recorded(program, replace(self.context, device=d)) for d in devices)
        )

    def kernels(self) -> Iterator[Kernel]:
        """See `Way`; those of the first rank, which are those of all."""
        made, context = self.made, self._staying()
        of_first = replace(context, device=context.ranks[0])
        return kernels_to_record(made.programs[0], of_first, made.ranks[0], lambda n: _merges_groups(made.placement[n]))

    def rehearse(self, rehearsed: RunFeedback) -> Table:
        """See `Way`."""
        ranks = tuple([known.for_recording() for known in self.made.ranks])
        rehearsed.ranked = replace(self.made, ranks=ranks)
        return run_all(rehearsed.ranked, self._staying(), waits=True)[0]

    def record(self, rehearsed: RunFeedback) -> Recording:
        """See `Way`."""
        made, context, arenas = rehearsed.ranked, self._staying(), self.arenas
        assert made is not None
        devices = [cast(RecordingDevice, d) for d in context.ranks]

        def work(comm: Comm) -> _Part:
            with devices[comm.rank].activate(), arenas[comm.rank].taking():
                return _record_rank(made, replace(context, device=devices[comm.rank]), arenas[comm.rank], comm)

        with recording_constants(devices) as constants:
            with arenas[0].recording() as graph, ExitStack() as others:
                for arena in arenas[1:]:
                    others.enter_context(arena.recording_with(arenas[0]))
                parts = run_ranks(work, len(devices))
        if not graph:
            raise CannotRecordError("memory has run out")
        inputs = tuple(zip(self.context.ranks, [p.inputs for p in parts], strict=True))
        kept = [*constants, *[k for p in parts for k in p.kept]]
        recording = Recording(made.program, graph[0], parts[0].answer, inputs, kept)
        for arena in arenas:
            arena.add(recording)
        return recording

    def _staying(self) -> ExecutionContext:
        devices = [
            staying(replace(self.context, device=d), a).device
            for d, a in zip(self.context.ranks, self.arenas, strict=True)
        ]
        return replace(self.context, ranks=tuple(devices))


def _merges_groups(placed: StagePlacement) -> bool:
    """Whether states are merged in another form than kernels have them in: not where slots are sent."""
    return placed.merges and not (placed.parts is not None and placed.parts.by_slots)


def _record_rank(made: RankedFeedback, context: ExecutionContext, arena: Arena, comm: Comm) -> _Part:
    """Record what one rank launches. The first rank reads the status words of all behind its result."""
    cuda, feedback, device = cast(AbortableTarget, get_target(context.target)), made.ranks[comm.rank], context.device
    speculation = Speculation(feedback, device, waits=False)
    rank = Rank(comm, made.placement, made.cuts, heavy=dict(made.heavy))
    state = Run(made.programs[comm.rank], replace(context, ranks=()), feedback, speculation, rank=rank)
    with cuda.noting() as noted:
        result = run_rank_stages(state, rank)
        own = (speculation, speculation.status_words)
        to_first: list[tuple[Speculation, Array] | None] = [own, *[None] * (comm.size - 1)]
        # who is aborted has a status of its own: nobody has to follow
        words = [w for w in handed_to_each(state, rank, "status words", to_first, reads=False) if w is not None]
        answer = None if result is None else laid_out(result, words, arena, device)
    return _Part(answer, inputs_of(state), [*noted.kernels, *foreign(noted, arena)])
