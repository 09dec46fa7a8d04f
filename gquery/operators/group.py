"""Group: aggregates by key.

*direct*: the packed key addresses arrays of state. *hash*: an open-addressing table whose entries are a packed key, or one
integer as it is, and the words of its state. *rows*: a table of row numbers of the source frame, for keys that do not pack
(plain strings, floats, 128 bits): keys are compared where they stand. `operators.accumulators` folds a row once its group is
known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gquery.device import Device, cpu_device
from gquery.expr import Column as PlanColumn
from gquery.kernels import bulk
from gquery.kernels.code import Code
from gquery.kernels.render import render
from gquery.operators import accumulators
from gquery.operators.accumulators import entry_words, has_bits, has_plain_count, is_flagged
from gquery.operators.aggregates import Fold, finish_aggregate
from gquery.operators.base import Frame, Launch, SinkRun, State, make_column, narrow
from gquery.operators.collect import contiguous
from gquery.operators.join import find_or_insert
from gquery.operators.keys import pack, raw_key, unpack, unpack_raw
from gquery.planner.physical import TOUCHED, Group, ReadStage, Source
from gquery.table import Column

HOST_WORDS = 2**14  # a state of so many words at most is finished on the host

# ---- text -----------------------------------------------------------------------------------------------------------


def emit(sink: Group, source: Source, code: Code) -> None:
    """The lines that fold one row into its group."""
    values = [render(e, code) for _, e, _ in sink.keys]
    if sink.layout == "rows":
        assert isinstance(source, ReadStage)
        stored = {s.column.id: s for s in source.columns}
        places = tuple(stored[e.id] for _, e, _ in sink.keys if isinstance(e, PlanColumn))
        slot = find_or_insert(code, values, places, (True,) * len(values), None)
        with code.block(f"if {code.call('ge_i64', slot, code.call('i64', '0'))}:"):
            accumulators.fold(sink, slot, code)
    elif sink.packing is None:
        accumulators.fold(sink, raw_key(values[0], sink.keys[0][2], code), code)
    else:
        accumulators.fold(sink, pack(values, sink.packing, code, checked=False)[0], code)


# ---- run time -------------------------------------------------------------------------------------------------------


class GroupRun(SinkRun):
    """Arrays of state, one place a group; for hash and rows layouts a table beside them that gives the place."""

    def __init__(self, sink: Group, launch: Launch, label: str, frame: Frame | None) -> None:
        super().__init__(launch, label)
        self.sink = sink
        self.frame = frame
        self.shared = sink.layout == "rows"
        wanted = max(min(2 * sink.groups, 2 * launch.rows), 512)
        self.capacity = 1 << (wanted - 1).bit_length()
        if sink.layout == "direct":
            assert sink.packing is not None
            self.capacity = sink.packing.size

    def allocate(self) -> State:
        make, n = self.device, self.capacity
        if self.sink.layout == "hash":
            return self._entries()
        state: State = {"mask": n - 1}
        state["block"] = self._words(n)
        state |= self._folds(state["block"])
        if self.sink.layout == "rows":
            state["slots"] = make.zeros(n, "uint32", self.label)
        elif has_bits(self.sink, "cuda" if self.launch.by_row else "cpu"):
            state["bits"] = make.zeros(n // 32 + 1, "uint32", self.label)
        elif is_flagged(self.sink):
            state["touched"] = make.zeros(n, "uint8", self.label)
        return state

    def _folds(self, block: Any) -> State:
        """The array of each fold as a part of one piece of memory."""
        n, state = self.capacity, {}
        for k, fold in enumerate(self.sink.folds):
            words = block[k * n : (k + 1) * n]
            state[f"fold{k}"] = words if fold.word == "i64" else words.view(np.float64)
        return state

    def _words(self, n: int) -> Any:
        """For each fold ``n`` times its identity: one piece of memory, cleared at once where all are 0."""
        starts = [0 if f.word == "f64" else int(f.identity) for f in self.sink.folds]  # 0.0 has no bit set
        make = self.device.empty if any(starts) else self.device.zeros
        block = make(len(starts) * n, "int64", self.label)
        if any(starts):
            for k, start in enumerate(starts):
                bulk.fill(block[k * n : (k + 1) * n], start)
        return block

    def _entries(self) -> State:
        """A table of empty entries: memory that is cleared, if every identity is 0."""
        stride = entry_words(self.sink)
        entries = self.device.zeros((self.capacity + 2) * stride, "int64", self.label)
        for k, fold in enumerate(self.sink.folds):
            if fold.identity:
                entries[1 + k :: stride] = fold.identity
        return {"mask": self.capacity - 1, "entries_i64": entries, "entries_f64": entries.view("float64")}

    def grow(self) -> bool:
        most = 1 << (4 * max(self.launch.rows, 1) - 1).bit_length()
        if self.sink.layout == "direct" or self.capacity >= most:
            return False
        self.capacity *= 4
        return True

    def finish(self, states: Sequence[State]) -> Frame:
        folds = self.sink.folds
        if self.sink.in_place:
            return self._as_it_lies(_combine_elementwise(states, folds, self.capacity))
        device = self.device
        if self._is_small():
            device = cpu_device()
            states = [self._on_host(s) for s in states]
        xp = device.xp
        match self.sink.layout:
            case "direct":
                total = _combine_elementwise(states, folds, self.capacity)
                plain = has_plain_count(folds)
                at = bulk.compact(total["touched" if plain is None else f"fold{plain}"]).astype("int64")
                packed, rows = at, None
                words = [total[f"fold{k}"][at] for k in range(len(folds))]
            case "hash":
                packed, words = self._combine_by_key(states, xp)
                rows = None
            case "rows":
                at = bulk.compact(states[0]["slots"]).astype("int64")
                rows = states[0]["slots"][at].astype("int64") - 1
                order = xp.argsort(rows)  # the order of first appearance would do as well: any, but always the same
                rows, at = rows[order], at[order]
                words = [states[0][f"fold{k}"][at] for k in range(len(folds))]
                packed = None
        count = int(packed.size if packed is not None else rows.size)  # type: ignore[union-attr]
        columns = self._keys(packed, rows, count, device)
        for column, plan in self.sink.aggregates:
            values, validity = finish_aggregate(plan, words, xp)
            carrier = plan.result.carrier
            made = make_column(plan.result, carrier, narrow(values, carrier), validity, count, device)
            columns[column.id] = contiguous(made, device)
        return Frame(columns, count)

    def _is_small(self) -> bool:
        """Whether the state is finished on the host: a copy of it takes less time than a dozen array functions on a GPU."""
        words = self.capacity * (len(self.sink.folds) + 1)
        texts = any(a.finish == "text" for _, a in self.sink.aggregates)  # addresses in the GPU's memory
        return self.device.is_cuda and words <= HOST_WORDS and self.sink.layout != "rows" and not texts

    def _on_host(self, state: State) -> State:
        """A copy of the state; the words of a direct one are one piece of memory."""
        if self.sink.layout == "hash":
            return {"entries_i64": self.device.to_host(state["entries_i64"])}
        host: State = {k: self.device.to_host(state[k]) for k in ("touched", "bits") if k in state}
        return host | self._folds(self.device.to_host(state["block"]))

    def _as_it_lies(self, total: State) -> Frame:
        """The arrays themselves, a row a place."""
        columns = {}
        for stored, fold in self.sink.in_place:
            data = total["touched" if fold == TOUCHED else f"fold{fold}"]
            made = make_column(stored.phys, stored.carrier, data, None, self.capacity, self.device)
            columns[stored.column.id] = made
        return Frame(columns, self.capacity)

    def _keys(self, packed: Any, rows: Any, count: int, device: Device) -> dict[int, Column]:
        columns: dict[int, Column] = {}
        if rows is not None:
            assert self.frame is not None
            for column, e, _ in self.sink.keys:
                assert isinstance(e, PlanColumn)
                columns[column.id] = bulk.take(self.frame.columns[e.id], rows, self.device)
            return columns
        packing = self.sink.packing
        values_ = [unpack_raw(packed, self.sink.keys[0][2])] if packing is None else unpack(packed, packing)
        for (column, _, what), (values, validity) in zip(self.sink.keys, values_, strict=True):
            data = narrow(values, what.carrier)
            validity = validity if what.nullable else None
            columns[column.id] = make_column(what, what.carrier, data, validity, count, device)
        return columns

    def _combine_by_key(self, states: Sequence[State], xp: Any) -> tuple[Any, list[Any]]:
        """The groups of several hash tables: taken out, and merged by key where there is more than one table."""
        folds, stride = self.sink.folds, entry_words(self.sink)
        keys, words = [], []
        for state in states:
            entries = state["entries_i64"].reshape(-1, stride)
            at = bulk.compact(entries[:, 0] != 0)
            found = entries[at]
            keys.append(found[:, 0] * (at != self.capacity))  # the entry behind the others is that of the key 0
            parts = [xp.ascontiguousarray(found[:, 1 + k]) for k in range(len(folds))]
            words.append([p if f.word == "i64" else p.view("float64") for p, f in zip(parts, folds, strict=True)])
        if len(states) == 1:
            return keys[0], words[0]
        unique, inverse = xp.unique(xp.concatenate(keys), return_inverse=True)
        merged = []
        for k, fold in enumerate(folds):
            parts_ = xp.concatenate([w[k] for w in words])
            total = xp.full(unique.size, fold.identity, parts_.dtype)
            bulk.fold_at(total, inverse, parts_, fold.op)
            merged.append(total)
        return unique, merged


def _combine_elementwise(states: Sequence[State], folds: Sequence[Fold], places: int) -> State:
    """States whose places mean the same, merged into the first."""
    total = states[0]
    for other in states[1:]:
        for k, fold in enumerate(folds):
            _merge_into(total[f"fold{k}"], other[f"fold{k}"], fold.op)
        for flags in ("touched", "bits"):
            if flags in total:
                total[flags] |= other[flags]
    if "bits" in total:
        total["touched"] = bulk.flags_of_bits(total.pop("bits"), places)
    return total


def _merge_into(total: Any, other: Any, op: str) -> None:
    match op:
        case "add":
            total += other
        case "min":
            total[...] = np.minimum(total, other)  # dispatches to CuPy for its arrays
        case _:
            total[...] = np.maximum(total, other)
