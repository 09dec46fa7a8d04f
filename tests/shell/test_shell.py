"""The shell without a terminal: scripts, modes, dot commands, errors, exit codes, completion, timing."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gquery.runtime.stopwatch import PARTS, Watch, watched
from gquery.shell.commands import COMMANDS
from gquery.shell.completion import complete
from gquery.shell.modes import MODES
from gquery.shell.script import Command, Statement, is_complete, split
from gquery.shell.shell import Options, Shell
from tests.support.paths import ROOT

VALUES = "SELECT * FROM (VALUES (1, 'a|b', 1.50), (NULL, '<i>', NULL)) t(n, \"text\", d);"


@pytest.fixture
def shell() -> Iterator[Shell]:
    made = Shell("python", out=io.StringIO(), err=io.StringIO())
    yield made
    made.redirect(None)


def written(shell: Shell, text: str) -> str:
    """What a script that succeeds writes to stdout."""
    before = len(output(shell))
    assert shell.run_text(text), complaints(shell)
    return output(shell)[before:]


def output(shell: Shell) -> str:
    assert isinstance(shell.out, io.StringIO)
    return shell.out.getvalue()


def complaints(shell: Shell) -> str:
    assert isinstance(shell.err, io.StringIO)
    return shell.err.getvalue()


def run(*arguments: str, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"GQUERY_VERIFY": ""} | more
    command = [sys.executable, "-m", "gquery", "--device", "python", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, env=environment)


# ---- scripts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, parts",
    [
        ("SELECT 1; SELECT 2", [Statement("SELECT 1"), Statement("SELECT 2", 0, False)]),
        ("SELECT ';''', \";\" ; ", [Statement("SELECT ';''', \";\"")]),
        ("-- a;\nSELECT 1 /* ; */;", [Statement("-- a;\nSELECT 1 /* ; */")]),
        ("SELECT $$;$$;\n.mode csv\nSELECT 2;", [Statement("SELECT $$;$$"), Command("mode", ("csv",)), Statement("SELECT 2", 2)]),
        (";;\n -- only this\n", []),
        ("SELECT 1\n.5;", [Statement("SELECT 1\n.5")]),
        (".once 'a b.csv'", [Command("once", ("a b.csv",))]),
        ("SELECT 'open", [Statement("SELECT 'open", 0, False)]),
        ("help\nSELECT 1;\nexit;\n", [Command("help", ()), Statement("SELECT 1", 1), Command("exit", ())]),
        ("SELECT\nexit\n;", [Statement("SELECT\nexit")]),
        ("QUIT ;", [Command("quit", ())]),
        ("exit now;", [Statement("exit now")]),
    ],
)  # fmt: skip
def test_split(text: str, parts: list[Statement | Command]) -> None:
    assert list(split(text)) == parts


@pytest.mark.parametrize("text", ["", "SELECT 1;", ".help", "exit", "help;", "Quit ", "SELECT 1; -- end", "/* all */"])
def test_enter_runs(text: str) -> None:
    assert is_complete(text)


@pytest.mark.parametrize("text", ["SELECT", "exit now", "SELECT\nexit", "SELECT 1 --;", "SELECT ';", "/* open"])
def test_enter_opens_a_line(text: str) -> None:
    assert not is_complete(text)


def test_errors_name_the_line_of_the_script(shell: Shell) -> None:
    assert not shell.run_text("SELECT 1;\n\nSELECT\n  nothing;\nSELECT 2;")
    assert complaints(shell).startswith("Bind Error: ")
    assert "LINE 4" in complaints(shell)
    assert "2" not in output(shell)


def test_bail_off_goes_on(shell: Shell) -> None:
    assert not shell.run_text(".bail off\n.mode csv\n.headers off\nSELECT x;\nSELECT 7;")
    assert output(shell) == "7\n"


def test_a_statement_of_a_pipe_runs_when_it_is_complete(shell: Shell) -> None:
    def lines() -> Iterator[str]:
        yield ".mode csv\n"
        yield "SELECT 1 AS a,\n"
        yield " 2 AS b;\n"
        assert output(shell) == "a,b\n1,2\n"
        yield "SELECT nothing\n"

    assert not shell.run_lines(lines())
    assert "LINE 4: SELECT nothing" in complaints(shell)


def test_words_of_other_shells(shell: Shell) -> None:
    assert shell.run_lines(["help\n", "SELECT 1\n", "exit\n", ";\n", "exit\n", "SELECT nothing;\n"])
    assert ".tables" in output(shell)
    assert shell.leaving


# ---- modes ----------------------------------------------------------------------------------------------------------


def test_every_mode_is_tested() -> None:
    assert set(MODES) == set(EXPECTED)


EXPECTED = {
    "box": """\
