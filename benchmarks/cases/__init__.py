"""What the suite measures: a module a kind of work, each a list of cases for a number of rows."""

from __future__ import annotations

from fnmatch import fnmatch

from benchmarks.cases import aggregates, groups, joins, orders, recursion, scans, sorts, strings, windows
from benchmarks.measure import Case


def cases(rows: int, only: str = "") -> list[Case]:
    """All cases at ``rows`` rows whose name holds ``only``, in which * stands for anything and a comma for "or". Sizes that
    do not fit into the rows are made smaller; where two become the same, one is left."""
    kinds = (scans, groups, joins, sorts, strings, windows, aggregates, orders, recursion)
    patterns = [f"*{p}*" for p in only.split(",")]
    found = [c for kind in kinds for c in kind.cases(rows) if any(fnmatch(c.name, p) for p in patterns)]
    return list({c.name: c for c in found}.values())
