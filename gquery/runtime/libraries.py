"""Arrow's shared libraries are opened on another thread while this one imports modules of Python.

Python opens what an extension needs under the interpreter's lock, which takes 11 ms for Arrow's libraries. Called as a function
of C, the same `dlopen` lets go of the lock, so that a second processor does it meanwhile, and PyArrow finds them open. They
know nothing of Python: what runs as they are opened needs no lock.

The loader has a lock of its own: who opens another library meanwhile waits, 6 to 15 ms. So modules that are libraries and that
nearly all others need are imported before, and modules of Python alone while the thread runs (`gquery.api.names`).
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any

_NAMES = ("libarrow_substrait.so.", "libarrow.so.")  # the first needs all others that PyArrow does, but for its own

_NEEDED = ("inspect", "decimal", "datetime", "_blake2")  # they open libraries of Python's, themselves or by what they import

_lock = threading.Lock()
_opening: threading.Thread | None = None  # which may have ended; a process opens them once


@contextmanager
def opened_ahead() -> Iterator[None]:
    """Arrow's libraries are opened while the block runs, and are open behind it. Where they are not found nothing is done, and
    what cannot be opened is left to PyArrow's import, which says why."""
    global _opening
    thread = None
    with _lock:
        if _opening is None and _is_of_use() and (path := _library()) is not None:
            for module in _NEEDED:
                import_module(module)
            thread = _opening = threading.Thread(target=_dlopen(), args=(path, sys.getdlopenflags()), daemon=True)
            thread.start()
    try:
        yield
    finally:
        if thread is not None:
            thread.join()


def _is_of_use() -> bool:
    return sys.platform == "linux" and "pyarrow" not in sys.modules and len(os.sched_getaffinity(0)) > 1


def _library() -> bytes | None:
    """The file of the library that needs the others, beside PyArrow's modules; None where they lie elsewhere."""
    with suppress(ImportError, ValueError, OSError):
        spec = find_spec("pyarrow")
        for folder in (spec and spec.submodule_search_locations) or ():
            files = sorted(os.listdir(folder))
            found = [file for name in _NAMES for file in files if file.startswith(name)]
            if found:
                return os.fsencode(os.path.join(folder, found[0]))
    return None


def _dlopen() -> Callable[..., Any]:
    import ctypes  # as NumPy does

    dlopen = ctypes.CDLL(None).dlopen
    dlopen.argtypes, dlopen.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
    return dlopen


def _wait() -> None:
    """A child that is forked in the midst of `dlopen` could open nothing more."""
    if (thread := _opening) is not None:
        thread.join()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait)
