"""The tables: ``groups`` for questions about groups, ``x``, ``small``, ``medium``, ``big`` for joins, ``series`` for windows.

Made of a seed, without NULLs. ``rows`` is that of the large tables. As in the benchmark, 100 labels stand in the short
columns, and a hundredth of the rows in the long ones. Labels that repeat come as dictionaries of Arrow; those of single rows
as text.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from benchmarks.h2o.chunks import Chunks, Make, Numbers

LABELS = 100
SMALL, MEDIUM = 1_000_000, 1_000  # rows of x for each row of these tables
SERIES_STEP = 100  # most steps of time from one row of the series to the next
SHORT, LONG = 3, 10  # digits of labels


def tables(rows: int, seed: int = 108) -> Iterator[tuple[str, pa.Table]]:
    """The tables, one after another, by name."""
    chunks = Chunks(seed)
    yield "groups", _groups(rows, chunks)
    yield from _joined(rows, chunks)
    yield "series", _series(rows, chunks)


def _groups(rows: int, chunks: Chunks) -> pa.Table:
    many = max(rows // LABELS, 1)
    short = [chunks.integers(1, LABELS + 1, rows) for _ in range(4)]
    long = [chunks.integers(1, many + 1, rows) for _ in range(2)]
    return pa.table(
        {
            "id1": chunks.labels(short[0], LABELS, SHORT),
            "id2": chunks.labels(short[1], LABELS, SHORT),
            "id3": chunks.labels(long[0], many, LONG),
            "id4": pa.array(short[2]),
            "id5": pa.array(short[3]),
            "id6": pa.array(long[1]),
            "v1": pa.array(chunks.integers(1, 6, rows)),
            "v2": pa.array(chunks.integers(1, 16, rows)),
            "v3": pa.array(chunks.uniform(rows)),
        }
    )


def _joined(rows: int, chunks: Chunks) -> Iterator[tuple[str, pa.Table]]:
    """Nine of ten keys of a table on the right are keys of ``x``, and the same the other way round."""
    sizes = {"small": max(rows // SMALL, 10), "medium": max(rows // MEDIUM, 10), "big": rows}
    keys = {name: chunks.permutation(size + size // 9) + np.int32(1) for name, size in sizes.items()}
    x: dict[str, pa.Array] = {}
    own: list[Numbers] = []
    for name, size in sizes.items():
        left = keys[name][:size]
        own.append(left if name == "big" else chunks.taken(left, rows))
    x |= {f"id{n}": pa.array(values) for n, values in enumerate(own, 1)}
    x |= {f"id{n + 3}": chunks.labels(own[n - 1], keys[name].size, LONG) for n, name in ((1, "small"), (2, "medium"))}
    x["id6"] = chunks.texts(own[2], LONG)
    x["v1"] = pa.array(chunks.uniform(rows))
    yield "x", pa.table(x)
    for n, (name, size) in enumerate(sizes.items(), 1):
        last = keys[name][-size:]
        right = chunks.array(size, np.int32, _shuffled(last, chunks.permutation(size)))
        columns: dict[str, pa.Array] = {f"id{n}": pa.array(right)}
        columns |= {f"id{k}": pa.array(chunks.taken(own[k - 1], size)) for k in range(1, n)}
        is_text = name == "big"
        columns[f"id{n + 3}"] = chunks.texts(right, LONG) if is_text else chunks.labels(right, keys[name].size, LONG)
        columns["v2"] = pa.array(chunks.uniform(size))
        yield name, pa.table(columns)


def _shuffled(values: Numbers, places: Numbers) -> Make:
    return lambda _, lo, hi: values[places[lo:hi]]


def _series(rows: int, chunks: Chunks) -> pa.Table:
    """Rows at rising times, with two random walks."""
    walks = [np.round(np.cumsum(chunks.normal(rows)), 6) for _ in range(2)]
    return pa.table(
        {
            "id1": pa.array(np.arange(rows, dtype=np.int64)),
            "id2": pa.array(np.cumsum(chunks.integers(1, SERIES_STEP + 1, rows), dtype=np.int64)),
            "v1": pa.array(walks[0]),
            "v2": pa.array(walks[1]),
        }
    )
