"""Join tables: the lines that enter a row of the build side, and the search for a key's slot that probes share.

A *direct-address* table is addressed by the encoded key. An *inline-key* hash table holds keys of one integer beside
what is asked for; other hash tables hold row numbers alone, and keys are compared where they stand, in the columns.

A unique table holds a row's number plus 1, or an `InlinePayload` of its columns. Where uniqueness is only expected, the
build leaves what tells whether it was right: how many rows it entered, or that it met a key again. A table that is
larger than a GPU's cache is not filled here: each row leaves a word, and all words are radix-partitioned and entered later.
"""

from __future__ import annotations

from contextlib import ExitStack

from gquery import tuning
from gquery.errors import OperationalError
from gquery.expression.expr import Column
from gquery.expression.facts import BITMAP_BITS, ROW_ID_BITS
from gquery.expression.types import PhysicalType
from gquery.kernels import ir
from gquery.kernels.bindings import StatePart
from gquery.kernels.code import Code
from gquery.kernels.hashes import hash_values
from gquery.kernels.stored import StoredColumn, element_type, load, store
from gquery.kernels.targets.capabilities import capabilities
from gquery.kernels.values import Value
from gquery.operators.inline_payload import encode_payload
from gquery.operators.key_filter_code import emit_filter_bit
from gquery.operators.keys import encode_keys, equal_values
from gquery.planner.physical import JoinTable, Stored

_ENTERED = ir.Name("entered")  # rows of the thread


def emit_build(table: JoinTable, code: Code) -> None:
    """The lines that enter row ``i`` of the build side."""
    values = [code.column(c) for c in table.keys]
    key: ir.Expression = ir.NONE
    inside: ir.Expression | None
    if table.layout == "direct-address":
        assert table.key_encoding is not None
        key, inside = encode_keys(values, table.key_encoding, code, checked=False)
    elif table.inline_keys:
        key, inside = hash_key(table, values, code, checked=False)
    else:
        assert table.layout == "hash", table.layout
        oks = [v.ok for v, safe in zip(values, table.null_safe, strict=True) if not safe]
        inside = code.both(*oks)
    if inside is not None:
        code.open_if(inside)
    if not _is_set_once(table, code):
        emit_filter_bit(table, key, code)
    if table.layout == "direct-address":
        _enter_direct_address(table, key, code)
    elif table.inline_keys:
        _enter_inline_key(table, key, code)
    else:
        stored_keys = tuple(stored_key(table, c) for c in table.keys)
        slot = find_or_insert(code, values, stored_keys, (True,) * len(values), grows=False)
        if not table.unique and not table.exists:
            _note_slot(slot, code)
    if inside is not None:
        code.close()


def hash_key(
    table: JoinTable, values: list[Value], code: Code, checked: bool
) -> tuple[ir.Expression, ir.Expression | None]:
    """The integer that an inline-key hash table holds for a row's keys, and whether the row takes part. See
    `encode_keys`."""
    if table.key_encoding is None:
        return values[0].var, values[0].ok
    encoded, inside = encode_keys(values, table.key_encoding, code, checked)
    return code.let(code.call("add_i64", encoded, code.integer(1))), inside  # 0 has a slot of its own, but costs a test


def slot_physical_type(table: JoinTable) -> PhysicalType:
    """What a slot of a unique direct-address table is held in."""
    return PhysicalType.U32 if table.inline_payload is None else table.inline_payload.physical_type


def stored_key(table: JoinTable, column: Column) -> Stored:
    """How the column of a key is stored in the build side's frame."""
    return next(s for s in table.columns if s.column == column)


def is_radix_partitioned(table: JoinTable) -> bool:
    """Whether the build leaves a word a row (slot and payload), which `join_table` partitions and enters into the table."""
    return table.radix_partitioned and table.unique and not table.exists


def is_speculated(table: JoinTable) -> bool:
    """Whether the build speculates that its keys are unique, and has to validate that."""
    return table.unique and table.expected_unique


def is_counted(table: JoinTable) -> bool:
    """Whether the build counts the rows that it enters: to find out if keys are unique, or because rows that no frame holds
    would not be known otherwise."""
    return is_speculated(table) or table.counted


def _enter_direct_address(table: JoinTable, key: ir.Expression, code: Code) -> None:
    if table.exists:
        _set_bit(table, key, code)
    elif is_radix_partitioned(table):
        held = code.call("or_i64", code.call("shl_i64", key, code.integer(ROW_ID_BITS)), _held(table, code))
        code.do(code.call("store_i64", code.pointer("i64", StatePart("to_partition"), "s"), ir.ROW, held))
    elif table.unique:
        physical_type = slot_physical_type(table)
        slots = code.pointer(element_type(physical_type), StatePart("slots"), "s")
        store(code, physical_type, slots, key, _held(table, code))
        if is_counted(table):
            _count_entered(code)
    else:
        _note_slot(key, code)


