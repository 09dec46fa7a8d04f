"""Types of lists, made of those of their elements."""

from __future__ import annotations

from gquery.errors import NotSupportedError
from gquery.expression.types import INTEGER, DType, Kind


def list_of(element: DType) -> DType:
    """LIST of values of a type; NotSupportedError for intervals, which have no place in Arrow's arrays as they are here.

    >>> str(list_of(list_of(INTEGER)))
    'INTEGER[][]'
    """
    if element.kind is Kind.INTERVAL:
        raise NotSupportedError(
            "not supported: lists of INTERVAL; CAST the values to VARCHAR, or take epoch_us of them"
        )
    name = '"NULL"[]' if element.kind is Kind.NULL else f"{element}[]"
    return DType(Kind.LIST, name=name, element=element)


def known_type(dtype: DType) -> DType:
    """A type that a table can hold: INTEGER for the NULL of no type, that of a list's elements as well."""
    if dtype.kind is Kind.NULL:
        return INTEGER
    if dtype.element is None or known_type(dtype.element) == dtype.element:
        return dtype
    return list_of(known_type(dtype.element))
