"""Values of Python as constants of a query."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

from sqlglot import exp

from gquery.errors import InterfaceError


def constant(value: Any) -> exp.Expr:
    """The tree of a constant, as `gquery.lit` takes it."""
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int() | Decimal() if value < 0:
            return exp.Neg(this=constant(-value))
        case int():
            return exp.Literal.number(value)
        case Decimal() if value.is_finite():
            return exp.Literal.number(format(value, "f"))
        case float() | Decimal():
            text = repr(float(value))
            if math.isfinite(value) and value >= 0:
                return exp.Literal.number(text if "e" in text else f"{text}e0")
            return exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build("DOUBLE"))
        case str():
            return exp.Literal.string(value)
        case datetime.datetime():
            if value.tzinfo is not None:
                value = value.astimezone(datetime.UTC).replace(tzinfo=None)
            return exp.Cast(this=exp.Literal.string(str(value)), to=exp.DataType.build("TIMESTAMP"))
        case datetime.date():
            return exp.Cast(this=exp.Literal.string(value.isoformat()), to=exp.DataType.build("DATE"))
        case datetime.timedelta():
            micros = value.seconds * 1_000_000 + value.microseconds
            return exp.Interval(this=exp.Literal.string(f"{value.days} days {micros} microseconds"))
        case _ if hasattr(value, "item"):  # a NumPy or CuPy scalar
            return constant(value.item())
        case _:
            raise InterfaceError(f"a value of type {type(value).__name__} cannot stand in an expression")
