"""One query with a rule and without it: the plans, what they are estimated to do, and what they do.

The estimate is the rows of all operators together. It is free of noise, but it is the optimizer's own: it can't tell where
the optimizer is wrong. Bytes are those that the kernels read and write, as EXPLAIN ANALYZE counts them.
Seconds are processor time of all threads, the median of a few runs, compiling apart.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import gquery
from benchmarks.rules.workloads import Workload
from gquery import Error
from gquery.api.planning import _evaluate as constant_of
from gquery.execution import ExecutionContext, run, run_with_report
from gquery.execution.measure import Meter
from gquery.planner import optimizer
from gquery.planner.logical.canonical import canonical
from gquery.planner.logical.cardinality import Estimator
from gquery.planner.logical.nodes import Definition, Query
from gquery.planner.logical.shared import definitions, every_node, with_definitions
from gquery.planner.physical import Program
from gquery.sql.bind import bind
from gquery.sql.parse import parse
from gquery.sql.statement import SelectStatement

WARM_RUNS = 3  # compile, and let the program adapt
MOST_ROWS = 2e8  # estimated, of a plan that is run: without some rules a query is a cross product


@dataclass(frozen=True)
class Cost:
    """What a run takes: processor seconds, and bytes that kernels read and write."""

    seconds: float
    bytes: int


@dataclass(frozen=True)
class Firing:
    """A rule that changed a query: the estimated rows of the finished plan with it and without it (None where the query
    can't be planned without it), and the cost of both where they were run. ``matters``: the finished plans differ."""

    workload: str
    query: str
    rule: str
    matters: bool
    rows: float
    rows_without: float | None
    cost: Cost | None = None
    cost_without: Cost | None = None


@dataclass(frozen=True)
class Refused:
    """A query that gquery does not take, and why."""

    workload: str
    query: str
    reason: str


def firings(workload: Workload, runs: int, rules: Collection[str]) -> Iterator[Firing | Refused]:
    """What each rule does to each query; with ``runs`` the plans are run too, for ``rules`` or for all where it is empty."""
    with workload.connect() as connection:
        for name, sql in workload.texts.items():
            try:
                bound = _bound(connection, sql)
                steps = optimizer.steps(bound, constant_of)
            except Error as error:
                yield Refused(workload.name, name, str(error).splitlines()[0])
                continue
            for rule in dict.fromkeys(s.rule for s in steps if s.changed):
                found = _firing(workload.name, name, rule, bound, steps[-1].query)
                is_run = runs > 0 and found.matters and (not rules or rule in rules)
                if is_run and found.rows_without is not None and max(found.rows, found.rows_without) < MOST_ROWS:
                    cost, cost_without = _costs(connection, sql, rule, runs)
                    found = replace(found, cost=cost, cost_without=cost_without)
                yield found


def _firing(workload: str, name: str, rule: str, bound: Query, query: Query) -> Firing:
    """What leaving a rule out does to the finished plan."""
    rows = estimated_rows(query)
    if not _is_optional(rule):
        return Firing(workload, name, rule, True, rows, None)
    without = optimizer.optimize(bound, constant_of, frozenset((rule,)))
    return Firing(workload, name, rule, _key(without) != _key(query), rows, estimated_rows(without))


def _is_optional(rule: str) -> bool:
    return not next(r for r in optimizer.RULES if r.name == rule).required


def _bound(connection: gquery.Connection, sql: str) -> Query:
    """A query over tables whose columns were read, so that statistics are known."""
    (parsed,) = parse(sql)
    statement = bind(parsed, connection._catalog)
    assert isinstance(statement, SelectStatement)
    planned = connection._plan(statement.query)
    connection._program(planned)
    return planned.bound


def estimated_rows(query: Query) -> float:
    """The estimated rows of all operators of a plan."""
    estimator = Estimator()
    for d in definitions(query.plan):
        estimator.rows(d.plan)
    estimator.rows(query.plan)
    return sum(estimator.rows(node) for node in every_node(query.plan))


def _key(query: Query) -> object:
    """What equal plans have in common; definitions are known by their order, as their numbers are those of the session."""
    new: dict[int, Definition] = {}
    for n, d in enumerate(definitions(query.plan)):
        new[d.number] = replace(d, number=-1 - n, plan=with_definitions(d.plan, new))
    return tuple(canonical(d.plan) for d in new.values()), canonical(with_definitions(query.plan, new))


@dataclass(frozen=True)
class _Version:
    """A query as it is planned without some rule, ready to run."""

    program: Program
    context: ExecutionContext

    def bytes(self) -> int:
        meter = Meter(self.context.device)
        run_with_report(self.program, replace(self.context, meter=meter))
        return sum(k.bytes_read + k.bytes_written for of in meter.kernels.values() for k in of.values())

    def seconds(self) -> float:
        start = time.process_time()
        run(self.program, self.context)
        return time.process_time() - start


def _version(connection: gquery.Connection, sql: str, rule: str) -> _Version:
    connection.execute(f"SET disabled_rules = '{rule}'")
    planned = connection.sql(sql)._prepared
    assert planned is not None
    return _Version(connection._program(planned), connection._context())


def _costs(connection: gquery.Connection, sql: str, rule: str, runs: int) -> tuple[Cost, Cost]:
    """With the rule and without it, in turns, so that what else the machine does falls on both."""
    versions = _version(connection, sql, ""), _version(connection, sql, rule)
    connection.execute("SET disabled_rules = ''")
    for version in versions:
        for _ in range(WARM_RUNS):
            run(version.program, version.context)
    samples = [[v.seconds() for v in versions] for _ in range(runs)]
    first, second = (
        Cost(statistics.median(times), version.bytes())
        for times, version in zip(zip(*samples, strict=True), versions, strict=True)
    )
    return first, second
