"""Python functions in queries: `udf` makes a scalar function of a typed Python function, compiled into the fused kernel.

    @gquery.udf
    def price(list_price: float, discount: float, shipped: datetime.date | None) -> float:
        if shipped is None:
            return list_price
        return list_price * (1 - discount)

Types are those of the annotations: int is BIGINT, float DOUBLE, bool BOOLEAN, datetime.date DATE, datetime.datetime
TIMESTAMP. Inside, a date is its days and a datetime its microseconds since 1970-01-01, as integers. A parameter that is
not ``| None`` makes the result NULL where it is NULL, without a call; a result that is ``| None`` may be NULL.

`user_source` checks what the function does and writes its text, which is the same on every target. Integers have 64 bits, and
``+``, ``-``, ``*``, ``**`` and ``<<`` beyond them raise, as do doubles that are to become an integer and have none; ``/`` by zero
gives an infinity or NaN, ``//`` and ``%`` by zero give 0; results are converted to the annotated type.
"""

from __future__ import annotations

import datetime
import linecache
import re
import threading
import types
import typing
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from gquery.errors import InterfaceError
from gquery.expression.expr import Call, Expr
from gquery.expression.types import BIGINT, BOOLEAN, DATE, DOUBLE, TIMESTAMP, DType
from gquery.functions.casts import cast, implicit_cost
from gquery.functions.registry import FUNCTIONS, USER_FILE, ScalarFunction, declare, no_match
from gquery.runtime.digests import hex_digest
from gquery.runtime.forking import free_in_child

if TYPE_CHECKING:
    from gquery.functions.user_source import Rewritten

_TYPES: dict[Any, DType] = {
    int: BIGINT, float: DOUBLE, bool: BOOLEAN, datetime.date: DATE, datetime.datetime: TIMESTAMP,
}  # fmt: skip


class _Name(str):
    """The name of a declared function. Calls hold it, in plans too: with the last one the declaration goes."""


_names: weakref.WeakValueDictionary[str, _Name] = weakref.WeakValueDictionary()
_lock = free_in_child(threading.RLock())


def _forget(name: str) -> None:
    with _lock:
        if name not in _names:  # or it has been declared again meanwhile
            FUNCTIONS.pop(name, None)


