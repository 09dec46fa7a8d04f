"""Where the key of a probe stands in a join table: its place in an array, or its slot in a hash table."""

from __future__ import annotations

from contextlib import ExitStack

from gquery.kernels import ir
from gquery.kernels.bindings import BuildPart
from gquery.kernels.code import Code
from gquery.kernels.convert import convert
from gquery.kernels.hashes import hash_values
from gquery.kernels.render import render
from gquery.kernels.stored import StoredColumn, load
from gquery.kernels.values import Value
from gquery.operators.join_build import hash_key, stored_key
from gquery.operators.key_filter_code import test_filter
from gquery.operators.keys import encode_keys, equal_values
from gquery.planner.physical import JoinTable, Probe


def probe_values(step: Probe, code: Code) -> list[Value]:
    """The probe's keys in the form in which the build side's lie."""
    values = []
    for e, column in zip(step.keys, step.table.keys, strict=True):
        what = stored_key(step.table, column).properties
        value = render(e, code)
        if value.properties.dtype.is_string or value.properties.register is not what.register:
            if not (what.dtype.is_string and what.dictionary is not None and value.properties.dictionary is None):
                value = convert(value, what, code)
        values.append(value)
    return values


def lookup(step: Probe, code: Code) -> tuple[ir.Expression, ir.Expression | None]:
    """The encoded key of a direct-address table, and whether it is one; or the slot of a hash table, negative where
    there is none."""
    table = step.table
    values = probe_values(step, code)
    inside: ir.Expression | None
    if table.layout == "direct-address":
        assert table.key_encoding is not None
        encoded, inside = encode_keys(values, table.key_encoding, code, checked=True)
        return encoded, test_filter(step, encoded, inside, code)
    key: ir.Expression | None = None
    if table.inline_keys:
        key, inside = hash_key(table, values, code, checked=True)
        inside = test_filter(step, key, inside, code)
    else:
        inside = code.both(*(v.ok for v, safe in zip(values, table.null_safe, strict=True) if not safe))
    slot = code.let(code.integer(-1))
    if inside is not None:
        code.open_if(inside)
    if key is not None:
        keys = code.pointer("i64", BuildPart(table.stage, "keys"), "b")
        code.set(slot, code.call("key_find", keys, capacity(table, code), key))
    else:
        _find(step, values, slot, code)
    if inside is not None:
        code.close()
    return slot, code.let(code.call("ge_i64", slot, code.integer(0)))


def capacity(table: JoinTable, code: Code) -> ir.Expression:
    """The slots of a hash table of keys."""
    return code.scalar(BuildPart(table.stage, "capacity"))


def _find(step: Probe, values: list[Value], slot: ir.Name, code: Code) -> None:
    """Set ``slot`` to where the key stands in a hash table of row numbers."""
    table = step.table
    slots = code.pointer("u32", BuildPart(table.stage, "slots"), "b")
    mask = code.scalar(BuildPart(table.stage, "mask"))
    one, zero = code.integer(1), code.integer(0)
    at = code.let(code.call("and_i64", hash_values(values, code), mask))
    there = code.let(code.call("i64", ir.Load(slots, at)))
    with code.loop(code.call("ne_i64", there, zero)):
        other = code.let(code.call("sub_i64", there, one))
        with ExitStack() as tests:
            for value, column, safe in zip(values, table.keys, table.null_safe, strict=True):
                stored = stored_key(table, column)
                theirs = load(
                    StoredColumn(table.stage, column.id, stored.physical_type, stored.properties), other, code
                )
                tests.enter_context(code.when(equal_values(value, theirs, safe, code)))
            code.set(slot, at)
        code.set(there, zero)
        with code.when(code.call("lt_i64", slot, zero)):
            code.set(at, code.call("and_i64", code.call("add_i64", at, one), mask))
            code.set(there, code.call("i64", ir.Load(slots, at)))
