"""Distances of vectors, which are lists of numbers of equal lengths, without NULLs. Sums are DOUBLE, of FLOAT too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.errors import DataError
from gquery.expression.expr import Expr
from gquery.expression.nested_types import list_of
from gquery.expression.types import DOUBLE, REAL, Kind
from gquery.functions.casts import cast
from gquery.functions.list_arrays import lists_of
from gquery.functions.list_function import Typed, list_function
from gquery.functions.vectors import Vector, doubles, flags, from_numpy, size_of

Of = Callable[[Callable[[Any], Any], Any, Any], tuple[Any, Any]]
"""Of what sums by row, and of the elements of both, the results, and which rows have one."""


def _vectors(xs: Expr, ys: Expr) -> Typed | None:
    """FLOAT of two lists of FLOAT, else DOUBLE."""
    given = [e.dtype.element for e in (xs, ys) if e.dtype.element is not None]
    others = [e for e in (xs, ys) if e.dtype.element is None and e.dtype.kind is not Kind.NULL]
    if others or not given or not all(t.is_numeric or t.kind is Kind.NULL for t in given):
        return None
    made = REAL if all(t == REAL for t in given) else DOUBLE
    return [cast(e, list_of(made)) for e in (xs, ys)], made


def _declare(names: str, doc: str, example: str, of: Of) -> None:
    name = names.split()[0]

    def host(xs: Vector, ys: Vector) -> Vector:
        rows = size_of(xs, ys)
        a, b = lists_of(xs, rows), lists_of(ys, rows)
        ok = a.ok & b.ok
        for vectors, side in ((a, "left"), (b, "right")):
            if (~flags(vectors.flat.is_valid()) & ok[vectors.rows]).any():
                raise DataError(f"{name}: the {side} list has a NULL")
        odd = np.flatnonzero((a.lengths != b.lengths) & ok)
        if len(odd):
            raise DataError(f"{name}: a list of {a.lengths[odd[0]]} values and one of {b.lengths[odd[0]]}")
        x, y = (doubles(v.flat.filter(from_numpy(ok[v.rows])).cast(pa.float64())) for v in (a, b))
        own = a.rows[ok[a.rows]]
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            made, there = of(lambda values: np.bincount(own, weights=values, minlength=rows), x, y)
            return pa.array(made.astype(a.flat.type.to_pandas_dtype()), mask=~(ok & there))

    host.__doc__ = doc
    list_function(names, _vectors, "$(list, list)", nullable=True, example=(f"{name}([1.0, 2.0], [4.0, 6.0])", example))(host)


def _cosine(total: Callable[[Any], Any], x: Any, y: Any) -> tuple[Any, Any]:
    norm = np.sqrt(total(x * x) * total(y * y))
    close = np.clip(total(x * y) / norm, -1.0, 1.0)
    return np.where(norm == 0, -1.0, close), total(np.ones(len(x))) > 0


_declare("list_distance", "The distance of two points.", "5.0",
         lambda total, x, y: (np.sqrt(total((x - y) ** 2)), True))  # fmt: skip
_declare("list_inner_product list_dot_product", "The sum of the products.", "16.0", lambda total, x, y: (total(x * y), True))
_declare("list_negative_inner_product list_negative_dot_product", "The sum of the products, below zero.", "-16.0",
         lambda total, x, y: (-total(x * y), True))  # fmt: skip
_declare("list_cosine_similarity", "The cosine of the angle of two vectors; NULL of none.", "0.9922778767136677", _cosine)
_declare("list_cosine_distance", "One less that.", "0.007722123286332261",
         lambda total, x, y: (1 - _cosine(total, x, y)[0], _cosine(total, x, y)[1]))  # fmt: skip
