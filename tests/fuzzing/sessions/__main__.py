"""``python -m tests.fuzzing.sessions --seeds 0:2000``: a report of each fault, small, and how often each construct has run."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter

os.environ.setdefault("GQUERY_VERIFY", "1")

from tests.fuzzing.sessions.check import Seen, run, shrunk
from tests.fuzzing.sessions.script import script


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:1000", help="first:end")
    parser.add_argument("--seconds", type=float, default=1e9, help="after which no other seed begins")
    parser.add_argument("--most", type=int, default=20, help="faults after which to stop")
    parser.add_argument("--no-shrink", action="store_true")
    given = parser.parse_args(arguments)
    first, end = map(int, given.seeds.split(":"))
    began, seen, faults, seeds = time.monotonic(), Seen(), 0, 0
    for seed in range(first, end):
        if time.monotonic() - began > given.seconds or faults >= given.most:
            break
        seeds += 1
        statements = script(seed)
        if (fault := run(statements, seen)) is None:
            continue
        faults += 1
        small, said = (statements, fault) if given.no_shrink else shrunk(statements, fault)
        print(f"\nseed {seed}, {said}", "of", *small, sep="\n  ", flush=True)
    print(*_table(seen), f"{seeds} scripts, {faults} faults, {time.monotonic() - began:.0f} s", sep="\n")
    return 1 if faults else 0


def _table(seen: Seen) -> list[str]:
    """A line a construct: how many of its statements gave the same rows, failed in both engines, differ as documented."""
    sums: Counter[str] = Counter()
    for (construct, _), count in seen.outcomes.items():
        sums[construct] += count
    shown = ("same", "both fail", "known")
    lines = [
        f"{c:24}" + "".join(f"{seen.outcomes[c, o]:10}" for o in shown)
        for c, _ in sorted(sums.items(), key=lambda i: i[1])
    ]
    return ["", f"{'':24}" + "".join(f"{o:>10}" for o in shown), *lines]


if __name__ == "__main__":
    sys.exit(main())