def _set_bit(table: JoinTable, key: ir.Expression, code: Code) -> None:
    """Set the bit of a key. Where neighbouring rows have the same key, one lane of a warp does it for all: atomics on one
    word wait for each other, and none of the lanes would find the bit set yet."""
    bits = code.pointer("u32", StatePart("bits"), "s")
    if not _is_set_once(table, code):
        code.do(code.call("bit_put" if table.by_one else "bit_set", bits, key))
        return
    word = code.call("shr_i64", key, code.integer(BITMAP_BITS.bit_length() - 1))
    bit = code.call("shl_i64", code.integer(1), code.call("and_i64", key, code.integer(BITMAP_BITS - 1)))
    with code.when(code.let(code.call("is_first_lane_with", key))):
        code.do(code.call("atomic_or_u32", bits, word, bit))
        emit_filter_bit(table, key, code)


def _is_set_once(table: JoinTable, code: Code) -> bool:
    """Whether one lane of a warp sets the bit of all that have its key."""
    return table.clustered and table.exists and capabilities(code.target).has_warps


def _enter_inline_key(table: JoinTable, key: ir.Expression, code: Code) -> None:
    capacity = code.scalar(StatePart("capacity"))
    if not table.unique or table.exists:
        slot = code.call("key_insert", code.pointer("i64", StatePart("keys"), "s"), capacity, key)
        if table.exists:
            code.do(slot)
        else:
            _note_slot(code.let(slot), code)
        return
    pairs = code.pointer("i64", StatePart("pairs"), "s")
    enter = code.call("pair_insert", pairs, capacity, key, _held(table, code))
    if not is_speculated(table):
        code.do(enter)
        return
    with code.when(ir.Not(enter)):
        twice = code.pointer("u8", StatePart("twice"), "s")
        code.do(code.call("store_u8", twice, code.integer(0), code.integer(1)))


def _held(table: JoinTable, code: Code) -> ir.Expression:
    """What a unique table holds for the current row: never 0."""
    if table.inline_payload is not None:
        return encode_payload(table.inline_payload, code)
    return code.let(code.call("add_i64", code.call("i64", ir.ROW), code.integer(1)))


def _note_slot(slot: ir.Expression, code: Code) -> None:
    code.do(code.call("store_u32", code.pointer("u32", StatePart("slot_of_row"), "s"), ir.ROW, slot))


def _count_entered(code: Code) -> None:
    code.prologue.append(ir.Let(_ENTERED, code.integer(0)))
    code.set(_ENTERED, code.call("add_i64", _ENTERED, code.integer(1)))
    add = "reduce_add_i64" if capabilities(code.target).has_warps else "atomic_add_i64"
    total = code.pointer("i64", StatePart("entered"), "s")
    code.epilogue.append(ir.Store(code.call(add, total, ir.Constant(0), _ENTERED)))


def find_or_insert(
    code: Code, values: list[Value], stored: tuple[Stored, ...], null_safe: tuple[bool, ...], grows: bool
) -> ir.Name:
    """A variable with the slot of the current row's key in the table of row numbers ``slots``: found, or claimed for the
    row (-1, and the status bit "full", where neither). Keys are compared where they stand, in the columns of the source.

    A table that ``grows`` when it is full is not walked through to its end: a row gives up after some hundred slots, and sooner
    where another one has. One that was made for all rows has a free slot somewhere."""
    slots, mask = code.pointer("u32", StatePart("slots"), "s"), code.scalar(StatePart("mask"))
    one, zero = code.integer(1), code.integer(0)
    limits = tuning.group_layouts
    last = code.call("min_i64", mask, code.integer(limits.longest_walk - 1)) if grows else mask
    site = code.site(OperationalError, "a hash table is full", retry=True)
    hashed = hash_values(values, code)
    at = code.let(code.call("and_i64", hashed, mask))
    slot, tries = code.let(code.integer(-1)), code.let(zero)
    if grows:
        last = code.let(last)
    with code.loop(ir.And((code.call("lt_i64", slot, zero), code.call("le_i64", tries, last)))):
        there = code.let(code.call("i64", ir.Load(slots, at)))
        with code.when(code.call("eq_i64", there, zero)):
            mine = code.call("add_i64", code.call("i64", ir.ROW), one)
            code.set(there, code.call("cas_u32", slots, at, zero, mine))
            with code.when(code.call("eq_i64", there, zero)):
                code.set(slot, at)
        with code.when(code.call("ne_i64", there, zero)):
            other = code.let(code.call("sub_i64", there, one))
            with ExitStack() as tests:
                for value, column, safe in zip(values, stored, null_safe, strict=True):
                    theirs = load(
                        StoredColumn(None, column.column.id, column.physical_type, column.properties), other, code
                    )
                    tests.enter_context(code.when(equal_values(value, theirs, safe, code)))
                code.set(slot, at)
            code.set(at, code.call("and_i64", code.call("add_i64", at, one), mask))
            code.set(tries, code.call("add_i64", tries, one))
            if grows:
                is_long = code.call("eq_i64", tries, code.integer(limits.long_walk))
                with code.when(ir.And((is_long, code.call("has_failed", code.status(), site)))):
                    code.set(tries, code.call("add_i64", last, one))
    with code.when(code.call("lt_i64", slot, zero)):
        code.do(code.call("fail", code.status(), site))
    return slot
