# Bodies call primitives by names that each target resolves: the kernels, whose they are, lie above this room.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"
"""Years of moments before Christ. DuckDB counts these of a TIMESTAMP WITH TIME ZONE as they are written, 44 BC as 44, and those
of a DATE or a TIMESTAMP on: -43."""

from __future__ import annotations

from gquery.expression.expr import Expr, Literal
from gquery.expression.types import BIGINT, DATE, TIMESTAMP, TIMESTAMPTZ
from gquery.functions.casts import cast
from gquery.functions.dates import YEAR_UNITS, constant_part, constant_unit
from gquery.functions.registry import call, make, scalar


@scalar("_eras_year", ((DATE,), BIGINT))
def year_of_era(days: int) -> int:
    """The year as it is written."""
    y = date_year(days)
    if gt_i64(y, 0):
        return y
    return sub_i64(1, y)


@scalar("_eras_decade", ((DATE,), BIGINT))
def decade_of_era(days: int) -> int:
    """The year as it is written, by ten."""
    y = date_year(days)
    if gt_i64(y, 0):
        return div_i64(y, 10)
    return div_i64(sub_i64(1, y), 10)


@scalar("_eras_trunc_years", ((DATE, BIGINT), DATE))
def trunc_years_of_era(days: int, count: int) -> int:
    """The first day of the last year, as it is written, that is a multiple of a count. The year 0 BC is that behind 1 BC."""
    y = date_year(days)
    if gt_i64(y, 0):
        return date_from_ymd(mul_i64(div_i64(y, count), count), 1, 1)
    return date_from_ymd(sub_i64(1, mul_i64(div_i64(sub_i64(1, y), count), count)), 1, 1)


def _boundaries(args: tuple[Expr, ...]) -> Expr | None:
    """Whole units between the begins of two: those of decades and the like, and quarters, whose counts depend on it."""
    if len(args) != 3:
        return None
    part, first, last = args
    unit = constant_unit(part)
    if unit not in ("quarter", "decade", "century", "millennium"):
        return None
    begins = [call("date_trunc", part, cast(x, TIMESTAMPTZ)) for x in (first, last)]
    return call("date_sub", part, *begins)


def of_era(name: str, args: tuple[Expr, ...], moment: Expr) -> Expr | None:
    """A call of a function of moments that counts years as they are written; None for one that does not."""
    day = cast(cast(moment, TIMESTAMP), DATE)
    part = name if len(args) == 1 else constant_part(args[0]) if name in ("date_part", "datepart") else ""
    if part in ("year", "decade"):
        return make(f"_eras_{part}", (day,), BIGINT)
    if name in ("date_diff", "datediff"):
        return _boundaries(args)
    count = YEAR_UNITS.get(constant_unit(args[0]), 1) if name in ("date_trunc", "datetrunc") else 1
    if count == 1:
        return None
    return cast(cast(make("_eras_trunc_years", (day, Literal(count, BIGINT)), DATE), TIMESTAMP), TIMESTAMPTZ)
