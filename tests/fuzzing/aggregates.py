"""Aggregates of random queries that do not depend on the order of rows: in an order of their own, of moments, of bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzzing.data import BOOL, DATE, DBL, DEC, INT, STR

if TYPE_CHECKING:
    from tests.fuzzing.grammar import Grammar
    from tests.fuzzing.names import Names

_FRACTIONS = ("0", "0.25", "0.5", "0.3", "1", "-0.1", "0.75e0")


def aggregate(g: Grammar, kind: str, names: Names, keep: str) -> str | None:
    """An aggregate of a kind with its FILTER; None for a kind that has none here."""
    tape = g.tape
    direction = tape.one(("", " DESC"))
    match kind:
        case "int" | "str" | "date" | "dec":
            x = g.column({"int": INT, "str": STR, "date": DATE, "dec": DEC}[kind], names, ())
            shapes = [
                f"quantile_disc({x}, {tape.one(_FRACTIONS)})",
                f"mode({x} ORDER BY {x}{direction})",
                f"mode() WITHIN GROUP (ORDER BY {x}{direction})",
                f"first({x} ORDER BY {x}{direction})",
                f"last({x} ORDER BY {x}{direction})",
                f"any_value({x} ORDER BY {x}{direction})",
                f"{tape.one(('arg_min', 'arg_max', 'arg_max_null'))}({x}, {x})",
                f"percentile_disc(0.5) WITHIN GROUP (ORDER BY {x})",
            ]
            if kind == "str":
                distinct = tape.one(("", "DISTINCT "))
                shapes += [f"string_agg({distinct}{x}, '{tape.one(('', ',', '; '))}' ORDER BY {x}{direction})", f"median({x})"]
            if kind == "int":
                other = g.column(tape.one((INT, STR, BOOL)), names, ())
                shapes += [
                    f"{tape.one(('bit_and', 'bit_or', 'bit_xor'))}({x})",
                    f"count(DISTINCT ({x}, {other}))",
                    f"count_if({g.column(BOOL, names, ())})",
                ]
            made = tape.one(shapes) + keep
            return f"CAST({made} AS BIGINT)" if made.startswith("count_if") else made
        case "dbl":
            small = g.column(tape.one((INT, DEC)), names, (), small=True)
            other = g.column(INT, names, (), small=True)
            moment = tape.one(("stddev", "stddev_pop", "variance", "var_pop", "sem"))
            pair = tape.one(("regr_sxx", "regr_syy", "regr_avgx", "regr_avgy"))
            made = tape.one(
                (
                    f"{moment}({tape.one(('', 'DISTINCT '))}{small})",
                    f"median({small})",
                    f"quantile_cont({small}, {tape.one(_FRACTIONS)})",
                    f"percentile_cont(0.25) WITHIN GROUP (ORDER BY {other}{direction})",
                    f"{pair}({small}, {other})",
                    f"mad({other})",
                    f"entropy({g.column(tape.one((INT, STR)), names, ())})",
                    f"favg({g.column(DBL, names, (), small=True)})",
                )
            )
            return f"CAST({made}{keep} AS DOUBLE)"
        case _:
            return None
