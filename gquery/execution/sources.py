"""What a stage reads: columns of tables, asked for once a run, and of frames that earlier stages made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from gquery.columns.table import ColumnData, TableSource
from gquery.distributed.cuts import even
from gquery.distributed.stage_placement import Rows
from gquery.execution.state import Rank, Run
from gquery.execution.verify_frame import verify_loaded
from gquery.kernels import checks
from gquery.operators.base import Frame
from gquery.planner.physical import ReadOne, ReadRange, ReadStage, ReadTable, Source


def read(state: Run, source: Source, rows: Rows = "whole", by_hash: Frame | None = None) -> Frame:
    """The rows of a source, or the rank's part of them, with the ids that its columns have in the stage that reads them.
    ``by_hash`` is that part of the frame of a stage where ranks have exchanged its rows."""
    match source:
        case ReadTable(table, columns=columns):
            frame = _of_table(state, source, rows)
            if checks.ENABLED and not state.context.device.stays:
                verify_loaded(columns, frame, f"table {table.name}")
            return frame
        case ReadStage(number, columns, origins):
            if by_hash is not None:
                frame = by_hash
            else:
                frame = state.frames[number] if state.rank is None else rank_frame(state, state.rank, number, rows)
            found = {s.column.id: frame.columns[o] for s, o in zip(columns, origins, strict=True)}
            return Frame(found, frame.rows, number=frame.number)
        case ReadRange(rows=count):
            return Frame({}, count)
        case ReadOne():
            return Frame({}, 1)
        case _:
            assert_never(source)


def _of_table(state: Run, source: ReadTable, rows: Rows) -> Frame:
    table, fields = source.source, source.fields
    loaded = _loaded(state, table, fields)
    of_field = {s.column.id: loaded[f] for s, f in zip(source.columns, fields, strict=True)}
    if state.rank is None or rows == "whole":
        return Frame(of_field, loaded[fields[0]].length if fields else table.rows)
    from gquery.distributed.parts import part_of

    low, high = state.rank.cuts[id(table)].rows(state.rank.comm.rank)
    return Frame({i: part_of(c, low, high) for i, c in of_field.items()}, high - low)


def rank_frame(state: Run, rank: Rank, number: int, rows: Rows) -> Frame:
    """The frame that an earlier stage made, or the rank's part of it. Of one that all ranks have each takes a range of rows."""
    makes = rank.placement[number].makes
    if makes == "part" and rows == "whole":
        return rank.whole(number)
    frame = state.frames[number]
    if makes == rows:
        return frame
    at = even(frame.rows, rank.comm.size)
    low, high = at[rank.comm.rank], at[rank.comm.rank + 1]
    return Frame({i: c.slice(low, high) for i, c in frame.columns.items()}, high - low)


def _loaded(state: Run, table: TableSource, fields: Sequence[int]) -> dict[int, ColumnData]:
    """Columns of a table by field: all that the program reads, asked for once a run."""
    found = state.tables.get(id(table))
    if found is None or any(f not in found for f in fields):
        left = frozenset() if state.rank is None else state.rank.left
        wanted = state.dataflow.fields(left)[id(table)]
        found = state.tables[id(table)] = dict(zip(wanted, table.load(wanted).columns, strict=True)) if wanted else {}
    return found
