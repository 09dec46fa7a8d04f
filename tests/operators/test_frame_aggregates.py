"""Aggregates over parts of partitions that are no sums: moments, modes, joined texts, ranks in an order of the call's own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery.errors import NotSupportedError, OutOfRangeError
from tests.support.harness import assert_same

FRAMES = (
    "ORDER BY i",
    "ORDER BY i ROWS BETWEEN 3 PRECEDING AND CURRENT ROW",
    "ORDER BY i ROWS BETWEEN 40 PRECEDING AND 20 FOLLOWING",
    "ORDER BY i DESC ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
    "ORDER BY i ROWS BETWEEN 5 PRECEDING AND 5 FOLLOWING EXCLUDE TIES",
    "ORDER BY i GROUPS BETWEEN 4 PRECEDING AND 2 FOLLOWING EXCLUDE CURRENT ROW",
    "ORDER BY i ROWS BETWEEN 2 FOLLOWING AND 9 FOLLOWING",
)


def table(rows: int, seed: int = 8) -> dict[str, pa.Table]:
    r = np.random.default_rng(seed)
    return {
        "t": pa.table(
            {
                "i": np.arange(rows),
                "p": r.integers(0, 3, rows),
                "k": pa.array(r.integers(-9, 9, rows).astype(np.int32), mask=r.random(rows) < 0.1),
                "x": pa.array(r.normal(3, 1, rows) * 10.0 ** r.integers(-2, 3, rows), mask=r.random(rows) < 0.1),
                "y": r.normal(0, 1, rows),
                "d": pa.array([round(v, 2) for v in r.random(rows) * 100]).cast(pa.decimal128(9, 2)),
                "s": pa.array([f"text {v}" for v in r.integers(0, 12, rows)], mask=r.random(rows) < 0.1),
                "far": 1e15 * np.arange(rows) + r.random(rows),
            }
        )
    }


CALLS = (  # over a window w
    (
        "stddev(x)",
        "var_pop(k)",
        "sem(d)",
        "corr(x, y)",
        "covar_samp(k, y)",
        "skewness(x)",
        "kurtosis(k)",
        "kurtosis_pop(y)",
    ),
    (
        "regr_count(x, k)",
        "regr_slope(y, k)",
        "regr_intercept(y, d)",
        "regr_r2(y, k)",
        "regr_sxx(x, y)",
        "var_samp(far)",
    ),
    (
        "stddev(x) FILTER (WHERE k > 0)",
        "product(x / 9)",
        "bit_and(k)",
        "bit_or(k)",
        "bit_xor(i)",
        "arg_max(s, y)",
        "arg_min(i, x)",
    ),
    (
        "list(k)",
        "list(s) FILTER (WHERE y > 0)",
        "string_agg(s, ', ')",
        "string_agg(s) FILTER (WHERE k > 3)",
        "string_agg(s || p, '')",
    ),
)
OWN = (
    "row_number(ORDER BY y)",
    "rank(ORDER BY k DESC)",
    "cume_dist(ORDER BY k)",
    "lag(s, 2 ORDER BY y)",
    "lead(k, p ORDER BY i DESC)",
)


def over(calls: Sequence[str], window: str) -> str:
    """A query of calls over one window."""
    return f"SELECT i, {', '.join(f'{c} OVER w' for c in calls)} FROM t WINDOW w AS ({window})"


def one_in_three(cases: Sequence[Any]) -> list[Any]:
    return [c if n % 3 == 0 else pytest.param(*c, marks=pytest.mark.slow) for n, c in enumerate(cases)]


@pytest.mark.parametrize(("calls", "frame"), one_in_three([(c, f) for c in CALLS for f in FRAMES]))
def test_answers(calls: Sequence[str], frame: str) -> None:
    assert_same(over(calls, f"PARTITION BY p {frame}"), table(120), targets=("python",))


@pytest.mark.parametrize("frame", [FRAMES[0], FRAMES[2]])
def test_ranks_in_an_order_of_their_own(frame: str) -> None:
    assert_same(over(OWN, f"PARTITION BY p {frame}"), table(120), targets=("python",))


@pytest.mark.parametrize("calls", [*CALLS[:1], *[pytest.param(c, marks=pytest.mark.slow) for c in (*CALLS[1:], OWN)]])
def test_compiled(calls: Sequence[str]) -> None:
    assert_same(over(calls, f"PARTITION BY p {FRAMES[2]}"), table(3000), targets=("cpu",), ranks=(1,))


@pytest.mark.cuda
@pytest.mark.parametrize("calls", [*CALLS, OWN])
def test_on_a_gpu(calls: Sequence[str]) -> None:
    assert_same(over(calls, f"PARTITION BY p {FRAMES[2]}"), table(3000), targets=("cuda",))


@pytest.mark.parametrize("frame", FRAMES[:4])
def test_values_far_from_zero_lose_no_digit(frame: str) -> None:
    """1e9 + {0, 1, 2}, beside the same without 1e9, and steps of 1e9 among neighbours that are near."""
    small = [float(n * 7 % 3) for n in range(90)]
    steps = [1e9 * (n // 9) for n in range(90)]
    with gquery.connect("python") as db:
        far = [1e9 + v for v in small]
        db.register("t", pa.table({"i": range(90), "x": small, "far": far, "step": np.add(steps, small)}))
        names = ("stddev(x)", "stddev(far)", "corr(x, i)", "corr(far, i)", "skewness(far)", "skewness(x)")
        calls = [f"{f} OVER ({frame})" for f in names]
        for row in db.sql(f"SELECT {', '.join(calls)} FROM t").fetchall():
            for a, b in ((0, 1), (2, 3), (4, 5)):
                assert _near(row[a], row[b]), row
        near = "OVER (PARTITION BY i // 9 ORDER BY i)"
        for own, wanted in db.sql(f"SELECT var_samp(step) {near}, var_samp(x) {near} FROM t").fetchall():
            assert _near(own, wanted)


def _near(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return a is b
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) or (math.isnan(a) and math.isnan(b))


@pytest.mark.parametrize("call", ["stddev(x)", "corr(x, i)", "kurtosis(x)"])
def test_moments_of_infinities_are_errors(call: str) -> None:
    with gquery.connect("python") as db:
        db.register("t", pa.table({"i": range(5), "x": [1.0, 2.0, math.inf, 3.0, 5.0]}))
        with pytest.raises(OutOfRangeError, match="infinite or NaN"):
            db.sql(f"SELECT {call} OVER (ORDER BY i ROWS 4 PRECEDING) FROM t").fetchall()


def test_arguments_that_a_filter_leaves_out_fail_nowhere() -> None:
    sql = "SELECT i, geomean(k) FILTER (WHERE k > 0) OVER (ORDER BY i) g FROM t"
    with gquery.connect("python") as db:
        tables = table(60)
        db.register("t", tables["t"])
        met: list[float] = []
        for (_, found), k in zip(sorted(db.sql(sql).fetchall()), tables["t"]["k"].to_pylist(), strict=True):
            met += [k] if k is not None and k > 0 else []
            wanted = math.exp(sum(map(math.log, met)) / len(met)) if met else None
            assert _near(found, wanted)


# ---- modes -----------------------------------------------------------------------------------------------------------

Frame = Callable[[int, int], Sequence[int]]
OF_MODES: dict[str, Frame] = {
    "ORDER BY i": lambda n, rows: range(n + 1),
    "ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING": lambda n, rows: range(min(n + 3, rows)),
    "ORDER BY i ROWS BETWEEN 2 PRECEDING AND UNBOUNDED FOLLOWING": lambda n, rows: range(max(n - 2, 0), rows),
    "ORDER BY i ROWS BETWEEN 7 PRECEDING AND 1 FOLLOWING": lambda n, rows: range(max(n - 7, 0), min(n + 2, rows)),
    "ORDER BY i ROWS BETWEEN 9 PRECEDING AND 9 FOLLOWING EXCLUDE CURRENT ROW": lambda n, rows: [
        k for k in range(max(n - 9, 0), min(n + 10, rows)) if k != n
    ],
    "ORDER BY i ROWS BETWEEN 3 FOLLOWING AND 9 FOLLOWING": lambda n, rows: range(n + 3, min(n + 10, rows)),
}


@pytest.mark.parametrize(
    ("target", "rows"), [("python", 0), ("python", 1), ("python", 90), pytest.param("cpu", 200, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("frame", OF_MODES)
def test_modes_are_the_first_of_the_most_frequent(frame: str, target: str, rows: int) -> None:
    tables = table(rows)
    with gquery.connect(target, devices=None) as db:
        db.set("interpret_limit", 0)
        db.register("t", tables["t"])
        for call, keep in (("mode(s)", None), ("mode(k) FILTER (WHERE y > 0)", "y"), ("mode(x)", None)):
            found = sorted(db.sql(f"SELECT p, i, {call} OVER (PARTITION BY p {frame}) FROM t").fetchall())
            values = tables["t"][call[5]].to_pylist()
            kept = [True] * rows if keep is None else [v > 0 for v in tables["t"][keep].to_pylist()]
            wanted = _modes([(p, i, values[i] if kept[i] else None) for p, i, _ in found], OF_MODES[frame])
            assert [row[2] for row in found] == wanted


def _modes(rows: list[tuple[int, int, Any]], frame: Frame) -> list[Any]:
    made = []
    for p in sorted({row[0] for row in rows}):
        own = [v for q, _, v in rows if q == p]
        for n in range(len(own)):
            counts = Counter(own[k] for k in frame(n, len(own)) if own[k] is not None)
            made.append(max(counts, key=lambda v: counts[v]) if counts else None)  # the first of several
    return made


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "match"),
    [
        ("mad(x)", "mad over a part"),
        ("entropy(x)", "entropy over a part"),
        ("stddev(DISTINCT x)", r"stddev\(DISTINCT ...\) over a part"),
        ("string_agg(s ORDER BY x)", "ORDER BY inside string_agg over a part"),
        ("list(DISTINCT s)", "DISTINCT inside list over a part"),
        ("ntile(3 ORDER BY x)", "ORDER BY inside ntile over a part"),
        ("product(DISTINCT x)", "DISTINCT inside product over a part"),
    ],
)
def test_what_is_refused(call: str, match: str) -> None:
    with gquery.connect("python") as db:
        db.register("t", table(5)["t"])
        with pytest.raises(NotSupportedError, match=match):
            db.sql(f"SELECT {call} OVER (ORDER BY i ROWS 2 PRECEDING) FROM t")


@pytest.mark.parametrize("ranks", [1, 3])
def test_distinct_values_of_frames_that_grow(ranks: int) -> None:
    calls = ("product(DISTINCT k)", "bit_xor(DISTINCT k)", "quantile_disc(DISTINCT k, 0.5)", "count(DISTINCT s)")
    assert_same(over(calls, "PARTITION BY p ORDER BY i"), table(80), targets=("python",), ranks=(ranks,))


def test_distinct_counts_of_frames_are_exact() -> None:
    with gquery.connect("python") as db:
        db.register("t", table(80)["t"])
        window = "OVER (PARTITION BY p ORDER BY i ROWS 9 PRECEDING)"
        sql = f"SELECT approx_count_distinct(s) {window}, count(DISTINCT s) {window} FROM t"
        assert all(a == b for a, b in db.sql(sql).fetchall())
