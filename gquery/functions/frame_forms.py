"""What methods and operators of the DataFrame API mean beyond SQL's functions: they keep the type of what they are given.

Their names begin with an underscore: no text of SQL can call them.
"""

from __future__ import annotations

from gquery.expression.expr import Expr
from gquery.expression.types import DATE, INTERVAL, VARCHAR
from gquery.functions.casts import cast
from gquery.functions.registry import call, resolver


@resolver("_plus", "VARCHAR + VARCHAR -> VARCHAR")
def _plus(a: Expr, b: Expr) -> Expr:
    """Python's ``a + b``: two texts joined, NULL with a NULL; else what SQL's ``+`` gives."""
    return call("_concat_operator" if a.dtype == b.dtype == VARCHAR else "add", a, b)


@resolver("_date_trunc", "$('part', DATE) -> DATE", "$('part', TIMESTAMP) -> TIMESTAMP")
def _date_trunc(part: Expr, x: Expr) -> Expr:
    """``date_trunc`` that gives a date of a date."""
    return _as_date(call("date_trunc", part, x), x)


@resolver("_offset", "$(DATE, INTERVAL) -> DATE", "$(TIMESTAMP, INTERVAL) -> TIMESTAMP")
def _offset(x: Expr, by: Expr) -> Expr:
    """A date or timestamp, so much later: of a date a date."""
    return _as_date(call("add", x, by), x)


@resolver("_month_end", "$(DATE) -> DATE", "$(TIMESTAMP) -> TIMESTAMP")
def _month_end(x: Expr) -> Expr:
    """The last day of the month, at the same time of day."""
    last = call("last_day", x)
    if x.dtype == DATE or x.dtype == INTERVAL:
        return last
    return call("add", x, call("to_days", call("subtract", last, cast(x, DATE))))


def _as_date(made: Expr, given: Expr) -> Expr:
    return cast(made, DATE) if given.dtype == DATE else made
