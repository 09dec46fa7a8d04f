"""Every text, cast, date and regex function beside DuckDB's, over a table of as many rows.

    python -m benchmarks.functions                         10 million rows, all functions, a table in Markdown
    python -m benchmarks.functions --rows 1e6 --only regexp

Both engines answer ``SELECT <expression> AS r FROM t`` as an Arrow table, on the same number of threads, one after the other
in each round; times are medians, of CPU time in the last column. The answers are compared. The exit code is 1 where two differ.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import gquery
from benchmarks.cases.sizes import number

ROWS, ROUNDS = 10_000_000, 3
WANTED = 2.0  # times DuckDB's time
_PIECE = 1 << 20
_ANY = frozenset({"any_value"})  # DuckDB's threads give the value of any row

TEXT = {
    "length": "length(s)", "strlen": "strlen(s)", "ascii": "ascii(s)", "unicode": "unicode(s)",
    "starts_with": "starts_with(s, 'Item 7')", "ends_with": "ends_with(s, '7')", "contains": "contains(s, '77')",
    "strpos": "strpos(s, 'of')", "substring": "substring(s, 3, 4)", "left": "left(s, 3)", "right": "right(s, 3)",
    "split_part": "split_part(s, ' ', 2)",
    "trim": "trim(s)", "ltrim": "ltrim(s)", "rtrim": "rtrim(s)", "trim (set)": "trim(s, 'Im7')",
    "ltrim (set)": "ltrim(s, 'Im7')", "rtrim (set)": "rtrim(s, 'Im7')", "lower": "lower(s)", "upper": "upper(s)",
    "upper (beyond ASCII)": "upper(u)", "reverse": "reverse(s)", "reverse (beyond ASCII)": "reverse(u)",
    "||": "s || '-' || u", "concat": "concat(s, n)", "concat_ws": "concat_ws('-', s, u)",
    "replace": "replace(s, '1', 'xx')", "repeat": "repeat(s, 3)", "lpad": "lpad(s, 30, '*')",
    "rpad": "rpad(s, 30, '*')", "rpad (longer fill)": "rpad(s, 30, '<>')", "chr": "chr(65 + (n % 26)::INTEGER)",
    "md5": "md5(s)", "LIKE": "s LIKE 'Item%7'", "LIKE (parts)": "s LIKE '%77% of %'", "LIKE (column)": "s LIKE p",
    "ILIKE": "s ILIKE '%ITEM%7'", "ILIKE (beyond ASCII)": "u ILIKE '%É%7'",
    "like_escape": "like_escape(s, 'Item%7', '$')", "not_like_escape": "not_like_escape(s, 'Item%7', '$')",
    "ilike_escape": "ilike_escape(s, '%ITEM%7', '$')", "not_ilike_escape": "not_ilike_escape(s, '%ITEM%7', '$')",
    "min": "min(s)", "max": "max(s)",
    "any_value": "any_value(s)",
}  # fmt: skip
REGULAR = {
    "regexp_matches": "regexp_matches(s, 'm.*7')", "regexp_matches (case)": "regexp_matches(s, 'ITEM.*7$', 'i')",
    "regexp_full_match": "regexp_full_match(s, '.*7')", "SIMILAR TO": "s SIMILAR TO 'Item [0-9]+ of 7.*'",
    "regexp_replace": "regexp_replace(s, '[0-9]+', '#')", "regexp_replace (all)": "regexp_replace(s, '[0-9]+', '#', 'g')",
    "regexp_extract": "regexp_extract(s, '[0-9]+')", "regexp_extract (group)": "regexp_extract(s, '([0-9]+) of', 1)",
}  # fmt: skip
_TYPES = {
    "b": "BOOLEAN",
    "i": "INTEGER",
    "n": "BIGINT",
    "x": "DOUBLE",
    "m": "DECIMAL(15,2)",
    "d": "DATE",
    "ts": "TIMESTAMP",
}
CASTS = {f"{type_} to VARCHAR": f"{name}::VARCHAR" for name, type_ in _TYPES.items()}
CASTS |= {f"VARCHAR to {type_}": f"{name}_text::{type_}" for name, type_ in _TYPES.items()}
CASTS |= {
    "VARCHAR to INTEGER (TRY, none is)": "TRY_CAST(s AS INTEGER)", "VARCHAR to INTEGER (rounded)": "m_text::INTEGER",
    "DATE to TIMESTAMP": "d::TIMESTAMP", "TIMESTAMP to DATE": "ts::DATE", "DOUBLE to BIGINT": "x::BIGINT",
    "BIGINT to DOUBLE": "n::DOUBLE", "DECIMAL to INTEGER": "m::INTEGER", "INTEGER to DECIMAL": "i::DECIMAL(18,2)",
}  # fmt: skip
DATES = {
    name: f"{name}({'ts' if name in ('hour', 'minute', 'second', 'millisecond', 'microsecond', 'epoch') else 'd'})"
    for name in ("year", "month", "day", "quarter", "week", "dayofweek", "isodow", "dayofyear", "decade", "century",
                 "millennium", "hour", "minute", "second", "millisecond", "microsecond", "epoch", "last_day", "dayname",
                 "monthname", "isfinite")
}  # fmt: skip
DATES |= {
    "epoch_ms": "epoch_ms(ts)", "epoch_us": "epoch_us(ts)", "date_part": "date_part('month', d)",
    "date_trunc": "date_trunc('month', d)", "date_trunc (hour)": "date_trunc('hour', ts)",
    "date_diff": "date_diff('month', d, DATE '2000-01-01')", "date_add": "date_add(d, INTERVAL 1 MONTH)",
    "make_date": "make_date(1990 + i % 30, 1 + i % 12, 1 + i % 28)", "strftime (date)": "strftime(d, '%d.%m.%Y')",
    "strftime (timestamp)": "strftime(ts, '%Y-%m-%d %H:%M:%S')",
    "strftime (names)": "strftime(ts, '%A, %-d %B %Y, %I:%M %p')",
}  # fmt: skip
SUBJECTS = {"Text": TEXT, "Regular expressions": REGULAR, "Casts": CASTS, "Dates": DATES}


def table(rows: int) -> pa.Table:
    """Columns of every type, and their values as text."""
    row = np.arange(rows)
    mixed = row * 7919 % 1_000_003
    n = pa.array(mixed)
    start = np.datetime64("1992-01-01", "us").astype(np.int64)
    of = pc.binary_join_element_wise(" of ", pa.array(row % 977).cast(pa.string()), "")
    cents = np.stack([row * 37 % 1_000_000, np.zeros(rows, np.int64)], axis=1)
    columns = {
        "b": pa.array(row % 3 == 0),
        "i": pa.array((row % 100_000).astype(np.int32)),
        "n": n,
        "x": pa.array((row % 1000) / 7.0),
        "m": pa.Array.from_buffers(pa.decimal128(15, 2), rows, [None, pa.py_buffer(cents)]),
        "d": pa.array((8035 + row % 9000).astype(np.int32)).view(pa.date32()),
        "ts": pa.array(start + row * 1_234_567 % 10**15).view(pa.timestamp("us")),
        "s": pc.binary_join_element_wise("Item ", n.cast(pa.string()), of, ""),
        "u": pc.binary_join_element_wise("Pièce ", n.cast(pa.string()), of, ""),
        "p": pc.binary_join_element_wise("%", pa.array(row % 977).cast(pa.string()), "%", ""),
    }
    return pa.table(columns)


@dataclass(frozen=True)
class Compared:
    """Seconds of both engines for one expression, how the answers differ (empty: they do not), and how often our CPU time
    holds theirs, which tells on a machine that others use at the same time."""

    name: str
    sql: str
    ours: float
    theirs: float
    wrong: str
    cpu: float

    @property
    def factor(self) -> float:
        return self.ours / self.theirs


def compare(
    name: str, sql: str, ours: Callable[[str], pa.Table], theirs: Callable[[str], pa.Table], rounds: int
) -> Compared:
    """Time one expression in both engines, by turns, after a run of each whose answers are compared."""
    query = f"SELECT {sql} AS r FROM t"
    try:
        a, b = ours(query).column(0), theirs(query).column(0)
        wrong = difference(a, b) if name not in _ANY else ""
        del a, b
    except gquery.Error as error:
        return Compared(name, sql, float("inf"), 1.0, f"{type(error).__name__}: {error}", float("inf"))
    seconds: dict[Callable[[str], pa.Table], list[tuple[float, float]]] = {ours: [], theirs: []}
    for _ in range(rounds):
        for run, times in seconds.items():
            start, cpu = time.perf_counter(), time.process_time()
            run(query)
            times.append((time.perf_counter() - start, time.process_time() - cpu))
    (our, our_cpu), (their, their_cpu) = (
        [statistics.median(each) for each in zip(*seconds[f], strict=True)] for f in (ours, theirs)
    )
    return Compared(name, sql, our, their, wrong, our_cpu / max(their_cpu, 1e-6))


def difference(ours: pa.ChunkedArray, theirs: pa.ChunkedArray) -> str:
    """How two columns differ; floats may in their last digits."""
    if len(ours) != len(theirs):
        return f"{len(ours)} rows, not {len(theirs)}"
    for at in range(0, len(ours), _PIECE):
        a, b = (x.slice(at, _PIECE).combine_chunks() for x in (ours, theirs))
        if a.type != b.type:
            a = a.cast(b.type)
        if a.equals(b):
            continue
        if pa.types.is_floating(b.type) and np.allclose(
            a.to_numpy(False), b.to_numpy(False), rtol=1e-9, equal_nan=True
        ):
            continue
        first = next(n for n in range(len(a)) if a[n] != b[n])
        return f"row {at + first}: {a[first]!s}, not {b[first]!s}"
    return ""


def chosen(only: str) -> Iterator[tuple[str, str, str]]:
    """(subject, name, expression) of the functions whose name or expression holds a text."""
    for subject, cases in SUBJECTS.items():
        for name, sql in cases.items():
            if only.lower() in name.lower() or only.lower() in sql.lower():
                yield subject, name, sql


def line(r: Compared) -> str:
    """A result as a row of a table in Markdown."""
    over = " (over)" if r.factor > WANTED else ""
    wrong = f" WRONG: {r.wrong}" if r.wrong else ""
    name, sql = (text.replace("|", "\\|") for text in (r.name, r.sql))
    return f"| {name} | `{sql}` | {r.ours:.3f} | {r.theirs:.3f} | {r.factor:.2f}{over}{wrong} | {r.cpu:.2f} |"


def run(rows: int, threads: int, only: str, rounds: int) -> int:
    """Measure and print; 1 where an answer is wrong."""
    with gquery.connect(device="cpu") as connection, duckdb.connect(config={"threads": threads}) as oracle:
        connection.sql(f"SET threads = {threads}")
        data = table(rows)
        oracle.register("data", data)
        texts = ", ".join(f"CAST({name} AS VARCHAR) AS {name}_text" for name in _TYPES)
        oracle.execute(f"CREATE TABLE t AS SELECT *, {texts} FROM data")
        connection.register("t", oracle.execute("FROM t").to_arrow_table())
        del data
        print(f"{rows:,} rows, {threads} threads, medians of {rounds} runs")
        found: list[Compared] = []
        for subject in SUBJECTS:
            wanted = [(n, s) for at, n, s in chosen(only) if at == subject]
            if wanted:
                print(f"\n| {subject} | expression | gquery s | DuckDB s | times | CPU |\n|---|---|---|---|---|---|")
            for name, sql in wanted:
                found.append(
                    compare(
                        name,
                        sql,
                        lambda q: connection.sql(q).to_arrow_table(),
                        lambda q: oracle.execute(q).to_arrow_table(),
                        rounds,
                    )
                )
                print(line(found[-1]), flush=True)
        over = [r.name for r in found if r.factor > WANTED]
        print(f"\n{len(found)} functions, over {WANTED:g} times DuckDB's time: {', '.join(over) or 'none'}")
    return int(any(r.wrong for r in found))


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison; the exit code."""
    import os

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.functions", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=number, default=ROWS, help="1000000, 1e6 or 1M")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of both engines")
    parser.add_argument("--only", default="", metavar="TEXT", help="functions whose name or expression holds this")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"runs of each ({ROUNDS})")
    options = parser.parse_args(arguments)
    return run(options.rows, options.threads, options.only, options.rounds)


if __name__ == "__main__":
    sys.exit(main())
