"""NULL as the result of groups of which no row counts: one value, whichever grouping set it is of, and whatever lies under it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.support.harness import assert_same

WORDS = ["pear", "fig", "apple", "fig", "quince", "apple", None, "plum"] * 8
TABLE = pa.table(
    {
        "k": [n % 5 for n in range(64)],
        "s": pa.array(WORDS).dictionary_encode(),
        "x": [n * 7 % 11 for n in range(64)],
        "w": pa.array([10**20 + n for n in range(64)], pa.decimal128(38, 0)),
    }
)
CALLS = [
    "mode() WITHIN GROUP (ORDER BY s)",
    "mode(x)",
    "arg_max(s, x)",
    "arg_min(x, s || x)",
    "arg_max(w, x)",
    "first(s ORDER BY x, s)",
    "last(x ORDER BY s, x)",
    "quantile_disc(x, 0.5)",
    "quantile_disc(w, 0.25)",
    "median(x)",
    "min(s)",
    "max(w)",
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kept", ["x > 99", "x > 8 AND k <> 2"])
def test_ranks_of_grouping_sets(call: str, kept: str) -> None:
    made = f"{call} FILTER (WHERE {kept})"
    sql = f"SELECT k, {made} AS m, dense_rank() OVER (ORDER BY {made}), rank() OVER (ORDER BY {made} DESC NULLS LAST) FROM t"
    assert_same(f"{sql} GROUP BY GROUPING SETS ((k), ())", {"t": TABLE}, targets=("python",))
