"""Library: the primitives of one target as LLVM functions, each lowered when it is first called, once a process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from gquery.functions.registry import USER_FILE
from gquery.kernels import ir
from gquery.kernels.lowering.assembler import LoweringError
from gquery.kernels.lowering.bodies import read_body
from gquery.kernels.lowering.function import LoweredFunction, lower
from gquery.kernels.lowering.intrinsics import INLINED, lower_intrinsic
from gquery.kernels.lowering.user import MakeModule, user_function
from gquery.kernels.lowering.values import INTEGER_BITS, Type, is_pointer
from gquery.kernels.primitives import ALIASES
from gquery.kernels.targets.binding import Primitives
from gquery.kernels.targets.intrinsics import Definition
from gquery.runtime.forking import free_in_child

_MATH = "math_"  # how bodies call the functions of `math`


class Library:
    """Finds functions by name and the types of arguments.

    ``mathematics`` are the symbols of `math`'s functions on the target, by their names there; ``make_module`` compiles
    functions of users.
    """

    def __init__(self, primitives: Primitives, mathematics: Mapping[str, str], make_module: MakeModule) -> None:
        self.primitives, self.mathematics, self._make_module = primitives, mathematics, make_module
        self._of_users: WeakKeyDictionary[Callable[..., Any], dict[tuple[Type, ...], LoweredFunction]] = (
            WeakKeyDictionary()
        )
        self._made: dict[tuple[str, tuple[Type, ...]], LoweredFunction] = {}
        self._intrinsics: dict[str, LoweredFunction] = {}
        self._bodies: dict[str, ir.Function] = {}
        self._functions: dict[Callable[..., Any], ir.Function] = {}
        self._lock = free_in_child(threading.RLock())

    def find(self, name: str, types: tuple[Type, ...]) -> LoweredFunction:
        """The function of a primitive; LoweringError where there is none of that name."""
        key = ALIASES.get(name, name), types
        found = self._made.get(key)
        if found is None:
            with self._lock:
                found = self._made[key] = self._find(key[0], tuple([_register_type(t) for t in types]))
        return found

    def scalar(self, function: Callable[..., Any]) -> ir.Function:
        """The body of a scalar function as nodes, which is read once."""
        with self._lock:
            found = self._functions.get(function)
            if found is None:
                found = self._functions[function] = read_body(function)
            return found

    def user(self, function: Callable[..., Any], types: tuple[Type, ...]) -> LoweredFunction:
        """A user's function, compiled once a process. LoweringError where the other compiler has none."""
        given = tuple([t if t == "*u32" else _register_type(t) for t in types])
        with self._lock:
            known = self._of_users.setdefault(function, {})
            if given not in known:
                declared = function.__code__.co_filename.removeprefix(USER_FILE).removesuffix(">")
                symbol = "_".join(["user", declared, *[_symbol(t).replace("*", "p") for t in given]])
                known[given] = user_function(symbol, given, self._make_module(function, given, symbol))
        return known[given]

    def _find(self, name: str, types: tuple[Type, ...]) -> LoweredFunction:
        if name.startswith(_MATH):
            return self._mathematical(name)
        meaning = self.primitives.meaning(name)
        if meaning is None:
            raise LoweringError(f"there is no primitive {name!r}")
        if isinstance(meaning, Definition):
            if name not in self._intrinsics:
                self._intrinsics[name] = lower_intrinsic(meaning)
            return self._intrinsics[name]
        if name not in self._bodies:
            self._bodies[name] = read_body(meaning)
        found = self._made.get((name, types))
        if found is None:
            symbol = ".".join([name, *[_symbol(t) for t in types]])  # no name of a primitive has a dot
            found = self._made[name, types] = lower(self._bodies[name], types, self.find, symbol, INLINED)
        return found

    def _mathematical(self, name: str) -> LoweredFunction:
        """A function that calls one of `math`'s, of one double or of two."""
        if name not in self._intrinsics:
            outside = self.mathematics.get(name.removeprefix(_MATH))
            if outside is None:
                raise LoweringError(f"there is no function math.{name.removeprefix(_MATH)}")
            count = 2 if name in ("math_pow", "math_atan2", "math_copysign", "math_fmod") else 1
            given = ", ".join([f"double %x{n}" for n in range(count)])
            text = f"define internal double @{name}({given}) {INLINED} {{\nentry:\n"
            text += f"%y = call double @{outside}({given})\nret double %y\n}}"
            declaration = f"declare double @{outside}({', '.join(['double'] * count)})"
            self._intrinsics[name] = LoweredFunction(name, ("f64",) * count, "f64", text, (), (declaration,))
        return self._intrinsics[name]


def _register_type(type_: Type) -> Type:
    """What a body takes for an argument: integers as registers of 64 bits, pointers as pointers to anything."""
    if type_ in INTEGER_BITS and type_ != "bool":
        return "i64"
    return "*" if is_pointer(type_) else type_


def _symbol(type_: Type) -> str:
    if isinstance(type_, tuple):
        return f"t{'_'.join([_symbol(t) for t in type_])}"
    return "p" if type_ == "*" else type_
