"""A package of which some modules are imported is as Python makes it for whoever asks it for anything else."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gquery.runtime import lazy_package
from gquery.runtime.lazy_package import imported_in_parts

NAME = "package_in_parts"
INIT = """
import sys, time
from package_in_parts.wanted import VALUE
time.sleep({seconds})
from package_in_parts.other import twice
RUNS = globals().get("RUNS", 0) + 1
{more}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (made := tmp_path / NAME).mkdir()
    (made / "wanted.py").write_text("VALUE = 7\n")
    (made / "other.py").write_text(f"from {NAME} import wanted, third\ndef twice(x):\n    return third.TWO * x\n")
    (made / "third.py").write_text("TWO = 2\n")
    write(made)
    monkeypatch.syspath_prepend(tmp_path)
    for name in (NAME, *(f"{NAME}.{m}" for m in ("wanted", "other", "third"))):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return made


def write(folder: Path, seconds: float = 0, more: str = "") -> None:
    (folder / "__init__.py").write_text(INIT.format(seconds=seconds, more=more))


def imported() -> Any:
    with imported_in_parts(NAME, nullcontext):
        __import__(f"{NAME}.wanted")
    return sys.modules[NAME]


def test_its_init_runs_when_a_name_is_asked_for(folder: Path) -> None:
    package = imported()
    wanted = __import__(f"{NAME}.wanted", fromlist=["VALUE"])
    assert wanted.VALUE == 7 and f"{NAME}.other" not in sys.modules
    assert package.wanted is wanted and package.twice(4) == 8 and package.RUNS == 1 and package.VALUE == 7
    assert type(package) is ModuleType and package.__file__ == str(folder / "__init__.py")
    with pytest.raises(AttributeError, match="nothing"):
        _ = package.nothing
    assert package.RUNS == 1


def test_another_module_of_it_comes_behind_its_init(folder: Path) -> None:
    """And is what the package has of it: `other` is no other one than the ``__init__`` imported, `third` is there then."""
    write(folder, more="third = len")
    (folder / "third.py").write_text("TWO = 2\nMADE = object()\n")
    package = imported()
    third = __import__(f"{NAME}.third", fromlist=["TWO"])
    assert package.RUNS == 1 and package.other.third is third and third.__spec__.name == f"{NAME}.third"
    assert package.third is len and type(package) is ModuleType  # as Python has it, which imports what is there no second time


@pytest.mark.parametrize("how", ["from package_in_parts import twice", "from package_in_parts import *", "dir()"])
def test_all_ways_to_ask(folder: Path, how: str) -> None:
    package, scope = imported(), dict[str, Any]()
    if how == "dir()":
        assert "twice" in dir(package)
    else:
        exec(how, scope)
        assert scope["twice"](3) == 6


def test_who_has_imported_it_keeps_it(folder: Path) -> None:
    package = __import__(NAME)
    assert imported() is package and package.RUNS == 1 and type(package) is ModuleType


def test_one_with_compiled_modules_is_imported_as_python_does(folder: Path) -> None:
    """Those of sqlglot's compiled build import each other by names of their own."""
    (folder / f"fast{EXTENSION_SUFFIXES[0]}").touch()
    package = imported()
    assert type(package) is ModuleType and package.RUNS == 1


def test_the_package_around_it_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in Python: what is around it may want all of it, and what is in it a module of what is around it."""
    outer = tmp_path / NAME
    (outer / "inner").mkdir(parents=True)
    (outer / "__init__.py").write_text(f"from {NAME} import other\nfrom {NAME}.inner import late\n")
    (outer / "other.py").write_text(f"from {NAME}.inner import late\n")
    (outer / "inner" / "__init__.py").write_text(f"from {NAME}.inner.first import VALUE\nlate = 3\nimport {NAME}.other\n")
    (outer / "inner" / "first.py").write_text("VALUE = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in (NAME, *(f"{NAME}.{m}" for m in ("other", "inner", "inner.first"))):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with imported_in_parts(NAME, nullcontext), imported_in_parts(f"{NAME}.inner", nullcontext):
        assert __import__(f"{NAME}.inner.first", fromlist=["VALUE"]).VALUE == 7
    inner = sys.modules[f"{NAME}.inner"]
    assert inner.late == 3 and sys.modules[NAME].late == 3 and sys.modules[f"{NAME}.other"].late == 3
    assert type(inner) is type(sys.modules[NAME]) is ModuleType


def test_an_error_is_told_each_time(folder: Path) -> None:
    write(folder, more="raise ValueError('broken')")
    package = imported()
    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            _ = package.nothing
    write(folder, more="# mended, and of another size")
    assert package.twice(1) == 2


def test_others_wait_while_it_runs(folder: Path) -> None:
    write(folder, seconds=0.2)
    package, found = imported(), list[int]()
    threads = [threading.Thread(target=lambda n=n: found.append(package.twice(n))) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(found) == [0, 2, 4, 6] and package.RUNS == 1


def test_who_imports_what_it_waits_for_does_not_wait_for_ever(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread runs the package, which is about to import a module; another begins to import that, and waits for the first."""
    monkeypatch.setattr(lazy_package, "_PATIENCE", 0.3)
    write(folder, seconds=0.3)
    package, done = imported(), list[int]()
    threads = [
        threading.Thread(target=lambda: done.append(package.twice(2))),
        threading.Thread(target=lambda: done.append(__import__(f"{NAME}.other", fromlist=["twice"]).twice(1))),
    ]
    for t in threads:
        t.start()
        time.sleep(0.1)
    for t in threads:
        t.join(20)
    assert sorted(done) == [2, 4]


