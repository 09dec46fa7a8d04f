"""The file of all modules' bytecode: what comes from it is what Python's own files give, and what is amiss is left to those."""

from __future__ import annotations

import importlib
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gquery.runtime.bytecode import BytecodeFile

NAMES = ("pack.one", "pack.sub", "pack.sub.two")
AGAIN = "import pack, pack.m1, pack.sub, sys; print(type(pack.m1.__loader__).__name__, pack.m1.VALUE, pack.sub.NAME)"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package whose modules Python has imported, and has the bytecode of."""
    (tmp_path / "pack" / "sub").mkdir(parents=True)
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "one.py").write_text("def one():\n    return 1\n")
    (tmp_path / "pack" / "sub" / "__init__.py").write_text("NAME = 'sub'\n")
    (tmp_path / "pack" / "sub" / "two.py").write_text("from pack.one import one\nTWO = one() + 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    yield tmp_path / "pack"
    _forget()


def _forget() -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == "pack"]:
        del sys.modules[name]
    importlib.invalidate_caches()


def finder(folder: Path) -> BytecodeFile:
    tag = sys.implementation.cache_tag
    return BytecodeFile("pack", str(folder), str(folder / "__pycache__" / f"__init__.{tag}.pyc"))


def written(folder: Path) -> BytecodeFile:
    """The finder of a later process."""
    before = finder(folder)
    for name in NAMES:
        assert before.find_spec(name) is None
        importlib.import_module(name)
    before.keep(len(NAMES))
    _forget()
    return finder(folder)


def test_modules_are_what_python_makes_of_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {name: importlib.import_module(name) for name in NAMES}
    seen = {n: (m.__file__, m.__cached__, getattr(m, "__path__", None), m.__package__) for n, m in own.items()}
    found = written(folder)
    monkeypatch.setattr(sys, "meta_path", [found, *sys.meta_path])
    made = {name: importlib.import_module(name) for name in NAMES}
    assert {type(m.__loader__).__name__ for m in made.values()} == {"_Loader"} and found.missed == 0
    for n, m in made.items():
        assert (m.__file__, m.__cached__, [*m.__path__] if hasattr(m, "__path__") else None, m.__package__) == seen[n]
    assert made["pack.sub.two"].TWO == 2 and made["pack.sub"].NAME == "sub"
    assert inspect.getsource(made["pack.one"].one) == "def one():\n    return 1\n"
    assert made["pack.one"].one.__code__.co_filename == str(folder / "one.py")


def test_a_changed_source_is_read_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = written(folder)
    monkeypatch.setattr(sys, "meta_path", [found, *sys.meta_path])
    module = importlib.import_module("pack.one")
    assert module.one() == 1
    (folder / "one.py").write_text("def one():\n    return 111\n")
    assert importlib.reload(module).one() == 111
    (folder / "sub" / "two.py").unlink()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("pack.sub.two")
    assert found.missed == 2
    time = os.stat(folder / "sub" / "__init__.py").st_mtime
    os.utime(folder / "sub" / "__init__.py", (time + 2, time + 2))
    assert found.find_spec("pack.sub") is None


def test_what_is_written_again_holds_what_is_current(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = written(folder)
    (folder / "one.py").unlink()
    (folder / "three.py").write_text("THREE = 3\n")
    monkeypatch.setattr(sys, "meta_path", [found, *sys.meta_path])
    importlib.import_module("pack.three")
    found.keep(2)
    assert "pack.three" not in finder(folder).entries
    found.keep(1)
    again = finder(folder)
    assert sorted(again.entries) == ["pack.sub", "pack.sub.two", "pack.three"]
    assert [p.name for p in (folder / "__pycache__").iterdir() if p.name.startswith("all")] == [Path(again.path).name]


@pytest.mark.parametrize("fault", ["cut", "empty", "version", "moved", "garbage"])
def test_a_file_that_is_amiss_is_left_alone(folder: Path, fault: str) -> None:
    found = written(folder)
    path, content = Path(found.path), Path(found.path).read_bytes()
    assert len(found.entries) == len(NAMES)
    match fault:
        case "cut":
            path.write_bytes(content[:-1])
        case "empty":
            path.write_bytes(b"")
        case "version":
            path.write_bytes(b"\0\0\0\0" + content[4:])
        case "garbage":
            path.write_bytes(content[:8] + b"\xff" * 64)
        case _:
            found.folder = "/elsewhere"
    found.entries = {}
    found._read()
    assert found.entries == {} and found.find_spec("pack.one") is None


def test_a_process_writes_it_when_it_ends(tmp_path: Path) -> None:
    """The next one takes it; with -B nothing is written, and where it cannot be, nothing is said."""
    pack = tmp_path / "pack"
    (pack / "sub").mkdir(parents=True)
    (pack / "__init__.py").write_text(
        "from gquery.runtime import bytecode\nimport sys; bytecode.use(sys.modules[__name__])\n"
        "import importlib\nfor n in range(70): importlib.import_module(f'pack.m{n}')\n"
    )
    (pack / "sub" / "__init__.py").write_text("NAME = __name__\n")
    for n in range(70):
        (pack / f"m{n}.py").write_text(f"VALUE = {n}\n")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    environment |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": ""}

    def said(*options: str) -> str:
        done = subprocess.run(
            [sys.executable, *options, "-c", AGAIN], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        return done.stdout.strip()

    assert said("-B") == said("-B") == said() == "SourceFileLoader 1 pack.sub"
    assert said() == "_Loader 1 pack.sub"
