"""What a probe does with a build row that it has found: its columns, the residual, the match that is remembered, the mark."""

from __future__ import annotations

from collections.abc import Callable

from gquery.errors import CardinalityError
from gquery.expression.types import BOOLEAN
from gquery.kernels import ir
from gquery.kernels.bindings import BuildPart
from gquery.kernels.code import Code
from gquery.kernels.render import render
from gquery.kernels.values import Value, value_properties
from gquery.operators.read import provide_stored
from gquery.planner.logical.nodes import JoinKind
from gquery.planner.physical import Probe

Consumer = Callable[[], None]
MORE_THAN_ONE = "A subquery used as a value returned more than one row. Add LIMIT 1 or an aggregate."


def more_than_one(code: Code) -> ir.Expression:
    """The error of a subquery that is used as a value and has several rows."""
    return code.site(CardinalityError, MORE_THAN_ONE)


def provide(step: Probe, code: Code, row: ir.Expression, guard: ir.Expression | None) -> None:
    """Make the build side's columns at ``row`` those of the current row; NULL where ``guard`` is False."""
    for stored in step.table.columns:
        provide_stored(code, step.table.stage, stored, row, guard)


def record(step: Probe, code: Code, row: ir.Expression | None) -> None:
    """Remember that a build row has matched, where the join asks for those that have not."""
    if step.records_matches:
        assert row is not None
        matched = code.pointer("u8", BuildPart(step.table.stage, "matched"), "b")
        code.do(code.call("store_u8", matched, row, code.integer(1)))


def pass_on(step: Probe, code: Code, row: ir.Expression | None, consume: Consumer) -> None:
    """A match: it is remembered, and what follows is written."""
    record(step, code, row)
    consume()


def with_residual(step: Probe, code: Code, then: Callable[[], object]) -> None:
    """Write ``then`` for pairs for which the residual is TRUE."""
    if step.residual is None:
        then()
        return
    value = render(step.residual, code)
    with code.when(value.var if value.ok is None else ir.And((value.ok, value.var))):
        then()


def test_residual(step: Probe, code: Code, matched: ir.Name, null: ir.Name | None) -> None:
    """Set ``matched`` where the residual is TRUE, and ``null`` (if asked) where it is NULL."""
    assert step.residual is not None
    value = render(step.residual, code)
    with code.when(value.var if value.ok is None else ir.And((value.ok, value.var))):
        code.set(matched, ir.TRUE)
    if null is not None and value.ok is not None:
        with code.when(ir.Not(value.ok)):
            code.set(null, ir.TRUE)


def consume_exists(
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
        unknown = code.let(ir.Or((unknown, ir.Parenthesized(ir.And((some, ir.Not(keys)))))))
    return code.let(ir.Or((found, ir.Not(unknown))))
