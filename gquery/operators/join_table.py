"""Join tables at run time: the arrays that a Build fills and a Probe reads.

Whether keys are unique as expected is known when the kernel has ended: an array without a key twice has as many slots
in use as rows were entered.
"""

from __future__ import annotations

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.recording import CannotRecordError
from gquery.errors import OperationalError
from gquery.expression.expr import Column
from gquery.expression.facts import BITMAP_BITS, MOST_ROW_IDS, NOT_IN
from gquery.kernels.builtin import define, elements, grouping, partition, scans
from gquery.kernels.builtin.choosing import both_set
from gquery.kernels.builtin.gathers import gather
from gquery.kernels.builtin.key_buckets import key_buckets
from gquery.kernels.builtin.order import Integers, sort_order
from gquery.kernels.builtin.reach import ordinals, reach_tree
from gquery.kernels.readback import read_count, read_scalar
from gquery.operators.base import DuplicateKeysError, Frame, JoinArrays, JoinIndex, Launch, SinkRun, SinkState
from gquery.operators.join_build import is_counted, is_radix_partitioned, is_speculated, slot_physical_type
from gquery.operators.key_filter import is_selective
from gquery.operators.merge_groups import Exchange
from gquery.operators.set_ranges import SetRange, put_ranges, set_ranges
from gquery.planner.physical import JoinTable
from gquery.runtime.records import dataclass, replace


@dataclass(slots=True)
class BuildState(SinkState):
    """What the kernel of a build writes, on the run's device; those that are called as a field of `JoinArrays` become it."""

    bits: Array | None = None
    slots: Array | None = None
    keys: Array | None = None
    pairs: Array | None = None
    capacity: int | None = None
    mask: int | None = None
    # int64, a word a row: its slot and what the slot holds, to be partitioned and entered
    to_partition: Array | None = None
    # uint32, for ranges: the slot of each row's key, NOT_IN where the row takes no part
    slot_of_row: Array | None = None
    entered: Array | None = None  # int64, one element: rows with a key that takes part
    twice: Array | None = None  # uint8, one element: not 0 where a key came twice
    filter: Array | None = None
    filter_shift: int | None = None


