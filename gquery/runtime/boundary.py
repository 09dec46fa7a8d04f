"""The boundary of the package: nothing but gquery's own errors leaves it.

What a user calls is decorated by `boundary`. An error of a library, or of ours that names no fault of the user's, becomes an
InternalError there, which says what to report. Whatever can be foreseen is turned into an error that names its cause where it
happens; the tests fail where an InternalError was made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from gquery.errors import Error, InterfaceError, InternalError, OutOfMemoryError
from gquery.runtime import device_faults
from gquery.runtime.nesting import too_deep

P = ParamSpec("P")
R = TypeVar("R")
_NAMED = ("numpy", "pyarrow", "numba", "cupy", "pandas", "polars")


def boundary(function: Callable[P, R]) -> Callable[P, R]:
    """The function with errors that become gquery's. Interrupts and the end of the process pass."""

    @wraps(function)
    def guarded(*args: P.args, **named: P.kwargs) -> R:
        try:
            return function(*args, **named)
        except Error:
            raise
        except ModuleNotFoundError as error:
            package = str(error.name).partition(".")[0]
            raise InterfaceError(f"{package} is not installed, and this needs it: pip install {package}") from error
        except RecursionError:
            raise too_deep() from None
        except MemoryError as error:
            said = f": {error}" if str(error) else ""
            raise OutOfMemoryError(
                f"Out of memory{said}. Remedies: fewer rows or columns at once, a machine with more"
            ) from error
        except Exception as error:
            if isinstance(error, TypeError) and _is_of_the_call(error):
                raise
            raise device_faults.named(error, "") or fault(error) from error

    return guarded


def _is_of_the_call(error: TypeError) -> bool:
    """Whether what is decorated was called with too many or too few arguments: no line of its body was reached."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename == __file__


def fault(error: Exception) -> InternalError:
    """An error that should not have come up, with what somebody needs who mends it."""
    said = " ".join(str(error).split())[:300]
    return InternalError(
        f"This is a fault of gquery: {type(error).__name__}{': ' if said else ''}{said} (in {_place(error)}). "
        f"Please report it with the statement and these versions: {_versions()}"
    )


def _place(error: BaseException) -> str:
    """The innermost line of ours that the error went through."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "gquery" in f.filename]
    last = (ours or list(frames))[-1:]
    return "".join(f"{f.filename.rpartition('/gquery/')[2]}, line {f.lineno}, {f.name}" for f in last)


def _versions() -> str:
    from importlib.metadata import PackageNotFoundError, version  # slow to import, and seldom needed

    found = [f"Python {sys.version.split()[0]}"]
    for package in ("gquery", *(name for name in _NAMED if name in sys.modules)):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:  # CuPy's package is named after the toolkit
            found.append(f"{package} {getattr(sys.modules.get(package), '__version__', 'of unknown version')}")
    return ", ".join(found)
