"""Join tables of all rows of a table by its sorted key: the rows lie in the order of their slots as they stand.

No kernel enters them. Where the rows of each slot begin is found from neighbouring keys, without a slot for each row. A GPU does
so for keys of 32 bits, and counts others.
"""

from __future__ import annotations

from gquery.expression.types import PhysicalType
from gquery.kernels.targets.capabilities import capabilities
from gquery.planner.physical import Build, JoinTable, Pipeline, ReadTable

_INTEGERS = frozenset({PhysicalType.I8, PhysicalType.I16, PhysicalType.I32, PhysicalType.I64, PhysicalType.U8,
                       PhysicalType.U16, PhysicalType.U32})  # fmt: skip
_OF_GPUS = frozenset({PhysicalType.I32})


def has_no_kernel(pipeline: Pipeline, target: str) -> bool:
    """Whether a pipeline builds a table in which no kernel enters its rows: such a one, or all rows without slots."""
    if not isinstance(pipeline.sink, Build):
        return False
    return pipeline.sink.table.layout in ("one", "loop", "sorted") or _is_in_order(pipeline, pipeline.sink.table, target)


def _is_in_order(pipeline: Pipeline, table: JoinTable, target: str) -> bool:
    source = pipeline.source
    if not isinstance(source, ReadTable) or pipeline.steps or pipeline.host is not None:
        return False
    has_ranges = table.layout == "direct-address" and not table.unique and not table.exists
    if not has_ranges or len(table.keys) != 1 or table.filter is not None or table.sorted_by is not None:
        return False
    taken = _OF_GPUS if capabilities(target).has_own_memory else _INTEGERS
    for stored, field in zip(source.columns, source.fields, strict=True):
        if stored.column.id == table.keys[0].id:
            is_integer = stored.physical_type in taken and not stored.properties.nullable
            return is_integer and source.source.statistics(field).is_sorted
    return False
