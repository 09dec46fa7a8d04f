"""From a primitive's name to a function that a compiled kernel can call, on cpu or cuda.

A name is, first found: one of the target's own intrinsics, an intrinsic that all compiled targets share
(`targets.intrinsics`), or a body from `kernels.primitives`, rebound so that the names it uses are found the same way.
Everything is made at first use, so that a kernel pays for the primitives it names and a warm process for none.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

from gquery.kernels.primitives import ALIASES
from gquery.kernels.targets.intrinsics import DEFINITIONS, Definition
from gquery.kernels.targets.intrinsics_numba import build
from gquery.kernels.targets.intrinsics_user import BY_TYPE, build_by_type

BODIES = ("checked", "wide", "floats", "decimals", "dates", "strings", "search", "globs", "json_scan", "tables", "bits",
          "bit_sets", "groups", "ranges", "packed", "page_texts", "pages", "held_chunks", "held_texts", "user")  # fmt: skip


@cache
def _modules() -> tuple[ModuleType, ...]:
    return tuple(importlib.import_module(f"gquery.kernels.primitives.{name}") for name in BODIES)


class Primitives:
    """What the names of primitives mean on one compiled target: instructions, or a body in Python.

    ``own`` are instructions that it alone has or does differently, ``own_bodies`` modules of bodies likewise.
    """

    def __init__(self, own: Mapping[str, Definition], own_bodies: tuple[ModuleType, ...] = ()) -> None:
        self.definitions = {**DEFINITIONS, **own}
        self.own_bodies = own_bodies

    def meaning(self, name: str) -> Definition | FunctionType | None:
        """What a name stands for; None where it is no primitive."""
        name = ALIASES.get(name, name)
        body = self._body(name)
        from_target = body is not None and any(body.__module__ == m.__name__ for m in self.own_bodies)
        return self.definitions[name] if name in self.definitions and not from_target else body

    def _body(self, name: str) -> FunctionType | None:
        for module in (*self.own_bodies, *_modules()):
            f = vars(module).get(name)
            if isinstance(f, FunctionType) and f.__module__ == module.__name__:
                return f
        return None


class Binding:
    """The primitives of one target as functions that Numba compiles.

    ``intrinsic`` and ``device`` are Numba's decorators for that target, ``given`` finished functions.
    """

    def __init__(
        self,
        intrinsic: Callable[[Any], Any],
        device: Callable[[Any], Any],
        primitives: Primitives,
        given: Mapping[str, Any] | None = None,
    ) -> None:
        self._intrinsic, self._device = intrinsic, device
        self._primitives = primitives
        self._found: dict[str, Any] = dict(given or {})

    def __getitem__(self, name: str) -> Any:
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    def __contains__(self, name: str) -> bool:
        return name in self._found or name in BY_TYPE or self._primitives.meaning(name) is not None

    def _find(self, name: str) -> Any:
        if name in ALIASES:
            return self[ALIASES[name]]
        if name in BY_TYPE:
            integers, floats = (self._primitives.definitions[n] for n in BY_TYPE[name])
            return build_by_type(name, integers, floats, self._intrinsic)
        meaning = self._primitives.meaning(name)
        if meaning is None:
            raise AttributeError(f"there is no primitive {name!r}")
        if isinstance(meaning, Definition):
            return build(meaning, self._intrinsic)
        return self._device(self._rebind(meaning))

    def _rebind(self, body: FunctionType) -> FunctionType:
        """The same code with its global names bound to this target's primitives."""
        namespace: dict[str, Any] = {"__name__": body.__module__, "__builtins__": __builtins__}
        for used in body.__code__.co_names:
            if used in body.__globals__:  # not so the names of attributes, as in ``math.sqrt``
                namespace[used] = self[used] if used in self else body.__globals__[used]
        bound = FunctionType(body.__code__, namespace, body.__name__, body.__defaults__)
        bound.__qualname__ = body.__qualname__
        return bound
