"""The host's part of a hot run: CPU time of the process for the 22 queries of TPC-H over tables so small that kernels take none.

    taskset -c 0 python -m benchmarks.host [--device cpu] [--sf 0.01] [--runs 50] [--compiler auto]

Nothing is interpreted, and one thread runs. A query runs until nothing more is learned (on a GPU, until it is recorded). For
each query the least and the median of its runs behind that, in milliseconds. Page faults count too: a query whose tables of
groups take megabytes (9, 20) is up to twice as slow in one process as in another. To compare two versions, let them take turns,
and take the least of several processes.
"""

from __future__ import annotations

import argparse
import statistics
import time

import gquery
from benchmarks.literals import learn
from tpch import queries
from tpch.generate import files, generate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sf", type=float, default=0.01)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--compiler", default="auto")
    given = parser.parse_args()
    connection = gquery.connect(given.device, partitions=1, threads=1)
    connection.set("interpret_limit", 0)
    connection.set("compiler", given.compiler)
    for name, path in files(generate(given.sf, echo=False)).items():
        connection.sql(f"CREATE VIEW {name} AS SELECT * FROM '{path}'")
    least = median = 0.0
    for number in queries.NUMBERS:
        text = queries.sql(number)
        learn(connection, text)
        taken = [cpu_time(connection, text) for _ in range(given.runs)]
        least, median = least + min(taken), median + statistics.median(taken)
        print(f"{number:>3} {min(taken):8.3f} {statistics.median(taken):8.3f}")
    print(f"all {least:8.3f} {median:8.3f}")


def cpu_time(connection: gquery.Connection, text: str) -> float:
    """Milliseconds of a run, from the text to an Arrow table."""
    start = time.process_time()
    connection.sql(text).to_arrow_table()
    return 1e3 * (time.process_time() - start)


if __name__ == "__main__":
    main()
