"""Random window functions whose answer is the same in any order of the rows.

Ranks and frames of RANGE and GROUPS take peers together, whatever they are called. What numbers rows, counts them, or takes
the value of one is ordered by all columns that can be read, so that rows that it does not tell apart are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tests.fuzzing.data import BOOL, DATE, DBL, DEC, INT, KINDS, STR, TIME, ZONED
from tests.fuzzing.names import Names
from tests.fuzzing.tape import Tape

_ENDS = ("", " DESC", " NULLS FIRST", " DESC NULLS LAST")
_EXCLUDED = ("", "", "", " EXCLUDE GROUP", " EXCLUDE TIES", " EXCLUDE NO OTHERS")


class Writer(Protocol):
    """The grammar around a window."""

    tape: Tape
    row_orders: set[str]  # that number rows, with what they part them by
    one_order: bool  # whether all windows that number rows do so in the same order
    fails: bool  # whether an engine may fail at rows that the other does not look at

    def column(self, kind: str, names: Names, outer: Names, small: bool = False) -> str: ...

    def number(self, kind: str, names: Names) -> str: ...

    def value(self, kind: str, names: Names, outer: Names, size: int, depth: int) -> str: ...

    def aggregate(self, kind: str, names: Names) -> str: ...


def window(write: Writer, kind: str, names: Names) -> str:
    """An expression of a kind that is a window function."""
    tape = write.tape
    keys = [write.value(tape.one(KINDS), names, (), 0 if tape.chance(70) else 1, 0) for _ in range(tape.below(3))]
    # one key twice beside a window of another DuckDB takes for two
    by = f"PARTITION BY {', '.join(dict.fromkeys(keys))} " if keys else ""
    if tape.chance(30):
        return _over(_of_group(write, kind, names), by.rstrip())
    if tape.chance(40) and kind in (INT, DBL):
        order = _order(tape, [write.value(tape.one(KINDS), names, (), 1, 0) for _ in range(tape.count(1, 2))])
        ranks = ("rank()", "dense_rank()") if kind == INT else ("percent_rank()", "cume_dist()")
        return f"{tape.one(ranks)} OVER ({by}{order})"
    if tape.chance(45):
        return _cast(kind, _over(_plain(write, kind, names), f"{by}{of_peers(write, names)}"))
    every = _order(tape, [n.sql for n in names])
    order = next(iter(write.row_orders)) if write.one_order and write.row_orders else f"{by}{every}"
    write.row_orders.add(order)
    if tape.chance(50):
        return f"{_of_row(write, kind, names)} OVER ({order}{_rows(tape) if tape.chance(40) else ''})"
    if kind == STR and tape.chance(40):
        return f"string_agg({write.column(STR, names, ())}, '-') OVER ({order}{_rows(tape)})"
    call = _plain(write, kind, names)
    # counts of frames that end before they begin are negative in DuckDB 1.5.5
    rows = _computed_rows(write, names) if "count(" not in call and tape.chance(20) else _rows(tape)
    return _cast(kind, _over(call, f"{order}{rows}"))


def window_of_groups(write: Writer, keys: Sequence[str], names: Names) -> str:
    """A window function over the rows of a grouped query, an integer."""
    tape = write.tape
    by = f"PARTITION BY {tape.one(keys)} " if keys and tape.chance(50) else ""
    if tape.chance(50):
        return f"{tape.one(('rank()', 'dense_rank()'))} OVER ({by}ORDER BY {write.aggregate(tape.one(KINDS), names)})"
    order = f"ORDER BY {write.aggregate(INT, names)}" if tape.chance(50) else ""
    return f"CAST({tape.one(('sum(count(*))', 'max(count(*))', 'count(*)'))} OVER ({by}{order}) AS BIGINT)"


def named(items: Sequence[str]) -> tuple[list[str], str]:
    """The items with the window of the first that has one in a WINDOW clause, shared by all that have the same; the clause."""
    for item in items:
        start = item.find(" OVER (")
        if start < 0 or "SELECT" in item:
            continue
        start += len(" OVER (")
        depth, end = 1, start
        while depth:
            depth += {"(": 1, ")": -1}.get(item[end], 0)
            end += 1
        text = item[start : end - 1]
        return [i.replace(f" OVER ({text})", " OVER w") for i in items], f" WINDOW w AS ({text})"
    return list(items), ""


def qualified(write: Writer, names: Names) -> str:
    """A predicate of QUALIFY."""
    tape = write.tape
    return f"{window(write, INT, names)} {tape.one(('<=', '=', '>', '<>'))} {tape.count(0, 5)}"


def _order(tape: Tape, keys: Sequence[str]) -> str:
    # a key alone that is an integer is a constant here, and no place of a column
    return "ORDER BY " + ", ".join(f"{key}{tape.one(_ENDS)}" for key in keys)


def _plain(write: Writer, kind: str, names: Names) -> str:
    """An aggregate that windows compute over any frame."""
    tape = write.tape
    keep = f" FILTER (WHERE {write.value(BOOL, names, (), 0, 0)})" if tape.chance(12) else ""
    if kind == INT and tape.chance(70):
        value, other = (write.value(tape.one(KINDS), names, (), 1, 0) for _ in range(2))
        counted = ("*", value, value, f"DISTINCT {value}", f"DISTINCT ({value}, {other})")
        summed = f"sum({tape.one(('', 'DISTINCT '))}{write.column(INT, names, (), small=True)})"
        return f"{tape.one((f'count({tape.one(counted)})', summed))}{keep}"
    if kind == DBL and tape.chance(40):
        return f"avg({write.column(tape.one((INT, DBL, DEC)), names, (), small=True)}){keep}"
    if kind == INT and tape.chance(30):
        return f"{tape.one(('bit_and', 'bit_or', 'bit_xor'))}({write.column(INT, names, ())}){keep}"
    if kind == DBL and tape.chance(40):
        moment = tape.one(("var_pop({0})", "var_samp({0})", "stddev_samp({0})", "sem({0})", "covar_pop({0}, {0})"))
        return f"CAST({moment.format(write.number(INT, names))}{keep} AS FLOAT)"  # DISTINCT tells last digits of doubles apart
    functions = ("bool_and", "bool_or") if kind == BOOL else ("min", "max")
    return f"{tape.one(functions)}({write.value(kind, names, (), 1, 0)}){keep}"


def _cast(kind: str, call: str) -> str:
    return f"CAST({call} AS BIGINT)" if call.startswith("sum(") and kind == INT else call


def _over(call: str, text: str) -> str:
    """A call over a window, inside the cast of its result."""
    if not call.startswith("CAST("):
        return f"{call} OVER ({text})"
    inner, _, dtype = call.rpartition(" AS ")
    return f"{inner} OVER ({text}) AS {dtype}"


def _of_group(write: Writer, kind: str, names: Names) -> str:
    """An aggregate that can stand before OVER: none within a call, and none of windows' own functions with a FILTER."""
    for _ in range(9):
        call = write.aggregate(kind, names)
        is_row = call.startswith(("first(", "last(")) and "FILTER" in call
        if "WITHIN GROUP" not in call and not is_row and not call.startswith(("round(", "exp(")) and "geomean(" not in call:
            return call
    return "count(*)" if kind == INT else _plain(write, kind, names)


