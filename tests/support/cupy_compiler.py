"""Who has CuPy compile something. An operator of its arrays that it has not compiled yet takes 25 ms, and the first one of a
process imports SciPy, 0.2 to 0.8 s: kernels of `gquery.kernels.builtin` are on disk, and take neither."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import gquery

_PACKAGE = str(Path(gquery.__file__).parent)


def _caller() -> str | None:
    """The nearest function that is not CuPy's, if it is the engine's."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and "cupy" in frame.f_code.co_filename:
        frame = frame.f_back
    if frame is None or not frame.f_code.co_filename.startswith(_PACKAGE):
        return None
    return f"{frame.f_code.co_filename[len(_PACKAGE) + 1 :]}:{frame.f_lineno} {frame.f_code.co_name}"


@contextmanager
def callers_of_compiler() -> Iterator[list[str]]:
    """Within it, the list gets a line for each kernel that CuPy makes for the engine in this process."""
    from cupy.cuda import compiler

    found: list[str] = []
    real = compiler._compile_module_with_cache

    def made(*given: Any, **named: Any) -> Any:
        caller = _caller()
        if caller is not None:
            found.append(caller)
        return real(*given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "_compile_module_with_cache", made)
        yield found
