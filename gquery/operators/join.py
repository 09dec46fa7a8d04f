"""Join: a build side enters its rows into a join table, and a probe looks them up inside another pipeline's loop.

Layouts, picked from proofs by `planner.lower_join`: *direct* address in an array over the packed key (a bitmap where only the
existence of a match is asked), *hash* table of row numbers whose keys are compared where they stand, *loop* over all
build rows where nothing is equal to anything, *one* for a side of one row at most. A key that may stand on several rows
has its rows in ranges (counted, scanned, filled), in the order of the build side.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from gquery.dtypes import BOOLEAN
from gquery.errors import CardinalityError, OperationalError
from gquery.kernels.code import BuildPart, Code, StatePart, Value, load, phys
from gquery.kernels.render import convert, describe, render
from gquery.operators.keys import equal_values, hash_values, pack
from gquery.operators.read import provide_stored
from gquery.planner.logical import JoinKind
from gquery.planner.physical import JoinTable, Probe, Stored

Consumer = Callable[[], None]
NOT_FOUND = "4294967295"  # the slot of a row that takes no part


# ---- build ----------------------------------------------------------------------------------------------------------


def emit_build(table: JoinTable, code: Code) -> None:
    """The lines that enter row ``i`` of the build side."""
    values = [code.column(c) for c in table.keys]
    row = code.call("i64", "i")
    if table.layout == "direct":
        assert table.packing is not None
        packed, inside = pack(values, table.packing, code, checked=False)
        if inside is not None:
            code.open(f"if {inside}:")
        if table.exists:
            code.line(code.call("bit_set", code.pointer("u32", StatePart("bits"), "s"), packed))
        elif table.unique:
            rows = code.pointer("u32", StatePart("rows"), "s")
            code.line(code.call("store_u32", rows, packed, code.call("add_i64", row, code.call("i64", "1"))))
        else:
            code.line(code.call("store_u32", code.pointer("u32", StatePart("slot_of_row"), "s"), "i", packed))
        if inside is not None:
            code.close()
        return
    assert table.layout == "hash", table.layout
    oks = [v.ok for v, safe in zip(values, table.null_safe, strict=True) if not safe]
    inside = code.both(*oks)
    if inside is not None:
        code.open(f"if {inside}:")
    slot = find_or_insert(code, values, tuple(_stored(table, c) for c in table.keys), (True,) * len(values), None)
    if not table.unique and not table.exists:
        code.line(code.call("store_u32", code.pointer("u32", StatePart("slot_of_row"), "s"), "i", slot))
    if inside is not None:
        code.close()


def _stored(table: JoinTable, column: object) -> Stored:
    return next(s for s in table.columns if s.column == column)


def find_or_insert(
    code: Code, values: list[Value], stored: tuple[Stored, ...], null_safe: tuple[bool, ...], owner: int | None
) -> str:
    """A variable with the slot of the current row's key in the table of row numbers ``slots``: found, or claimed for the
    row (-1, and the status bit "full", where neither). Keys are compared where they stand, in the columns of ``owner``."""
    slots, mask = code.pointer("u32", StatePart("slots"), "s"), code.scalar(StatePart("mask"))
    one, zero = code.call("i64", "1"), code.call("i64", "0")
    hashed = hash_values(values, code)
    at = code.let(code.call("and_i64", hashed, mask))
    slot, tries = code.let(code.call("i64", "-1")), code.let(zero)
    with code.block(f"while {code.call('lt_i64', slot, zero)} and {code.call('le_i64', tries, mask)}:"):
        there = code.let(code.call("i64", f"{slots}[{at}]"))
        with code.block(f"if {code.call('eq_i64', there, zero)}:"):
            mine = code.call("add_i64", code.call("i64", "i"), one)
            code.line(f"{there} = {code.call('cas_u32', slots, at, zero, mine)}")
            with code.block(f"if {code.call('eq_i64', there, zero)}:"):
                code.line(f"{slot} = {at}")
        with code.block(f"if {code.call('ne_i64', there, zero)}:"):
            other = code.let(code.call("sub_i64", there, one))
            with ExitStack() as tests:
                for value, column, safe in zip(values, stored, null_safe, strict=True):
                    theirs = load(code, owner, column.column.id, column.carrier, column.phys, other)
                    tests.enter_context(code.block(f"if {equal_values(value, theirs, safe, code)}:"))
                code.line(f"{slot} = {at}")
            code.line(f"{at} = {code.call('and_i64', code.call('add_i64', at, one), mask)}")
            code.line(f"{tries} = {code.call('add_i64', tries, one)}")
    with code.block(f"if {code.call('lt_i64', slot, zero)}:"):
        code.line(code.call("fail", code.status(), code.site(OperationalError, "a hash table is full", retry=True)))
    return slot


# ---- probe ----------------------------------------------------------------------------------------------------------


def emit_probe(step: Probe, code: Code, consume: Consumer) -> None:
    """The lines that look the current row up and pass on what the kind of join says."""
    table = step.table
    if table.exists and table.layout in ("direct", "hash"):
        _finish_exists(step, code, _exists(step, code), consume)
    elif table.layout == "one" or (table.unique and table.layout in ("direct", "hash")):
        _emit_unique(step, code, consume)
    else:
        _emit_many(step, code, consume)


def _probe_values(step: Probe, code: Code) -> list[Value]:
    """The probe's keys in the form in which the build side's lie."""
    values = []
    for e, column in zip(step.keys, step.table.keys, strict=True):
        what = _stored(step.table, column).phys
        value = render(e, code)
        if value.phys.dtype.is_string or value.phys.register is not what.register:
            if not (what.dtype.is_string and what.dictionary is not None and value.phys.dictionary is None):
                value = convert(value, what, code)
        values.append(value)
    return values


def _lookup(step: Probe, code: Code) -> tuple[str, str | None]:
    """The packed key of a direct table, and whether it is one; or the slot of a hash table, negative where there is none."""
    table = step.table
    values = _probe_values(step, code)
    if table.layout == "direct":
        assert table.packing is not None
        return pack(values, table.packing, code, checked=True)
    inside = code.both(*(v.ok for v, safe in zip(values, table.null_safe, strict=True) if not safe))
    slot = code.let(code.call("i64", "-1"))
    if inside is not None:
        code.open(f"if {inside}:")
    _find(step, values, slot, code)
    if inside is not None:
        code.close()
    return slot, code.let(code.call("ge_i64", slot, code.call("i64", "0")))


def _find(step: Probe, values: list[Value], slot: str, code: Code) -> None:
    """Set ``slot`` to where the key stands in a hash table of row numbers."""
    table = step.table
    slots = code.pointer("u32", BuildPart(table.stage, "slots"), "b")
    mask = code.scalar(BuildPart(table.stage, "mask"))
    one, zero = code.call("i64", "1"), code.call("i64", "0")
    at = code.let(code.call("and_i64", hash_values(values, code), mask))
    there = code.let(code.call("i64", f"{slots}[{at}]"))
    with code.block(f"while {code.call('ne_i64', there, zero)}:"):
        other = code.let(code.call("sub_i64", there, one))
        with ExitStack() as tests:
            for value, column, safe in zip(values, table.keys, table.null_safe, strict=True):
                stored = _stored(table, column)
                theirs = load(code, table.stage, column.id, stored.carrier, stored.phys, other)
                tests.enter_context(code.block(f"if {equal_values(value, theirs, safe, code)}:"))
            code.line(f"{slot} = {at}")
        code.line(f"{there} = {zero}")
        with code.block(f"if {code.call('lt_i64', slot, zero)}:"):
            code.line(f"{at} = {code.call('and_i64', code.call('add_i64', at, one), mask)}")
            code.line(f"{there} = {code.call('i64', f'{slots}[{at}]')}")


def _exists(step: Probe, code: Code) -> str:
    """Whether some build row has the probe's key."""
    if step.table.layout == "hash":
        return _lookup(step, code)[1] or "True"
    bits = code.pointer("u32", BuildPart(step.table.stage, "bits"), "b")
    packed, inside = _lookup(step, code)
    test = code.call("bit_test", bits, packed)
    if inside is None:
        return code.let(test)
    found = code.let("False")
    with code.block(f"if {inside}:"):
        code.line(f"{found} = {test}")
    return found


