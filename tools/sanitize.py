"""Run the 22 TPC-H queries on a GPU, compiled and in one process, for NVIDIA's compute-sanitizer:

    compute-sanitizer --tool memcheck python3 tools/sanitize.py data/sf0.01
    compute-sanitizer --tool racecheck python3 tools/sanitize.py data/sf0.01

Each runs twice: a second run speculates on what the first has seen (`execution.speculation`). CuPy's memory pool is switched off,
so that every array is an allocation of its own, of whole words, since kernels read those; an access behind it is seen. The exit
code is 0 if all answers are right.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tpch import queries
from tpch.engines import GQueryEngine, Options
from tpch.oracle import Oracle
from tpch.validate import difference, order_columns

WORD = 8  # bytes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", default=Path("data/sf0.01"), help="folder of the Parquet files")
    parser.add_argument("--sf", type=float, default=0.01, help="their scale factor")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--queries", default="1-22", help="as in 1,3-5")
    parser.add_argument("--pool", action="store_true", help="keep CuPy's memory pool: faster, and sees less")
    given = parser.parse_args()
    numbers = queries.parse_numbers(given.queries)
    if given.device.startswith("cuda") and not given.pool:
        import cupy

        cupy.cuda.set_allocator(lambda size: cupy.cuda.memory._malloc(-(-size // WORD) * WORD))
        cupy.cuda.set_pinned_memory_allocator(None)
    engine = GQueryEngine(given.data, Options(given.device, given.partitions, None, 0))
    print(engine.description, flush=True)
    right = 0
    start = time.perf_counter()
    oracle = Oracle(given.sf, given.data)
    oracle.prepare(numbers)
    for number in numbers:
        sql, began = queries.sql(number), time.perf_counter()
        engine.run(sql)
        answer = engine.run(sql)
        seconds, rows = time.perf_counter() - began, answer.rows
        want = oracle.expected(number, answer.types)
        order = order_columns(sql, answer.table.column_names)
        wrong = "no expected answer" if want is None else difference(rows, want, order)
        right += wrong is None
        print(f"Q{number}: {len(rows)} rows, {seconds:.2f} s, {wrong or 'right'}", flush=True)
    print(f"{right} of {len(numbers)} right in {time.perf_counter() - start:.0f} s")
    return 0 if right == len(numbers) else 1


if __name__ == "__main__":
    sys.exit(main())
