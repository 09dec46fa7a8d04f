"""What the workloads of `benchmarks.rules.workloads` are read from."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


def needs_package(workload: str) -> None:
    """Skip the test where the package is not installed that holds a workload's queries."""
    package = {"tpch": "tpch", "tpcds": "duckdb_extension_tpcds"}.get(workload, "benchbox")
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
