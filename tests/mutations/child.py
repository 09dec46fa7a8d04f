"""The process that reads damaged files: ``python -m tests.mutations.child``, one request a line, one answer a line.

Before each step it says what it is about to do, so that the parent knows where it died. The reference (PyArrow, DuckDB) runs
first: where that ends the process, the fault is not gquery's. Kernels read footers and pages of about every other file.
"""

from __future__ import annotations

import json
import resource
import sys
import traceback
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import gquery
from gquery.columns import page_values
from gquery.kernels.builtin import parquet_pages
from gquery.kernels.targets import get_target
from tests.mutations.reference import readings

MEMORY = 6 << 30  # bytes of address space: a size that was damaged must not take the machine's


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    connection = gquery.connect(device="python")
    for kernel in parquet_pages.KERNELS:
        get_target("cpu").compile(kernel.kernel)
    connection.register("good", pa.table({"k": [1, 2, 2, None], "s": ["a", "b", "b", "c"]}))
    for line in sys.stdin:
        request = json.loads(line)
        path, kind = request["path"], request["kind"]
        by_kernels = zlib.crc32(Path(path).read_bytes()) % 2
        page_values.use_page_kernels(parquet_pages.find_kernels if by_kernels else lambda: None)
        say("reference")
        references = readings(path, kind) if request["reference"] else []
        say("gquery")
        outcome, detail = check(connection, path, kind, references)
        say("done", outcome=outcome, detail=detail)


def say(step: str, **more: Any) -> None:
    print(json.dumps({"step": step, **more}), flush=True)


def check(connection: gquery.Connection, path: str, kind: str, references: list[Any]) -> tuple[str, str]:
    """What became of a file: "right", "refused", or what is wrong and why."""
    try:
        outcome, detail = read(connection, path, kind, references)
    except Exception:
        return "foreign error", traceback.format_exc()
    rows = connection.sql("SELECT s, count(*), sum(k) FROM good GROUP BY s ORDER BY s").fetchall()
    if rows != [("a", 1, 1), ("b", 2, 4), ("c", 1, None)]:
        return "connection spoiled", repr(rows)
    return outcome, detail


def read(connection: gquery.Connection, path: str, kind: str, references: list[Any]) -> tuple[str, str]:
    source = f"read_{kind}('{path}')"
    try:
        relation = connection.sql(f"SELECT * FROM {source}")
        mine = relation.to_arrow_table()
    except gquery.Error as error:
        if isinstance(error, gquery.InternalError):
            return "internal error", str(error)
        use(connection, source, connection_columns(connection, source))
        return "refused", str(error)
    mine.validate(full=True)
    use(connection, source, relation.columns)
    if not references:
        return "right", "nothing to compare with"
    reasons = [difference(mine, theirs) for theirs in references if not isinstance(theirs, Exception)]
    if "" in reasons:
        return "right", ""
    if not reasons:
        return (
            "answered",
            f"{mine.schema.names} of {mine.num_rows} rows; the others: {[str(r)[:200] for r in references]}",
        )
    return "different", " / ".join(reasons)


def connection_columns(connection: gquery.Connection, source: str) -> list[str]:
    try:
        return connection.sql(f"SELECT * FROM {source} LIMIT 0").columns
    except gquery.Error:
        return []


def use(connection: gquery.Connection, source: str, names: list[str]) -> None:
    """Queries that rest on what was proved of the columns: groups, joins with themselves, sorts, comparisons."""
    for name in names:
        c = '"' + name.replace('"', '""') + '"'
        for query in (
            f"SELECT min({c}), max({c}), count({c}), count(DISTINCT {c}) FROM {source}",
            f"SELECT {c}, count(*) FROM {source} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 3",
            f"SELECT count(*) FROM {source} a JOIN {source} b USING ({c})",
        ):
            try:
                connection.sql(query).fetchall()
            except gquery.InternalError:
                raise
            except gquery.Error:
                continue


def difference(mine: pa.Table, theirs: pa.Table) -> str:
    """Where two tables differ; the empty text for nowhere."""
    if mine.num_rows != theirs.num_rows:
        return f"{mine.num_rows} rows against {theirs.num_rows}"
    if mine.num_columns != theirs.num_columns:
        return f"columns {mine.column_names} against {theirs.column_names}"
    for number, name in enumerate(theirs.column_names):
        one, other = mine.column(number), theirs.column(number)
        try:
            if not same(one, other):
                return f"{name}: {one.slice(0, 5).to_pylist()} {one.type} against {other.slice(0, 5).to_pylist()} {other.type}"
        except (pa.ArrowException, ValueError, OverflowError, TypeError) as error:
            return f"{name}: {error}"
    return ""


def same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    if pa.types.is_dictionary(other.type):
        other = other.cast(other.type.value_type)
    if pa.types.is_null(other.type):
        return bool(one.null_count == len(one))
    if not len(one):
        return True
    if one.type != other.type:
        other = other.cast(one.type)
    if pa.types.is_floating(one.type):
        if pa.types.is_float16(one.type):
            one, other = one.cast(pa.float32()), other.cast(pa.float32())
        both = pc.and_(pc.is_nan(one), pc.is_nan(other))
        equal = pc.or_kleene(pc.fill_null(both, False), pc.equal(one, other))
        return bool(one.is_null().equals(other.is_null()) and pc.all(pc.fill_null(equal, True)).as_py())
    return bool(one.equals(other))


if __name__ == "__main__":
    main()
