"""Quantiles of frames that move on: sets of ranks beside DuckDB, beside the tree of ranks, and beside sorting each frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.buffer import Buffer
from gquery.device.device import Device, cpu_device
from gquery.expression.expr import Column
from gquery.expression.types import DOUBLE, PhysicalType
from gquery.kernels.builtin import define, gathers
from gquery.kernels.ir.read import read_lines
from gquery.kernels.kernel import Kernel, Parameter
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import arguments_of
from gquery.kernels.values import ValueProperties
from gquery.operators.quantiles import Sides, interpolated, interpolated_rows
from gquery.operators.window import quantiles, sliding_quantiles
from gquery.operators.window.tile_orders import TileOrders, tile_orders
from gquery.planner.physical import Stored
from gquery.tuning.kernels import WindowFunctions
from tests.operators.test_sliding_frames import FRAMES
from tests.support.harness import assert_same
from tests.support.marks import and_slow, one_in
from tests.support.primitives import TARGETS

ROWS = 200
SHORT_TILES = WindowFunctions(ordered_tile=12, frames_an_order=2, least_orders=2)
MORE_FRAMES = (
    *FRAMES,
    "PARTITION BY p ORDER BY i",
    "ORDER BY i ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "PARTITION BY p",
    "PARTITION BY i ORDER BY k ROWS BETWEEN 90 PRECEDING AND 90 FOLLOWING",
    "ORDER BY i ROWS BETWEEN 6 FOLLOWING AND 9 FOLLOWING",
)
EMPTY = "ORDER BY i ROWS BETWEEN 1 PRECEDING AND 4 PRECEDING"  # of which DuckDB says 0.0 where a column has no NULL
CALLS = (
    "median(x)",
    "quantile_cont(near, 0.3)",
    "quantile_disc(x, 0.75)",
    "quantile_cont(k, 0.5) FILTER (WHERE i % 3 > 0)",
    "quantile_disc(m, 0.1)",
    "median(m)",
    "median(d)",
    "quantile_disc(s, 0.5)",
    "quantile_disc(wide, 0.5)",
    "quantile_disc(k, 1)",
)
OWN_CALLS = ("median(wide)", "quantile_cont(x, -0.25)", "quantile_disc(i, -0.4)")
"""Frames of DuckDB give other values than its groups for these: doubles of decimals, and another place from the end."""


def table(rows: int = ROWS) -> pa.Table:
    r = np.random.default_rng(15)
    x = np.round(r.normal(0, 2, rows), 1)
    x[r.integers(0, rows, 12)] = [np.inf, -np.inf, np.nan, 0.0, -0.0, -0.0, np.nan, 1e17, np.inf, 0.0, -1e17, -0.0]
    return pa.table(
        {
            "i": np.arange(rows),
            "p": r.integers(0, 5, rows),
            "k": pa.array(r.integers(0, 12, rows).astype(np.int32), mask=r.random(rows) < 0.3),
            "x": pa.array(x, mask=r.random(rows) < 0.3),
            "near": r.normal(0, 1, rows).astype(np.float32),
            "d": pa.array(r.integers(0, 90, rows).astype(np.int32), mask=r.random(rows) < 0.1).cast(pa.date32()),
            "m": pa.array([Decimal(int(v)) / 100 for v in r.integers(-999, 999, rows)], pa.decimal128(9, 2)),
            "wide": pa.array([Decimal(int(v)) * 10**20 for v in r.integers(-99, 99, rows)], pa.decimal128(30, 2)),
            "s": pa.array([f"text {v}" for v in r.integers(0, 40, rows)], mask=r.random(rows) < 0.1),
        }
    )


def over(window: str, calls: Sequence[str] = CALLS) -> str:
    return f"SELECT i, {', '.join(f'{c} OVER w' for c in calls)} FROM t WINDOW w AS ({window})"


def without_nan(rows: int = ROWS) -> pa.Table:
    """The table for DuckDB, whose frames fail at a NaN ("std::exception")."""
    made = table(rows)
    x = [None if v is None or v != v else v for v in made["x"].to_pylist()]
    return made.set_column(made.column_names.index("x"), "x", pa.array(x, pa.float64()))


@pytest.mark.parametrize("frame", MORE_FRAMES)
def test_beside_duckdb(frame: str) -> None:
    assert_same(over(frame), {"t": without_nan()}, targets=("python",), ranks=(1,), settings={"threads": "3"})


def test_compiled() -> None:
    window = "PARTITION BY p ORDER BY i ROWS BETWEEN 50 PRECEDING AND 20 FOLLOWING"
    assert_same(over(window), {"t": without_nan(6000)}, targets=("cpu",), ranks=(1,))


@pytest.mark.parametrize("frame", one_in(2, [EMPTY, *MORE_FRAMES, "ORDER BY i ROWS BETWEEN 90 FOLLOWING AND 60 FOLLOWING"]))
def test_beside_a_tree_of_ranks(frame: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit: of equal values, of -0.0 and 0.0, both take the same row's."""

    def answer() -> pa.Table:
        connection = gquery.connect(device="python")
        connection.register("t", table())
        return connection.sql(f"{over(frame, (*CALLS, *OWN_CALLS))} ORDER BY i").arrow()

    found = answer()
    with tuning.using(SHORT_TILES):
        of_tiles = answer()
    monkeypatch.setattr(quantiles, "moves_on", lambda frame, work: False)
    expected = answer()
    assert_same_bits(found, expected)
    assert_same_bits(of_tiles, expected)


