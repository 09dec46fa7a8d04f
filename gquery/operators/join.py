"""Join: a build side enters its rows into a join table (`join_build`), and a probe looks them up inside another
pipeline's loop.

Layouts, chosen from plan properties by `planner.join_layout`: *direct-address* in an array over the encoded key (a bitmap where
only the existence of a match is asked), *hash* table of keys, or of row numbers whose keys are compared where they
stand, *loop* over all build rows where nothing is equal to anything, *one* for a side of one row at most. A key that
may stand on several rows has its rows in ranges (counted, scanned, filled), in the order of the build side.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from gquery.errors import CardinalityError
from gquery.expression.types import BOOLEAN
from gquery.kernels import ir
from gquery.kernels.bindings import BuildPart
from gquery.kernels.code import Code
from gquery.kernels.convert import convert
from gquery.kernels.render import describe, render
from gquery.kernels.stored import StoredColumn, element_type, load
from gquery.kernels.values import Value, value_properties
from gquery.operators.inline_payload import provide_payload_fields
from gquery.operators.join_build import emit_build, find_or_insert, hash_key, slot_physical_type, stored_key
from gquery.operators.key_filter_code import test_filter, test_inside
from gquery.operators.keys import encode_keys, equal_values, hash_values
from gquery.operators.read import provide_stored
from gquery.planner.logical.nodes import JoinKind
from gquery.planner.physical import JoinTable, Probe

Consumer = Callable[[], None]
MORE_THAN_ONE = "A subquery used as a value returned more than one row. Add LIMIT 1 or an aggregate."


def emit_probe(step: Probe, code: Code, consume: Consumer) -> None:
    """The lines that look the current row up and pass on what the kind of join says."""
    table = step.table
    if table.exists and table.layout in ("direct-address", "hash"):
        _consume_exists(step, code, _exists(step, code), consume)
    elif table.layout == "one" or (table.unique and table.layout in ("direct-address", "hash")):
        _emit_unique(step, code, consume)
    else:
        _emit_many(step, code, consume)


def _probe_values(step: Probe, code: Code) -> list[Value]:
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


def _lookup(step: Probe, code: Code) -> tuple[ir.Expression, ir.Expression | None]:
    """The encoded key of a direct-address table, and whether it is one; or the slot of a hash table, negative where
    there is none."""
    table = step.table
    values = _probe_values(step, code)
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
        code.set(slot, code.call("key_find", keys, _capacity(table, code), key))
    else:
        _find(step, values, slot, code)
    if inside is not None:
        code.close()
    return slot, code.let(code.call("ge_i64", slot, code.integer(0)))


def _capacity(table: JoinTable, code: Code) -> ir.Expression:
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


def _exists(step: Probe, code: Code) -> ir.Expression:
    """Whether some build row has the probe's key."""
    if step.table.layout == "hash":
        return _lookup(step, code)[1] or ir.TRUE
    bits = code.pointer("u32", BuildPart(step.table.stage, "bits"), "b")
    encoded, inside = _lookup(step, code)
    if step.filter is not None and step.filter.is_table and inside is not None:
        return inside
    return test_inside(code.call("bit_test", bits, encoded), inside, code)


def _held(step: Probe, code: Code) -> tuple[ir.Expression, ir.Expression]:
    """What the table holds for the one build row that matches, and whether there is one: an `InlinePayload` or the
    row's number plus 1 (0 where there is none), or the number itself of a side of one row."""
    table = step.table
    if table.layout == "one":
        count = code.scalar(BuildPart(table.stage, "count"))
        return code.integer(1), code.let(code.call("gt_i64", count, code.integer(0)))
    if table.inline_keys:
        where, inside = hash_key(table, _probe_values(step, code), code, checked=True)
        inside = test_filter(step, where, inside, code)
        pairs = code.pointer("i64", BuildPart(table.stage, "pairs"), "b")
        found = code.call("pair_find", pairs, _capacity(table, code), where)
    else:
        where, inside = _lookup(step, code)
        type_ = element_type(slot_physical_type(table)) if table.layout == "direct-address" else "u32"
        found = code.call("i64", ir.Load(code.pointer(type_, BuildPart(table.stage, "slots"), "b"), where))
    if inside is None:
        held = code.let(found)
    else:
        held = code.let(code.integer(0))
        with code.when(inside):
            code.set(held, found)
    return held, code.let(code.call("ne_i64", held, code.integer(0)))


