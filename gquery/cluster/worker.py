"""A worker of a cluster: files that it has opened, columns in the form that all agree on, programs, and ranks between fragments.

What stands here belongs to a *session*, that of one connection, and goes with it. None of it is needed to compute a fragment
again: another worker opens the files, brings the columns into their form and begins the rank anew.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa

from gquery import tuning
from gquery.cluster.engine import Engine, be_like, works_otherwise
from gquery.cluster.fragments import Ended, FragmentComm, Outcome, RankThread, Received
from gquery.cluster.moving import Packed, packed, unpacked
from gquery.cluster.tables import Agreed, Described, FileTable, SentTable, Tables
from gquery.columns.table import ColumnData, ColumnStatistics, Dictionary, Table
from gquery.device.buffer import Buffer
from gquery.device.device import cpu_device
from gquery.distributed.column_pieces import one_column, recoded
from gquery.distributed.cuts import TableCut
from gquery.distributed.localize import localized
from gquery.distributed.stage_placement import Placement
from gquery.errors import FileError, OperationalError
from gquery.execution.feedback import RunFeedback
from gquery.execution.measure import Meter
from gquery.execution.ranked import run_rank_stages
from gquery.execution.speculation import Speculation
from gquery.execution.state import ExecutionContext, Rank, Run, StageReport
from gquery.expression.expr import new_column
from gquery.expression.frozen import frozen_open
from gquery.expression.types import Bounds, Field, PhysicalType, Schema
from gquery.io.column_cache import ColumnCache
from gquery.io.parquet import ParquetPart, ParquetSource
from gquery.io.parquet_files import RowGroup
from gquery.kernels.values import ValueProperties
from gquery.planner.physical import Program, Stored
from gquery.runtime.arrow_compute import cast, pc, take
from gquery.runtime.recent import Recent
from gquery.settings import Settings


@frozen_open
class Plan:
    """A program as ranks run it, packed but for its tables: those are files, or in memory."""

    key: str
    size: int
    program: Packed  # with its placement
    tables: Packed  # of files, by key; and the keys of those that a stage reads as a whole on every rank
    engine: Engine


class Share(NamedTuple):
    """The part of a session in a worker: its key, the threads, and what all must have alike."""

    session: str
    threads: int
    engine: Engine


class Request(NamedTuple):
    """What a fragment is for: a run of a session, one rank of it, and what is measured."""

    session: str
    run: str
    rank: int
    target: str
    settings: Settings
    meters: bool
    counts: bool


class RanToEnd(NamedTuple):
    """What a rank has made when its stages have run: the first rank the result; and whether it ``went_through`` all exchanges
    itself, so that no other attempt at it was begun."""

    table: Table | None
    reports: list[StageReport]
    meter: Meter | None
    exchanges: int
    went_through: bool


class _Session:
    """What a worker keeps of a connection."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.lock = threading.RLock()
        self.cache = ColumnCache(None, cpu_device())
        self.sources: dict[str, ParquetSource] = {}
        self.parts: dict[tuple[str, tuple[RowGroup, ...]], ParquetPart] = {}
        self.tables: dict[tuple[str, int, int], RankTable] = {}
        self.programs: Recent[tuple[str, int], _RankProgram] = Recent(tuning.memory.plans)
        self.memory: WeakValueDictionary[str, SentTable] = WeakValueDictionary()
        self.ranks: dict[tuple[str, int], RankThread] = {}


_sessions: dict[str, _Session] = {}
_lock = threading.Lock()


def session_of(key: str, engine: Engine) -> _Session:
    """What is kept of a connection, whose numbers the process works by from here on. OperationalError where that would change
    those of another connection, or where the connection has other versions."""
    with _lock:
        if any(works_otherwise(other.engine, engine) for k, other in _sessions.items() if k != key):
            raise OperationalError(
                "A worker of the cluster serves another connection, which works by other numbers of gquery.tuning: "
                "close that one first, or start the worker anew"
            )
        be_like(engine)
        found = _sessions.setdefault(key, _Session(engine))
        found.engine = engine
        return found


def end_session(key: str) -> None:
    """Forget all of a connection."""
    with _lock:
        found = _sessions.pop(key, None)
    if found is not None:
        with found.lock:
            ended = list(found.ranks.values())
        for rank in ended:
            rank.stop()


def end_run(key: str, run: str) -> None:
    """Stop the ranks of a run."""
    with _lock:
        found = _sessions.get(key)
    if found is not None:
        with found.lock:
            ended = [found.ranks.pop(at) for at in list(found.ranks) if at[0] == run]
        for rank in ended:
            rank.stop()


# ---- tables ---------------------------------------------------------------------------------------------------------


