"""What a stage reads: columns of tables, asked for once a run, and of frames that earlier stages made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from gquery.columns.table import ColumnData, TableSource
from gquery.execution.state import Run
from gquery.execution.verify_frame import verify_loaded
from gquery.kernels import checks
from gquery.operators.base import Frame
from gquery.planner.physical import ReadOne, ReadRange, ReadStage, ReadTable, Source


def read(state: Run, source: Source) -> Frame:
    """The rows of a source, with the ids that its columns have in the stage that reads them."""
    match source:
        case ReadTable(table, fields, columns):
            loaded = _loaded(state, table, fields)
            rows = loaded[fields[0]].length if fields else table.rows
            frame = Frame({s.column.id: loaded[f] for s, f in zip(columns, fields, strict=True)}, rows)
            if checks.ENABLED and not state.context.device.stays:
                verify_loaded(columns, frame, f"table {table.name}")
            return frame
        case ReadStage(number, columns, origins):
            frame = state.frames[number]
            found = {s.column.id: frame.columns[o] for s, o in zip(columns, origins, strict=True)}
            return Frame(found, frame.rows, number=frame.number)
        case ReadRange(rows=rows):
            return Frame({}, rows)
        case ReadOne():
            return Frame({}, 1)
        case _:
            assert_never(source)


def _loaded(state: Run, table: TableSource, fields: Sequence[int]) -> dict[int, ColumnData]:
    """Columns of a table by field: all that the program reads, asked for once a run."""
    found = state.tables.get(id(table))
    if found is None or any(f not in found for f in fields):
        wanted = state.dataflow.fields[id(table)]
        found = state.tables[id(table)] = dict(zip(wanted, table.load(wanted).columns, strict=True)) if wanted else {}
    return found
