"""Bits and products of groups: those of DuckDB, whatever tells the groups apart, and the same by numbers of groups as by rows in
an order."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.device import Device
from gquery.functions.aggregate_record import Reduced
from gquery.operators import ordered_groups
from gquery.operators.ordered_reductions import NumberedRows, Ranges, reduced
from gquery.planner.stored import Stored
from tests.support.harness import assert_same
from tests.support.tuned import Tune

CALLS = (
    "bit_and(i), bit_or(i), bit_xor(i), bit_and(u), bit_or(u), bit_xor(u)",
    "bit_xor(w), bit_and(w), bit_or(w) FILTER (i > 0), bit_xor(i) FILTER (b)",
    "product(x), product(y) FILTER (b), product(i % 3), count(*)",
    "bit_xor(v), bit_and(v) FILTER (b), bit_or(v)",
    "bit_xor(DISTINCT i), bit_or(i ORDER BY u), sum(i)",
)


def _table(rows: int, nulls: float) -> pa.Table:
    rng = random.Random(rows)

    def column(make: object, kind: pa.DataType) -> pa.Array:
        assert callable(make)
        return pa.array([None if rng.random() < nulls else make() for _ in range(rows)], kind)

    return pa.table(
        {
            "g": column(lambda: rng.randrange(7), pa.int64()),
            "s": column(lambda: rng.choice("abcde"), pa.string()),
            "f": column(lambda: rng.choice((0.5, 1.5, 2.5)), pa.float64()),
            "i": column(lambda: rng.randrange(-(2**40), 2**40), pa.int64()),
            "u": column(lambda: rng.randrange(256), pa.uint8()),
            "w": column(lambda: rng.randrange(2**63 - 1), pa.int64()),
            "v": column(lambda: rng.randrange(2**64), pa.uint64()),
            "b": column(lambda: rng.random() < 0.3, pa.bool_()),
            "x": column(lambda: rng.choice((1.0, -1.0, 0.5, 2.0)), pa.float64()),
            "y": column(lambda: rng.choice((1e200, -1e200, 1.0)), pa.float64()),
        }
    )


@pytest.mark.parametrize("calls", CALLS)
@pytest.mark.parametrize("keys", ["g", "s", "f", "g, s", "f, g", "g % 2 = 0"])
@pytest.mark.parametrize("hashed", [1, 1 << 40], ids=["hashed", "sorted"])
def test_answers(calls: str, keys: str, hashed: int, tune: Tune) -> None:
    tune(tuning.sorting, hashed_rows=hashed)
    for rows, nulls in ((300, 0.2), (1, 0.0), (0, 0.0), (40, 1.0)):
        sql = f"SELECT {keys}, {calls} FROM t GROUP BY {keys}"
        assert_same(sql, {"t": _table(rows, nulls)}, targets=("python",), ranks=(1, 3))


@pytest.mark.parametrize("calls", CALLS)
def test_numbers_of_groups_give_what_an_order_gives(calls: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a GPU, and groups that were sorted, do it."""
    sql = f"SELECT g, s, {calls} FROM t GROUP BY g, s ORDER BY g, s"
    found = []
    for is_numbered in (True, False):
        if not is_numbered:
            monkeypatch.setattr(ordered_groups, "reduced_by_number", _by_order)
        with gquery.connect(device="cpu") as db:
            found.append(db.register("t", _table(3000, 0.1)).sql(sql).fetchall())
    assert str(found[0]) == str(found[1])


def _by_order(by: Reduced, column: ColumnData, rows: NumberedRows, stored: Stored, device: Device) -> ColumnData:
    kept = np.arange(rows.numbers.size) if rows.kept is None else np.flatnonzero(rows.kept)
    order = kept[np.argsort(rows.numbers[kept], kind="stable")].astype(np.uint32)
    begins = np.cumsum(rows.sizes) - rows.sizes
    return reduced(by, column, Ranges(order, begins, rows.sizes), stored, device)
