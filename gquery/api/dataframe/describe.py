"""`Relation.describe`: one query with the aggregates of every column, turned into a row a column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gquery.api.dataframe.expression import col, fn
from gquery.expression.types import Kind
from gquery.runtime.value_arrays import value_array

if TYPE_CHECKING:
    from gquery.api.dataframe.verbs import Verbs
    from gquery.api.relation import Relation


def describe(relation: Verbs) -> Relation:
    """What `Relation.describe` gives."""
    import pyarrow as pa

    query = relation.bound_query()
    wanted = {}
    for i, (name, column) in enumerate(zip(query.names, query.outputs, strict=True)):
        c = col(name)
        wanted[f"values{i}"] = c.count()
        if column.dtype.is_opaque:
            continue
        wanted[f"distinct{i}"] = c.count(distinct=True)
        has_zone = column.dtype.kind is Kind.TIMESTAMPTZ  # its text is one of its zone, which Arrow knows
        wanted[f"min{i}"] = c.min() if has_zone else c.min().cast("VARCHAR")
        wanted[f"max{i}"] = c.max() if has_zone else c.max().cast("VARCHAR")
        if column.dtype.is_numeric:
            wanted[f"mean{i}"] = c.avg()
    row = relation.agg(rows=fn.count(), **wanted).to_arrow_table().to_pylist()[0]
    places = range(len(query.names))
    table = pa.table(
        {
            "column_name": value_array(query.names, pa.string()),
            "column_type": [str(c.dtype) for c in query.outputs],
            "count": value_array([row[f"values{i}"] for i in places], pa.int64()),
            "nulls": value_array([row["rows"] - row[f"values{i}"] for i in places], pa.int64()),
            "distinct": value_array([row.get(f"distinct{i}") for i in places], pa.int64()),
            "min": value_array([_text(row.get(f"min{i}")) for i in places], pa.string()),
            "max": value_array([_text(row.get(f"max{i}")) for i in places], pa.string()),
            "mean": value_array([row.get(f"mean{i}") for i in places], pa.float64()),
        }
    )
    return relation._connection.from_data(table)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
