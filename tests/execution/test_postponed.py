"""A module that another imports a function of comes when the function is called, and at once where another name is asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gquery.runtime.postponed import postponed


@pytest.fixture
def late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "late_module.py").write_text("OTHER = 7\ndef twice(x, more=0):\n    return 2 * x + more\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "late_module", raising=False)
    return "late_module"


def imported(module: str, name: str) -> Any:
    """What ``from module import name`` binds."""
    scope: dict[str, Any] = {}
    exec(f"from {module} import {name}", scope)
    return scope[name]


def test_it_comes_when_it_is_called(late: str) -> None:
    with postponed(late, "twice"):
        twice = imported(late, "twice")
    assert late not in sys.modules
    assert twice(4, more=1) == 9
    assert sys.modules[late].OTHER == 7


def test_another_name_is_its_own(late: str) -> None:
    with postponed(late, "twice"):
        assert imported(late, "OTHER") == 7 and sys.modules[late].__file__ is not None
        twice = imported(late, "twice")
    assert twice is sys.modules[late].twice
    with postponed(late, "twice"):
        assert imported(late, "twice") is twice


def test_another_thread_that_calls_it_meanwhile(late: str) -> None:
    """It finds the module, not what stands for it."""
    with postponed(late, "twice"):
        other = sys.modules[late]
        assert other.twice(4) == 8 and sys.modules[late] is not other
        assert sys.modules[late].OTHER == 7
    assert other.twice(5) == 10


def test_a_module_of_a_package_is_named_through_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "late_package").mkdir()
    (tmp_path / "late_package" / "__init__.py").touch()
    (tmp_path / "late_package" / "part.py").write_text("OTHER = 7\ndef twice(x):\n    return 2 * x\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("late_package", "late_package.part"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    package = __import__("late_package")
    with postponed("late_package.part", "twice"):
        __import__("late_package.part")
        held = package.part
        assert held.twice(2) == 4 and package.part.OTHER == 7 and package.part is sys.modules["late_package.part"]
    assert package.part is sys.modules["late_package.part"] and held.OTHER == 7
    del sys.modules["late_package.part"], package.part
    with postponed("late_package.part", "twice"):
        pass
    assert not hasattr(package, "part") and "late_package.part" not in sys.modules


def test_pyarrow_pickles_and_looks_for_ports() -> None:
    code = (
        "import sys, gquery; gquery.connect('python').sql('SELECT 1').fetchall();"
        "import pyarrow as pa, pyarrow.lib, pyarrow.util; print([m for m in ('cloudpickle', 'socket') if m in sys.modules])\n"
        "import pickle, socket, cloudpickle; print(pickle.loads(pickle.dumps(pa.array([1, None]))).to_pylist())\n"
        "print(pyarrow.util.find_free_port() > 0, pyarrow.util.socket.socket is socket.socket)\n"
        "print(cloudpickle.loads(cloudpickle.dumps(lambda x: x + 1))(2), sys.modules['cloudpickle'] is cloudpickle)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "[1, None]", "True True", "3 True"], done.stderr


def test_sqlglot_does_without_plugins_until_it_asks_for_one() -> None:
    code = (
        "import sys, gquery; gquery.connect('python').sql('SELECT 1').fetchall();"
        "print('importlib.metadata' in sys.modules); import sqlglot, importlib.metadata;"
        "print(sqlglot.transpile('SELECT 1', read='duckdb'), importlib.metadata.version('sqlglot') > '');"
        "sqlglot.Dialect.get('no such dialect')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False", "['SELECT 1'] True"] and done.stderr == ""
