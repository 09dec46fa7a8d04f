"""How often each optimizer rule fires, and what it gains, over four workloads.

    python -m benchmarks.rules                                  all four: plans alone
    python -m benchmarks.rules --run TPC-H --runs 5             TPC-H is run too, with each rule and without it
    python -m benchmarks.rules --run TPC-DS --rules share_rows  one rule
    python -m benchmarks.rules --write docs/reference/rules.md  the page of the docs

TPC-DS needs ``pip install duckdb-extension-tpcds``, JOB and ClickBench ``pip install --no-deps benchbox==0.4.2``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.rules import workloads
from benchmarks.rules.measure import Firing, Refused, firings
from benchmarks.rules.report import markdown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="TPC-H,TPC-DS,JOB,ClickBench", help="workloads, separated by commas")
    parser.add_argument("--run", default="", help="workloads whose plans are run")
    parser.add_argument("--rules", default="", help="the rules that are left out of runs; all without it")
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each plan")
    parser.add_argument("--sf", type=float, default=1.0, help="scale factor of TPC-H and TPC-DS")
    parser.add_argument("--write", type=Path, help="write the page there")
    given = parser.parse_args()
    known: dict[str, Callable[[], workloads.Workload]] = {
        "TPC-H": lambda: workloads.tpch(given.sf),
        "TPC-DS": lambda: workloads.tpcds(given.sf),
        "JOB": workloads.job,
        "ClickBench": workloads.clickbench,
    }
    chosen = [known[name]() for name in given.only.split(",")]
    run = [name for name in given.run.split(",") if name]
    rules = [name for name in given.rules.split(",") if name]
    found: list[Firing | Refused] = []
    for workload in chosen:
        for f in firings(workload, given.runs if workload.name in run else 0, rules):
            if isinstance(f, Firing) and f.cost is not None:
                print(f, file=sys.stderr, flush=True)
            found.append(f)
    data = ", ".join(f"{w.name} ({w.data})" for w in chosen if w.name in run) or "nothing"
    page = markdown(chosen, found, data)
    if given.write:
        given.write.write_text(page)
    else:
        print(page)


if __name__ == "__main__":
    main()
