"""A sorted Parquet file asked for little: bytes read and time of a cold process, with DuckDB beside it.

    python -m benchmarks.files                             10 million rows in row groups of 122,880
    python -m benchmarks.files --rows 100_000_000          the file of the issue, 2.5 GB
    python -m benchmarks.files --row-group 1_048_576       PyArrow's own row groups
    python -m benchmarks.files --result arrow              both engines give an Arrow table, as gquery's users ask for

The file is written once into a scratch folder (``--folder`` keeps it). Every query runs in a process of its own, in turns with
DuckDB, on files that lie in the page cache; kernels are on disk from a run before. *MB read* are the bytes that the process
asked the operating system for while the query ran (``rchar`` of /proc/self/io), modules that it was the first to import among
them. *query* is from the text to the rows, *process* from the start of the interpreter to its end, each as wall time and as CPU
time, the least of the runs. Rows are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

WRITTEN_ROWS = 1_000_000
ENGINES = ("gquery", "duckdb")


@dataclass(frozen=True)
class Cold:
    """One query in a process of its own: its rows as text, bytes that it read, seconds."""

    rows: str
    bytes_read: int
    query: float
    query_cpu: float
    process: float
    process_cpu: float


def queries(path: Path, rows: int) -> Iterator[tuple[str, str]]:
    """Names and texts; ``rows`` is how many the file has."""
    low, some = rows // 3, max(rows // 1000, 1)
    where = f"WHERE k BETWEEN {low} AND {low + some - 1}"
    yield "a thousandth", f"SELECT count(*), sum(price), min(q), max(day) FROM '{path}' {where}"
    yield "a thousandth, all columns", f"SELECT * FROM '{path}' {where} AND q < 1 ORDER BY k"
    yield "by day", f"SELECT count(*), sum(price) FROM '{path}' WHERE day = DATE '1972-03-01'"
    yield "one key", f"SELECT * FROM '{path}' WHERE k = {low}"
    yield "none", f"SELECT count(*) FROM '{path}' WHERE k < 0"
    yield "limit", f"SELECT * FROM '{path}' LIMIT 3"
    yield "filter and limit", f"SELECT * FROM '{path}' WHERE q = 7 LIMIT 3"
    yield "everything", f"SELECT sum(price), max(q) FROM '{path}'"


def write(path: Path, rows: int, row_group: int) -> None:
    """A file sorted by ``k`` and ``day``; the other columns are random."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    writer = None
    for at in range(0, rows, WRITTEN_ROWS):
        k = np.arange(at, min(rows, at + WRITTEN_ROWS))
        n = len(k)
        table = pa.table(
            {
                "k": k,
                "day": pa.array((k // max(rows // 2000, 1)).astype("i4")).cast(pa.date32()),
                "price": rng.integers(0, 10_000_000, n),
                "q": rng.integers(0, 50, n).astype("i4"),
                "r": rng.random(n),
                "s": pa.array(rng.integers(0, 25, n)).cast(pa.string()),
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=row_group)
    if writer is not None:
        writer.close()


def run_one(engine: str, result: str, sql: str) -> None:
    """What the process that is measured does: prints its figures as JSON."""
    found: Any
    if engine == "duckdb":
        import duckdb

        oracle = duckdb.connect()
        before, began, cpu = _read_so_far(), time.perf_counter(), time.process_time()
        cursor = oracle.execute(sql)
        found = cursor.to_arrow_table() if result == "arrow" else cursor.fetchall()
    else:
        import gquery

        connection = gquery.connect("cpu")
        before, began, cpu = _read_so_far(), time.perf_counter(), time.process_time()
        relation = connection.sql(sql)
        found = relation.arrow() if result == "arrow" else relation.fetchall()
    figures = {"query": time.perf_counter() - began, "query_cpu": time.process_time() - cpu}
    figures["bytes_read"] = _read_so_far() - before
    process_cpu = time.process_time()
    rows = [tuple(map(_plain, row.values())) for row in found.to_pylist()] if result == "arrow" else found
    print(json.dumps(figures | {"rows": str(rows), "process_cpu": process_cpu}))


def _plain(value: Any) -> Any:
    """DuckDB's sums of integers are HUGEINT, which its Arrow tables hold as doubles or decimals."""
    return int(value) if isinstance(value, (float, Decimal)) and value == int(value) else value


def _read_so_far() -> int:
    with open("/proc/self/io", encoding="ascii") as file:
        return int(file.readline().split()[1])


def cold(engine: str, result: str, sql: str) -> Cold:
    """A query in a new process."""
    began = time.perf_counter()
    made = subprocess.run(
        [sys.executable, "-m", "benchmarks.files", "--within", engine, result, sql],
        env={
            k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"
        },  # an installed package has its bytecode
        check=True,
        capture_output=True,
        text=True,
    )
    return Cold(process=time.perf_counter() - began, **json.loads(made.stdout))


def number(text: str) -> int:
    """100_000_000 and 1e8; `benchmarks.cases.sizes` would import gquery into DuckDB's process."""
    return int(float(text))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.files", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=number, default=10_000_000, help="10_000_000 or 1e7")
    parser.add_argument("--row-group", type=number, default=122_880, help="rows of a row group (DuckDB's own: 122,880)")
    parser.add_argument("--runs", type=int, default=5, help="processes of each engine and query (5)")
    parser.add_argument("--folder", type=Path, help="where the file is kept")
    parser.add_argument("--result", choices=("rows", "arrow"), default="rows", help="Python's rows, or an Arrow table")
    parser.add_argument("--within", nargs=3, metavar=("ENGINE", "RESULT", "SQL"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.within is not None:
        run_one(*options.within)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"sorted-{options.rows}-{options.row_group}.parquet"
        if not path.exists():
            write(path, options.rows, options.row_group)
        return measure(path, options.rows, options.runs, options.result)


def measure(path: Path, rows: int, runs: int, result: str) -> int:
    """Print a line a query and engine; 1 where rows differ."""
    size, wrong = path.stat().st_size, 0
    print(f"{rows:,} rows, {size / 1e6:,.0f} MB")
    print(f"{'':34}{'MB read':>10}{'of file':>9}{'query ms':>10}{'CPU':>7}{'process ms':>12}{'CPU':>7}")
    for name, sql in queries(path, rows):
        cold("gquery", result, sql)  # leaves its kernels on disk
        made = [{engine: cold(engine, result, sql) for engine in ENGINES} for _ in range(runs)]
        for engine in ENGINES:
            of = [run[engine] for run in made]
            read = min(c.bytes_read for c in of)
            times = [
                1e3 * min(t) for t in zip(*((c.query, c.query_cpu, c.process, c.process_cpu) for c in of), strict=True)
            ]
            line = f"{times[0]:10.0f}{times[1]:7.0f}{times[2]:12.0f}{times[3]:7.0f}"
            print(
                f"{name if engine == 'gquery' else '':26}{engine:8}{read / 1e6:10.2f}{read / size:9.2%}{line}",
                flush=True,
            )
        if len({run[engine].rows for run in made for engine in ENGINES}) > 1:
            print("  WRONG: the rows differ")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
