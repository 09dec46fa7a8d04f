"""The notebook: magics run by a real kernel through nbclient, tables as HTML, errors, Python variables as tables."""

from __future__ import annotations

from typing import Any

import pytest

CELLS = (
    "import gquery, pandas as pd\n%load_ext gquery",
    "sales = pd.DataFrame({'kind': ['tea', 'jam', 'tea'], 'price': [250, 420, 300]})",
    "%%gquery out << SELECT kind, sum(price) AS total\nFROM sales GROUP BY kind ORDER BY kind",
    "print(out.fetchall())",
    "%gquery SELECT max(price) AS most FROM sales",
    "db = gquery.connect(device='python')\ndb.sql(\"CREATE TABLE t AS SELECT 42 AS answer\")",
    "%%gquery --connection db\nSELECT answer FROM t",
    "%gquery SELECT nothing FROM sales",
    "%gquery --connection sales SELECT 1",
    "%%gquery\nSET threads = 2",
)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::UserWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::RuntimeWarning")
def test_magics(monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    nbclient.NotebookClient(notebook, timeout=60, allow_errors=True, kernel_name="python3").execute()
    outputs = [cell.outputs for cell in notebook.cells]
    assert "[('jam', Decimal('420')), ('tea', Decimal('550'))]" in _text(outputs[3]) or (
        "[('jam', 420), ('tea', 550)]" in _text(outputs[3])
    )
    assert "<td>420</td>" in _html(outputs[4])
    assert "<td>42</td>" in _html(outputs[6])
    assert _error(outputs[7]) == "BindError"
    assert _error(outputs[8]) == "UsageError"
    for n in (0, 1, 2, 3, 9):
        assert _error(outputs[n]) is None, outputs[n]


def _text(outputs: list[Any]) -> str:
    return "".join(o.get("text", "") for o in outputs)


def _html(outputs: list[Any]) -> str:
    return "".join(o["data"].get("text/html", "") for o in outputs if o.output_type == "execute_result")


def _error(outputs: list[Any]) -> str | None:
    for o in outputs:
        if o.output_type == "error":
            return str(o.ename)
        if o.output_type == "stream" and "UsageError" in o.text:
            return "UsageError"
    return None
