"""Window functions over frames made by hand: random calls beside DuckDB's answers, interpreted and compiled."""

from __future__ import annotations

import ctypes
import math
import random
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gquery import tuning
from gquery.columns.table import ColumnData, Dictionary
from gquery.device.buffer import Buffer
from gquery.device.device import Device, cpu_device, cuda_device
from gquery.errors import DataError, Error, OutOfRangeError
from gquery.expression.expr import Literal, SortKey
from gquery.expression.types import BIGINT, DOUBLE
from gquery.expression.windows import TO_CURRENT, FrameBound, WindowCall, WindowFrame
from gquery.operators.window import taking
from tests.support.harness import assert_same
from tests.support.tuned import Tune
from tests.support.window_cases import (
    Case,
    arrow_of,
    expression,
    found_of,
    frame_of,
    random_case,
    random_rows,
    same,
    wanted_of,
)

SIZES = (0, 1, 2, 7, 20, 60)


def _compare(seed: int, count: int, device: Device, workers: int = 1) -> None:
    r = random.Random(seed)
    for _ in range(count):
        rows, case = random_rows(r, r.choice(SIZES)), random_case(r)
        found = found_of(case, frame_of(rows, device), device, workers)
        wanted = wanted_of(case, arrow_of(rows))
        if wanted is not None:
            assert len(found) == len(wanted) and all(map(same, found, wanted)), f"{case.sql}\n{rows}\n{found}\n{wanted}"


@pytest.mark.parametrize("seed", range(10))
def test_calls(seed: int) -> None:
    _compare(seed, 20, cpu_device())


def test_compiled_by_threads(tune: Tune) -> None:
    """Tiles of four rows: scans are completed by those before them, and by those of tiles."""
    tune(tuning.built_in_kernels, interpreted_rows=0)
    tune(tuning.window_functions, thread_tile=4, least_width=2)
    _compare(1000, 20, cpu_device(), 2)


def test_frames_made_of_spans(tune: Tune) -> None:
    """As a GPU makes them."""
    tune(tuning.window_functions, least_width=2, spans_width_cpu=6)
    _compare(1100, 15, cpu_device())
    tune(tuning.window_functions, spans_width_cpu=100, spans_steps=2)
    _compare(1101, 15, cpu_device())


@pytest.mark.parametrize("width", [2, 3, 4, 9, 16, 40])
@pytest.mark.parametrize("op", ["min", "max"])
@pytest.mark.parametrize("steps", [2, 3, 64])
def test_every_width_of_spans(steps: int, op: str, width: int, tune: Tune) -> None:
    """With few steps frames are made of spans of spans, which partitions of 4 and 57 rows cut off at every length."""
    tune(tuning.window_functions, least_width=2, spans_width_cpu=64, spans_steps=steps)
    if (op, width) == ("max", 9):
        tune(tuning.built_in_kernels, interpreted_rows=0)
    frames = (
        f"{width // 2} PRECEDING AND {(width - 1) // 2} FOLLOWING",
        f"{width - 1} PRECEDING AND CURRENT ROW",
        f"{width} FOLLOWING AND {2 * width - 1} FOLLOWING",
    )
    calls = ", ".join(f"{op}(v) OVER (PARTITION BY p ORDER BY i ROWS BETWEEN {frame})" for frame in frames)
    sql = f"SELECT i, {calls} FROM t"
    r = random.Random(width)
    table = pa.table(
        {
            "i": range(150),
            "p": [int(n > 3) + int(n > 60) for n in range(150)],
            "v": [r.randrange(99) for _ in range(150)],
        }
    )
    assert_same(sql, {"t": table}, targets=("python",), ranks=(1,))