def assert_same_bits(found: pa.Table, expected: pa.Table) -> None:
    for name in found.column_names:
        a, b = found[name].combine_chunks(), expected[name].combine_chunks()
        assert a.is_valid().equals(b.is_valid())
        if pa.types.is_floating(a.type):
            a, b = (np.asarray(c.fill_null(0)).view(f"u{c.type.bit_width // 8}") for c in (a, b))
            assert (a == b).all()
        else:
            assert a.equals(b)


@pytest.mark.parametrize("compiler", and_slow(["llvm", "numba"], "numba"))
@pytest.mark.parametrize("steps", [0, 8])
def test_values_that_differ_in_their_last_bits(compiler: str, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tile's words lack the last bits of doubles. Few such rows are told apart there; of many all rows are sorted at once."""
    asked: list[bool] = []

    def spy(*arguments: Any) -> TileOrders | None:
        made = tile_orders(*arguments)
        asked.append(made is not None)
        return made

    monkeypatch.setattr(sliding_quantiles, "tile_orders", spy)
    r = np.random.default_rng(6)
    x = 1 + r.integers(0, 9, 3000) * 2.0**-52
    x[r.random(3000) < 0.5] = r.normal(0, 1e300, 3000)[:1]
    x[::97], x[5] = -1e300, np.nan
    table = pa.table({"i": np.arange(3000), "j": r.permutation(3000), "x": pa.array(x, mask=r.random(3000) < 0.1)})
    calls = ("median(x)", "quantile_disc(x, 0.4) FILTER (WHERE i % 5 > 0)", "quantile_cont(x, -0.1)")
    sql = over("ORDER BY j ROWS BETWEEN 20 PRECEDING AND 3 FOLLOWING", calls) + " ORDER BY i"

    def answer() -> pa.Table:
        connection = gquery.connect(device="cpu", threads=2)
        connection.set("interpret_limit", 0)
        connection.set("compiler", compiler)
        return connection.register("t", table).sql(sql).arrow()

    with tuning.using(replace(SHORT_TILES, steps_a_row=steps, ordered_tile=100)):
        found = answer()
    assert asked == [steps > 0] * 3
    monkeypatch.setattr(quantiles, "moves_on", lambda frame, work: False)
    assert_same_bits(found, answer())


@pytest.mark.parametrize("width", [1, 2, 7, 1000, 40_000])
def test_long_columns(width: int) -> None:
    """Sets of several levels, by two threads, beside NumPy."""
    rows = 20_000
    x = np.random.default_rng(width).permutation(rows).astype(np.float64)
    connection = gquery.connect(device="cpu", threads=2)
    connection.set("interpret_limit", 0)
    connection.register("t", pa.table({"i": np.arange(rows), "x": x}))
    sql = f"SELECT median(x) OVER (ORDER BY i ROWS {width - 1} PRECEDING) AS m FROM t ORDER BY i"
    with tuning.using(replace(SHORT_TILES, ordered_tile=300)):
        found = connection.sql(sql).arrow()["m"].to_numpy()
    for row in np.random.default_rng(1).integers(0, rows, 300):
        assert found[row] == np.median(x[max(row - width + 1, 0) : row + 1])


@pytest.mark.parametrize("target", TARGETS)
def test_sets(target: str) -> None:
    """Random members come and go, beside Python's sets; each row of the kernel does as many steps in its own set."""
    r = np.random.default_rng(3)
    for size in (1, 64, 65, 4096, 4097, 70_000, 64**3 + 1):
        words = -(-size // 64)
        room, level = words, words
        while level > 1:
            level = -(-level // 64)
            room += level
        members: set[int] = set()
        steps: list[tuple[int, int, int]] = []
        expected: list[int] = []
        for _ in range(150):
            k = (int(r.integers(0, size)), min(63, size - 1), size - 1)[int(r.integers(0, 3))]
            if members and r.random() < 0.5:
                k = int(r.choice(sorted(members)))
            beside = (int(r.integers(0, size)), max(k - 1, 0), min(k + 1, size - 1), k)  # edges of words, too
            probe = beside[int(r.integers(0, 4))]
            steps.append((k, int(k in members), probe))
            members ^= {k}
            expected.append(min((m for m in members if m >= probe), default=-1))
            expected.append(max((m for m in members if m <= probe), default=-1))
        body = read_lines(
            "at = i64(0)",
            "while lt_i64(at, count):",
            "    k = i64(steps[row_index(mul_i64(at, 3))])",
            "    probe = i64(steps[row_index(add_i64(mul_i64(at, 3), 2))])",
            "    if eq_i64(i64(steps[row_index(add_i64(mul_i64(at, 3), 1))]), 0):",
            "        set_add(sets, room, words, k)",
            "    else:",
            "        set_remove(sets, room, words, k)",
            "    store_i64(made, mul_i64(at, 2), set_next(sets, room, words, probe))",
            "    store_i64(made, add_i64(mul_i64(at, 2), 1), set_last(sets, room, words, probe))",
            "    at = add_i64(at, 1)",
        )
        parameters = (
            Parameter("sets", "i64", True), Parameter("steps", "i64", True), Parameter("made", "i64", True),
            Parameter("room", "i64", False), Parameter("words", "i64", False), Parameter("count", "i64", False),
        )  # fmt: skip
        kernel = Kernel(parameters, read_lines(), body, read_lines(), frozenset())
        runner = get_target(target)
        device = Device("cuda") if target == "cuda" else cpu_device()
        sets, made = device.zeros(2 * room, np.int64), device.zeros(2 * len(steps), np.int64)
        values = (sets, device.from_host(np.array(steps, np.int64).reshape(-1)), made, room, words, len(steps))
        runner.run(runner.compile(kernel), 0, 1, arguments_of(runner, kernel, values))
        assert made.tolist() == expected
        assert not bool(sets[:room].any())


@pytest.mark.parametrize("target", TARGETS)
def test_what_lies_between_rows_is_bit_for_bit_what_lies_between_their_values(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0, 5e-324, 1e308, -1e308, 0.1, 3.0])
    n = values.size
    low, high = (a.ravel().astype(np.uint32) for a in np.meshgrid(np.arange(n), np.arange(n)))
    device = cpu_device()
    column = ColumnData(DOUBLE, PhysicalType.F64, n, Buffer(values))
    stored = Stored(Column(1, "m", DOUBLE), ValueProperties(DOUBLE), PhysicalType.F64)
    monkeypatch.setattr(define, "is_interpreted", lambda kernel, rows: target == "python")
    for share in (0.0, 0.25, 1.0):
        weight = np.full(low.size, share)
        there = (np.arange(low.size) % 7 > 0).astype(np.uint8)
        sides = [gathers.take(column, rows, device) for rows in (low, high)]
        with np.errstate(invalid="ignore", over="ignore"):
            wanted = interpolated(sides[0], sides[1], weight, there, stored, device)
        found = interpolated_rows(column, Sides(low, high, weight, there), stored, device, 1)
        a, b = found.data.host, wanted.data.host
        assert np.array_equal(np.isnan(a), np.isnan(b))
        assert np.array_equal(a.view(np.int64)[~np.isnan(a)], b.view(np.int64)[~np.isnan(b)])
        assert found.validity is not None and np.array_equal(found.validity.host, there)