def _provide_held(step: Probe, code: Code, held: ir.Expression, guard: ir.Expression | None) -> ir.Expression | None:
    """Make the build side's columns those that an entry stands for; the row's number, where the entry is one."""
    if step.table.inline_payload is not None:
        provide_payload_fields(step.table.inline_payload, held, guard, code)
        return None
    row: ir.Expression
    if step.table.layout == "one":
        row = code.integer(0)
    else:
        row = code.let(code.call("sub_i64", held, code.integer(1)))
    _provide(step, code, row, guard)
    return row


def _emit_unique(step: Probe, code: Code, consume: Consumer) -> None:
    """A probe with one match at most: no loop."""
    held, found = _held(step, code)
    kind = step.kind
    if kind is JoinKind.INNER:
        with code.when(found):
            row = _provide_held(step, code, held, None)
            _with_residual(step, code, lambda: _pass_on(step, code, row, consume))
        return
    if step.residual is not None:
        matched = code.let(ir.FALSE)
        null = code.let(ir.FALSE) if kind is JoinKind.MARK else None
        with code.when(found):
            _provide_held(step, code, held, None)
            _test_residual(step, code, matched, null)
        found = matched
    else:
        null = None
    if kind in (JoinKind.LEFT, JoinKind.SINGLE, JoinKind.FULL):
        row = _provide_held(step, code, held, found)
        if step.records_matches:
            with code.when(found):
                _record(step, code, row)
        consume()
    else:
        _consume_exists(step, code, found, consume, null)


def _emit_many(step: Probe, code: Code, consume: Consumer) -> None:
    """A probe that loops over a range of build rows."""
    begin, end = _range(step, code)
    kind = step.kind
    if kind is JoinKind.INNER:
        j = code.name("j", "row")
        with code.each(j, begin, end):
            row = _range_row(step, j, code)
            _provide(step, code, row, None)
            _with_residual(step, code, lambda: _pass_on(step, code, row, consume))
        return
    if kind in (JoinKind.LEFT, JoinKind.FULL):
        _emit_outer(step, code, consume, begin, end)
        return
    matched = code.let(ir.FALSE)
    null = code.let(ir.FALSE) if kind is JoinKind.MARK and step.residual is not None else None
    if kind is JoinKind.SINGLE:
        _emit_single(step, code, consume, begin, end, matched)
        return
    if step.residual is None:
        code.set(matched, ir.Operation(begin, "<", end))
    else:  # stop at the first match
        j = code.let(begin)
        with code.loop(ir.And((ir.Operation(j, "<", end), ir.Not(matched)))):
            row = _range_row(step, j, code)
            _provide(step, code, row, None)
            _test_residual(step, code, matched, null)
            code.set(j, code.call("next_index", j))
    _consume_exists(step, code, matched, consume, null)


def _range(step: Probe, code: Code) -> tuple[ir.Name, ir.Name]:
    """The range of positions that the probe's key has."""
    table = step.table
    if table.layout == "loop":
        count = code.scalar(BuildPart(table.stage, "count"))
        return code.let(code.call("row_index", code.integer(0))), code.let(code.call("row_index", count))
    starts = code.pointer("u32", BuildPart(table.stage, "starts"), "b")
    where, inside = _lookup(step, code)
    begin = code.let(code.call("row_index", code.integer(0)))
    end = code.let(begin)
    if inside is not None:
        code.open_if(inside)
    code.set(begin, code.call("row_index", ir.Load(starts, where)))
    following = code.call("add_i64", where, code.integer(1))
    code.set(end, code.call("row_index", ir.Load(starts, following)))
    if inside is not None:
        code.close()
    return begin, end


def _set_row(step: Probe, row: ir.Name, j: ir.Name, code: Code) -> None:
    """Set a variable to the number of the row at place ``j`` of its range. Where the build's rows come in the order of their
    keys, positions are row numbers, and memory is not asked for them."""
    code.set(row, code.call("i64", j))
    if step.table.layout == "loop":
        return
    gathers = code.scalar(BuildPart(step.table.stage, "gathers"))
    with code.when(code.call("ne_i64", gathers, code.integer(0))):
        order = code.pointer("u32", BuildPart(step.table.stage, "order"), "b")
        code.set(row, code.call("i64", ir.Load(order, j)))


def _range_row(step: Probe, j: ir.Name, code: Code) -> ir.Name:
    row = code.name("v", "row")
    _set_row(step, row, j, code)
    return row


