"""Which compiler makes machine code of kernels: our own lowering to LLVM, or Numba, the second opinion.

Both are given the same statements, and are to give the same answers. `compiling_by` says which one a query wants
(``SET compiler``); where that is left to us, each target has its own. A Python function of a user is compiled by Numba in any
case; where our own lowering makes the kernel, its module is linked into that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, cast, get_args

from gquery.functions.registry import is_user_function
from gquery.kernels.kernel import Kernel

Compiler = Literal["llvm", "numba"]
Wanted = Literal["auto", "llvm", "numba"]

_BY_TARGET: dict[str, Compiler] = {"cpu": "llvm", "cuda": "llvm"}
"""What ``auto`` means."""

_chosen: ContextVar[Wanted | None] = ContextVar("compiler", default=None)


@contextmanager
def compiling_by(name: str) -> Iterator[None]:
    """Within it, this thread's kernels are compiled by the compiler of that name, or by their target's own (``auto``)."""
    assert name in get_args(Wanted), name
    before = _chosen.set(cast(Wanted, name))
    try:
        yield
    finally:
        _chosen.reset(before)


def compiler_of(target: str) -> Compiler:
    """The compiler that kernels are for, on this thread; where no query runs, that of ``GQUERY_COMPILER``."""
    wanted = _chosen.get() or cast(Wanted, os.environ.get("GQUERY_COMPILER") or "auto")
    return _BY_TARGET[target] if wanted == "auto" else wanted


def calls_users(kernel: Kernel) -> bool:
    """Whether a kernel calls functions of users, which Numba compiles whoever compiles the kernel."""
    return any(is_user_function(f) for _, f in kernel.functions)
