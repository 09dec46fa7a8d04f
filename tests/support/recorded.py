"""Queries on a GPU that run until their runs are recorded as graphs, which takes kernels that are compiled meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import gquery
from gquery.execution.feedback import ReplayProgress
from tests.support.quiet import wait_until_compiled

_MOST_RUNS = 30
_LEAST_RUNS = 4  # the third may be the first that is looked at


def run_until_recorded(connection: gquery.Connection, sql: str, run: Callable[[], object]) -> None:
    """Have ``run`` run the query until it is recorded, and twice behind that; it fails if the query stays between: neither is it
    recorded, nor is it known why it cannot be."""
    for n in range(_MOST_RUNS):
        run()
        found = connection._plans.find(sql, None, connection.settings)
        progress = None if found is None else found.feedback.replay
        if progress is None or (n + 1 >= _LEAST_RUNS and _is_settled(progress)):
            break
        wait_until_compiled()
    else:
        raise AssertionError(f"not recorded after {_MOST_RUNS} runs: {progress}\n{sql}")
    for _ in range(2):
        run()


def _is_settled(progress: ReplayProgress) -> bool:
    """Whether a query is recorded, or why not is known, or it may not be recorded at all: then its runs are not counted."""
    return progress.recorded is not None or progress.refused is not None or not progress.runs
