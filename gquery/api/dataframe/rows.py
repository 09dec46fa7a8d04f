"""Methods of relations that keep, leave out, number or fill rows, under Polars' names; `Verbs` is a `Rows`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from gquery.errors import BindError, InterfaceError
from gquery.runtime.arguments import checked

if TYPE_CHECKING:
    from gquery.api.dataframe.expression import Expression
    from gquery.api.dataframe.pivot import PivotAggregate
    from gquery.api.dataframe.verbs import Verbs
    from gquery.api.relation import Relation

Names = str | Sequence[str] | None
Keep = Literal["any", "first", "last", "none"]
ConcatHow = Literal["vertical", "vertical_relaxed", "diagonal", "diagonal_relaxed"]
_NUMBER = "gquery_row"  # a column that is not in any result


@checked
class Rows:
    """What `Verbs` has beside SQL's clauses."""

    def unique(self, subset: Names = None, keep: Keep = "any", maintain_order: bool = False) -> Relation:
        """Of rows with equal values in ``subset`` (all columns) one: any, the first, the last, or none where there are two.
        With ``subset`` or ``keep`` the rows keep their order, by ``maintain_order`` always."""
        from gquery.api.dataframe.expression import fn

        if subset is None and keep == "any" and not maintain_order:
            return self._verbs.distinct()
        keys = self._columns(subset)
        many = fn.count().over(*keys)
        number = fn.row_number().over(*keys)
        match keep:
            case "any" | "first":
                return self._numbered(number, number_is=1)
            case "last":
                return self._numbered(many - number, number_is=0)
            case "none":
                return self._numbered(many, number_is=1)
            case _:
                raise InterfaceError(f"keep is any, first, last or none, not {keep!r}")

    def intersect(self, other: Any, distinct: bool = True) -> Relation:
        """The rows that both have, each once; as often as both have it for ``distinct=False``."""
        from sqlglot import exp

        return self._set_operation(exp.Intersect, other, distinct)

    def except_(self, other: Any, distinct: bool = True) -> Relation:
        """The rows that the other has not, each once; for ``distinct=False`` each less often by as often as the other has it."""
        from sqlglot import exp

        return self._set_operation(exp.Except, other, distinct)

    def _set_operation(self, kind: Any, other: Any, distinct: bool) -> Relation:
        from sqlglot import exp

        from gquery.api.dataframe.build import select

        left, right = (select([exp.Star()], table) for table in ("self", "other"))
        return self._verbs._made(kind(this=left, expression=right, distinct=distinct), [], other)

    def tail(self, n: int = 5) -> Relation:
        """The last rows."""
        from gquery.api.dataframe.expression import col, fn

        if n < 0:
            raise BindError("tail takes a number of rows that is not negative")
        from_end = fn.count().over() - fn.row_number().over()
        numbered = self._verbs.with_columns(from_end.alias(_NUMBER))
        return numbered.filter(col(_NUMBER) < n).drop(_NUMBER)

    def slice(self, offset: int, length: int | None = None) -> Relation:
        """``length`` rows (all for None) after skipping ``offset``."""
        if offset < 0:
            raise BindError("slice takes an offset that is not negative; tail gives the last rows")
        return self._verbs.limit(2**62 if length is None else length, offset)

    def with_row_index(self, name: str = "index", offset: int = 0) -> Relation:
        """A first column with the number of each row, from ``offset`` on."""
        from gquery.api.dataframe.expression import col, fn

        number = fn.row_number().over() + (offset - 1)
        return self._verbs.select(number.alias(name), *(col(n) for n in self._verbs.bound_query().names))

    def drop_nulls(self, subset: Names = None) -> Relation:
        """The rows without a NULL in ``subset`` (all columns)."""
        from gquery.api.dataframe.expression import col

        return self._verbs.filter(*(col(n).is_not_null() for n in self._columns(subset)))

    def fill_null(self, value: Any) -> Relation:
        """``value`` for NULL in the columns that may hold it: numbers for numbers, text for text, and so on."""
        from gquery.api.dataframe.expression import col, lit
        from gquery.expression.promotion import common_type
        from gquery.expression.types import BOOLEAN

        query = self._verbs.bound_query()
        (of_value,) = self._verbs.select(lit(value)).bound_query().outputs
        filled = []
        for name, column in zip(query.names, query.outputs, strict=True):
            kind = column.dtype
            fits = not kind.is_opaque and common_type(kind, of_value.dtype) is not None
            fits = fits and (kind == BOOLEAN) == (of_value.dtype == BOOLEAN)  # a truth is no number here
            filled.append(col(name).fill_null(value).alias(name) if fits else col(name))
        return self._verbs.select(*filled)

    def pivot(
        self,
        on: str | Sequence[str],
        *,
        index: Names = None,
        values: Names = None,
        aggregate_function: PivotAggregate | None = None,
        sort_columns: bool = False,
        separator: str = "_",
    ) -> Relation:
        """A column for each value of ``on``, a row for each of ``index``, and an aggregate of ``values`` where they meet. Index
        or values may be left out for all other columns. Without an aggregate, DataError where a cell has several values. Runs
        a query that finds the columns; rows come in no order."""
        from gquery.api.dataframe.pivot import pivot

        columns = (None if index is None else self._columns(index), None if values is None else self._columns(values))
        return pivot(self._verbs, self._columns(on), columns, aggregate_function, sort_columns, separator)

    def unpivot(
        self,
        on: Names = None,
        *,
        index: Names = (),
        variable_name: str = "variable",
        value_name: str = "value",
    ) -> Relation:
        """A row for each of the columns ``on`` (all but the index): those of the index, the column's name, and its value."""
        from gquery.api.dataframe.pivot import unpivot

        kept = [] if index is None else self._columns(index)
        return unpivot(self._verbs, None if on is None else self._columns(on), kept, variable_name, value_name)

    def explode(self, *columns: str | Sequence[str]) -> Relation:
        """A row for each element of the lists in these columns, whose places in a row belong together. A row without elements
        comes once, with NULLs."""
        from gquery.api.dataframe.expression import call, col, when

        given = [n for c in columns for n in ([c] if isinstance(c, str) else c)]
        if not given:
            raise InterfaceError("explode takes the names of columns with lists")
        lists = self._columns(given)
        has_any = call("greatest", *(call("coalesce", col(n).list.len(), 0) for n in lists)) > 0
        made = [call("unnest", when(has_any).then(col(n)).otherwise(call("list_value", None))).alias(n)
                if n in lists else col(n) for n in self._verbs.bound_query().names]  # fmt: skip
        return self._verbs.select(*made)

    def top_k(self, k: int, by: Any) -> Relation:
        """The ``k`` rows with the greatest keys; NULLs come last."""
        return self._verbs.sort(by, descending=True).limit(k)

    def bottom_k(self, k: int, by: Any) -> Relation:
        """The ``k`` rows with the least keys; NULLs come last."""
        return self._verbs.sort(by).limit(k)

    def pipe(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """``function(self, ...)``, so that functions of relations can stand in a chain."""
        if not callable(function):
            raise InterfaceError(f"pipe takes a function, not {function!r}")
        return function(self, *args, **kwargs)

    def lazy(self) -> Relation:
        """The relation itself: all are lazy."""
        return self._relation_itself

    def collect(self) -> Relation:
        """The relation, run: its rows are kept from now on."""
        made = self._relation_itself
        made.execute()
        return made

    # ---- inside ----------------------------------------------------------------------------------------------------

    @property
    def _verbs(self) -> Verbs:
        from gquery.api.dataframe.verbs import Verbs

        assert isinstance(self, Verbs)
        return self

    @property
    def _relation_itself(self) -> Relation:
        from gquery.api.relation import Relation

        assert isinstance(self, Relation)
        return self

    def _columns(self, subset: Names) -> list[str]:
        names = self._verbs.bound_query().names
        given = list(names) if subset is None else [subset] if isinstance(subset, str) else list(subset)
        return [self._verbs._known(n) for n in given]

    def _numbered(self, number: Expression, number_is: int) -> Relation:
        """The rows for which a window is so much."""
        from gquery.api.dataframe.expression import col

        made = self._verbs.with_columns(number.alias(_NUMBER))
        return made.filter(col(_NUMBER) == number_is).drop(_NUMBER)


def concat(relations: Sequence[Any], how: ConcatHow = "vertical") -> Any:
    """The rows of several relations, one after another, which have the same columns, in the same order; or, *diagonal*, by their
    names, with NULL where one has no such column. Types meet as in UNION ALL (*vertical_relaxed* and *diagonal_relaxed* are other
    names of the same). What is no relation belongs to the connection of the first that is one."""
    from gquery.api.dataframe.verbs import Verbs

    if how not in get_args(ConcatHow):
        raise InterfaceError(f"how of concat is {', '.join(get_args(ConcatHow))}, not {how!r}")
    by_name = how.startswith("diagonal")
    given = list(relations)
    first = next((r for r in given if isinstance(r, Verbs)), None)
    if first is None:
        raise InterfaceError("concat takes relations, one at least")
    made: Any = first._relation(given[0])
    for other in given[1:]:
        more = made._relation(other)
        if not by_name and [n.lower() for n in more.columns] != [n.lower() for n in made.columns]:
            names = f"{', '.join(made.columns)} and {', '.join(more.columns)}"
            raise InterfaceError(f"concat takes relations of the same columns, not {names}; how='diagonal' goes by names")
        made = made.union(more, by_name=by_name)
    return made
