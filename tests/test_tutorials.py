"""The tutorials under ``docs/extend`` work as they stand: their edits are made to a copy of the package, which then runs.

``<!-- new FILE -->`` and ``<!-- append to FILE -->`` come before a block of Python, ``<!-- edit FILE -->`` before a diff whose
plain lines say where its ``+`` lines go, ``<!-- check -->`` before a program and the text that it prints.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

PAGES = sorted((ROOT / "docs" / "extend").glob("*.md"))
_BLOCK = re.compile(
    r"^<!-- (?P<what>new|append to|edit|check) ?(?P<file>\S*) -->\n```(?:python|diff)\n(?P<text>.*?)^```$"
    r"(?:\n+```text\n(?P<out>.*?)^```$)?",
    re.M | re.S,
)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_tutorial_works(page: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "gquery", tmp_path / "gquery")  # with bytecode, which is told to be old by the time of a change
    blocks = list(_BLOCK.finditer(page.read_text()))
    assert blocks and blocks[-1]["what"] == "check"
    for block in blocks:
        path = tmp_path / block["file"]
        match block["what"]:
            case "new":
                path.write_text(block["text"])
            case "append to":
                path.write_text(f"{path.read_text()}\n\n{block['text']}")
            case "edit":
                path.write_text(edited(path.read_text(), block["text"]))
            case _:
                printed = run(block["text"], tmp_path)
                if os.environ.get("GQUERY_UPDATE_GOLDEN"):
                    page.write_text(page.read_text().replace(f"```text\n{block['out']}```", f"```text\n{printed}```"))
                else:
                    assert printed == block["out"]


def edited(text: str, diff: str) -> str:
    """The text with a diff's ``+`` lines in and its ``-`` lines out; its other lines have to stand in the text, once."""
    lines = diff.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if not line.startswith("+"))
    new = "".join(line[1:] for line in lines if not line.startswith("-"))
    assert text.count(old) == 1, f"not once in the file: {old!r}"
    return text.replace(old, new)


def run(program: str, folder: Path) -> str:
    """What a program prints with the package of a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "GQUERY_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
