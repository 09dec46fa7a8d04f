"""The suite of microbenchmarks: its cases run and their answers are right, a wrong one is noticed, data is what it says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gquery
from benchmarks import __main__ as suite
from benchmarks import measure, report
from benchmarks.cases import cases
from benchmarks.data import CHECK, STRING_BYTES, Maker, Tables, exact_sum, fingerprint, occurrences
from benchmarks.duckdb_resident import DuckDB
from benchmarks.measure import Answer, Case, Checks, Measurement
from gquery.device.device import cpu_device

ROWS = 1_000
MAKE = Maker(cpu_device())
GPU = report.Machine("cuda:0", "a GPU", 4e12, report.REFERENCE_ROWS)


@pytest.fixture(autouse=True)
def no_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "WARM_SECONDS", 0.0)
    monkeypatch.setattr(measure, "WARM_RUNS", 1)


def all_cases() -> dict[str, Case]:
    return {c.name: c for c in cases(report.REFERENCE_ROWS)}


def run(chosen: list[Case], device: str = "python", path: Path | None = None, profile: bool = False) -> int:
    with gquery.connect(device=device) as connection:
        if path is None:
            return suite.run(connection, chosen, suite.Runs(ROWS, 1, profile), None)
        with path.open("w") as output:
            return suite.run(connection, chosen, suite.Runs(ROWS, 1, profile), output)


# ---- cases -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    ["scan", "filter", "decimal", "group", "distinct", "join", "sort", "like", "string/", "window", "aggregate", "set"],
)
def test_answers_are_right(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = [c for c in cases(ROWS) if c.name.startswith(kind)]
    assert run(chosen) == 0, capsys.readouterr().out
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(chosen)


def test_answers_of_kernels_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = cases(ROWS, "join/sparse/rows") + cases(ROWS, "group/two-sparse")
    with gquery.connect(device="cpu") as connection:
        connection.set("interpret_limit", 0)
        assert suite.run(connection, chosen, suite.Runs(ROWS, 1, False), None) == 0, capsys.readouterr().out


@pytest.mark.cuda
def test_answers_on_a_gpu_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    with gquery.connect(device="cuda") as connection:
        connection.set("interpret_limit", 0)
        assert suite.run(connection, cases(20_000), suite.Runs(20_000, 1, True), None) == 0, capsys.readouterr().out


def test_a_peer_is_asked_in_turns(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = cases(ROWS, "window/top,aggregate/rollup")
    with gquery.connect(device="python") as connection, DuckDB(1) as peer:
        assert suite.run(connection, chosen, suite.Runs(ROWS, 1, False), None, peer) == 0
    *_, first, second, together = capsys.readouterr().out.splitlines()
    assert all(re.search(r"  DuckDB \d+ ms: \d+\.\d\d times, CPU \d+\.\d\d$", line) for line in (first, second))
    assert together.startswith("together, best runs: ")


def one_more(case: Case) -> Case:
    """The case with a check that is off by one."""

    def check(make: Maker, tables: Tables, answer: Answer) -> Checks:
        for what, got, expected in case.check(make, tables, answer):
            yield what, got, expected + 1

    return replace(case, check=check)


def test_a_wrong_answer_and_a_failure_are_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    right, other = cases(ROWS, "scan/sum")[0], cases(ROWS, "scan/count")[0]
    failing = replace(other, name="scan/broken", sql="SELECT sum(nothing) FROM t")
    path = tmp_path / "out.jsonl"
    assert run([one_more(other), failing, right], path=path) == 1
    out = capsys.readouterr().out.splitlines()
    assert f"WRONG: the count is {ROWS}, not {ROWS + 1}" in out[2]
    assert "FAILED: " in out[3] and "nothing" in out[3]
    assert "WRONG" not in out[4] and "FAILED" not in out[4]
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [r["record"] for r in records] == ["machine", "case", "failure", "case"]
    assert records[1]["wrong"] is not None and records[3]["wrong"] is None
    assert run([failing]) == 1 and run([right]) == 0


def test_every_check_notices_lost_rows(capsys: pytest.CaptureFixture[str]) -> None:
    lossy = [
        replace(c, sql=re.sub(r"FROM ([tpe])\b", r"FROM (SELECT * FROM \1 LIMIT 100 OFFSET 100) AS \1", c.sql))
        for c in cases(ROWS)
        if c.name != "recursion/count"  # it reads no table
    ]
    assert run(lossy) == 1
    lines = capsys.readouterr().out.splitlines()[2:]
    assert len(lines) == len(lossy)
    assert [line for line in lines if "WRONG" not in line] == []


def test_every_target_stands_on_a_case() -> None:
    known = all_cases()
    for place, case in enumerate(known.values()):
        if case.times is not None:
            assert case.times[0] in list(known)[:place], f"{case.name} rests on a case that is not before it"


def test_targets_are_those_that_were_set() -> None:
    known = all_cases()
    assert {n: known[f"group/uniform/{n}"].target for n in ("4", "1k", "1M", "50M")} == {
        "4": 1.0, "1k": 2.0, "1M": 6.0, "50M": 19.0,
    }  # fmt: skip
    assert all(known[f"group/skewed/{n}"].times == (f"group/uniform/{n}", 1.5) for n in ("1k", "1M", "50M"))
    wanted = {"join/sparse/100M": 20.0, "sort/int32-int64-desc": 40.0, "like/two-words": 12.0}
    wanted |= {"distinct/count/sparse/50M": 8.0, "distinct/count/uniform/50M": 8.0}
    assert {n: known[n].target for n in wanted} == wanted
    assert known["like/two-words"].rows * STRING_BYTES == pytest.approx(10e9, rel=1e-6)


def test_small_sizes_leave_no_case_twice() -> None:
    names = [c.name for c in cases(ROWS)]
    assert len(names) == len(set(names))
    assert "group/uniform/500" in names and "join/dense/1k" in names


def test_only() -> None:
    assert {c.name for c in cases(ROWS, "sort/top")} == {"sort/top-10"}
    assert {c.name for c in cases(ROWS, "join/*semi")} == {"join/sparse/semi/1k"}
    assert {c.name for c in cases(ROWS, "sort/top,scan/count")} == {"sort/top-10", "scan/count"}
    assert cases(ROWS, "no such") == []


def test_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    arguments = [
        "--device",
        "python",
        "--rows",
        "1k",
        "--runs",
        "2",
        "--only",
        "scan/sum",
        "--json",
        str(path),
        "--profile",
    ]
    assert suite.main(arguments) == 0
    head, _, line, *stages = capsys.readouterr().out.splitlines()
    assert head.startswith("python (") and line.split()[:2] == ["scan/sum", "1,000"]
    assert any("aggregate" in s for s in stages)
    machine, case = (json.loads(text) for text in path.read_text().splitlines())
    assert machine["versions"]["numpy"] == np.__version__ and machine["rows"] == ROWS
    assert machine["copy_bytes_per_second"] > 0
    assert len(case["samples_ms"]) == 2 and case["median_ms"] == pytest.approx(sum(case["samples_ms"]) / 2)
    assert case["bytes_read"] == 4 * ROWS  # the sum's column alone, in the narrowest integers
    assert case["stages"][0]["rows"] == ROWS and case["target_ms"] is None
    with pytest.raises(SystemExit):
        suite.main(["--only", "no such"])


def test_list_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert suite.main(["--list", "--only", "sort"]) == 0
    assert "ORDER BY a, b DESC" in capsys.readouterr().out


# ---- targets ---------------------------------------------------------------------------------------------------------


def test_times_of_others_stand_where_the_data_is_theirs() -> None:
    case = all_cases()["sort/int32-int64-desc"]
    elsewhere = [replace(GPU, device="cpu"), replace(GPU, rows=ROWS)]
    assert report.target_of(case, GPU, {}) == 40.0
    assert [report.target_of(case, machine, {}) for machine in elsewhere] == [None, None]
    measured = Measurement(case, (0.05, 0.041, 0.039), 1.0, 4_000_000_000, ROWS, None)
    assert re.search(r"41\.000 .* 130\.8 +40\.0  over \(1\.0[23] times\)$", report.line(measured, GPU, 40.0))
    assert re.search(r" 40\.0  ok$", report.line(replace(measured, samples=(0.04,)), GPU, 40.0))
    assert "130.8" not in report.line(measured, elsewhere[0], None)
    assert report.record(measured, GPU, 40.0)["ok"] is False


def test_a_target_may_rest_on_another_case() -> None:
    case = all_cases()["group/skewed/1M"]
    assert report.target_of(case, GPU, {"group/uniform/1M": 4.0}) == 6.0
    assert report.target_of(case, GPU, {}) is None


# ---- data ------------------------------------------------------------------------------------------------------------


def test_integers() -> None:
    a, b = MAKE.random(100_000, 100, 1), MAKE.random(100_000, 100, 2)
    assert sorted(set(a.tolist())) == list(range(100))
    assert np.bincount(a).min() > 800 and abs(np.corrcoef(a, b)[0, 1]) < 0.02
    assert len(np.unique(MAKE.unique(100_000, 1))) == 100_000
    permutation = MAKE.permutation(1_000, 3)
    assert sorted(permutation.tolist()) == list(range(1_000)) and permutation.tolist() != list(range(1_000))
    numbers = np.arange(1_000)
    assert len(np.unique(MAKE.sparse(numbers))) == 1_000 and np.ptp(MAKE.sparse(numbers) / 2.0**63) > 1.9


def test_sentences() -> None:
    matrix = MAKE.sentences(50_000)
    texts = [bytes(row).decode() for row in matrix]
    assert all(len(t) == STRING_BYTES for t in texts)
    found = sum(re.search("special.*requests", t) is not None for t in texts)
    assert occurrences(np, matrix, ("special", "requests")) == found
    assert 0.003 < found / len(texts) < 0.03
    assert len(set(texts)) > 0.99 * len(texts)


def test_sums_that_checks_rest_on() -> None:
    assert exact_sum(np.array([2**62, 2**62, 2**62, -5])) == 3 * 2**62 - 5
    key, value = np.array([1, 2, 1, 3]), np.array([10, 20, 30, 40])
    same = fingerprint(np.array([3, 1, 2]), np.array([40, 40, 20]))
    assert fingerprint(key, value) == same
    assert fingerprint(key, np.array([11, 20, 29, 40])) == same
    assert fingerprint(key, np.array([11, 19, 30, 40])) != same


def datasets() -> Iterator[tuple[str, Tables]]:
    for case in {c.data.name: c for c in cases(ROWS)}.values():
        yield case.data.name, case.data.make(MAKE)


def test_half_of_the_rows_are_in_one_key() -> None:
    made = dict(datasets())
    assert np.bincount(made["skewed keys, 500"]["t"]["k"]).max() == pytest.approx(ROWS / 2, rel=0.1)
    assert np.bincount(made["uniform keys, 500"]["t"]["k"]).max() < 12
    assert (np.diff(made["sorted keys, 500"]["t"]["k"]) >= 0).all()
    assert CHECK in made["sentences"]