def test_texts_that_are_made_for_a_call_live_until_they_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dictionary is spelled out: memory that is given back too early is written over at once."""
    blocks: list[Any] = []

    def passing(dictionary: Dictionary, device: Device) -> ColumnData:
        made = texts(dictionary, device)
        assert made.characters is not None
        blocks.append(ctypes.create_string_buffer(made.characters.on(device).tobytes()))
        characters = np.frombuffer(blocks[-1], np.uint8)
        weakref.finalize(characters, ctypes.memset, blocks[-1], 1, len(blocks[-1]))
        return replace(made, characters=Buffer(characters, device))

    texts = taking._texts
    monkeypatch.setattr(taking, "_texts", passing)
    _compare(4008, 50, cpu_device())
    assert blocks, "some call takes text of a dictionary"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2000, 2040))
def test_many_calls(seed: int) -> None:
    _compare(seed, 500, cpu_device())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3000, 3010))
def test_many_compiled_calls(seed: int, tune: Tune) -> None:
    tune(tuning.built_in_kernels, interpreted_rows=0)
    tune(tuning.window_functions, thread_tile=8, least_width=2)
    _compare(seed, 50, cpu_device(), 2)


@pytest.mark.cuda
@pytest.mark.parametrize("seed", range(4000, 4010))
def test_calls_on_a_gpu(seed: int, tune: Tune) -> None:
    tune(tuning.window_functions, lane_tile=4, least_width=2)
    _compare(seed, 50, cuda_device())


@pytest.mark.parametrize("width", [1, 2, 5, 9])
@pytest.mark.parametrize("unit", ["rows", "range"])
def test_no_frame_is_spoilt_by_values_outside(unit: Any, width: int, tune: Tune) -> None:
    """Great values, infinities and NaN count in the frames that they are in, and in no other."""
    tune(tuning.window_functions, least_width=2)
    numbers = [1.0, 1e17, 2.5, math.inf, 3.0, 0.5, math.nan, 4.0, 8.0, -math.inf, 16.0, 1e-3, 5.0, 6.0, 7.0]
    rows = random_rows(random.Random(1), len(numbers)) | {"f": numbers, "o": list(range(len(numbers)))}
    frame = WindowFrame(unit, FrameBound("preceding", Literal(width - 1, BIGINT)), TO_CURRENT.end)
    case = Case((), (SortKey(expression("o")),), WindowCall("sum", (expression("f"),), DOUBLE, True, frame), "")
    found = found_of(case, frame_of(rows, cpu_device()), cpu_device())
    wanted = [sum(numbers[max(0, k - width + 1) : k + 1]) for k in range(len(numbers))]
    assert all(map(same, found, wanted)), (found, wanted)


@pytest.mark.parametrize("descending", [False, True])
def test_ranges_by_row(descending: bool) -> None:
    """Counts and sums of the rows whose key is so near to the row's own, beside a loop over all pairs of rows."""
    r = random.Random(7)
    frame = WindowFrame("range", FrameBound("preceding", expression("n")), FrameBound("following", expression("n")))
    for size in (1, 5, 40, 200):
        rows = random_rows(r, size)
        keys, near = rows["o"], rows["n"]
        own = [
            [(k is None and j is None) or (k is not None and j is not None and abs(k - j) <= n) for j in keys]
            for k, n in zip(keys, near, strict=True)
        ]
        wanted = [sum(is_in) for is_in in own]
        sums = [sum(n for n, is_in in zip(near, flags, strict=True) if is_in) for flags in own]
        for call, values in (
            (WindowCall("count", (), BIGINT, False, frame), wanted),
            (WindowCall("sum", (expression("n"),), BIGINT, True, frame), sums),
        ):
            case = Case((), (SortKey(expression("o"), descending),), call, "")
            assert found_of(case, frame_of(rows, cpu_device()), cpu_device()) == values


ROWS: dict[str, list[Any]] = random_rows(random.Random(0), 6) | {"n": [1, -1, 2, None, 0, 3], "o": [1, 2, 3, 4, 5, 6]}
KEY = SortKey(expression("o"))


def _fails(call: WindowCall, error: type[Error], text: str) -> None:
    with pytest.raises(error, match=text):
        found_of(Case((), (KEY,), call, ""), frame_of(ROWS, cpu_device()), cpu_device())


@pytest.mark.parametrize(
    "over",
    [
        "(PARTITION BY g)",
        "(PARTITION BY g ORDER BY o)",
        "(ORDER BY o ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING)",
        "(ORDER BY o ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
        "(ORDER BY o ROWS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING EXCLUDE CURRENT ROW)",
    ],
)
def test_distinct_rows_of_values(over: str) -> None:
    """All values of a row tell it from others, and NULL is one; beside a rank, so that it stays a window."""
    r = np.random.default_rng(6)
    table = pa.table(
        {
            "a": pa.array(r.integers(0, 4, 90), mask=r.random(90) < 0.2),
            "b": pa.array([("x", "y", None)[n] for n in r.integers(0, 3, 90)]),
            "g": r.integers(0, 3, 90),
            "o": np.arange(90),
        }
    )
    for row in ("(a, b)", "(b, 1)", "(nullif(a, 2), b, a % 2)"):
        for kept in ("", " FILTER (WHERE o % 3 > 0)"):
            sql = f"SELECT o, count(DISTINCT {row}){kept} OVER {over}, rank() OVER {over} FROM t"
            assert_same(sql, {"t": table}, targets=("python",))


@pytest.mark.parametrize("buckets", [Literal(0, BIGINT), Literal(-1, BIGINT), expression("n")])
def test_parts_of_no_rows(buckets: Any) -> None:
    _fails(WindowCall("ntile", (buckets,), BIGINT, True), DataError, "ntile takes a number of parts greater than zero")


@pytest.mark.parametrize("unit", ["groups", "range"])
def test_negative_amounts(unit: Any) -> None:
    frame = WindowFrame(unit, FrameBound("preceding", Literal(-1, BIGINT)), TO_CURRENT.end)
    _fails(WindowCall("count", (), BIGINT, False, frame), OutOfRangeError, f"{unit.upper()} ... PRECEDING is negative")


@pytest.mark.parametrize("unit", ["rows", "groups", "range"])
def test_amounts_that_are_null(unit: Any) -> None:
    for amount in (Literal(None, BIGINT), expression("n")):
        frame = WindowFrame(unit, FrameBound("preceding", amount), TO_CURRENT.end)
        _fails(WindowCall("count", (), BIGINT, False, frame), DataError, f"{unit.upper()} ... PRECEDING is NULL")
