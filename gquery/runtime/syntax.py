"""Python's parser, for one thread at a time.

CPython 3.11 counts how deep a syntax tree nests in one place for all threads: where the collector runs in the midst of making
one, another thread may go on with its own, and the first one fails ("AST constructor recursion depth mismatch").
"""

from __future__ import annotations

import ast
import threading
from types import CodeType

from gquery.runtime.forking import free_in_child

_lock = free_in_child(threading.RLock())  # the collector may run anything


def parse(text: str) -> ast.Module:
    """The syntax tree of a text; SyntaxError where it is none."""
    with _lock:
        return ast.parse(text)


def compiled(source: str | ast.Module, file: str) -> CodeType:
    """The code of a module; SyntaxError where it is none. ``file`` is its name in tracebacks."""
    with _lock:
        code: CodeType = compile(source, file, "exec")
        return code
