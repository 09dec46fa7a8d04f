"""Join: a build side enters its rows into a join table (`join_build`), and a probe looks them up inside another
pipeline's loop.

Layouts, chosen from plan properties by `planner.join_layout`: *direct-address* in an array over the encoded key (a bitmap where
only the existence of a match is asked), *hash* table of keys, or of row numbers whose keys are compared where they
stand, *sorted* rows where no key is equal but a range of one matches, *loop* over all build rows where not even that is so,
*one* for a side of one row at most. A key that may stand on several rows has its rows in ranges (counted, scanned, filled), in
the order of the build side, or sorted by another column of which a range matches (`join_ranges`).
"""

from __future__ import annotations

from gquery.kernels import ir
from gquery.kernels.bindings import BuildPart
from gquery.kernels.code import Code
from gquery.kernels.render import describe
from gquery.kernels.stored import element_type
from gquery.operators.inline_payload import provide_payload_fields
from gquery.operators.join_build import emit_build, find_or_insert, hash_key, slot_physical_type
from gquery.operators.join_lookup import capacity, lookup, probe_values
from gquery.operators.join_matches import emit_many
from gquery.operators.join_pass import (
    MORE_THAN_ONE,
    Consumer,
    consume_exists,
    pass_on,
    provide,
    record,
    test_residual,
    with_residual,
)
from gquery.operators.key_filter_code import test_filter, test_inside
from gquery.planner.logical.nodes import JoinKind
from gquery.planner.physical import Probe


def emit_probe(step: Probe, code: Code, consume: Consumer) -> None:
    """The lines that look the current row up and pass on what the kind of join says."""
    table = step.table
    if table.exists and table.layout in ("direct-address", "hash"):
        consume_exists(step, code, _exists(step, code), consume)
    elif table.layout == "one" or (table.unique and table.layout in ("direct-address", "hash")):
        _emit_unique(step, code, consume)
    else:
        emit_many(step, code, consume)


def _exists(step: Probe, code: Code) -> ir.Expression:
    """Whether some build row has the probe's key."""
    if step.table.layout == "hash":
        return lookup(step, code)[1] or ir.TRUE
    bits = code.pointer("u32", BuildPart(step.table.stage, "bits"), "b")
    encoded, inside = lookup(step, code)
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
        where, inside = hash_key(table, probe_values(step, code), code, checked=True)
        inside = test_filter(step, where, inside, code)
        pairs = code.pointer("i64", BuildPart(table.stage, "pairs"), "b")
        found = code.call("pair_find", pairs, capacity(table, code), where)
    else:
        where, inside = lookup(step, code)
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
    provide(step, code, row, guard)
    return row


def _emit_unique(step: Probe, code: Code, consume: Consumer) -> None:
    """A probe with one match at most: no loop."""
    held, found = _held(step, code)
    kind = step.kind
    if kind is JoinKind.INNER:
        with code.when(found):
            row = _provide_held(step, code, held, None)
            with_residual(step, code, lambda: pass_on(step, code, row, consume))
        return
    if step.residual is not None:
        matched = code.let(ir.FALSE)
        null = code.let(ir.FALSE) if kind is JoinKind.MARK else None
        with code.when(found):
            _provide_held(step, code, held, None)
            test_residual(step, code, matched, null)
        found = matched
    else:
        null = None
    if kind in (JoinKind.LEFT, JoinKind.SINGLE, JoinKind.ASOF, JoinKind.FULL):
        row = _provide_held(step, code, held, found)
        if step.records_matches:
            with code.when(found):
                record(step, code, row)
        consume()
    else:
        consume_exists(step, code, found, consume, null)


__all__ = ["MORE_THAN_ONE", "describe", "emit_build", "emit_probe", "find_or_insert"]
