"""What the host computes: functions that make new text, casts from and to text, constants and dictionary entries.

Only the python target can call them. An expression over a dictionary column is evaluated here once an entry; over other
columns the planner ends the pipeline and runs a pipeline of its own on the python target (EXPLAIN says so).
"""

from __future__ import annotations

import ctypes
import datetime
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from gquery.dtypes import Bounds, Carrier, DType, Kind, Register, carrier_for, python_value
from gquery.errors import ConversionError, DatabaseError
from gquery.expr import Column, Expr, Literal, transform, walk
from gquery.functions import ScalarFunction
from gquery.functions.texts import text_of as text_of_value
from gquery.functions.texts import value_of
from gquery.kernels.code import Code, ErrorSite, Phys, StatePart, Value, phys
from gquery.table import Buffer, Dictionary


class Arena:
    """Memory for the bytes of strings that host functions make; it lives as long as something refers to it."""

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def put(self, text: str) -> tuple[int, int]:
        data = text.encode()
        if not data:
            return (0, 0)
        buffer = ctypes.create_string_buffer(data, len(data))
        self._kept.append(buffer)
        return (ctypes.addressof(buffer), len(data))


# Strings made by host functions are copied out of the arena by the sink of the same pipeline, which is run by one thread;
# `reset` is called by the executor when that pipeline has ended.
class _Arenas(threading.local):
    """One arena a thread: queries of several threads are interpreted at once."""

    def __init__(self) -> None:
        self.own = Arena()


_arenas = _Arenas()


def reset_arena() -> None:
    _arenas.own = Arena()


def text_of(pair: tuple[int, int]) -> str:
    """The Python string of a STR."""
    return ctypes.string_at(pair[0], pair[1]).decode() if pair[1] else ""


def to_python(register: Any, what: Phys) -> Any:
    """The Python value (`python_value`) of a register; strings arrive as STR."""
    if register is None:
        return None
    return text_of(register) if what.dtype.is_string else python_value(what.dtype, register)


