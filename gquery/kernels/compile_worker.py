"""A process that compiles kernels: ``python -m gquery.kernels.compile_worker cuda``, or cpu.

Numba compiles one function at a time in a process, so the kernels of a query compile in several. A line on standard
input is a JSON request (target, path of the module, compute capability); a line on standard output answers it: an empty
string or what went wrong. One more says in the beginning that the target's compiler is imported. The result itself goes to
the disk cache. A process with pipes, not `multiprocessing`, which would run the main module of a script again.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import IO

from gquery.kernels.targets.cache import load_module
from gquery.kernels.targets.cubin import make_cubin


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing else may write between the answers
    importlib.import_module(f"gquery.kernels.targets.{sys.argv[1]}_primitives")
    _say("", answers)
    for line in sys.stdin:
        target, name, cc = json.loads(line)
        try:
            if target == "cuda":
                make_cubin(Path(name), (cc[0], cc[1]))
            else:
                load_module(Path(name))
            said = ""
        except Exception as e:
            said = str(e)
        _say(said, answers)


def _say(text: str, answers: IO[str]) -> None:
    answers.write(json.dumps(text) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