def _emit_outer(step: Probe, code: Code, consume: Consumer, begin: ir.Name, end: ir.Name) -> None:
    """LEFT and FULL: one turn more than there are matches, which passes the row on with NULLs if none matched. One copy of
    the consumer's lines serves both."""
    matched = code.let(ir.FALSE)
    j = code.name("j", "row")
    with code.each(j, begin, code.call("next_index", end)):
        found, row = code.let(ir.Operation(j, "<", end)), code.let(code.integer(0))
        emit = code.let(ir.And((ir.Not(found), ir.Not(matched))))
        with code.when(found):
            _set_row(step, row, j, code)
            if step.residual is None:
                code.set(emit, ir.TRUE)
            else:
                _provide(step, code, row, None)
                _test_residual(step, code, emit, None)
            with code.when(emit):
                code.set(matched, ir.TRUE)
                _record(step, code, row)
        with code.when(emit):
            _provide(step, code, row, found)
            consume()


def _emit_single(step: Probe, code: Code, consume: Consumer, begin: ir.Name, end: ir.Name, matched: ir.Name) -> None:
    """SINGLE over a range: the one match, or NULLs; a second match is an error."""
    found_row = code.let(code.integer(0))
    j = code.name("j", "row")
    with code.each(j, begin, end):
        row = _range_row(step, j, code)
        _provide(step, code, row, None)

        def keep() -> None:
            with code.when(matched):
                code.do(code.call("fail", code.status(), more_than_one(code)))
            code.set(matched, ir.TRUE)
            code.set(found_row, row)

        _with_residual(step, code, keep)
    _provide(step, code, found_row, matched)
    consume()


def more_than_one(code: Code) -> ir.Expression:
    """The error of a subquery that is used as a value and has several rows."""
    return code.site(CardinalityError, MORE_THAN_ONE)


def _provide(step: Probe, code: Code, row: ir.Expression, guard: ir.Expression | None) -> None:
    """Make the build side's columns at ``row`` those of the current row; NULL where ``guard`` is False."""
    for stored in step.table.columns:
        provide_stored(code, step.table.stage, stored, row, guard)


def _record(step: Probe, code: Code, row: ir.Expression | None) -> None:
    if step.records_matches:
        assert row is not None
        matched = code.pointer("u8", BuildPart(step.table.stage, "matched"), "b")
        code.do(code.call("store_u8", matched, row, code.integer(1)))


def _pass_on(step: Probe, code: Code, row: ir.Expression | None, consume: Consumer) -> None:
    _record(step, code, row)
    consume()


def _with_residual(step: Probe, code: Code, then: Callable[[], object]) -> None:
    if step.residual is None:
        then()
        return
    value = render(step.residual, code)
    with code.when(value.var if value.ok is None else ir.And((value.ok, value.var))):
        then()


def _test_residual(step: Probe, code: Code, matched: ir.Name, null: ir.Name | None) -> None:
    """Set ``matched`` where the residual is TRUE, and ``null`` (if asked) where it is NULL."""
    assert step.residual is not None
    value = render(step.residual, code)
    with code.when(value.var if value.ok is None else ir.And((value.ok, value.var))):
        code.set(matched, ir.TRUE)
    if null is not None and value.ok is not None:
        with code.when(ir.Not(value.ok)):
            code.set(null, ir.TRUE)


def _consume_exists(
    step: Probe, code: Code, found: ir.Expression, consume: Consumer, null: ir.Name | None = None
) -> None:
    """SEMI, ANTI and MARK, once it is known whether there is a match."""
    match step.kind:
        case JoinKind.SEMI | JoinKind.INNER:
            with code.when(found):
                consume()
        case JoinKind.ANTI:
            with code.when(ir.Not(found)):
                consume()
        case JoinKind.MARK:
            assert step.mark is not None
            ok = _mark_validity(step, code, found, null)
            mark = Value(found, ok, value_properties(BOOLEAN, nullable=ok is not None))
            code.provide(step.mark.id, mark.properties, lambda: mark)
            code.remember(step.mark, mark)
            consume()
        case _:
            raise AssertionError(step.kind)


def _mark_validity(step: Probe, code: Code, found: ir.Expression, null: ir.Name | None) -> ir.Expression | None:
    """Whether a mark is known: a row without a match has NULL where some build row compared as NULL."""
    if null is not None:
        return code.let(ir.Or((found, ir.Not(null))))
    if not step.null_key:
        return None
    zero = code.integer(0)
    some = code.let(code.call("gt_i64", code.scalar(BuildPart(step.table.stage, "count")), zero))
    unknown = code.let(code.call("gt_i64", code.scalar(BuildPart(step.table.stage, "null_keys")), zero))
    keys = code.both(*(render(e, code).ok for e in step.keys))
    if keys is not None:
        unknown = code.let(ir.Or((unknown, ir.Group(ir.And((some, ir.Not(keys)))))))
    return code.let(ir.Or((found, ir.Not(unknown))))


__all__ = ["describe", "emit_build", "emit_probe", "find_or_insert"]
