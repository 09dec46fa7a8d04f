"""The page of plots: what it draws, and that it stands alone."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tpch import samples
from tpch.commands import main
from tpch.report.series import panels
from tpch.samples import Sample, Setting

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

OWN = Setting(
    time="2026-11-21T00:00:00+00:00", command="tpch run --sf 1 <b>", sf=1.0, io="resident", device="cuda",
    parameters="validation", options={"devices": 1, "threads": None, "interpret_limit": None, "settings": []},
    machine={"cpu": "A processor", "cores": 16, "memory_bytes": 2**37, "system": "Linux", "gpus": ["A GPU"], "driver": "1"},
    versions={"gquery": "0.1.0", "python": "3.12"}, engine="gquery", description="gquery on cuda:0",
    copy_bandwidth=4e12,
)  # fmt: skip
PEER = replace(OWN, engine="duckdb", description="DuckDB", copy_bandwidth=None)


def engine(setting: Setting, factor: float) -> list[Sample]:
    """Three queries with a first run and two hot ones each."""
    found = []
    for query in (1, 2, 3):
        split = {"parse": 0.1, "plan": 0.2, "compile": 0.3, "run": 0.3} if setting.engine == "gquery" else None
        found.append(Sample(setting, "first", query, seconds=factor, split=split, answer="right"))
        hot = factor * query / 100
        found += [Sample(setting, "hot", query, n, seconds=hot, split={"run": hot / 2}) for n in (1, 2)]
    return found


def traffic(query: int) -> Sample:
    return Sample(OWN, "traffic", query, moved={"read": 3 * 10**9, "written": 10**9, "columns": 2 * 10**9})


ALL = [*engine(OWN, 1.0), *(traffic(q) for q in (1, 2, 3)), *engine(PEER, 5.0), *engine(replace(OWN, sf=10.0), 9.0)]


def made(tmp_path: Path, found: list[Sample], *arguments: str) -> str:
    samples.append(tmp_path / "all.jsonl", found)
    page = tmp_path / "page.html"
    done = CliRunner().invoke(main, ["report", str(tmp_path / "all.jsonl"), "-o", str(page), *arguments])
    assert done.exit_code == 0, done.output
    return page.read_text()


def specs(page: str) -> list[dict[str, Any]]:
    text = re.search(r"const specs = (.*);\n", page)
    assert text is not None
    plots: list[dict[str, Any]] = json.loads(text[1].replace("<\\/", "</"))
    return plots


def test_the_numbers_that_are_drawn() -> None:
    large, panel = panels(ALL)
    assert (large.sf, panel.sf) == (10.0, 1.0) and [s.name for s in panel.series] == ["gquery", "duckdb"]
    own, peer = panel.series
    assert own.medians() == {1: 0.01, 2: 0.02, 3: 0.03} and peer.total() == pytest.approx(0.3)
    parts = own.split("first")[2]
    assert parts["plan"] == pytest.approx(0.3) and parts["run"] == pytest.approx(0.4)  # what is unaccounted for is run
    assert sum(parts.values()) == pytest.approx(1.0)
    assert own.share(2, "moved") == pytest.approx(4e9 / 0.02 / 4e12)
    assert own.share(2, "columns") == pytest.approx(2e9 / 0.02 / 4e12)
    assert peer.share(2, "moved") is None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of all samples, and a plot of it, which several tests look at."""
    folder = tmp_path_factory.mktemp("report")
    made(folder, ALL, "--title", "A <title>", "--svg", str(folder / "main.svg"))
    return folder


def test_the_plots(folder: Path) -> None:
    found = specs((folder / "page.html").read_text())
    titles = [s["title"] for s in found]
    for part in ("Time of each query", "Speed-up", "Bytes of each", "Share of the copy", "over the scale factor"):
        assert any(title.startswith(part) or part in title for title in titles), part
    assert sum("Where the time of" in t for t in titles) == 4  # hot and first, at two scale factors
    (speedup,) = [s for s in found if s["title"].startswith("Speed-up")]
    values = speedup["layer"][0]["data"]["values"]
    assert {v["query"]: v["times"] for v in values} == pytest.approx({"Q1": 5.0, "Q2": 5.0, "Q3": 5.0})


def test_the_page_stands_alone(folder: Path) -> None:
    page = (folder / "page.html").read_text()
    head = page.split("<script>")[0]  # what comes behind is text of scripts
    assert not re.search(r"<(script|link|img|iframe)[^>]+(src|href)=", head) and page.count("<script>") == 2
    assert "A &lt;title&gt;" in head and "tpch run --sf 1 &lt;b&gt;" in head and "<b>" not in head
    assert head.count("Derived from TPC-H, not comparable to published TPC results.") == 2
    assert "A GPU" in head and "A processor, 16 cores" in head and "all right" in head
    assert (folder / "main.svg").read_text().startswith("<svg")


def test_what_was_wrong_is_on_the_page(tmp_path: Path) -> None:
    wrong = [replace(s, answer="3 rows, expected 4") if s.query == 2 and s.answer else s for s in engine(OWN, 1.0)]
    unchecked = [replace(s, answer="unchecked") if s.answer else s for s in engine(PEER, 1.0)]
    page = made(tmp_path, [*wrong, *unchecked])
    assert "Q2: 3 rows, expected 4" in page and "3 unchecked" in page and "all right" not in page


def test_series_are_told_apart_by_what_differs() -> None:
    cpu = replace(OWN, device="cpu")
    four = replace(OWN, options={**OWN.options, "threads": 4})
    assert [s.name for s in panels([*engine(OWN, 1.0), *engine(cpu, 2.0)])[0].series] == ["gquery, cpu", "gquery, cuda"]
    names = [s.name for s in panels([*engine(OWN, 1.0), *engine(four, 2.0), *engine(PEER, 2.0)])[0].series]
    assert names == ["gquery, 16 threads", "gquery, 4 threads", "duckdb"]


def test_a_file_without_times(tmp_path: Path) -> None:
    samples.append(tmp_path / "none.jsonl", [Sample(OWN, "none", 1, answer="failed: x")])
    done = CliRunner().invoke(main, ["report", str(tmp_path / "none.jsonl"), "-o", str(tmp_path / "page.html")])
    assert done.exit_code == 1 and "no times" in done.output


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_page_in_a_browser(folder: Path) -> None:
    """Every plot is drawn, and nothing is complained about or fetched."""
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium, driver = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no chromium with chromedriver")
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    page = (folder / "page.html").read_text()
    options = Options()
    options.binary_location = chromium
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    try:
        browser.implicitly_wait(20)
        browser.get((folder / "page.html").as_uri())
        count = len(specs(page))
        assert browser.find_elements("css selector", f"#plot{count} svg path")
        assert len(browser.find_elements("css selector", ".plot svg.marks")) == count
        assert browser.get_log("browser") == []
        assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    finally:
        browser.quit()
