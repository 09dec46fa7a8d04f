"""What is read of a table by row number once the stages of a program have run; see `planner.late_fetch`."""

from __future__ import annotations

import numpy as np

from gquery.columns.table import Table
from gquery.device.device import cpu_device
from gquery.expression.types import Field, Schema
from gquery.kernels.builtin.gathers import take
from gquery.planner.late_fetch import LateFetch
from gquery.runtime.interrupt import check


def with_fetched(fetch: LateFetch, table: Table) -> Table:
    """The result: columns of ``table``, whose last one is the numbers of its rows, and those that are fetched."""
    check()
    numbers = table.columns[-1].data.host[: table.rows]
    found = fetch.source.fetch(fetch.fields, numbers)
    loaded = [f for f in fetch.fields if f not in found]  # meanwhile, by other queries
    whole = fetch.source.load(loaded).columns
    found |= {f: take(column, numbers.astype(np.int64), cpu_device()) for f, column in zip(loaded, whole, strict=True)}
    columns = [found[fetch.fields[o.place]] if o.is_fetched else table.columns[o.place] for o in fetch.outputs]
    fields = [
        Field(o.name, o.dtype, o.nullable if o.is_fetched else table.schema.fields[o.place].nullable)
        for o in fetch.outputs
    ]
    return Table(Schema(tuple(fields)), tuple(columns), table.rows)
