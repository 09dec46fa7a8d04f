"""The connection's side of a cluster: tables that workers read, programs that they run in fragments, and what comes back.

Dask schedules the fragments, moves what they hand over between workers, and computes those of a lost worker again. The
connection sends plans and gets descriptions of columns and results.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

from gquery import tuning
from gquery.cluster import direct, tasks, worker
from gquery.cluster.divisions import Divisions
from gquery.cluster.engine import this_engine
from gquery.cluster.link import Address, Link, LostError
from gquery.cluster.moving import packed, packed_program, unpacked
from gquery.cluster.orders import Orders
from gquery.cluster.sorted_rows import ValueCut
from gquery.cluster.tables import ClusterTable, Described, FileTable, Sent, SentTable, not_on_a_cluster
from gquery.columns.table import Table, TableSource
from gquery.distributed.cheapest_cuts import cheapest
from gquery.distributed.cuts import Cuts, cut_tables, located_by
from gquery.distributed.placement import place
from gquery.distributed.ranks import Ranks
from gquery.errors import NotSupportedError, OperationalError
from gquery.execution.feedback import RankedFeedback, RunFeedback
from gquery.execution.made_lists import makes_lists
from gquery.execution.ranked import all_divided, measure, reports_of
from gquery.execution.state import ExecutionContext, StageReport
from gquery.io.parquet import ParquetSource
from gquery.planner.physical import HostRows, Pipeline, Program, ReadTable, RecursiveRows
from gquery.runtime.recent import Recent
from gquery.runtime.threads import core_count


class Cluster:
    """Dask's workers as ranks. ``size`` is the number of ranks: the workers that there are when a connection is made."""

    def __init__(self, address: Address, workers: int | None) -> None:
        self._link = Link.to(address, workers)
        self.client = self._link.client
        self._orders = Orders(self._link)
        self.key = uuid.uuid4().hex
        self._plans: Recent[int, _Sent] = Recent(tuning.memory.plans)
        self._tables: WeakKeyDictionary[TableSource, str] = WeakKeyDictionary()
        self._files: Recent[ParquetSource, ClusterTable] = Recent(tuning.memory.files)
        self._workers = self._addresses()
        self._gone: set[str] = set()
        if not self._workers:
            self.close()
            raise OperationalError(f"The cluster at {address} has no worker")
        self.size = len(self._workers) if workers is None else workers
        self._threads = self._threads_a_worker()
        self._divisions = Divisions(self.size, self)

    def _addresses(self) -> list[str]:
        return sorted(self._link.workers())

    def _threads_a_worker(self) -> int:
        """Those that Dask gives a worker; of a cluster that was started here, the cores of this machine are shared."""
        if self._link.started is not None:
            return max(1, core_count() // self.size)
        return min(int(w["nthreads"]) for w in self._link.workers().values())

    def _look(self) -> None:
        """Put new workers in the places of those that are gone; the others keep their ranks, and with them their columns."""
        there = self._addresses()
        new = [w for w in there if w not in self._workers]
        self._workers = [w if w in there or not new else new.pop() for w in self._workers]
        self._gone = {w for w in self._workers if w not in there}

    def close(self) -> None:
        """Have the workers forget the connection; end those that it has started."""
        self._link.tried(lambda: self.client.run(direct.end_session, self.key, asynchronous=True))
        self._link.close()

    # ---- tables ----

    def table(self, source: TableSource) -> TableSource:
        """A table of files as workers read it; others as they are."""
        if not isinstance(source, ParquetSource):
            return source
        known = self._files.get(source)
        if known is None:
            known = self._files[source] = ClusterTable(source, self)
        return known

    def starts(self, table: ClusterTable) -> tuple[int, ...]:
        """The rows at which each rank begins, and their number."""
        return self._divisions.first_starts(table)

    def describe(self, table: FileTable, starts: Sequence[int], fields: Sequence[int]) -> list[Sequence[Described]]:
        """For each field what each rank says of its rows, which are all where there are no ``starts``."""
        rows = pairwise(starts) if starts else [None]
        asked = [self._asked(r, worker.describe, table, tuple(fields), low_high) for r, low_high in enumerate(rows)]
        return list(zip(*[unpacked(d) for d in self._results(asked)], strict=True))

    def value_cut(self, table: FileTable, field: int) -> ValueCut | None:
        """The rows of a table cut evenly between values of a field; see `Asks`."""
        found: list[ValueCut | None] = self._results([self._asked(0, worker.value_cut, table, field, self.size)])
        return found[0]

    def rows_below(self, table: FileTable, field: int, bounds: Sequence[int]) -> tuple[int, ...] | None:
        """How many rows of a field are below each of these values; see `Asks`."""
        found: list[tuple[int, ...] | None] = self._results(
            [self._asked(0, worker.rows_below, table, field, tuple(bounds))]
        )
        return found[0]

    def _asked(self, rank: int, function: Any, table: FileTable, *arguments: object) -> Any:
        """A question to a worker about a table."""
        share = worker.Share(self.key, self._threads, this_engine())
        return self._submit(rank, f"{function.__name__}-{uuid.uuid4().hex}", function, share, table, *arguments)

    # ---- runs ----

    def placed(self, program: Program, feedback: RunFeedback) -> RankedFeedback:
        """How the ranks run a program; found out once."""
        known = feedback.ranked
        if known is not None and known.program is program:
            return known
        if makes_lists(program):
            raise NotSupportedError("A cluster runs no query yet that makes lists")
        if any(isinstance(stage.work, RecursiveRows) for stage in program.stages):
            raise NotSupportedError("A cluster runs no recursive query yet")
        cuts = self._cuts(program)
        placement = place(program, lambda read: located_by(cuts, read), self._ranks)
        made = feedback.ranked = RankedFeedback(program, (), cuts, placement, ())
        return made

    def for_ranks(self, program: Program) -> Program:
        """The program with large joins and many groups divided among the ranks. Its tables are loaded."""
        return all_divided(program, self._ranks, self._cuts(program))

    def _cuts(self, program: Program) -> Cuts:
        """Where its tables are cut. Small ones that are joined with a large one are, by sorted columns, if that is cheaper."""
        limits = tuning.cluster

        def cut(joined_bytes: int | None, by_groups: bool) -> Cuts:
            return cut_tables(program, self._divisions, limits.whole_bytes, 0, joined_bytes, by_groups)

        return cheapest(program, self._ranks, cut, limits.joined_bytes)

    @property
    def _ranks(self) -> Ranks:
        return Ranks.of_workers(self.size, self._threads)

    def run(
        self, program: Program, context: ExecutionContext, feedback: RunFeedback
    ) -> tuple[Table, list[StageReport]]:
        """The result of a program, and what its stages did. What is lost with all workers that had it is sent once more."""
        if context.settings.memory_limit is not None:
            raise NotSupportedError("A cluster keeps no memory_limit yet: SET memory_limit = NULL")
        placed = self.placed(program, feedback)
        try:
            return self._run(placed, context)
        except LostError:
            self._plans[id(placed)] = self._sent(placed)
        try:
            return self._run(placed, context)
        except LostError as error:
            raise OperationalError(f"The cluster has lost what it was sent: {error}") from None

    def _run(self, placed: RankedFeedback, context: ExecutionContext) -> tuple[Table, list[StageReport]]:
        sent = self._plans.get(id(placed))
        if sent is None or sent.placed is not placed:
            sent = self._plans[id(placed)] = self._sent(placed)
        meter = context.meter
        settings = replace(context.settings, threads=context.settings.threads or self._threads)
        asked = [
            worker.Request(self.key, "", r, context.target, settings, meter is not None, context.counts)
            for r in range(self.size)
        ]
        ran = self._run_directly(sent, asked) or self._run_in_fragments(sent, asked)
        if meter is not None:
            measure(meter, [r.meter for r in ran if r.meter is not None], placed.placement)
        table = ran[0].table
        assert table is not None
        return table, reports_of([r.reports for r in ran], placed.placement)

    def _run_directly(self, sent: _Sent, asked: Sequence[worker.Request]) -> list[worker.RanToEnd] | None:
        """What ranks make that meet; None where one of them was not reached, or is lost."""
        if self._gone:
            self._look()
        places = self._places()
        for plan in (sent.plan,) if sent.known_by.isdisjoint(places) else (None, sent.plan):
            run = uuid.uuid4().hex
            ended = False
            try:
                ran = self._ordered(sent, [r._replace(run=run, has_run=plan is None) for r in asked], places, plan)
                errors = [r.error for r in ran if r.error is not None]
                if errors:
                    raise errors[0]
                made = [unpacked(r.made) for r in ran if r.made is not None]
                ended = len(made) == len(ran)
            except LostError:
                return None
            finally:
                if not ended:
                    self._end_ranks(run)
            if ended:
                sent.known_by.update(places)
                sent.exchanges = made[0].exchanges
                return made
            if not any(r.needs_plan for r in ran):
                return None
        return None

    def _places(self) -> tuple[str, ...]:
        """The workers of the ranks; those of lost ones, for which no others have come, are among the rest."""
        there = [w for w in self._workers if w not in self._gone] or self._workers
        own = [self._workers[r % len(self._workers)] for r in range(self.size)]
        return tuple([w if w in there else there[r % len(there)] for r, w in enumerate(own)])

    def _ordered(
        self, sent: _Sent, asked: Sequence[worker.Request], places: tuple[str, ...], plan: worker.PackedProgram | None
    ) -> list[direct.Ran]:
        """What became of each rank. LostError where a worker is gone."""
        memory = {k: f.key for k, f in sent.memory.items()}
        order = direct.Order(tuple(asked), places, sent.plan.key, plan, memory)
        workers = list(dict.fromkeys(places))
        near = self._orders.ran_near(order, workers)
        if near is not None:
            return [near[r] for r in range(self.size)]
        ran: dict[int, direct.Ran] = {}
        for answer in self._link.waited(self._orders.ran(order, workers), workers):
            if isinstance(answer, OSError):  # of Dask's: the way to the worker, or the worker, is gone
                raise LostError(str(answer))
            if isinstance(answer, BaseException):
                raise answer
            ran |= answer
        return [ran[r] for r in range(self.size)]

    def _run_in_fragments(self, sent: _Sent, asked: Sequence[worker.Request]) -> list[worker.RanToEnd]:
        """What ranks make in fragments, of which Dask computes again those of a lost worker."""
        run, futures = uuid.uuid4().hex, list[list[Any]]()
        self._look()
        sent.given = sent.given or self._submit(0, f"plan-{sent.plan.key}", tasks.given, sent.plan)
        try:
            made = None
            while made is None:
                first = len(futures)
                more = sent.exchanges + 1 - first if first <= sent.exchanges else tuning.cluster.more_fragments
                for step in range(first, first + more):
                    futures.append([
                        self._submit(
                            request.rank, f"{run}-{step}-{request.rank}", tasks.fragment,
                            request._replace(run=run), sent.given, sent.memory, list(futures),
                        )
                        for request in asked
                    ])  # fmt: skip
                last = self._submit(0, f"{run}-{len(futures)}-made", tasks.outcome, futures[-1])
                (made,) = self._results([last])
            ran: list[worker.RanToEnd] = [unpacked(m) for m in made]
        except BaseException:
            self._end(run, [f for step in futures for f in step])
            raise
        sent.exchanges = ran[0].exchanges
        if not all(r.went_through for r in ran):  # it began anew: elsewhere it waits for what does not come
            self._end_ranks(run)
        return ran

    def _sent(self, placed: RankedFeedback) -> _Sent:
        """A program on its way, packed once."""
        keys: dict[int, str] = {}
        tables: dict[str, Sent] = {}
        memory: dict[str, Any] = {}
        whole = {
            id(source.source)
            for stage, at in zip(placed.program.stages, placed.placement, strict=True)
            if at.reads == "whole" and isinstance(source := getattr(stage.work, "source", None), ReadTable)
        }
        for source in _sources(placed.program):
            if isinstance(source, ClusterTable):
                keys[id(source)] = key = source.file_table.key
                cut = placed.cuts.get(id(source))
                starts = () if cut is None else cut.starts
                tables[key] = Sent(source.file_table, source.agreed, starts, id(source) in whole)
            else:
                keys[id(source)] = key = self._key_of(source)
                memory[key] = source
        program = packed_program((placed.program, placed.placement), keys)
        plan = worker.PackedProgram(uuid.uuid4().hex, self.size, program, packed_program(tables, {}), this_engine())
        fields = _fields(placed.program)
        scattered = {k: self._scattered(s, fields[id(s)]) for k, s in memory.items()}
        return _Sent(placed, plan, scattered)

    def _key_of(self, source: TableSource) -> str:
        known = self._tables.get(source)
        if known is None:
            known = self._tables[source] = uuid.uuid4().hex
        return f"{known}-{source.version}"

    def _scattered(self, source: TableSource, fields: Sequence[int]) -> Any:
        """A table in memory on all workers: the columns that a program reads."""
        for f in fields:
            if source.schema.fields[f].dtype.is_opaque:
                raise not_on_a_cluster(source.name, source.schema.fields[f])
        columns = dict(zip(fields, source.load(fields).columns, strict=True))
        table = SentTable(source.name, source.schema, source.rows, columns)
        made = [packed(table)]  # of a tuple itself Dask would send each part
        (sent,) = self._link.waited(self.client.scatter(made, broadcast=True, hash=False, asynchronous=True))
        return sent

    # ---- tasks ----

    def _submit(self, rank: int, key: str, function: Any, *arguments: object) -> Any:
        at = self._workers[rank % len(self._workers)]
        return self.client.submit(
            function, *arguments, key=f"gquery-{key}", workers=[at], allow_other_workers=True, pure=False
        )

    def _results(self, futures: Sequence[Any]) -> list[Any]:
        """What tasks have made; the error of the first that fails. OperationalError where no worker is left to run them."""
        from distributed import KilledWorker

        try:
            return self._link.results(futures)
        except KilledWorker as error:
            raise OperationalError(
                f"Workers of the cluster have died again and again while they ran a part of the query: {error}"
            ) from None

    def _end(self, run: str, futures: Sequence[Any]) -> None:
        """Have the cluster forget a run that has failed or was interrupted."""
        self._link.tried(lambda: self.client.cancel(list(futures), asynchronous=True))
        self._end_ranks(run)

    def _end_ranks(self, run: str) -> None:
        """End the ranks of a run that still wait on some worker."""
        self._link.tried(lambda: self.client.run(direct.end, self.key, run, asynchronous=True))


class _Sent:
    """A program for the workers. ``known_by`` are those that have it. In fragments it goes as what a task was ``given``;
    ``exchanges`` is the number that its last run made, or is expected to make."""

    def __init__(self, placed: RankedFeedback, plan: worker.PackedProgram, memory: Mapping[str, Any]) -> None:
        self.placed, self.plan, self.memory = placed, plan, dict(memory)
        self.known_by: set[str] = set()
        self.given: Any = None
        steps = [len(p.gathers) + p.merges + (p.hashed is not None) for p in placed.placement]
        self.exchanges = 1 + sum(steps) + (placed.placement[-1].makes == "part")


def _reads(program: Program) -> list[ReadTable]:
    works = [s.work for s in program.stages]
    return [w.source for w in works if isinstance(w, Pipeline | HostRows) and isinstance(w.source, ReadTable)]


def _sources(program: Program) -> list[TableSource]:
    """The tables that a program reads, each once."""
    return list({id(r.source): r.source for r in _reads(program)}.values())


def _fields(program: Program) -> dict[int, list[int]]:
    """By the id of a table all fields that a program reads of it."""
    found: dict[int, set[int]] = {}
    for read in _reads(program):
        found.setdefault(id(read.source), set()).update(read.fields)
    return {k: sorted(f) for k, f in found.items()}