def _unique_row(step: Probe, code: Code) -> tuple[str, str]:
    """The number of the one build row that matches, and whether there is one."""
    table = step.table
    if table.layout == "one":
        count = code.scalar(BuildPart(table.stage, "count"))
        return code.call("i64", "0"), code.let(code.call("gt_i64", count, code.call("i64", "0")))
    where, inside = _lookup(step, code)
    part = "rows" if table.layout == "direct" else "slots"
    pointer = code.pointer("u32", BuildPart(table.stage, part), "b")
    if inside is None:
        row = code.let(code.call("i64", f"{pointer}[{where}]"))
    else:
        row = code.let(code.call("i64", "0"))
        with code.block(f"if {inside}:"):
            code.line(f"{row} = {code.call('i64', f'{pointer}[{where}]')}")
    found = code.let(code.call("ne_i64", row, code.call("i64", "0")))
    return code.let(code.call("sub_i64", row, code.call("i64", "1"))), found


def _emit_unique(step: Probe, code: Code, consume: Consumer) -> None:
    """A probe with one match at most: no loop."""
    row, found = _unique_row(step, code)
    kind = step.kind
    if kind is JoinKind.INNER:
        with code.block(f"if {found}:"):
            _provide(step, code, row, None)
            _with_residual(step, code, lambda: _pass_on(step, code, row, consume))
        return
    if step.residual is not None:
        matched = code.let("False")
        null = code.let("False") if kind is JoinKind.MARK else None
        with code.block(f"if {found}:"):
            _provide(step, code, row, None)
            _test_residual(step, code, matched, null)
        found = matched
    else:
        null = None
    if kind in (JoinKind.LEFT, JoinKind.SINGLE, JoinKind.FULL):
        if step.records_matches:
            with code.block(f"if {found}:"):
                _record(step, code, row)
        _provide(step, code, row, found)
        consume()
    else:
        _finish_exists(step, code, found, consume, null)


