"""Columns of nothing but NULL, and no rows at all, as each argument of the functions that the host computes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.support.harness import assert_same

TABLES = {
    "t": pa.table(
        {
            "y": ["1", "2", None, "4"],
            "n": pa.array([None] * 4, pa.int64()),
            "z": pa.array([None] * 4, pa.string()),
            "d": pa.array([None] * 4, pa.timestamp("us")),
            "e": pa.array([None] * 4, pa.date32()),
        }
    )
}
CALLS = (
    "repeat(y, n)",
    "lpad(y, n::INTEGER, 'x')",
    "rpad(y, n::INTEGER, 'x')",
    "lpad(y, 3, z)",
    "rpad(z, n::INTEGER, z)",
    "substring(y, n)",
    "substring(y, n, n)",
    "left(y, n)",
    "right(y, n)",
    "replace(y, z, 'a')",
    "replace(y, 'a', z)",
    "regexp_replace(y, z, 'a')",
    "regexp_replace(y, 'a', z)",
    "regexp_matches(y, z)",
    "regexp_extract(y, z)",
    "regexp_full_match(y, z)",
    "strftime(d, '%Y')",
    "strftime(e, '%Y')",
    "chr(n::INTEGER)",
    "concat(y, z)",
    "concat_ws(z, y)",
    "concat_ws(z, 'a', y)",
    "y || z",
    "trim(y, z)",
    "ltrim(y, z)",
    "rtrim(z, y)",
    "y LIKE z",
    "y ILIKE z",
    "starts_with(y, z)",
    "contains(y, z)",
    "position(z IN y)",
    "ascii(z)",
    "unicode(z)",
    "reverse(z)",
    "upper(z)",
    "length(z)",
    "md5(z)",
    "z::INTEGER",
    "TRY_CAST(z AS DATE)",
    "n::VARCHAR",
    "e::VARCHAR",
    "d::VARCHAR",
    "make_date(n, n, n)",
    "monthname(e)",
    "dayname(d)",
    "y[n]",
    "greatest(z, y)",
    "coalesce(z, y)",
    "any_value(z)",
    "min(z)",
)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("rows", ["", " WHERE y = '7'"], ids=["all rows", "no rows"])
def test_nothing_but_null(call: str, rows: str) -> None:
    assert_same(f"SELECT {call} AS v FROM t{rows}", TABLES, targets=("python",), ranks=(1,))


@pytest.mark.parametrize("call", ["concat_ws(NULL, 'a', NULL, 'b')", "regexp_matches('a', NULL)", "lpad('a', 3, NULL)"])
def test_constants_that_are_null(call: str) -> None:
    assert_same(f"SELECT {call} AS v", {}, targets=("python",), ranks=(1,))
