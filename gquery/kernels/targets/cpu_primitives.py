"""The primitives of the cpu target as a module that generated kernels import from; names are made at first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numba import types, uint64
from numba.extending import intrinsic

from gquery.kernels.primitives import chunks, footers, moves, page_list, uploads, vector_search
from gquery.kernels.targets.binding import Binding, Primitives
from gquery.kernels.targets.cpu_intrinsics import CPU_DEFINITIONS, ELEMENTS
from gquery.kernels.targets.cpu_linking import object_code, part
from gquery.kernels.targets.cpu_linking import primitive as device
from gquery.kernels.targets.cpu_numba import Code

__all__ = ["device", "entry", "part", "uint64"]

_PLAIN = {"i": types.int64, "f": types.float64}


def entry(scalars: str) -> Callable[[Callable[..., Any]], Code]:
    """Decorator of a kernel; ``scalars`` has a letter a parameter: ``i`` an address or an integer, ``f`` a double."""
    return lambda function: object_code(function, (types.int64, types.int64, *(_PLAIN[s] for s in scalars)))


def warm_up() -> None:
    """Compile a first small function: Numba fills its tables at that."""
    entry("i")(lambda lo, hi, x: None)


def _pointer(name: str) -> Any:
    element = types.CPointer(getattr(types, {"i": "int", "u": "uint", "f": "float"}[name[0]] + name[1:]))

    def pointer(context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.inttoptr(values[0], context.get_value_type(element))

        return element(types.int64), generate

    pointer.__name__ = f"pointer_{name}"
    return intrinsic(pointer)


@cache
def binding() -> Binding:
    return Binding(
        intrinsic,
        device,
        Primitives(CPU_DEFINITIONS, own_bodies=(vector_search, chunks, footers, uploads, page_list, moves)),
        given={f"pointer_{e}": _pointer(e) for e in ELEMENTS},
    )


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return binding()[name]
