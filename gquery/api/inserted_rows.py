"""The rows of an INSERT of constants and parameters as Python values: no plan is made and nothing runs for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gquery import tuning
from gquery.expression.expr import Expr, Literal
from gquery.expression.facts import EXACT_FLOAT
from gquery.expression.traverse import columns_of
from gquery.expression.types import DType, Kind, python_value, type_bounds
from gquery.runtime.recent import Recent

if TYPE_CHECKING:
    from gquery.sql.binding.constraints import Conditions
    from gquery.sql.catalog import Catalog
    from gquery.sql.constraints import Columns, Constraints
    from gquery.sql.statement import AppendRows


def python_rows(rows: Sequence[Sequence[Expr]], types: Sequence[DType]) -> list[tuple[Any, ...]] | None:
    """The rows as Python values; None where computing one fails, which is left to the query."""
    try:
        return [tuple([_value(e, t) for e, t in zip(row, types, strict=True)]) for row in rows]
    except _NoValueError:
        return None


def with_parameters(
    rows: Sequence[Sequence[Any]],
    parameters: Sequence[Sequence[str | None]],
    types: Sequence[DType],
    given: Mapping[str, Literal],
) -> list[tuple[Any, ...]] | None:
    """Rows with other values of parameters; None as of `python_rows`, and where a parameter has no value."""
    try:
        return [
            tuple([
                value if name is None else _value(given[name], t)
                for value, name, t in zip(row, names, types, strict=True)
            ])
            for row, names in zip(rows, parameters, strict=True)
        ]  # fmt: skip
    except (_NoValueError, KeyError):
        return None


def are_allowed(rows: Sequence[Sequence[Any]], conditions: Conditions) -> bool:
    """Whether no condition is false of one of the rows, and none raises."""
    from gquery.columns.arrow import arrow_type
    from gquery.kernels.host import evaluate_over_rows
    from gquery.runtime.value_arrays import value_array

    for e in conditions.exprs:
        used = columns_of(e)
        given = {
            c: value_array([row[n] for row in rows], arrow_type(c.dtype))
            for n, c in enumerate(conditions.columns)
            if c.id in used
        }
        results = evaluate_over_rows(e, given, len(rows))
        if results is None or not all(r is None or r for r in results):
            return False
    return True


class Inserts:
    """What is kept of INSERTs of constants and parameters: those that ran last, by text, with their rows as values and the names
    of their parameters; and the conditions of their tables, by columns and constraints."""

    def __init__(self) -> None:
        self.by_text: Recent[str, tuple[AppendRows, list[tuple[Any, ...]], frozenset[str]]] = Recent(tuning.memory.plans)
        self._conditions: Recent[tuple[Columns, Constraints], Conditions] = Recent(tuning.memory.plans)

    def keeps(self, statement: AppendRows, rows: Sequence[Sequence[Any]], catalog: Catalog) -> bool:
        """Whether it is known of rows that none is against a condition of their table."""
        from gquery.sql.binding.constraints import conditions_of

        asked = statement.constraints
        if not asked.checks:
            return True
        conditions = self._conditions.get((statement.columns, asked))
        if conditions is None:
            conditions = conditions_of(statement.name, statement.columns, asked, catalog)
            if conditions is None:
                return False
            self._conditions[statement.columns, asked] = conditions
        return are_allowed(rows, conditions)


class _NoValueError(Exception):
    """A value cannot be computed here."""


def _value(e: Expr, dtype: DType) -> Any:
    """The value of a constant as a column of that type has it, for Python."""
    from gquery.errors import Error
    from gquery.functions import cast
    from gquery.kernels.host import evaluate

    if isinstance(e, Literal):
        value = e.value
        if value is None:
            return None
        if e.dtype == dtype or (e.dtype.is_integer and _is_within(value, dtype)):
            return _python(dtype, value)
    try:
        found = evaluate(cast(e, dtype))
    except Error:
        found = None
    if found is None:
        raise _NoValueError
    return _python(dtype, found.value)


def _is_within(value: int, dtype: DType) -> bool:
    """Whether an integer is a value of a type as it is."""
    if dtype.is_integer:
        bounds = type_bounds(dtype)
        return bounds is not None and bounds.low <= value <= bounds.high
    return dtype.kind is Kind.DOUBLE and -EXACT_FLOAT <= value <= EXACT_FLOAT


def _python(dtype: DType, value: Any) -> Any:
    try:
        return python_value(dtype, value)
    except (OverflowError, ValueError):  # a moment that Python has not
        raise _NoValueError from None
