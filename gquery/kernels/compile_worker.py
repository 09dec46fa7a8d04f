"""Processes that compile kernels: ``python -m gquery.kernels.compile_worker cuda_llvm 200 HASH 5:6 7:8``.

A compiler compiles one function at a time in a process, so the kernels of a query compile in several. This one imports the
compiler (one of `COMPILERS`), has it make its tables by a first small kernel, and then forks a worker for each pair of
file descriptors: so that is done once, and its memory is shared. A line on the first of a worker's pipes is a JSON request
(compiler, name and text of the module or the kernel that it is made of, compute capability, folder of the cache, whether workers
died of it); a line on the second answers it: an empty string or what went wrong. One more says in the beginning that the worker
is ready. The result itself goes to the disk cache. A worker ends with its input. Where the hash of what compiles here is not the
one that is given, as the package was upgraded beneath the process that asks, no worker starts: its kernels have the names of
another compiler's.

A process with pipes, not `multiprocessing`, which would run the main module of a script again.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import IO

from gquery.kernels.packed import unpacked
from gquery.kernels.targets.cache import OTHER_BUILD, KernelSource, build_hash
from gquery.kernels.targets.cpu import cpu_compiler
from gquery.kernels.targets.cubin import cuda_compiler, make_cubin

COMPILERS = {
    "cpu_numba": "cpu_primitives",
    "cpu_llvm": "cpu_llvm",
    "cuda_numba": "cuda_numba",
    "cuda_llvm": "cuda_llvm",
    "cuda_draft": "cuda_llvm",
}
"""By target and compiler, the module that warms it up."""

Ends = tuple[int, int]
"""The descriptors that a worker reads requests from and writes answers to."""


_TIRED = 3  # how a process ends that has compiled so many


def main() -> None:
    """Keeps a worker process for each pair of pipes, and a new one in the place of one that has compiled many."""
    compiler, most, build, *pairs = sys.argv[1:]
    if build != build_hash():
        sys.exit(OTHER_BUILD)
    ends: list[Ends] = [(int(a), int(b)) for a, _, b in (pair.partition(":") for pair in pairs)]
    importlib.import_module(f"gquery.kernels.targets.{COMPILERS[compiler]}").warm_up()
    workers = {_fork(own, ends, int(most), is_first=True): own for own in ends}
    while workers:
        worker, status = os.wait()
        own = workers.pop(worker)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == _TIRED:
            workers[_fork(own, [*workers.values(), own], int(most), is_first=False)] = own
        else:
            _close([own])  # its end is seen on the other side


def _fork(own: Ends, ends: list[Ends], most: int, is_first: bool) -> int:
    """A process that serves a worker's descriptors; ``ends`` are those that are open here."""
    worker = os.fork()
    if worker == 0:
        _close([e for e in ends if e != own])
        os._exit(_serve(own, most, is_first))
    return worker


def _close(ends: list[Ends]) -> None:
    """Let go of others' pipes: while somebody holds them, their end is not seen."""
    for pair in ends:
        for descriptor in pair:
            os.close(descriptor)


def _serve(own: Ends, most: int, is_first: bool) -> int:
    with os.fdopen(own[0]) as requests, os.fdopen(own[1], "w") as answers:
        try:
            if is_first:
                _say("", answers)
            for count, line in enumerate(requests, 1):
                _say(_compile(line), answers)
                if count == most:  # the next request comes after this answer
                    return _TIRED
        except BrokenPipeError:
            os._exit(0)  # nobody wants the answer
    return 0


def _compile(line: str) -> str:
    compiler, name, text, written, cc, folder, is_careful = json.loads(line)
    os.environ["GQUERY_CACHE_DIR"] = folder
    target, _, compiler = compiler.partition("_")
    try:
        if written is None:
            source = KernelSource(name, lambda: str(text))
        else:
            source = cuda_compiler(compiler).source(unpacked(written))
        if target == "cuda":
            make_cubin(compiler, source, (cc[0], cc[1]), is_careful)
        else:
            cpu_compiler(compiler).make_code(source)
    except Exception as e:
        return str(e)
    return ""


def _say(text: str, answers: IO[str]) -> None:
    answers.write(json.dumps(text) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
