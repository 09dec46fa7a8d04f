"""The primitives of the cpu target as a module that generated kernels import from; names are made at first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numba import njit, types, uint64
from numba.extending import intrinsic

from gquery.kernels.targets.binding import Binding
from gquery.kernels.targets.cpu_cache import SealedCache
from gquery.kernels.targets.cpu_words import CPU_DEFINITIONS, ELEMENTS

__all__ = ["device", "entry", "part", "uint64"]

# a primitive is called from compiled code alone: the wrappers for Python callers would double its compile time
device = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy", forceinline=True)
part = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")  # what was cut out stays out
_PLAIN = {"i": types.int64, "f": types.float64}


def entry(scalars: str) -> Callable[[Any], Any]:
    """Decorator of a kernel; ``scalars`` has a letter a parameter: ``i`` an address or an integer, ``f`` a double."""
    signature = types.void(types.int64, types.int64, *(_PLAIN[s] for s in scalars))

    def make(function: Any) -> Any:
        dispatcher = njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)(function)
        dispatcher._cache = SealedCache(function.__module__.rpartition(".")[2])
        dispatcher.compile(signature)
        dispatcher.disable_compile()
        return dispatcher

    return make


def warm_up() -> None:
    """Compile a first small function: Numba fills its tables at that."""
    njit(types.int64(types.int64))(lambda x: x + 1)


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
    return Binding(intrinsic, device, CPU_DEFINITIONS, given={f"pointer_{e}": _pointer(e) for e in ELEMENTS})


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return binding()[name]
