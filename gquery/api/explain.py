"""How a query runs, as text or a page, and its program and kernels, for people and for tools: part of a `Connection`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from gquery.api.session import Session
from gquery.errors import NotSupportedError, ProgrammingError
from gquery.runtime.arguments import checked
from gquery.runtime.boundary import boundary
from gquery.runtime.nesting import with_room
from gquery.runtime.stopwatch import part

if TYPE_CHECKING:
    from gquery.api.plan_cache import Parameters, PreparedPlan
    from gquery.api.startup import Target
    from gquery.kernels.kernel import Kernel
    from gquery.planner.physical import Program
    from gquery.sql.statement import Statement

Format = Literal["text", "json", "html"]
FORMATS: tuple[Format, ...] = ("text", "json", "html")
Level = Literal["bound", "optimized", "physical", "pipelines", "code", "tree", "analyze"]
LEVELS: tuple[Level, ...] = ("bound", "optimized", "physical", "pipelines", "code", "tree", "analyze")


class Explains(Session):
    """The part of a connection that tells what would run, and runs it for EXPLAIN ANALYZE alone."""

    @checked
    @boundary
    def explain(
        self,
        query: str,
        level: Level | str = "optimized",
        params: Parameters = None,
        format: str = "text",  # noqa: A002  (a public keyword)
    ) -> str:
        """How a query runs: its plan as the binder makes it ("bound"), as the optimizer leaves it ("optimized"), the
        stages ("physical"), their fused pipelines ("pipelines") or the kernels' text ("code"). "tree" has the plan and the
        pipelines with estimated rows, "analyze" runs the query and adds what it took; ``format`` prints these two as
        "text", "json" or "html", a page that stands alone."""
        self._check_open()
        from gquery.sql.bind import bind

        return self._explain(bind(query, self._catalog, params), level, format, query, params)

    def _explain(self, statement: Statement, level: str, kind: str, text: str, params: Parameters) -> str:
        from gquery.sql.parse import without_explain
        from gquery.sql.statement import AppendRows, ChangeTable, CreateTable, Execute, Explain, SelectStatement

        if isinstance(statement, Explain):
            statement = statement.statement
        if isinstance(statement, Execute):
            prepared_text, given = self._call(statement)
            return self.explain(prepared_text, level, given, kind)
        if not isinstance(statement, (SelectStatement, CreateTable, ChangeTable, AppendRows)):
            raise ProgrammingError("EXPLAIN needs a query")
        assert statement.query is not None  # of ALTER TABLE alone there may be none
        prepared = self._plan(statement.query)
        if level == "analyze":
            _, found = self._from_template(without_explain(text), params)
            if isinstance(found, str):
                prepared.template = found
            else:
                prepared = found
        return self.explain_plan(prepared, level, kind, text)

    @boundary
    def explain_plan(self, prepared: PreparedPlan, level: str, kind: str, text: str) -> str:
        """A plan as text; see `explain`. ``text`` is the SQL that a page shows."""
        from gquery.profile.explain import explain

        if level not in LEVELS:
            raise ProgrammingError(f'There is no level "{level}" of EXPLAIN; there are {", ".join(LEVELS)}')
        if kind != "text" and level not in ("tree", "analyze"):
            raise ProgrammingError(f'EXPLAIN of the level "{level}" is text; "tree" and "analyze" have other formats')
        format_ = _format(kind)
        match level:
            case "bound":
                return with_room(lambda: explain(prepared.bound))
            case "optimized":
                with prepared.recording():
                    return with_room(lambda: explain(prepared.query))
            case "tree" | "analyze":
                from gquery.kernels.targets.compilers import compiling_by
                from gquery.profile.analyze import explain_tree, formatted
                from gquery.sql.parse import without_explain

                sql = without_explain(text)
                with self._running.one(), compiling_by(self.settings.compiler):
                    program = self._program(prepared)
                    with part("run"):
                        analyzes = level == "analyze"
                        context, known = self._context(), prepared.feedback
                        tree = with_room(lambda: explain_tree(sql, prepared.query, program, context, known, analyzes))
                tree.template = prepared.template
                return formatted(tree, format_)
            case _:
                from gquery.profile.explain_program import explain_program

                program = self._program(prepared)
                return with_room(lambda: explain_program(program, self._context(), level, prepared.feedback))

    @checked
    @boundary
    def program(self, query: str, target: Target | None = None, params: Parameters = None) -> Program:
        """The program of a SELECT for a target (that of the connection if None), without running it: for a GPU too, where
        there is none."""
        from gquery.planner.lower import lower
        from gquery.sql.bind import bind
        from gquery.sql.statement import SelectStatement

        self._check_open()
        statement = bind(query, self._catalog, params)
        if not isinstance(statement, SelectStatement):
            raise ProgrammingError("Only a query has a program")
        assert statement.query is not None  # of ALTER TABLE alone there may be none
        prepared = self._plan(statement.query)
        program = self._program(prepared)
        if target in (None, self.target):
            return program
        return with_room(lambda: lower(prepared.query, target or self.target))

    @checked
    @boundary
    def kernels(self, query: str, target: Target | None = None, params: Parameters = None) -> list[Kernel]:
        """The kernels of a SELECT for a target (that of the connection if None), without running it: what CI compiles for
        GPUs that it does not have."""
        from gquery.execution import ExecutionContext
        from gquery.execution.prepare import expected_kernels

        where = target or self.target
        context = ExecutionContext(where, self.device, replace(self.settings, interpret_limit=0))
        return expected_kernels(self.program(query, target, params), context)


def _format(kind: str) -> Format:
    """The format of that name; ProgrammingError where there is none."""
    found = next((f for f in FORMATS if f == kind), None)
    if found is None:
        raise ProgrammingError(f'There is no format "{kind}" of EXPLAIN; there are {", ".join(FORMATS)}')
    return found


def explain_options(options: Sequence[str]) -> tuple[list[str], str]:
    """The levels and the format of an EXPLAIN.

    >>> explain_options(("analyze", "format", "html")), explain_options(())
    ((['analyze'], 'html'), (['tree'], 'text'))
    """
    levels, format_, words = [], "text", iter(options)
    for word in words:
        if word == "format":
            format_ = next(words, "").strip("'")
        else:
            levels.append("code" if word == "codegen" else word)
    if wrong := [level for level in levels if level not in LEVELS]:
        raise NotSupportedError(f"EXPLAIN {', '.join(wrong).upper()}; there are {', '.join(LEVELS)}, codegen, format")
    return levels or ["tree"], format_
