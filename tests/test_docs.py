"""The examples of README and docs run: a page's Python blocks in order, in one namespace and an empty folder.

A block that is followed by a block of text prints that text. ``<!-- needs NAME -->`` before a block skips it where the
package is missing, ``<!-- not run -->`` always. What the reference is made of is checked here too; `test_tutorials` runs
the pages under ``docs/extend``.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(
    r"(?:<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$(?:\n+```text\n(?P<out>.*?)^```$)?",
    re.M | re.S,
)


EXAMPLES = [p for p in PAGES if "_" not in str(p.relative_to(ROOT)) and p.parent.name != "extend"]


def blocks(page: Path) -> list[tuple[str, str, str | None]]:
    """The Python blocks of a page: their mark, text, and what they print."""
    found = _BLOCK.finditer(page.read_text())
    return [(m["mark"] or "", m["text"], m["out"]) for m in found if m["kind"] == "python"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(
    "page",
    [p for p in EXAMPLES if blocks(p)],
    ids=lambda p: p.stem,
)
def test_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", module)
    for mark, text, expected in blocks(page):
        if mark == "not run":
            continue
        if mark.startswith("needs ") and importlib.util.find_spec(mark.removeprefix("needs ")) is None:
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            _run(text, module.__dict__, page)
        if expected is not None and os.environ.get("GQUERY_UPDATE_GOLDEN"):
            block = f"{text}```\n\n```text\n"
            page.write_text(
                page.read_text().replace(f"{block}{expected}```", f"{block}{out.getvalue().rstrip()}\n```", 1)
            )
        elif expected is not None:
            assert out.getvalue().rstrip() == expected.rstrip(), text


def _run(text: str, names: dict[str, Any], page: Path) -> None:
    """Run a block at the lines of its page, so that functions have a source."""
    import linecache

    name = f"<{page.name}: {len(linecache.cache)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), names)


_LINK = re.compile(r"\[`([^`\n]+)`\]\((gquery/[\w/]+\.py)#L(\d+)\)")


def test_links_to_lines_are_true() -> None:
    """A link to a line of the code names what stands there; GQUERY_UPDATE_GOLDEN sets the numbers."""
    page = ROOT / "CONTRIBUTING.md"
    found = list(_LINK.finditer(page.read_text()))
    assert found
    for link in found:
        lines = (ROOT / link[2]).read_text().splitlines()
        (at,) = [n for n, line in enumerate(lines, 1) if re.search(rf"{re.escape(link[1])}(?!\w)", line)]
        if os.environ.get("GQUERY_UPDATE_GOLDEN"):
            page.write_text(page.read_text().replace(link[0], f"[`{link[1]}`]({link[2]}#L{at})"))
        else:
            assert int(link[3]) == at, f"{link[1]} stands in line {at} of {link[2]}"


def test_every_function_is_explained() -> None:
    """The reference of SQL functions says something of every public name."""
    import gquery.functions
    from gquery.functions.registry import DOCS, SIGNATURES

    assert gquery.functions.FUNCTIONS
    public = [name for name in SIGNATURES if not name.startswith("_")]
    assert [name for name in public if name not in DOCS] == []


def test_the_pages_build(tmp_path: Path) -> None:
    """Every page builds, without a warning."""
    pytest.importorskip("sphinx")
    pytest.importorskip("furo")
    pytest.importorskip("myst_parser")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "date_trunc" in (tmp_path / "reference" / "functions.html").read_text()


def _refused() -> list[str]:
    """The SQL of the tables of the page on DuckDB: the second cell of each line."""
    rows = [line.split("|") for line in (ROOT / "docs/reference/duckdb.md").read_text().splitlines() if "|" in line]
    return [row[2].strip().strip("`") for row in rows if row[2].strip().startswith("`")]


@pytest.mark.parametrize("sql", _refused())
def test_what_duckdb_has_and_gquery_does_not(sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example runs there and is refused here, by an error that names no class of a library's."""
    import duckdb

    import gquery

    monkeypatch.chdir(tmp_path)  # DuckDB writes the files that examples name
    make = (
        "CREATE TABLE t AS SELECT 1 AS a, 'x' AS s, DATE '2020-01-01' AS day, TIMESTAMP '2020-01-01 10:00:00' AS moment"
    )
    with duckdb.connect() as oracle:
        oracle.execute(make)
        oracle.execute(sql)
    db = gquery.connect(device="python")
    db.sql(make)
    with pytest.raises(gquery.Error) as caught:
        db.sql(sql).fetchall()
    assert isinstance(caught.value, gquery.NotSupportedError | gquery.BindError | gquery.ParseError)
    assert db.sql("SELECT count(*) FROM t").fetchall() == [(1,)]
