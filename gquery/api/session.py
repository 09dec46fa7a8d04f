"""What the parts of a connection find in it: settings, device, catalog, and how a bound query becomes a plan and a program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gquery.api.plan_cache import Parameters, PreparedPlan
    from gquery.api.startup import Target
    from gquery.api.templates import Question, Template
    from gquery.cluster.client import Cluster
    from gquery.device.device import Device
    from gquery.execution import ExecutionContext
    from gquery.planner.logical.nodes import Query
    from gquery.planner.physical import Program
    from gquery.runtime.interrupt import Running
    from gquery.settings import Settings
    from gquery.sql.catalog import Catalog
    from gquery.sql.statement import Execute


class Session(ABC):
    """The base of `Frames`, `Files` and `Explains`; `Connection` is all of them and fills it in."""

    settings: Settings
    target: Target
    device: Device
    _cluster: Cluster | None
    _running: Running

    @property
    @abstractmethod
    def _catalog(self) -> Catalog:
        """Tables, views and functions as who asks sees them: with the changes of their own transaction."""

    @abstractmethod
    def _check_open(self) -> None:
        """InterfaceError where the connection is closed."""

    @abstractmethod
    def _plan(self, query: Query, now: bool = True, template: Template | None = None) -> PreparedPlan:
        """A bound query, optimized now or when it is first needed; ``template`` is the one that its text makes."""

    @abstractmethod
    def _from_template(self, text: str, params: Parameters) -> tuple[Question | None, PreparedPlan | str]:
        """What a text asks, and its plan, made of a template, or why there is none."""

    @abstractmethod
    def _call(self, statement: Execute) -> tuple[str, Parameters]:
        """The text that EXECUTE asks, and its parameters."""

    @abstractmethod
    def _program(self, prepared: PreparedPlan) -> Program:
        """The program of a plan, lowered at the first call."""

    @abstractmethod
    def _context(self) -> ExecutionContext:
        """Where and under which settings a program runs."""
