"""The run of a sink whose groups are made by parts: room for contributions, in chunks that threads take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gquery import tuning
from gquery.expression.facts import INT64_BITS, INT64_BYTES
from gquery.kernels.primitives.groups import CHUNK_BITS
from gquery.operators.base import Frame, Launch
from gquery.operators.group import GroupRun
from gquery.operators.group_state import GroupState
from gquery.operators.part_output import PartOutput, contributions_of
from gquery.operators.partitioned_groups import contribution_words
from gquery.planner.physical import Group
from gquery.runtime.records import replace


class PartitionedRun(GroupRun):
    """Contributions of all threads in one array; ``capacity`` of them find room."""

    def __init__(self, sink: Group, launch: Launch, label: str, frame: Frame | None, output: PartOutput) -> None:
        super().__init__(sink, launch, label, frame)
        self.parts_output = output
        self.shared = True
        self.parts = _parts(sink, launch.rows)
        self.capacity = launch.rows + launch.workers * (self.parts << CHUNK_BITS)
        self._of_workers: list[GroupState] = []

    def expect(self, groups: int) -> None:
        """What earlier runs made says nothing of contributions."""

    def make_state(self) -> GroupState:
        """Room for contributions, of which none is taken."""
        chunks = -(-self.capacity >> CHUNK_BITS)
        words = self.device.empty((chunks << CHUNK_BITS) * contribution_words(self.sink), "int64", self.label)
        state = GroupState(0, words)
        state.chunk_parts = self.device.empty(chunks, "uint32", self.label)
        state.chunks_taken = np.array([0, chunks], np.int64)
        state.part_shift = INT64_BITS - (self.parts - 1).bit_length()
        return state

    def for_workers(self, workers: int) -> Sequence[GroupState]:
        """The same room for all, with chunks of its own for each."""
        (state,) = self.states
        for _ in range(workers):
            self._of_workers.append(replace(state, part_ends=self.device.zeros(self.parts, "int64", self.label)))
        return self._of_workers

    def grow(self) -> bool:
        """Rows may be more than the source has, behind a join: memory ends what does not end."""
        self.capacity *= tuning.group_layouts.growth
        return True

    def finalize(self) -> Frame:
        """The frame of the groups, part by part."""
        (state,), sink, device, workers = self.states, self.sink, self.device, self.launch.workers
        ends = [s.part_ends for s in self._of_workers if s.part_ends is not None]
        contributions = contributions_of(state, ends, self.parts)
        count, columns = self.parts_output.columns_of(contributions, device, workers, self.label)
        named = [(c, what) for c, _, what in sink.keys] + [(c, plan.result) for c, plan in sink.aggregates]
        return Frame(self._columns(named, columns, count.bound, device, workers), count.bound)


def _parts(sink: Group, rows: int) -> int:
    """So many parts that the groups of one lie in a core's second cache: a power of two, of two at least."""
    limits = tuning.accumulators
    wanted = max(1, rows * contribution_words(sink) * INT64_BYTES // limits.part_bytes)
    return int(np.clip(1 << wanted.bit_length(), 2, limits.most_parts))