class RankTable:
    """The rows of a rank of a table of files, or all of them, as a `TableSource`."""

    def __init__(self, session: _Session, table: FileTable, low: int, high: int) -> None:
        self._session, self._table = session, table
        self._low, self.rows = low, high - low
        self._lock = threading.RLock()
        self._columns: dict[int, ColumnData] = {}
        self.agreed: dict[int, Agreed] = {}
        self.source = _opened(session, table)
        self.name, self.schema, self.version = self.source.name, self.source.schema, 0

    def statistics(self, field: int) -> ColumnStatistics:
        """See `TableSource`."""
        return self.agreed[field].statistics

    def has_nulls(self, field: int) -> bool:
        """See `TableSource`."""
        return self.agreed[field].nullable

    def is_unique(self, field: int) -> bool:
        """See `TableSource`."""
        return self.agreed[field].statistics.is_unique

    def load(self, fields: Sequence[int]) -> Table:
        """The columns in the form that all ranks have them in."""
        with self._lock:
            missing = [f for f in fields if f not in self._columns]
            for f, column in zip(missing, self.own(missing), strict=True):
                self._columns[f] = _in_form(column, self.schema.fields[f], self.agreed[f])
            columns = tuple([self._columns[f] for f in fields])
        return Table(Schema(tuple([self.schema.fields[f] for f in fields])), columns, self.rows)

    def own(self, fields: Sequence[int]) -> list[ColumnData]:
        """The columns as this worker reads them."""
        if not fields:
            return []
        groups, first = _holding(self.source, self._low, self._low + self.rows)
        part: ParquetSource | ParquetPart = self.source
        if len(groups) < self.source.row_groups[1]:
            with self._session.lock:
                key = (self._table.key, groups)
                part = self._session.parts.setdefault(key, ParquetPart(self.source, groups))
        low = self._low - first
        return [
            c if (low, low + self.rows) == (0, c.length) else c.slice(low, low + self.rows)
            for c in part.load(fields).columns
        ]


def _holding(source: ParquetSource, low: int, high: int) -> tuple[tuple[RowGroup, ...], int]:
    """The row groups that have these rows, and the number of their first row."""
    found: list[RowGroup] = []
    at, first = 0, low
    for group in source.all_groups:
        if at < high and at + group.rows > low:
            first = first if found else at
            found.append(group)
        at += group.rows
    return tuple(found), first


def _opened(session: _Session, table: FileTable) -> ParquetSource:
    with session.lock:
        source = session.sources.get(table.key)
        if source is None:
            asked = table.asked
            source = ParquetSource(
                asked.paths, session.cache, table.narrow, hive=asked.hive, filename=asked.filename,
                filesystem=asked.filesystem,
            )  # fmt: skip
            if source.files != table.files:
                raise FileError(
                    f"The files of {source.name} are not the same on the worker as on the connection's machine"
                )
            session.sources[table.key] = source
        return source


def rank_table(session: _Session, table: FileTable, low: int, high: int) -> RankTable:
    """A rank's rows of a table."""
    with session.lock:
        found = session.tables.get((table.key, low, high))
        if found is None:
            found = session.tables[table.key, low, high] = RankTable(session, table, low, high)
        return found


def describe(share: Share, table: FileTable, fields: Sequence[int], rank: int) -> Packed:
    """What columns of a rank's rows are like; a task of a first use."""
    session = session_of(share.session, share.engine)
    session.cache.workers = share.threads
    rows = _opened(session, table).rows
    low, high = (table.starts[rank], table.starts[rank + 1]) if table.starts else (0, rows)
    return packed([_described(c) for c in rank_table(session, table, low, high).own(list(fields))])


def _described(column: ColumnData) -> Described:
    known = column.statistics
    dictionary = column.dictionary if isinstance(column.dictionary, Dictionary) else None
    nulls = 0 if column.validity is None else column.length - int(np.count_nonzero(column.validity.host))
    ends = None
    if known.is_sorted and dictionary is None and column.length and column.physical_type in _INTEGERS:
        values = column.data.host
        ends = int(values[0]), int(values[-1])
    known = replace(known, null_count=nulls, zones=None)
    return Described(column.physical_type, column.length, nulls > 0, known, dictionary, ends)


_INTEGERS = frozenset({PhysicalType.I8, PhysicalType.I16, PhysicalType.I32, PhysicalType.I64, PhysicalType.U8,
                       PhysicalType.U16, PhysicalType.U32})  # fmt: skip


def _in_form(column: ColumnData, field: Field, form: Agreed) -> ColumnData:
    """A column in the form that all have agreed on."""
    device = cpu_device()
    own = column.dictionary
    if form.dictionary is not None:
        if isinstance(own, Dictionary) and own.digest != form.dictionary.digest:
            table = pc.index_in(cast(own.values, pa.large_string()), cast(form.dictionary.values, pa.large_string()))
            codes = np.asarray(table.to_numpy(zero_copy_only=False), np.int64)
            column = recoded(column, codes, Bounds(0, len(form.dictionary) - 1), device)
        column = replace(column, dictionary=form.dictionary)
    elif isinstance(own, Dictionary):
        column = _as_text(column, own)
    properties = ValueProperties(form.dtype, form.statistics.bounds, form.nullable, form.dictionary)
    planned = Stored(new_column(field.name, form.dtype, form.nullable), properties, form.physical_type)
    if column.physical_type is form.physical_type and (column.validity is not None) is form.nullable:
        made = column
    else:
        made = one_column([column], planned, device)
    known = replace(form.statistics.of_some_rows(), zones=column.statistics.zones if column is made else None)
    return replace(made, statistics=known)


