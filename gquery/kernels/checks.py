"""What the interpreter checks of kernels under test: each access to memory, and each value against what was promised of
it.

Off unless ``GQUERY_CHECK_MEMORY`` is set before gquery is imported (`tests.conftest` does). Compiled kernels have no
checks: they are the same text, so what the interpreter finds there is what would read or write out of bounds on a CPU
or a GPU.

`View` stands for a pointer, a `Span` for an address of text. A `Claim` is a line that `Code` writes behind each value
that it binds: it tests the bounds, nullability and register that the planner knows of the value (`ValueProperties`),
from which tables are sized and checks left out. Claims stand in a copy of the kernel's text that the python target
alone runs; the text itself stays as it is.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from gquery.device.section import Section
from gquery.errors import InternalError
from gquery.expression.types import Kind, Register
from gquery.kernels import ir

if TYPE_CHECKING:
    from gquery.kernels.kernel import Kernel
    from gquery.kernels.values import Value, ValueProperties

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


class Part(View):
    """The elements of an array from number ``first`` on: no others are there."""

    __slots__ = ("_first",)

    def __init__(self, elements: Any, name: str, first: int) -> None:
        super().__init__(elements, name)
        self._first = first

    def __getitem__(self, index: int) -> Any:
        return super().__getitem__(index - self._first)

    def __setitem__(self, index: int, value: Any) -> None:
        super().__setitem__(index - self._first, value)


class Span(int):
    """The address of a buffer, and what is added to it: it knows the bytes that may be read there. Addresses that were kept in
    memory meanwhile are plain numbers."""

    low: int
    high: int

    def __add__(self, other: int) -> Span:
        return self._moved(int(self) + other)

    __radd__ = __add__

    def __sub__(self, other: int) -> int:
        distance = int(self) - int(other)
        return distance if isinstance(other, Span) else self._moved(distance)

    def _moved(self, address: int) -> Span:
        made = Span(address)
        made.low, made.high = self.low, self.high
        return made


def span_of(address: int, size: int) -> Span:
    """The address of ``size`` bytes."""
    made = Span(address)
    made.low, made.high = address, address + size
    return made


def moved(address: Span, by: int) -> Span:
    """An address so many bytes further, which may be read where it could."""
    return address + by


def _string_at(address: int, size: int) -> bytes:
    """As of `ctypes`, within the buffer that the address belongs to."""
    if size < 0 or (isinstance(address, Span) and not address.low <= address <= address.high - size):
        known = f" of {address.high - address.low} bytes" if isinstance(address, Span) else ""
        at = address - address.low if isinstance(address, Span) else address
        raise OutOfBoundsError(f"{size} bytes from {at} on are read{known}")
    return ctypes.string_at(address, size)


string_at: Callable[[int, int], bytes] = _string_at if ENABLED else ctypes.string_at


def check_owner(kernel: Kernel, parameter: str, value: object) -> None:
    """InternalError where an argument of a kernel is memory of another device than the thread runs on: nothing has it wait for
    what is queued there. A number may be an address. Memory of the host is anybody's, that of ``peer`` another GPU's."""
    array = value.array if isinstance(value, Section) else value
    runs, task, owner = _places(array)
    if owner not in ("", runs) and parameter != "peer":
        raise InternalError(f"{task} on {runs}: parameter {parameter} of kernel {kernel.digest} is memory of {owner}")


def _places(array: object) -> tuple[str, str, str]:
    """The device that this thread runs on, what runs there, and the device whose memory an argument is; none where that does not
    matter."""
    import numpy as np  # the shell's prompt comes before it

    if array is None or isinstance(array, int | float | np.ndarray):
        from gquery.device.address_space import owner_of
        from gquery.device.simulated import active_device

        device, owner = active_device(), owner_of(array)
        return ("", "", "") if device is None or not owner else (device.name, device.task or "a stage", f"cpu:{owner}")
    from gquery.device.device import current_gpu

    gpu: Any = array
    return f"cuda:{current_gpu()}", "a stage", f"cuda:{gpu.device.id}" if gpu.size else ""


class Claim(str):
    """A line of a kernel that is there for the interpreter under test alone."""

    __slots__ = ()


def claim(value: Value) -> str | None:
    """The text that tests what is promised of a value; None where nothing is."""
    if value.ok == ir.FALSE:
        return None
    var, ok = value.var.text(), None if value.ok is None else value.ok.text()
    broken = _broken(var, value.properties)
    if ok is None:
        test = broken
    elif value.properties.nullable:
        test = broken and f"{ok} and ({broken})"
    else:
        test = f"not {ok} or ({broken})" if broken else f"not {ok}"
    return test and f"if {test}: refuse({var}, {ok}, {_promise(value)!r})"


def _broken(var: str, what: ValueProperties) -> str | None:
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
    what = value.properties
    codes = "" if what.dictionary is None else f", codes of {len(what.dictionary)} texts"
    return f"{what.dtype}{'' if what.nullable else ' NOT NULL'}, {what.register.value}, {what.bounds}{codes}"


def refuse(register: Any, ok: Any, promise: str) -> NoReturn:
    """What a claim that does not hold calls."""
    raise OutOfBoundsError(f"a kernel made {'NULL' if ok is False else repr(register)} where it promised {promise}")
