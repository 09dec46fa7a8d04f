"""Binding of ``AT TIME ZONE``."""

from __future__ import annotations

from gquery.errors import NotSupportedError
from gquery.expression.expr import Cast, Expr, Literal
from gquery.expression.types import TIMESTAMP, TIMESTAMPTZ
from gquery.functions import cast
from gquery.functions.registry import no_match


def at_zone(e: Expr, zone: Expr) -> Expr:
    """``AT TIME ZONE 'UTC'``: a moment as the local time there, and a local time as the moment."""
    if not (isinstance(zone, Literal) and str(zone.value).upper() == "UTC"):
        raise NotSupportedError("not supported: AT TIME ZONE of any zone but 'UTC'")
    if e.dtype == TIMESTAMPTZ:
        return Literal(e.value, TIMESTAMP) if isinstance(e, Literal) else Cast(e, TIMESTAMP)
    if not e.dtype.is_temporal:
        raise no_match("AT TIME ZONE", (e,), ())
    stamp = cast(e, TIMESTAMP)
    return Literal(stamp.value, TIMESTAMPTZ) if isinstance(stamp, Literal) else Cast(stamp, TIMESTAMPTZ)