def to_register(value: Any, dtype: DType) -> Any:
    """A Python value as the register of its type."""
    match dtype.kind:
        case Kind.VARCHAR:
            return _arenas.own.put(str(value))
        case Kind.DECIMAL:
            return int(Decimal(value).scaleb(dtype.scale).to_integral_value(ROUND_HALF_UP))
        case Kind.DATE:
            return (value - datetime.date(1970, 1, 1)).days if isinstance(value, datetime.date) else int(value)
        case Kind.TIMESTAMP:
            if isinstance(value, datetime.datetime):
                return (value - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
            return int(value)
        case Kind.BOOLEAN:
            return bool(value)
        case Kind.REAL | Kind.DOUBLE:
            return float(value)
        case _:
            return int(value)


def wrap(function: ScalarFunction, args: list[Phys], dtype: DType) -> Callable[..., Any]:
    """A host function over registers (None for NULL), whose result is a register or None."""
    host = function.host
    assert host is not None

    def call(*registers: Any) -> Any:
        if function.strict and any(r is None for r in registers):
            return None
        result = host(*(to_python(r, what) for r, what in zip(registers, args, strict=True)))
        return None if result is None else to_register(result, dtype)

    return call


def cast(value: Value, dtype: DType, try_: bool, code: Code) -> Value:
    """A cast from or to VARCHAR, in a kernel of the python target."""
    from gquery.kernels import dictionaries

    source = value.phys
    if source.dtype.is_string:
        value = dictionaries.as_string(value, code)
    status, site = code.status(), code.site(ConversionError, f"Could not convert a string to {dtype}")

    def convert(register: Any) -> Any:
        if dtype.is_string:
            return _arenas.own.put(text_of_value(register, source.dtype))
        found = value_of(text_of(register), dtype)
        return bool(found) if found is not None and dtype.kind is Kind.BOOLEAN else found

    name = f"cast_{_word(source.dtype)}_to_{_word(dtype)}"
    code.functions[name] = convert
    what = phys(dtype, nullable=True)
    result = code.let("None")
    with code.block(f"if {value.ok}:" if value.ok else "if True:"):
        code.line(f"{result} = {name}({value.var})")
        if not try_ and not dtype.is_string:
            with code.block(f"if {result} is None:"):
                code.line(code.call("fail", status, site))
    ok = code.let(f"{result} is not None")
    return Value(code.let(f"{result} if {ok} else {code.zero(what.register)}"), ok, what)


def _word(dtype: DType) -> str:
    """A type as a part of a name."""
    digits = f"_{dtype.precision}_{dtype.scale}" if dtype.is_decimal else ""
    return dtype.kind.name.lower() + digits


# ---- evaluation of expressions outside queries ---------------------------------------------------------------------


@dataclass(frozen=True)
class Evaluated:
    """An expression's values over the entries of a dictionary, as a table to look up by code; the last entry is its value
    for NULL. ``errors`` flags entries on which it raises."""

    phys: Phys
    carrier: Carrier
    values: Buffer
    validity: Buffer | None
    errors: Buffer | None = None
    error: type[DatabaseError] | None = None
    message: str = ""


class _Rows:
    """What the kernel of an evaluation gives back, row by row. With a ``status`` it is looked at and cleared behind each."""

    def __init__(self, status: Any | None) -> None:
        self.status = status
        self.results: list[Any] = []
        self.errors: list[bool] = []


class _Evaluating(threading.local):
    """The rows that this thread's evaluation fills. They are no closure of `_emit`, so that expressions of one form share a
    compiled kernel."""

    rows = _Rows(None)


_evaluating = _Evaluating()


def _emit(register: Any, ok: bool) -> None:
    """What the kernel of an evaluation calls for each row."""
    rows = _evaluating.rows
    if rows.status is not None:
        rows.errors.append(bool(rows.status.any()))
        rows.status[:] = 0
    rows.results.append((text_of(register) if isinstance(register, tuple) else register) if ok else None)


def _run(
    e: Expr,
    rows: int,
    columns: dict[int, tuple[Phys, Callable[[Code], Value]]],
    data: dict[str, Any],
    errors: list[bool] | None = None,
) -> Any:
    """Evaluate ``e`` for rows 0 to ``rows`` on the python target: registers (None for NULL), what is known, error sites.
    Where ``errors`` is given, it gets for each row whether it raises, and there are no sites."""
    from gquery.kernels.render import render
    from gquery.kernels.targets import get_target

    target = get_target("python")
    code = Code("python")
    for n, (what, make) in columns.items():
        code.provide(n, what, lambda make=make: make(code))  # type: ignore[misc]
    value = render(e, code)
    if value.phys.dtype.is_string:
        from gquery.kernels.dictionaries import as_string

        value = as_string(value, code)
    status = np.zeros(4, dtype=np.uint32)
    code.functions["emit"] = _emit
    code.line(f"emit({value.var}, {value.ok or 'True'})")
    kernel = code.kernel()
    compiled = target.compile(kernel)
    arguments = []
    for parameter in kernel.parameters:
        binding = code.bindings[parameter.name]
        content = _resolve(binding, data, status)
        if not parameter.is_pointer and not isinstance(content, int | float):
            content = int(content.ctypes.data)  # the address of characters
        arguments.append(target.argument(parameter, content))
    outer, _evaluating.rows = _evaluating.rows, _Rows(status if errors is not None else None)
    try:
        target.run(compiled, 0, rows, tuple(arguments))
        made = _evaluating.rows
    finally:
        _evaluating.rows = outer
    if errors is not None:
        errors += made.errors
    raised = [site for n, site in enumerate(code.sites) if status[n >> 5] >> (n & 31) & 1]
    return made.results, value.phys, raised


def _resolve(binding: Any, data: dict[str, Any], status: Any) -> Any:
    from gquery.kernels.code import ColumnPart, Constant, Content

    match binding:
        case Constant(value):
            return value
        case Content(buffer):
            return buffer.host
        case ColumnPart(part=part):
            return data[part]
        case StatePart():
            return status
        case _:
            raise AssertionError(binding)


def evaluate(e: Expr) -> Literal | None:
    """The constant that an expression without columns is worth; None where it raises (the query will, if it gets there)."""
    try:
        results, _, raised = _run(e, 1, {}, {})
    except (ArithmeticError, ValueError):
        return None
    finally:
        reset_arena()
    if raised:
        return None
    value = results[0]
    if isinstance(value, bool):
        value = int(value)
    return Literal(value, e.dtype)


_REMEMBERED = 16  # results a dictionary: an expression is described, then rendered, once a kernel and once a plan
_evaluated: WeakKeyDictionary[Dictionary, OrderedDict[Any, Evaluated]] = WeakKeyDictionary()


def evaluate_over_dictionary(e: Expr, column: Column, dictionary: Dictionary) -> Evaluated:
    """``e`` for each entry of the dictionary in place of ``column``, and for NULL."""
    known = _evaluated.setdefault(dictionary, OrderedDict())
    entry = Column(0, "entry", column.dtype, True)
    texts = tuple(str(x.value) for x in walk(e) if isinstance(x, Literal))  # 0.0 and -0.0 are equal, and not the same
    key = transform(e, lambda x: entry if x == column else x), texts
    found = known.get(key)
    if found is None:
        found = known[key] = _over_dictionary(e, column, dictionary)
        while len(known) > _REMEMBERED:
            known.popitem(last=False)
    return found


def _over_dictionary(e: Expr, column: Column, dictionary: Dictionary) -> Evaluated:
    from gquery.kernels.code import load
    from gquery.kernels.dictionaries import _buffers

    offsets, characters = _buffers(dictionary)
    rows = len(dictionary)
    what = Phys(column.dtype, None, True)
    extended = np.append(offsets.host, offsets.host[-1])
    validity = np.ones(rows + 1, dtype=np.uint8)
    validity[rows] = 0
    data = {"data": extended, "characters": characters.host, "validity": validity}
    columns = {column.id: (what, lambda code: load(code, None, column.id, Carrier.STRING64, what, "i"))}
    results, known, raised = _run(e, rows + 1, columns, data)
    errors: list[bool] = []
    site: ErrorSite | None = raised[0] if raised else None
    if raised:  # find the entries that raise; rows that hold none of them are not to suffer
        _run(e, rows + 1, columns, data, errors)
    reset_arena()
    return _as_table(results, known, errors, site)


def _as_table(results: list[Any], known: Phys, errors: list[bool], site: ErrorSite | None) -> Evaluated:
    valid = np.array([r is not None for r in results], dtype=np.uint8)
    nullable = not valid[:-1].all() if len(valid) > 1 else True
    flags = Buffer(np.array(errors, dtype=np.uint8)) if site is not None else None
    error, message = (site.error, site.message) if site is not None else (None, "")
    dtype = known.dtype
    dictionary = None
    if dtype.is_string:
        from gquery.arrow import string_array

        entries = sorted({r for r in results if r is not None}, key=lambda s: s.encode()) or [""]
        dictionary = Dictionary(string_array(entries))
        codes = {s: n for n, s in enumerate(entries)}
        results = [None if r is None else codes[r] for r in results]
    match Phys(dtype, known.bounds, True, dictionary).register:
        case Register.BOOL:
            carrier = Carrier.BOOL
            values = np.array([bool(r) for r in results], dtype=np.uint8)
            bounds: Bounds | None = Bounds(0, 1)
        case Register.F64:
            carrier = Carrier.F64
            values = np.array([0.0 if r is None else r for r in results], dtype=np.float64)
            bounds = None
        case _:
            numbers = [0 if r is None else int(r) for r in results]
            real = [n for n, r in zip(numbers, results, strict=True) if r is not None] or [0]
            bounds = Bounds(min(real), max(real))
            carrier = carrier_for(bounds | Bounds(0, 0))
            if carrier is Carrier.I128:
                words = [w for n in numbers for w in (_signed(n & (2**64 - 1)), n >> 64)]
                values = np.array(words, dtype=np.int64)
            else:
                values = np.array(numbers, dtype=carrier.numpy)
    what = Phys(dtype, bounds, True, dictionary)
    if what.register is Register.I64 and carrier is Carrier.I128:
        carrier, values = Carrier.I64, np.array([0 if r is None else int(r) for r in results], dtype=np.int64)
    validity = Buffer(valid) if nullable or not valid[-1] else None
    return Evaluated(
        Phys(dtype, bounds, nullable, dictionary), carrier, Buffer(values), validity, flags, error, message
    )


def _signed(word: int) -> int:
    return word - 2**64 if word >= 2**63 else word
