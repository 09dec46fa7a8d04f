"""What a fresh process does not import for a query over a Parquet file, and the functions that it calls instead."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import gquery
from gquery.runtime.arrow_compute import (
    at_least,
    cast,
    dictionary_encode,
    different,
    matches,
    sorted_places,
    take,
    value_counts,
)

SCRIPT = """
import sys, gquery
from gquery import tuning
for name in ("trial_seconds", "most_seconds", "break_even_seconds", "background_seconds"):  # whatever else the machine does
    object.__setattr__(tuning.interpreting, name, 60.0)
rows = gquery.connect("cpu").sql(sys.argv[1]).fetchall()
print(len(rows), rows[0], [m for m in sys.argv[2].split() if m in sys.modules])
"""
UNUSED = (
    "pandas", "pyarrow.compute", "pyarrow.parquet", "numpy.ma", "cloudpickle", "socket", "glob", "sqlglot.dialects.duckdb",
    "sqlglot.parsers.duckdb", "gquery.sql.dialect", "gquery.sql.closed", "gquery.sql.binding.catalog", "gquery.functions.dates",
    "gquery.functions.strings", "gquery.functions.lists", "gquery.distributed.transport",
)  # fmt: skip
UNUSED_BY_NUMBERS = (
    "gquery.kernels.host_calls", "gquery.kernels.like", "gquery.functions.binary", "gquery.columns.assemble_texts",
    "gquery.planner.preview", "gquery.planner.logical.united",
    "gquery.execution.collected",
)  # fmt: skip
MOST = 494


@pytest.mark.parametrize(
    "where",
    [
        "k < 3000",
        "k BETWEEN 10 AND 4000 AND s <> 'x' ORDER BY s, k",
        "s = 'text 7'",
        "k < 9 LIMIT 3",
        "s LIKE 'te%7' AND s LIKE '%xt%'",
    ],
)
def test_what_reading_text_does_not_import(tmp_path: Path, where: str) -> None:
    texts = [None if n % 5 == 0 else f"text {n % 40}" for n in range(20_000)]
    table = pa.table({"k": range(20_000), "s": texts, "u": [f"own {n}" for n in range(20_000)]})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=2_500)
    query = f"SELECT * FROM '{tmp_path / 't.parquet'}' WHERE {where}"
    options = [sys.executable, "-c", SCRIPT, query, " ".join(UNUSED)]
    found = subprocess.run(options, check=True, capture_output=True, text=True).stdout
    assert int(found.split()[0]) > 0 and found.rstrip().endswith("[]"), found


@pytest.mark.parametrize("what", ["count(*), sum(k), min(k) FROM f WHERE k BETWEEN 10 AND 300", "* FROM f WHERE k > 5 LIMIT 3"])
def test_how_much_a_filter_over_numbers_imports(tmp_path: Path, what: str) -> None:
    """Each module takes 0.15 ms of a process: one that only other queries need is imported where they need it."""
    pq.write_table(pa.table({"k": range(20_000), "x": [0.5] * 20_000}), tmp_path / "t.parquet", row_group_size=2_500)
    code = """
import sys, gquery
from gquery import tuning
for name in ("trial_seconds", "most_seconds", "break_even_seconds", "background_seconds"):  # whatever else the machine does
    object.__setattr__(tuning.interpreting, name, 60.0)
