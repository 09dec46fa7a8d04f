"""A worker of a cluster: files that it has opened, columns in the form that all agree on, programs, and ranks between fragments.

What stands here belongs to a *session*, that of one connection, and goes with it. None of it is needed to compute a fragment
again: another worker opens the files, brings the columns into their form and begins the rank anew.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol
from weakref import WeakValueDictionary

from gquery import tuning
from gquery.cluster.engine import Engine, be_like, works_otherwise
from gquery.cluster.fragments import RankThread
from gquery.cluster.moving import Packed, packed, unpacked
from gquery.cluster.rank_tables import OpenedTables, described
from gquery.cluster.sorted_rows import SortedRows, UnsortedError, ValueCut
from gquery.cluster.tables import FileTable, SentTable, Tables
from gquery.columns.table import Table
from gquery.device.device import cpu_device
from gquery.distributed.cuts import TableCut
from gquery.distributed.localize import localized
from gquery.distributed.stage_placement import Placement
from gquery.distributed.transport import Comm
from gquery.errors import OperationalError
from gquery.execution.feedback import RunFeedback
from gquery.execution.measure import Meter
from gquery.execution.ranked import run_rank_stages
from gquery.execution.speculation import Speculation
from gquery.execution.state import ExecutionContext, Rank, Run, StageReport
from gquery.expression.frozen import frozen_open
from gquery.planner.physical import Program
from gquery.runtime import interrupt
from gquery.runtime.forking import free_in_child
from gquery.runtime.recent import Recent
from gquery.runtime.tuples import NamedTuple
from gquery.settings import Settings


@frozen_open
class PackedProgram:
    """A program as ranks run it, packed but for its tables: those are files, or in memory."""

    key: str
    size: int
    program: Packed  # with its placement
    tables: Packed  # of files, by key
    engine: Engine


class Share(NamedTuple):
    """The part of a session in a worker: its key, the threads, and what all must have alike."""

    session: str
    threads: int
    engine: Engine


class Request(NamedTuple):
    """What a fragment is for: a run of a session, one rank of it, and what is measured; ``has_run``: so has its plan before."""

    session: str
    run: str
    rank: int
    target: str
    settings: Settings
    meters: bool
    counts: bool
    has_run: bool = False


class RanToEnd(NamedTuple):
    """What a rank has made when its stages have run: the first rank the result; and whether it ``went_through`` all exchanges
    itself, so that no other attempt at it was begun."""

    table: Table | None
    reports: list[StageReport]
    meter: Meter | None
    exchanges: int
    went_through: bool


class Session:
    """What a worker keeps of a connection."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.lock = threading.Lock()  # of ``ranks``: event loops take it
        self.making = interrupt.Lock()  # of programs, which ask the event loop for tables
        self.tables = OpenedTables()
        self.programs: Recent[tuple[str, int], _RankProgram] = Recent(tuning.memory.plans)
        self.memory: WeakValueDictionary[str, SentTable] = WeakValueDictionary()
        self.ranks: dict[tuple[str, int], RankThread] = {}


_sessions: dict[str, Session] = {}
_closed: Recent[str, bool] = Recent(tuning.cluster.remembered_sessions)
_lock = free_in_child(threading.Lock())


def known_session(key: str) -> Session | None:
    """What this worker has of a connection, if it has served it."""
    with _lock:
        return _sessions.get(key)


def session_of(key: str, engine: Engine) -> Session:
    """What is kept of a connection, whose numbers the process works by from here on. OperationalError where that would change
    those of another connection, where the connection has other versions, or has closed."""
    with _lock:
        if key in _closed:
            raise OperationalError("The connection to the cluster has closed")
        if any(works_otherwise(other.engine, engine) for k, other in _sessions.items() if k != key):
            raise OperationalError(
                "A worker of the cluster serves another connection, which works by other numbers of gquery.tuning: "
                "close that one first, or start the worker anew"
            )
        be_like(engine)
        found = _sessions.setdefault(key, Session(engine))
        found.engine = engine
        return found


