"""The entry of a user's function, as Python that Numba compiles for either target (see `kernels.lowering.user`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any

from numba import types

from gquery.kernels.lowering.assembler import LoweringError
from gquery.kernels.lowering.values import Type, items_of
from gquery.kernels.targets.binding import Binding

_NUMBA = {"i64": types.int64, "f64": types.float64, "bool": types.boolean, "*u32": types.CPointer(types.uint32)}
_CLASSES = {"Integer": "i64", "IntegerLiteral": "i64", "Float": "f64", "Boolean": "bool", "BooleanLiteral": "bool"}


def bound(code: CodeType, primitives: Binding) -> FunctionType:
    """The text of a user's function as one that calls the primitives of a target."""
    used: dict[str, Any] = {n: primitives[n] for n in code.co_names if n in primitives}
    return FunctionType(code, {"__builtins__": __builtins__, **used}, code.co_name)


def numba_types(given: Sequence[Type]) -> tuple[Any, ...]:
    """What Numba calls the types of a function's arguments."""
    return tuple([_NUMBA[t] for t in given if isinstance(t, str)])


def result_type(made: Any) -> Type:
    """The type of what a function gives, by Numba's; LoweringError for one that queries do not know."""
    items = list(made) if type(made).__name__ in ("Tuple", "UniTuple") else [made]
    found = [_CLASSES.get(type(item).__name__) for item in items]
    if None in found:
        raise LoweringError(f"a function of Python gives {made}")
    names = tuple([f for f in found if f is not None])
    return names if len(items) > 1 else names[0]


def entry(function: object, given: Sequence[Type], result: Type) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The entry of a function that Numba has compiled, and the types of its parameters."""
    names = [f"x{n}" for n in range(len(given))]
    results = items_of(result)
    places = [f"o{n}" for n in range(len(results) or 1)]
    arguments = [f"{name} != 0" if t == "bool" else name for name, t in zip(names, given, strict=True)]
    lines = [f"def entry({', '.join([*names, *places])}):", f"    made = function({', '.join(arguments)})"]
    for n, (place, one) in enumerate(zip(places, results or (result,), strict=True)):
        value = f"made[{n}]" if results else "made"
        lines.append(f"    {place}[0] = {f'1 if {value} else 0' if one == 'bool' else value}")
    namespace: dict[str, Any] = {"function": function}
    exec("\n".join(lines), namespace)  # no text of a user: names are numbers
    words = [types.int64 if t == "bool" else t_ for t, t_ in zip(given, numba_types(given), strict=True)]
    outs = [types.CPointer(types.float64 if one == "f64" else types.int64) for one in results or (result,)]
    made: Callable[..., Any] = namespace["entry"]
    return made, (*words, *outs)


def refusal(error: Exception) -> LoweringError:
    """What Numba says, for a kernel's error."""
    return LoweringError(f"Numba: {error}")
