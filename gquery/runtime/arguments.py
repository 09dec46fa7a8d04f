"""Arguments of public methods that are of another type than is said are told as that, before anything is done with them.

`checked` stands over a class or a method and reads the annotations: a parameter of one of the types below is looked at, any
other is left to the method. A wrong number of arguments is Python's TypeError, as for any function.
"""

from __future__ import annotations

import inspect
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

from gquery.errors import InterfaceError

T = TypeVar("T")
Check = tuple[Callable[[Any], bool], str]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_whole(value: Any) -> bool:
    has_bits = not isinstance(value, bool) and hasattr(type(value), "__index__")
    return has_bits and -(2**63) <= operator.index(value) < 2**63


def _is_texts(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, Sequence) and all(isinstance(v, str) for v in value))


def _is_flags(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, Sequence) and all(isinstance(v, bool) for v in value))


_CHECKS: dict[str, Check] = {
    "str": (_is_text, "a str"),
    "int": (_is_whole, "a whole number of 64 bits"),
    "str | os.PathLike[str]": (lambda v: isinstance(v, str | os.PathLike), "a path"),
    "str | Sequence[str]": (_is_texts, "a str or a list of them"),
    "bool | Sequence[bool]": (_is_flags, "a bool or a list of them"),
    "Mapping[str, str]": (lambda v: isinstance(v, Mapping) and all(map(_is_text, [*v, *v.values()])), "a dict of str"),
    "Sequence[Any]": (lambda v: isinstance(v, Sequence) and not isinstance(v, str | bytes), "a list"),
}
_CHECKS["How"] = _CHECKS["str"]
_CHECKS["Names"] = (lambda v: v is None or _is_texts(v), "a str, a list of them or None")


def checked(what: T) -> T:
    """A class whose public methods look at their arguments, or such a method."""
    if isinstance(what, type):
        for name, method in list(vars(what).items()):
            if inspect.isfunction(method) and (not name.startswith("_") or name == "__init__"):
                setattr(what, name, _method(method))
        return what
    assert inspect.isfunction(what)
    made: T = _method(what)
    return made


def _method(method: Any) -> Any:
    code = inspect.unwrap(method).__code__
    checks = {name: found for name, text in method.__annotations__.items() if (found := _check_of(text)) is not None}
    count = code.co_argcount + code.co_kwonlyargcount
    rest = [checks.pop(n, None) if n in checks else None for n in code.co_varnames[count : count + 2]]
    of_rest = rest.pop(0) if code.co_flags & inspect.CO_VARARGS else None
    of_more = rest.pop(0) if code.co_flags & inspect.CO_VARKEYWORDS else None
    checks.pop("return", None)
    if not checks and of_rest is None and of_more is None:
        return method
    names = code.co_varnames[: code.co_argcount]
    places = [(place, name, checks[name]) for place, name in enumerate(names) if name in checks]

    @wraps(method)
    def wrapper(*args: Any, **named: Any) -> Any:
        for place, name, check in places:
            if place < len(args):
                _look(method.__name__, name, args[place], check)
        for name, value in named.items():
            found = checks.get(name, of_more if name not in names else None)
            if found is not None:
                _look(method.__name__, name, value, found)
        if of_rest is not None:
            for value in args[len(names) :]:
                _look(method.__name__, "", value, of_rest)
        return method(*args, **named)

    return wrapper


def _check_of(annotation: Any) -> Check | None:
    """What to look for in arguments of an annotation; None for one that is left to the method."""
    text = annotation if isinstance(annotation, str) else ""
    found = _CHECKS.get(text.removesuffix(" | None"))
    if found is None or text in _CHECKS:
        return found
    test, said = found
    return lambda value: value is None or test(value), f"{said} or None"


def _look(method: str, name: str, value: Any, check: Check) -> None:
    test, said = check
    if not test(value):
        given = repr(value)
        place = f"{name} of {method}" if name else f"an argument of {method}"
        raise InterfaceError(f"{place} is {said}, not {given if len(given) <= 80 else type(value).__name__}")
