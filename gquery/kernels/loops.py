"""Loops over constants: arguments of AND or OR that differ in their constants alone are one test in a loop.

``x + 1 <> y AND x + 2 <> y * 3 AND ...``: written out, each argument is a block of its own, and a thousand of them take a
compiler a minute. In a loop over an array of constants they are one, and queries with other lists share the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from gquery import tuning
from gquery.device.buffer import Buffer
from gquery.expression.expr import (
    And,
    Call,
    Case,
    Cast,
    Column,
    Expr,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    new_column,
)
from gquery.expression.traverse import walk, with_children
from gquery.expression.types import BOOLEAN, INT64, Bounds, Kind
from gquery.kernels import ir
from gquery.kernels.bindings import Content
from gquery.kernels.code import Code
from gquery.kernels.values import Value, ValueProperties, value_properties
from gquery.runtime.records import dataclass

_TESTS = Call | Cast | In | IsNull | Not | Column | Literal  # what evaluates all that is below it


@dataclass(frozen=True)
class Run:
    """Arguments that differ in constants: the first of them with columns in place of its constants, and the constants of
    each."""

    term: Expr
    columns: tuple[Column, ...]
    constants: tuple[tuple[Any, ...], ...]


def with_runs(args: Sequence[Expr]) -> tuple[Expr | Run, ...]:
    """The arguments, neighbours of one shape as a run."""
    shaped: list[tuple[Any, Expr, tuple[Literal, ...]]] = []
    for n, arg in enumerate(args):
        constants: list[Literal] = []
        shape = _shape(arg, constants, [tuning.kernel_texts.looped_nodes])
        shaped.append((n if shape is None or not constants else shape, arg, tuple(constants)))
    out: list[Expr | Run] = []
    for _, group in groupby(shaped, key=lambda s: s[0]):
        alike = list(group)
        if len(alike) < tuning.kernel_texts.looped_terms:
            out += [arg for _, arg, _ in alike]
            continue
        columns = tuple(new_column("constant", c.dtype, False) for c in alike[0][2])
        term = _over(alike[0][1], iter(columns))
        out.append(Run(term, columns, tuple(tuple(c.value for c in constants) for _, _, constants in alike)))
    return tuple(out)


def _is_constant(e: Expr) -> bool:
    """Whether it is a number that a register of 64 bits holds."""
    if not isinstance(e, Literal) or e.value is None or e.dtype.kind is Kind.BOOLEAN:
        return False
    return e.dtype.is_float or (e.dtype.is_exact and Bounds(int(e.value), int(e.value)).within(INT64))


def _shape(e: Expr, constants: list[Literal], left: list[int]) -> Any:
    """A key that expressions share which differ in constants; None for a large one. ``left``: nodes that are still looked at."""
    left[0] -= 1
    if left[0] < 0:
        return None
    if isinstance(e, Literal) and _is_constant(e):
        constants.append(e)
        return ("constant", e.dtype)
    kids = e.children
    if not kids:
        return e
    below = tuple(_shape(k, constants, left) for k in kids)
    if None in below:
        return None
    match e:
        case Call():
            own: tuple[Any, ...] = (e.function, e.dtype, e.nullable)
        case Cast():
            own = (e.dtype, e.try_)
        case In():
            own = (e.items,)
        case Case() | And() | Or() | Not() | IsNull():
            own = ()
        case _:
            return None
    return (type(e).__name__, own, below)


def _over(e: Expr, columns: Iterator[Column]) -> Expr:
    """The expression with columns in place of its constants, in the order of `_shape`."""
    if _is_constant(e):
        return next(columns)
    return with_children(e, tuple([_over(k, columns) for k in e.children]))


def connective(run: Run, code: Code, stops_at: bool, render: Callable[[Expr, Code], Value]) -> Value:
    """AND (stops at FALSE) or OR (stops at TRUE) of the arguments of a run."""
    if all(isinstance(x, _TESTS) for x in walk(run.term)):  # loaded once
        for x in walk(run.term):
            if isinstance(x, Column) and x not in run.columns:
                code.column(x)
    row, is_open, unknown = code.let(code.integer(0)), code.let(ir.TRUE), code.let(ir.FALSE)
    loads = list(_loads(run, row, code))
    count = code.constant(len(run.constants))
    with code.loop(ir.And((is_open, code.call("lt_i64", row, count)))):
        for column, what, constant in loads:
            code.provide(column.id, what, partial(_loaded, constant, what, code))
        value = render(run.term, code)
        stop: ir.Expression = value.var if stops_at else ir.Not(value.var)
        with code.when(stop if value.ok is None else ir.And((value.ok, stop))):
            code.set(is_open, ir.FALSE)
        if value.ok is not None:
            with code.when(ir.Not(value.ok)):
                code.set(unknown, ir.TRUE)
        code.set(row, code.call("add_i64", row, code.integer(1)))
    for column in run.columns:
        code.withdraw(column.id)
    var = code.let(ir.Not(is_open) if stops_at else is_open)
    ok = None if value.ok is None else code.let(ir.Or((ir.Not(is_open), ir.Not(unknown))))
    return Value(var, ok, value_properties(BOOLEAN, nullable=ok is not None))


def _loaded(constant: ir.Expression, what: ValueProperties, code: Code) -> Value:
    return Value(code.let(constant), None, what)


def _loads(run: Run, row: ir.Name, code: Code) -> Iterator[tuple[Column, ValueProperties, ir.Expression]]:
    """For each constant what is known of it, and what loads it."""
    for n, column in enumerate(run.columns):
        values = [c[n] for c in run.constants]
        if column.dtype.is_float:
            array, element, what = (
                np.array(values, dtype=np.float64),
                "f64",
                value_properties(column.dtype, nullable=False),
            )
        else:
            array, element = np.array([int(v) for v in values], dtype=np.int64), "i64"
            what = ValueProperties(column.dtype, Bounds(int(array.min()), int(array.max())), False)
        table = code.pointer("f64" if element == "f64" else "i64", Content(Buffer(array)), "t")
        yield column, what, code.call(element, ir.Load(table, row))
