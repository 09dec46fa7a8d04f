"""A function that another package imports as it is loaded, and calls seldom: its module is imported when it is called."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from gquery.runtime.forking import free_in_child

_lock = free_in_child(threading.Lock())


@contextmanager
def postponed(module: str, function: str) -> Iterator[None]:
    """Who imports ``function`` of ``module`` while the block runs gets one that imports the module when it is called. Any other
    name of the module, on any thread, is the module's own, which is imported then."""
    spec = None if module in sys.modules else find_spec(module)
    if spec is None:
        yield
        return
    stand_in = _StandIn(module)
    if spec.submodule_search_locations is not None:
        stand_in.__path__ = spec.submodule_search_locations

    def call(*args: Any, **named: Any) -> Any:
        stand_in.leave()  # else another thread that calls it now would find itself
        return getattr(import_module(module), function)(*args, **named)

    setattr(stand_in, function, call)
    sys.modules[module] = stand_in
    above, _, own = module.rpartition(".")
    if above and not hasattr(sys.modules[above], own):
        setattr(sys.modules[above], own, stand_in)  # as Python does, for who imports the package and names the module
    try:
        yield
    finally:
        stand_in.leave()


class _StandIn(ModuleType):
    """What stands in `sys.modules` meanwhile, where only Python's own import asks for names with underscores around them."""

    def leave(self) -> None:
        above, _, own = self.__name__.rpartition(".")
        with _lock:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
            if above and vars(sys.modules[above]).get(own) is self:
                delattr(sys.modules[above], own)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.leave()
        return getattr(import_module(self.__name__), name)
