"""The notebook: magics run by a real kernel through nbclient, tables as HTML, errors, Python variables as tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "howto" / "notebook.md"
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
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    outputs = outputs_of(CELLS)
    assert "[('jam', Decimal('420')), ('tea', Decimal('550'))]" in _text(outputs[3]) or (
        "[('jam', 420), ('tea', 550)]" in _text(outputs[3])
    )
    assert "<td>420</td>" in _html(outputs[4])
    assert "<td>42</td>" in _html(outputs[6])
    assert _error(outputs[7]) == "BindError"
    shown = "\n".join(next(o for o in outputs[7] if o.output_type == "error").traceback)
    assert "LINE 1: SELECT nothing FROM sales" in shown
    assert "Traceback" not in shown
    assert ".py" not in shown, "our frames say nothing to who wrote the cell"
    assert _error(outputs[8]) == "UsageError"
    for n in (0, 1, 2, 3, 9):
        assert _error(outputs[n]) is None, outputs[n]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::UserWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::RuntimeWarning")
def test_the_cells_of_the_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"kind": ["tea", "jam", "tea"], "price": [250, 420, 300]}), "sales.parquet")
    cells = re.findall(r"^```text\n(.*?)\n```$", PAGE.read_text(), re.S | re.M)
    assert len(cells) >= 5
    for cell, outputs in zip(cells, outputs_of(("import gquery", *cells))[1:], strict=True):
        assert _error(outputs) is None, (cell, outputs)
        assert "gquery" in cell
        assert bool(_html(outputs)) == (cell.startswith("%%gquery") and "<<" not in cell), cell


def outputs_of(cells: tuple[str, ...]) -> list[Any]:
    """What the cells of a notebook show, run in order."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    nbclient.NotebookClient(notebook, timeout=60, allow_errors=True, kernel_name="python3").execute()
    return [cell.outputs for cell in notebook.cells]


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
