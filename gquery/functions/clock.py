"""now() and its kin: one moment for a whole query, another for its next run.

They bind to a call that nothing computes. The rule `fix_moment` puts the moment in its place when a query is optimized, and a
plan with such a call is made anew for each run (`reads_clock`): a plan or template that outlives its text would keep the
moment of its first run. Days and local times are UTC's, the session's zone.
"""

from __future__ import annotations

import time

from gquery.expression.expr import Call, Cast, Expr
from gquery.expression.traverse import walk
from gquery.expression.types import DATE, TIMESTAMP, TIMESTAMPTZ
from gquery.functions.casts import cast
from gquery.functions.registry import ScalarFunction, declare, resolver

_NAME = "_now"
declare(ScalarFunction(_NAME, doc="The moment at which the query is planned."))


class _Use:
    """Whether this process ever bound a call of the clock: until then no plan needs to be searched for one."""

    is_possible = False


def moment() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


def is_moment(e: Expr) -> bool:
    """Whether an expression is the call that stands for the moment."""
    return isinstance(e, Call) and e.function == _NAME


def may_read_clock() -> bool:
    """Whether there may be a plan with such a call."""
    return _Use.is_possible


def reads_clock(e: Expr) -> bool:
    """Whether such a call stands in an expression, outside its subqueries."""
    return any(is_moment(x) for x in walk(e))


def _call() -> Expr:
    _Use.is_possible = True
    return Call(_NAME, (), TIMESTAMPTZ, False)


@resolver("now get_current_timestamp transaction_timestamp current_timestamp", "$() -> TIMESTAMP WITH TIME ZONE")
def _now() -> Expr:
    """The moment at which the query began; also CURRENT_TIMESTAMP."""
    return _call()


@resolver("current_localtimestamp localtimestamp", "$() -> TIMESTAMP")
def _local() -> Expr:
    """The moment at which the query began, as the time of UTC; also LOCALTIMESTAMP."""
    return Cast(_call(), TIMESTAMP)


@resolver("current_date today", "$() -> DATE")
def _today() -> Expr:
    """The day on which the query began, by UTC; also CURRENT_DATE."""
    return cast(Cast(_call(), TIMESTAMP), DATE)
