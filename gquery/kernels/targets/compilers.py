"""Which compiler makes machine code of kernels: our own lowering to LLVM, or Numba, the second opinion.

Both are given the same statements, and are to give the same answers. `compiling_by` says which one a query wants
(``SET compiler``); a kernel that calls a Python function of a user is Numba's in any case.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, cast, get_args

from gquery.kernels.kernel import Kernel

Compiler = Literal["llvm", "numba"]

_chosen: ContextVar[Compiler | None] = ContextVar("compiler", default=None)


@contextmanager
def compiling_by(name: str) -> Iterator[None]:
    """Within it, this thread's kernels are compiled by the compiler of that name."""
    assert name in get_args(Compiler), name
    before = _chosen.set(cast(Compiler, name))
    try:
        yield
    finally:
        _chosen.reset(before)


def compiler_of(kernel: Kernel) -> Compiler:
    """The compiler that a kernel is for, on this thread; where no query runs, that of ``GQUERY_COMPILER``."""
    if kernel.calls_user_functions:
        return "numba"
    return _chosen.get() or cast(Compiler, os.environ.get("GQUERY_COMPILER") or "llvm")
