"""A group-by, a sort and a join whose states need ten times the memory limit, from Parquet on a CPU: each is made in parts.

    python -m benchmarks.spilled_sinks                     20 million groups, 40 million rows sorted, 30 joined with 30 million
    python -m benchmarks.spilled_sinks --share 0.01 --limit 30MB

A line has the seconds of a query under the limit and those of the processor (in a process of its own, kernels compiled), the most
memory above a warmed-up idle connection, in how many parts EXPLAIN ANALYZE says that its sinks were made, and DuckDB's seconds
under the same limit, threads and files. Answers are compared with DuckDB's.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.duckdb_beside import in_duckdb
from benchmarks.limits import bytes_of
from tests.support.resident import Limited

ROWS = {"groups": 200_000_000, "rows": 400_000_000, "probed": 300_000_000, "built": 300_000_000}
QUERIES = {
    "group by": "SELECT count(*), sum(n), sum(s), min(k) FROM (SELECT k, count(*) AS n, sum(v) AS s FROM groups GROUP BY k)",
    "order by": "SELECT k, v FROM rows ORDER BY k, v LIMIT 10 OFFSET {half}",
    "join": "SELECT count(*), sum(probed.v), sum(built.v) FROM probed JOIN built ON probed.k = built.k",
}


def write(path: Path, rows: int, seed: int, chunk: int = 1 << 20) -> None:
    """A file with a column of keys, as many as rows and most of them once, spread over 48 bits, and one of values."""
    rng = np.random.default_rng(seed)
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64())])
    step = (1 << 48) // rows
    with pq.ParquetWriter(path, schema) as writer:
        for low in range(0, rows, chunk):
            n = min(chunk, rows - low)
            keys = rng.integers(0, rows, n) * step
            writer.write_table(pa.table({"k": keys, "v": rng.integers(0, 1000, n)}, schema=schema))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--share", type=float, default=0.1, help="of 200, 400 and 300 million rows")
    parser.add_argument("--limit", default="100MB")
    parser.add_argument("--threads", default="2")
    given = parser.parse_args()
    limit = bytes_of(given.limit)
    bad = 0
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        paths = {name: Path(folder) / f"{name}.parquet" for name in ROWS}
        small = {name: str(Path(folder) / f"small_{name}.parquet") for name in ROWS}
        for seed, (name, rows) in enumerate(ROWS.items()):
            write(paths[name], int(rows * given.share), seed)
            write(Path(small[name]), 10_000, seed)
        views = {name: str(path) for name, path in paths.items()}
        half = int(ROWS["rows"] * given.share) // 2
        print(f"{'':10}{given.limit + ': s':>12}{'cpu':>8}{'MB':>7}{'parts':>7}{'DuckDB: s':>12}{'cpu':>8}")
        for name, text in QUERIES.items():
            sql = text.format(half=half)
            warm = [(small, text.format(half=10))]
            settings = {"memory_limit": given.limit, "threads": given.threads}
            for watched in (False, True):
                with Limited(settings, views, warm) as process:
                    if not watched:
                        told = str(process.run(f"EXPLAIN ANALYZE {sql}").rows)
                        continue
                    answer = process.run(sql)
            parts = [int(n.replace(",", "")) for n in re.findall(r"made in ([\d,]+) parts", told)]
            (theirs,) = in_duckdb([sql], given.limit, given.threads, paths)
            is_right = not answer.error and answer.rows == theirs.rows
            bad += not is_right or not parts or answer.above > 1.05 * limit
            print(
                f"{name:10}{answer.seconds:12.1f}{answer.cpu:8.1f}{answer.above / 1e6:7.0f}{sum(parts):7}"
                f"{theirs.seconds:12.1f}{theirs.cpu:8.1f}  {answer.error or ('right' if is_right else 'wrong')}  {theirs.error}",
                flush=True,
            )
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
