"""Execution: runs a program stage by stage.

A `planner.physical.Program`, a context and the feedback of earlier runs go in, the columns of the result come out. `program` goes
through the stages; `specialize` makes of a pipeline what runs, for `prepare`, which compiles ahead, for `pipelines`, which runs
it, and for EXPLAIN; `choose` picks its target; `runner` runs its kernels over partitions and workers; `speculation` takes sizes
as given and validates them; `feedback` is what later runs know. Called by `api` and `profile`.
"""

from __future__ import annotations

from gquery.execution.program import run, run_again, run_template, run_with_report
from gquery.execution.state import ExecutionContext, StageReport

__all__ = ["ExecutionContext", "StageReport", "run", "run_again", "run_template", "run_with_report"]
