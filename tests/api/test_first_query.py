"""What a process imports for a first compiled query: no more than that needs, and nothing that takes long and is not used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
before = set(sys.modules)
import gquery
light = sorted(m for m in sys.modules if m.startswith("gquery"))
db = gquery.connect("cpu")
db.sql("SET interpret_limit = 0")
rows = db.sql("SELECT sum(i * 2), count(*) FROM range(1000000) t(i) WHERE i % 3 = 1").fetchall()
assert rows == [(2 * sum(range(1, 1000000, 3)), 333333)], rows
print([light, sorted(set(sys.modules) - before)])
"""
LIGHT = ["gquery", "gquery.api", "gquery.api.names", "gquery.errors", "gquery.runtime", "gquery.runtime.bytecode"]
MOST = 496
"""Modules of gquery. A module that only some queries need is imported in the function that needs it: each takes 0.2 ms."""
UNUSED = (
    "pyarrow.compute", "pyarrow.parquet", "pyarrow.dataset", "pandas", "numba", "cupy", "importlib.metadata", "email",
    "sqlglot.generators", "sqlglot.dialects.duckdb", "gquery.cluster", "gquery.shell", "gquery.profile", "gquery.api.ibis",
    "gquery.io.parquet", "gquery.io.text", "gquery.kernels.targets.cuda", "gquery.execution.ranked", "gquery.execution.replay",
    "gquery.operators.window", "gquery.sql.binding.pivot",
    "gquery.operators.join_table", "gquery.operators.group", "gquery.planner.lower_join", "gquery.planner.lower_rows",
    "gquery.planner.rules.join_order", "gquery.sql.dialect", "gquery.sql.grammar.statements", "gquery.sql.macros",
    "sqlglot.parsers.duckdb", "gquery.sql.closed", "gquery.sql.supported",
    "gquery.sql.vocabulary", "gquery.functions.strings", "gquery.functions.dates", "gquery.functions.lists",
    "gquery.functions.zones", "gquery.kernels.host_calls", "gquery.distributed.transport", "gquery.execution.less_memory",
    "json", "subprocess",
    "hashlib", "hmac", "secrets", "unicodedata",
)  # fmt: skip


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[str]]:
    """The modules of gquery behind ``import gquery``, and all behind a first query with an empty cache of kernels."""
    folder: Path = tmp_path_factory.mktemp("cache")
    code = f"import os; os.environ['GQUERY_CACHE_DIR'] = {str(folder)!r}\n{SCRIPT}"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    light, found = ast.literal_eval(done.stdout)
    return light, found


def test_the_package_alone_is_light(imported: tuple[list[str], list[str]]) -> None:
    assert imported[0] == sorted([*LIGHT, "gquery.runtime.collector"])


def test_a_first_query_imports_what_it_needs(imported: tuple[list[str], list[str]]) -> None:
    found = imported[1]
    assert [m for m in found if m.startswith(tuple(f"{u}." for u in UNUSED)) or m in UNUSED] == []
    assert sum(m.startswith("gquery") for m in found) <= MOST