def _as_text(column: ColumnData, dictionary: Dictionary) -> ColumnData:
    """Codes as the text that they stand for."""
    codes = column.data.host.astype(np.int64)
    nulls = None if column.validity is None else column.validity.host == 0
    text = cast(take(dictionary.values, pa.array(codes, mask=nulls)), pa.large_string())
    text = text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text
    _, offsets, characters = text.buffers()
    made = np.frombuffer(offsets, np.int64)[: column.length + 1] if column.length else np.zeros(1, np.int64)
    bytes_ = np.frombuffer(characters, np.uint8) if characters is not None else np.empty(0, np.uint8)
    return replace(
        column, physical_type=PhysicalType.STRING64, data=Buffer(made.copy()), characters=Buffer(bytes_.copy()), dictionary=None
    )  # fmt: skip


# ---- fragments ------------------------------------------------------------------------------------------------------


class _RankProgram(NamedTuple):
    """A program over this rank's tables, and what its runs leave."""

    program: Program
    placement: Placement
    cuts: dict[int, TableCut]
    feedback: RunFeedback


def given(plan: Plan) -> Plan:
    """A plan, as what a task has made: it can be made again."""
    return plan


def fragment(request: Request, plan: Plan, memory: dict[str, Packed], received: Received) -> Outcome:
    """The next fragment of a rank: what it hands over, or what it has made. A task."""
    for handed in received[-1] if received else ():
        if isinstance(handed, Ended):
            return handed
    session = session_of(request.session, plan.engine)
    at = (request.run, request.rank)
    with session.lock:
        rank = session.ranks.get(at)
        if rank is not None and not rank.can_go_on(received):  # it is further: this fragment is made again
            rank.stop()
            rank = None
        if rank is None:
            rank = RankThread(request.rank, plan.size, lambda comm: _run(session, request, plan, memory, comm))
        session.ranks[at] = rank
    ended = True
    try:
        made = rank.advance(received)
        ended = isinstance(made, Ended)
        return made
    finally:
        with session.lock:
            if ended and session.ranks.get(at) is rank:
                del session.ranks[at]


def outcome(made: Sequence[Outcome]) -> list[Packed] | None:
    """What the ranks have made; None where they have not ended. A task."""
    return [m.made for m in made if isinstance(m, Ended)] if all(isinstance(m, Ended) for m in made) else None


def _run(session: _Session, request: Request, plan: Plan, memory: dict[str, Packed], comm: FragmentComm) -> RanToEnd:
    with session.lock:
        own = session.programs.get((plan.key, comm.rank))
        if own is None:
            own = session.programs[plan.key, comm.rank] = _rank_program(session, plan, memory, comm)
    device = cpu_device()
    meter = Meter(device, request.counts) if request.meters else None
    context = ExecutionContext(request.target, device, request.settings, meter)
    rank = Rank(comm, own.placement, own.cuts)
    state = Run(own.program, context, own.feedback, Speculation(own.feedback, device, True), rank=rank)
    table = run_rank_stages(state, rank)
    state.speculation.validate_all()
    return RanToEnd(table, state.reports, meter, comm.exchanges, comm.handed_over == comm.exchanges)


def _rank_program(session: _Session, plan: Plan, memory: dict[str, Packed], comm: FragmentComm) -> _RankProgram:
    tables: Tables
    tables, whole = unpacked(plan.tables)
    made: dict[str, object] = {}
    for k, data in memory.items():
        sent = session.memory.get(k)
        if sent is None:
            sent = session.memory[k] = unpacked(data)
        made[k] = sent
    for k, (file_table, agreed) in tables.items():
        starts = file_table.starts
        rows = starts[-1] if starts else _opened(session, file_table).rows
        low, high = (0, rows) if k in whole or not starts else (starts[comm.rank], starts[comm.rank + 1])
        made[k] = found = rank_table(session, file_table, low, high)
        found.agreed |= agreed
    program, placement = unpacked(plan.program, made.__getitem__)
    cuts = {}
    for k, (file_table, _) in tables.items():
        if file_table.starts:
            starts = file_table.starts
            if k not in whole:
                own = starts[comm.rank + 1] - starts[comm.rank]
                starts = (0,) * (comm.rank + 1) + (own,) * (plan.size - comm.rank)
            cuts[id(made[k])] = TableCut(starts)
    program = localized(program, placement, comm.rank)
    return _RankProgram(program, placement, cuts, RunFeedback())
