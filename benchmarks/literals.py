"""What new constants cost where a query's shape is known: TPC-H with the same text again, and with random parameters.

    python -m benchmarks.literals --sf 30 --device cuda --seeds 20

Each query runs with its own text until nothing more is learned (kernels are compiled, and on a GPU the run is recorded). *hot*
is the median of ``--runs`` runs behind it, one after the other. *new* is the median over the seeds of the first run of a text
with that seed's parameters, from the text to Arrow, and *worst* the longest; *hits* says how many of them a template served.
*in turns* is the own text once more before each seed's, the 22 one after the other as the new ones are: neither finds its code
and data in caches, as a text does that runs again and again. The sums are what counts: of the hot medians, and the medians over
the seeds of the sums of 22 runs. How many of the new runs waited for a compiler is counted, too, with the kernels that were
made in each of them.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from contextlib import _GeneratorContextManager, contextmanager
from pathlib import Path

from gquery.api.connection import Connection
from gquery.kernels.builtin.registry import builtin_kernels
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import Compiled
from gquery.runtime.stopwatch import Part, Watch, watched
from tpch import parameters, queries
from tpch.engines.base import Options
from tpch.engines.gquery_engine import GQueryEngine
from tpch.generate import generate

LEARNING_RUNS = 12  # at least, until a recorded run is there
LEARNING_SECONDS = 4.0
WAITED = 0.001  # seconds: looking kernels up takes less


@contextmanager
def _nothing() -> Iterator[None]:
    yield


class CompileWatch(Watch):
    """Books what waits for a compiler alone, so that it costs the runs next to nothing."""

    def part(self, name: Part) -> _GeneratorContextManager[None]:
        return super().part(name) if name == "compile" else _nothing()


def seconds(connection: Connection, sql: str) -> float:
    """One run, from the text to Arrow."""
    start = time.perf_counter()
    connection.sql(sql).to_arrow_table()
    return time.perf_counter() - start


def learn(connection: Connection, sql: str) -> None:
    """Run a text until its runs are hot."""
    begin = time.perf_counter()
    for run in range(1000):
        seconds(connection, sql)
        plan = connection._plans.find(sql, None, connection.settings)
        progress = None if plan is None else plan.feedback.replay
        settled = progress is None or connection.device.is_cpu or progress.recorded or progress.refused
        if run + 1 >= LEARNING_RUNS and (settled or time.perf_counter() - begin > LEARNING_SECONDS):
            return


def described(made: Compiled) -> str:
    """A kernel that was made: what it is, and what it took."""
    name = next((n for n, k in builtin_kernels().items() if k is made.kernel), "")
    kind = " draft" if made.is_draft else " from disk" if made.cached else ""
    lines = made.kernel.text.count("\n")
    return f"{name or made.kernel.digest[:8]}{kind}, {lines} lines, {1e3 * made.seconds:.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sf", type=float, default=1.0)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--runs", type=int, default=7)
    given = parser.parse_args()
    connection = GQueryEngine(generate(given.sf, given.data, echo=False), Options(device=given.device)).connection
    hot: dict[int, float] = {}
    for number in queries.NUMBERS:
        learn(connection, queries.sql(number))
        hot[number] = statistics.median(seconds(connection, queries.sql(number)) for _ in range(given.runs))
    new: dict[int, list[float]] = {number: [] for number in queries.NUMBERS}
    turns: dict[int, list[float]] = {number: [] for number in queries.NUMBERS}
    hits = dict.fromkeys(queries.NUMBERS, 0)
    waits: list[float] = []
    told: list[str] = []
    target = get_target(connection.target)
    for seed in range(1, given.seeds + 1):
        for number in queries.NUMBERS:
            turns[number].append(seconds(connection, queries.sql(number)))
        for number in queries.NUMBERS:
            sql = parameters.sql(number, seed, given.sf)
            watch, before = CompileWatch(), {id(made) for made in target.held()}
            with watched(watch):
                new[number].append(seconds(connection, sql))
            waits.append(watch.seconds["compile"])
            plan = connection._plans.find(sql, None, connection.settings)
            hits[number] += plan is not None and plan.template == "hit"
            if waits[-1] > WAITED:
                made = ", ".join(described(m) for m in target.held() if id(m) not in before)
                template = None if plan is None else plan.template
                told.append(f"  Q{number} seed {seed} ({template}): {1e3 * waits[-1]:.1f} ms: {made}")
    print(f"{'query':>6}{'hot ms':>9}{'in turns':>10}{'new ms':>9}{'worst ms':>10}{'new/hot':>9}{'hits':>6}")
    for number in queries.NUMBERS:
        ms, of = 1e3 * hot[number], [1e3 * s for s in new[number]]
        middle = statistics.median(of)
        turn = 1e3 * statistics.median(turns[number])
        print(f"{number:>6}{ms:>9.2f}{turn:>10.2f}{middle:>9.2f}{max(of):>10.2f}{middle / ms:>9.2f}{hits[number]:>6}")
    sums, again = ([1e3 * sum(of[number][n] for number in hot) for n in range(given.seeds)] for of in (new, turns))
    total, turn, middle = 1e3 * sum(hot.values()), statistics.median(again), statistics.median(sums)
    ratios = f"{middle / total:.2f} times hot, {middle / turn:.2f} times in turns"
    print(f"sums: hot {total:.1f} ms, in turns {turn:.1f}, new {middle:.1f} ({ratios}), worst seed {max(sums):.1f}")
    waited = [1e3 * s for s in waits if s > WAITED]
    print(
        f"runs that waited for a compiler: {len(waited)} of {len(waits)}, {sum(waited):.0f} ms, one {max(waits) * 1e3:.1f}"
    )
    print("\n".join(told))
    print("sums by seed: " + " ".join(f"{s:.0f}" for s in sums))


if __name__ == "__main__":
    main()
