"""Operators by name, and values by other values: methods of expressions under Polars' names; `Expression` is a `Values`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gquery.errors import InterfaceError
from gquery.runtime.arguments import checked

if TYPE_CHECKING:
    from gquery.api.dataframe.expression import Expression

_ABSENT: Any = object()


@checked
class Values:
    """What `Expression` has for values, beside operators and SQL's own functions."""

    __slots__ = ()

    # ---- operators by name -----------------------------------------------------------------------------------------

    def sub(self, other: Any) -> Expression:
        """``-``"""
        made: Expression = self._value - other
        return made

    def mul(self, other: Any) -> Expression:
        """``*``"""
        made: Expression = self._value * other
        return made

    def truediv(self, other: Any) -> Expression:
        """``/``"""
        made: Expression = self._value / other
        return made

    def floordiv(self, other: Any) -> Expression:
        """``//``: a quotient of integers, cut towards zero as in SQL."""
        made: Expression = self._value // other
        return made

    def neg(self) -> Expression:
        """The negative."""
        return -self._value

    def and_(self, *others: Any) -> Expression:
        """``AND``"""
        made: Expression = self._value
        for other in others:
            made &= other
        return made

    def or_(self, *others: Any) -> Expression:
        """``OR``"""
        made: Expression = self._value
        for other in others:
            made |= other
        return made

    def ne_missing(self, other: Any) -> Expression:
        """``IS DISTINCT FROM``: NULLs are equal."""
        return ~self._value.eq_missing(other)

    def is_not_nan(self) -> Expression:
        """Whether a DOUBLE is a number or infinite."""
        return ~self._value.is_nan()

    def log1p(self) -> Expression:
        """The natural logarithm of one more."""
        return (self._value + 1).ln()

    # ---- values for values -----------------------------------------------------------------------------------------

    def replace(self, old: Any, new: Any = _ABSENT) -> Expression:
        """Values by others: ``replace({"x": "a", "y": "b"})``. With two texts SQL's function: each place of the one in a text
        becomes the other."""
        from gquery.api.dataframe.expression import call

        if isinstance(old, Mapping):
            return self._replaced(old, self._value)
        if new is _ABSENT:
            raise InterfaceError("replace takes a dict of values, or the text to look for and the text to put there")
        return call("replace", self, old, new)

    def replace_strict(self, old: Mapping[Any, Any], default: Any = None) -> Expression:
        """Values by others, and ``default`` for those that are not among them."""
        return self._replaced(old, default)

    def is_duplicated(self) -> Expression:
        """Whether another row has the same value."""
        return _rows(self._value) > 1

    def is_unique(self) -> Expression:
        """Whether no other row has the same value."""
        return _rows(self._value) == 1

    def is_first_distinct(self) -> Expression:
        """Whether no row before has the same value."""
        return _number(self._value) == 1

    def is_last_distinct(self) -> Expression:
        """Whether no row behind has the same value."""
        return _number(self._value) == _rows(self._value)

    def has_nulls(self) -> Expression:
        """Whether any value is NULL."""
        return self._value.null_count() > 0

    def approx_n_unique(self) -> Expression:
        """About how many different values there are."""
        from gquery.api.dataframe.expression import call

        return call("approx_count_distinct", self)

    def skew(self) -> Expression:
        """The skewness, of a sample as SQL has it."""
        from gquery.api.dataframe.expression import call

        return call("skewness", self)

    def pct_change(self, n: int = 1) -> Expression:
        """What this is more than in the ``n``-th row before, as a share of that."""
        return self._value / self._value.shift(n) - 1

    # ---- inside ----------------------------------------------------------------------------------------------------

    def _replaced(self, pairs: Mapping[Any, Any], otherwise: Any) -> Expression:
        from gquery.api.dataframe.expression import lift, when

        if not isinstance(pairs, Mapping):
            raise InterfaceError(f"replace_strict takes a dict of values, not {pairs!r}")
        value, made = self._value, None
        for old, new in pairs.items():
            test = value.is_null() if old is None else value == old
            made = (when(test) if made is None else made.when(test)).then(new)
        return lift(otherwise) if made is None else made.otherwise(otherwise)

    @property
    def _value(self) -> Expression:
        from gquery.api.dataframe.expression import Expression

        assert isinstance(self, Expression)
        return self


def _rows(e: Expression) -> Expression:
    from gquery.api.dataframe.expression import call

    return call("count").over(e)


def _number(e: Expression) -> Expression:
    from gquery.api.dataframe.expression import call

    return call("row_number").over(e)
