"""Every aggregate as a window, with DISTINCT, FILTER and an order of its own, over every sort of frame, beside DuckDB.

A rank over the same window stands beside each, so that none becomes a group-by and a join. What gquery refuses is no difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest

import gquery
from tests.support.harness import assert_same, expect

_VALUES = ("a", "d", "b", "(a, b)", "[a, a]", "z", "NULL")
_PAIRS = ("a, d", "d, a")
_OF_ONE = {
    **dict.fromkeys(("count", "min", "max", "first", "last", "list", "any_value", "entropy"), _VALUES),
    "histogram": ("a", "b", "d"),
    **dict.fromkeys(("sum", "avg", "product", "median", "mad", "var_pop", "stddev_samp", "sem", "favg"), ("a", "d")),
    **dict.fromkeys(("bit_and", "bit_xor"), ("a",)),
    **dict.fromkeys(("bool_and", "bool_or", "count_if"), ("z", "a > 0")),
}
_OF_TWO = {
    **dict.fromkeys(("covar_pop", "regr_avgx", "regr_avgy", "regr_count", "regr_sxy", "regr_syy"), _PAIRS),
    **dict.fromkeys(("arg_min", "arg_max"), ("b, o", "(a, b), o", "d, o")),
    **dict.fromkeys(("quantile_cont", "quantile_disc"), ("d, 0.3", "a, 0.5")),
    "quantile": ("d, 0.3", "a, [0.1, 0.9]"),
    "string_agg": ("b, '-'",),
}
_FORMS = (
    "{f}({a})",
    "{f}(DISTINCT {a})",
    "{f}({a}) FILTER (WHERE o % 3 > 0)",
    "{f}(DISTINCT {a}) FILTER (WHERE o % 3 > 0)",
    "{f}({a} ORDER BY d DESC NULLS LAST, o)",
    "{f}({a} ORDER BY o DESC)",
)
_OVER = (
    "(PARTITION BY g ORDER BY o)",
    "(ORDER BY o ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING)",
    "(PARTITION BY g ORDER BY o DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW)",
    "(ORDER BY g, o RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "(PARTITION BY g)",
)
_BY_ORDER = ("first", "last", "list", "any_value", "string_agg")
_TIES = ("arg_min(DISTINCT", "arg_max(DISTINCT")  # of equal keys DuckDB's table of different rows has any one first


def _statements() -> Iterator[str]:
    for f, values in (_OF_ONE | _OF_TWO).items():
        for call in (form.format(f=f, a=a) for a in values for form in _FORMS):
            for over in _OVER:
                undetermined = f in _BY_ORDER and ("DISTINCT" in call or ("ORDER" not in over and "ORDER" not in call))
                if not undetermined and not call.startswith(_TIES):
                    yield f"SELECT o, {call} OVER {over} AS x, rank() OVER {over} FROM t"


def _table() -> pa.Table:
    r, rows = np.random.default_rng(8), 40
    return pa.table(
        {
            "a": pa.array(r.integers(-3, 4, rows), mask=r.random(rows) < 0.2),
            "b": pa.array([("x", "y", None, "")[n] for n in r.integers(0, 4, rows)]),
            "d": pa.array(r.choice([0.5, -1.25, 2.0, 3.5], rows), mask=r.random(rows) < 0.2),
            "z": pa.array(r.random(rows) < 0.5, mask=r.random(rows) < 0.2),
            "g": r.integers(0, 3, rows),
            "o": r.permutation(rows),
        }
    )


@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 12))])
def test_beside_duckdb(part: int) -> None:
    import duckdb

    tables, same = {"t": _table()}, 0
    for sql in _statements():
        if crc32(sql.encode()) % 12 != part:
            continue
        try:
            expect(sql, tables)
        except duckdb.Error:
            continue
        try:
            assert_same(sql, tables, targets=("python",), ranks=(1,))
        except (gquery.NotSupportedError, gquery.BindError):
            continue
        same += 1
    assert same > 50


@pytest.mark.parametrize("f", ["quantile_cont", "quantile_disc", "quantile"])
def test_orders_of_quantiles_of_groups(f: str) -> None:
    """One key that is descending turns the fraction round, of some names."""
    for order in ("o DESC", "o DESC, a", "d DESC NULLS FIRST", "o"):
        assert_same(f"SELECT g, {f}(o, 0.3 ORDER BY {order}) FROM t GROUP BY g", {"t": _table()}, targets=("python",))
