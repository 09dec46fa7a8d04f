"""A Python function in a filter against the built-in expression that says the same, over 100 million rows.

    python benchmarks/udf.py                       on the best device
    python benchmarks/udf.py --rows 1000000 --device cpu

Prints the median of hot runs of both, their ratio, and that each is one kernel; exit code 1 where the ratio is over
1.2 or the answers differ. Columns are made on the device: int32 and float64, 12 bytes a row.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

import gquery
from gquery import udf

LIMIT = 1.2
WARM_SECONDS = 0.5


@udf
def worth(price: float, quantity: int) -> float:
    return price * (1 - 0.05) + quantity * 2.5


@udf
def expensive(price: float, quantity: int) -> bool:
    if quantity > 25:
        return price * 0.9 > 400
    return price > 400


PAIRS = {
    "arithmetic": (
        "SELECT count(*), sum(quantity) FROM items WHERE worth(price, quantity) > 500",
        "SELECT count(*), sum(quantity) FROM items WHERE price * (1 - 0.05e0) + quantity * 2.5e0 > 500",
    ),
    "branches": (
        "SELECT count(*), sum(quantity) FROM items WHERE expensive(price, quantity)",
        "SELECT count(*), sum(quantity) FROM items"
        " WHERE CASE WHEN quantity > 25 THEN price * 0.9e0 > 400 ELSE price > 400 END",
    ),
}


def columns(rows: int, on_gpu: bool) -> dict[str, Any]:
    """Columns where the connection computes."""
    if on_gpu:
        import cupy as xp
    else:
        import numpy as xp
    i = xp.arange(rows, dtype=xp.int64)
    return {"price": (i * 7919 % 100_003).astype(xp.float64) / 100, "quantity": (i * 31 % 50).astype(xp.int32)}


def seconds(
    connection: gquery.Connection, queries: Sequence[str], runs: int
) -> list[tuple[float, list[tuple[Any, ...]]]]:
    """The median of hot runs of each query, and its answer. They take turns, so that both meet the same clocks."""
    times: list[list[float]] = [[] for _ in queries]
    rows: list[list[tuple[Any, ...]]] = [[] for _ in queries]
    warm = time.perf_counter() + WARM_SECONDS
    while len(times[0]) < runs:
        for n, query in enumerate(queries):
            start = time.perf_counter()
            rows[n] = connection.sql(query).fetchall()
            if start > warm:
                times[n].append(time.perf_counter() - start)
    return [(statistics.median(t), r) for t, r in zip(times, rows, strict=True)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--runs", type=int, default=21)
    options = parser.parse_args()
    connection = gquery.connect(device=options.device)
    connection.register("items", columns(options.rows, connection.device_name.startswith("cuda")))
    connection.create_function(worth).create_function(expensive)
    failed = False
    print(f"{options.rows:,} rows on {connection.device_name}, medians of {options.runs} hot runs")
    for name, (own, built_in) in PAIRS.items():
        kernels = [len(connection.kernels(q)) for q in (own, built_in)]
        (mine, rows), (theirs, expected) = seconds(connection, (own, built_in), options.runs)
        failed |= rows != expected or mine > LIMIT * theirs or kernels[0] != kernels[1]
        bandwidth = options.rows * 12 / mine / 1e9
        print(
            f"{name:12} function {mine * 1e3:8.3f} ms   built in {theirs * 1e3:8.3f} ms   ratio {mine / theirs:5.2f}   "
            f"{bandwidth:6.0f} GB/s   kernels {kernels[0]} and {kernels[1]}   answers {'equal' if rows == expected else 'DIFFER'}"
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
