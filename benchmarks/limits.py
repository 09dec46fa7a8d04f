"""TPC-H from Parquet under a memory limit: what each query takes, watched from outside, and whether its answer is right.

    python -m benchmarks.limits --limit 100MB                    the 22 queries at SF1, each in a process of its own
    python -m benchmarks.limits --limit 40MB --queries 1,6 --sf 1

A line has, for a query without a limit and under it, the seconds of its first run (with reading), those of the processor, and the
most memory above a warmed-up idle connection (anonymous and shared, every 5 ms, `tests.support.resident`). ``over`` marks what
took more than the limit and 5 %. The process is warmed up by the same queries over SF0.01; a run before, unwatched, has its
kernels compiled. Answers are compared with those of DuckDB (`tpch.oracle`). With ``--duckdb`` it runs each query beside, from the
same files, with the same limit and threads, in a process of its own; with ``--together`` all run one after another on one
connection, in both.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.duckdb_beside import in_duckdb
from tests.support.resident import Answer, Limited
from tpch import queries
from tpch.generate import files, generate
from tpch.oracle import Oracle
from tpch.validate import difference, order_columns

MB = 1e6


def measured(number: int, settings: dict[str, str], data: Path, small: Path) -> Answer:
    """One query in a fresh process, the second time that it is asked for with the same settings."""
    warm = [({t: str(p) for t, p in files(small).items()}, queries.sql(n)) for n in queries.NUMBERS]
    views = {t: str(p) for t, p in files(data).items()}
    for watched in (False, True):
        with Limited(settings, views, warm if watched else ()) as process:
            answer = process.run(queries.sql(number))
    return answer


def together(numbers: list[int], settings: dict[str, str], data: Path, small: Path) -> dict[int, Answer]:
    """Queries one after another on one connection, the second time that all are asked for with the same settings."""
    warm = [({t: str(p) for t, p in files(small).items()}, queries.sql(n)) for n in numbers]
    views = {t: str(p) for t, p in files(data).items()}
    answers: dict[int, Answer] = {}
    for watched in (False, True):
        with Limited(settings, views, warm if watched else ()) as process:
            answers = {n: process.run(queries.sql(n)) for n in numbers}
    return answers


def verdict(number: int, answer: Answer, oracle: Oracle) -> str:
    """``right``, or what is wrong."""
    if answer.error:
        return answer.error
    expected = oracle.expected(number, answer.types)
    if expected is None:
        return "nobody knows"
    names = queries.sql(number)
    order = order_columns(names, _names(number))
    return difference(answer.rows, expected, order) or "right"


def _names(number: int) -> list[str]:
    import gquery

    with gquery.connect(device="python") as connection:
        for table, path in files(generate(0.01, echo=False)).items():
            connection.sql(f"CREATE VIEW {table} AS SELECT * FROM '{path}'")
        return list(connection.sql(queries.sql(number)).columns)


def bytes_of(limit: str) -> int:
    """A limit as people write it, in bytes."""
    import gquery

    with gquery.connect(device="python", memory_limit=limit) as connection:
        return connection.device.total_bytes


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sf", type=float, default=1.0)
    parser.add_argument("--limit", default="100MB")
    parser.add_argument("--queries", default="1-22")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--duckdb", action="store_true", help="run them in DuckDB beside")
    parser.add_argument("--together", action="store_true", help="one connection for all: columns are read once")
    parser.add_argument("--only-limited", action="store_true", help="do not run them without a limit beside")
    given = parser.parse_args()
    limit = bytes_of(given.limit)
    data, small = generate(given.sf), generate(0.01)
    oracle = Oracle(given.sf, data)
    oracle.prepare(queries.NUMBERS)
    heading = f"{'DuckDB: s':>12}{'cpu':>7}" if given.duckdb else ""
    print(f"{'':5}{'no limit: s':>12}{'cpu':>7}{'MB':>7}{given.limit + ': s':>12}{'cpu':>7}{'MB':>7}{heading}")
    bad = 0
    total = [0.0, 0.0, 0.0, 0.0]
    numbers = list(queries.parse_numbers(given.queries))
    limits = {"threads": given.threads, "memory_limit": given.limit}
    in_one = together(numbers, limits, data, small) if given.together else {}
    sqls = [queries.sql(n) for n in numbers]
    beside = in_duckdb(sqls, given.limit, given.threads, files(data)) if given.together and given.duckdb else []
    for at, number in enumerate(numbers):
        shown = ""
        for limited in (False, True):
            if (given.only_limited or given.together) and not limited:
                shown += f"{'':>26}"
                continue
            settings = limits if limited else {"threads": given.threads}
            answer = in_one[number] if given.together else measured(number, settings, data, small)
            shown += f"{answer.seconds:12.2f}{answer.cpu:7.2f}{answer.above / MB:7.0f}"
        theirs = (0.0, 0.0)
        if given.duckdb:
            found = beside[at] if beside else in_duckdb([sqls[at]], given.limit, given.threads, files(data))[0]
            theirs = found.seconds, found.cpu
        shown += f"{theirs[0]:12.2f}{theirs[1]:7.2f}" if given.duckdb else ""
        total = [t + s for t, s in zip(total, (answer.seconds, answer.cpu, *theirs), strict=True)]
        is_over = answer.above > 1.05 * limit
        told = verdict(number, answer, oracle)
        bad += is_over or told != "right"
        print(f"Q{number:<4}{shown}  {told}{', over' if is_over else ''}", flush=True)
    compared = f"; DuckDB {total[2]:.1f} s, processor {total[3]:.1f}" if given.duckdb else ""
    print(f"within {given.limit}: {total[0]:.1f} s, processor {total[1]:.1f}{compared}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
