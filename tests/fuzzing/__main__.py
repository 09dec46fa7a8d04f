"""``python -m tests.fuzzing --seeds 0:50000 --target python``: many queries, a line for each fault and one for all outcomes.

With ``--constructs`` a table says in how many queries with DuckDB's rows each construct stood, the rarest first.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace

os.environ.setdefault("GQUERY_VERIFY", "1")

import tests.conftest
from gquery import tuning
from gquery.planner.optimizer import RULES
from tests.fuzzing.check import Engine, of_seed, run
from tests.fuzzing.constructs import CONSTRUCTS, constructs_of
from tests.fuzzing.shrink import shrink
from tests.support.in_parts import all_in_parts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:1000", help="first:end")
    parser.add_argument("--target", default="python", help="python, cpu or cuda")
    parser.add_argument("--compiler", default="auto", help="llvm or numba, on cpu and cuda")
    parser.add_argument(
        "--alone", action="store_true", help="compile in this process alone, which keeps the primitives"
    )
    parser.add_argument("--rules", action="store_true", help="switch a rule off in each query, one after the other")
    parser.add_argument("--ranks", type=int, help="of each query; else of one 1, of the next 3; in parts 1")
    parser.add_argument(
        "--parts", action="store_true", help="groups, joins, sorts and windows in parts, as if none had room"
    )
    parser.add_argument(
        "--constructs", action="store_true", help="say how often each construct has run, and been the same"
    )
    parser.add_argument("--most", type=int, default=20, help="faults after which to stop")
    parser.add_argument("--no-shrink", action="store_true")
    given = parser.parse_args()
    own = {"workers": 0, "own_kernels": sys.maxsize} if given.alone else {}
    tuning.use(replace(tuning.sorting, leading_least=16, leading_sample=16))  # what large tables have done to them
    with tuning.using(replace(tuning.compiling, **own)), all_in_parts() if given.parts else nullcontext():
        return fuzz(given)


def fuzz(given: argparse.Namespace) -> int:
    """Run the queries; 1 where one was different."""
    first, _, end = given.seeds.partition(":")
    optional = sorted(rule.name for rule in RULES if not rule.required)
    outcomes: Counter[str] = Counter()
    constructs: Counter[str] = Counter()
    began = time.perf_counter()
    for seed in range(int(first), int(end)):
        case = of_seed(seed)
        disabled = optional[seed % len(optional)] if given.rules else ""
        ranks = given.ranks or (1 if given.parts else 1 + 2 * (seed % 2))
        engine = Engine(given.target, ranks, disabled, given.compiler, given.parts)
        try:
            outcome = run(case, engine)
            verdict, said = str(outcome.verdict), outcome.said
        except Exception as error:
            verdict, said = "different", f"{type(error).__name__}: {error}"
        outcomes[verdict] += 1
        if given.constructs and verdict == "same":
            constructs.update(constructs_of(*case.sql))
        if verdict == "invalid" and outcomes["invalid"] <= 5:
            print(f"seed {seed} is no SQL: {said[:200]}", flush=True)
        if verdict == "different":
            small = case if given.no_shrink else shrink(case, engine)
            print(f"\nseed {seed}, tables {case.sets}, {engine}: {said[:400]}", *small.sql, sep="\n  ", flush=True)
            if outcomes["different"] >= given.most:
                break
    if given.constructs:
        for name in sorted(CONSTRUCTS, key=lambda name: (constructs[name], name)):
            print(f"{constructs[name]:8} {name}")
    if given.rules:
        print(
            f"each of {len(optional)} rules switched off in {(int(end) - int(first)) // len(optional)} queries or one more"
        )
    print(f"\n{dict(outcomes)} in {time.perf_counter() - began:.0f} s, {len(tests.conftest.faults)} faults of our own")
    return 1 if outcomes["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
