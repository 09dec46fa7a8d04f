"""Large states of groups become columns: one kernel goes over the slots of a state once, takes keys apart, makes
results, and writes them as their physical types have them. Threads of a CPU do so with a part of the slots each, whose
groups were counted before; on a GPU a bitmap of the slots where groups are says where each is written. Of a table of
row numbers the slots come in the order of their rows, and what the keys are is taken from these.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import field
from functools import partial
from typing import Literal, Protocol, assert_never, cast

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.errors import InternalError
from gquery.expression.facts import INT64_BITS
from gquery.expression.types import PhysicalType, Register
from gquery.kernels import ir
from gquery.kernels.bindings import (
    Argument,
    Binding,
    BuildPart,
    ColumnPart,
    Constant,
    Content,
    ErrorSite,
    SinkName,
    StatePart,
    TextMatches,
)
from gquery.kernels.builtin import scans
from gquery.kernels.code import Code
from gquery.kernels.kernel import ElementType, Kernel
from gquery.kernels.readback import Count, read_scalar
from gquery.kernels.stored import element_type, store
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import AbortableTarget, arguments_of
from gquery.kernels.targets.capabilities import capabilities
from gquery.kernels.targets.morsels import run_parts
from gquery.kernels.unroll import unrolled
from gquery.kernels.values import ValueProperties
from gquery.operators.accumulate_state import slot_words
from gquery.operators.base import SinkState, words_a_row, words_part
from gquery.operators.finalize import emit_result
from gquery.operators.group_state import GroupState
from gquery.operators.materialize import POSITION
from gquery.planner.aggregates import has_plain_count
from gquery.planner.layouts import null_key
from gquery.planner.physical import Group
from gquery.runtime.records import cached_property, dataclass, replace

Values = tuple[Array, Array | None]
"""The values of a column as its physical type has them, and their validity (uint8)."""


@dataclass(slots=True)
class OutputState(SinkState):
    """What the kernel reads and writes: a state of groups, and the columns of keys and results that it makes of it."""

    groups: GroupState
    behind: int  # the slot of the key 0, behind the others of a hash table
    status: Array  # uint32: errors
    device: Device
    start: int = 0  # the row that the first group of a part is written to
    ends: Array | None = None  # int64: the groups up to the end of each word of the bitmap
    key: list[Array] = field(default_factory=list)
    key_valid: list[Array | None] = field(default_factory=list)
    out: list[Array] = field(default_factory=list)
    out_valid: list[Array | None] = field(default_factory=list)

    @property
    def columns(self) -> list[Values]:
        """Those of keys, then those of results."""
        return [*zip(self.key, self.key_valid, strict=True), *zip(self.out, self.out_valid, strict=True)]

    def part(self, part: StatePart) -> Argument:
        """One of these, or a part of the state."""
        is_own = part.part in OutputState.__slots__
        return SinkState.part(self, part) if is_own else self.groups.part(part)


def is_probable(sink: Group, target: str) -> bool:
    """Whether the groups of a sink will probably become columns so."""
    if sink.sparse or capabilities(target).is_interpreted:
        return False
    on_device, limits = capabilities(target).has_own_memory, tuning.accumulators
    if sink.layout == "row-id hash":
        return on_device or 2 * sink.groups >= limits.finalized_slots
    slots = 2 * sink.groups if sink.key_encoding is None or sink.layout == "hash" else sink.key_encoding.size
    return slots * (len(sink.accumulators) + 1) > limits.host_words if on_device else slots >= limits.finalized_slots


@dataclass(frozen=True)
class GroupOutput:
    """The kernel of a sink whose groups are in arrays or in a hash table, and its run."""

    sink: Group
    target: Literal["cpu", "cuda"]

    @property
    def _has_warps(self) -> bool:
        return capabilities(self.target).has_warps

    @property
    def _loads_at_once(self) -> bool:
        """Whether a group's words are few enough to be loaded before the first result is made."""
        return len(self.sink.accumulators) <= tuning.accumulators.loaded_words

    # ---- text ----

    @cached_property
    def unit(self) -> tuple[Kernel, dict[str, Binding], tuple[ErrorSite, ...]]:
        """The kernel, what its parameters stand for, and what its errors mean."""
        code = Code(self.target)
        if self.sink.layout == "row-id hash":
            slot = code.let(code.call("i64", ir.Load(code.pointer("u32", StatePart("slots_in_order"), "c"), ir.ROW)))
            code.hoisted.add(slot)
            code.set(POSITION, code.call("i64", ir.ROW))
            self._row(None, slot, code)
        else:
            self._encoded(code)
        kernel = code.kernel()
        if code.hoisted and self._loads_at_once:
            kernel = replace(
                kernel, unrolled=unrolled(kernel.body, tuning.accumulators.unrolled_rows, code.hoisted, kernel.prologue)
            )
        return kernel, code.bindings, tuple(code.sites)

    def _encoded(self, code: Code) -> None:
        """The lines for a slot of a state by encoded keys."""
        with code.when(self._is_there(code)):
            slot = key = code.let(code.call("i64", ir.ROW))
            if self.sink.layout == "hash":
                stride, slots = code.integer(slot_words(self.sink)), StatePart("words_i64")
                slot = code.let(code.call("mul_i64", key, stride))
                is_zero = code.call("eq_i64", key, code.scalar(StatePart("behind")))
                key = code.let(code.call("i64", ir.Load(code.pointer("i64", slots), self._index(slot, code))))
                with code.when(is_zero):  # the slot behind the others is that of the key 0
                    code.set(key, code.integer(0))
            self._row(key, slot, code)
            if not self._has_warps:
                code.set(POSITION, code.call("add_i64", POSITION, code.integer(1)))

    def _is_there(self, code: Code) -> ir.Expression:
        """A test that a slot has a group; ``pos`` is where that is written."""
        if self._has_warps:
            parts: tuple[tuple[SinkName, ElementType], ...] = (("bits", "u32"), ("ends", "i64"))
            word, end = (
                code.let(
                    code.call(
                        "i64", ir.Load(code.pointer(type_, StatePart(part), "s"), code.call("word_index", ir.ROW))
                    )
                )
                for part, type_ in parts
            )
            code.hoisted.update((word, end))
            code.set(POSITION, code.call("sub_i64", end, code.call("bits_from", word, ir.ROW)))
            return code.call("bit_at", word, ir.ROW)
        code.prologue.append(ir.Let(POSITION, code.scalar(StatePart("start"))))
        part, element = self._flags
        slot: ir.Expression = ir.ROW
        if self.sink.layout == "hash":
            stride = code.integer(slot_words(self.sink))
            slot = self._index(code.call("mul_i64", code.call("i64", ir.ROW), stride), code)
        return code.call("ne_i64", code.call("i64", ir.Load(code.pointer(element, part), slot)), code.integer(0))

    def _index(self, slot: ir.Expression, code: Code) -> ir.Expression:
        return code.call("row_index", slot)

    @property
    def _flags(self) -> tuple[StatePart, ElementType]:
        """The array that says what groups there are, and the type of its elements."""
        if self.sink.layout == "hash":
            return StatePart("words_i64"), "i64"
        plain = has_plain_count(self.sink.accumulators)
        return (StatePart("touched"), "u8") if plain is None else (StatePart("accumulators", plain), "i64")

    def _row(self, key: ir.Expression | None, slot: ir.Expression, code: Code) -> None:
        """The lines for a group that is there; ``key`` is its encoded key."""
        words: dict[int, ir.Expression] = {}
        if self._loads_at_once:
            words = {n: self._word(n, slot, code) for n in range(len(self.sink.accumulators))}
        if key is not None:
            self._keys(key, code)
        for n, (_, plan) in enumerate(self.sink.aggregates):
            if not self._loads_at_once:
                used = plan.accumulators if plan.count is None else (*plan.accumulators, plan.count)
                words = {k: code.once(("word", k), partial(self._word, k, slot, code)) for k in used}
            value = emit_result(plan, words, code)
            self._store(StatePart("out", n), plan.result, value.var, value.ok, code)

    def _word(self, n: int, slot: ir.Expression, code: Code) -> ir.Name:
        word = self.sink.accumulators[n].word
        if self.sink.layout != "hash":
            at = ir.ROW if self.sink.layout == "direct-address" else self._index(slot, code)
            return code.let(code.call(word, ir.Load(code.pointer(word, StatePart("accumulators", n)), at)))
        at = code.call("add_i64", slot, code.integer(n + 1))
        slots = code.pointer(word, words_part(word))
        return code.let(code.call(word, ir.Load(slots, self._index(at, code))))

    def _keys(self, key: ir.Expression, code: Code) -> None:
        """The lines that take an encoded key apart; see `keys.decode_keys`."""
        key_encoding = self.sink.key_encoding
        if key_encoding is None:
            what = self.sink.keys[0][2]
            ok = code.let(code.call("ne_i64", key, code.constant(null_key(what)))) if what.nullable else None
            self._store(StatePart("key", 0), what, key, ok, code)
            return
        rest = key
        for n, ((_, _, what), part) in enumerate(zip(self.sink.keys, key_encoding.parts, strict=True)):
            value = rest
            if n < len(key_encoding.parts) - 1:
                bits = key_encoding.bits
                if bits is None:
                    width = code.constant(part.width)
                    value = code.let(code.call("mod_u64", rest, width))
                    rest = code.let(code.call("div_u64", rest, width))
                else:
                    value = code.let(code.call("and_i64", rest, code.constant(part.width - 1)))
                    rest = code.let(code.call("shr_u64", rest, code.constant(bits[n])))
            ok = code.let(code.call("ne_i64", value, code.constant(part.width - 1))) if part.nullable else None
            value = code.let(code.call("add_i64", value, code.constant(part.base)))
            self._store(StatePart("key", n), what, value, ok, code)

    def _store(
        self, into: StatePart, what: ValueProperties, value: ir.Expression, ok: ir.Expression | None, code: Code
    ) -> None:
        """Store a value; where it is NULL, a zero."""
        pointer = code.pointer(element_type(what.physical_type), into, "o")
        if what.nullable:
            valid = code.pointer("u8", StatePart("key_valid" if into.part == "key" else "out_valid", into.number), "o")
            code.do(code.call("store_bool", valid, POSITION, ok or ir.TRUE))
        if ok is not None:
            kept, value = value, code.let(code.zero(Register.I64 if what.register is Register.BOOL else what.register))
            with code.when(ok):
                code.set(value, kept)
        if what.register is Register.BOOL:
            value = code.call("truth", value)
        store(code, what.physical_type, pointer, POSITION, value)

    # ---- run time ----

    def columns(
        self, state: GroupState, capacity: int, device: Device, workers: int, label: str
    ) -> tuple[Count, list[Values]]:
        """How many groups there are in a state, and the columns of their keys and aggregates; of aggregates alone for a
        table of row numbers, whose ``slots_in_order`` are in the state. OutOfRangeError where a result does not fit its type."""
        sites = self.unit[2]
        failed = no_failures(sites, device, label)
        made = OutputState(state, capacity, failed.view("uint32"), device)
        if self.sink.layout == "row-id hash":
            assert state.slots_in_order is not None
            total = int(state.slots_in_order.size)
            count = state.groups or Count(total)
            self._allocate(made, count, device, label)
            part = max(total, 1) if device.is_cuda else max(tuning.accumulators.finalized_slots, -(-total // workers))
            run_parts(lambda lo, hi: self._write(made, lo, hi, count.number), total, part, workers)
        else:
            count = self._picked(made, device, workers, label)
        raise_failed(failed, sites)
        return count, made.columns

    def _picked(self, made: OutputState, device: Device, workers: int, label: str) -> Count:
        """Write the groups of a state by encoded keys; how many there are."""
        stride = slot_words(self.sink) if self.sink.layout == "hash" else 1
        size, state = made.behind + (self.sink.layout == "hash"), made.groups
        if self._has_warps:
            if state.bits is None:
                state.bits = scans.bits_of_every(self._presence(state)[: size * stride], stride)
            made.ends, count = scans.bits_up_to(state.bits, size)
            self._allocate(made, count, device, label)
            self._write(made, 0, size)
        else:
            flags = self._presence(state)[: size * stride : stride]
            part = max(
                tuning.accumulators.finalized_slots // tuning.accumulators.parts_a_worker,
                -(-size // (tuning.accumulators.parts_a_worker * workers)),
            )
            counts = run_parts(lambda lo, hi: int(np.count_nonzero(flags[lo:hi])), size, part, workers)
            starts = np.cumsum([0, *counts])
            count = Count(int(starts[-1]))
            self._allocate(made, count, device, label)
            run_parts(
                lambda lo, hi: self._write(replace(made, start=int(starts[lo // part])), lo, hi), size, part, workers
            )
        return count

    def _presence(self, state: GroupState) -> Array:
        """The array that `_flags` binds: every `slot_words`-th word of a hash table is a key, and not 0 where there is one."""
        if self.sink.layout == "hash":
            return state.words_i64
        return state.presence(has_plain_count(self.sink.accumulators))

    def _write(self, made: OutputState, lo: int, hi: int, number: Array | None = None) -> None:
        """Write the groups in a part of the slots; of those in order as many as ``number`` says."""
        (kernel, bindings, _), target = self.unit, get_target(self.target)
        arguments = arguments_of(target, kernel, [value_of(bindings[p.name], made) for p in kernel.parameters])
        with nullcontext() if number is None else cast(AbortableTarget, target).limited_to(number):
            target.run(target.compile(kernel), lo, hi, arguments)

    def _allocate(self, made: OutputState, count: Count, device: Device, label: str) -> None:
        """Room for the columns; behind the last row stand empty texts."""
        rows = count.bound

        def column(what: ValueProperties) -> Values:
            is_cleared = count.number is not None and what.physical_type is PhysicalType.VIEW
            make = device.zeros if is_cleared else device.empty
            values = make(words_a_row(what.physical_type) * rows, what.physical_type.numpy, label)
            return values, device.empty(rows, "uint8", label) if what.nullable else None

        keys = () if self.sink.layout == "row-id hash" else self.sink.keys
        for _, _, what in keys:
            values, valid = column(what)
            made.key.append(values)
            made.key_valid.append(valid)
        for _, plan in self.sink.aggregates:
            values, valid = column(plan.result)
            made.out.append(values)
            made.out_valid.append(valid)


def no_failures(sites: Sequence[ErrorSite], device: Device, label: str) -> Array:
    """A status block (int64) for these errors, of which none has happened."""
    return device.zeros(-(-len(sites) // INT64_BITS), "int64", label)


def raise_failed(failed: Array, sites: Sequence[ErrorSite]) -> None:
    """Raise the first error that a status block says."""
    for n in range(failed.size):
        if bits := read_scalar(failed[n : n + 1], expected=0):
            site = sites[INT64_BITS * n + (bits & -bits).bit_length() - 1]
            raise site.error(site.message)


class Given(Protocol):
    """What parameters of such a kernel stand for."""

    device: Device

    def part(self, part: StatePart) -> Argument:
        """See `SinkState.part`."""
        ...


def value_of(binding: Binding, given: Given) -> Argument:
    """What a parameter stands for."""
    match binding:
        case Constant(value):
            return value
        case Content(buffer):  # the constants of many aggregates
            return buffer.on(given.device)
        case StatePart():
            return given.part(binding)
        case ColumnPart() | BuildPart() | TextMatches():
            raise InternalError(f"groups are made of their state, not of {binding}")
        case _:
            assert_never(binding)
