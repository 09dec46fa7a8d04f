"""Aggregates of random queries that do not depend on the order of rows: in an order of their own, of moments, of bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.fuzzing.data import BOOL, DATE, DEC, INT, STR

if TYPE_CHECKING:
    from tests.fuzzing.grammar import Grammar
    from tests.fuzzing.names import Names

_FRACTIONS = ("0", "0.25", "0.5", "0.3", "1", "-0.1", "0.75e0")
_EXTREMES = ("arg_min", "arg_max", "arg_min_null", "arg_max_null")
_MOMENTS = ("stddev", "stddev_pop", "variance", "var_pop", "sem")
_ROUNDED = ("skewness", "kurtosis", "kurtosis_pop")  # whose last digits are lost in sums of powers
_PAIRS = ("regr_sxx", "regr_syy", "regr_avgx", "regr_avgy", "regr_count")
_ROUNDED_PAIRS = ("covar_samp", "covar_pop", "corr", "regr_sxy", "regr_slope", "regr_intercept", "regr_r2")


def aggregate(g: Grammar, kind: str, names: Names, keep: str) -> str | None:
    """An aggregate of a kind with its FILTER; None for a kind that has none here."""
    match kind:
        case "dbl":
            return _of_numbers(g, names, keep)
        case _ if any(n.kind == kind for n in names):
            made = g.tape.one(_of_values(g, kind, names))() + keep
            return f"CAST({made} AS BIGINT)" if made.startswith("count_if") else made
        case _:
            return None


def _of_values(g: Grammar, kind: str, names: Names) -> list[Callable[[], str]]:
    """Those whose result is one of the values, or made of their bits."""
    tape = g.tape

    def other() -> str:
        """A column to order by, which DuckDB does not do by a constant."""
        return tape.one([n.sql for n in names if n.kind in (INT, STR, DATE)] or [x])

    direction = tape.one(("", " DESC"))
    x = g.column(
        kind, names, ()
    )  # also the last key of an order by another: values of rows that it has together are the same
    picked = tape.one(("first", "last", "any_value"))
    shapes: list[Callable[[], str]] = [
        lambda: f"{picked}({x} ORDER BY {x}{direction})",
        lambda: f"{picked}({x} ORDER BY {other()}{direction}, {x})",
        lambda: f"{tape.one(_EXTREMES)}({x}, {x})",
        lambda: f"{tape.one(_EXTREMES)}({x}, {other()} ORDER BY {x})",
        lambda: f"mode({x} ORDER BY {x}{direction})",
    ]
    if kind not in ("time", "bool"):
        shapes += [
            lambda: f"quantile_disc({x}, {tape.one(_FRACTIONS)})",
            lambda: f"mode() WITHIN GROUP (ORDER BY {x}{direction})",
            lambda: f"percentile_disc(0.5) WITHIN GROUP (ORDER BY {x})",
        ]
    if kind == "str":
        distinct = tape.one(("", "DISTINCT "))
        glue = tape.one(("", ",", "; "))
        shapes += 2 * [
            lambda: f"string_agg({distinct}{x}, '{glue}' ORDER BY {x}{direction})",
            lambda: f"string_agg({x}, '{glue}' ORDER BY {other()}, {x})",
            lambda: f"median({x})",
        ]
    if kind == "int":
        shapes += 2 * [
            lambda: f"{tape.one(('bit_and', 'bit_or', 'bit_xor'))}({x})",
            lambda: f"count(DISTINCT ({x}, {g.column(tape.one((INT, STR, BOOL)), names, ())}))",
            lambda: f"count_if({g.column(BOOL, names, ())})",
        ]
    return shapes


def _of_numbers(g: Grammar, names: Names, keep: str) -> str:
    """Those that compute a DOUBLE: of small numbers, so that the digits that are compared are right in both engines."""
    tape = g.tape
    direction = tape.one(("", " DESC"))
    small = g.number(tape.one((INT, DEC)), names)
    key = tape.one([n.sql for n in names if n.kind == INT] or ["1e0 + 1"])
    other = g.number(INT, names)
    distinct = tape.one(("", "", "DISTINCT "))
    name = tape.one((*_MOMENTS, *_ROUNDED, *_PAIRS, *_ROUNDED_PAIRS, "median", "quantile_cont", "percentile_cont", "mad",
                     "entropy", "favg", "fsum", "geomean", "product"))  # fmt: skip
    if name in _ROUNDED or name in _ROUNDED_PAIRS:
        call = f"{name}({small}){keep}" if name in _ROUNDED else f"{name}({small}, {other}){keep}"
        if name in _ROUNDED:  # of equal values DuckDB's are what is left of rounding: `tests/functions/test_moments.py`
            call = f"CASE WHEN min({small}){keep} < max({small}){keep} THEN {call} END"
        return f"round({call} + 0.00001e0, 4)"  # no value of few digits lies half way between two of four
    if name in _MOMENTS:
        call = f"{name}({distinct}{small})"
    elif name in _PAIRS:
        call = f"{name}({small}, {other})"
    else:
        call = {
            "median": lambda: f"median({small})",
            "quantile_cont": lambda: f"quantile_cont({small}, {tape.one(_FRACTIONS)})",
            "percentile_cont": lambda: f"percentile_cont(0.25) WITHIN GROUP (ORDER BY {key}{direction})",
            "mad": lambda: f"mad({other})",
            "entropy": lambda: f"entropy({g.column(tape.one((INT, STR)), names, ())})",
            "favg": lambda: f"favg({small})",
            "fsum": lambda: f"fsum({small})",
            "geomean": lambda: f"geomean(abs({small}) + 1)",
            # of a 0 and others whose product is infinite the order decides between 0 and NaN
            "product": lambda: f"product({tape.one((f'nullif({other}, 0)', f'{other} % 2'))})",
        }[name]()
    keep = "" if name == "geomean" else keep  # a macro in DuckDB
    return f"CAST({call}{keep} AS DOUBLE)"
