"""Execution: runs a program stage by stage.

`prepare` compiles what a program will need, `program` goes through its stages, `adaptive` fits a pipeline to the join tables
that it meets, `choose` picks the target that runs it, `runner` runs its kernels over partitions and workers.
"""

from __future__ import annotations

from gquery.execution.program import run, run_with_report
from gquery.execution.state import ExecutionContext, StageReport

__all__ = ["ExecutionContext", "StageReport", "run", "run_with_report"]
