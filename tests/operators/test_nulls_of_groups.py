"""NULL as the result of groups of which no row counts: one value, whichever grouping set it is of, and whatever lies under it.

Columns that stages make are looked at too (`execution.verify_frame`): nothing lies under their NULLs.
"""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from gquery import tuning
from tests.support.harness import assert_same
from tests.support.marks import one_in
from tests.support.tuned import Tune

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


PLAIN = {
    "t": TABLE.set_column(1, "s", pa.array([None if w is None else f"{w}{n}" for n, w in enumerate(WORDS)])),
    "u": pa.table({"k": [0, 1, 2, None, 7], "name": ["pear0", "fig1", None, "zz", ""]}),
}
TEXTS = [
    "min(s)",
    "max(upper(s))",
    "mode() WITHIN GROUP (ORDER BY s)",
    "arg_max(s, x)",
    "arg_min(s, s || x)",
    "first(s ORDER BY x, s)",
    "any_value(s || 'q')",
    "quantile_disc(s, 0.5)",
    "string_agg(s, ',' ORDER BY s)",
    "max(CASE WHEN x > 5 THEN s END)",
    "max(encode(s))",
    "list(s ORDER BY s)",
    "max(w)",
    "arg_max({'a': x, 'b': s}, x)",
]
KEPT = ["x > 99", "x > 8 AND k <> 2", "s IS NULL", "k = 1", "s > 'zz'", "x < 0 OR k > 3"]
SETS = ["k", "GROUPING SETS ((k), ())", "ROLLUP (k)", "GROUPING SETS ((k), (k), ())"]
MADE = "(SELECT k, {m} AS m FROM t GROUP BY {sets})"
USES = [
    "SELECT k, dense_rank() OVER (ORDER BY {m}), rank() OVER (ORDER BY {m} DESC, k) FROM t GROUP BY {sets}",
    "SELECT k, rank() OVER (PARTITION BY {m} ORDER BY k NULLS FIRST) FROM t GROUP BY {sets}",
    f"SELECT k, m FROM {MADE} ORDER BY m DESC NULLS FIRST, k NULLS LAST",
    f"SELECT k, m FROM {MADE} ORDER BY m NULLS FIRST, k NULLS LAST LIMIT 2",
    f"SELECT DISTINCT ON (m) m, k FROM {MADE} ORDER BY m, k NULLS FIRST",
    f"SELECT DISTINCT m FROM {MADE}",
    f"SELECT m, k, count(*) FROM {MADE} GROUP BY ROLLUP (m, k)",
    f"SELECT m, count(*), count(m), count(DISTINCT m) FROM {MADE} GROUP BY m",
    f"SELECT a.k, b.k FROM {MADE} a JOIN {MADE} b ON a.m IS NOT DISTINCT FROM b.m",
    f"SELECT a.k, b.k FROM {MADE} a FULL JOIN (SELECT k, {{m}} AS m FROM t WHERE k < 3 GROUP BY k) b ON a.m = b.m",
    f"SELECT m FROM {MADE} EXCEPT ALL SELECT {{m}} FROM t WHERE k < 2 GROUP BY k",
    f"SELECT m FROM {MADE} UNION SELECT {{m}} FROM t GROUP BY k",
    f"SELECT k, m IN (SELECT {{m}} FROM t GROUP BY k), m IS DISTINCT FROM lag(m) OVER (ORDER BY k NULLS FIRST) FROM {MADE}",
    f"SELECT count(DISTINCT hash(m)) - count(DISTINCT m) FROM {MADE} WHERE m IS NULL",
    f"SELECT m, count(*) FROM (SELECT m FROM u LEFT JOIN {MADE} v ON u.k = v.k) GROUP BY m",
    "SELECT u.k, dense_rank() OVER (ORDER BY (SELECT {m} FROM t WHERE t.k = u.k)) FROM u",
    "SELECT rank() OVER (ORDER BY m, n) FROM (SELECT {m} AS m, {n} AS n FROM t GROUP BY {sets})",
]


@pytest.mark.parametrize("use", one_in(3, USES))
def test_plain_text(use: str, tune: Tune) -> None:
    """Of texts without a dictionary, lists and wide integers, by any such call and grouping sets: 14 calls of each use."""
    tune(tuning.encoding, small_dictionary=0, rows_an_entry=1 << 30)
    drawn = random.Random(use)
    for call in TEXTS:
        kept = drawn.choice(KEPT)
        m, n = (f"{c} FILTER (WHERE {kept})" for c in (call, drawn.choice(TEXTS[:10])))
        sql = use.format(m=m, n=n, sets=drawn.choice(SETS))
        assert_same(sql, PLAIN, "m DESC" in use or "LIMIT" in use, targets=("python",))


def test_texts_of_functions() -> None:
    """Of functions over Arrow's arrays, which may leave anything under a NULL, on all rows and on those of a dictionary."""
    bits = pa.py_buffer(np.packbits(np.arange(40) % 3 != 0, bitorder="little"))
    names = pa.array([f"v{n % 7}{n:03}" for n in range(40)])
    hidden = pa.Array.from_buffers(names.type, 40, [bits, *names.buffers()[1:]])
    structs = pa.StructArray.from_arrays([names], ["a"], mask=hidden.is_null())
    table = pa.table({"k": range(39, -1, -1), "s": hidden, "r": structs})
    for made in ("s", "md5(s)", "CAST(r AS VARCHAR)", "regexp_replace(s, '^v', k::VARCHAR)", "r", "[s]", "r.a", "upper(s)"):
        sql = f"SELECT k, {made} AS m, rank() OVER (ORDER BY {made} NULLS FIRST) FROM t ORDER BY m NULLS FIRST, k"
        assert_same(sql, {"t": table}, ordered=True, targets=("python",))
