"""Plans on their way through a connection: what they were made of, which tables they read, and those that are kept.

A plan is used again for the same text, parameters and settings, while the catalog and the tables that it reads are of the
versions that it was made over.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol, cast

from gquery import tuning
from gquery.expression.exact import exact
from gquery.runtime.forking import free_in_child
from gquery.runtime.nesting import with_room
from gquery.runtime.records import cached_property, dataclass
from gquery.runtime.stopwatch import part
from gquery.settings import Settings

if TYPE_CHECKING:
    from gquery.columns.table import TableSource
    from gquery.execution.feedback import RunFeedback, TemplateProgress
    from gquery.expression.slots import SlotValues
    from gquery.planner.logical.nodes import Plan, Query
    from gquery.planner.physical import Program

Parameters = Sequence[Any] | Mapping[str, Any] | None
_keeping = free_in_child(threading.Lock())  # held for an assignment


class LaterProgram(Protocol):
    """Makes the program of a plan that a template serves (`gquery.api.templates`)."""

    values: SlotValues
    replay: TemplateProgress  # of the template
    has_played: bool  # whether the plan has run, by a recording of the template

    def bound(self) -> tuple[Program, RunFeedback]:
        """The program, and what runs of it begin with."""


class PlanSlots(Protocol):
    """What keeps the guards of a plan (`gquery.api.templates`)."""

    def planning(self) -> AbstractContextManager[object]: ...

    def pin(self) -> None: ...

    def lowered(self, prepared: PreparedPlan, program: Program) -> None: ...


@dataclass
class PreparedPlan:
    """A query on its way: the optimized plan and, once it was lowered, the program; both belong to these versions. A plan that a
    template serves gets its program `later`, when somebody asks for it: a recording of the template runs without."""

    made: Callable[[], Query]  # as the binder made it
    optimize: Callable[[Query], Query]
    settings: Settings
    sources: tuple[TableSource, ...]
    versions: tuple[int, ...]
    catalog_version: int
    later: LaterProgram | None = None  # until the program is there
    template: str = ""  # whether it comes of a template, or why not; "" where nobody looked for one
    slots: PlanSlots | None = None  # those of its text, until the program is made
    serves_one_run: bool = False  # it is of its moment or chance, and another is made for the next run
    outline: Callable[[], Query] | None = None  # a plan of other constants, where one is there

    _program: Program | None = field(default=None, init=False, repr=False)

    @property
    def program(self) -> Program | None:
        """The program; None before the plan is lowered."""
        if self.later is not None:
            self._bind()
        return self._program

    @cached_property
    def bound(self) -> Query:
        """The plan as the binder made it, for whoever makes other plans of it: without slots."""
        from gquery.planner.rebind import without_slots

        return self.made() if self.slots is None else with_room(lambda: without_slots(self.made()))

    @property
    def shape(self) -> Query:
        """A plan with the names and types of this one's columns: they are the same for all constants, none is made for them."""
        return (self.outline or self.made)()

    def recording(self) -> AbstractContextManager[object]:
        """Within it, what is found out about the plan's slots is noted: whoever looks at the plan looks within it."""
        return nullcontext() if self.slots is None else self.slots.planning()

    @cached_property
    def query(self) -> Query:
        """The optimized plan."""
        with self.recording():
            made = self.optimize(self.made())
        return cast("Query", vars(self).setdefault("query", made))  # several threads that ask at once have the same

    @cached_property
    def feedback(self) -> RunFeedback:
        """What runs of the program leave for later ones."""
        from gquery.execution.feedback import RunFeedback

        self._bind()
        return cast("RunFeedback", vars(self).setdefault("feedback", RunFeedback()))

    def _bind(self) -> None:
        """Take the program that the template makes, if there is one; of several threads the first one's, as in `keep`."""
        later = self.later
        if later is None:
            return
        program, feedback = later.bound()
        with _keeping:
            if self.later is not None:
                vars(self)["feedback"], self._program, self.later = feedback, program, None

    def keep(self, query: Query, program: Program) -> Program:
        """Take a program, with the plan that it was lowered from, and give the one to run: of several threads that each made
        one the first wins, since columns have ids of their own in each, and what runs feed back speaks of those."""
        with _keeping:
            if self._program is None:
                self.query, self._program = query, program
                if self.slots is not None:
                    self.slots.lowered(self, program)
            return self._program

    @property
    def is_near(self) -> bool:
        """Whether `is_at` takes no more than a look at some files of this machine."""
        return False not in [getattr(source, "is_near", True) for source in self.sources]

    def is_at(self, catalog_version: int) -> bool:
        """Whether `is_current` is certain, at a look that reads, raises and waits for nothing."""
        if catalog_version != self.catalog_version or self.serves_one_run:
            return False
        for source, version in zip(self.sources, self.versions, strict=True):
            is_at = getattr(source, "is_at", None)
            if source.version != version if is_at is None else not is_at(version):
                return False
        return True

    @property
    def has_new_data(self) -> bool:
        """Whether a table is not as it was."""
        return self.versions != tuple(s.version for s in self.sources)

    def is_current(self, catalog_version: int) -> bool:
        if self.serves_one_run:
            return False
        return catalog_version == self.catalog_version and not self.has_new_data


