"""``python -m benchmarks.ibis_suite``: the share of Ibis' tests of backends that pass on gquery, file by file.

    python -m benchmarks.ibis_suite                      all files
    python -m benchmarks.ibis_suite test_window.py -v    one, with what fails

It wants the packages pytest-mock, pytest-snapshot and filelock beside `gquery[ibis]`. What Ibis expects to fail on some backends
is marked by their names, among which gquery is not: nested types, geometry and what only one backend has count as failures.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import ibis.backends.tests
import pytest


class Counts:
    """Outcomes by file."""

    def __init__(self) -> None:
        self.by_file: dict[str, Counter[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or (report.when == "setup" and report.outcome != "passed"):
            file = report.nodeid.partition("::")[0].rpartition("/")[2]
            self.by_file.setdefault(file, Counter())[report.outcome] += 1


def main(arguments: list[str]) -> int:
    """Run the suite and print a line a file."""
    folder = Path(ibis.backends.tests.__file__).parent
    files = [folder / a for a in arguments if a.endswith(".py")] or [folder]
    options = [a for a in arguments if not a.endswith(".py")]
    counts = Counts()
    quiet = [] if options else ["-q", "--tb=no", "--no-header", "--no-summary"]
    of_ibis = ["-m", "gquery", "-p", "benchmarks.ibis_suite.plugin", "-p", "no:cacheprovider", "-c", "/dev/null"]
    of_ibis += ["--rootdir", str(folder.parents[2]), "--import-mode=importlib"]
    pytest.main([*map(str, files), *of_ibis, *quiet, *options], plugins=[counts])
    total: Counter[str] = Counter()
    for file, found in sorted(counts.by_file.items()):
        total += found
        print(f"{file:36}{_line(found)}")
    print(f"{'all':36}{_line(total)}")
    return 0


def _line(found: Counter[str]) -> str:
    run = found["passed"] + found["failed"]
    share = found["passed"] / run if run else 1.0
    return f"{found['passed']:6} passed {found['failed']:6} failed {found['skipped']:6} skipped  {share:6.1%}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
