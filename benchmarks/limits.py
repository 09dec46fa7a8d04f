"""TPC-H from Parquet under a memory limit: what each query takes, watched from outside, and whether its answer is right.

    python -m benchmarks.limits --limit 100MB                    the 22 queries at SF1, each in a process of its own
    python -m benchmarks.limits --limit 40MB --queries 1,6 --sf 1

A line has, for a query without a limit and under it, the seconds of its first run (with reading), those of the processor, and the
most memory above a warmed-up idle connection (anonymous and shared, every 5 ms, `tests.support.resident`). ``over`` marks what
took more than the limit and 5 %. The process is warmed up by the same queries over SF0.01; a run before, unwatched, has its
kernels compiled. Answers are compared with those of DuckDB (`tpch.oracle`).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

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


def _bytes(limit: str) -> int:
    import gquery

    with gquery.connect(device="python", memory_limit=limit) as connection:
        return connection.device.total_bytes


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sf", type=float, default=1.0)
    parser.add_argument("--limit", default="100MB")
    parser.add_argument("--queries", default="1-22")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--only-limited", action="store_true", help="do not run them without a limit beside")
    given = parser.parse_args()
    limit = _bytes(given.limit)
    data, small = generate(given.sf), generate(0.01)
    oracle = Oracle(given.sf, data)
    oracle.prepare(queries.NUMBERS)
    print(f"{'':5}{'no limit: s':>12}{'cpu':>7}{'MB':>7}{given.limit + ': s':>12}{'cpu':>7}{'MB':>7}")
    bad = 0
    for number in queries.parse_numbers(given.queries):
        shown = ""
        for limited in (False, True):
            if given.only_limited and not limited:
                shown += f"{'':>26}"
                continue
            settings = {"threads": given.threads} | ({"memory_limit": given.limit} if limited else {})
            answer = measured(number, settings, data, small)
            shown += f"{answer.seconds:12.2f}{answer.cpu:7.2f}{answer.above / MB:7.0f}"
        is_over = answer.above > 1.05 * limit
        told = verdict(number, answer, oracle)
        bad += is_over or told != "right"
        print(f"Q{number:<4}{shown}  {told}{', over' if is_over else ''}", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
