"""What the interpreter checks of kernels under test: each access to memory, and each value against what was promised of it.

Off unless ``GQUERY_CHECK_MEMORY`` is set before gquery is imported (`tests.conftest` does). Compiled kernels have no checks:
they are the same text, so what the interpreter finds there is what would read or write out of bounds on a CPU or a GPU.

`View` stands for a pointer. A `Claim` is a line that `Code` writes behind each value that it binds: it tests the bounds,
nullability and register that the planner knows of the value (`Phys`), from which tables are sized and checks left out. Claims
stand in a copy of the kernel's text that the python target alone runs; the text itself stays as it is.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NoReturn

from gquery.dtypes import Kind, Register

if TYPE_CHECKING:
    from gquery.kernels.code import Value

ENABLED = os.environ.get("GQUERY_CHECK_MEMORY", "0") not in ("", "0")


class OutOfBoundsError(AssertionError):
    """A kernel has touched memory that it was not given, or made a value that breaks a promise. No error of a user's: it is
    raised under test alone."""


class View:
    """The elements that a pointer points to: an index that is negative or behind the end is an error."""

    __slots__ = ("_elements", "_name")

    def __init__(self, elements: Any, name: str) -> None:
        self._elements, self._name = elements, name

    def __getitem__(self, index: int) -> Any:
        if index < 0:
            self._refuse("read", index)
        try:
            return self._elements[index]
        except IndexError:
            self._refuse("read", index)

    def __setitem__(self, index: int, value: Any) -> None:
        if index < 0:
            self._refuse("written", index)
        try:
            self._elements[index] = value
        except IndexError:
            self._refuse("written", index)

    def _refuse(self, how: str, index: int) -> NoReturn:
        raise OutOfBoundsError(f"{self._name}[{index}] is {how}, and it has {len(self._elements)} elements")


class Claim(str):
    """A line of a kernel that is there for the interpreter under test alone."""

    __slots__ = ()


def claim(value: Value) -> str | None:
    """The text that tests what is promised of a value; None where nothing is."""
    if value.ok == "False":
        return None
    broken = _broken(value)
    if value.ok is None:
        test = broken
    elif value.phys.nullable:
        test = broken and f"{value.ok} and ({broken})"
    else:
        test = f"not {value.ok} or ({broken})" if broken else f"not {value.ok}"
    return test and f"if {test}: refuse({value.var}, {value.ok}, {_promise(value)!r})"


def _broken(value: Value) -> str | None:
    var, what = value.var, value.phys
    match what.register:
        case Register.BOOL:
            return f"{var} is not True and {var} is not False" if what.dtype.kind is Kind.BOOLEAN else None
        case Register.F64:
            narrowed = f" or {var} == {var} and round_f32({var}) != {var}" if what.dtype.kind is Kind.REAL else ""
            return f"{var}.__class__ is not float{narrowed}"
        case Register.STR:
            return f"{var}.__class__ is not tuple or {var}[1] < 0"
        case Register.I64 | Register.I128:
            kind = f"{var}.__class__ is not int"
            return kind if what.bounds is None else f"{kind} or not {what.bounds.low} <= {var} <= {what.bounds.high}"


def _promise(value: Value) -> str:
    what = value.phys
    codes = "" if what.dictionary is None else f", codes of {len(what.dictionary)} texts"
    return f"{what.dtype}{'' if what.nullable else ' NOT NULL'}, {what.register.value}, {what.bounds}{codes}"


def refuse(register: Any, ok: Any, promise: str) -> NoReturn:
    """What a claim that does not hold calls."""
    raise OutOfBoundsError(f"a kernel made {'NULL' if ok is False else repr(register)} where it promised {promise}")
