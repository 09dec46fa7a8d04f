"""The benchmark's runner: what it measures and writes down, how it judges answers, and what it says when something fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from tests.support.paths import ROOT
from tpch import checksum, compare, engines, job, samples
from tpch.commands import main
from tpch.engines import Answer, Options
from tpch.generate import generate
from tpch.job import Job, Text
from tpch.oracle import SHIPPED, Oracle
from tpch.run import Done, Opened, Plan
from tpch.samples import Sample, Setting
from tpch.validate import difference

SETTING = Setting(
    "2026-11-21T00:00:00+00:00", "tpch run", 1.0, "resident", "cpu", "validation", {}, {}, {}, "gquery", ""
)


def tpch(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def run(*arguments: str) -> Result:
    return tpch("run", "--sf", "0.01", "--device", "python", *arguments)


# ---- whole runs ------------------------------------------------------------------------------------------------------


def test_a_run_writes_every_sample(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    done = run("--queries", "6,11", "--runs", "2", "--engines", "gquery,duckdb", "--json", str(path))
    assert done.exit_code == 0, done.output
    assert done.output.endswith("2 of 2 right\n")
    assert "not comparable to published TPC results" in done.output
    found = samples.read(path)
    own = [s for s in found if s.setting.engine == "gquery" and s.query == 6]
    assert [s.kind for s in own] == ["first", "warmup", "hot", "hot", "traffic"]
    assert own[0].answer == "right" and own[0].split and own[0].rows == 1
    assert sum(own[0].split.values()) <= (own[0].seconds or 0)
    assert (own[-1].moved["columns"] or 0) > 0 and own[-1].setting.copy_bandwidth
    peer = [s for s in found if s.setting.engine == "duckdb" and s.query == 11]
    assert [s.kind for s in peer] == ["first", "warmup", "hot", "hot"]
    assert peer[0].answer == "right" and peer[0].split is None
    record = json.loads(path.read_text().splitlines()[0])
    assert {"command", "machine", "versions", "sf", "query", "engine", "kind", "seconds"} <= set(record)
    assert {"cpu", "cores", "gpus", "driver"} <= set(record["machine"]) and "duckdb" in record["versions"]


def test_cold_and_warm_runs_are_processes_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    assert run("--queries", "6", "--runs", "1", "--cold", "--json", str(path)).exit_code == 0
    kinds = [s.kind for s in samples.read(path)]
    assert kinds == ["cold", "memory", "warm", "warmup", "hot", "traffic", "memory"]


@pytest.mark.parametrize("engine", ["gquery", "duckdb", "polars"])
def test_reading_the_files_for_every_query(engine: str) -> None:
    done = run("--queries", "1,14", "--runs", "1", "--io", "parquet", "--engines", engine)
    assert done.exit_code == 0 and "2 of 2 right" in done.output, done.output
    assert "reading the files for every query" in done.output


def test_streams_run_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    done = run("--queries", "1,6,14", "--streams", "2", "--json", str(path))
    assert done.exit_code == 0 and "2 streams, 6 queries" in done.output, done.output
    found = [s for s in samples.read(path) if s.kind == "stream"]
    assert [(s.stream, s.query) for s in found] == [(1, 6), (1, 14), (1, 1), (2, 6), (2, 14), (2, 1)]
    assert all(s.answer == "right" for s in found)
    (whole,) = [s for s in samples.read(path) if s.kind == "throughput"]
    assert whole.seconds is not None and whole.seconds >= max(s.seconds or 0 for s in found)


def test_a_wrong_answer_is_told(tmp_path: Path) -> None:
    for path in (SHIPPED / "sf0.01").iterdir():
        (tmp_path / path.name).write_text(path.read_text())
    right = (tmp_path / "q06.csv").read_text()
    (tmp_path / "q06.csv").write_text(right.replace("1", "2"))
    (tmp_path / "q19.csv").write_text("revenue|more\n1|2\n")
    done = run("--queries", "6,14,19", "--runs", "0", "--answers", str(tmp_path))
    assert done.exit_code == 1
    assert "WRONG: row 1, column 1" in done.output and "1 of 3 right" in done.output
    assert "WRONG: q19.csv has 2 columns, the result 1" in done.output


def test_nothing_is_right_that_nobody_checked() -> None:
    done = run("--queries", "6,14", "--runs", "0", "--answers", "none")
    assert done.exit_code == 0 and done.output.endswith("0 of 2 right, 2 unchecked\n")


def test_checksums_of_another_run(tmp_path: Path) -> None:
    path = tmp_path / "sums.json"
    assert run("--queries", "1,6,11", "--runs", "0", "--engines", "duckdb", "--checksums", str(path)).exit_code == 0
    against = ("--queries", "1,6,11", "--runs", "0", "--answers", "none", "--expect-checksums", str(path))
    assert "3 of 3 right" in run(*against).output
    record = json.loads(path.read_text())
    record["queries"]["11"]["exact"] = "0" * 64
    record["queries"]["1"]["sums"][0] *= 1 + 1e-6
    path.write_text(json.dumps(record))
    done = run(*against)
    assert done.exit_code == 1 and "1 of 3 right" in done.output
    assert "the checksum of the exact values differs" in done.output and "sums of the DOUBLE columns" in done.output
    assert "is for sf 0.01" in tpch("run", "--sf", "0.001", *against).output


def test_engines_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engines.ENGINES, "polars", ("polars_engine", "PolarsEngine", ("no_such_package",)))
    done = run("--queries", "6", "--runs", "0", "--engines", "gquery,polars")
    assert done.exit_code == 0 and "not installed, left out: polars" in done.output
    assert "polars is not installed" in run("--engines", "polars").output
    assert 'there is no engine "sqlite"' in run("--engines", "sqlite").output


def test_an_engine_that_does_not_start() -> None:
    done = run("--queries", "6", "--device", "cuda:99")
    assert done.exit_code == 1 and "gquery does not open the tables: DeviceError" in done.output


def test_a_query_that_fails_stops_no_other(tmp_path: Path) -> None:
    folder = generate(0.01)
    texts = (Text(1, "SELECT nothing FROM nowhere"), Text(6, "SELECT count(*) FROM region"))
    events = list(job.events(Job("gquery", folder, Options("python"), texts, tmp_path)))
    kinds = [e["event"] for e in events if e["event"] != "doing"]
    assert kinds == ["engine", "failed", "done", "sample", "answer", "done", "memory", "end"]
    assert "nowhere" in next(e["reason"] for e in events if e["event"] == "failed")
    assert events[-1]["code"] == 0


def test_what_a_dead_process_leaves_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tpch import run as module

    def died(asked: Job) -> list[job.Event]:
        engine = {"event": "engine", "description": "x", "copy_bandwidth": None}
        return [engine, {"event": "end", "code": -9}]

    monkeypatch.setattr(module, "events", died)
    plan = Plan(0.01, generate(0.01), (6, 14), Options("python"))
    checker = module.Checker(plan, Oracle(0.01, plan.data))
    steps = list(module.measure("gquery", plan, checker, lambda text: None))
    assert isinstance(steps[0], Opened)
    told = [s.samples[0] for s in steps[1:] if isinstance(s, Done)]
    assert [(s.kind, s.query, s.answer) for s in told] == [
        ("none", 6, "failed: the process ended with code -9"),
        ("none", 14, "failed: the process ended with code -9"),
    ]


def test_the_command_gquery_tpch() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gquery", "tpch", "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "Usage: gquery tpch" in done.stdout
    code = (
        "import sys\nclass Without:\n    def find_spec(self, name, *rest):\n"
        "        if name == 'tpch': raise ModuleNotFoundError('No module named tpch', name=name)\n"
        "sys.meta_path.insert(0, Without()); sys.argv[1:] = ['tpch']\n"
        "from gquery.shell.main import main; main()"
    )
    missing = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert missing.returncode == 1 and "tpch" in missing.stderr and "not installed" in missing.stderr
    assert "Traceback" not in missing.stderr


def test_the_parent_needs_no_engine() -> None:
    """What starts the workers imports no peer, no compiler and nothing of the plots."""
    heavy = ("duckdb", "polars", "altair", "numba", "cupy")
    code = f"import sys, tpch.commands, tpch.session, tpch.report; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---- parts -----------------------------------------------------------------------------------------------------------


def test_options_and_jobs_travel_as_json(tmp_path: Path) -> None:
    options = Options("cpu", 3, 2, 0, "parquet", (("narrow", "false"),))
    made = Job("gquery", tmp_path, options, (Text(1, "SELECT 1"),), tmp_path, streams=((Text(2, "SELECT 2"),),))
    assert Job.from_json(made.as_json()) == made


def test_samples_travel_as_lines(tmp_path: Path) -> None:
    made = [Sample(SETTING, "hot", 6, 1, seconds=0.5, split={"run": 0.5}), Sample(SETTING, "memory", moved={"x": None})]
    path = tmp_path / "s.jsonl"
    samples.append(path, made[:1])
    samples.append(path, made[1:])
    assert samples.read(path) == made
    path.write_text('{"kind": "hot"}\n')
    with pytest.raises(click.ClickException, match="line 1 is no sample"):
        samples.read(path)


def timed(query: int, *seconds: float, engine: str = "gquery") -> list[Sample]:
    return [Sample(replace(SETTING, engine=engine), "hot", query, n, seconds=s) for n, s in enumerate(seconds)]


def test_compare_marks_what_became_slower(tmp_path: Path) -> None:
    before = [*timed(1, 1.0, 1.1, 1.2), *timed(2, 1.0, 1.0, 1.0), *timed(3, 1.0, 1.0), *timed(4, 1.0)]
    after = [*timed(1, 0.5, 0.5, 0.5), *timed(2, 1.5, 1.4, 1.6), *timed(3, 0.9, 3.0), *timed(5, 1.0)]
    (found,) = compare.compare(before, after, "hot")
    assert [(r.query, r.change(1.1)) for r in found.rows] == [(1, "faster"), (2, "slower"), (3, "")]
    text = "\n".join(compare.lines(found, 1.1, "hot"))
    assert "only before: Q4" in text and "only after: Q5" in text and "1 slower by more than 10%: Q2" in text
    assert compare.compare(before, timed(1, 1.0, engine="duckdb"), "hot") == []
    for name, content in (("a", before), ("b", after)):
        samples.append(tmp_path / name, content)
    done = tpch("compare", str(tmp_path / "a"), str(tmp_path / "b"), "--fail")
    assert done.exit_code == 1 and "Q2" in done.output
    assert (
        "no warm runs in common" in tpch("compare", str(tmp_path / "a"), str(tmp_path / "b"), "--kind", "warm").output
    )


def test_a_checksum_forgives_what_two_right_answers_may_differ_in() -> None:
    rows = [(2, "a", 0.1, Decimal("1.50")), (2, "b", 0.2, None), (1, "c", 0.3, Decimal("0"))]
    base = checksum.checksum(rows, (0,))
    tie = [rows[1], (2, "a", 0.1 + 1e-15, Decimal("1.5")), (Decimal(1), "c", 0.3, Decimal("0.00"))]
    assert checksum.mismatch(checksum.checksum(tie, (0,)), base) is None
    for wrong in (
        rows[:2],
        [rows[2], *rows[:2]],  # another order of the sort key
        [*rows[:2], (1, "d", 0.3, Decimal(0))],
        [*rows[:2], (1, "c", 0.4, Decimal(0))],
        [rows[0], (2, "b", 0.2, Decimal(0)), rows[2]],  # NULL is not 0
    ):
        assert checksum.mismatch(checksum.checksum(wrong, (0,)), base) is not None


def test_rounded_quotients_of_peers() -> None:
    """Polars divides decimals into decimals: off by one in the last digit is right for it, and for nobody else."""
    got, want = [(Decimal("0.0344"),)], [(Decimal("0.03443589"),)]
    assert difference(got, want, (), lenient=True) is None
    assert difference(got, want, ()) is not None
    assert difference([(Decimal("0.0346"),)], want, (), lenient=True) is not None


def test_where_answers_come_from(tmp_path: Path) -> None:
    types = ("DECIMAL(38,4)",)
    assert Oracle(0.01, tmp_path).expected(6, types) is not None  # shipped
    assert Oracle(0.01, tmp_path, seed=1).expected(6, types) is None  # those are for the validation parameters
    assert Oracle(0.01, tmp_path, source="none").expected(6, types) is None
    assert Oracle(0.01, tmp_path, source="duckdb").expected(6, types) is None
    (tmp_path / "answers" / "seed-1-stream-2").mkdir(parents=True)
    (tmp_path / "answers" / "seed-1-stream-2" / "q06.csv").write_text("revenue\n1.5\n")
    oracle = Oracle(0.01, tmp_path, seed=1)
    assert oracle.expected(6, types, stream=2) == [(Decimal("1.5"),)] and oracle.expected(6, types) is None


def test_duckdb_answers_once_a_seed(tmp_path: Path) -> None:
    for path in generate(0.01).glob("*.parquet"):
        os.symlink(path, tmp_path / path.name)
    done = run("--data", str(tmp_path), "--queries", "6", "--runs", "0", "--seed", "5")
    assert done.exit_code == 0 and "1 of 1 right" in done.output, done.output
    made = tmp_path / "answers" / "seed-5" / "q06.csv"
    made.write_text(made.read_text().replace("1", "2").replace("3", "4"))  # it is not asked again
    assert run("--data", str(tmp_path), "--queries", "6", "--runs", "0", "--seed", "5").exit_code == 1


def test_answers_know_their_rows() -> None:
    import pyarrow as pa

    assert Answer(pa.table({"a": [1, 2], "b": ["x", None]}), ("BIGINT", "VARCHAR")).rows == [(1, "x"), (2, None)]
