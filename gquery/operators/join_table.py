"""Join tables at run time: the arrays that a Build fills and a Probe reads.

Whether keys are unique as expected is known when the kernel has ended: an array without a key twice has as many slots
in use as rows were entered.
"""

from __future__ import annotations

from collections.abc import Sequence

from gquery import tuning
from gquery.device.buffer import Buffer
from gquery.errors import OperationalError
from gquery.expression.facts import BITMAP_BITS, MOST_ROW_IDS, NOT_IN
from gquery.kernels.builtin import define, grouping, partition, scans
from gquery.kernels.readback import read_scalar
from gquery.operators.base import DuplicateKeysError, Frame, JoinIndex, Launch, SinkRun, State
from gquery.operators.join_build import is_counted, is_radix_partitioned, is_speculated, slot_physical_type
from gquery.planner.physical import JoinTable


class BuildRun(SinkRun):
    """A join table under construction; all workers write into one."""

    shared = True

    def __init__(self, table: JoinTable, launch: Launch, label: str, frame: Frame, wants_nulls: bool) -> None:
        super().__init__(launch, label)
        if launch.rows > MOST_ROW_IDS:
            raise OperationalError(
                f"{label}: a join's build side of {launch.rows:,} rows; at most {MOST_ROW_IDS:,} are possible"
            )
        self.table = table
        self.frame = frame
        self.wants_nulls = wants_nulls
        self.capacity = max(2 * launch.rows, tuning.join_layouts.least_hash_slots)
        if not table.inline_keys:
            self.capacity = 1 << (self.capacity - 1).bit_length()
        elif self.ranges:
            self.capacity = max(min(self.capacity, tuning.join_layouts.most_hash_slots), launch.rows + 1)
        if table.layout in ("one", "loop"):
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

    def allocate(self) -> State:
        """The state that kernels write into, by the names of its parts; on the run's device, owned by this run."""
        make, rows, table = self.device, self.launch.rows, self.table
        state: State = {}
        if table.layout == "direct-address":
            assert table.key_encoding is not None
            size = table.key_encoding.size
            if table.exists:
                state["bits"] = make.zeros(size // BITMAP_BITS + 1, "uint32", self.label)
            elif is_radix_partitioned(table):
                state["to_partition"] = make.zeros(rows, "int64", self.label)
            elif table.unique:
                state["slots"] = make.zeros(size, slot_physical_type(table).numpy, self.label)
                if is_counted(table):
                    state["entered"] = make.zeros(1, "int64", self.label)
        elif table.inline_keys:
            state["capacity"] = self.capacity
            if table.unique and not table.exists:
                state["pairs"] = make.zeros(2 * self._slots, "int64", self.label)
                if is_speculated(table):
                    state["twice"] = make.zeros(1, "uint8", self.label)
            else:
                state["keys"] = make.zeros(self._slots, "int64", self.label)
        elif table.layout == "hash":
            state["slots"] = make.zeros(self.capacity, "uint32", self.label)
            state["mask"] = self.capacity - 1
        if self.ranges:
            state["slot_of_row"] = define.full(make, rows, NOT_IN, "uint32", self.label, self.launch.workers)
        return state

    def finalize(self, states: Sequence[State]) -> JoinIndex:
        """The join table. DuplicateKeysError where keys that were expected to be unique are not."""
        state, rows = states[0], self.launch.rows
        if is_radix_partitioned(self.table):
            state = self._entered(state)
        if is_speculated(self.table) and self._has_duplicates(state):
            raise DuplicateKeysError
        parts = {k: v for k, v in state.items() if k not in ("slot_of_row", "entered", "twice")}
        if self.ranges:
            starts, order = grouping.group_rows(
                state["slot_of_row"], self._slots, self._is_clustered(), self.launch.workers
            )
            parts["starts"], parts["gathers"] = starts, int(order is not None)
            parts["order"] = starts[:1] if order is None else order
        parts = {k: v if isinstance(v, int) else Buffer(v, self.device) for k, v in parts.items()}
        parts["count"] = rows
        if self.wants_nulls:
            parts["null_keys"] = self._null_keys()
        entered = read_scalar(state["entered"]) if self.table.counted and "entered" in state else self.frame.rows
        return JoinIndex(parts, self.frame, self.table, entered)

    def _entered(self, left: State) -> State:
        """The state as it is where rows are entered at once, made from the words that they have left."""
        physical_type = slot_physical_type(self.table)
        slots = self.device.zeros(self._slots, physical_type.numpy, self.label)
        parts = partition.radix_partition(left["to_partition"], self.launch.rows, self._slots)
        partition.enter_words(parts, slots, physical_type)  # a part has room for all keys but for those that repeat
        return {"slots": slots, "entered": scans.sum_of(parts.counters)}

    def _has_duplicates(self, state: State) -> bool:
        if "twice" in state:
            return bool(read_scalar(state["twice"]))
        used = scans.count_others(state["slots"])
        return read_scalar((used - state["entered"])[0]) != 0

    def _is_clustered(self) -> bool:
        """Whether rows lie in the order of their slots: the one key of a direct-address table is sorted at load."""
        if self.table.layout != "direct-address" or len(self.table.keys) != 1:
            return False
        return self.frame.columns[self.table.keys[0].id].statistics.is_sorted

    def _null_keys(self) -> int:
        """How many rows have a NULL among their keys (at least: rows with two count twice)."""
        total = 0
        for key in self.table.keys:
            validity = self.frame.columns[key.id].validity
            if validity is not None:
                flags = validity.on(self.device)
                total += int(flags.size) - read_scalar(scans.count_others(flags)[0])
        return total
