"""The engine knows no benchmark: no table, column or query of TPC-H is named anywhere under ``gquery``.

The shell has a command that calls the package ``tpch``; the name of the benchmark alone may stand there.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.paths import ROOT
from tpch import queries

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


def test_no_name() -> None:
    named = [(path.relative_to(ROOT), _names(path)) for path in sorted((ROOT / "gquery").rglob("*.py"))]
    assert [(str(path), names) for path, names in named if names] == []


def _names(path: Path) -> list[str]:
    is_shell = (ROOT / "gquery" / "shell") in path.parents
    found = NAMES.findall(path.read_text().lower())
    return [name for name in found if not (is_shell and name in ("tpch", "tpc-h"))]
