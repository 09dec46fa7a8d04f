"""EXPLAIN and EXPLAIN ANALYZE: rows, pipelines, what kernels took; as text, JSON and a page that a browser opens."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import errors

ROWS = 4_000
QUERY = """SELECT name, sum(a) AS total FROM t JOIN d USING (k)
WHERE a < 50 AND b <> '<b>&"' GROUP BY name ORDER BY total DESC LIMIT 5"""


@pytest.fixture(params=["python", "cpu"])
def db(request: pytest.FixtureRequest) -> Iterator[gquery.Connection]:
    with gquery.connect(request.param) as connection:
        connection.sql("SET interpret_limit = 0")
        numbers = np.arange(ROWS)
        data = {"a": numbers % 100, "k": numbers % 40, "b": np.where(numbers % 4 == 0, '<b>&"', "plain")}
        connection.register("t", pa.table(data))
        connection.register("d", pa.table({"k": np.arange(20), "name": [f"name{n}" for n in range(20)]}))
        yield connection


def analyzed(db: gquery.Connection, query: str = QUERY) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(db.explain(query, "analyze", format="json"))
    return made


def operators(stages: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [o for stage in stages for o in stage["operators"] if o["operator"] == kind]


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node["children"]:
        yield from nodes(child)


def test_rows_are_true(db: gquery.Connection) -> None:
    """Rows behind each fused step are those that the query says, whatever kernel ran."""
    made = analyzed(db)
    rows = db.sql("SELECT count(*) FROM t WHERE a < 50").fetchall()[0][0]
    both = db.sql("""SELECT count(*) FROM t WHERE a < 50 AND b <> '<b>&"'""").fetchall()[0][0]
    joined = db.sql("""SELECT count(*) FROM t JOIN d USING (k) WHERE a < 50 AND b <> '<b>&"'""").fetchall()[0][0]
    counts = [o["true_rows"] for o in operators(made["stages"], "FilterRows")]
    assert sorted(counts)[-1] in (rows, ROWS - ROWS // 4)
    assert sorted(counts)[0] == both
    assert [o["true_rows"] for o in operators(made["stages"], "Probe")] == [joined]
    by_name = {n["operator"]: n for n in nodes(made["plan"])}
    assert by_name["Join"]["true_rows"] == joined
    assert by_name["Filter"]["true_rows"] == both
    assert by_name["Sort"]["true_rows"] == made["rows"] == 5
    assert all(n["estimated_rows"] is not None for n in nodes(made["plan"]))


def test_rows_of_several_partitions_add_up(db: gquery.Connection) -> None:
    whole = [o["true_rows"] for s in analyzed(db)["stages"] for o in s["operators"]]
    db.sql("SET partitions = 3")
    made = analyzed(db)
    assert [o["true_rows"] for s in made["stages"] for o in s["operators"]] == whole
    assert max(k["launches"] for s in made["stages"] for k in s["kernels"]) >= 3


def test_counting_kernels_compile_for_a_gpu() -> None:
    """The kernels that count are generated text like others; a GPU's compiler takes them, on a machine without one."""
    from gquery.kernels.targets import get_target
    from gquery.operators.codegen import units
    from gquery.planner.physical import Pipeline

    target: Any = get_target("cuda")
    with gquery.connect("python") as db:
        db.register("t", pa.table({"a": np.arange(ROWS) % 7, "b": np.arange(ROWS)}))
        stages = db.program("SELECT a, sum(b) FROM t WHERE b > 5 GROUP BY a", "cuda").stages
    (pipeline,) = [s.work for s in stages if isinstance(s.work, Pipeline) and s.work.steps]
    (unit,) = units(pipeline, "cuda", counted=True)
    assert "reduce_add_i64(" in unit.kernel.text
    assert target.compile_cubin(unit.kernel, (9, 0)).registers > 0