class PlanCache:
    """The plans of the queries that were asked last, by text, parameters and settings."""

    def __init__(self) -> None:
        self._plans: OrderedDict[Any, PreparedPlan] = OrderedDict()
        self._lock = threading.RLock()

    def find(self, text: str, params: Parameters, settings: Settings) -> PreparedPlan | None:
        """The plan that is kept, whether it is current or not; None also for parameters that cannot be hashed."""
        try:
            key = _key(text, params, settings)
            with self._lock:
                prepared = self._plans.get(key)
                if prepared is not None:
                    self._plans.move_to_end(key)
                return prepared
        except TypeError:
            return None

    def keep(self, text: str, params: Parameters, settings: Settings, prepared: PreparedPlan) -> None:
        """Keep a plan, if its parameters can be hashed."""
        try:
            key = _key(text, params, settings)
            with self._lock:
                self._plans[key] = prepared
                while len(self._plans) > tuning.memory.plans:
                    self._plans.popitem(last=False)
        except TypeError:
            return

    def forget(self, version: int) -> None:
        """Forget the plans of other versions of the catalog, which are never current again."""
        with self._lock:
            for key in [k for k, p in self._plans.items() if p.catalog_version != version]:
                del self._plans[key]

    def values(self) -> Iterable[PreparedPlan]:
        with self._lock:
            return list(self._plans.values())

    def clear(self) -> None:
        with self._lock:
            self._plans.clear()


def _key(text: str, params: Parameters, settings: Settings) -> Any:
    return text, None if params is None else exact(params), settings


def sources_of(*plans: Plan) -> tuple[TableSource, ...]:
    """The tables that plans scan, subqueries included, each once."""
    from gquery.planner.logical.shared import scans

    return tuple({id(scan.source): scan.source for plan in plans for scan in scans(plan)}.values())


def check_sources(plan: Plan) -> None:
    """FileError where files have other columns than when a plan was bound over them, whose columns are known by place."""
    from gquery.errors import FileError
    from gquery.planner.logical.shared import scans

    for node in scans(plan):
        if vars(node).get("made_of") is node.source.schema:
            continue  # most
        now = node.source.schema.fields
        for column, f in zip(node.columns, node.fields, strict=True):
            if f < len(now) and (known := now[f]).dtype is column.dtype and known.name == column.name:
                if column.nullable or not known.nullable:
                    continue  # most
            field = now[f] if f < len(now) else None
            if field is None or (field.name, field.dtype) != (column.name, column.dtype):
                reason = f'"{column.name}" {column.dtype} is not what it was'
            elif field.nullable and not column.nullable:
                reason = f'"{column.name}" has NULLs'
            else:
                continue
            raise FileError(
                f"The files of {node.source.name} have changed since the query was made ({reason}): make it anew"
            )


def load_tables(plan: Plan, known: Sequence[TableSource]) -> bool:
    """Load what a plan scans; True where that told anything new of one of the sources ``known``, which the plan was optimized
    for. It may scan parts of them."""
    from gquery.io.column_cache import load_all
    from gquery.planner.logical.shared import scans

    wanted: dict[int, tuple[TableSource, set[int]]] = {}
    for scan in scans(plan):
        wanted.setdefault(id(scan.source), (scan.source, set()))[1].update(scan.fields)
    requests = [(source, sorted(fields)) for source, fields in wanted.values()]
    whole = {id(source) for source in known}
    asked = [(source, fields) for source, fields in requests if id(source) in whole]
    before = [[source.statistics(f) for f in fields] for source, fields in asked]
    with part("read"):
        load_all(requests)
    return before != [[source.statistics(f) for f in fields] for source, fields in asked]