class UserFunction:
    """A Python function that queries can call. Made by `udf`.

    Called with expressions it gives an expression; called with anything else it is the Python function. SQL finds it as a
    variable of the caller, or by the name that `Connection.create_function` gave it.
    """

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        from gquery.functions.user_source import rewrite

        if not isinstance(function, types.FunctionType) or function.__name__ == "<lambda>":
            raise InterfaceError("gquery.udf takes a function that is written with def")
        self.function = function
        self.name = name or function.__name__
        hints = _hints(function)
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]
        if code.co_flags & 0x0C or code.co_kwonlyargcount or function.__defaults__:
            raise InterfaceError(f'"{self.name}": parameters of a function in queries are plain, without defaults')
        if missing := [n for n in (*names, "return") if n not in hints]:
            raise InterfaceError(f'"{self.name}": {", ".join(missing)} has no annotation; there are {_allowed()}')
        typed = [_annotation(hints[n], n, self.name) for n in names]
        self.parameters = tuple(t for t, _ in typed)
        self.takes_null = tuple(o for _, o in typed)
        self.result, self.gives_null = _annotation(hints["return"], "return", self.name)
        optional = {n for n, o in zip(names, self.takes_null, strict=True) if o}
        self.rewritten = rewrite(function, optional, _plain(self.result), self.gives_null)
        self._declared = self._declare()
        self._checked = False
        self.__doc__ = function.__doc__
        self.__name__ = self.name

    @property
    def signature(self) -> str:
        """As error messages print it."""
        return f"{self.name}({', '.join(map(str, self.parameters))}) -> {self.result}"

    @property
    def scalar(self) -> ScalarFunction:
        """What was declared."""
        return FUNCTIONS[self._declared]

    def _declare(self) -> _Name:
        """The name of the declaration: one for each text, so that what was compiled for it is found again."""
        text = self.rewritten.text
        digest = hex_digest(f"{self.signature}\n{self.takes_null}\n{text}", 6)
        name = f"{re.sub(r'[^a-z0-9]', '_', self.name.lower())}_{digest}"
        with _lock:
            found = _names.get(name)
            if found is not None:
                return found
            found = _names[name] = _Name(name)
            weakref.finalize(found, _forget, name).atexit = False
            if name not in FUNCTIONS:
                declare(
                    ScalarFunction(
                        name,
                        _made(text, f"{USER_FILE}{name}>"),
                        strict=not any(self.takes_null),
                        nullable=self.gives_null,
                        takes_null=self.takes_null,
                        gives_null=self.gives_null,
                        unproved=True,
                    )
                )
            return found

    def call(self, *args: Expr) -> Expr:
        """The typed call; BindError for arguments that the parameters do not take."""
        fits = len(args) == len(self.parameters)
        if not fits or any(implicit_cost(a, t) is None for a, t in zip(args, self.parameters, strict=True)):
            raise no_match(self.name, args, [self.signature])
        casted = tuple(cast(a, t) for a, t in zip(args, self.parameters, strict=True))
        nullable = self.gives_null or any(
            a.nullable for a, takes in zip(casted, self.takes_null, strict=True) if not takes
        )
        return Call(self._declared, casted, self.result, nullable)

    def check(self, compiles: Callable[[Rewritten, str, tuple[str, ...]], None]) -> None:
        """Have a compiler look at it, once; its error names the line of the function."""
        if not self._checked:
            kinds: list[str] = []
            for dtype, takes in zip(self.parameters, self.takes_null, strict=True):
                kinds += [_plain(dtype), "bool"] if takes else [_plain(dtype)]
            compiles(self.rewritten, self.name, tuple(kinds))
            self._checked = True

    def __call__(self, *args: Any) -> Any:
        for a in args:
            if hasattr(a, "__gquery_call__"):
                return a.__gquery_call__(self, args)
        return self.function(*args)

    def __repr__(self) -> str:
        return f"<gquery function {self.signature}>"


@overload
def udf(function: Callable[..., Any]) -> UserFunction: ...
@overload
def udf(*, name: str) -> Callable[[Callable[..., Any]], UserFunction]: ...
def udf(function: Callable[..., Any] | None = None, *, name: str | None = None) -> Any:
    """Decorator: the typed Python function as a function of queries, see the module. NotSupportedError, with the line, for
    what cannot be compiled; InterfaceError for parameters or annotations that queries do not know."""
    if function is None:
        return lambda f: UserFunction(f, name)
    return UserFunction(function, name)


def _hints(function: types.FunctionType) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError) as error:
        raise InterfaceError(f'"{function.__name__}": an annotation cannot be read: {error}') from None


def _annotation(hint: Any, where: str, name: str) -> tuple[DType, bool]:
    """The type of an annotation, and whether it may be None."""
    optional = typing.get_origin(hint) in (typing.Union, types.UnionType) and type(None) in typing.get_args(hint)
    if optional:
        rest = [a for a in typing.get_args(hint) if a is not type(None)]
        hint = rest[0] if len(rest) == 1 else hint
    dtype = _TYPES.get(hint) if isinstance(hint, type) else None
    if dtype is None:
        shown = getattr(hint, "__name__", str(hint))
        raise InterfaceError(f'"{name}": {where} is annotated {shown}; there are {_allowed()}')
    return dtype, optional


def _allowed() -> str:
    return "int, float, bool, datetime.date, datetime.datetime, each or None"


def _plain(dtype: DType) -> str:
    return {"DOUBLE": "float", "BOOLEAN": "bool"}.get(str(dtype), "int")


def _made(text: str, file: str) -> Callable[..., Any]:
    """The function of a text that `user_source` wrote; the text can be found by `inspect`."""
    lines = linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    namespace: dict[str, Any] = {}
    exec(compile(text, file, "exec"), namespace)  # nothing but a def whose every node has been looked at
    made: Callable[..., Any] = namespace["user_function"]
    weakref.finalize(made, _forget_text, file, lines).atexit = False
    return made


def _forget_text(file: str, lines: object) -> None:
    if linecache.cache.get(file) is lines:
        del linecache.cache[file]
