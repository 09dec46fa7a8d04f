"""From texts to plans, programs and rows: the part of a `Connection` that plans, finds what was planned before, and runs it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from gquery import tuning
from gquery.api.plan_cache import (
    Parameters,
    PlanCache,
    PreparedPlan,
    check_sources,
    load_tables,
    sources_of,
)
from gquery.api.prepared import PreparedTexts
from gquery.api.session import Session
from gquery.api.templates import Question, Template, Templates
from gquery.errors import DataError, Error, FileError
from gquery.runtime.boundary import boundary
from gquery.runtime.nesting import with_room
from gquery.runtime.records import replace
from gquery.runtime.stopwatch import part

if TYPE_CHECKING:
    from gquery.columns.table import Table
    from gquery.device.device import Device
    from gquery.execution import ExecutionContext
    from gquery.expression.expr import Expr
    from gquery.expression.expr import Literal as Constant
    from gquery.functions.chance import Seeds
    from gquery.planner.logical.nodes import Query
    from gquery.planner.physical import Program
    from gquery.sql.parse import Parsed
    from gquery.sql.statement import Execute, Statement


class Plans(Session):
    """The part of a connection that makes plans, keeps them and runs them."""

    _plans: PlanCache
    _templates: Templates
    _prepared: PreparedTexts
    _seeds: Seeds
    _ranks: tuple[Device, ...]
    _closed: bool
    _made_context: ExecutionContext | None

    def _plan(self, query: Query, now: bool = True, template: Template | None = None) -> PreparedPlan:
        """A bound query, optimized now or when it is first needed; ``template`` is the one that its text makes. It is of the
        tables of the queries that were asked for it, too."""
        from gquery.planner.rules.draw_random import draws
        from gquery.planner.rules.fix_moment import reads_clock

        sources = with_room(lambda: sources_of(query.plan, *(q.plan for q in query.asked)))
        versions = tuple(s.version for s in sources)
        check_sources(query.plan)
        version = self._catalog.version
        prepared = PreparedPlan(
            lambda: query, self._optimize, self.settings, sources, versions, version, slots=template
        )
        prepared.serves_one_run = bool(query.drawn) or any(
            reads_clock(q.plan) or draws(q.plan) for q in (query, *query.asked)
        )
        if now:
            _ = prepared.query
        return prepared

    def _optimize(self, query: Query) -> Query:
        from gquery.functions.chance import drawing_from
        from gquery.planner.optimizer import optimize

        def optimized() -> Query:
            with drawing_from(self._seeds):
                return optimize(query, _evaluate, self.settings.disabled_rules)

        return with_room(optimized)

    def _program(self, prepared: PreparedPlan) -> Program:
        """The program of a plan. Columns are loaded first; where that taught more than footers tell (order, uniqueness,
        distinct values), the plan is optimized again."""
        if prepared.program is None:
            try:
                with prepared.recording():
                    return self._lowered(prepared)
            except MemoryError as error:  # of NumPy or CuPy: encoding takes arrays of its own
                reason = str(error)
            self.device.make_room()
            raise self.device.exhausted("reading columns", reason or "no memory is left")
        return prepared.program

    def _lowered(self, prepared: PreparedPlan) -> Program:
        """A program over as much of the tables as the query needs: where a filter below a LIMIT has to find that out, over more
        and more of them until the rows are enough."""
        from gquery.device.profile import get_profile
        from gquery.execution import run
        from gquery.execution.feedback import RunFeedback
        from gquery.planner.late_fetch import late_query
        from gquery.planner.lower import lower
        from gquery.planner.partial_scans import partial_scans

        query, parts = prepared.query, tuning.reading.first_groups
        while True:
            partial = partial_scans(query, parts)
            late = late_query(partial.query, on_host=self.device.is_cpu) if self._cluster is None else None
            if late is not None:
                load_tables(late.query.plan, ())
            elif load_tables(partial.query.plan, prepared.sources):
                query = self._optimize(prepared.made())
                partial = partial_scans(query, parts)
                load_tables(partial.query.plan, ())
            made = partial.query if late is None else late.query
            program = with_room(functools.partial(lower, made, self.target, get_profile(self.device)))
            if (context := self._context()).ranks:
                from gquery.execution.ranked import for_ranks

                program = for_ranks(program, context)
            elif context.remote is not None:
                program = context.remote.for_ranks(program)
            if late is not None:
                program = replace(program, fetch=late.fetch)
            if partial.enough is not None and prepared.slots is not None:
                prepared.slots.pin()  # how many parts are enough depends on all constants
            if partial.enough is None or run(program, self._context(), RunFeedback()).rows >= partial.enough:
                return prepared.keep(made, program)
            parts *= tuning.reading.more_groups

    # ---- rows --------------------------------------------------------------------------------------------------------

    @boundary
    def run_plan(self, prepared: PreparedPlan) -> Table:
        """The rows of a plan."""
        from gquery.execution import run
        from gquery.kernels.targets.compilers import compiling_by

        self._check_open()
        with self._running.one(), compiling_by(self.settings.compiler):
            with part("plan"):
                program = self._program(prepared)
            with part("run"):
                rows = run(program, self._context(), prepared.feedback)
        if prepared.serves_one_run:  # others draw nothing, and are not made once more for it
            for drawn in prepared.made().drawn:
                self._catalog.sequences.advance(drawn, rows.rows)
        return rows

    def run_recorded(self, prepared: PreparedPlan) -> Table | None:
        """The rows of a plan whose run is recorded. Whether its tables are as they were is looked at while the GPU works. None
        where nothing is recorded, where they are not, and where that takes more than a look at some files of this machine."""
        if self._closed or not self.device.is_cuda or not prepared.is_near:
            return None
        catalog, later = self._catalog, prepared.later

        def is_current() -> bool:
            return prepared.is_at(catalog.version)

        if later is not None and not later.has_played:
            if later.replay.recorded is None:
                return None
            from gquery.execution import run_template

            with self._running.one(), part("run"):
                table = run_template(later.replay, later.values, self._context(), is_current)
            later.has_played = table is not None
            return table
        program = prepared.program
        if program is None or prepared.feedback.replay.recorded is None:
            return None
        from gquery.execution import run_again

        with self._running.one(), part("run"):
            return run_again(program, self._context(), prepared.feedback, is_current)

    def _context(self) -> ExecutionContext:
        """The same as for the run before, where nothing was set since."""
        made = self._made_context
        if (
            made is None
            or made.settings is not self.settings
            or made.device is not self.device
            or made.target != self.target
        ):
            from gquery.execution import ExecutionContext

            ranks = self._ranks if len(self._ranks) > 1 else ()
            made = ExecutionContext(self.target, self.device, self.settings, ranks=ranks, remote=self._cluster)
            self._made_context = made
        return made

    # ---- templates -------------------------------------------------------------------------------------------------

    def _from_template(self, text: str, params: Parameters) -> tuple[Question | None, PreparedPlan | str]:
        """What a text asks, and its plan, made of a template, or why there is none."""
        if self._cluster is not None:
            return None, "a cluster"
        question = self._templates.question(text, params, self.settings)
        return question, "" if question is None else self._templates.find(question, self._catalog.version)

    def _bind(
        self, parsed: Parsed, params: Parameters, question: Question | None, reason: str
    ) -> tuple[Statement, Template | None]:
        """The statement, and the template that its text makes; ``reason`` is why no other serves it. Errors are told of the
        text as it is written."""
        from gquery.sql.bind import bind
        from gquery.sql.cut import TextSlots

        if question is None:
            return bind(parsed, self._catalog, params), None
        template = Template(replace(question, tokens=None), TextSlots(question.shape), reason)
        try:
            with template.planning():
                return bind(parsed, self._catalog, params, template.slots), template
        except (Error, ValueError):  # sqlglot's for a slot in a tree that it prints
            return bind(parsed.sql, self._catalog, params), None

    # ---- plans that are kept ---------------------------------------------------------------------------------------

    @boundary
    def current_plan(self, prepared: PreparedPlan, text: str | None, params: Parameters) -> PreparedPlan:
        """The plan, or a new one of the same text where a table has changed since."""
        if prepared.is_current(self._catalog.version):
            return prepared
        if text is None:  # a relation's own plan: its tables are those it was made over, whose files may be other ones
            if prepared.is_current(prepared.catalog_version):
                return prepared
            if prepared.bound.asked and prepared.has_new_data:
                raise FileError(
                    "The files that the columns of a PIVOT come of have changed since it was made: make it anew"
                )
            return self._plan(prepared.bound)
        from gquery.sql.bind import bind
        from gquery.sql.statement import SelectStatement

        statement = bind(text, self._catalog, params)
        assert isinstance(statement, SelectStatement)
        return self._plan(statement.query)

    def _answer(self, query: Query) -> list[tuple[Any, ...]]:
        """The rows of a query that another one is bound by."""
        from gquery.columns.arrow import export_table
        from gquery.planner.rebind import without_slots
        from gquery.result.python_rows import python_rows

        return list(python_rows(export_table(self.run_plan(self._plan(without_slots(query))))))

    def _call(self, statement: Execute) -> tuple[str, Parameters]:
        """The text that EXECUTE asks, and its parameters."""
        values = () if statement.arguments is None else self._answer(statement.arguments)[0]
        return self._prepared.call(statement.name, values, statement.names)

    @boundary
    def limited_plan(self, prepared: PreparedPlan, rows: int) -> PreparedPlan:
        """A plan for the first rows of a query."""
        from gquery.planner.logical.nodes import Limit

        bound = replace(prepared.bound, plan=Limit(prepared.bound.plan, rows))
        return self._plan(bound)


def _evaluate(e: Expr) -> Constant:
    """The value of a constant expression; DataError where computing it fails, which is left to the query."""
    from gquery.kernels.host import evaluate

    value = evaluate(e)
    if value is None:
        raise DataError("A constant expression fails")
    return value
