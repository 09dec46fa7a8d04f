"""A package whose modules are imported one by one: what its own ``__init__`` does is done when somebody asks it for a name.

A package imports what most of its users want. Who wants two of its modules gets all the others with them, as Python runs a
package's ``__init__`` before any module in it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

_PATIENCE = 10.0  # seconds, a hundred times what an ``__init__`` takes

_lock = threading.RLock()
_around: dict[str, Callable[[], AbstractContextManager[object]]] = {}
_running: set[str] = set()


class _Lazy(ModuleType):
    """A package in `sys.modules` whose ``__init__`` has not run. From then on it is what Python would have made."""

    def __getattr__(self, name: str) -> Any:
        if not _complete(self):
            raise AttributeError(f"partially initialized module {self.__name__!r} has no attribute {name!r}")
        return getattr(self, name)

    def __dir__(self) -> list[str]:
        _complete(self)
        return [*vars(self)]


def import_in_parts(name: str, around: Callable[[], AbstractContextManager[object]]) -> None:
    """Import a package without what its ``__init__`` does, which runs within ``around`` when somebody asks for a name that no
    module of it that was imported has put there. One that somebody has imported, or that is not a plain file, is imported as
    Python does."""
    if name in sys.modules:
        return
    spec = find_spec(name)
    if spec is None or type(spec.loader) is not SourceFileLoader or spec.submodule_search_locations is None:
        with around():
            import_module(name)
        return
    package: Any = module_from_spec(spec)
    package.__class__ = _Lazy
    _around[name] = around
    sys.modules[name] = package
    above, _, last = name.rpartition(".")
    if above:
        setattr(sys.modules[above], last, package)  # as Python does


def _complete(package: ModuleType) -> bool:
    """Run the package's ``__init__``, once, while other threads wait. False in the midst of that: to the thread that runs it, as
    modules of the package ask for others that come later, and to one that has waited in vain, as it imports a module that the
    ``__init__`` waits for: both are told as by Python that the name is not there, and import it as a module."""
    if not _lock.acquire(timeout=_PATIENCE):
        return False
    try:
        if type(package) is not _Lazy:
            return True
        made: Any = package
        name = package.__name__
        if name in _running:
            return False
        _running.add(name)
        try:
            with _around[name]():
                made.__spec__.loader.exec_module(package)
        finally:
            _running.remove(name)
        made.__class__ = ModuleType
        return True
    finally:
        _lock.release()
