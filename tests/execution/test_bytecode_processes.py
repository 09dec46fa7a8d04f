"""Processes that write and read the file of all modules' bytecode: damaged, at once, killed, on a full disk, of another user."""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

COUNT = max(1, int(os.environ.get("GQUERY_FAULTS", "30")) // 30)
MODULES = 70
ASK = f"""
import pack, pack.m1, pack.sub, sys
values = [sys.modules[f"pack.m{{n}}"].value(n) for n in range({MODULES})]
assert values == [f"{{n}} and {{n * 3}}" for n in range({MODULES})], values
print(sum(type(m.__loader__).__name__ == "_Loader" for n, m in sys.modules.items() if n.startswith("pack.")), pack.sub.NAME)
"""
ALL = f"{MODULES + 1} pack.sub"
NONE = "0 pack.sub"


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """A package that takes its modules from one file, and imports them all."""
    folder = tmp_path / "pack"
    (folder / "sub").mkdir(parents=True)
    (folder / "__init__.py").write_text(
        "from gquery.runtime import bytecode\nimport sys; bytecode.use(sys.modules[__name__])\n"
        f"import importlib\nfor n in range({MODULES}): importlib.import_module(f'pack.m{{n}}')\n"
    )
    (folder / "sub" / "__init__.py").write_text("NAME = __name__\n")
    for n in range(MODULES):
        (folder / f"m{n}.py").write_text(f"def value(n: int) -> str:\n    return f'{{n}} and {{{n} * 3}}'\n")
    return folder


def begin(
    pack: Path, *options: str, script: str = ASK, before: Callable[[], None] | None = None
) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(pack.parent), *filter(None, sys.path)])}
    environment |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": ""}
    return subprocess.Popen(
        [sys.executable, *options, "-c", script], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, preexec_fn=before,
    )  # fmt: skip


def end(process: subprocess.Popen[str]) -> str:
    said, complaint = process.communicate(timeout=300)
    assert (process.returncode, complaint) == (0, "")
    return said.strip()


def files(pack: Path) -> list[Path]:
    return sorted((pack / "__pycache__").glob("all*"))


def written(pack: Path) -> Path:
    assert end(begin(pack)) == NONE
    (found,) = files(pack)
    return found


def test_a_process_writes_it_when_it_ends(pack: Path) -> None:
    """The next one takes it; with -B nothing is written."""
    assert end(begin(pack, "-B")) == end(begin(pack, "-B")) == NONE
    assert not files(pack)
    written(pack)
    assert end(begin(pack)) == ALL


@pytest.mark.parametrize("seed", range(6 * COUNT))
def test_a_damaged_file(pack: Path, seed: int) -> None:
    """The answers are right, and the next process has all modules from the file again."""
    path, rng = written(pack), random.Random(seed)
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 10, 100))):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content[: rng.randrange(len(content))] if seed % 3 == 2 else content)
    assert end(begin(pack)) != ALL
    assert end(begin(pack)) == ALL


def test_twenty_processes_at_once(pack: Path) -> None:
    started = [begin(pack) for _ in range(20)]
    assert {end(process) for process in started} <= {NONE, ALL}
    assert len(files(pack)) == 1
    assert end(begin(pack)) == ALL


KILLED = """
import os, signal
from gquery.runtime import bytecode
def kill(*_): os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("call", ["bytecode.fcntl.flock", "bytecode.os.replace", "bytecode.marshal.dumps"])
def test_a_process_is_killed_while_it_writes(pack: Path, call: str) -> None:
    """What it leaves behind is overwritten."""
    process = begin(pack, script=f"{KILLED}{call} = kill\n{ASK}")
    process.communicate()
    assert process.returncode == -9
    assert end(begin(pack)) == NONE
    assert len(files(pack)) == 1
    assert end(begin(pack)) == ALL


def test_a_full_disk(pack: Path) -> None:
    """Nothing half written is left, nothing is said, and the file that was there stays."""
    assert end(begin(pack, "-B")) == NONE
    for n in range(MODULES):  # Python's own files are there already, and are small
        (pack / f"m{n}.py").touch()
    end(begin(pack))
    for file in files(pack):
        file.unlink()

    def limit() -> None:  # as of a disk: a file may have 2000 bytes
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    assert end(begin(pack, before=limit)) == NONE
    assert not files(pack)
    path = written(pack)
    content = path.read_bytes()
    (pack / "m1.py").write_text((pack / "m1.py").read_text() + "# longer\n")
    path.write_bytes(content[:-1])
    end(begin(pack, before=limit))
    assert path.read_bytes() == content[:-1]


def test_another_process_is_writing(pack: Path) -> None:
    """This one leaves it to that."""
    hold = "import sys, fcntl; f = open(sys.argv[1], 'wb'); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); input()"
    path = written(pack)
    path.unlink()
    other = subprocess.Popen(
        [sys.executable, "-c", hold, f"{path}.new"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None and other.stdout.readline() == "\n"
    assert end(begin(pack)) == NONE and not path.exists()
    other.communicate("\n")
    assert end(begin(pack)) == NONE and files(pack) == [path]


NOBODY = """
import os
import gquery.runtime.bytecode, gquery.tuning, fcntl
if os.getuid() == 0:  # who may read and write everything
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
"""


@pytest.mark.parametrize("what", ["file", "folder", "new"])
def test_what_belongs_to_another_user(pack: Path, what: str) -> None:
    """A file that cannot be read or a folder that cannot be written: Python's own files do."""
    path = written(pack)
    match what:
        case "file":
            path.chmod(0)
        case "folder":
            path.unlink()
            path.parent.chmod(0o555)
        case _:
            path.unlink()
            Path(f"{path}.new").touch(0o400)
            if os.getuid() == 0:
                path.parent.chmod(0o777)
    shared = Path(tempfile.gettempdir())
    for place in (p for p in (pack.parent, *pack.parent.parents) if shared in p.parents and os.getuid() == 0):
        place.chmod(0o755)
    try:
        assert end(begin(pack, script=NOBODY + ASK)) == NONE
        assert files(pack) == {"file": [path], "folder": [], "new": [Path(f"{path}.new")]}[what]
    finally:
        path.parent.chmod(0o755)
