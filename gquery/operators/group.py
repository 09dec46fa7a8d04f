"""Group: aggregates by key.

*direct*: the packed key addresses arrays of state. *hash*: an open-addressing table whose entries are a packed key, or one
integer as it is, and the words of its state. *rows*: a table of row numbers of the source frame, for keys that do not pack
(plain strings, floats, 128 bits): keys are compared where they stand. `operators.accumulators` folds a row once its group is
known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gquery.device import Device, cpu_device
from gquery.expr import Column as PlanColumn
from gquery.kernels import bulk
from gquery.kernels.code import Code, Phys
from gquery.kernels.render import render
from gquery.kernels.targets.morsels import run_parts
from gquery.operators import accumulators, front
from gquery.operators.accumulators import entry_words, has_bits, has_plain_count, is_flagged
from gquery.operators.aggregates import finish_aggregate
from gquery.operators.base import Frame, Launch, SinkRun, State, make_column, narrow
from gquery.operators.collect import contiguous
from gquery.operators.combine import (
    PART,
    SORTED_ENTRIES,
    combine_arrays,
    combine_entries,
    combine_tables,
    empty_table,
    entries_of,
)
from gquery.operators.join import find_or_insert
from gquery.operators.keys import pack, raw_key, unpack, unpack_raw
from gquery.planner.physical import TOUCHED, Group, ReadStage, Source
from gquery.table import Column

HOST_WORDS = 2**14  # a state of so many words at most is finished on the host
PARTS_A_WORKER = 4  # in which a CPU finishes a large state

Values = tuple[Any, Any | None]
"""An array, and the validity of its rows."""
Picked = tuple[Any, list[Any], int]
"""Packed keys (None where they are columns already), words by fold, and how many groups there are."""
Pick = Callable[[int, int], Picked]
"""``pick(lo, hi)``: what is in a part of a state's places."""

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
        self.shared = sink.layout == "rows" or sink.concurrent
        wanted = max(min(2 * sink.groups, 2 * launch.rows), 512)
        self.capacity = 1 << (wanted - 1).bit_length()
        if sink.layout == "direct":
            assert sink.packing is not None
            self.capacity = sink.packing.size

    def expect(self, groups: int) -> None:
        """Take a smaller table than was planned, where an earlier run had so few groups."""
        self.capacity = min(self.capacity, 1 << max(4 * groups - 1, 511).bit_length())

    def allocate(self) -> State:
        make, n = self.device, self.capacity
        if self.sink.layout == "hash":
            return empty_table(self.sink, n, self.device, self.label, self._hands)
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

    def for_workers(self, state: State, workers: int) -> list[State]:
        if not self.sink.concurrent:
            return [state] * workers
        fronts = [self.device.zeros(front.words(self.sink), "int64", self.label) for _ in range(workers)]
        return [{**state, "front_i64": f, "front_f64": f.view("float64")} for f in fronts]

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

        def fill(lo: int, hi: int) -> None:
            for k, start in enumerate(starts):
                bulk.fill(block[k * n + lo : k * n + hi], start)

        if any(starts):
            run_parts(fill, n, PART if self._hands > 1 else max(n, 1), self._hands)
        return block

    @property
    def _hands(self) -> int:
        """Threads that make a state: one that belongs to a worker is made by one."""
        return self.launch.workers if self.shared and self.device.is_cpu else 1

    def grow(self) -> bool:
        most = 1 << (4 * max(self.launch.rows, 1) - 1).bit_length()
        if self.sink.layout == "direct" or self.capacity >= most:
            return False
        self.capacity *= 4
        return True

    def finish(self, states: Sequence[State]) -> Frame:
        if self.sink.in_place:
            return self._as_it_lies(combine_arrays(states, self.sink.folds, self.capacity, self.launch.workers))
        device, workers = self.device, self.launch.workers
        if self._is_small():
            device, workers = cpu_device(), 1
            states = [self._on_host(s) for s in states]
        columns: dict[int, Column] = {}
        match self.sink.layout:
            case "direct":
                size, pick = self._of_arrays(states, workers)
            case "hash":
                size, pick = self._of_tables(states, device, workers)
            case "rows":
                size, pick = self._of_rows(states[0], columns)

        def part(lo: int, hi: int) -> tuple[int, list[Values]]:
            packed, words, count = pick(lo, hi)
            own = [] if packed is None else self._keys(packed)
            return count, own + [finish_aggregate(plan, words, device.xp) for _, plan in self.sink.aggregates]

        places = size if workers == 1 or device.is_cuda else max(PART, -(-size // (PARTS_A_WORKER * workers)))
        parts = run_parts(part, size, max(places, 1), workers)
        count = sum(n for n, _ in parts)
        named = [] if columns else [(c, what) for c, _, what in self.sink.keys]
        named += [(c, plan.result) for c, plan in self.sink.aggregates]

        def column(n: int, _: int) -> Column:
            what = named[n][1]
            data, validity = _joined([values[n] for _, values in parts], what)
            return make_column(what, what.carrier, data, validity, count, device)

        for (key, _), made in zip(named, run_parts(column, len(named), 1, workers) if named else [], strict=True):
            columns[key.id] = contiguous(made, device, workers)
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

    # ---- what is picked from a state: for each part of its places the packed keys and the words of the groups there ----

    def _of_arrays(self, states: Sequence[State], workers: int) -> tuple[int, Pick]:
        folds = self.sink.folds
        total = combine_arrays(states, folds, self.capacity, workers)
        plain = has_plain_count(folds)
        flags = total["touched" if plain is None else f"fold{plain}"]

        def pick(lo: int, hi: int) -> Picked:
            at = bulk.compact(flags[lo:hi]).astype("int64")
            return at + lo, [total[f"fold{k}"][lo:hi][at] for k in range(len(folds))], int(at.size)

        return self.capacity, pick

    def _of_tables(self, states: Sequence[State], device: Device, workers: int) -> tuple[int, Pick]:
        capacity = self.capacity
        if len(states) > 1 and device.is_cpu and self._filled(states) > SORTED_ENTRIES:
            table, capacity = combine_tables(self.sink, states, capacity, device, self.label, workers)
            states = [table]
        if len(states) > 1:
            tables = [entries_of(self.sink, s, 0, capacity + 1, capacity) for s in states]
            keys, words = combine_entries(self.sink, tables, device.xp)
            return int(keys.size), lambda lo, hi: (keys[lo:hi], [w[lo:hi] for w in words], hi - lo)

        def pick(lo: int, hi: int) -> Picked:
            keys, words = entries_of(self.sink, states[0], lo, hi, capacity)
            return keys, words, int(keys.size)

        return capacity + 1, pick

    def _of_rows(self, state: State, columns: dict[int, Column]) -> tuple[int, Pick]:
        """Groups of a table of row numbers, and in ``columns`` their keys."""
        at = bulk.compact(state["slots"]).astype("int64")
        rows = state["slots"][at].astype("int64") - 1
        order = self.device.xp.argsort(rows)  # the order of first appearance would do as well: any, but always the same
        rows, at = rows[order], at[order]
        assert self.frame is not None
        for column, e, _ in self.sink.keys:
            assert isinstance(e, PlanColumn)
            columns[column.id] = bulk.take(self.frame.columns[e.id], rows, self.device)
        folds = [state[f"fold{k}"] for k in range(len(self.sink.folds))]
        return int(at.size), lambda lo, hi: (None, [f[at[lo:hi]] for f in folds], hi - lo)

    def _keys(self, packed: Any) -> list[Values]:
        packing = self.sink.packing
        found = [unpack_raw(packed, self.sink.keys[0][2])] if packing is None else unpack(packed, packing)
        whats = [what for _, _, what in self.sink.keys]
        return [(v, valid if what.nullable else None) for (v, valid), what in zip(found, whats, strict=True)]

    def _filled(self, states: Sequence[State]) -> int:
        return sum(int(np.count_nonzero(s["entries_i64"][:: entry_words(self.sink)])) for s in states)


def _joined(parts: Sequence[Values], what: Phys) -> Values:
    """The values of all parts as their carrier has them, and their validity."""
    data = [narrow(values, what.carrier) for values, _ in parts]
    if len(parts) == 1:
        return data[0], parts[0][1]
    return np.concatenate(data), np.concatenate([v for _, v in parts]) if parts[0][1] is not None else None