def _emit_many(step: Probe, code: Code, consume: Consumer) -> None:
    """A probe that loops over a range of build rows."""
    begin, end, rows = _range(step, code)
    kind = step.kind
    if kind is JoinKind.INNER:
        with code.block(f"for {(j := code.name('j'))} in range({begin}, {end}):"):
            row = _range_row(rows, j, code)
            _provide(step, code, row, None)
            _with_residual(step, code, lambda: _pass_on(step, code, row, consume))
        return
    if kind in (JoinKind.LEFT, JoinKind.FULL):
        _emit_outer(step, code, consume, begin, end, rows)
        return
    matched = code.let("False")
    null = code.let("False") if kind is JoinKind.MARK and step.residual is not None else None
    if kind is JoinKind.SINGLE:
        _emit_single(step, code, consume, begin, end, rows, matched)
        return
    if step.residual is None:
        code.line(f"{matched} = {begin} < {end}")
    else:  # stop at the first match
        j = code.let(begin)
        with code.block(f"while {j} < {end} and not {matched}:"):
            row = _range_row(rows, j, code)
            _provide(step, code, row, None)
            _test_residual(step, code, matched, null)
            code.line(f"{j} = {code.call('next_index', j)}")
    _finish_exists(step, code, matched, consume, null)


def _range(step: Probe, code: Code) -> tuple[str, str, str | None]:
    """The range of places that the probe's key has, and the array that holds row numbers there (None: the places are the
    row numbers)."""
    table = step.table
    if table.layout == "loop":
        count = code.scalar(BuildPart(table.stage, "count"))
        return code.let(code.call("row_index", code.call("i64", "0"))), code.let(code.call("row_index", count)), None
    starts = code.pointer("u32", BuildPart(table.stage, "starts"), "b")
    order = code.pointer("u32", BuildPart(table.stage, "order"), "b")
    where, inside = _lookup(step, code)
    begin = code.let(code.call("row_index", code.call("i64", "0")))
    end = code.let(begin)
    if inside is not None:
        code.open(f"if {inside}:")
    code.line(f"{begin} = {code.call('row_index', f'{starts}[{where}]')}")
    following = code.call("add_i64", where, code.call("i64", "1"))
    code.line(f"{end} = {code.call('row_index', f'{starts}[{following}]')}")
    if inside is not None:
        code.close()
    return begin, end, order


def _range_row(rows: str | None, j: str, code: Code) -> str:
    return code.let(code.call("i64", j if rows is None else f"{rows}[{j}]"))


def _emit_outer(step: Probe, code: Code, consume: Consumer, begin: str, end: str, rows: str | None) -> None:
    """LEFT and FULL: one turn more than there are matches, which passes the row on with NULLs if none matched. One copy of
    the consumer's lines serves both."""
    matched = code.let("False")
    with code.block(f"for {(j := code.name('j'))} in range({begin}, {code.call('next_index', end)}):"):
        found, row = code.let(f"{j} < {end}"), code.let(code.call("i64", "0"))
        emit = code.let(f"not {found} and not {matched}")
        with code.block(f"if {found}:"):
            code.line(f"{row} = {code.call('i64', j if rows is None else f'{rows}[{j}]')}")
            if step.residual is None:
                code.line(f"{emit} = True")
            else:
                _provide(step, code, row, None)
                _test_residual(step, code, emit, None)
            with code.block(f"if {emit}:"):
                code.line(f"{matched} = True")
                _record(step, code, row)
        with code.block(f"if {emit}:"):
            _provide(step, code, row, found)
            consume()


