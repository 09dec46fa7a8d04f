"""Rows that GPUs write to each other's memory: an exchange by hash without a copy of what is to be sent.

    count   ---how many rows for each--->  all       room   ---its address--->  all       write

Each rank knows from the counts of all where its rows begin in what every other one gets, which has room for them before they
come. So a row is read once and written once, where it stays. Rows that are text, or whose columns ranks hold differently,
are partitioned and copied (`execution.hashed_rows`); all ranks see the same, and so decide alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from gquery.columns.opaque import Opaque
from gquery.columns.table import ColumnData
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.device.peer import has_peer_access
from gquery.distributed.column_pieces import statistics_together
from gquery.execution.exchange import handed_over
from gquery.execution.state import Rank, Run
from gquery.kernels.readback import read_scalar
from gquery.operators.base import Frame
from gquery.operators.partition_rows import HashPartitioning, rows_between
from gquery.operators.scatter_rows import Space, label_rows_of, scatter, space_for
from gquery.planner.physical import Stored
from gquery.runtime.records import dataclass, replace


@dataclass(frozen=True, eq=False)
class _Outline:
    """What ranks tell each other of their rows before anything moves; of the columns nobody looks at the values."""

    device: Device
    columns: Mapping[int, ColumnData]
    has_ranks: bool  # of values


def sent_directly(
    state: Run, rank: Rank, frame: Frame, how: HashPartitioning, stored: Sequence[Stored], what: str
) -> Frame | None:
    """The rows of all ranks that belong to this one, in rank order, with the columns that are ``stored``; None where they do not
    go this way. All ranks call it."""
    device, comm = state.context.device, rank.comm
    if not may_write(device):
        return None
    if frame.number is not None:
        frame = rows_between(frame, 0, read_scalar(frame.number))
    outlines = comm.all_gather(f"columns of {what}", _Outline(device, frame.columns, bool(frame.rank_values)))
    if not _are_alike(outlines, stored):
        return None
    rows = label_rows_of(frame, how, device, what)
    counts = comm.all_gather(f"counts of {what}", rows.counts)
    total = sum(c[comm.rank] for c in counts)
    with device.activate():
        own = {i: space_for(c, total, device, what) for i, c in frame.columns.items()}
    spaces = handed_over(state, rank, f"room for {what}", own)
    rank.written_to = tuple(spaces)  # it is no one else's before this rank's launch has ended, whatever fails
    scatter(rows, spaces, [sum(c[n] for c in counts[: comm.rank]) for n in range(comm.size)], device)
    handed_over(state, rank, what, None)
    rank.written_to = ()
    planned = {s.column.id: s for s in stored}
    columns = {i: _column(own[i], [o.columns[i] for o in outlines], total, planned[i], device) for i in frame.columns}
    others = total - counts[comm.rank][comm.rank]
    rank.received_bytes += sum(c.nbytes for c in columns.values()) * others // max(total, 1)
    return Frame(columns, total)


def may_write(device: Device) -> bool:
    """Whether a rank's kernels may write to memory of others; it is the same for all ranks of a run."""
    return device.is_cuda


def reach_each_other(devices: Sequence[Device]) -> bool:
    """Whether each GPU's memory is in reach of all others."""
    return len(set(devices)) == len(devices) and all(has_peer_access(a, b) for a, b in combinations(devices, 2))


def _are_alike(outlines: Sequence[_Outline], stored: Sequence[Stored]) -> bool:
    """Whether ranks hold each column as it is planned, in numbers, and of the same dictionary."""
    planned = {s.column.id: s for s in stored}
    if any(o.has_ranks or o.columns.keys() != planned.keys() for o in outlines):
        return False
    if not reach_each_other([o.device for o in outlines]):
        return False
    return all(_is_held(planned[i], [o.columns[i] for o in outlines]) for i in planned)


def _is_held(planned: Stored, pieces: Sequence[ColumnData]) -> bool:
    first, known = pieces[0], planned.properties
    return (
        not first.physical_type.is_string
        and not isinstance(first.dictionary, Opaque)
        and first.dictionary is known.dictionary
        and all(p.dictionary is first.dictionary for p in pieces)
        and all(p.physical_type is planned.physical_type for p in pieces)
        and all((p.validity is not None) is known.nullable for p in pieces)
    )


def _column(space: Space, pieces: Iterable[ColumnData], rows: int, planned: Stored, device: Device) -> ColumnData:
    """The column that ranks have written; what is known of all rows of a rank holds of those that came from it."""
    some = [replace(p, statistics=p.statistics.of_some_rows()) for p in pieces]
    validity = None if space.validity is None else Buffer(space.validity, device)
    return ColumnData(
        planned.properties.dtype,
        planned.physical_type,
        rows,
        Buffer(space.data, device),
        validity,
        None,
        some[0].dictionary,
        statistics_together(some, planned.properties.bounds),
    )