def test_sqlglot_is_whole_for_a_user_of_it() -> None:
    code = (
        "import sys, gquery; gquery.connect('python').sql('SELECT 1 AS x').fetchall();"
        "import sqlglot; print(sqlglot.exp is sys.modules['sqlglot.expressions']);"
        "print(sqlglot.parse_one('SELECT a FROM t').sql(), sqlglot.__version__ > '', callable(sqlglot.diff));"
        "from sqlglot import *; print(Dialect is sqlglot.Dialect, type(sqlglot).__name__);"
        "print(gquery.sql('SELECT [x, 2] FROM (VALUES (1)) t(x)').fetchall())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["True", "SELECT a FROM t True True", "True module", "[([1, 2],)]"]


def test_sqlglot_s_modules_are_imported_in_any_order() -> None:
    """Behind gquery, by two threads at once."""
    code = (
        "import gquery, threading; gquery.connect('python').sql('SELECT 1').fetchall()\n"
        "def a():\n    import sqlglot.dialects.duckdb\n"
        "done = []\ndef b():\n    from sqlglot import parse_one; done.append(parse_one('SELECT 1').sql())\n"
        "ts = [threading.Thread(target=f) for f in (a, b, a, b)]\n"
        "[t.start() for t in ts]; [t.join() for t in ts]; print(done)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "['SELECT 1', 'SELECT 1']\n" and done.stderr == ""


SHOWN = """
import json, sqlglot, sqlglot.expressions
def told(m): return {k: repr(v).split(" at 0x")[0] for k, v in vars(m).items() if not k.startswith("__")}
print(json.dumps([told(sqlglot), told(sqlglot.expressions)]))
"""
BEFORE = "import gquery; gquery.connect('python').sql('SELECT 1 AS x').fetchall()\n"


def shown(code: str) -> list[dict[str, str]]:
    """What the names of sqlglot's packages stand for."""
    done = subprocess.run([sys.executable, "-c", code + SHOWN], capture_output=True, text=True, check=True)
    found: list[dict[str, str]] = json.loads(done.stdout)
    return found


def test_sqlglot_has_the_names_that_it_has_without_us() -> None:
    plain = shown("")
    for first in (
        "import sqlglot; sqlglot.Dialect; sqlglot.exp.Properties",
        "import sqlglot.diff, sqlglot; assert callable(sqlglot.diff); sqlglot.exp.Properties",
        "from sqlglot import exp; assert callable(exp.array); from sqlglot import parse_one",
        "import sqlglot.expressions.math; sqlglot.expressions.math.Abs; sqlglot.Dialect",
        "gquery.sql('SELECT [1]').fetchall()",
    ):
        assert shown(f"{BEFORE}{first}\n") == plain, first
    assert shown(f"import sqlglot\n{BEFORE}") == plain


@pytest.mark.parametrize(
    "module", ["diff", "schema", "generator", "parser", "tokens", "dialects.dialect", "optimizer", "lineage", "expressions.math"]
)
def test_any_module_of_sqlglot_can_be_imported_first(module: str) -> None:
    code = (
        f"{BEFORE}from importlib import import_module; import sys; made = import_module('sqlglot.{module}')\n"
        f"import sqlglot; print(made is sys.modules['sqlglot.{module}'], sqlglot.transpile('SELECT 1', read='duckdb'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True ['SELECT 1']\n"
