"""Processes that compile kernels: ``python -m gquery.kernels.compile_worker cuda 5:6 7:8``.

Numba compiles one function at a time in a process, so the kernels of a query compile in several. This one imports the
compiler of a target (cuda, or cpu), has it make its tables by a first small kernel, and then forks a worker for each pair of
file descriptors: so that is done once, and its memory is shared. A line on the first of a worker's pipes is a JSON request
(target, name and text of the module, compute capability, folder of the cache); a line on the second answers it: an empty
string or what went wrong. One more says in the beginning that the worker is ready. The result itself goes to the disk cache. A
worker ends with its input.

A process with pipes, not `multiprocessing`, which would run the main module of a script again.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import IO

from gquery.kernels.targets.cache import KernelSource, load_module
from gquery.kernels.targets.cubin import make_cubin

COMPILERS = {"cuda": "cubin", "cpu": "cpu_primitives"}  # modules by target
Ends = tuple[int, int]
"""The descriptors that a worker reads requests from and writes answers to."""


def main() -> None:
    target, *pairs = sys.argv[1:]
    ends: list[Ends] = [(int(a), int(b)) for a, _, b in (pair.partition(":") for pair in pairs)]
    importlib.import_module(f"gquery.kernels.targets.{COMPILERS[target]}").warm_up()
    for own in ends:
        if os.fork() == 0:
            _close([e for e in ends if e != own])
            _serve(own)
            os._exit(0)
    _close(ends)
    for _ in ends:
        os.wait()


def _close(ends: list[Ends]) -> None:
    """Let go of others' pipes: while somebody holds them, their end is not seen."""
    for pair in ends:
        for descriptor in pair:
            os.close(descriptor)


def _serve(own: Ends) -> None:
    with os.fdopen(own[0]) as requests, os.fdopen(own[1], "w") as answers:
        try:
            _say("", answers)
            for line in requests:
                _say(_compile(line), answers)
        except BrokenPipeError:
            os._exit(0)  # nobody wants the answer


def _compile(line: str) -> str:
    target, name, text, cc, folder = json.loads(line)
    os.environ["GQUERY_CACHE_DIR"] = folder
    source = KernelSource(name, text)
    try:
        if target == "cuda":
            make_cubin(source, (cc[0], cc[1]))
        else:
            load_module(source)
    except Exception as e:
        return str(e)
    return ""


def _say(text: str, answers: IO[str]) -> None:
    answers.write(json.dumps(text) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