@pytest.mark.cuda
def test_on_a_gpu() -> None:
    """Times between events, registers, peak memory and the bandwidth of a copy are there, and counts are true."""
    rows = 20_000_000
    with gquery.connect("cuda") as db:
        db.register("t", pa.table({"a": np.arange(rows) % 100, "b": np.arange(rows) % 1000}))
        db.register("d", pa.table({"a": np.arange(50), "c": np.arange(50) % 7}))
        query = "SELECT c, sum(b) FROM t JOIN d USING (a) WHERE b < 500 GROUP BY c"
        analyzed(db, query)
        made = analyzed(db, query)
        assert made["device"].startswith("cuda")
        assert made["peak_bytes"] > rows
        assert made["copy_bandwidth"] > 1e10
        (kernel,) = [k for s in made["stages"] for k in s["kernels"] if (k["bytes_read"] or 0) >= rows // 4]
        assert kernel["registers"] > 0
        assert 0 < kernel["share_of_copy"] < 1.5
        assert [o["true_rows"] for o in operators(made["stages"], "FilterRows")] == [rows // 2]
        assert [o["true_rows"] for o in operators(made["stages"], "Probe")] == [
            db.sql("SELECT count(*) FROM t WHERE a < 50 AND b < 500").fetchall()[0][0]
        ]


def test_kernels_are_measured(db: gquery.Connection) -> None:
    made = analyzed(db)
    kernels = [k for s in made["stages"] for k in s["kernels"]]
    assert kernels
    for kernel in kernels:
        assert kernel["launches"] >= 1
        assert kernel["seconds"] > 0
        assert kernel["bytes_read"] + kernel["bytes_written"] > 0
        assert "def kernel(" in kernel["source"]
    analyzed(db)  # statistics that the first run taught may have changed the plan
    again = analyzed(db)
    assert all(k["cached"] for s in again["stages"] for k in s["kernels"])
    assert made["copy_bandwidth"] > 1e8
    assert made["peak_bytes"] > 0


def test_bytes_of_a_plain_scan_are_exact(db: gquery.Connection) -> None:
    made = analyzed(db, "SELECT sum(a) FROM t")
    (kernel,) = [k for s in made["stages"] if s["number"] == 0 for k in s["kernels"]]
    assert kernel["bytes_read"] == ROWS  # a is an i8


def test_results_do_not_change(db: gquery.Connection) -> None:
    before = db.sql(QUERY).fetchall()
    analyzed(db)
    assert db.sql(QUERY).fetchall() == before


@pytest.mark.parametrize("join", ["LEFT", "FULL", "SEMI", "ANTI"])
def test_counts_of_joins(db: gquery.Connection, join: str) -> None:
    shown = "a, name" if join in ("LEFT", "FULL") else "a"
    query = f"SELECT {shown} FROM t {join} JOIN d ON t.k = d.k"
    expected = len(db.sql(query).fetchall())
    made = analyzed(db, query)
    assert made["rows"] == expected
    assert operators(made["stages"], "Probe")


def test_sql_options(db: gquery.Connection) -> None:
    text = str(db.sql(f"EXPLAIN ANALYZE {QUERY}"))
    assert "expected" in text
    assert "5 rows in" in text
    assert "kernel main: time" in text
    assert json.loads(str(db.sql(f"EXPLAIN (FORMAT json) {QUERY}")))["analyzed"] is False
    assert json.loads(str(db.sql(f"EXPLAIN ANALYZE (FORMAT json) {QUERY}")))["analyzed"] is True
    assert json.loads(str(db.sql(f"EXPLAIN (ANALYZE, FORMAT 'json') {QUERY}")))["analyzed"] is True
    assert "for i in rows(lo, hi):" in str(db.sql(f"EXPLAIN CODEGEN {QUERY}"))
    assert "Values" in str(db.sql("EXPLAIN (SELECT 1)"))
    assert db.sql("EXPLAIN ANALYZE SELECT 1; SELECT 2").fetchall() == [(2,)]
    with pytest.raises(errors.ProgrammingError, match="no format"):
        db.sql(f"EXPLAIN (FORMAT yaml) {QUERY}")
    with pytest.raises(errors.ProgrammingError, match="is text"):
        db.sql(f"EXPLAIN (bound, FORMAT json) {QUERY}")


def test_row_groups_of_a_file(db: gquery.Connection, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": range(1000)}), tmp_path / "a.parquet", row_group_size=100)
    made = analyzed(db, f"SELECT sum(a) FROM '{tmp_path}/a.parquet'")
    assert made["stages"][0]["row_groups_read"] == 10
    assert "row groups: 10 read, 0 skipped\n" in db.explain(f"SELECT sum(a) FROM '{tmp_path}/a.parquet'", "analyze")


def test_a_notebook_shows_it(db: gquery.Connection) -> None:
    assert db.sql(f"EXPLAIN {QUERY}")._repr_html_().startswith("<pre>")
    page = db.sql(f"EXPLAIN (FORMAT html) {QUERY}")._repr_html_()
    assert page.startswith("<iframe")
    assert "<h1>" not in page


def test_the_page_stands_alone(db: gquery.Connection) -> None:
    page = db.explain(QUERY, "analyze", format="html")
    assert "<b>&" not in page.replace("<b>&amp;", "")  # the text of the query is escaped
    for word in ("http://", "https://", "src=", "@import", "url("):
        assert word not in page.replace("http://www.w3.org/2000/svg", "")


def _browser() -> Any:
    """A headless Chromium, driven by selenium; the test is skipped where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no chromium with chromedriver")
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = chromium
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1200,1600"):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=Service(driver))


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_page_in_a_browser(tmp_path: Path) -> None:
    """The picture, the bars, and a click on an operator or a summary that opens the source of a kernel."""
    browser = _browser()
    try:
        with gquery.connect("cpu") as db:
            db.sql("SET interpret_limit = 0")
            db.register("t", pa.table({"a": np.arange(200_000) % 100}))
            page = tmp_path / "plan.html"
            page.write_text(db.explain("SELECT a, count(*) FROM t WHERE a < 7 GROUP BY a", "analyze", format="html"))
        browser.get(page.as_uri())
        find = browser.find_elements
        assert len(find("css selector", "svg g.node")) >= 3
        assert len(find("css selector", "svg path.edge")) >= 2
        for kind in ("time", "bandwidth"):
            bars = find("css selector", f".bar.{kind} i")
            assert bars
            assert max(bar.size["width"] for bar in bars) > 0
        (source, *_) = find("css selector", "details.source pre")
        assert not source.is_displayed()
        find("css selector", "details.source summary")[0].click()
        assert source.is_displayed()
        assert "def kernel(" in source.text
        find("css selector", "details.source summary")[0].click()
        assert not source.is_displayed()
        find("css selector", "svg g.node[data-stage] rect")[-1].click()
        assert source.is_displayed()
        assert find("css selector", ".stage.shown")
        assert [e for e in browser.get_log("browser") if e["level"] == "SEVERE"] == []
        if shots := os.environ.get("GQUERY_SCREENSHOTS"):
            browser.save_screenshot(str(Path(shots) / "plan.png"))
    finally:
        browser.quit()
