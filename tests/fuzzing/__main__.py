"""``python -m tests.fuzzing --seeds 0:50000 --target python``: many queries, a line for each fault and a table of all outcomes,
constructs and rules, the rarest first.

``--jobs 28 --seconds 400 --brief`` runs as many of them as so many processes do in that time, from ``--seeds FIRST:`` on, and
prints the faults and a line of sums alone. On a GPU ``--jobs 8 --seconds 300 --target cuda --sets 10`` compiles every
kernel; with ``--recorded`` the rows that are compared are those of runs that are replayed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

os.environ.setdefault("GQUERY_VERIFY", "1")

import tests.conftest
from tests.fuzzing.campaign import Campaign
from tests.fuzzing.engines import Choice, ready
from tests.fuzzing.tally import Tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:1000", help="first:end; with --jobs the end may be left out")
    parser.add_argument("--jobs", type=int, help="processes")
    parser.add_argument("--seconds", type=float, default=1e9, help="after which they begin no other seed")
    parser.add_argument("--target", default="python", help="python, cpu or cuda")
    parser.add_argument("--compiler", default="auto", help="llvm or numba, on cpu and cuda; both: numba of one in four")
    parser.add_argument(
        "--alone", action="store_true", help="compile in this process alone, which keeps the primitives"
    )
    parser.add_argument("--recorded", action="store_true", help="on a GPU, run each query until its runs are recorded")
    parser.add_argument("--rules", action="store_true", help="switch a rule off in each query, one after the other")
    parser.add_argument("--ranks", type=int, help="of each query; else 3 of one in three; in parts 1")
    parser.add_argument(
        "--parts", action="store_true", help="groups, joins, sorts and windows in parts, as if none had room"
    )
    parser.add_argument("--constructs", action="store_true", help="say how often each construct has run")
    parser.add_argument("--most", type=int, default=20, help="faults after which to stop")
    parser.add_argument("--sets", type=int, default=1, help="of tables that each query is asked over, by so many seeds")
    parser.add_argument("--brief", action="store_true", help="print faults and a line of sums")
    parser.add_argument("--no-shrink", action="store_true")
    given = parser.parse_args()
    choice = Choice(
        given.target, given.compiler, given.rules, given.ranks, given.parts, given.sets, given.alone, given.recorded
    )
    first, _, end = given.seeds.partition(":")
    began = time.perf_counter()
    if given.jobs:
        total = Campaign(int(first), int(end) if end else None, given.jobs, given.seconds, choice).run()
    else:
        with ready(choice):
            total = _here(range(int(first), int(end)), choice, 0 if given.no_shrink else 1500, given.most)
    lines = total.table(time.perf_counter() - began)
    print(*(lines if (given.constructs or given.jobs) and not given.brief else lines[-1:]), sep="\n")
    print(f"{len(tests.conftest.faults)} faults of our own in this process")
    return 1 if total.faults else 0


def _here(seeds: range, choice: Choice, tries: int, most: int) -> Tally:
    """The queries in this process, a line for each fault as it comes."""
    total = Tally()
    for seed in seeds:
        if said := total.seed(seed, choice, tries):
            print(f"\n{said}", flush=True)
        if len(total.faults) >= most:
            break
    return total


if __name__ == "__main__":
    sys.exit(main())
