"""Collect: a pipeline's rows become a frame, in the order of its source.

Where every row of the source gives exactly one (*dense*), a row's place is its index. On the CPU, where no row gives more
than one (*region*), each morsel writes from its own first row and the gaps are closed behind it. Else the rows are counted,
the counts scanned, and a second kernel writes: counts are kept for each row on a GPU, for each unit of rows on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, assert_never

import numpy as np

from gquery.dtypes import Carrier
from gquery.kernels import bulk
from gquery.kernels.code import Code, StatePart, Value, element_type, store
from gquery.kernels.render import convert
from gquery.operators.base import Frame, Launch, SinkRun, State, make_column, words_a_row
from gquery.planner.logical import JoinKind
from gquery.planner.physical import Collect, Compute, Probe, Select, Step, Stored
from gquery.table import Column

Mode = Literal["dense", "region", "two_pass"]


def collect_mode(steps: Sequence[Step], by_row: bool) -> Mode:
    """How the rows of a pipeline find their places."""
    drops = fans_out = False
    for step in steps:
        match step:
            case Select():
                drops = True
            case Probe(kind=kind, table=table):
                one = table.unique or table.layout == "one"
                fans_out |= kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.FULL) and not one
                drops |= kind in (JoinKind.INNER, JoinKind.SEMI, JoinKind.ANTI)
            case Compute():
                pass
            case _:
                assert_never(step)
    if not drops and not fans_out:
        return "dense"
    return "region" if not fans_out and not by_row else "two_pass"


# ---- text -----------------------------------------------------------------------------------------------------------


def begin(mode: Mode, role: str, by_row: bool, code: Code) -> None:
    """The lines before a row's steps (by row) or before the loop."""
    if mode == "dense":
        return
    zero = code.call("i64", "0")
    if role == "count":
        (code.line if by_row else code.prologue.append)(f"n = {zero}")
        return
    if mode == "region":
        code.prologue.append(f"pos = {code.call('i64', 'lo')}")
        return
    starts = code.pointer("i64", StatePart("starts"), "s")
    if by_row:
        code.line(f"pos = {code.call('i64', f'{starts}[i]')}")
        counts = code.pointer("u32", StatePart("counts"), "s")
        code.open(f"if {code.call('gt_i64', code.call('i64', f'{counts}[i]'), zero)}:")  # most rows write nothing
    else:
        code.prologue.append(f"pos = {code.call('i64', f'{starts}[{_unit(code)}]')}")


def emit(sink: Collect, mode: Mode, role: str, code: Code) -> None:
    """The lines that take one row."""
    one = code.call("i64", "1")
    if role == "count":
        code.line(f"n = {code.call('add_i64', 'n', one)}")
        return
    place = "i" if mode == "dense" else "pos"
    for k, stored in enumerate(sink.columns):
        value = convert(code.column(stored.column), stored.phys, code)
        _store_value(k, stored, value, place, code)
    if mode != "dense":
        code.line(f"pos = {code.call('add_i64', 'pos', one)}")


def _store_value(k: int, stored: Stored, value: Value, place: str, code: Code) -> None:
    data = code.pointer(element_type(stored.carrier), StatePart(f"data{k}"), "o")
    if stored.phys.nullable:
        validity = code.pointer("u8", StatePart(f"validity{k}"), "o")
        if value.ok is None:
            code.line(code.call("store_u8", validity, place, code.call("i64", "1")))
        else:
            code.line(code.call("store_bool", validity, place, value.ok))
            zero = code.zero(stored.phys.register)
            with code.block(f"if {value.ok}:"):
                store(code, stored.carrier, data, place, value.var)
            with code.block("else:"):
                store(code, stored.carrier, data, place, zero)
            return
    store(code, stored.carrier, data, place, value.var)


def end(mode: Mode, role: str, by_row: bool, code: Code) -> None:
    """The lines behind a row's steps (by row) or behind the loop."""
    if mode == "dense":
        return
    if role == "count":
        if by_row:
            code.line(code.call("store_u32", code.pointer("u32", StatePart("counts"), "s"), "i", "n"))
        else:
            counts = code.pointer("i64", StatePart("counts"), "s")
            code.epilogue.append(code.call("store_i64", counts, _unit(code), "n"))
    elif mode == "region":
        counts = code.pointer("i64", StatePart("counts"), "s")
        taken = code.call("sub_i64", "pos", code.call("i64", "lo"))
        code.epilogue.append(code.call("store_i64", counts, _unit(code), taken))
    elif by_row:
        code.close()


def _unit(code: Code) -> str:
    """The number of the unit that this call's first row begins."""
    return code.call("row_index", code.call("div_i64", code.call("i64", "lo"), code.scalar(StatePart("unit"))))


# ---- run time -------------------------------------------------------------------------------------------------------


class CollectRun(SinkRun):
    """The frame under construction; all workers write into one."""

    shared = True

    def __init__(self, sink: Collect, mode: Mode, launch: Launch, label: str) -> None:
        super().__init__(launch, label)
        self.sink = sink
        self.mode = mode
        self.roles = ("count", "write") if mode == "two_pass" else ("main",)
        self.total = launch.rows

    def allocate(self) -> State:
        state: State = {"unit": self.launch.unit}
        slots = self.launch.rows if self.launch.by_row else self.launch.rows // self.launch.unit + 1
        if self.mode != "dense":
            state["counts"] = self.device.zeros(slots, "uint32" if self.launch.by_row else "int64", self.label)
        if self.mode != "two_pass":
            self._columns(state, self.launch.rows)
        return state

    def after(self, role: str, state: State) -> None:
        if role != "count":
            return
        starts, self.total = bulk.exclusive_scan(state["counts"])
        state["starts"] = starts
        self._columns(state, self.total)

    def _columns(self, state: State, rows: int) -> None:
        for k, stored in enumerate(self.sink.columns):
            state[f"data{k}"] = self.device.empty(rows * words_a_row(stored.carrier), stored.carrier.numpy, self.label)
            if stored.phys.nullable:
                state[f"validity{k}"] = self.device.empty(rows, "uint8", self.label)

    def finish(self, states: Sequence[State]) -> Frame:
        state = states[0]
        pieces: list[tuple[int, int]] | None = None
        if self.mode == "region":
            counts = self.device.to_host(state["counts"])
            (units,) = np.nonzero(counts)
            pieces = [(int(u) * self.launch.unit, int(counts[u])) for u in units]
            self.total = sum(n for _, n in pieces)
        columns: dict[int, Column] = {}
        for k, stored in enumerate(self.sink.columns):
            data = close_gaps(state[f"data{k}"], pieces, words_a_row(stored.carrier))
            validity = close_gaps(state[f"validity{k}"], pieces, 1) if stored.phys.nullable else None
            column = make_column(stored.phys, stored.carrier, data, validity, self.total, self.device)
            columns[stored.column.id] = contiguous(column, self.device)
        return Frame(columns, self.total)


def close_gaps(array: Any, pieces: list[tuple[int, int]] | None, words: int) -> Any:
    """The rows of the pieces (start, count) one after another; the array itself where there are no gaps."""
    if pieces is None:
        return array
    if not pieces:
        return array[:0]
    total = 0
    for start, n in pieces:
        if start != total:
            break
        total += n
    else:
        return array[: total * words]
    return np.concatenate([array[start * words : (start + n) * words] for start, n in pieces])


def contiguous(column: Column, device: Any) -> Column:
    """A column of string views as offsets and characters of its own; any other as it is."""
    if column.carrier is not Carrier.VIEW:
        return column
    return bulk.gather_views(column, device)
