"""Connection: a catalog, settings and a device; SQL goes in here and Relations come out.

Everything that a query passes through is called from `Connection.sql` (parse, bind), `Connection._plan` (optimize) and
`Connection._program` (load, lower), all once a query text, and `Connection.run_plan` (execute). `api.plan_cache` keeps
plans to use again.

All of the engine is imported inside functions: ``import gquery`` loads none of it.
"""

from __future__ import annotations

import weakref
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, assert_never

from gquery import tuning
from gquery.api.dataframe.connect import Frames
from gquery.api.dbapi import Exceptions
from gquery.api.explain import Explains, explain_options
from gquery.api.plan_cache import Parameters, PlanCache, PreparedPlan
from gquery.api.prepared import PreparedTexts
from gquery.api.readers import Files, found_files
from gquery.api.startup import ClusterWorkers, Devices, Target, choose_devices, connected, limited, load_engine, wake
from gquery.api.templates import Question, Template, Templates
from gquery.api.transactions import Transactions
from gquery.errors import InterfaceError, PointingAt, ProgrammingError, unicode_text
from gquery.kernels.targets.capabilities import capabilities
from gquery.runtime import collector
from gquery.runtime.arguments import checked
from gquery.runtime.boundary import boundary
from gquery.runtime.interrupt import Lock, Running
from gquery.runtime.recent import Recent
from gquery.runtime.stopwatch import part
from gquery.settings import LIMITS, from_environment

if TYPE_CHECKING:
    from gquery.api.dbapi import Cursor
    from gquery.api.relation import Relation
    from gquery.cluster.client import Cluster
    from gquery.columns.table import TableSource
    from gquery.device.device import Device
    from gquery.execution import ExecutionContext
    from gquery.sql.noted import Noted
    from gquery.sql.statement import Statement