┌─────────┬─────────┬──────────────┐
│    n    │  text   │      d       │
│ integer │ varchar │ decimal(3,2) │
├─────────┼─────────┼──────────────┤
│       1 │ a|b     │         1.50 │
│    NULL │ <i>     │         NULL │
├─────────┴─────────┴──────────────┤
│ 2 rows                           │
└──────────────────────────────────┘
""",
    "table": """\
+------+------+------+
| n    | text | d    |
+------+------+------+
|    1 | a|b  | 1.50 |
| NULL | <i>  | NULL |
+------+------+------+
""",
    "csv": "n,text,d\n1,a|b,1.50\n,<i>,\n",
    "json": '[{"n":1,"text":"a|b","d":1.50},\n{"n":null,"text":"<i>","d":null}]\n',
    "jsonlines": '{"n":1,"text":"a|b","d":1.50}\n{"n":null,"text":"<i>","d":null}\n',
    "markdown": "| n | text | d |\n|--:|---|--:|\n| 1 | a\\|b | 1.50 |\n| NULL | <i> | NULL |\n",
    "line": "   n = 1\ntext = a|b\n   d = 1.50\n\n   n = NULL\ntext = <i>\n   d = NULL\n",
    "html": (
        "<table>\n<tr><th>n</th><th>text</th><th>d</th></tr>\n<tr><td>1</td><td>a|b</td><td>1.50</td></tr>\n"
        "<tr><td>NULL</td><td>&lt;i&gt;</td><td>NULL</td></tr>\n</table>\n"
    ),
}


@pytest.mark.parametrize("mode", MODES)
def test_mode(shell: Shell, mode: str) -> None:
    assert written(shell, f".mode {mode}\n{VALUES}") == EXPECTED[mode]


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_written_of_a_query_that_fails(shell: Shell, mode: str) -> None:
    assert not shell.run_text(f".mode {mode}\nSELECT CAST(s AS INTEGER) FROM (VALUES ('1'), ('x')) t(s);")
    assert output(shell) == ""
    assert complaints(shell).startswith("Conversion Error: ")


def test_no_rows(shell: Shell) -> None:
    none = "SELECT 1 AS a WHERE false;"
    assert written(shell, f".mode json\n{none}\n.mode jsonlines\n{none}\n.mode csv\n{none}") == "[]\na\n"


def test_names_that_come_twice_and_values_that_json_lacks(shell: Shell) -> None:
    text = written(shell, ".mode json\nSELECT 1 AS a, CAST('nan' AS DOUBLE) AS a, DATE '2024-02-29' AS d;")
    assert json.loads(text) == [{"a": 1, "a_1": "NaN", "d": "2024-02-29"}]


def test_nullvalue_headers_maxrows(shell: Shell) -> None:
    assert written(shell, ".mode csv\n.headers off\n.nullvalue -\nSELECT NULL, 1;") == "-,1\n"
    box = written(shell, ".mode box\n.headers on\n.nullvalue\n.maxrows 4\nSELECT range FROM range(10);")
    assert box.count("│ ") == 4 + 3 + 2 + 1  # rows, dots, head, foot
    assert "10 rows (4 shown)" in box


def test_what_a_terminal_would_obey_is_escaped(shell: Shell) -> None:
    for mode in ("box", "table", "line"):
        assert "\x1b" not in written(shell, f".mode {mode}\nSELECT chr(27) || '[2J' AS x;")
    assert not shell.run_text('SELECT "\x1b[2J";')
    assert "\x1b" not in complaints(shell)


def test_a_long_result_is_run_for_its_first_rows(shell: Shell) -> None:
    box = written(shell, "SELECT range AS n FROM range(100000000000);")
    assert "? rows (>40 rows, 40 shown)" in box


# ---- dot commands ---------------------------------------------------------------------------------------------------


def test_output_and_once(shell: Shell, tmp_path: Path) -> None:
    one, all_ = tmp_path / "one.csv", tmp_path / "all.csv"
    text = f".mode csv\n.headers off\n.once {one}\nSELECT 1;\n.output {all_}\nSELECT 2;\nSELECT 3;\n.output\nSELECT 4;"
    assert written(shell, text) == "4\n"
    assert one.read_text() == "1\n"
    assert all_.read_text() == "2\n3\n"


def test_read(shell: Shell, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text(".mode csv\nSELECT 1 AS a;")
    assert written(shell, f".read {script}") == "a\n1\n"
    assert not shell.run_text(f".read {tmp_path / 'none.sql'}")
    assert "none.sql" in complaints(shell)
    script.write_text("SELECT x;")
    assert not shell.run_text(f".read {script}\nSELECT 2;")
    assert output(shell) == "a\n1\n"
    script.write_text(f".read {script}")
    shell.run_text(f".read {script}")
    assert "nested too deeply" in complaints(shell)


def test_tables_and_schema(shell: Shell) -> None:
    shell.run_text("CREATE TABLE t AS SELECT 1 AS a, 'x' AS \"B c\"; CREATE VIEW v AS SELECT a FROM t;")
    assert written(shell, ".tables") == "t\nv\n"
    assert written(shell, ".tables T%") == "t\n"
    schema = written(shell, ".schema")
    assert schema.startswith('CREATE TABLE t (\n  a INTEGER,\n  "B c" VARCHAR')
    assert "CREATE VIEW v AS SELECT a FROM t;" in schema
    assert not shell.run_text(".schema tt")
    assert 'Did you mean "t"?' in complaints(shell)


def test_the_schema_of_a_table_makes_it_again(shell: Shell) -> None:
    columns = """a INTEGER DEFAULT (1 + 1) CHECK (a > 0), "B" VARCHAR UNIQUE DEFAULT 'it''s', PRIMARY KEY (a, "B")"""
    shell.run_text(f"CREATE TABLE w({columns});")
    schema, described = written(shell, ".schema w"), written(shell, "DESCRIBE w;")
    shell.run_text(f"DROP TABLE w; {schema}")
    assert written(shell, ".schema w") == schema
    assert written(shell, "DESCRIBE w;") == described
    assert not shell.run_text("INSERT INTO w VALUES (0, 'x');")


def test_commands_are_checked(shell: Shell) -> None:
    for line, said in {
        ".mod": "", ".m": "It may be .mode or .maxrows", ".tabels": 'Did you mean "tables"', ".mode xml": "no mode xml",
        ".timer maybe": "on|off", ".maxrows x": "from 1 on", ".once": "Usage: .once FILE", ".kernels 999999": "no kernel 999999",
        ".tpch x": "Usage: .tpch SF", ".tpch 0": "above 0",
    }.items():  # fmt: skip
        assert shell.run_text(line) == (not said), line
        assert said in complaints(shell)


def test_help_lists_every_command(shell: Shell) -> None:
    text = written(shell, ".help")
    assert all(f".{name}" in text and c.help for name, c in COMMANDS.items())
    asked = "help tables schema mode timer maxrows nullvalue headers read output once bail exit gpu kernels tpch"
    assert set(asked.split()) <= set(COMMANDS)


def test_exit_leaves(shell: Shell) -> None:
    assert written(shell, ".mode csv\n.exit\nSELECT 1;") == ""
    assert shell.leaving


def test_timer_splits_the_time(shell: Shell) -> None:
    shell.run_text(".timer on\nSELECT sum(range) FROM range(1000);")
    line = complaints(shell)
    assert line.startswith("Time: ")
    assert all(f"{part} " in line for part in PARTS if part != "measure")
    assert "measure" not in line


def test_explain_analyze_and_the_timer_agree(shell: Shell) -> None:
    """What else EXPLAIN ANALYZE does, counting rows and timing a copy, is a part of its own."""
    shell.run_text(".timer on\nEXPLAIN ANALYZE SELECT sum(range) FROM range(1000);")
    assert "measure " in complaints(shell)
    watch = Watch()
    with watched(watch):
        (text,) = (
            shell.connection.sql("EXPLAIN (ANALYZE, FORMAT json) SELECT sum(range) FROM range(1000)").fetchone() or ()
        )
    running = sum(watch.seconds[part] for part in ("run", "compile", "read", "copy"))
    assert 0 < json.loads(text)["seconds"] <= running
    assert watch.seconds["measure"] > 0


def test_parts_add_up() -> None:
    watch = Watch()
    with watched(watch), watch.part("plan"), watch.part("read"):
        sum(range(10_000))
    assert watch.seconds["read"] > 0
    assert watch.seconds["plan"] < watch.seconds["read"]
    watch.begin([3, 1])
    watch.stage(1)
    watch.advance(0.5)
    assert watch.share == 0.875


def test_gpu_and_kernels(shell: Shell, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2, 300]}), tmp_path / "x.parquet")
    written(shell, f".open {tmp_path / 'x.parquet'}\nSELECT sum(a) FROM x WHERE a > 1;")
    devices = written(shell, ".gpu")
    assert "cpu" in devices and "i16" in devices and "│ x" in devices
    kernels = written(shell, ".kernels")
    assert "python" in kernels
    assert "def kernel(" in written(shell, ".kernels 1")


@pytest.mark.cuda
def test_gpu_and_kernels_on_a_gpu(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": list(range(200_000))}), tmp_path / "x.parquet")
    shell = Shell("cuda", [str(tmp_path / "x.parquet")], out=io.StringIO(), err=io.StringIO())
    assert written(shell, ".mode csv\n.timer on\nSELECT sum(a) AS s FROM x WHERE a > 1;") == "s\n19999899999\n"
    assert "copy 0," not in complaints(shell)
    assert re.search(r"│ x +│ a +│ cuda:0 ", written(shell, ".gpu"))
    assert re.search(r"│ cuda +│ (compiled|cache) +│ [^│]+│ +\d+ │ +\d+ │", written(shell, ".kernels"))
    number = re.search(r"│ +(\d+) │ cuda", written(shell, ".kernels"))  # other targets' kernels are listed too
    assert number is not None
    assert "thread_index()" in written(shell, f".kernels {number[1]}")


@pytest.mark.parametrize("statement", ["DESCRIBE t", "SHOW TABLES", "EXPLAIN SELECT a FROM t", "SET threads = 1"])
def test_statements_that_are_no_queries(shell: Shell, statement: str) -> None:
    shell.run_text("CREATE TABLE t AS SELECT 1 AS a;")
    assert output(shell) == ""
    shown = {mode: written(shell, f".mode {mode}\n{statement};") for mode in MODES}
    assert len({bool(text) for text in shown.values()}) == 1
    assert bool(shown["box"]) == (not statement.startswith("SET"))


# ---- the command line -----------------------------------------------------------------------------------------------


def test_commands_scripts_and_files(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "my-trips.parquet")
    (tmp_path / "s.sql").write_text("CREATE VIEW v AS SELECT a + 1 AS b FROM my_trips;")
    file, script = str(tmp_path / "my-trips.parquet"), str(tmp_path / "s.sql")
    done = run(
        file, "--csv", "-f", script, "-c", "SELECT sum(b) AS s FROM v; SELECT 2", "-c", ".mode json\nSELECT 3 AS x"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, 's\n5\n2\n2\n[{"x":3}]\n', "")


def test_pipe_and_exit_codes() -> None:
    done = run("--markdown", stdin="SELECT 1 AS a;\nSELECT b;\nSELECT 2;")
    assert (done.returncode, done.stdout) == (1, "| a |\n|--:|\n| 1 |\n")
    assert "LINE 2" in done.stderr
    done = run("none.parquet")
    assert (done.returncode, done.stdout) == (1, "")
    assert 'There is no file "none.parquet"' in done.stderr


def test_a_reader_that_leaves() -> None:
    command = f"{sys.executable} -m gquery --device python --csv -c 'SELECT range FROM range(300000)' | head -n 2"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("range\n0\n", "")


# ---- completion -----------------------------------------------------------------------------------------------------


def completed(shell: Shell, text: str) -> list[str]:
    at = text.index("|") if "|" in text else len(text)
    return [c.text for c in complete(text.replace("|", ""), at, shell.connection)]


def _fareness(x: int) -> int:
    return x + 1


def test_completion(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.run_text('CREATE TABLE trips AS SELECT 1 AS fare, 2 AS "tip amount"; CREATE VIEW zones AS SELECT 3 AS zone;')
    assert completed(shell, "sel") == ["select"]
    assert completed(shell, "SEL") == ["SELECT"]
    assert completed(shell, "SELECT * FROM ") == ["trips", "zones"]
    assert completed(shell, "SELECT * FROM t") == ["trips"]
    assert completed(shell, "SELECT fa| FROM trips") == ["fare", "factorial(", "favg(", "false"]
    assert completed(shell, "SELECT ti| FROM trips")[0] == '"tip amount"'
    assert completed(shell, "SELECT t.| FROM trips t JOIN zones z") == ["fare", '"tip amount"']
    assert completed(shell, "SELECT z.| FROM trips t JOIN zones z") == ["zone"]
    assert "year(" in completed(shell, "SELECT ye") and "sum(" in completed(shell, "SELECT su")
    shell.connection.create_function("fareness", _fareness)
    assert completed(shell, "SELECT faren") == ["fareness("]
    assert completed(shell, ".ta") == [".tables"]
    assert completed(shell, ".mode js") == ["json", "jsonlines"]
    assert completed(shell, ".timer o") == ["on", "off"]
    assert completed(shell, ".schema z") == ["zones"]
    (tmp_path / "data.parquet").touch()
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path)
    assert completed(shell, "SELECT * FROM 'd") == ["data.parquet", "deep/"]
    assert completed(shell, ".read da") == ["data.parquet"]
    assert [c.text for c in complete("sel", 3, None)] == ["select"]


def test_options_are_separate() -> None:
    assert Options().format.mode == "box"


_SCREEN = re.compile(r"<!-- checked -->\n```text\n(.*?)```", re.S)
_INPUT = re.compile(r"^(?:gquery> .*\n(?:   \.\.\.> .*\n)*)", re.M)


def test_screens_of_the_documentation() -> None:
    """What docs/shell.md shows is what the shell writes."""
    page = (ROOT / "docs" / "shell.md").read_text()
    screen = io.StringIO()
    shell = Shell("python", options=Options(bail=False), out=screen, err=screen)
    for shown in _SCREEN.findall(page):
        outputs = _INPUT.split(shown)[1:]
        for typed, expected in zip(_INPUT.findall(shown), outputs, strict=True):
            screen.seek(0)
            screen.truncate()
            shell.run_text("".join(line[8:] + "\n" for line in typed.splitlines()))
            assert screen.getvalue() == expected


# ---- values ---------------------------------------------------------------------------------------------------------

ODD_VALUES = (
    "INTERVAL 1 MONTH", "INTERVAL '-1 hour'", "INTERVAL '1 year 2 days 3:04:05.5'", "NULL::INTERVAL", "DATE '0044-03-15 (BC)'",
    "TIMESTAMP '290000-01-01'", "TIMESTAMPTZ '2024-01-01 01:00:00+01'", "TIME '01:02:03.5'", "0.1::REAL", "1e20", "1e-5::REAL",
    "'nan'::DOUBLE", "[NULL, 'NULL', 'a, b', '', 'c']", "{'a': DATE '2024-01-01', 'b': 'it''s'}", "MAP {'k': [0.1::REAL]}",
    "[[1], NULL]", "1.50", "1e-10::DECIMAL(12, 11)", "'a'::BLOB", "ROW(1, 'x')",
)  # fmt: skip


@pytest.mark.parametrize("mode", ["csv", "line"])
def test_values_are_written_as_casts_to_text_write_them(mode: str, shell: Shell) -> None:
    duckdb = pytest.importorskip("duckdb")
    duckdb.execute("SET TimeZone = 'UTC'")
    for value in ODD_VALUES:
        wanted = duckdb.sql(f"SELECT ({value})::VARCHAR").fetchone()[0]
        text = written(shell, f".mode {mode}\nSELECT {value} AS x;")
        if mode == "line":
            assert text == f"x = {'NULL' if wanted is None else wanted}\n"
        else:
            assert next(csv.reader(text.splitlines()[1:]), []) == ([] if wanted is None else [wanted])


def test_values_of_json(shell: Shell) -> None:
    text = "SELECT INTERVAL 1 MONTH a, DATE '0044-03-15 (BC)' b, 0.1::REAL c, ['NULL', NULL] d, NULL::INTERVAL e, 1e20::REAL f;"
    assert json.loads(written(shell, ".mode json\n" + text)) == [
        {"a": "1 month", "b": "0044-03-15 (BC)", "c": 0.1, "d": ["NULL", None], "e": None, "f": 1e20}
    ]
