"""A probe that may find several build rows: a loop over those of its key, for each kind of join."""

from __future__ import annotations

from gquery.kernels import ir
from gquery.kernels.code import Code
from gquery.operators.join_pass import (
    Consumer,
    consume_exists,
    more_than_one,
    pass_on,
    provide,
    record,
    test_residual,
    with_residual,
)
from gquery.operators.join_ranges import Candidates
from gquery.planner.logical.nodes import JoinKind
from gquery.planner.physical import Probe


def emit_many(step: Probe, code: Code, consume: Consumer) -> None:
    """A probe that loops over a range of build rows."""
    candidates = Candidates(step, code)
    kind = step.kind
    if kind is JoinKind.INNER:
        with candidates.each() as j:
            row = candidates.row(j)
            provide(step, code, row, None)
            with_residual(step, code, lambda: pass_on(step, code, row, consume))
        return
    if kind in (JoinKind.LEFT, JoinKind.FULL):
        _emit_outer(step, code, consume, candidates)
        return
    if kind is JoinKind.ASOF:
        _emit_nearest(step, code, consume, candidates)
        return
    matched = code.let(ir.FALSE)
    null = code.let(ir.FALSE) if kind is JoinKind.MARK and step.residual is not None else None
    if kind is JoinKind.SINGLE:
        _emit_single(step, code, consume, candidates, matched)
        return
    j = candidates.first()
    if step.residual is None:
        code.set(matched, candidates.is_one(j))
    else:  # stop at the first match
        with code.loop(ir.And((candidates.is_one(j), ir.Not(matched)))):
            row = candidates.row(j)
            provide(step, code, row, None)
            test_residual(step, code, matched, null)
            candidates.go_on(j)
    consume_exists(step, code, matched, consume, null)


def _emit_outer(step: Probe, code: Code, consume: Consumer, candidates: Candidates) -> None:
    """LEFT and FULL: one turn more than there are matches, which passes the row on with NULLs if none matched. One copy of
    the consumer's lines serves both."""
    matched = code.let(ir.FALSE)
    with candidates.each_and_none() as (j, found):
        row = code.let(code.integer(0))
        emit = code.let(ir.And((ir.Not(found), ir.Not(matched))))
        with code.when(found):
            candidates.set_row(row, j)
            if step.residual is None:
                code.set(emit, ir.TRUE)
            else:
                provide(step, code, row, None)
                test_residual(step, code, emit, None)
            with code.when(emit):
                code.set(matched, ir.TRUE)
                record(step, code, row)
        with code.when(emit):
            provide(step, code, row, found)
            consume()


def _emit_nearest(step: Probe, code: Code, consume: Consumer, candidates: Candidates) -> None:
    """ASOF: the one at the end of the range that lies at the probe's value, or NULLs; with a residual the first from there for
    which that is TRUE."""
    matched, row = code.let(ir.FALSE), code.let(code.integer(0))
    at, descends = code.let(candidates.end if step.high else candidates.begin), bool(step.high)

    def is_left() -> ir.Expression:
        return ir.Operation(candidates.begin, "<", at) if descends else ir.Operation(at, "<", candidates.end)

    def take() -> None:
        if descends:
            code.set(at, code.call("row_index", code.call("sub_i64", code.call("i64", at), code.integer(1))))
        candidates.set_row(row, at)
        if step.residual is None:
            code.set(matched, ir.TRUE)
            return
        provide(step, code, row, None)
        test_residual(step, code, matched, None)
        if not descends:
            code.set(at, code.call("next_index", at))

    if step.residual is None:
        with code.when(is_left()):
            take()
    else:
        with code.loop(ir.And((is_left(), ir.Not(matched)))):
            take()
    provide(step, code, row, matched)
    consume()


def _emit_single(step: Probe, code: Code, consume: Consumer, candidates: Candidates, matched: ir.Name) -> None:
    """SINGLE over a range: the one match, or NULLs; a second match is an error."""
    found_row = code.let(code.integer(0))
    with candidates.each() as j:
        row = candidates.row(j)
        provide(step, code, row, None)

        def keep() -> None:
            with code.when(matched):
                code.do(code.call("fail", code.status(), more_than_one(code)))
            code.set(matched, ir.TRUE)
            code.set(found_row, row)

        with_residual(step, code, keep)
    provide(step, code, found_row, matched)
    consume()
