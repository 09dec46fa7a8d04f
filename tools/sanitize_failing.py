"""Run statements whose values do not fit their types on a GPU, for NVIDIA's compute-sanitizer:

    compute-sanitizer --tool memcheck python3 tools/sanitize_failing.py

A value that fails a check is known before the query ends, and raised behind it: until then it may be the index of a group, of a
build side or of a bitmap. Each statement runs twice, with few rows and with many, and must raise an error of data; behind each
a query must answer. CuPy's memory pool is switched off, so that every array is an allocation of its own. The exit code is 0 if
all do so.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pyarrow as pa

import gquery

KEYS = ("s * s", "s + s", "CAST(b AS SMALLINT)", "CAST(b AS UTINYINT)", "CAST(f AS SMALLINT)", "CAST(n AS SMALLINT)")
FORMS = (
    "SELECT {key}, count(*) FROM t GROUP BY 1",
    "SELECT {key}, s % 4, sum(b), min(f) FROM t GROUP BY 1, 2",
    "SELECT {key}, sum(f) FROM t GROUP BY 1",
    "SELECT DISTINCT {key} FROM t",
    "SELECT count(DISTINCT {key}) FROM t",
    "SELECT count(*) FROM t WHERE s IN (SELECT {key} FROM t)",
    "SELECT count(*) FROM t WHERE s NOT IN (SELECT {key} FROM t)",
    "SELECT count(*) FROM t JOIN (SELECT {key} k, max(b) m FROM t GROUP BY 1) u ON t.s = u.k WHERE m > 5",
    "SELECT {key} FROM t ORDER BY 1 LIMIT 3",
)


def _table(rows: int) -> pa.Table:
    s = np.arange(rows) % 30_000 + (30_000 - min(rows, 30_000))
    return pa.table(
        {
            "s": pa.array(s, pa.int16()),
            "b": pa.array(s.astype(np.int64) * 7),
            "f": pa.array(s * 7.25),
            "n": pa.array(np.ma.masked_array(s.astype(np.int64) * 7, s % 3 == 0)),
        }
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, nargs="*", default=[400, 30_000, 300_000])
    parser.add_argument("--pool", action="store_true", help="keep CuPy's memory pool: faster, and sees less")
    given = parser.parse_args()
    if given.device.startswith("cuda") and not given.pool:
        import cupy

        cupy.cuda.set_allocator(None)
        cupy.cuda.set_pinned_memory_allocator(None)
    wrong = 0
    for rows in given.rows:
        for partitions in (1, 3):
            connection = gquery.connect(device=given.device, partitions=partitions)
            connection.sql("SET interpret_limit = 0")
            connection.register("t", _table(rows))
            for sql in (form.format(key=key) for form in FORMS for key in KEYS):
                wrong += sum(_is_wrong(connection, sql, rows) for _ in range(2))
        print(f"{rows} rows: {len(FORMS) * len(KEYS)} statements, {wrong} wrong so far", flush=True)
    return 1 if wrong else 0


def _is_wrong(connection: gquery.Connection, sql: str, rows: int) -> bool:
    """Whether the statement does anything but raise an error of data that leaves the connection as it was."""
    try:
        found: object = len(connection.sql(sql).fetchall())
    except gquery.DataError:
        found = None
    except gquery.Error as error:
        found = error
    try:
        answer: object = connection.sql("SELECT count(*), max(s) FROM t WHERE b > 7").fetchall()
    except gquery.Error as error:
        answer = error
    right = [(rows - (2 * rows // 30_000 if rows >= 30_000 else 0), 29_999)]
    if found is not None or answer != right:
        print(f"{sql}\n  gave {found}, then {answer}, expected an error of data, then {right}", flush=True)
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
