"""Methods of expressions under the names that Polars has for them, where SQL's differ; `Expression` is a `Methods`.

Each is written with SQL functions, so that types, NULLs and errors are SQL's. What Polars says of NULLs and places is kept where
it differs: `n_unique` counts NULL, `slice` counts from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from gquery.errors import InterfaceError
from gquery.runtime.arguments import checked

if TYPE_CHECKING:
    from gquery.api.dataframe.expression import Expression
    from gquery.api.dataframe.lists import ListMethods
    from gquery.api.dataframe.namespaces import DateMethods, TextMethods
    from gquery.api.dataframe.selectors import NameMethods

Text = str  # in annotations of the class below, str is a method
FillStrategy = Literal["forward", "backward", "min", "max", "mean", "zero", "one"]
RankMethod = Literal["average", "min", "max", "dense", "ordinal"]


@checked
class Methods:
    """What `Expression` has beside operators and SQL's own functions."""

    __slots__ = ()

    @property
    def str(self) -> TextMethods:
        """Methods of text: ``col("s").str.to_uppercase()``."""
        from gquery.api.dataframe.namespaces import TextMethods

        return TextMethods(self._own)

    @property
    def name(self) -> NameMethods:
        """What a column is called: ``col("a", "b").max().name.suffix("_max")``."""
        from gquery.api.dataframe.selectors import NameMethods

        return NameMethods(self._own)

    def exclude(self, *names: Text | Sequence[Text]) -> Expression:
        """Of several columns all but these: ``all().exclude("key")``."""
        from gquery.api.dataframe.selectors import without

        listed: Sequence[Any] = [n for given in names for n in (given if isinstance(given, (list, tuple)) else [given])]
        if not all(isinstance(n, str) for n in listed):
            raise InterfaceError(f"exclude takes names of columns, not {names!r}")
        return without(self._own, listed)

    @property
    def dt(self) -> DateMethods:
        """Methods of dates and timestamps: ``col("d").dt.year()``."""
        from gquery.api.dataframe.namespaces import DateMethods

        return DateMethods(self._own)

    @property
    def list(self) -> ListMethods:
        """Methods of lists: ``col("xs").list.len()``."""
        from gquery.api.dataframe.lists import ListMethods

        return ListMethods(self._own)

    def implode(self) -> Expression:
        """The values of all rows as one list."""
        return _call("list", self)

    # ---- values ----------------------------------------------------------------------------------------------------

    def fill_null(self, value: Any = None, strategy: FillStrategy | None = None) -> Expression:
        """``value`` where this is NULL; or, by a strategy, the last value before (``forward``), the next one behind
        (``backward``), the least, the greatest, the mean, 0 or 1."""
        match strategy:
            case None:
                if value is None:
                    raise InterfaceError("fill_null takes a value or a strategy")
                return _call("coalesce", self, value)
            case "forward":
                return self.forward_fill()
            case "backward":
                return self.backward_fill()
            case "min" | "max" | "mean":
                return _call("coalesce", self, getattr(self, strategy)())
            case "zero" | "one":
                return _call("coalesce", self, int(strategy == "one"))
            case _:
                raise InterfaceError(
                    f"there is no strategy {strategy!r} of fill_null: {', '.join(get_args(FillStrategy))}"
                )

    def fill_nan(self, value: Any) -> Expression:
        """``value`` where this is NaN."""
        from gquery.api.dataframe.expression import when

        return when(_call("isnan", self)).then(value).otherwise(self)

    def is_nan(self) -> Expression:
        """Whether a DOUBLE is NaN."""
        return _call("isnan", self)

    def is_finite(self) -> Expression:
        """Whether a DOUBLE is neither infinite nor NaN."""
        return _call("isfinite", self)

    def is_infinite(self) -> Expression:
        """Whether a DOUBLE is infinite."""
        return _call("isinf", self)

    def is_between(self, low: Any, high: Any) -> Expression:
        """``BETWEEN low AND high``, both included."""
        return self._own.between(low, high)

    def is_not_in(self, values: Any) -> Expression:
        """``NOT IN``."""
        return ~self._own.is_in(values)

    def clip(self, low: Any = None, high: Any = None) -> Expression:
        """Within bounds: the nearer one where this is outside; NULL stays NULL."""
        from gquery.api.dataframe.expression import when

        made = self._own
        if low is not None:
            made = when(made < low).then(low).otherwise(made)
        return made if high is None else when(made > high).then(high).otherwise(made)

    def eq(self, other: Any) -> Expression:
        """``=``"""
        return self._own.__eq__(other)

    def ne(self, other: Any) -> Expression:
        """``<>``"""
        return self._own.__ne__(other)

    def lt(self, other: Any) -> Expression:
        """``<``"""
        return self._own.__lt__(other)

    def le(self, other: Any) -> Expression:
        """``<=``"""
        return self._own.__le__(other)

    def gt(self, other: Any) -> Expression:
        """``>``"""
        return self._own.__gt__(other)

    def ge(self, other: Any) -> Expression:
        """``>=``"""
        return self._own.__ge__(other)

    def eq_missing(self, other: Any) -> Expression:
        """``IS NOT DISTINCT FROM``: NULLs are equal."""
        from gquery.api.dataframe.expression import missing_equal

        return missing_equal(self._own, other)

    def not_(self) -> Expression:
        """``NOT``"""
        return ~self._own

    # ---- aggregates ------------------------------------------------------------------------------------------------

    def mean(self) -> Expression:
        """``avg``"""
        return _call("avg", self)

    def len(self) -> Expression:
        """How many rows there are, NULLs among them."""
        return _call("count")

    def n_unique(self) -> Expression:
        """How many different values there are; NULL is one."""
        return self._own.count(distinct=True) + _call("coalesce", _call("max", self._own.is_null().cast("BIGINT")), 0)

    def null_count(self) -> Expression:
        """How many values are NULL."""
        return _call("coalesce", _call("sum", self._own.is_null().cast("BIGINT")), 0)

    def std(self, ddof: int = 1) -> Expression:
        """The standard deviation: of a sample (``ddof`` 1) or of all there are (0)."""
        return _call({1: "stddev_samp", 0: "stddev_pop"}[_ddof(ddof)], self)

    def var(self, ddof: int = 1) -> Expression:
        """The variance: of a sample (``ddof`` 1) or of all there are (0)."""
        return _call({1: "var_samp", 0: "var_pop"}[_ddof(ddof)], self)

    def quantile(self, quantile: float, interpolation: Literal["nearest", "linear"] = "linear") -> Expression:
        """The value below which so large a part of the values lies, between two of them where none does; ``nearest``: one of
        the values."""
        if interpolation not in ("nearest", "linear"):
            raise InterfaceError(f"interpolation of quantile is nearest or linear, not {interpolation!r}")
        return _call("quantile_disc" if interpolation == "nearest" else "quantile_cont", self, quantile)

    def any(self) -> Expression:
        """Whether some value is TRUE; FALSE where there is none."""
        return _call("coalesce", _call("bool_or", self), False)

    def all(self) -> Expression:
        """Whether no value is FALSE; TRUE where there is none."""
        return _call("coalesce", _call("bool_and", self), True)

    def filter(self, condition: Any) -> Expression:
        """An aggregate over the rows for which the condition is TRUE: SQL's ``FILTER (WHERE ...)``. As in Polars it may stand
        before the aggregate: ``col("a").filter(col("b") > 0).sum()``."""
        from gquery.api.dataframe.expression import filtered

        return filtered(self._own, condition)

    # ---- windows ---------------------------------------------------------------------------------------------------

    def over(self, *partition_by: Any, order_by: Any = None, descending: bool = False) -> Expression:
        """Aggregates and window functions for each row, over the rows with equal ``partition_by``. ``order_by`` counts for those
        that look at an order (``first``, ``shift``, ``cum_sum``); a sum is that of all of these rows, as in Polars."""
        from gquery.api.dataframe.windows import over

        return over(self._own, partition_by, order_by, descending)

    def shift(self, n: int = 1, fill_value: Any = None) -> Expression:
        """The value of the ``n``-th row before (behind, where ``n`` is negative), in the rows' order or that of `over`."""
        from gquery.api.dataframe.windows import window

        args = [self, abs(n)] if fill_value is None else [self, abs(n), fill_value]
        return window(_call("lag" if n >= 0 else "lead", *args))

    def diff(self, n: int = 1) -> Expression:
        """What this is more than in the ``n``-th row before."""
        return self._own - self.shift(n)

    def rank(self, method: RankMethod = "average", descending: bool = False) -> Expression:
        """The place of each row in the order of this, from 1 on; NULL for NULL. Equal values have the mean, the least or the
        greatest of their places, are counted once (``dense``), or are told apart by their rows' order (``ordinal``)."""
        from gquery.api.dataframe.windows import ranked

        return ranked(method, self._own, descending)

    def cum_sum(self) -> Expression:
        """The sum up to each row, in the rows' order or that of `over`."""
        return _running("sum", self._own)

    def cum_count(self) -> Expression:
        """How many values there are up to each row."""
        return _running("count", self._own)

    def cum_min(self) -> Expression:
        """The least value up to each row."""
        return _running("min", self._own)

    def cum_max(self) -> Expression:
        """The greatest value up to each row."""
        return _running("max", self._own)

    def rolling_sum(self, window_size: int, min_samples: int | None = None) -> Expression:
        """The sum of so many rows that end with each one; NULL where fewer than ``min_samples`` (all of them) have a value."""
        return _rolling("sum", self._own, window_size, min_samples)

    def rolling_mean(self, window_size: int, min_samples: int | None = None) -> Expression:
        """The mean of them."""
        return _rolling("avg", self._own, window_size, min_samples)

    def rolling_std(self, window_size: int, min_samples: int | None = None) -> Expression:
        """The standard deviation of them, as of a sample."""
        return _rolling("stddev_samp", self._own, window_size, min_samples)

    def rolling_var(self, window_size: int, min_samples: int | None = None) -> Expression:
        """The variance of them, as of a sample."""
        return _rolling("var_samp", self._own, window_size, min_samples)

    def rolling_median(self, window_size: int, min_samples: int | None = None) -> Expression:
        """The median of them."""
        return _rolling("median", self._own, window_size, min_samples)

    def rolling_min(self, window_size: int, min_samples: int | None = None) -> Expression:
        """The least of them."""
        return _rolling("min", self._own, window_size, min_samples)

    def rolling_max(self, window_size: int, min_samples: int | None = None) -> Expression:
        """The greatest of them."""
        return _rolling("max", self._own, window_size, min_samples)

    def forward_fill(self) -> Expression:
        """The last value that is not NULL, up to each row."""
        from gquery.api.dataframe.windows import last_value

        return last_value(self._own)

    def backward_fill(self) -> Expression:
        """The next value that is not NULL, from each row on."""
        from gquery.api.dataframe.windows import next_value

        return next_value(self._own)

    # ---- inside ----------------------------------------------------------------------------------------------------

    @property
    def _own(self) -> Expression:
        from gquery.api.dataframe.expression import Expression

        assert isinstance(self, Expression)
        return self


def _running(name: str, of: Expression) -> Expression:
    """An aggregate of the rows up to each one; NULL for a row without a value, but of counts."""
    from gquery.api.dataframe.expression import when
    from gquery.api.dataframe.windows import framed

    made = framed(_call(name, of), None)
    return made if name == "count" else when(of.is_not_null()).then(made)


def _rolling(name: str, of: Expression, size: int, least: int | None) -> Expression:
    """An aggregate of so many rows that end with each one; NULL where too few have a value."""
    from gquery.api.dataframe.expression import when
    from gquery.api.dataframe.windows import framed

    if size < 1:
        raise InterfaceError(f"a window has at least one row, not {size}")
    enough = framed(_call("count", of), size) >= (size if least is None else least)
    return when(enough).then(framed(_call(name, of), size))


def _call(name: str, *args: Any) -> Expression:
    from gquery.api.dataframe.expression import call

    return call(name, *args)


def _ddof(ddof: int) -> int:
    if ddof not in (0, 1):
        raise InterfaceError(f"ddof is 0 or 1, not {ddof!r}")
    return ddof
