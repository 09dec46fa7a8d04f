"""Reduce at run time: the words of each worker, and the row that comes of them."""

from __future__ import annotations

import numpy as np

from gquery.device.array import Array
from gquery.device.device import cpu_device
from gquery.kernels.bindings import Argument, StatePart
from gquery.operators.base import Frame, Launch, SinkRun, SinkState, make_column, narrow
from gquery.operators.finalize import finalize_aggregate
from gquery.operators.group_output import GroupOutput
from gquery.operators.group_state import GroupState
from gquery.operators.materialize import contiguous
from gquery.operators.merge_groups import Exchange
from gquery.planner.physical import Group, Reduce
from gquery.runtime.records import dataclass


@dataclass(slots=True)
class ReduceState(SinkState):
    """A word an accumulator, on the run's device, owned by the run. A pass has the words from the number of its first one on."""

    words_i64: Array

    @property
    def words_f64(self) -> Array:
        """The same words as float64."""
        return self.words_i64.view(np.float64)

    def part(self, part: StatePart) -> Argument:
        """The words from a number on, or all."""
        words = self.words_f64 if part.part == "words_f64" else self.words_i64
        return words if part.number is None else words[part.number :]


def as_group(sink: Reduce) -> Group:
    """The same aggregates as those of the one group that a table of row numbers has, for the kernel that makes its results."""
    return Group("row-id hash", (), None, sink.accumulators, sink.aggregates, groups=1)


class ReduceRun(SinkRun[ReduceState]):
    """One word an accumulator for each worker, which the kernels of ``roles`` fill. With an ``output`` the result stays on the
    device, where one state is."""

    def __init__(
        self, sink: Reduce, roles: tuple[str, ...], launch: Launch, label: str, output: GroupOutput | None = None
    ) -> None:
        super().__init__(launch, label)
        self.sink = sink
        self.roles = roles
        self.output = output
        self.exchange: Exchange | None = None  # where other ranks have words of their own rows

    def make_state(self) -> ReduceState:
        """The identities of all accumulators."""
        identities = [f.identity if f.word == "i64" else 0 for f in self.sink.accumulators]  # 0.0 has no bit set
        if any(identities):
            words = self.device.initialized(np.array(identities, np.int64))
        else:
            words = self.device.zeros(max(len(identities), 1), np.int64)
        return ReduceState(words)

    def finalize(self) -> Frame:
        """The frame of one row. OutOfRangeError where a result does not fit its type."""
        if self.output is not None and len(self.states) == 1:
            (state,) = self.states
            return self._by_kernel(
                self.output, state if self.exchange is None else self._of_ranks(state, self.exchange)
            )
        host = [self.device.to_host(s.words_i64) for s in self.states]
        if self.exchange is not None:
            host = [words for rank in self.exchange(host) for words in rank]
        words = []
        for n, accumulator in enumerate(self.sink.accumulators):
            parts = np.array([w.view(np.int64 if accumulator.word == "i64" else np.float64)[n] for w in host])
            words.append(np.array([combine(accumulator.op, parts)], dtype=parts.dtype))
        device = cpu_device() if self.device.is_cuda else self.device
        columns = {}
        for column, plan in self.sink.aggregates:
            values, validity = finalize_aggregate(plan, words, np)
            physical_type = plan.result.physical_type
            made = make_column(plan.result, physical_type, narrow(values, physical_type), validity, 1, device)
            columns[column.id] = contiguous(made, self.device)
        return Frame(columns, 1)

    def _of_ranks(self, state: ReduceState, exchange: Exchange) -> ReduceState:
        """The words of all ranks, combined where they are: neighbours by one operation."""
        from gquery.operators.combined_arrays import combined_stretches, word_stretches  # of ranks alone

        parts = [(words,) for words in exchange.unmoved(state.words_i64)]
        (total,) = combined_stretches(parts, word_stretches(self.sink.accumulators, 1), self.device)
        return ReduceState(total)

    def _by_kernel(self, output: GroupOutput, state: ReduceState) -> Frame:
        """The frame on the device, as `GroupOutput` makes that of one group."""
        words = [state.words_i64[n : n + 1] for n in range(len(self.sink.accumulators))]
        typed = [
            w if a.word == "i64" else w.view(np.float64) for w, a in zip(words, self.sink.accumulators, strict=True)
        ]
        slots = self.device.zeros(1, np.uint32)
        group = GroupState(0, state.words_i64, tuple(typed), slots_in_order=slots)
        _, made = output.columns(group, 1, self.device, 1, self.label)
        columns = {}
        for (column, plan), (data, validity) in zip(self.sink.aggregates, made, strict=True):
            result = make_column(plan.result, plan.result.physical_type, data, validity, 1, self.device)
            columns[column.id] = contiguous(result, self.device)
        return Frame(columns, 1)


def combine(op: str, parts: Array) -> Array:
    """The combination of the words of several states (along the first axis)."""
    match op:
        case "add":
            total: Array = parts.sum(axis=0, dtype=parts.dtype)
        case "min":
            total = parts.min(axis=0)
        case _:
            total = parts.max(axis=0)
    return total
