"""A package of which some modules are imported, and not what its own ``__init__`` does: that runs when somebody wants more.

A package imports what most of its users want. Who wants two of its modules gets all the others with them, as Python runs a
package's ``__init__`` before any module in it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

_PATIENCE = 10.0  # seconds, a hundred times what an ``__init__`` takes
_STEP = 0.02  # seconds, after which who waits looks whether the name is there by now
_SHORT = 1.0  # seconds that an import waits, which holds the lock of a module that the ``__init__`` may be about to import

_lock = threading.RLock()
_around: dict[str, Callable[[], AbstractContextManager[object]]] = {}
_running: dict[str, int] = {}  # by package, the thread that runs its ``__init__``
_importing: dict[str, int] = {}  # by package, the thread that imports its parts


class _Lazy(ModuleType):
    """A package in `sys.modules` whose ``__init__`` has not run. From then on it is what Python would have made. Python would put
    each module of it that is imported in there; a name that the ``__init__`` may bind otherwise is nobody's until then."""

    def __getattr__(self, name: str) -> Any:
        if not _complete(self, name):
            raise AttributeError(f"partially initialized module {self.__name__!r} has no attribute {name!r}")
        return getattr(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        is_own = isinstance(value, ModuleType) and value.__name__ == f"{self.__name__}.{name}"
        if not is_own or self.__name__ in _running:
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        _complete(self)
        return [*vars(self)]


class _Bound(ModuleType):
    """A package that Python is about to put a module into where the ``__init__`` has bound the name to something else."""

    def __setattr__(self, name: str, value: object) -> None:
        if value is sys.modules.get(f"{self.__name__}.{name}"):
            super().__setattr__("__class__", ModuleType)
        else:
            super().__setattr__(name, value)


@contextmanager
def imported_in_parts(name: str, around: Callable[[], AbstractContextManager[object]]) -> Iterator[None]:
    """Modules of a package that this thread imports within the block come without the package's ``__init__``. That runs within
    ``around`` when somebody asks for a name of the package that is not there, or imports another module of it. A package that
    somebody has imported, or any of whose modules is compiled, is imported as Python does."""
    spec = None if name in sys.modules else find_spec(name)
    if spec is None or not _is_of_sources(spec):
        with around():
            import_module(name)
        yield
        return
    package: Any = module_from_spec(spec)
    package.__class__ = _Lazy
    _around[name] = around
    _importing[name] = threading.get_ident()
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    sys.modules[name] = package
    above, _, own = name.rpartition(".")
    if above:
        setattr(sys.modules[above], own, package)  # as Python does
    try:
        yield
    finally:
        del _importing[name]


def _is_of_sources(spec: ModuleSpec) -> bool:
    """Whether a package is Python alone: compiled modules go by names of each other that no import tells."""
    if type(spec.loader) is not SourceFileLoader or not spec.submodule_search_locations:
        return False
    return not any(n.endswith(tuple(EXTENSION_SUFFIXES)) for path in spec.submodule_search_locations for n in os.listdir(path))


class _Finder:
    """Has a package completed before another module of it is imported, which may want what the package has by then."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        above = name.rpartition(".")[0]
        package = sys.modules.get(above)
        if type(package) is not _Lazy or threading.get_ident() in (_running.get(above), _importing.get(above)):
            return None
        found = PathFinder.find_spec(name, path, target)
        if found is not None and found.loader is not None:
            found.loader = _Behind(package, found.loader)
        return found


class _Behind(Loader):
    """Loads a module once the package is complete, which is done here, as Python looks for modules under a lock. It may have come
    with the package: that one is given, as it is."""

    def __init__(self, package: ModuleType, loader: Any) -> None:
        self.package, self.loader = package, loader
        self.found: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        _complete(self.package, patience=_SHORT)
        self.found = sys.modules.get(spec.name)
        if self.found is None:
            made: ModuleType | None = self.loader.create_module(spec)
            return made
        self.spec = self.found.__spec__
        if getattr(self.package, spec.name.rpartition(".")[2]) is not self.found:
            package: Any = self.package
            package.__class__ = _Bound
        return self.found

    def exec_module(self, module: ModuleType) -> None:
        if self.found is not None:
            module.__spec__ = self.spec
            return
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)


_FINDER: Any = _Finder()


def _modules_of(name: str) -> dict[str, ModuleType]:
    """Those of a package that are imported, by their own names."""
    found = [(m.removeprefix(f"{name}."), module) for m, module in list(sys.modules.items()) if m.startswith(f"{name}.")]
    return {own: module for own, module in found if "." not in own}


def _complete(package: ModuleType, wanted: str | None = None, patience: float = _PATIENCE) -> bool:
    """Run the package's ``__init__``, once, while other threads wait, until there is the name that is ``wanted``. False in the
    midst of that: to the thread that runs it, as modules of the package ask for others that come later, and to one that has
    waited in vain: both are told as by Python that the name is not there. One thread may import a module, which wants a name of
    the package, while another runs the ``__init__``, which wants that module: what is bound before is there, as in Python."""
    until = time.monotonic() + patience
    while not _lock.acquire(timeout=_STEP):
        if wanted in vars(package):
            return True
        if time.monotonic() > until:
            return False
    try:
        if type(package) is not _Lazy:
            return True
        made: Any = package
        name = package.__name__
        if name in _running:
            return False
        above = sys.modules.get(name.rpartition(".")[0])
        if type(above) is _Lazy and _complete(above) and type(package) is not _Lazy:
            return True  # the package that it is in comes first, as in Python, and wants all of this one
        _running[name] = threading.get_ident()
        modules = _modules_of(name)
        vars(package).update(modules)
        try:
            for module in modules.values():
                if type(module) is _Lazy:  # which is whole when the ``__init__`` begins to import what rests on it
                    _complete(module)
            with _around[name]():
                made.__spec__.loader.exec_module(package)
        finally:
            del _running[name]
        made.__class__ = ModuleType
        for own, module in modules.items():  # ``import *`` may have bound the name to another module, which Python undoes
            if isinstance(getattr(package, own, None), ModuleType):
                setattr(package, own, module)
        if not any(type(sys.modules.get(each)) is _Lazy for each in _around):
            sys.meta_path.remove(_FINDER)
        return True
    finally:
        _lock.release()
