"""Contributions of groups (`operators.partitioned_groups`) become columns: one kernel, of which each row is a part.

It enters the part's contributions, chunk by chunk, into a table of group numbers, and into the words of its groups, which lie one
after another; both are the thread's own, and small enough for a core's second cache. Then it makes the part's rows of them, as
`operators.group_output` does, from where they would begin if no two contributions had the same key. Gaps between parts are
closed in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from gquery.device.array import Array
from gquery.device.device import Device
from gquery.kernels import ir
from gquery.kernels.bindings import Argument, Binding, ErrorSite, SinkName, StatePart
from gquery.kernels.builtin import row_partition
from gquery.kernels.builtin.gathers import Pieces
from gquery.kernels.code import Code
from gquery.kernels.kernel import ElementType, Kernel
from gquery.kernels.primitives.groups import CHUNK_BITS
from gquery.kernels.readback import Count
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import MorselTarget, arguments_of
from gquery.operators.base import SinkState, words_a_row, words_part
from gquery.operators.group_output import GroupOutput, OutputState, Values, no_failures, raise_failed, value_of
from gquery.operators.group_state import GroupState
from gquery.operators.materialize import POSITION
from gquery.operators.partitioned_groups import contribution_words, written
from gquery.operators.pieces import close_gaps
from gquery.runtime.interrupt import check, current
from gquery.runtime.records import cached_property, dataclass, replace


@dataclass(slots=True)
class Contributions(SinkState):
    """The contributions of all threads, and where those of each part are: what all threads read."""

    contributed_i64: Array  # int64: contributions, `contribution_words` each
    chunk_list: Array  # uint32: chunks, those of a part one after another
    chunk_rows: Array  # uint32: the contributions in each of them
    part_chunks: Array  # int64: where those of each part begin in the list, and the end of the last
    part_rows: Array  # int64: how many contributions the parts before have
    part_masks: Array  # int64: the slots of each part's table, less 1
    part_groups: Array  # int64: how many groups the kernel found in each part
    most: int  # contributions of a part

    @property
    def contributed_f64(self) -> Array:
        """``contributed_i64`` as float64."""
        return self.contributed_i64.view("float64")

    @property
    def rows(self) -> int:
        """How many contributions there are."""
        return int(self.part_rows[-1])


@dataclass(slots=True)
class _Given:
    """What the kernel is given: the contributions, and a thread's table and groups with the columns that it writes."""

    contributions: Contributions
    output: OutputState
    device: Device

    def part(self, part: StatePart) -> Argument:
        """See `SinkState.part`."""
        is_contributions = part.part in Contributions.__slots__ or part.part == "contributed_f64"
        return (self.contributions if is_contributions else self.output).part(part)


