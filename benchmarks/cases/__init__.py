"""What the suite measures: a module a kind of work, each a list of cases for a number of rows."""

from __future__ import annotations

from fnmatch import fnmatch

from benchmarks.cases import groups, joins, scans, sorts, strings, windows
from benchmarks.measure import Case


def cases(rows: int, only: str = "") -> list[Case]:
    """All cases at ``rows`` rows whose name holds ``only``, in which * stands for anything. Sizes that do not fit into the
    rows are made smaller; where two become the same, one is left."""
    found = [c for kind in (scans, groups, joins, sorts, strings, windows) for c in kind.cases(rows)]
    return list({c.name: c for c in found if fnmatch(c.name, f"*{only}*")}.values())
