"""The engine knows no benchmark: no table, column or query of TPC-H is named anywhere under ``gquery``.

The shell has a command that calls the package ``tpch``; the name of the benchmark alone may stand there.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tpch import queries

ROOT = Path(__file__).resolve().parent.parent
PREFIXES = ("l_", "o_", "c_", "p_", "ps_", "s_", "n_", "r_")
COLUMNS = sorted(
    {
        word
        for number in queries.NUMBERS
        for word in re.findall(r"\b[a-z]+_[a-z]+\b", queries.sql(number))
        if word.startswith(PREFIXES)
    }
)
# the other tables' names are words that a docstring may use
TABLES = ("lineitem", "partsupp", "tpch", "tpc-h", "tpc_h")
NAMES = re.compile(rf"\b(?:{'|'.join(map(re.escape, (*TABLES, *COLUMNS)))})\b")


def test_the_list_is_not_empty() -> None:
    assert {"l_shipdate", "o_orderkey", "ps_supplycost"} <= set(COLUMNS)


@pytest.mark.parametrize("path", sorted((ROOT / "gquery").rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_no_name(path: Path) -> None:
    found = NAMES.findall(path.read_text().lower())
    is_shell = (ROOT / "gquery" / "shell") in path.parents
    assert [name for name in found if not (is_shell and name in ("tpch", "tpc-h"))] == []