class Connection(Transactions, Frames, Files, Explains, Exceptions):
    """A session on one device. Use one a thread; `cursor` gives another over the same tables.

    ``device`` is "auto" (the first GPU, else the CPU), "cpu", "cuda", "cuda:1" or "python" (the interpreter alone).
    ``partitions`` splits every source by row ranges. ``threads`` and ``memory_limit`` (bytes, or text as "8GB") bound
    what it takes. ``devices`` runs each query on several devices, each with a part of the rows: a number of them, "all" GPUs, or
    GPUs by number, as ``[0, 1]``. Where ``device`` is the CPU, so many groups of its threads stand for them. DeviceError where a
    device is not there. ``cluster`` runs each query on workers of Dask, see `connect`.
    """

    def __init__(
        self,
        device: str = "auto",
        partitions: int | None = None,
        threads: int | None = None,
        memory_limit: int | str | None = None,
        devices: Devices = None,
        cluster: ClusterWorkers | None = None,
    ) -> None:
        settings = from_environment()
        given = {"partitions": partitions, "threads": threads, "memory_limit": memory_limit}
        try:
            for name, value in given.items():
                if value is not None:
                    settings = settings.with_option(name, value)
        except ProgrammingError as error:
            raise InterfaceError(str(error)) from None
        self.settings = settings
        with collector.paused():  # most of what the first connection imports stays
            self._begin(device, devices)
        if cluster is not None:
            self._cluster = connected(cluster, self.target, len(self._ranks))

    def _begin(self, device: str, devices: Devices) -> None:
        load_engine()
        self._cluster: Cluster | None = None
        self.target: Target
        self.target, self._ranks = choose_devices(device, devices, self.settings)
        self.device: Device = self._ranks[0]

        from gquery.api.inserted_rows import Inserts
        from gquery.columns.appended import Storage
        from gquery.functions.chance import Seeds
        from gquery.io.column_cache import ColumnCache
        from gquery.sql.catalog import Catalog

        self._cache = ColumnCache(self.settings.memory_limit, self.device, self.settings.worker_count, len(self._ranks))
        self.device.evict = self._cache.evict_bytes
        self._files: Recent[Any, TableSource] = Recent(tuning.memory.files)
        storage = Storage(self._unite, self._count_rows, self._values)
        self._plans = PlanCache()
        self._inserts = Inserts()
        self._creations = Recent(tuning.memory.creations)
        self._seeds = Seeds()
        self._templates = Templates()
        self._branches = weakref.WeakKeyDictionary()
        self._shared_catalog = Catalog(
            self._open_file, found_files, self._variable, self._check_function, self._answer, storage
        )
        self._shared_catalog.on_change = self._forget_plans
        self._prepared = PreparedTexts()
        self._files_lock = Lock()
        self._running = Running()
        self._closed = False
        self._made_context: ExecutionContext | None = None
        for one in self._ranks:
            wake(self.target, one)

    @property
    def device_name(self) -> str:
        """``python``, ``cpu`` or ``cuda:0``; of several devices all, as in ``cuda:0, cuda:1``."""
        is_interpreted = capabilities(self.target).is_interpreted
        return self.target if is_interpreted else ", ".join(d.name for d in self._ranks)

    # ---- SQL -------------------------------------------------------------------------------------------------------

    @boundary
    def sql(self, query: str, params: Parameters = None) -> Relation:
        """One or more statements; the last one's result. A SELECT is planned now, so that errors in the text are raised
        here, and runs when its rows are first asked for; other statements run now."""
        self._check_open()
        from gquery.api.relation import Relation, message

        unicode_text(query, "a statement")
        kept = self._plans.find(query, params, self.settings)
        if kept is not None and kept.is_current(self._catalog.version):
            return Relation(self, kept, query, params)
        for again in (self._append_again, self._create_again):
            if (count := again(query, params)) is not None:
                return message(self, {"Count": [count]})
        with part("plan"):
            question, found = self._from_template(query, params)
        if isinstance(found, PreparedPlan):
            self._plans.keep(query, params, self.settings, found)
            return Relation(self, found, query, params)
        with PointingAt(query), ExitStack() as planning:
            planning.enter_context(collector.paused())  # trees are gone when it ends, and plans stay
            return self._run_statements(query, params, question, found, planning)

    def _run_statements(
        self, query: str, params: Parameters, question: Question | None, reason: str, planning: ExitStack
    ) -> Relation:
        """What `sql` gives for a text that nothing kept serves, for this reason; ``planning`` is closed where one runs."""
        from gquery.sql.noted import noting
        from gquery.sql.parse import parse
        from gquery.sql.statement import SelectStatement

        with part("parse"):
            statements = parse(query, None if question is None else question.tokens)
        if not statements:
            raise ProgrammingError("There is no statement in the text")
        alone = len(statements) == 1
        with self._running.one(), part("plan"):
            for parsed in statements:
                scans, version = self._catalog.scans, self._catalog.version
                with noting() as noted:
                    statement, template = self._bind(parsed, params, question if alone else None, reason)
                parsed.release()
                is_kept = alone and self._catalog.scans == scans  # variables of the caller are another's tomorrow
                if not isinstance(statement, SelectStatement):
                    planning.close()
                result = self._statement(statement, query if is_kept else None, params, version, noted, template)
                self._read_variables(result)
        return result

    def execute(self, query: str, params: Parameters = None) -> Relation:
        """As `sql`, and the rows are made now, so that errors of the data are raised here."""
        made = self.sql(query, params)
        made.table()
        return made

    def _statement(
        self,
        statement: Statement,
        text: str | None,
        params: Parameters,
        version: int,
        noted: Noted,
        template: Template | None = None,
    ) -> Relation:
        """Runs a statement; a SELECT is planned only. ``text`` is the SQL of a statement that stands alone, ``version`` the
        catalog's from before it was bound, ``noted`` what its names meant: another thread may change a table meanwhile."""
        from gquery.api.relation import Relation, message
        from gquery.sql import statement as st

        match statement:
            case st.SelectStatement(query):
                prepared = self._plan(query, template=template)
                prepared.catalog_version = version
                if text is not None:
                    self._plans.keep(text, params, self.settings, prepared)
                    if template is not None:
                        self._templates.keep(template, prepared)
                relation = Relation(self, prepared, text, params)
                if query.drawn:  # now, as its numbers are those that come next
                    relation.table()
                return relation
            case st.CreateTable():
                return message(self, {"Count": [self._create(statement, text, params, noted)]})
            case st.ChangeTable():
                return self._told(self._change(statement))
            case st.AlterTable() | st.RenameTable() | st.Transaction() | st.DropTable() | st.DropView():
                self._altered(statement)
            case (
                st.CreateView() | st.CreateMacro() | st.DropMacro() | st.CreateSchema() | st.DropSchema() | st.UseSchema()
                | st.SetVariable() | st.CreateSequence() | st.DropSequence()
            ):  # fmt: skip
                self._named(statement)
            case st.AppendRows():
                return self._told(self._append(statement, text, params))
            case st.Explain(options, inner):
                levels, kind = explain_options(options)
                texts = [self._explain(inner, level, kind, text or "", params) for level in levels]
                return message(self, {"explain": texts}, show_text=True)
            case st.SetOption(name, value):
                self.set(name, value)
            case st.Prepare():
                self._prepared.keep(statement)
            case st.Execute():
                return self.sql(*self._call(statement))
            case st.Deallocate(name):
                self._prepared.drop(name)
            case st.CopyTo(query, path, options):
                return message(self, {"Count": [self._copy(query, path, dict(options))]})
            case _:
                assert_never(statement)
        return message(self, {"Success": []})

    # ---- tables ----------------------------------------------------------------------------------------------------

    @checked
    @boundary
    def register(self, name: str, data: Any) -> Connection:
        """Make data a table of that name, in place of one that has it: anything with ``__arrow_c_stream__`` (PyArrow,
        pandas, Polars, a Relation), or a dict of one-dimensional NumPy or CuPy arrays. The table holds the data as they are
        now: register them again after a change."""
        self._check_open()
        from gquery.api.relation import Relation
        from gquery.io.memory import detached, kept_source
        from gquery.sql.schemas import joined

        table = detached(data.table()) if isinstance(data, Relation) else data
        self._catalog.register(joined((name,)), kept_source(name, table, self.settings.narrow))
        return self

    @checked
    @boundary
    def unregister(self, name: str) -> Connection:
        """Forget a table or view; CatalogError where there is none."""
        self._check_open()
        from gquery.sql.schemas import joined

        self._catalog.drop(joined((name,)))
        return self

    @checked
    def table(self, name: str) -> Relation:
        """All rows of a table or view."""
        from gquery.sql.schemas import joined, split

        parts = (name,) if self._catalog.lookup(joined((name,))) is not None else split(name)
        return self.sql("SELECT * FROM " + ".".join('"' + p.replace('"', '""') + '"' for p in parts))

    # ---- settings and life -----------------------------------------------------------------------------------------

    @checked
    @boundary
    def set(self, name: str, value: Any) -> None:
        """Change a setting of `gquery.settings.Settings`, as SET does."""
        self.settings = self.settings.with_option(name, value)
        if name.lower() in (*LIMITS, "spill_directory"):
            self._ranks = tuple([limited(d, self.settings) for d in self._ranks])
            self.device = self._ranks[0]
            self.device.evict = self._cache.evict_bytes
            self._cache.move_to(self.device, self.settings.memory_limit)
            for catalog in (self._shared_catalog, *(b.catalog for b in self._branches.values() if b)):
                catalog.count_again()
        self._cache.workers = self.settings.worker_count

    def cursor(self) -> Cursor:
        """A PEP 249 cursor over the tables of this connection."""
        self._check_open()
        from gquery.api.dbapi import Cursor

        return Cursor(self)

    def interrupt(self) -> None:
        """Stop what runs on this connection and its cursors, called from another thread: those queries raise
        InterruptError soon, and the connection can be used on. Nothing happens where nothing runs."""
        self._running.stop()

    def close(self) -> None:
        """Give up tables and loaded columns. Relations that have run keep their rows; twice does no harm."""
        if not self._closed:
            self._closed = True
            if self._cluster is not None:
                self._cluster.close()
            self._branches.clear()
            self._plans.clear()
            self._creations.clear()
            self._templates.clear()
            self._files.clear()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<gquery.Connection on {self.device_name}{', closed' if self._closed else ''}>"

    def _forget_plans(self, version: int) -> None:
        """Forget what was planned over tables that are others now: a plan holds the tables that it reads."""
        self._plans.forget(version)
        self._templates.forget(version)
        self._forget_creations()

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("The connection is closed")

    # ---- the pipeline ----------------------------------------------------------------------------------------------

    def _read_variables(self, relation: Relation) -> None:
        """Take what a query uses of variables of the caller as they are now."""
        prepared = relation.prepared
        if prepared is not None and any(getattr(source, "is_live", False) for source in prepared.sources):
            self._program(prepared)


@checked
def connect(
    device: str = "auto",
    partitions: int | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    devices: Devices = None,
    cluster: Any = None,
    workers: int | None = None,
) -> Connection:
    """A new connection, with tables of its own; see `Connection`. ``cluster`` runs each query on ``workers`` of Dask: "local"
    starts so many of them here (2); those of a scheduler's address or a Client are taken as they are, all if no number is given.
    """
    of_cluster = None if cluster is None and workers is None else ClusterWorkers(cluster, workers)
    return Connection(device, partitions, threads, memory_limit, devices, of_cluster)
