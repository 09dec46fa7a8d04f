"""The tables: ``groups`` for questions about groups, ``x``, ``small``, ``medium``, ``big`` for joins, ``series`` for windows.

Made of a seed, without NULLs. ``rows`` is that of the large tables. As in the benchmark, 100 labels stand in the short
columns, and a hundredth of the rows in the long ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

LABELS = 100
SMALL, MEDIUM = 1_000_000, 1_000  # rows of x for each row of these tables
SERIES_STEP = 100  # most steps of time from one row of the series to the next


def tables(rows: int, seed: int = 108) -> Iterator[tuple[str, pa.Table]]:
    """The tables, one after another, by name."""
    random = np.random.default_rng(seed)
    yield "groups", _groups(rows, random)
    yield from _joined(rows, random)
    yield "series", _series(rows, random)


def _labels(numbers: np.ndarray[Any, Any], width: int) -> pa.Array:
    """``id`` and the number in so many digits, as text."""
    digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")
    return pc.binary_join_element_wise("id", digits, "")


def _groups(rows: int, random: np.random.Generator) -> pa.Table:
    many = max(rows // LABELS, 1)
    short = [random.integers(1, LABELS + 1, rows) for _ in range(4)]
    long = [random.integers(1, many + 1, rows) for _ in range(2)]
    return pa.table(
        {
            "id1": _labels(short[0], 3),
            "id2": _labels(short[1], 3),
            "id3": _labels(long[0], 10),
            "id4": pa.array(short[2].astype(np.int32)),
            "id5": pa.array(short[3].astype(np.int32)),
            "id6": pa.array(long[1].astype(np.int32)),
            "v1": pa.array(random.integers(1, 6, rows).astype(np.int32)),
            "v2": pa.array(random.integers(1, 16, rows).astype(np.int32)),
            "v3": pa.array(np.round(random.uniform(0, 100, rows), 6)),
        }
    )


def _joined(rows: int, random: np.random.Generator) -> Iterator[tuple[str, pa.Table]]:
    """Nine of ten keys of a table on the right are keys of ``x``, and the same the other way round."""
    sizes = {"small": max(rows // SMALL, 10), "medium": max(rows // MEDIUM, 10), "big": rows}
    keys = {name: random.permutation(size + size // 9) + 1 for name, size in sizes.items()}
    x: dict[str, pa.Array] = {}
    for n, (name, size) in enumerate(sizes.items(), 1):
        left = keys[name][:size]
        own = left if name == "big" else random.choice(left, rows)
        x[f"id{n}"] = pa.array(own.astype(np.int32))
    for n in range(1, 4):
        x[f"id{n + 3}"] = _labels(x[f"id{n}"].to_numpy(), 1)
    x["v1"] = pa.array(np.round(random.uniform(0, 100, rows), 6))
    yield "x", pa.table(x)
    for n, (name, size) in enumerate(sizes.items(), 1):
        right = random.permutation(keys[name][-size:])
        columns: dict[str, pa.Array] = {f"id{n}": pa.array(right.astype(np.int32))}
        columns |= {f"id{k}": pa.array(random.choice(x[f"id{k}"].to_numpy(), size)) for k in range(1, n)}
        columns[f"id{n + 3}"] = _labels(right, 1)
        columns["v2"] = pa.array(np.round(random.uniform(0, 100, size), 6))
        yield name, pa.table(columns)


def _series(rows: int, random: np.random.Generator) -> pa.Table:
    """Rows at rising times, with two random walks."""
    return pa.table(
        {
            "id1": pa.array(np.arange(rows, dtype=np.int64)),
            "id2": pa.array(np.cumsum(random.integers(1, SERIES_STEP + 1, rows))),
            "v1": pa.array(np.round(np.cumsum(random.normal(0, 1, rows)), 6)),
            "v2": pa.array(np.round(np.cumsum(random.normal(0, 1, rows)), 6)),
        }
    )
