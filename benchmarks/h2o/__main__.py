"""``python -m benchmarks.h2o``: db-benchmark's questions about groups, joins and windows, beside DuckDB and Polars.

    python -m benchmarks.h2o --rows 1e7                        on the best device
    python -m benchmarks.h2o --rows 1e8 --no-polars --beside-runs 0 --limit 4 --html h2o.html

Each question makes a table of its answer, in memory or on the device. *first* is the first run, *hot* the median of those
behind it (with ``--beside-runs 0`` the first of the engines beside gquery); then come the least CPU time of a hot run, and the
least without the system's. Answers are compared by their rows and the sums of their columns, 1e-6 relative: windows add floats
in other orders.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import NamedTuple

import gquery
from benchmarks.cases.sizes import number
from benchmarks.h2o import data
from benchmarks.h2o.engines import DuckDB, Engine, Gquery, Polars, TooSlowError, Totals
from benchmarks.h2o.page import page
from benchmarks.h2o.questions import Question, questions

_CLOSE = 1e-6


@dataclass(frozen=True)
class Measured:
    """A question in one engine: seconds of its first and its hot runs by the clock, the least CPU time of a hot run, the least
    without the system's, or why there are none."""

    question: str
    engine: str
    first: float
    hot: float
    cpu: float
    user: float
    wrong: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.h2o", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=number, default=10_000_000)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--only", default="", help="questions whose names begin so")
    parser.add_argument("--runs", type=int, default=3, help="hot runs")
    parser.add_argument("--beside-runs", type=int, help="hot runs of the engines beside gquery, where not as many")
    parser.add_argument("--limit", type=float, help="seconds after which a question of DuckDB's ends")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--duckdb", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--polars", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--json", metavar="PATH", help="a line for each measurement")
    parser.add_argument("--html", metavar="PATH", help="a page with a plot")
    given = parser.parse_args()
    if given.html and find_spec("altair") is None:
        parser.error("--html needs altair: pip install 'gquery[bench]'")
    engines: list[Engine] = [Gquery(given.device, given.threads)]
    engines += [DuckDB(given.threads, given.limit)] if given.duckdb else []
    engines += [Polars()] if given.polars else []
    asked = [q for q in questions() if q.name.startswith(given.only)]
    found: list[Measured] = []
    beside = given.runs if given.beside_runs is None else given.beside_runs
    for question in _with_tables(asked, engines, given.rows):
        found += measured(question, engines, [given.runs] + [beside] * (len(engines) - 1))
        print(_line(found[-len(engines) :]), flush=True)
    print(_sums(found, engines))
    if given.json:
        with open(given.json, "w", encoding="utf-8") as out:
            out.writelines(json.dumps(vars(m) | {"rows": given.rows}) + "\n" for m in found)
    if given.html:
        page(given.html, given.rows, [(m.question, m.engine, m.hot) for m in found if not m.wrong])


def _with_tables(asked: Sequence[Question], engines: Sequence[Engine], rows: int) -> Iterator[Question]:
    """The questions, with the tables that they read in all engines; those that no later one reads are given back. Says how long
    the tables took."""
    made = data.tables(rows)
    held: dict[str, bool] = {}
    seconds = [0.0] * (len(engines) + 1)
    for n, question in enumerate(asked):
        while not all(t in held for t in question.reads):
            start = time.perf_counter()
            name, table = next(made)
            seconds[0] += time.perf_counter() - start
            held[name] = any(name in q.reads for q in asked)
            for k, engine in enumerate(engines if held[name] else (), 1):
                start = time.perf_counter()
                engine.add(name, table)
                seconds[k] += time.perf_counter() - start
            del table
        yield question
        later = {t for q in asked[n + 1 :] for t in q.reads}
        for name in [t for t, is_in in held.items() if is_in and t not in later]:
            held[name] = False
            for engine in engines:
                engine.forget(name)
    names = ["made", *(engine.name for engine in engines)]
    print("tables: " + ", ".join(f"{n} {s:.1f} s" for n, s in zip(names, seconds, strict=True)))


def measured(question: Question, engines: Sequence[Engine], runs: Sequence[int]) -> Iterator[Measured]:
    """One question in each engine, so many hot runs each, compared with what the first that answers says. Engines take turns, so
    that what others do on the machine meets all of them."""
    expected: Totals | None = None
    made: list[tuple[Engine, Seconds, list[Seconds], str]] = []
    for engine in engines:
        try:
            first = _seconds(engine, question)
        except (gquery.Error, TooSlowError) as error:
            why = f" {type(error).__name__}: {str(error).splitlines()[0]}"
            made.append((engine, Seconds(math.nan, math.nan, math.nan), [], why))
            continue
        totals = engine.totals()
        expected = totals if expected is None else expected
        wrong = "" if _is_close(totals, expected) else f"WRONG: {totals}, not {expected}"
        made.append((engine, first, [], wrong))
    for turn in range(max(runs)):
        for (engine, first, each, _), times in zip(made, runs, strict=True):
            if turn < times and not math.isnan(first.wall):
                each.append(_seconds(engine, question))
    for engine, first, each, wrong in made:
        wall, cpu, user = zip(*(each or [first]), strict=True)
        yield Measured(question.name, engine.name, first.wall, statistics.median(wall), min(cpu), min(user), wrong)


class Seconds(NamedTuple):
    """By the clock, of the process' CPU time, which says more where others use the machine as well, and of that without the
    system's, most of which goes to pages that are touched first."""

    wall: float
    cpu: float
    user: float


def _seconds(engine: Engine, question: Question) -> Seconds:
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    engine.run(question)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    user = after.ru_utime - before.ru_utime
    return Seconds(wall, user + after.ru_stime - before.ru_stime, user)


def _is_close(a: Totals, b: Totals) -> bool:
    return len(a) == len(b) and all(
        math.isclose(x, y, rel_tol=_CLOSE) or (math.isnan(x) and math.isnan(y)) for x, y in zip(a, b, strict=True)
    )


def _line(found: Sequence[Measured]) -> str:
    each = ((m, "".join(f"{1e3 * seconds:9.1f}" for seconds in (m.first, m.hot, m.cpu, m.user))) for m in found)
    cells = [m.wrong if math.isnan(m.hot) else f"{times} {m.wrong}" for m, times in each]
    return f"{found[0].question:10}" + "".join(f"  {m.engine}{c}" for m, c in zip(found, cells, strict=True))


def _sums(found: Sequence[Measured], engines: Sequence[Engine]) -> str:
    lines = []
    for engine in engines:
        own = [m for m in found if m.engine == engine.name and not math.isnan(m.hot)]
        slower = [m.question for m in own if _is_slower(m, found)]
        lines.append(
            f"{engine.name}: {len(own)} questions, first {sum(m.first for m in own):.2f} s, hot {sum(m.hot for m in own):.3f} s, "
            f"CPU {sum(m.cpu for m in own):.3f}"
            + (f"; not the fastest in {', '.join(slower)}" if slower else "; the fastest in all")
        )
    return "\n".join(lines)


def _is_slower(one: Measured, found: Sequence[Measured]) -> bool:
    return any(m.question == one.question and m.hot <= one.hot for m in found if m.engine != one.engine)


if __name__ == "__main__":
    main()
