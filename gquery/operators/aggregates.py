"""The lines that fold a row into the words of its aggregates' state (`planner.aggregates` says which words those are)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gquery.expression.expr import Expr
from gquery.expression.types import Register
from gquery.kernels.code import Code, Value
from gquery.kernels.render import condition, render
from gquery.planner.aggregates import Fold


def emit_folds(folds: Sequence[Fold], code: Code, fold_into: Any) -> None:
    """Write the lines that fold the current row: ``fold_into(index, fold, text)`` writes one."""
    by_guard: dict[tuple[Expr | None, Expr | None], list[int]] = {}
    for n, fold in enumerate(folds):
        by_guard.setdefault((fold.filter, fold.arg), []).append(n)
    for (only, arg), indices in by_guard.items():
        depth = 0
        if only is not None:
            code.open(f"if {condition(only, code)}:")
            depth += 1
        value = render(arg, code) if arg is not None else None
        if value is not None and value.ok is not None:
            code.open(f"if {value.ok}:")
            depth += 1
        for n in indices:
            fold_into(n, folds[n], _word(folds[n], value, code))
        code.close(depth)


def _word(fold: Fold, value: Value | None, code: Code) -> str:
    if fold.what == "one":
        return code.call("i64", "1")
    assert value is not None
    var, register = value.var, value.properties.register
    match fold.what:
        case "value":
            return code.call("from_bool", var) if register is Register.BOOL else var
        case "ordered":
            return code.call("f64_order", var)
        case "address":
            return code.call("str_address", var)
        case "length":
            return code.call("str_bytes", var)
        case _:
            return _limb(fold, value, code)


def _limb(fold: Fold, value: Value, code: Code) -> str:
    """``bits`` bits of a value from place ``limb * bits`` on; with the sign if they are the last."""
    place, width, var = fold.limb * fold.bits, 64, value.var
    if value.properties.register is Register.I128:
        width = 128
        var = code.let(code.call("low_i128" if place < 64 else "high_i128", var))
    shift = place % 64
    text = code.call("shr_i64", var, code.call("i64", str(shift))) if shift else var
    if place + fold.bits == width:
        return text
    return code.call("and_i64", text, code.call("i64", str((1 << fold.bits) - 1)))
