"""Execution: runs a program stage by stage.

A `planner.physical.Program` and a context go in, the columns of the result come out. `prepare` compiles what a program will
need, `program` goes through its stages, `choose` picks the target that runs one, `runner` runs its kernels over partitions
and workers, `speculation` guesses sizes and has them checked. Called by `api` and `profile`.
"""

from __future__ import annotations

from gquery.execution.program import run, run_with_report
from gquery.execution.state import ExecutionContext, StageReport

__all__ = ["ExecutionContext", "StageReport", "run", "run_with_report"]