def contributions_of(state: GroupState, ends: Sequence[Array], parts: int) -> Contributions:
    """What threads wrote into a state; ``ends`` are the ``part_ends`` of each."""
    assert state.chunks_taken is not None and state.chunk_parts is not None
    taken, chunk = int(state.chunks_taken[0]), 1 << CHUNK_BITS
    owner = state.chunk_parts[:taken].astype(row_partition.label_type(parts))
    rows = np.full(taken, chunk, np.uint32)
    last = np.concatenate(ends)
    last = last[(last & (chunk - 1)) != 0]
    rows[last >> CHUNK_BITS] = last & (chunk - 1)
    order = np.argsort(owner, kind="stable").astype(np.uint32)
    rows = rows[order]
    part_chunks = np.zeros(parts + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=parts), out=part_chunks[1:])
    behind = np.zeros(taken + 1, np.int64)
    np.cumsum(rows, out=behind[1:])
    part_rows = behind[part_chunks]
    in_part = np.diff(part_rows)
    masks = np.array([(1 << int(n + n // 2).bit_length()) - 1 for n in in_part.tolist()], np.int64)
    most = int(in_part.max())
    return Contributions(state.words_i64, order, rows, part_chunks, part_rows, masks, np.zeros(parts, np.int64), most)


class PartOutput(GroupOutput):
    """The kernel of a sink that is partitioned, and its run."""

    @property
    def _group_words(self) -> int:
        """Words of 64 bits of a group: its key and its accumulators."""
        return 1 + len(self.sink.accumulators)

    # ---- text ----

    @cached_property
    def unit(self) -> tuple[Kernel, dict[str, Binding], tuple[ErrorSite, ...]]:
        """The kernel, what its parameters stand for, and what its errors mean."""
        code = Code(self.target)
        zero, one, stride = code.integer(0), code.integer(1), code.integer(self._group_words)
        step = code.integer(contribution_words(self.sink))
        mask = _load("part_masks", "i64", ir.ROW, code)
        slots = code.pointer("u32", StatePart("slots"), "s")
        at = code.let(zero)
        with code.loop(code.call("le_i64", at, mask)):
            code.do(code.call("store_u32", slots, at, zero))
            code.set(at, code.call("add_i64", at, one))
        count = code.let(zero)
        number = _load("part_chunks", "i64", ir.ROW, code)
        behind = _load(
            "part_chunks", "i64", code.call("row_index", code.call("add_i64", code.call("i64", ir.ROW), one)), code
        )
        with code.loop(code.call("lt_i64", number, behind)):
            chunk = _load("chunk_list", "u32", code.call("row_index", number), code)
            rows = _load("chunk_rows", "u32", code.call("row_index", number), code)
            contribution = code.let(code.call("mul_i64", code.call("shl_i64", chunk, code.integer(CHUNK_BITS)), step))
            end = code.let(code.call("add_i64", contribution, code.call("mul_i64", rows, step)))
            with code.loop(code.call("lt_i64", contribution, end)):
                self._enter(contribution, mask, count, code)
                code.set(contribution, code.call("add_i64", contribution, step))
            code.set(number, code.call("add_i64", number, one))
        code.set(POSITION, _load("part_rows", "i64", ir.ROW, code))
        slot = code.let(zero)
        words = code.let(code.call("mul_i64", count, stride))
        with code.loop(code.call("lt_i64", slot, words)):
            groups = code.pointer("i64", words_part("i64"))
            key = code.let(code.call("i64", ir.Load(groups, self._index(slot, code))))
            self._row(key, slot, code)
            code.set(POSITION, code.call("add_i64", POSITION, one))
            code.set(slot, code.call("add_i64", slot, stride))
        code.do(code.call("store_i64", code.pointer("i64", StatePart("part_groups"), "s"), ir.ROW, count))
        return code.kernel(), code.bindings, tuple(code.sites)

    def _enter(self, contribution: ir.Name, mask: ir.Name, count: ir.Name, code: Code) -> None:
        """The lines that accumulate a contribution into its group, which it begins if it is the first one."""
        stride = code.integer(self._group_words)
        slots, groups = code.pointer("u32", StatePart("slots"), "s"), code.pointer("i64", words_part("i64"))
        contributions = code.pointer("i64", StatePart("contributed_i64"), "s")
        key = code.let(code.call("load_i64", contributions, contribution))
        group = code.let(code.call("group_enter", slots, mask, groups, stride, count, key))
        at = code.let(code.call("mul_i64", group, stride))
        words: list[ir.Expression] = [code.integer(1)] * len(self.sink.accumulators)
        for k, n in enumerate(written(self.sink), 1):
            word = self.sink.accumulators[n].word
            part: SinkName = "contributed_i64" if word == "i64" else "contributed_f64"
            index = code.call("row_index", code.call("add_i64", contribution, code.integer(k)))
            words[n] = code.let(code.call(word, ir.Load(code.pointer(word, StatePart(part), "s"), index)))

        def put(verb: str) -> None:
            for n, (accumulator, word) in enumerate(zip(self.sink.accumulators, words, strict=True), 1):
                name = verb if verb == "store" else f"{verb}_{accumulator.op}"
                into = code.pointer(accumulator.word, words_part(accumulator.word))
                code.do(code.call(f"{name}_{accumulator.word}", into, code.call("add_i64", at, code.integer(n)), word))

        with code.when(code.call("eq_i64", group, count)):
            code.do(code.call("store_i64", groups, at, key))
            put("store")
            code.set(count, code.call("add_i64", count, code.integer(1)))
        with code.otherwise():
            put("accumulate")

    # ---- run time ----

    def columns_of(
        self, contributions: Contributions, device: Device, workers: int, label: str
    ) -> tuple[Count, list[Values]]:
        """How many groups there are, and the columns of their keys and aggregates. OutOfRangeError where a result does not fit
        its type."""
        kernel, bindings, sites = self.unit
        failed = no_failures(sites, device, label)
        parts = int(contributions.part_groups.size)
        made = OutputState(GroupState(0, contributions.contributed_i64), 0, failed.view("uint32"), device)
        self._allocate(made, Count(contributions.rows), device, label)
        slots = int(contributions.part_masks.max()) + 1
        target = cast(MorselTarget, get_target(self.target))
        own: list[Sequence[object]] = []
        held = []
        for _ in range(min(workers, parts)):
            groups = GroupState(0, device.empty(contributions.most * self._group_words, "int64", label))
            groups.slots = device.empty(slots, "uint32", label)
            held.append(groups)
            given = _Given(contributions, replace(made, groups=groups), device)
            own.append(arguments_of(target, kernel, [value_of(bindings[p.name], given) for p in kernel.parameters]))
        token = current()
        target.run_morsels(target.compile(kernel), ((0, parts),), own, 1, None if token is None else token.is_stopped)
        check()
        raise_failed(failed, sites)
        return self._closed(made, contributions, device, workers, label)

    def _closed(
        self, made: OutputState, contributions: Contributions, device: Device, workers: int, label: str
    ) -> tuple[Count, list[Values]]:
        pieces: Pieces = []
        for start, groups in zip(contributions.part_rows.tolist(), contributions.part_groups.tolist(), strict=False):
            if pieces and sum(pieces[-1]) == start:
                pieces[-1] = pieces[-1][0], pieces[-1][1] + groups
            elif groups:
                pieces.append((start, groups))
        whats = [w for _, _, w in self.sink.keys] + [plan.result for _, plan in self.sink.aggregates]
        closed: list[Values] = []
        for what, (values, valid) in zip(whats, made.columns, strict=True):
            data = close_gaps(values, pieces, words_a_row(what.physical_type), device, label, workers)
            closed.append((data, None if valid is None else close_gaps(valid, pieces, 1, device, label, workers)))
        return Count(sum(n for _, n in pieces)), closed


def _load(part: SinkName, type_: ElementType, at: ir.Expression, code: Code) -> ir.Name:
    return code.let(code.call("i64", ir.Load(code.pointer(type_, StatePart(part), "s"), at)))
