# Bodies call primitives by names that each target resolves: the kernels, whose they are, lie above this room.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"
"""Functions of TIME, a time of day: microseconds since midnight, which is the TIMESTAMP of that time on 1970-01-01."""

from __future__ import annotations

from gquery.errors import NotSupportedError
from gquery.expression.expr import Expr, Literal
from gquery.expression.types import BIGINT, DOUBLE, TIME, TIMESTAMP
from gquery.functions.casts import cast
from gquery.functions.dates import MICRO_UNITS, constant_part, constant_unit
from gquery.functions.registry import call, is_null_literal, resolver, scalar
from gquery.functions.time_sums import is_time, stamp

_PARTS = "hour", "minute", "second", "millisecond", "microsecond", "nanosecond", "epoch", "epoch_ms", "epoch_us", "epoch_ns"


@scalar("_time_of_day", ((TIMESTAMP,), TIME))
def time_of_day(micros: int) -> int:
    """The time of day of a timestamp."""
    return floor_mod_i64(micros, 86_400_000_000)


def is_no_time_of_day(hour: int, minute: int, second: float) -> bool:
    if lt_i64(hour, 0) or gt_i64(hour, 23) or lt_i64(minute, 0) or gt_i64(minute, 59):
        return True
    return not (ge_f64(second, 0.0) and le_f64(second, 60.0))


@scalar("make_time", ((BIGINT, BIGINT, DOUBLE), TIME), domain=((is_no_time_of_day, "make_time: a time out of range"),),
        example=("make_time(10, 11, 12.5)", "10:11:12.500000"))  # fmt: skip
def make_time(hour: int, minute: int, second: float) -> int:
    """The time of an hour, a minute and a second with its fraction."""
    if not lt_f64(abs_f64(second), 61.0) or gt_i64(abs_i64(hour), 23) or gt_i64(abs_i64(minute), 59):
        return i64(0)
    whole = trunc_f64(second)
    micros = truncate_f64(round_f64(mul_f64(sub_f64(second, whole), 1_000_000.0)))
    seconds = add_i64(mul_i64(add_i64(mul_i64(hour, 60), minute), 60), truncate_f64(whole))
    return floor_mod_i64(add_i64(mul_i64(seconds, 1_000_000), micros), 86_400_000_000)


def _declare_part(name: str) -> None:
    @resolver(name, f"$(TIME) -> {'DOUBLE' if name == 'epoch' else 'BIGINT'}")
    def resolve(x: Expr) -> Expr | None:
        return call(name, stamp(x)) if is_time(x) else None


for _name in _PARTS:
    _declare_part(_name)


@resolver("date_part datepart", "$('part', TIME)", example=("date_part('minute', make_time(10, 11, 12))", "11"))
def _date_part(part: Expr, x: Expr) -> Expr | None:
    """A named part of a time."""
    if not is_time(x):
        return None
    made = call("date_part", part, stamp(x))
    named = constant_part(part)
    if named not in _PARTS:
        raise NotSupportedError(f"date_part: a TIME has no {named}")
    return made


def _between(name: str, part: Expr, a: Expr, b: Expr) -> Expr | None:
    if not all(is_time(x) or is_null_literal(x) for x in (a, b)) or not (is_time(a) or is_time(b)):
        return None
    if constant_unit(part) not in MICRO_UNITS:
        raise NotSupportedError(f"{name} of times in {constant_unit(part)!r}")
    first, last = (stamp(x) if is_time(x) else Literal(None, TIMESTAMP) for x in (a, b))
    return call(name, part, first, last)


@resolver("date_diff datediff", "$('part', TIME, TIME) -> BIGINT",
          example=("date_diff('hour', make_time(10, 59, 0), make_time(11, 0, 0))", "1"))  # fmt: skip
def _date_diff(part: Expr, a: Expr, b: Expr) -> Expr | None:
    """How many boundaries of a unit lie between two times."""
    return _between("date_diff", part, a, b)


@resolver("date_sub datesub", "$('part', TIME, TIME) -> BIGINT",
          example=("date_sub('hour', make_time(10, 59, 0), make_time(11, 0, 0))", "0"))  # fmt: skip
def _date_sub(part: Expr, a: Expr, b: Expr) -> Expr | None:
    """How many whole units have passed from one time to another."""
    return _between("date_sub", part, a, b)


@resolver("localtime current_localtime", "$() -> TIME")
def _localtime() -> Expr:
    """The time of day at which the query began, by UTC; also LOCALTIME."""
    return cast(call("localtimestamp"), TIME)
