"""Group: aggregates by key.

*direct-address*: the encoded key addresses arrays of state. *hash*: an open-addressing table whose slots hold an
encoded key, or one integer as it is, and the words of its state. *row-id hash*: a table of row numbers of the source
frame, for keys that do not encode (plain strings, floats, 128 bits): keys are compared where they stand.
`operators.accumulate` accumulates a row once its group is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device, cpu_device
from gquery.expression.expr import Column
from gquery.expression.facts import BITMAP_BITS, UNBOUNDED
from gquery.kernels.builtin import define, gathers, grouping, scans
from gquery.kernels.builtin.elements import converted, row_numbers
from gquery.kernels.code import Code
from gquery.kernels.readback import Count
from gquery.kernels.render import render
from gquery.kernels.targets.morsels import run_parts
from gquery.kernels.values import ValueProperties
from gquery.operators import accumulate, aggregation_cache
from gquery.operators.accumulate import has_bits
from gquery.operators.accumulate_state import is_flagged
from gquery.operators.base import Frame, Launch, SinkRun, make_column, narrow
from gquery.operators.combine import (
    combine_arrays,
    combine_slots,
    combine_tables,
    empty_table,
    filled,
    slots_of,
)
from gquery.operators.finalize import finalize_aggregate
from gquery.operators.group_output import GroupOutput, Values
from gquery.operators.group_state import GroupState
from gquery.operators.join import find_or_insert
from gquery.operators.keys import decode_keys, decode_raw_key, encode_keys, raw_key
from gquery.operators.materialize import contiguous
from gquery.operators.merge_groups import (
    Exchange,
    merge_arrays,
    merge_groups,
    merge_state,
    merged_sink,
    merges_slots,
    part_groups,
)
from gquery.operators.part_groups import has_slots, own_slots, send_groups, send_slots
from gquery.operators.table_windows import is_inside
from gquery.planner.aggregates import AggregatePlan, has_plain_count
from gquery.planner.physical import TOUCHED, Group, ReadStage, Source
from gquery.runtime.records import replace

# ---- text -----------------------------------------------------------------------------------------------------------


def emit(sink: Group, source: Source, code: Code) -> None:
    """The lines that accumulate one row into its group."""
    values = [render(e, code) for _, e, _ in sink.keys]
    if sink.layout == "row-id hash":
        assert isinstance(source, ReadStage)
        stored = {s.column.id: s for s in source.columns}
        stored_keys = tuple(stored[e.id] for _, e, _ in sink.keys if isinstance(e, Column))
        slot = find_or_insert(code, values, stored_keys, (True,) * len(values), grows=True)
        with code.when(code.call("ge_i64", slot, code.integer(0))):
            accumulate.emit(sink, slot, code)
    elif sink.key_encoding is None:
        accumulate.emit(sink, raw_key(values[0], sink.keys[0][2], code), code)
    else:
        slot = encode_keys(values, sink.key_encoding, code, checked=False)[0]
        if sink.windows > 1:
            code.open_if(is_inside(slot, code))
        accumulate.emit(sink, slot, code)
        if sink.windows > 1:
            code.close()


# ---- run time -------------------------------------------------------------------------------------------------------


class GroupRun(SinkRun[GroupState]):
    """Arrays of state, one slot a group; for hash layouts a table beside them that gives the slot."""

    def __init__(
        self, sink: Group, launch: Launch, label: str, frame: Frame | None, output: GroupOutput | None = None
    ) -> None:
        super().__init__(launch, label)
        self.sink = sink
        self.output = output
        self.frame = frame
        self.exchange: Exchange | None = None  # where other ranks have parts of the groups
        self.output_for: Callable[[Group], GroupOutput] | None = None  # what makes columns of a rank's own slots
        self.shared = sink.layout == "row-id hash" or sink.concurrent
        wanted = max(min(2 * sink.groups, 2 * launch.rows), tuning.group_layouts.least_hash_slots)
        self.capacity = 1 << (wanted - 1).bit_length()
        if sink.layout == "direct-address":
            assert sink.key_encoding is not None
            self.capacity = sink.key_encoding.size

    def expect(self, groups: int) -> None:
        """Take a smaller table than was planned, where an earlier run had so few groups."""
        limits = tuning.group_layouts
        wanted = max(int(limits.headroom * groups), limits.least_hash_slots - 1)
        self.capacity = min(self.capacity, 1 << wanted.bit_length())

    def make_state(self) -> GroupState:
        """A state without groups."""
        make, n = self.device, self.capacity
        if self.sink.layout == "hash":
            return empty_table(self.sink, n, self.device, self.label, self._hands)
        words = self._words(n)
        state = GroupState(n - 1, words, self._accumulators(words), windows=self.sink.windows)
        if self.sink.layout == "row-id hash":
            state.slots = make.zeros(n, "uint32", self.label)
        elif has_bits(self.sink, self.launch.target.name):
            state.bits = make.zeros(n // BITMAP_BITS + 1, "uint32", self.label)
        elif is_flagged(self.sink):
            state.touched = make.zeros(n, "uint8", self.label)
        return state

    def for_workers(self, workers: int) -> Sequence[GroupState]:
        """What each worker writes into: a state of its own, or the same one with a cache of its own."""
        (state,) = self.states
        if not self.sink.concurrent:
            return [state] * workers
        caches = [self.device.zeros(aggregation_cache.words(self.sink), "int64", self.label) for _ in range(workers)]
        return [replace(state, cache_i64=c) for c in caches]

    def _accumulators(self, block: Array) -> tuple[Array, ...]:
        """The array of each accumulator as a part of one piece of memory."""
        n = self.capacity
        parts = [block[k * n : (k + 1) * n] for k in range(len(self.sink.accumulators))]
        return tuple(
            [p if a.word == "i64" else p.view(np.float64) for p, a in zip(parts, self.sink.accumulators, strict=True)]
        )

    def _words(self, n: int) -> Array:
        """For each accumulator ``n`` times its identity: one piece of memory, cleared at once where all are 0."""
        starts = [0 if f.word == "f64" else int(f.identity) for f in self.sink.accumulators]  # 0.0 has no bit set
        make = self.device.empty if any(starts) else self.device.zeros
        block: Array = make(len(starts) * n, "int64", self.label)

        def fill(lo: int, hi: int) -> None:
            for k, start in enumerate(starts):
                define.fill(block[k * n + lo : k * n + hi], start)

        if any(starts):
            run_parts(fill, n, tuning.accumulators.combined_slots if self._hands > 1 else max(n, 1), self._hands)
        return block

    @property
    def _hands(self) -> int:
        """Threads that make a state: one that belongs to a worker is made by one."""
        return self.launch.workers if self.shared and self.device.is_cpu else 1

    def grow(self) -> bool:
        """A table of row numbers has no more groups than the source has rows. One of keys may have more, behind a join that
        makes several rows of one: it has at most as many as its keys have values, and memory ends what they don't."""
        key_encoding = self.sink.key_encoding
        groups = (
            self.launch.rows
            if self.sink.layout == "row-id hash"
            else key_encoding.size
            if key_encoding is not None
            else UNBOUNDED
        )
        if self.sink.layout == "direct-address" or self.capacity >= tuning.group_layouts.growth * max(groups, 1):
            return False
        self.capacity *= tuning.group_layouts.growth
        return True

    def finalize(self) -> Frame:
        """The frame of the groups: keys and results. OutOfRangeError where a result does not fit its type."""
        sink, device, workers, states = self.sink, self.device, self.launch.workers, self.states
        if self._is_small():
            device, workers = cpu_device(), 1
            states = [self._on_host(s) for s in states]
        if sink.layout == "row-id hash":
            return self._of_rows(states[0])
        capacity = self.capacity
        if sink.layout == "direct-address":
            if len(states) > 1 or sink.sparse or not device.is_cuda:  # into one that has no bits
                states = [combine_arrays(states, sink.accumulators, capacity, workers)]
            if sink.sparse:
                return self._sparse_arrays(states[0])
        elif device.is_cpu and len(states) > 1 and filled(sink, states) > tuning.accumulators.sorted_slots:
            table, capacity = combine_tables(sink, states, capacity, device, self.label, workers)
            states = [table]
        if self.exchange is not None and merges_slots(sink):
            states = [merge_state(sink, states[0], self.exchange, device)]
        elif self.exchange is not None and not self._takes_slots(self.exchange):
            return self._merged(self.exchange, states, capacity, device)
        elif self.exchange is not None:
            if len(states) > 1 or states[0].bits is not None:
                states = [combine_arrays(states, sink.accumulators, capacity, workers)]
            self.sink, own = own_slots(sink, states[0], self.exchange, device)
            sink, states, capacity = self.sink, [own], own.mask + 1
            self.output = None if self.output_for is None else self.output_for(sink)
        output = self.output if len(states) == 1 else None
        if output is not None and self._finalizes_by_kernel(capacity, device):
            count, columns = output.columns(states[0], capacity, device, workers, self.label)
        else:
            groups, columns = self._picked(states, capacity, device)
            count = Count(groups)
        named = [(c, what) for c, _, what in sink.keys] + [(c, plan.result) for c, plan in sink.aggregates]
        return Frame(self._columns(named, columns, count.bound, device, workers), count.bound, number=count.number)

    def _finalizes_by_kernel(self, slots: int, device: Device) -> bool:
        """Whether a kernel makes the columns of a state that lies on ``device``: that of a few groups came to the host."""
        is_large = slots >= tuning.accumulators.finalized_slots
        return device.is_cuda or (self.launch.target.runs_morsels and is_large)

    def _picked(self, states: Sequence[GroupState], capacity: int, device: Device) -> tuple[int, list[Values]]:
        """How many groups there are, and the columns of their keys and aggregates, by array functions."""
        encoded, words = self._groups(states, capacity, device)
        return int(encoded.size), self._keys(encoded) + self._results(words, device.xp)

    def _groups(self, states: Sequence[GroupState], capacity: int, device: Device) -> tuple[Array, list[Array]]:
        """The encoded keys of the groups that there are, and their words."""
        accumulators = self.sink.accumulators
        if self.sink.layout == "direct-address":
            encoded: Array = converted(scans.compact(states[0].presence(has_plain_count(accumulators))), np.int64)
            return encoded, [gathers.gather(a, encoded) for a in states[0].accumulators]
        tables = [slots_of(self.sink, s, capacity) for s in states]
        return tables[0] if len(tables) == 1 else combine_slots(self.sink, tables, device.xp)

    # ---- several ranks ----

    def _takes_slots(self, exchange: Exchange) -> bool:
        """Whether ranks send each other slots: one of them may have a hash table by now."""
        return exchange.parts is not None and exchange.parts.by_slots and exchange.agree(has_slots(self.sink))

    def _merged(self, exchange: Exchange, states: Sequence[GroupState], capacity: int, device: Device) -> Frame:
        """The frame of the groups of all ranks."""
        if self.sink.layout == "direct-address" and (len(states) > 1 or states[0].bits is not None):
            states = [combine_arrays(states, self.sink.accumulators, capacity, self.launch.workers)]
        encoded, words = self._groups(states, capacity, device)
        own, workers = part_groups(self.sink, encoded, words, device), self.launch.workers
        named = [(c, what) for c, _, what in self.sink.keys]
        if exchange.parts is None:
            parts = exchange(own)
        else:
            keys = self._columns(named, self._keys(encoded), int(encoded.size), device, workers)
            parts = send_groups(own, [keys[c.id] for c, _ in named], exchange, device, workers, self.label)
        merged = merge_groups(self.sink, parts, device, in_order=exchange.parts is None)
        count = int(merged.encoded.size)
        columns = self._columns(named, self._keys(merged.encoded), count, device, workers)
        for (column, _), text in zip(self.sink.aggregates, merged.texts, strict=True):
            if text is not None:
                columns[column.id] = text
        numbers = merged_sink(self.sink).aggregates
        if self.output is not None and device.is_cuda:
            slots = row_numbers(device.xp, count)
            state = GroupState(count - 1, merged.encoded, tuple(merged.words), slots_in_order=slots)
            _, results = self.output.columns(state, count, device, workers, self.label)
        else:
            results = self._results(merged.words, device.xp, [plan for _, plan in numbers])
        columns |= self._columns([(c, p.result) for c, p in numbers], results, count, device, workers)
        return Frame(columns, count)

    def _of_rows(self, state: GroupState) -> Frame:
        """The groups of a table of row numbers."""
        device, workers = self.device, self.launch.workers
        assert state.slots is not None
        assert self.frame is not None
        # any order would do, but always the same
        rows, slots, count = grouping.rows_in_order(state.slots, self.frame.rows)
        if self.output is not None and self._finalizes_by_kernel(rows.size, device):
            state.slots_in_order, state.groups = slots, count
            _, results = self.output.columns(state, self.capacity, device, workers, self.label)
        else:
            results = self._results([gathers.gather(a, slots) for a in state.accumulators], device.xp)
        named = [(c, plan.result) for c, plan in self.sink.aggregates]
        columns = self._columns(named, results, int(rows.size), device, workers)
        for column, e, _ in self.sink.keys:
            assert isinstance(e, Column)
            columns[column.id] = gathers.take(self.frame.columns[e.id], rows, device, count.number)
        return Frame(columns, int(rows.size), number=count.number)

    def _results(
        self, words: Sequence[Array], xp: ModuleType, plans: Sequence[AggregatePlan] | None = None
    ) -> list[Values]:
        """The values of some aggregates, or of all."""
        asked = [plan for _, plan in self.sink.aggregates] if plans is None else plans
        found = [(plan, finalize_aggregate(plan, words, xp)) for plan in asked]
        return [(narrow(values, plan.result.physical_type), validity) for plan, (values, validity) in found]

    def _columns(
        self,
        named: Sequence[tuple[Column, ValueProperties]],
        values: Sequence[Values],
        count: int,
        device: Device,
        workers: int,
    ) -> dict[int, ColumnData]:
        columns = {}
        for (column, what), (data, validity) in zip(named, values, strict=True):
            made = make_column(what, what.physical_type, data, validity, count, device)
            columns[column.id] = contiguous(made, device, workers)
        return columns

    def _is_small(self) -> bool:
        """Whether the state is finalized on the host: a copy of it takes less time than a dozen array functions on a
        GPU."""
        words = self.capacity * (len(self.sink.accumulators) + 1)
        texts = any(a.is_text for _, a in self.sink.aggregates)  # addresses in the GPU's memory
        return (
            self.device.is_cuda
            and not self.device.stays
            and words <= tuning.accumulators.host_words
            and self.sink.layout != "row-id hash"
            and not texts
        )

    def _on_host(self, state: GroupState) -> GroupState:
        """A copy of the state; the words of a direct one are one piece of memory."""
        words = self.device.to_host(state.words_i64)
        if self.sink.layout == "hash":
            return GroupState(state.mask, words)
        touched, bits = (None if flags is None else self.device.to_host(flags) for flags in (state.touched, state.bits))
        return GroupState(state.mask, words, self._accumulators(words), touched, bits)

    def _sparse_arrays(self, total: GroupState) -> Frame:
        """The arrays themselves, a row a slot."""
        columns, numbers = {}, [n for _, n in self.sink.sparse]
        arrays = [total.presence(None if n == TOUCHED else n) for n in numbers]
        if self.exchange is not None:
            ops = ["max" if n == TOUCHED else self.sink.accumulators[n].op for n in numbers]
            if self.exchange.parts is None:
                arrays = merge_arrays(arrays, ops, self.exchange, self.device)
            else:
                assert self.sink.key_encoding is not None
                empty = [0 if n == TOUCHED else self.sink.accumulators[n].identity for n in numbers]
                base = self.sink.key_encoding.parts[0].base
                arrays = send_slots(arrays, ops, empty, self.exchange, base, self.device)
        for (stored, _), data in zip(self.sink.sparse, arrays, strict=True):
            made = make_column(stored.properties, stored.physical_type, data, None, int(data.size), self.device)
            columns[stored.column.id] = made
        return Frame(columns, int(arrays[0].size))

    def _keys(self, encoded: Array) -> list[Values]:
        key_encoding = self.sink.key_encoding
        found = (
            [decode_raw_key(encoded, self.sink.keys[0][2])]
            if key_encoding is None
            else decode_keys(encoded, key_encoding)
        )
        whats = [what for _, _, what in self.sink.keys]
        return [
            (narrow(values, what.physical_type), validity if what.nullable else None)
            for (values, validity), what in zip(found, whats, strict=True)
        ]
