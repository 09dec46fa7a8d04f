"""Types and values that are found out of CSV and JSON files, against DuckDB."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import gquery

CSV = (
    "a,b\n01234,1\n00001,2\n", "a\n12\n+5\n-3\n", "a\n1e5\n2.5\n", "a\n2000-01-01\n2001-02-03\n", "a\nt\nf\n", "a\nyes\nNo\n",
    "a\n1\n\n2\n", "a\ninf\nnan\n1.5\n", "a\n0\n01\n", "a\n0.10\n1.5\n", "a\n00\n0\n", "a\n-01\n5\n", "a\n01.5\n2\n",
    "a\n99999999999999999999\n1\n", "a,b\n1,x\n2,\n", "a\n2000-01-01 10:00:00\n2001-02-03 00:00:00.5\n", "a\n0e5\n2\n",
    "a\n1.5\ninf\n-Infinity\nnan\n", "a\nnan\n", "a\nnan\ninf\n1\n", "a,b\n,1\n1,2\ninf,3\n", "a\n-inf\n1\n", "a\n+inf\n1\n",
    'a,b\r1,x\r2,"y\rz"\r', "a\r1\r2\r", "a,b\r\n1,x\r\n", "a,b", '"a",b c', "a", "a,b\nx\u2028y,1\n", "a,b\n\x1cz,1\n",
)  # fmt: skip
JSON = (
    '{"a":1}\n{"a":2.5}\n', '{"a":99999999999999999999}\n', '{"a":"2000-01-01"}\n{"a":null}\n', '{"a":-0.0}\n',
    '{"a":"2000-01-01 10:00:00"}\n', '{"a":9007199254740993}\n',
    '[{"a":18446744073709551616},{"a":1}]', '{"a":9223372036854775808}\n{"a":2.5}\n', '{"a":true}\n{"a":null}\n',
)  # fmt: skip


@pytest.mark.parametrize("suffix,text", [*(("csv", t) for t in CSV), *(("json", t) for t in JSON)])
def test_types_and_values_are_those_of_duckdb(tmp_path: Path, suffix: str, text: str) -> None:
    path = tmp_path / f"t.{suffix}"
    path.write_text(text)
    sql = f"SELECT * FROM read_{suffix}('{path}')"
    want, got = duckdb.sql(sql), gquery.connect(device="python").sql(sql)
    assert [str(t) for t in got.types] == [str(t) for t in want.types]
    assert repr(got.fetchall()) == repr(want.fetchall())


@pytest.mark.parametrize("text", ['{"a":18446744073709551615}\n{"a":1}\n', '[{"a":9223372036854775808}]'])
def test_integers_of_json_beyond_63_bits(tmp_path: Path, text: str) -> None:
    """UBIGINT, where DuckDB takes HUGEINT."""
    path = tmp_path / "t.json"
    path.write_text(text)
    sql = f"SELECT a FROM read_json('{path}')"
    got = gquery.connect(device="python").sql(sql)
    assert [str(t) for t in got.types] == ["UBIGINT"]
    assert got.fetchall() == duckdb.sql(sql).fetchall()
