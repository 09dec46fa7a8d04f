"""Several states of groups become one: those of workers and of partitions.

States of arrays mean the same at the same slot. Hash tables are taken out and entered into one that has room for all
their slots; few slots are sorted instead, since that needs no compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.kernels.bindings import Argument
from gquery.kernels.builtin import gathers, grouping, scans
from gquery.kernels.builtin.define import builtin_kernel, launch, namespace
from gquery.kernels.builtin.group_columns import distinct_sorted, full_of, slot_columns
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import arguments_of
from gquery.kernels.targets.morsels import run_parts
from gquery.operators.accumulate_state import slot_words
from gquery.operators.group_state import GroupState
from gquery.planner.aggregates import Accumulator
from gquery.planner.physical import Group


def combine_arrays(
    states: Sequence[GroupState], accumulators: Sequence[Accumulator], slots: int, workers: int
) -> GroupState:
    """States whose slots mean the same, merged into the first."""
    total = states[0]

    def merge(lo: int, hi: int) -> None:
        for other in states[1:]:
            for k, accumulator in enumerate(accumulators):
                grouping.combine_into(total.accumulators[k][lo:hi], other.accumulators[k][lo:hi], accumulator.op)

    if len(states) > 1 and accumulators:
        on_host = isinstance(total.words_i64, np.ndarray)
        run_parts(
            merge, slots, tuning.accumulators.combined_slots if on_host and workers > 1 else max(slots, 1), workers
        )
    for other in states[1:]:
        _unite(total.touched, other.touched)
        _unite(total.bits, other.bits)
    if total.bits is not None:
        total.touched, total.bits = scans.flags_of_bits(total.bits, slots), None
    return total


def _unite(total: Array | None, other: Array | None) -> None:
    """Set in one state's flags those that are set in another's, where there are any."""
    if total is not None and other is not None:
        grouping.combine_into(total, other, "or")


def slots_of(sink: Group, state: GroupState, capacity: int) -> tuple[Array, list[Array]]:
    """The keys and accumulated words of the groups in a hash table."""
    stride = slot_words(sink)
    if namespace(state.words_i64) is np:
        slots = state.words_i64.reshape(-1, stride)
        at = scans.compact(slots[:, 0] != 0)
        found = slots[at]
        keys = found[:, 0] * (at != capacity)  # the slot behind the others is that of the key 0
        words = [np.ascontiguousarray(found[:, 1 + k]) for k in range(len(sink.accumulators))]
    else:
        keys, words = slot_columns(state.words_i64, stride, len(sink.accumulators), capacity)
    return keys, [w if f.word == "i64" else w.view("float64") for w, f in zip(words, sink.accumulators, strict=True)]


def filled(sink: Group, states: Sequence[GroupState]) -> int:
    """How many slots of hash tables on the host hold a group."""
    return sum(int(np.count_nonzero(s.words_i64[:: slot_words(sink)])) for s in states)


_STARTED = builtin_kernel(  # slots as they are before a group is in them
    "start:*i64 stride:i64 slots:*i64",
    "at = mul_i64(i64(i), stride)",
    "k = i64(0)",
    "while lt_i64(k, stride):",
    "    store_i64(slots, add_i64(at, k), i64(start[row_index(k)]))",
    "    k = add_i64(k, 1)",
)


def empty_table(sink: Group, capacity: int, device: Device, label: str, workers: int) -> GroupState:
    """A hash table without groups: memory that is cleared, if every identity is 0."""
    stride, size = slot_words(sink), capacity + 2
    start = np.zeros(stride, np.int64)  # of a slot
    start[1 : 1 + len(sink.accumulators)] = [accumulator.identity for accumulator in sink.accumulators]
    if not start.any():
        return GroupState(capacity - 1, device.zeros(size * stride, "int64", label))
    slots = device.empty(size * stride, "int64", label)
    if device.is_cuda:
        launch(_STARTED, size, slots, device.from_host(start), stride, slots)
        return GroupState(capacity - 1, slots)
    part = min(tuning.accumulators.combined_slots, size)
    few = np.tile(start, part)

    def fill(lo: int, hi: int) -> None:
        slots[lo * stride : hi * stride] = few[: (hi - lo) * stride]

    run_parts(fill, size, part, workers)  # all words of a few slots at once: memory is scanned only once
    return GroupState(capacity - 1, slots)


def combine_tables(
    sink: Group, states: Sequence[GroupState], capacity: int, device: Device, label: str, workers: int
) -> tuple[GroupState, int]:
    """One hash table of a CPU with the groups of several, and its capacity."""
    target, kernel = get_target("cpu"), _merger(sink)
    compiled = target.compile(kernel)
    room = 1 << (2 * filled(sink, states) - 1).bit_length()
    while True:
        table = empty_table(sink, room, device, label, workers)
        status = np.zeros(1, np.uint32)

        def enter(lo: int, hi: int, table: GroupState = table, status: Array = status) -> None:
            for number in range(lo, hi):
                source = states[number]
                values: tuple[Argument, ...] = (source.words_i64, source.words_f64, capacity, table.words_i64,
                          table.words_f64, table.mask, status)  # fmt: skip
                target.run(compiled, 0, capacity + 1, arguments_of(target, kernel, values))

        run_parts(enter, len(states), 1, workers)
        if not status[0]:
            return table, room
        room *= 2


def _merger(sink: Group) -> Kernel:
    """The kernel that enters what a hash table holds into another one, into which others enter theirs."""
    stride = slot_words(sink)
    words = [
        f"    atomic_{f.op}_{f.word}(to_{f.word}, add_i64(at, {n}), {f.word}(from_{f.word}[add_i64(slot, {n + 1})]))"
        for n, f in enumerate(sink.accumulators)
    ]
    return builtin_kernel(
        "from_i64:*i64 from_f64:*f64 behind:i64 to_i64:*i64 to_f64:*f64 mask:i64 status:*u32",
        f"slot = mul_i64(i64(i), {stride})",
        "key = i64(from_i64[slot])",
        "if ne_i64(key, 0):",
        "    if eq_i64(i64(i), behind):",  # the slot behind the others is that of the key 0
        "        key = i64(0)",
        f"    at = slot_insert(to_i64, mask, {stride}, key, status, 0)",
        "    if ge_i64(at, 0):",
        *("    " + line for line in words or ["    pass"]),
    ).kernel


def combine_slots(
    sink: Group, tables: Sequence[tuple[Array, list[Array]]], xp: ModuleType
) -> tuple[Array, list[Array]]:
    """The keys and accumulated words of several tables, merged by sorting the keys."""
    given = gathers.concatenated([keys for keys, _ in tables])
    unique, inverse = np.unique(given, return_inverse=True) if xp is np else distinct_sorted(given)
    merged = []
    for k, accumulator in enumerate(sink.accumulators):
        parts = gathers.concatenated([words[k] for _, words in tables])
        total = full_of(parts, unique.size, accumulator.identity, parts.dtype)
        grouping.accumulate_at(total, inverse, parts, accumulator.op)
        merged.append(total)
    return unique, merged