rows = gquery.connect("cpu").sql(sys.argv[1]).fetchall()
print(len(rows), sum(m.startswith("gquery") for m in sys.modules), [m for m in sys.argv[2].split() if m in sys.modules])
"""
    query = "SELECT " + what.replace(" f ", f" '{tmp_path / 't.parquet'}' ")
    options = [sys.executable, "-c", code, query, " ".join([*UNUSED, *UNUSED_BY_NUMBERS])]
    rows, modules, unused = subprocess.run(options, check=True, capture_output=True, text=True).stdout.split(maxsplit=2)
    assert int(rows) in (1, 3) and int(modules) <= MOST and unused.strip() == "[]"


def test_arrow_converts_for_users_alone() -> None:
    """`to_numpy` of an Arrow array imports pandas where that is installed, 0.25 s of a first query."""
    package = Path(gquery.__file__).parent
    found = {p.relative_to(package).as_posix() for p in package.rglob("*.py") if ".to_numpy(" in p.read_text()}
    assert found == {"result/output.py", "result/result_column.py"}


def test_who_converts_values_of_python() -> None:
    """`pa.array` imports pandas where that is installed, whatever it is given. What reads columns makes arrays of buffers, values
    of Python become arrays by `runtime.value_arrays`; these take what may be NumPy's, CuPy's or nested."""
    package = Path(gquery.__file__).parent
    found = {p.relative_to(package).as_posix() for p in package.rglob("*.py") if "pa.array(" in p.read_text()}
    assert {f for f in found if not f.startswith("functions/list")} == {
        "columns/arrow_intervals.py", "io/memory.py", "runtime/value_arrays.py",
    }  # fmt: skip


STATEMENTS = (
    "SELECT * FROM (VALUES (1, 'a', 1.5, 2.5::DOUBLE, DATE '2020-01-01', true), (NULL, NULL, NULL, NULL, NULL, NULL)) v",
    "INSERT INTO t VALUES (1, 'a', 1.25, DATE '2020-01-01', true, 1.5)",
    "INSERT INTO t VALUES (2, NULL, 3.5, NULL, false, NULL), (NULL, 'c', NULL, DATE '1999-12-31', NULL, 0.5)",
    "SELECT lpad(s, 5, 'xy'), rpad(s, 3, '-'), json_object('a', i), json_array(i, s), i::VARCHAR FROM t",
    "SELECT to_json([i]), ([i, 2])::VARCHAR, '[1, 2]'::INTEGER[], {'a': s}::VARCHAR, map {'a b': i}::VARCHAR FROM t",
    "SELECT strptime('2020-01-0' || i, '%Y-%m-%d'), count(('2020-01-01 00:00:0' || i || '+02')::TIMESTAMPTZ) FROM t GROUP BY 1",
)


def test_values_and_functions_do_not_import_pandas() -> None:
    """In a process that has pandas installed, and does nothing with it."""
    code = f"""
import sys, gquery
db = gquery.connect("python")
db.sql("CREATE TABLE t (i INTEGER, s VARCHAR, d DECIMAL(9, 2), day DATE, b BOOLEAN, f DOUBLE)")
found = []
for statement in {STATEMENTS!r}:
    result = db.sql(statement)
    if not statement.startswith("INSERT"):
        result.fetchall()
    if "pandas" in sys.modules:
        found.append(statement)
        del sys.modules["pandas"]
print(found, db.sql("SELECT count(*), sum(i), sum(d), count(s) FROM t").fetchall())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[] "), done.stdout


def test_functions_are_arrows() -> None:
    texts = pa.array(["b", None, "a", "ä", "", "b"])
    for array in (texts, texts.slice(1, 4), texts.cast(pa.large_string()), texts.slice(0, 0)):
        encoded = dictionary_encode(array)
        assert encoded.equals(array.dictionary_encode())
        order = sorted_places(encoded.dictionary)
        assert order.equals(pc.sort_indices(encoded.dictionary))
        assert take(array, pa.array(np.arange(len(array))[::-1])).equals(
            array.take(pa.array(np.arange(len(array))[::-1]))
        )
        assert cast(array, pa.large_string()).equals(array.cast(pa.large_string()))
        assert value_counts(array).equals(pc.value_counts(array))
        assert different(array).equals(array.unique().drop_null())
        assert at_least(array, pa.scalar("b", array.type)).equals(pc.greater_equal(array, "b"))
        for function in ("match_substring", "starts_with", "ends_with"):
            assert matches(function, array, "ä").equals(getattr(pc, function)(array, "ä"))
    chunked = pa.chunked_array([texts, texts.slice(2)])
    assert dictionary_encode(chunked).equals(chunked.dictionary_encode())
    assert cast(chunked, pa.large_string()).equals(chunked.cast(pa.large_string()))
    assert take(texts, pa.array([None, 0], pa.int32())).to_pylist() == [None, "b"]
    assert cast(texts, texts.type) is texts
    with pytest.raises(pa.ArrowInvalid):
        cast(pa.array(["x"]), pa.int64())
    with pytest.raises(IndexError):
        take(texts, pa.array([99]))
