"""Join tables at run time: the arrays that a Build fills and a Probe reads."""

from __future__ import annotations

from collections.abc import Sequence

from gquery.kernels import bulk
from gquery.operators.base import Frame, JoinIndex, Launch, SinkRun, State
from gquery.planner.physical import JoinTable
from gquery.table import Buffer

NOT_IN = 0xFFFFFFFF


class BuildRun(SinkRun):
    """A join table under construction; all workers write into one."""

    shared = True

    def __init__(self, table: JoinTable, launch: Launch, label: str, frame: Frame, wants_nulls: bool) -> None:
        super().__init__(launch, label)
        self.table = table
        self.frame = frame
        self.wants_nulls = wants_nulls
        self.capacity = 1 << (max(2 * launch.rows, 64) - 1).bit_length()
        if table.layout in ("one", "loop"):
            self.roles = ()

    @property
    def ranges(self) -> bool:
        """Whether a key may have several rows that are asked for."""
        return self.table.layout in ("direct", "hash") and not self.table.unique and not self.table.exists

    def allocate(self) -> State:
        make, rows, table = self.device, self.launch.rows, self.table
        state: State = {}
        if table.layout == "direct":
            assert table.packing is not None
            size = table.packing.size
            if table.exists:
                state["bits"] = make.zeros(size // 32 + 1, "uint32", self.label)
            elif table.unique:
                state["rows"] = make.zeros(size, "uint32", self.label)
        elif table.layout == "hash":
            state["slots"] = make.zeros(self.capacity, "uint32", self.label)
            state["mask"] = self.capacity - 1
        if self.ranges:
            state["slot_of_row"] = make.full(rows, NOT_IN, "uint32", self.label)
        return state

    def finish(self, states: Sequence[State]) -> JoinIndex:
        state, rows = states[0], self.launch.rows
        parts = {k: v for k, v in state.items() if k != "slot_of_row"}
        if self.ranges:
            size = (
                self.table.packing.size
                if self.table.packing is not None and self.table.layout == "direct"
                else self.capacity
            )
            parts["starts"], parts["order"] = bulk.group_rows(state["slot_of_row"], size, self._is_clustered())
        parts = {k: v if isinstance(v, int) else Buffer(v, self.device) for k, v in parts.items()}
        parts["count"] = rows
        if self.wants_nulls:
            parts["null_keys"] = self._null_keys()
        return JoinIndex(parts, self.frame)

    def _is_clustered(self) -> bool:
        """Whether rows lie in the order of their slots: the one key of a direct table is sorted at load."""
        if self.table.layout != "direct" or len(self.table.keys) != 1:
            return False
        return self.frame.columns[self.table.keys[0].id].statistics.is_sorted

    def _null_keys(self) -> int:
        """How many rows have a NULL among their keys (at least: rows with two count twice)."""
        total = 0
        for key in self.table.keys:
            validity = self.frame.columns[key.id].validity
            if validity is not None:
                total += int((validity.on(self.device) == 0).sum())
        return total