def forget_session(key: str) -> None:
    """Forget all of a connection, and end its ranks in fragments; it has no session any more."""
    with _lock:
        _closed[key] = True
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


def describe(share: Share, table: FileTable, fields: Sequence[int], rows: tuple[int, int] | None) -> Packed:
    """What columns are like in the rows from one to another, or in all of them; a task of a first use."""
    tables = _asked(share)
    low, high = rows or (0, tables.opened(table).rows)
    return packed([described(c) for c in tables.rank_table(table, low, high).own(list(fields))])


def value_cut(share: Share, table: FileTable, field: int, ranks: int) -> ValueCut | None:
    """The rows of a table cut evenly between values of a field; None where it is not sorted. A task."""
    try:
        return SortedRows(_asked(share).opened(table), field).cut(ranks)
    except UnsortedError:
        return None


def rows_below(share: Share, table: FileTable, field: int, bounds: Sequence[int]) -> tuple[int, ...] | None:
    """How many rows of a field are below each of these values; None where it is not sorted. A task."""
    try:
        return SortedRows(_asked(share).opened(table), field).below(bounds)
    except UnsortedError:
        return None


def _asked(share: Share) -> OpenedTables:
    tables = session_of(share.session, share.engine).tables
    tables.cache.workers = share.threads
    return tables


# ---- ranks ------------------------------------------------------------------------------------------------------


class _RankProgram(NamedTuple):
    """A program over this rank's tables, and what its runs leave."""

    program: Program
    placement: Placement
    cuts: dict[int, TableCut]
    feedback: RunFeedback


class RankComm(Comm, Protocol):
    """A `Comm` that counts its exchanges; at ``handed_over`` of them it has handed something over itself."""

    @property
    def exchanges(self) -> int: ...

    @property
    def handed_over(self) -> int: ...


def run_rank(
    session: Session, request: Request, key: str, plan: Callable[[], tuple[PackedProgram, Mapping[str, Packed]]], comm: RankComm
) -> RanToEnd:
    """Run all stages of a rank. ``plan`` gives the plan of that key with the tables in memory that it reads; it is asked where
    the session does not have its program."""
    with session.making:
        own = session.programs.get((key, comm.rank))
        if own is None:
            own = session.programs[key, comm.rank] = _rank_program(session, *plan(), comm)
    device = cpu_device()
    meter = Meter(device, request.counts) if request.meters else None
    context = ExecutionContext(request.target, device, request.settings, meter)
    rank = Rank(comm, own.placement, own.cuts, limits=tuning.worker_distribution)
    state = Run(own.program, context, own.feedback, Speculation(own.feedback, device, True), rank=rank)
    table = run_rank_stages(state, rank, request.has_run)
    state.speculation.validate_all()
    return RanToEnd(table, state.reports, meter, comm.exchanges, comm.handed_over == comm.exchanges)


def _rank_program(session: Session, plan: PackedProgram, memory: Mapping[str, Packed], comm: Comm) -> _RankProgram:
    tables: Tables = unpacked(plan.tables)
    made: dict[str, object] = {}
    cuts: dict[int, TableCut] = {}
    for k, data in memory.items():
        sent = session.memory.get(k)
        if sent is None:
            sent = session.memory[k] = unpacked(data)
        made[k] = sent
    for k, (file_table, agreed, starts, is_read_whole) in tables.items():
        if not starts or is_read_whole:
            low, high = 0, session.tables.opened(file_table).rows
        else:
            low, high = starts[comm.rank], starts[comm.rank + 1]
        made[k] = found = session.tables.rank_table(file_table, low, high)
        found.agreed |= agreed
        if starts and not is_read_whole:  # it has no rows but its own
            starts = (0,) * (comm.rank + 1) + (found.rows,) * (plan.size - comm.rank)
        if starts:
            cuts[id(found)] = TableCut(starts)
    program, placement = unpacked(plan.program, made.__getitem__)
    program = localized(program, placement, comm.rank)
    return _RankProgram(program, placement, cuts, RunFeedback())
