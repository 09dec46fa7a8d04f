"""Methods of relations that Polars and pandas have for frames as a whole: totals of each column, samples, types.

`Verbs` is a `Totals`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gquery.errors import BindError, InterfaceError
from gquery.expression.types import BOOLEAN
from gquery.runtime.arguments import checked

if TYPE_CHECKING:
    from gquery.api.dataframe.expression import Expression
    from gquery.api.dataframe.verbs import Verbs
    from gquery.api.relation import Relation

_SEED = 2**63


@checked
class Totals:
    """What `Verbs` has for frames as a whole."""

    # ---- one row ---------------------------------------------------------------------------------------------------

    def sum(self) -> Relation:
        """The sum of each column that is a number or a truth; NULL for the others, as in Polars."""
        return self._each("sum", lambda t: t.is_numeric or t == BOOLEAN)

    def mean(self) -> Relation:
        """The mean of each column that is a number or a truth; NULL for the others."""
        return self._each("mean", lambda t: t.is_numeric or t == BOOLEAN)

    def median(self) -> Relation:
        """The median of each column that is a number; NULL for the others."""
        return self._each("median", lambda t: t.is_numeric)

    def std(self, ddof: int = 1) -> Relation:
        """The standard deviation of each column that is a number; NULL for the others."""
        return self._each("std", lambda t: t.is_numeric, ddof)

    def var(self, ddof: int = 1) -> Relation:
        """The variance of each column that is a number; NULL for the others."""
        return self._each("var", lambda t: t.is_numeric, ddof)

    def min(self) -> Relation:
        """The least value of each column."""
        return self._each("min")

    def max(self) -> Relation:
        """The greatest value of each column."""
        return self._each("max")

    def count(self) -> Relation:
        """How many values that are not NULL each column has."""
        return self._each("count")

    def null_count(self) -> Relation:
        """How many NULLs each column has."""
        return self._each("null_count")

    def n_unique(self) -> int:
        """How many different rows there are. Runs the query."""
        return len(self._verbs.distinct())

    def value_counts(self, *columns: str | Sequence[str], sort: bool = True, name: str = "count") -> Relation:
        """How often each value of some columns (all) comes, the most frequent first."""
        from gquery.api.dataframe.expression import col, fn

        keys = [n for c in columns for n in ([c] if isinstance(c, str) else c)] or self._names()
        made = self._verbs.group_by(*keys).agg(fn.count().alias(name))
        return made.sort(col(name).desc(), *keys) if sort else made

    # ---- rows ------------------------------------------------------------------------------------------------------

    def sample(self, n: int | None = None, fraction: float | None = None, seed: int | None = None) -> Relation:
        """Some of the rows, each at most once: so many (1), or such a part of them. The same ones for a seed."""
        if n is not None and fraction is not None:
            raise InterfaceError("sample takes n or fraction")
        if fraction is not None and not (isinstance(fraction, int | float) and 0 <= fraction <= 1):
            raise InterfaceError(f"the fraction of a sample lies between 0 and 1, not {fraction!r}")
        if n is not None and n < 0:
            raise InterfaceError(f"a sample has a number of rows that is not negative, not {n}")
        size = f"{fraction * 100}%" if fraction is not None else f"{1 if n is None else n} ROWS"
        chance = "" if seed is None else f" REPEATABLE ({abs(seed) % _SEED})"
        return self._verbs.sql(f"SELECT * FROM self USING SAMPLE reservoir({size}){chance}")

    def reverse(self) -> Relation:
        """The rows from the last to the first."""
        from gquery.api.dataframe.expression import fn

        return self._verbs.sort(fn.row_number().over().desc())

    def gather_every(self, n: int, offset: int = 0) -> Relation:
        """Every ``n``-th row, from the row ``offset`` on."""
        from gquery.api.dataframe.expression import fn

        if n < 1 or offset < 0:
            raise InterfaceError("gather_every takes a step of 1 at least, and an offset that is not negative")
        at = fn.row_number().over() - (1 + offset)
        return self._verbs.filter((at >= 0) & (at % n == 0))

    # ---- columns ---------------------------------------------------------------------------------------------------

    def cast(self, dtypes: Any) -> Relation:
        """The same columns, some with other types: ``rel.cast({"a": "DOUBLE"})``, or all with one."""
        from gquery.api.dataframe.expression import col

        verbs = self._verbs
        given = dtypes if isinstance(dtypes, Mapping) else dict.fromkeys(self._names(), dtypes)
        types = {verbs._known(name).lower(): t for name, t in given.items()}
        return verbs.select(
            *(col(n).cast(types[n.lower()]).alias(n) if n.lower() in types else col(n) for n in self._names())
        )

    def __getitem__(self, key: Any) -> Relation:
        """``rel["a"]`` and ``rel["a", "b"]``, ``rel[["a", "b"]]``: columns; ``rel[10:20]``: rows."""
        match key:
            case str():
                return self._verbs.select(self._column(key))
            case list() | tuple() if key and all(isinstance(k, str) for k in key):
                return self._verbs.select(*(self._column(k) for k in key))
            case slice(start=start, stop=stop, step=step) if all(
                x is None or isinstance(x, int) for x in (start, stop, step)
            ):
                return self._sliced(start or 0, stop, 1 if step is None else step)
            case _:
                raise InterfaceError(
                    f"a relation is asked for columns by their names and for rows by a slice, not for {key!r}"
                )

    # ---- inside ----------------------------------------------------------------------------------------------------

    def _sliced(self, start: int, stop: int | None, step: int) -> Relation:
        if start < 0 or (stop or 0) < 0 or step < 1:
            raise InterfaceError("a slice of a relation counts from its first row on: tail gives the last rows")
        made = self._verbs.slice(start, None if stop is None else max(stop - start, 0))
        return made if step == 1 else made.gather_every(step)

    def _column(self, name: str) -> Expression:
        from gquery.api.dataframe.expression import col

        return col(self._verbs._known(name))

    def _each(self, name: str, fits: Any = None, *args: Any) -> Relation:
        """An aggregate of each column, called as the column is; NULL for a column whose type does not fit."""
        from gquery.api.dataframe.expression import call, col

        query = self._verbs.bound_query()
        if len({n.lower() for n in query.names}) < len(query.names):
            raise BindError(f"{name} of a relation in which a name comes twice")
        entries = []
        for n, column in zip(query.names, query.outputs, strict=True):
            of = col(n).cast("BIGINT") if column.dtype == BOOLEAN and name in ("sum", "mean") else col(n)
            fitting = fits is None or fits(column.dtype)
            entries.append((getattr(of, name)(*args) if fitting else call("any_value", None)).alias(n))
        return self._verbs.agg(*entries)

    def _names(self) -> list[str]:
        return list(self._verbs.bound_query().names)

    @property
    def _verbs(self) -> Verbs:
        from gquery.api.dataframe.verbs import Verbs

        assert isinstance(self, Verbs)
        return self
