"""Arrow's libraries are opened beside the imports of a first connection; what goes wrong there is PyArrow's to tell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gquery.runtime import libraries

FOUND = sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1 and libraries._library() is not None
needs_libraries = pytest.mark.skipif(not FOUND, reason="PyArrow's libraries lie elsewhere, or there is one processor")


def told(code: str, folder: Path | None = None) -> list[str]:
    """What a process prints; ``folder`` is where it looks for modules first."""
    paths = [*([str(folder)] if folder else []), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    options = [sys.executable, "-c", code]
    return subprocess.run(options, check=True, capture_output=True, text=True, env=environment, timeout=100).stdout.split()


OPEN = "any('libarrow.so' in line for line in open('/proc/self/maps'))"


@needs_libraries
def test_they_are_open_behind_the_block_and_are_pyarrow_s() -> None:
    code = (
        f"import sys\nfrom gquery.runtime import libraries\nbefore = {OPEN}\nwith libraries.opened_ahead():\n    pass\n"
        f"print(before, {OPEN}, 'pyarrow' in sys.modules, libraries._opening.is_alive())\n"
        "import pyarrow as pa, pyarrow.parquet\nprint(sum(pa.array([1, 2]).to_pylist()))\n"
    )
    assert told(code) == ["False", "True", "False", "False", "3"]


@needs_libraries
def test_a_connection_opens_them_and_its_modules_stay_permanent() -> None:
    """The thread has to be gone when they are kept from the collector."""
    code = (
        "import gc, gquery\nfrom gquery.runtime import libraries\ndb = gquery.connect('cpu')\n"
        "print(libraries._opening is not None, gc.get_freeze_count() > 30_000, db.sql('SELECT 3').fetchone()[0])"
    )
    assert told(code) == ["True", "True", "3"]


@pytest.mark.parametrize("file", ["libarrow.so.1", "libarrow_substrait.so.1", "readme"])
def test_what_cannot_be_opened_is_left_to_pyarrow(tmp_path: Path, file: str) -> None:
    package = tmp_path / "pyarrow"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('a broken PyArrow')")
    (package / file).write_bytes(b"\x7fELF and nothing more")
    code = (
        "from gquery.runtime import libraries\nwith libraries.opened_ahead():\n    pass\n"
        "try:\n    import pyarrow\nexcept ImportError as error:\n    print(error)"
    )
    assert told(code, tmp_path) == ["a", "broken", "PyArrow"]


def test_nothing_is_opened_where_it_is_of_no_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "_opening", None)
    with libraries.opened_ahead():  # PyArrow is imported
        assert libraries._opening is None
    monkeypatch.delitem(sys.modules, "pyarrow", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    with libraries.opened_ahead():  # one processor
        assert libraries._opening is None
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(libraries, "find_spec", lambda _: None)
    with libraries.opened_ahead():  # none is installed
        assert libraries._opening is None


@needs_libraries
def test_an_error_of_the_block_waits_for_the_thread() -> None:
    code = (
        "from gquery.runtime import libraries\ntry:\n    with libraries.opened_ahead():\n        raise ValueError\n"
        f"except ValueError:\n    print(libraries._opening.is_alive(), {OPEN})"
    )
    assert told(code) == ["False", "True"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_waits_for_the_thread() -> None:
    code = (
        "import os, threading, time\nfrom gquery.runtime import libraries\n"
        "libraries._opening = thread = threading.Thread(target=time.sleep, args=(0.2,))\nthread.start()\n"
        "if (child := os.fork()) == 0:\n"
        "    import pyarrow\n    os._exit(0)\n"
        "print(thread.is_alive(), os.waitpid(child, 0)[1])"
    )
    assert told(code) == ["False", "0"]


def test_threads_that_connect_at_once() -> None:
    code = (
        "import threading, gquery\nfound = []\n"
        "def ask():\n    found.append(gquery.connect('cpu').sql('SELECT 7').fetchone()[0])\n"
        "threads = [threading.Thread(target=ask) for _ in range(4)]\n"
        "[t.start() for t in threads]\n[t.join() for t in threads]\nprint(*found)"
    )
    assert told(code) == ["7"] * 4
