"""Arrow's compute functions, imported when the first of them is called.

``pyarrow.compute`` takes 40 ms to import, as it writes a Python function for each of Arrow's. Functions over text are made
of it, and are declared when gquery is imported; a query that calls none of them should not wait. Methods of arrays such as
``take`` and ``cast`` import it, too. What reading a file and handing out a result call is here without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


class _Compute:
    def __getattr__(self, name: str) -> Any:
        import pyarrow.compute

        found = getattr(pyarrow.compute, name)
        setattr(self, name, found)
        return found


pc: Any = _Compute()


def take(array: pa.Array, places: pa.Array) -> pa.Array:
    """The values at some places, which have to be there; NULL where a place is."""
    return _call("array_take", array, places)


def where(array: pa.Array, mask: pa.Array) -> pa.Array:
    """The values where a mask of booleans is true."""
    return _call("array_filter", array, mask)


def cast(array: Any, to: pa.DataType) -> Any:
    """An array, or a chunked one, as another type; ArrowInvalid where a value has no meaning there."""
    if array.type == to:
        return array
    from pyarrow._compute import CastOptions

    return _call("cast", array, options=CastOptions.safe(to))


def dictionary_encode(array: pa.Array | pa.ChunkedArray) -> Any:
    """An array by codes, a chunked one in chunks; what is NULL has none."""
    return _call("dictionary_encode", array)


def places_among(array: pa.Array, others: pa.Array) -> pa.Array:
    """Where each value of an array stands first among others of its type (int32); NULL where it does not."""
    from pyarrow._compute import SetLookupOptions

    return _call("index_in", array, options=SetLookupOptions(others))


def value_counts(array: pa.Array) -> pa.StructArray:
    """Each value (``values``) and how often it stands there (``counts``, int64)."""
    return _call("value_counts", array)


def matches(function: str, array: pa.Array, text: str) -> pa.BooleanArray:
    """Where texts have one in them (``match_substring``), begin with it (``starts_with``) or end so (``ends_with``)."""
    from pyarrow._compute import MatchSubstringOptions

    return _call(function, array, options=MatchSubstringOptions(text))


def different(array: pa.Array) -> pa.Array:
    """Each value once, NULL left out."""
    return _call("drop_null", _call("unique", array))


def at_least(array: pa.Array, least: pa.Scalar) -> pa.BooleanArray:
    """Where values are no less than one, which is not NULL; NULL where they are."""
    return _call("greater_equal", array, least)


def sorted_places(array: pa.Array) -> pa.Array:
    """Where the values of an array lie, the least first, NULLs last (uint64)."""
    return _call("array_sort_indices", array)


def _call(function: str, *arguments: pa.Array | pa.ChunkedArray | pa.Scalar, options: Any = None) -> Any:
    from pyarrow._compute import call_function

    return call_function(function, list(arguments), options)
