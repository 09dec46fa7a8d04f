"""The lines that set a bit of a key filter and that test one (see `operators.key_filter`)."""

from __future__ import annotations

from gquery.kernels import ir
from gquery.kernels.bindings import BuildPart, JoinName, StatePart
from gquery.kernels.code import Code
from gquery.kernels.targets.capabilities import capabilities
from gquery.planner.layouts import KeyFilter
from gquery.planner.physical import JoinTable, Probe


def emit_filter_bit(table: JoinTable, key: ir.Expression, code: Code) -> None:
    """Set the bit of a key that is entered; a filter that is the table itself needs no other one."""
    if table.filter is None or table.filter.is_table:
        return
    at = code.call("shr_u64", key, code.scalar(StatePart("filter_shift")))
    code.do(code.call("bit_put" if table.by_one else "bit_set", code.pointer("u32", StatePart("filter"), "s"), at))


def test_filter(step: Probe, key: ir.Expression, inside: ir.Expression | None, code: Code) -> ir.Expression | None:
    """Whether a key that is ``inside`` the table's range (None: all are) may be in the table; ``inside`` itself where no filter
    is tested."""
    if step.filter is None:
        return inside
    return test_inside(_test(step.table, step.filter, key, code), inside, code)


def test_inside(test: ir.Expression, inside: ir.Expression | None, code: Code) -> ir.Name:
    """A variable with what a test of a key says where the key is ``inside`` the table's range (None: all are)."""
    if inside is None:
        return code.let(test)
    found = code.let(ir.FALSE)
    with code.when(inside):
        code.set(found, test)
    return found


def _test(table: JoinTable, made: KeyFilter, key: ir.Expression, code: Code) -> ir.Expression:
    part: JoinName = "bits" if made.is_table else "filter"
    if not made.is_table:
        key = code.call("shr_u64", key, code.scalar(BuildPart(table.stage, "filter_shift")))
    bits = code.pointer("u32", BuildPart(table.stage, part), "b")
    if capabilities(code.target).has_shared_memory:
        return code.call("shared_bit_test", _in_shared_memory(table, made, bits, code), key)
    return code.call("bit_test", bits, key)


def _in_shared_memory(table: JoinTable, made: KeyFilter, bits: ir.Name, code: Code) -> ir.Expression:
    """The first 64-bit word of a block's copy of a filter, made before its first row."""
    first = code.shared_filters.get(table.stage)
    if first is None:
        code.uses_block = True
        first = code.shared_filters[table.stage] = code.constant(code.shared_words)
        code.shared_words += made.shared_words
        copy = code.call("shared_copy", first, code.constant(made.words), bits)
        code.prologue += [ir.Store(copy), ir.Store(code.call("shared_begin"))]
    return first