def of_peers(write: Writer, names: Names) -> str:
    """An order and a frame that take peers together."""
    tape = write.tape
    ends: tuple[str, ...]
    match tape.below(6):
        case 0:
            return _order(tape, [write.value(tape.one(KINDS), names, (), 1, 0) for _ in range(tape.count(1, 2))])
        case 4:
            numbers = tape.one((DBL, DEC))
            key = write.column(numbers, names, (), small=True)
            order = _order(tape, [key])
            ends = ("UNBOUNDED PRECEDING", "1.5 PRECEDING", "CURRENT ROW", "0.25 FOLLOWING", "UNBOUNDED FOLLOWING")
            frame = _between(tape, "RANGE", ends)
            if numbers == DBL and ("1.5 " in frame or "0.25 " in frame):
                # so far from infinity or NaN DuckDB 1.5.5 finds other rows, or counts them otherwise, now and then
                order = order.replace(key, f"CASE WHEN isfinite({key}) THEN {key} END", 1)
            return order + frame
        case 5:
            order = _order(tape, [write.column(tape.one((TIME, ZONED)), names, (), small=True)])
            ends = (
                "UNBOUNDED PRECEDING", "INTERVAL 1 MONTH PRECEDING", "INTERVAL 3 SECOND PRECEDING", "CURRENT ROW",
                "INTERVAL 10 MINUTE FOLLOWING", "UNBOUNDED FOLLOWING",
            )  # fmt: skip
            return order + _between(tape, "RANGE", ends)
        case 1:
            order = _order(tape, [write.column(tape.one(KINDS), names, ())])
            ends = (
                "UNBOUNDED PRECEDING",
                "2 PRECEDING",
                "1 PRECEDING",
                "CURRENT ROW",
                "1 FOLLOWING",
                "UNBOUNDED FOLLOWING",
            )
            return order + _between(tape, "GROUPS", ends)
        case 2:
            order = _order(tape, [write.column(DATE, names, (), small=True)])
            ends = (
                "UNBOUNDED PRECEDING", "INTERVAL 2 MONTH PRECEDING", "CURRENT ROW", "INTERVAL 30 DAY FOLLOWING",
                "INTERVAL 1 YEAR FOLLOWING", "UNBOUNDED FOLLOWING",
            )  # fmt: skip
            return order + _between(tape, "RANGE", ends)
        case _:
            order = _order(tape, [write.column(INT, names, (), small=True)])
            ends = (
                "UNBOUNDED PRECEDING",
                "3 PRECEDING",
                "CURRENT ROW",
                "0 FOLLOWING",
                "5 FOLLOWING",
                "UNBOUNDED FOLLOWING",
            )
            return order + _between(tape, "RANGE", ends)


