"""Functions of expressions under Polars' names: ``gquery.all()``, ``gquery.max_horizontal("a", "b")``, ``gquery.sum("a")``.

Names stand for columns here, as in Polars; a text as a value is written ``lit("...")``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from sqlglot import exp

from gquery.api.dataframe.expression import Expression, call, col, lift, lit, merged
from gquery.api.dataframe.selectors import horizontal, several
from gquery.errors import InterfaceError

_OF_COLUMNS = ("sum", "mean", "min", "max", "count", "first", "last", "median", "n_unique", "std", "var", "cum_sum")


def given(items: Sequence[Any]) -> list[Expression]:
    """Expressions; a name is a column, a list stands for its items."""
    flat = [x for item in items for x in (item if isinstance(item, list | tuple) else [item])]
    return [col(x) if isinstance(x, str) else lift(x) for x in flat]


def all_columns(*names: str) -> Expression:
    """All columns of the relation; of columns that are named, whether all of their values are TRUE."""
    return col(*names).all() if names else several(())


def any_value_true(*names: str) -> Expression:
    """Whether any value of a column is TRUE."""
    return col(*names).any()


def exclude(*names: str | Sequence[str]) -> Expression:
    """All columns but these."""
    return several(()).exclude(*names)


def rows() -> Expression:
    """How many rows there are, in a column that is called ``len``."""
    return call("count").alias("len")


def concat_str(*exprs: Any, separator: str = "", ignore_nulls: bool = False) -> Expression:
    """Values as texts, joined; NULL where one is NULL, which ``ignore_nulls`` leaves out instead."""

    def build(items: Sequence[Expression]) -> Expression:
        if ignore_nulls:
            return call("concat_ws", separator, *items)
        between = [x for e in items for x in (lit(separator), e)][1:] if separator else items
        return reduce(
            lambda a, b: Expression(exp.DPipe(this=a.node, expression=b.node), merged((a.names, b.names))), between
        )

    return horizontal(_some(exprs, "concat_str"), build)


def coalesce(*exprs: Any) -> Expression:
    """The first value that is not NULL."""
    return horizontal(_some(exprs, "coalesce"), lambda items: call("coalesce", *items))


def max_horizontal(*exprs: Any) -> Expression:
    """The greatest of the values of a row; NULLs are passed over."""
    return horizontal(_some(exprs, "max_horizontal"), lambda items: call("greatest", *items))


def min_horizontal(*exprs: Any) -> Expression:
    """The least of the values of a row; NULLs are passed over."""
    return horizontal(_some(exprs, "min_horizontal"), lambda items: call("least", *items))


def sum_horizontal(*exprs: Any) -> Expression:
    """The sum of the values of a row; a NULL is 0."""
    return horizontal(_some(exprs, "sum_horizontal"), lambda items: _sum([e.fill_null(0) for e in items]))


def mean_horizontal(*exprs: Any) -> Expression:
    """The mean of the values of a row; NULLs are passed over."""

    def build(items: Sequence[Expression]) -> Expression:
        count = _sum([e.is_not_null().cast("BIGINT") for e in items])
        return _sum([e.fill_null(0) for e in items]) / call("nullif", count, 0)

    return horizontal(_some(exprs, "mean_horizontal"), build)


def any_horizontal(*exprs: Any) -> Expression:
    """Whether any of the values of a row is TRUE."""
    return horizontal(_some(exprs, "any_horizontal"), lambda items: reduce(lambda a, b: a | b, items))


def all_horizontal(*exprs: Any) -> Expression:
    """Whether all of the values of a row are TRUE."""
    return horizontal(_some(exprs, "all_horizontal"), lambda items: reduce(lambda a, b: a & b, items))


def _sum(items: Sequence[Expression]) -> Expression:
    return reduce(lambda a, b: a + b, items)


def _some(exprs: Sequence[Any], name: str) -> list[Expression]:
    found = given(exprs)
    if not found:
        raise InterfaceError(f"{name} takes an expression")
    return found


def _of_columns(name: str) -> Callable[..., Expression]:
    def function(*names: str) -> Expression:
        if not names:
            raise InterfaceError(f"{name} takes the names of columns; {name}() is a method of a relation and of groups")
        made: Expression = getattr(col(*names), name)()
        return made

    function.__name__ = name
    function.__doc__ = f"``col(...).{name}()``: of each column that is named."
    return function


FUNCTIONS: dict[str, Callable[..., Expression]] = {
    "all": all_columns, "any": any_value_true, "len": rows, "exclude": exclude, "concat_str": concat_str, "coalesce": coalesce,
    "max_horizontal": max_horizontal, "min_horizontal": min_horizontal, "sum_horizontal": sum_horizontal,
    "mean_horizontal": mean_horizontal, "any_horizontal": any_horizontal, "all_horizontal": all_horizontal,
    **{name: _of_columns(name) for name in _OF_COLUMNS},
}  # fmt: skip
"""What the package gives beside `col`, by the names that it has there."""