def _emit_single(
    step: Probe, code: Code, consume: Consumer, begin: str, end: str, rows: str | None, matched: str
) -> None:
    """SINGLE over a range: the one match, or NULLs; a second match is an error."""
    found_row = code.let(code.call("i64", "0"))
    with code.block(f"for {(j := code.name('j'))} in range({begin}, {end}):"):
        row = _range_row(rows, j, code)
        _provide(step, code, row, None)

        def keep() -> None:
            with code.block(f"if {matched}:"):
                code.line(code.call("fail", code.status(), more_than_one(code)))
            code.line(f"{matched} = True")
            code.line(f"{found_row} = {row}")

        _with_residual(step, code, keep)
    _provide(step, code, found_row, matched)
    consume()


def more_than_one(code: Code) -> str:
    return code.site(
        CardinalityError, "A subquery used as a value returned more than one row. Add LIMIT 1 or an aggregate."
    )


def _provide(step: Probe, code: Code, row: str, guard: str | None) -> None:
    """Make the build side's columns at ``row`` those of the current row; NULL where ``guard`` is False."""
    for stored in step.table.columns:
        provide_stored(code, step.table.stage, stored, row, guard)


def _record(step: Probe, code: Code, row: str) -> None:
    if step.records_matches:
        matched = code.pointer("u8", BuildPart(step.table.stage, "matched"), "b")
        code.line(code.call("store_u8", matched, row, code.call("i64", "1")))


def _pass_on(step: Probe, code: Code, row: str, consume: Consumer) -> None:
    _record(step, code, row)
    consume()


def _with_residual(step: Probe, code: Code, then: Callable[[], object]) -> None:
    if step.residual is None:
        then()
        return
    value = render(step.residual, code)
    with code.block(f"if {value.var}:" if value.ok is None else f"if {value.ok} and {value.var}:"):
        then()


def _test_residual(step: Probe, code: Code, matched: str, null: str | None) -> None:
    """Set ``matched`` where the residual is TRUE, and ``null`` (if asked) where it is NULL."""
    assert step.residual is not None
    value = render(step.residual, code)
    with code.block(f"if {value.var}:" if value.ok is None else f"if {value.ok} and {value.var}:"):
        code.line(f"{matched} = True")
    if null is not None and value.ok is not None:
        with code.block(f"if not {value.ok}:"):
            code.line(f"{null} = True")


def _finish_exists(step: Probe, code: Code, found: str, consume: Consumer, null: str | None = None) -> None:
    """SEMI, ANTI and MARK, once it is known whether there is a match."""
    match step.kind:
        case JoinKind.SEMI | JoinKind.INNER:
            with code.block(f"if {found}:"):
                consume()
        case JoinKind.ANTI:
            with code.block(f"if not {found}:"):
                consume()
        case JoinKind.MARK:
            assert step.mark is not None
            ok = _mark_validity(step, code, found, null)
            mark = Value(found, ok, phys(BOOLEAN, nullable=ok is not None))
            code.provide(step.mark.id, mark.phys, lambda: mark)
            code.remember(step.mark, mark)
            consume()
        case _:
            raise AssertionError(step.kind)


def _mark_validity(step: Probe, code: Code, found: str, null: str | None) -> str | None:
    """Whether a mark is known: a row without a match has NULL where some build row compared as NULL."""
    if null is not None:
        return code.let(f"{found} or not {null}")
    if not step.null_key:
        return None
    zero = code.call("i64", "0")
    some = code.let(code.call("gt_i64", code.scalar(BuildPart(step.table.stage, "count")), zero))
    unknown = code.let(code.call("gt_i64", code.scalar(BuildPart(step.table.stage, "null_keys")), zero))
    keys = code.both(*(render(e, code).ok for e in step.keys))
    if keys is not None:
        unknown = code.let(f"{unknown} or ({some} and not {keys})")
    return code.let(f"{found} or not {unknown}")


def mark_phys(step: Probe) -> object:
    """What is known of a mark while planning."""
    return phys(BOOLEAN, nullable=step.null_key or step.residual is not None)


__all__ = ["describe", "emit_build", "emit_probe", "find_or_insert", "mark_phys"]
