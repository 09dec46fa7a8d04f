"""Constants of bytes and nested values in the condition of a join: the host makes them of a column, never of a row."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.support.harness import assert_same

TABLES = {"u": pa.table({"i": [1, 2, 3], "raw": [b"a", b"b", None], "s": ["a", "c", None]})}
STATEMENTS = [
    "WITH w AS (SELECT 'ab'::BLOB AS c, min(encode('ä')) AS m FROM u GROUP BY 1) "
    "SELECT x.i FROM u x {} JOIN w ON x.raw < w.m AND x.raw <> w.m",
    "SELECT ''::BLOB AS c, x.s || x.s AS d, "
    "min('\\xAB\\x00'::BLOB || 'a'::BLOB) AS m FROM u x {} JOIN u y ON x.i = y.i GROUP BY 1, 2",
    "SELECT x.i, y.i FROM u x {} JOIN u y ON x.i = y.i AND ['a'::BLOB < 'b'::BLOB, x.i > 1] = [true, y.i > 1]",
]


@pytest.mark.parametrize("disabled", ["", "join_order", "push_down_filter"])
@pytest.mark.parametrize("kind", ["", "LEFT", "FULL"])
def test_of_bytes(kind: str, disabled: str) -> None:
    for sql in STATEMENTS:
        assert_same(sql.format(kind), TABLES, targets=("python",), settings={"disabled_rules": disabled})