def _computed_rows(write: Writer, names: Names) -> str:
    """A frame whose beginning differs from row to row, and may lie behind its end."""
    amount = f"coalesce({write.column(INT, names, (), small=True)} % 4, 0)"
    return f" ROWS BETWEEN {amount} PRECEDING AND {write.tape.one(('CURRENT ROW', '1 FOLLOWING', 'UNBOUNDED FOLLOWING'))}"


def _rows(tape: Tape) -> str:
    ends = (
        "UNBOUNDED PRECEDING", "3 PRECEDING", "1 PRECEDING", "CURRENT ROW", f"{tape.one(('2', '1 + 1'))} FOLLOWING",
        "UNBOUNDED FOLLOWING",
    )  # fmt: skip
    return _between(tape, "ROWS", ends, ("", "", " EXCLUDE CURRENT ROW"))


def _between(tape: Tape, unit: str, ends: Sequence[str], excluded: Sequence[str] = _EXCLUDED) -> str:
    start = tape.below(len(ends) - 1)
    end = tape.count(max(start, 1), len(ends) - 1)
    if start == end and "CURRENT" not in ends[start]:
        end = len(ends) - 1
    return f" {unit} BETWEEN {ends[start]} AND {ends[end]}{tape.one(excluded)}"


def _of_row(write: Writer, kind: str, names: Names) -> str:
    """A function that takes the value of one row, or its number."""
    tape = write.tape
    if kind == INT and tape.chance(70):
        return tape.one(("row_number()", "ntile(2)", "ntile(3)", "ntile(100)"))
    argument = write.value(kind, names, (), 1, 0) if kind in (STR, INT, BOOL) else write.column(kind, names, ())
    nulls = tape.one(("", "", " IGNORE NULLS", " RESPECT NULLS"))
    match tape.below(4):
        case 0:
            offset = tape.one(("", ", 1", ", 2", ", -1", ", 0"))
            return f"{tape.one(('lag', 'lead'))}({argument}{offset}{nulls})"
        case 1:
            default = write.column(kind, names, ())
            if kind in (INT, DEC) and default != argument:  # DuckDB casts it in rows that do not take it, or are left out
                write.fails = True
            return f"{tape.one(('lag', 'lead'))}({argument}, {tape.count(1, 3)}, {default}{nulls})"
        case 2:
            return f"nth_value({argument}, {tape.count(1, 3)}{nulls})"
        case _:
            return f"{tape.one(('first_value', 'last_value', 'first_value', 'last_value', 'first', 'last'))}({argument}{nulls})"