class BuildRun(SinkRun[BuildState]):
    """A join table under construction; all workers write into one. One whose rows come ``in_order`` of their slots, or that has
    none, needs no kernel."""

    shared = True

    def __init__(
        self, table: JoinTable, launch: Launch, label: str, frame: Frame, wants_nulls: bool, in_order: bool = False
    ) -> None:
        super().__init__(launch, label)
        if launch.rows > MOST_ROW_IDS:
            raise OperationalError(
                f"{label}: a join's build side of {launch.rows:,} rows; at most {MOST_ROW_IDS:,} are possible"
            )
        self.table = table
        self.frame = frame
        self.wants_nulls = wants_nulls
        self.in_order = in_order
        self.exchange: Exchange | None = None  # where other ranks enter other rows into a table that becomes one
        self.capacity = max(2 * launch.rows, tuning.join_layouts.least_hash_slots)
        if not table.inline_keys:
            self.capacity = 1 << (self.capacity - 1).bit_length()
        elif self.ranges:
            self.capacity = max(min(self.capacity, tuning.join_layouts.most_hash_slots), launch.rows + 1)
        if in_order:
            self.roles = ()

    @property
    def ranges(self) -> bool:
        """Whether a key may have several rows that are asked for."""
        return self.table.layout in ("direct-address", "hash") and not self.table.unique and not self.table.exists

    @property
    def _slots(self) -> int:
        """How many slots there are, of which each may have a range of rows."""
        if self.table.layout == "direct-address":
            assert self.table.key_encoding is not None
            return self.table.key_encoding.size
        return self.capacity + self.table.inline_keys  # the key 0 has a slot of its own

    def make_state(self) -> BuildState:
        """A table without keys."""
        make, rows, table, state = self.device, self.launch.rows, self.table, BuildState()
        if table.layout == "direct-address":
            assert table.key_encoding is not None
            size = table.key_encoding.size
            if table.exists:
                state.bits = make.zeros(size // BITMAP_BITS + 1, "uint32", self.label)
            elif is_radix_partitioned(table):
                state.to_partition = make.zeros(rows, "int64", self.label)
            elif table.unique:
                state.slots = make.zeros(size, slot_physical_type(table).numpy, self.label)
                if is_counted(table):
                    state.entered = make.zeros(1, "int64", self.label)
        elif table.inline_keys:
            state.capacity = self.capacity
            if table.unique and not table.exists:
                state.pairs = make.zeros(2 * self._slots, "int64", self.label)
                if is_speculated(table):
                    state.twice = make.zeros(1, "uint8", self.label)
            else:
                state.keys = make.zeros(self._slots, "int64", self.label)
        elif table.layout == "hash":
            state.slots = make.zeros(self.capacity, "uint32", self.label)
            state.mask = self.capacity - 1
        if table.filter is not None and not table.filter.is_table:
            state.filter = make.zeros(table.filter.words, "uint32", self.label)
            state.filter_shift = table.filter.shift
        if self.ranges and not self.in_order:
            state.slot_of_row = define.full(make, rows, NOT_IN, "uint32", self.label, self.launch.workers)
        return state

    def finalize(self) -> JoinIndex:
        """The join table. DuplicateKeysError where keys that were expected to be unique are not."""
        (state,) = self.states
        if is_radix_partitioned(self.table):
            state = self._entered(state)
        if is_speculated(self.table) and self._has_duplicates(state):
            raise DuplicateKeysError
        ranges = self._ranges_of(state) if self.table.sorted_by is None else self._sorted(state, self.table.sorted_by)
        frame, rows, null_keys = self.frame, self.launch.rows, self._null_keys() if self.wants_nulls else None
        if self.exchange is not None:
            state, rows, null_keys = self._of_ranks(state, self.exchange, null_keys)
            frame = Frame({}, rows)  # nothing is read of it but how many rows all ranks entered
        table = self.table
        if state.filter is not None and table.filter is not None and not is_selective(table.filter, state.filter):
            table, state.filter = replace(table, filter=None), None
        arrays = replace(
            ranges,
            count=ranges.count if table.layout == "sorted" else rows,
            null_keys=null_keys,
            bits=self._owned(state.bits),
            slots=self._owned(state.slots),
            keys=self._owned(state.keys),
            pairs=self._owned(state.pairs),
            capacity=state.capacity,
            mask=state.mask,
            filter=self._owned(state.filter),
            filter_shift=state.filter_shift,
        )
        entered = rows
        if self.table.counted and state.entered is not None:
            entered = read_count(state.entered, rows).bound
        return JoinIndex(arrays, frame, table, entered)

    def _of_ranks(
        self, state: BuildState, exchange: Exchange, null_keys: int | None
    ) -> tuple[BuildState, int, int | None]:
        """The state with the rows of all ranks, how many these are, and how many of them have a NULL among their keys. No rank
        sets what another has set, but for bits."""
        from gquery.operators.combined_arrays import combined  # of ranks alone

        entered = self.device.zeros(1, "int64") if state.entered is None else state.entered
        table = state.slots if state.bits is None else state.bits
        assert table is not None
        ranges: list[SetRange] = []
        if exchange.ranges is not None and self.table.key_encoding is not None:
            slots = 1 if state.bits is None else BITMAP_BITS
            ranges = set_ranges(exchange.ranges, self.table.key_encoding, exchange.ranks, slots)
        held = [*([] if ranges else [table]), *([] if state.filter is None else [state.filter])]
        own = [ranges[exchange.rank].of(table)] if ranges else []
        handed = exchange.unmoved((own, [*held, entered], (self.launch.rows, null_keys or 0)))
        parts, arrays, counts = zip(*handed, strict=True)
        *merged, entered = combined(arrays, [*["or"] * len(held), "add"], exchange.rank, self.device)
        of_ranks = iter(merged)
        if ranges:
            put_ranges(table, [part for (part,) in parts], ranges, exchange.rank, self.device)
        else:
            table = next(of_ranks)
        made = BuildState(
            bits=None if state.bits is None else table,
            slots=None if state.slots is None else table,
            filter=None if state.filter is None else next(of_ranks),
            filter_shift=state.filter_shift,
            entered=None if state.entered is None else entered,
        )
        rows, nulls = (sum(of_ranks) for of_ranks in zip(*counts, strict=True))
        return made, rows, None if null_keys is None else nulls

    def _ranges_of(self, state: BuildState) -> JoinArrays:
        """The ranges of rows that slots have."""
        if not self.ranges:
            return JoinArrays()
        if state.slot_of_row is None:
            return self._ranges_in_order()
        starts, order = grouping.group_rows(state.slot_of_row, self._slots, self._is_clustered(), self.launch.workers)
        rows = starts[:1] if order is None else order
        return JoinArrays(starts=self._owned(starts), order=self._owned(rows), gathers=int(order is not None))

    def _ranges_in_order(self) -> JoinArrays:
        """The ranges of rows that come in the order of their one key, each with its own slot."""
        encoding, keys = self.table.key_encoding, self.frame.columns[self.table.keys[0].id]
        assert encoding is not None and keys.validity is None
        (part,) = encoding.parts
        starts = grouping.starts_of_sorted(keys.data.on(self.device), part.base, self._slots, self.launch.workers)
        return JoinArrays(starts=self._owned(starts), order=self._owned(starts[:1]), gathers=0)

    def _sorted(self, state: BuildState, by: Column) -> JoinArrays:
        """The same where the rows of each slot, or all, come in the order of a column; those that compare as NULL do not."""
        if self.frame.number is not None:
            raise CannotRecordError("a sorted join table counts on its rows")
        column, reach = self.frame.columns[by.id], self.table.reach_of
        keys = ordinals(column, self.device)
        others = None if reach is None else self.frame.columns[reach.id]
        rows = self._without_nulls([c for c in (column, others) if c is not None])
        order = sort_order([Integers(keys)], rows)
        starts: Array | None = None
        if state.slot_of_row is not None:
            slots = gather(state.slot_of_row, order)
            starts, at = grouping.group_rows(slots, self._slots, workers=self.launch.workers)
            order = order if at is None else gather(order, at)
        tree, leaves = None, None
        if others is not None:
            tree, leaves = reach_tree(gather(ordinals(others, self.device), order), self.launch.workers)
        sorted_keys = gather(keys, order)
        in_buckets = self.table.layout == "sorted"
        key_starts, key_scale = key_buckets(sorted_keys, self.launch.workers) if in_buckets else (None, None)
        return JoinArrays(
            count=int(order.size),
            starts=self._owned(starts),
            order=self._owned(order),
            gathers=1,
            sorted_keys=self._owned(sorted_keys),
            key_starts=self._owned(key_starts),
            key_scale=self._owned(key_scale),
            reach_tree=self._owned(tree),
            reach_leaves=leaves,
        )

    def _without_nulls(self, columns: list[ColumnData]) -> Array | None:
        """The rows with none among these columns; None for all."""
        flags = [c.validity.on(self.device) for c in columns if c.validity is not None]
        if not flags:
            return None
        return scans.compact(flags[0] if len(flags) == 1 else both_set(flags[0], flags[1]))

    def _owned(self, array: Array | None) -> Buffer | None:
        return None if array is None else Buffer(array, self.device)

    def _entered(self, left: BuildState) -> BuildState:
        """The state as it is where rows are entered at once, made from the words that they have left."""
        assert left.to_partition is not None
        physical_type = slot_physical_type(self.table)
        slots = self.device.zeros(self._slots, physical_type.numpy, self.label)
        parts = partition.radix_partition(left.to_partition, self.launch.rows, self._slots)
        partition.enter_words(parts, slots, physical_type)  # a part has room for all keys but for those that repeat
        return BuildState(
            slots=slots, entered=scans.sum_of(parts.counters), filter=left.filter, filter_shift=left.filter_shift
        )

    def _has_duplicates(self, state: BuildState) -> bool:
        if state.twice is not None:
            return bool(read_scalar(state.twice, expected=0))
        assert state.slots is not None and state.entered is not None
        missing = scans.count_others(state.slots)
        elements.subtract(missing, state.entered)
        return read_scalar(missing[0], expected=0) != 0

    def _is_clustered(self) -> bool:
        """Whether rows lie in the order of their slots: the one key of a direct-address table is sorted at load."""
        if self.table.layout != "direct-address" or len(self.table.keys) != 1:
            return False
        return self.frame.columns[self.table.keys[0].id].statistics.is_sorted

    def _null_keys(self) -> int:
        """How many rows have a NULL among their keys (at least: rows with two count twice)."""
        if self.frame.number is not None:
            raise CannotRecordError("a kernel counts on the NULLs of a stage")
        total = 0
        for key in self.table.keys:
            validity = self.frame.columns[key.id].validity
            if validity is not None:
                flags = validity.on(self.device)
                total += int(flags.size) - read_scalar(scans.count_others(flags)[0])
        return total
