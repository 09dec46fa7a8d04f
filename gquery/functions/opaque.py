"""What is refused of columns that gquery carries and does not compute with (see `gquery.columns.opaque`)."""

from __future__ import annotations

from collections.abc import Iterable

from gquery.errors import NotSupportedError
from gquery.expression.expr import Column, Expr
from gquery.expression.types import Kind

CARRYING = frozenset({"coalesce", "ifnull", "nvl", "if", "typeof", "strptime", "try_strptime"})
"""Functions that pass a value on, and do not look, or look into a list themselves."""


def refuse_opaque(exprs: Iterable[Expr], what: str) -> None:
    """NotSupportedError, with the column's name and type and the way out, where an expression is carried alone."""
    for e in exprs:
        if e.dtype.kind is Kind.OPAQUE:
            raise refusal(e, what)


def refuse_nested(exprs: Iterable[Expr], what: str) -> None:
    """The same where an expression is a list or its like, too."""
    for e in exprs:
        if e.dtype.is_opaque:
            raise refusal(e, what)


def refusal(e: Expr, what: str) -> NotSupportedError:
    """The error for ``what`` of an opaque expression."""
    if not isinstance(e, Column):
        only = "" if e.dtype.is_nested else ", which gquery only carries"
        return NotSupportedError(f"not supported: {what} of a value of type {e.dtype}{only}")
    name = e.name if e.name.isidentifier() else '"' + e.name.replace('"', '""') + '"'
    why = "" if e.dtype.is_nested else ": gquery carries such columns and does not compute with them"
    return NotSupportedError(
        f'not supported: {what} of column "{e.name}" of type {e.dtype}{why}. SELECT * EXCLUDE ({name}) leaves it out'
    )
