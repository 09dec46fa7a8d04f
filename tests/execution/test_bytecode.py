"""The file of all modules' bytecode: what comes from it is what Python's own files give, and what is amiss is left to those."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import cast

import pytest

from gquery.runtime.bytecode import BytecodeFile

NAMES = ("pack.one", "pack.sub", "pack.sub.two")


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
    while OPENED:
        close(OPENED.pop())


def _forget() -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == "pack"]:
        del sys.modules[name]
    importlib.invalidate_caches()


OPENED: list[BytecodeFile] = []  # a process has one, and keeps its file open


def finder(folder: Path) -> BytecodeFile:
    tag = sys.implementation.cache_tag
    OPENED.append(BytecodeFile("pack", str(folder), str(folder / "__pycache__" / f"__init__.{tag}.pyc")))
    return OPENED[-1]


def close(found: BytecodeFile) -> None:
    if found.file >= 0:
        os.close(found.file)
        found.file = -1


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


@pytest.mark.parametrize("fault", ["head", "empty", "version", "moved", "garbage", "folder"])
def test_a_file_that_is_amiss_is_left_alone(folder: Path, fault: str) -> None:
    found = written(folder)
    path, content = Path(found.path), Path(found.path).read_bytes()
    assert len(found.entries) == len(NAMES)
    match fault:
        case "head":
            path.write_bytes(content[:10])
        case "empty":
            path.write_bytes(b"")
        case "version":
            path.write_bytes(b"\0\0\0\0" + content[4:])
        case "garbage":
            path.write_bytes(content[:8] + b"\xff" * 64)
        case "folder":
            path.unlink()
            path.mkdir()
        case _:
            found.folder = "/elsewhere"
    found._read()
    assert found.entries == {} and found.find_spec("pack.one") is None


def code_of(found: BytecodeFile, name: str) -> CodeType | None:
    spec = found.find_spec(name)
    return None if spec is None else cast(SourceFileLoader, spec.loader).get_code(name)


@pytest.mark.parametrize("fault", ["flipped", "cut"])
def test_what_a_file_gives_is_what_was_written(folder: Path, fault: str) -> None:
    """A bit flipped in each byte of the file, and the file cut behind each: a module is what it was, or is left to Python; those
    that are not hit are found."""
    found = written(folder)
    path, content = Path(found.path), Path(found.path).read_bytes()
    own = {name: code_of(found, name) for name in NAMES}
    assert None not in own.values()
    damaged = 0
    for at in range(len(content)):
        bit = 1 << at % 8
        path.write_bytes(content[:at] + (bytes([content[at] ^ bit]) + content[at + 1 :] if fault == "flipped" else b""))
        again = finder(folder)
        made = {name: code_of(again, name) for name in NAMES}
        assert all(code in (None, own[name]) for name, code in made.items()), at
        assert None in made.values(), at
        assert again.is_damaged == bool(again.entries)
        assert fault == "cut" or [*made.values()].count(None) == (1 if again.is_damaged else len(NAMES))
        damaged += again.is_damaged
        close(again)
    assert damaged > 100
    path.write_bytes(content)
    assert {name: code_of(found, name) for name in NAMES} == own


def test_a_file_that_changes_while_it_is_open_is_left_alone(folder: Path) -> None:
    """It is cut, or its descriptor is closed, and is that of another file by now."""
    found = written(folder)
    with open(found.path, "r+b") as file:
        file.truncate(found.start)
    assert found.find_spec("pack.one") is None and found.is_damaged
    Path(found.path).unlink()
    found = written(folder)
    with open(folder / "one.py", "rb") as file:
        os.dup2(file.fileno(), found.file)
    assert found.find_spec("pack.one") is None
    os.close(found.file)
    assert found.find_spec("pack.one") is None
    found.file = -1


def test_a_damaged_file_is_written_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few modules a process imports; what cannot be unmarshalled in Python's own files is not taken over."""
    found = written(folder)
    path, content = Path(found.path), Path(found.path).read_bytes()
    path.write_bytes(content[:-1] + b"!")
    again = finder(folder)
    monkeypatch.setattr(sys, "meta_path", [again, *sys.meta_path])
    assert importlib.import_module("pack.sub.two").TWO == 2
    own = Path(cast(str, sys.modules["pack.sub.two"].__cached__))
    whole = own.read_bytes()
    own.write_bytes(whole[:-1])
    again.keep(1000)
    assert path.read_bytes() == content[:-1] + b"!"
    own.write_bytes(whole)
    again.keep(1000)
    assert path.read_bytes() == content
