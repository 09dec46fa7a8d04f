"""Damaged files, each read by gquery in a process that may die: ``python -m tests.mutations.run --kind ipc --count 2000``.

Right is the answer that PyArrow or DuckDB gives, or one of gquery's errors, and a connection that can be used on. What else
comes is a finding: it is printed with the seed and number that make the file again. Where the process ends, the reference is
run alone on the file, which tells whose fault it was.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mutations.files import KINDS, damaged, file_of

_PATIENCE = 60.0  # seconds for one file
_RIGHT = ("right", "refused")
_OTHERS = ("others died", "both died")  # a fault of PyArrow or DuckDB


@dataclass(frozen=True)
class Outcome:
    """What became of file ``number`` of a seed."""

    kind: str
    seed: int
    number: int
    outcome: str
    detail: str

    @property
    def is_right(self) -> bool:
        """Whether gquery did what it should, as far as others let it."""
        return self.outcome in _RIGHT + _OTHERS

    def __str__(self) -> str:
        return f"{self.kind} seed {self.seed} number {self.number}: {self.outcome}\n{self.detail}"


def make(kind: str, seed: int, number: int) -> bytes:
    """A damaged file."""
    chance = random.Random(f"{kind} {seed} {number}")
    return damaged(chance, file_of(chance, kind), file_of(chance, kind), kind)


class Child:
    """A process that reads files, begun anew after each death."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def _start(self) -> subprocess.Popen[str]:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  (closed with the process)
        process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-m", "tests.mutations.child"], text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, env=os.environ,
        )  # fmt: skip
        self._process, self._lines = process, queue.SimpleQueue()
        threading.Thread(target=_pass_on, args=(process.stdout, self._lines), daemon=True).start()
        return process

    def ask(self, path: Path, kind: str, with_reference: bool = True) -> dict[str, Any]:
        """The last that the process said of a file, with its exit's code where it ended."""
        process = self._process or self._start()
        assert process.stdin is not None
        process.stdin.write(json.dumps({"path": str(path), "kind": kind, "reference": with_reference}) + "\n")
        said: dict[str, Any] = {"step": "start"}
        while said["step"] != "done":
            try:
                line = self._lines.get(timeout=_PATIENCE)
            except queue.Empty:
                process.kill()
                line = ""
                said["code"] = "no end"
            if not line:
                process.wait()
                self._errors.seek(0)
                text = self._errors.read()  # what it died of stands first
                said = (
                    {"code": process.returncode}
                    | said
                    | {"stderr": text if len(text) < 3000 else text[:1000] + text[-2000:]}
                )
                self.close()
                return said
            said = json.loads(line)
        return said

    def close(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.close()
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()
            self._errors.close()
            self._process = None


def _pass_on(stream: Any, lines: queue.SimpleQueue[str]) -> None:
    """Every line of a stream, and an empty one at its end."""
    try:
        for line in stream:
            lines.put(line)
    finally:
        lines.put("")


def run(child: Child, kind: str, seed: int, numbers: Sequence[int], folder: Path) -> Iterator[Outcome]:
    """What becomes of each file."""
    for number in numbers:
        path = folder / f"{number}.{kind}"
        path.write_bytes(make(kind, seed, number))
        said = child.ask(path, kind)
        if said["step"] == "reference":  # others end the process: what gquery does alone
            alone = child.ask(path, kind, with_reference=False)
            outcome = "others died" if alone["step"] == "done" else "both died"
            detail = f"{said['code']}: {said['stderr']}" + str(alone.get("stderr", alone.get("outcome")))
        elif said["step"] == "done":
            outcome, detail = said["outcome"], said["detail"]
        else:
            outcome, detail = "died", f"{said['code']}: {said['stderr']}"
        path.unlink()
        yield Outcome(kind, seed, number, outcome, detail)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, closing(Child()) as child:
        for kind in options.kind or KINDS:
            found: Counter[str] = Counter()
            for each in run(
                child, kind, options.seed, range(options.first, options.first + options.count), Path(folder)
            ):
                found[each.outcome] += 1
                if each.outcome not in _RIGHT:
                    print(each, flush=True)
            print(kind, dict(found), flush=True)


if __name__ == "__main__":
    main()
