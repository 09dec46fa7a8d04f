"""Expressions evaluated outside queries: constants, and expressions over the entries of a dictionary.

What kernels compute is interpreted, row by row; calls that no kernel can make (`host_calls`) are made over all entries at
once.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from gquery import tuning
from gquery.columns.arrow import arrow_type, string_array
from gquery.columns.arrow_buffers import bits_of, buffer_of
from gquery.columns.dictionary_union import codes_of, union_in_phases
from gquery.columns.encode import import_column
from gquery.columns.table import ColumnData, Dictionary
from gquery.device.buffer import Buffer
from gquery.errors import DatabaseError, DataError
from gquery.expression.expr import Case, Column, Expr, Literal
from gquery.expression.traverse import pinned, walk
from gquery.expression.types import BOOLEAN, JSON, Bounds, Field, PhysicalType, Register, physical_type_for
from gquery.functions.nested_arrays import as_type
from gquery.functions.vectors import array_of, characters_of, from_numpy, offsets_of
from gquery.kernels import checks, ir
from gquery.kernels.bindings import ColumnPart, Constant, Content, ErrorSite, StatePart
from gquery.kernels.code import Code
from gquery.kernels.entries import Truth, truth
from gquery.kernels.failures import Failure
from gquery.kernels.host_calls import Needs, is_host_call, split, vectorised
from gquery.kernels.registers import array_of_registers, bytes_of, registers_of, reset_arena, signed
from gquery.kernels.stored import StoredColumn, load
from gquery.kernels.values import ValueProperties, value_properties
from gquery.runtime.records import dataclass
from gquery.runtime.threads import run_phases


@dataclass(frozen=True)
class Evaluated:
    """An expression's values over the entries of a dictionary, as a table to look up by code; the last entry is its value
    for NULL. ``errors`` flags entries on which it raises."""

    properties: ValueProperties
    physical_type: PhysicalType
    values: Buffer
    validity: Buffer | None
    errors: Buffer | None = None
    error: type[DatabaseError] | None = None
    message: str = ""


# ---- expressions that kernels compute, interpreted --------------------------------------------------------------------


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
    rows.results.append((bytes_of(register) if isinstance(register, tuple) else register) if ok else None)


def _run(
    e: Expr, rows: int, columns: Mapping[int, tuple[ValueProperties, ColumnData]], errors: list[bool] | None = None
) -> tuple[list[Any], ValueProperties, list[ErrorSite]]:
    """Evaluate ``e`` for rows 0 to ``rows`` on the python target: registers (None for NULL; bytes for text), what is known,
    error sites. Where ``errors`` is given, it gets for each row whether it raises, and there are no sites."""
    from gquery.kernels.dictionaries import as_string
    from gquery.kernels.render import render
    from gquery.kernels.targets import get_target

    target = get_target("python")
    code = Code("python")
    for n, (what, stored) in columns.items():
        code.provide(n, what, partial(load, StoredColumn(None, n, stored.physical_type, what), ir.ROW, code))
    value = render(e, code)
    if value.properties.dtype.is_string:
        value = as_string(value, code)
    status = np.zeros(4, dtype=np.uint32)
    code.functions["emit"] = _emit
    code.do(ir.Call("emit", (value.var, value.ok or ir.TRUE)))
    kernel = code.kernel()
    compiled = target.compile(kernel)
    arguments, held = [], []
    for parameter in kernel.parameters:
        content = _resolve(code.bindings[parameter.name], columns, status)
        held.append(content)  # of which a kernel has the address
        if not parameter.is_pointer and not isinstance(content, int | float):
            address = int(content.ctypes.data)  # of characters
            content = checks.span_of(address, content.nbytes) if checks.ENABLED else address
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
    return made.results, value.properties, raised


def _resolve(binding: Any, columns: Mapping[int, tuple[ValueProperties, ColumnData]], status: Any) -> Any:
    match binding:
        case Constant(value):
            return value
        case Content(buffer):
            return buffer.host
        case ColumnPart(column=column, part=part):
            stored = columns[column][1]
            found = {"data": stored.data, "validity": stored.validity, "characters": stored.characters}[part]
            return np.zeros(1, np.uint8) if found is None else found.host
        case StatePart():
            return status
        case _:
            raise AssertionError(binding)


# ---- with the calls that no kernel can make ---------------------------------------------------------------------------


class _Evaluation:
    """Expressions over some rows, which are few. ``errors`` flags the rows in which one raises; ``failure`` is the first."""

    def __init__(
        self, rows: int, columns: Mapping[int, tuple[ValueProperties, ColumnData]], arrays: Mapping[int, pa.Array]
    ) -> None:
        self.rows = rows
        self.columns, self.arrays = dict(columns), dict(arrays)
        self.errors = np.zeros(rows, np.bool_)
        self.failure: tuple[type[DatabaseError], str] | None = None

    def prepared(self, e: Expr) -> Expr:
        """``e`` over columns that were made of its calls."""
        rounds, left = split([e], Needs(lambda e: False))
        for one in rounds:
            for column, x in one.computed:
                if x.dtype.is_opaque:
                    self.add(column, self._chosen(x))
                    continue
                results, known = self.interpreted(x)
                self.add(column, array_of_registers(results, known.dtype))
            for column, x in one.made:
                failures: list[Failure] = []
                made = vectorised(x, self.arrays, failures)
                for f in failures:
                    self._note(np.broadcast_to(f.rows, self.rows), (f.kind, f.message))
                self.add(column, array_of(made, self.rows))
        return left[0]

    def _chosen(self, e: Expr) -> pa.Array:
        """What a kernel makes of lists and their like, which it chooses among: to it they are numbers."""
        match e:
            case Column():
                return array_of(self.arrays[e.id], self.rows)
            case Case(branches, otherwise):
                type_ = arrow_type(e.dtype)
                made = as_type(self._chosen(otherwise), type_)
                for test, value in reversed(branches):
                    is_chosen = np.array([bool(r) for r in self.interpreted(test)[0]], np.bool_)
                    both = pa.concat_arrays([as_type(self._chosen(value), type_), made])
                    made = both.take(from_numpy(np.arange(self.rows) + np.where(is_chosen, 0, self.rows)))
                return made
            case Literal(value) if value is None:
                return pa.nulls(self.rows, arrow_type(e.dtype))
            case _:
                raise AssertionError(e)

    def interpreted(self, e: Expr) -> tuple[list[Any], ValueProperties]:
        """The registers of what a kernel computes."""
        results, known, raised = _run(e, self.rows, self.columns)
        if raised:  # find the rows that raise; those that hold none of them are not to suffer
            errors: list[bool] = []
            _run(e, self.rows, self.columns, errors)
            self._note(np.array(errors, np.bool_), (raised[0].error, raised[0].message))
        return results, known

    def _note(self, rows: Any, failure: tuple[type[DatabaseError], str]) -> None:
        self.errors |= rows
        self.failure = self.failure or failure

    def add(self, column: Column, array: pa.Array) -> None:
        """Has expressions read an array as a column."""
        stored = _stored(array, column)
        self.arrays[column.id] = array
        self.columns[column.id] = (
            value_properties(column.dtype, stored.statistics.bounds, stored.validity is not None),
            stored,
        )


def _stored(array: pa.Array, column: Column) -> ColumnData:
    """An array as a column that kernels read; text without a dictionary."""
    if not column.dtype.is_string:
        return import_column(array, Field(column.name, column.dtype), narrow=False)
    offsets, characters = Buffer(offsets_of(array)), Buffer(padded(characters_of(array)))
    validity = buffer_of(bits_of(array, 0)) if array.null_count else None
    return ColumnData(column.dtype, PhysicalType.STRING64, len(array), offsets, validity, characters)


def padded(characters: Any) -> Any:
    """Bytes, at least one: an empty array has no address."""
    return characters if len(characters) else np.zeros(1, np.uint8)


def evaluate(e: Expr) -> Literal | None:
    """The constant that an expression without columns is worth; None where it raises (the query will, if it gets there)."""
    made = _constant(e)
    return made if isinstance(made, Literal) else None


def evaluate_or_raise(e: Expr) -> Literal:
    """The constant that an expression without columns is worth; what it raises is raised."""
    made = _constant(e)
    if isinstance(made, Literal):
        return made
    raise made


def evaluate_over_rows(e: Expr, columns: Mapping[Column, pa.Array], rows: int) -> list[Any] | None:
    """The registers of an expression over rows, of which each column has an array; None where it raises in one of them."""
    evaluation = _Evaluation(rows, {}, {})
    for column, array in columns.items():
        evaluation.add(column, array)
    try:
        left = evaluation.prepared(e)
        results, _ = evaluation.interpreted(left)
    except (ArithmeticError, ValueError):
        return None
    return None if evaluation.failure is not None else results


def _constant(e: Expr) -> Literal | DatabaseError:
    e = pinned(e)
    evaluation = _Evaluation(1, {}, {})
    try:
        e_ = evaluation.prepared(e) if any(is_host_call(x) for x in walk(e)) else e
        results, _ = evaluation.interpreted(e_)
    except (ArithmeticError, ValueError) as error:
        return DataError(str(error))
    if evaluation.failure is not None:
        kind, message = evaluation.failure
        return kind(message)
    value = results[0]
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:  # a pattern of LIKE in the form that kernels read is no text
            return DataError("a text is not UTF-8")
    if isinstance(value, bool):
        value = int(value)
    return Literal(value, e.dtype)


_evaluated: WeakKeyDictionary[Dictionary, OrderedDict[Any, Evaluated]] = WeakKeyDictionary()


def evaluate_over_dictionary(e: Expr, column: Column, dictionary: Dictionary) -> Evaluated:
    """``e``, which has no slots, for each entry of the dictionary in place of ``column``, and for NULL."""
    known = _evaluated.setdefault(dictionary, OrderedDict())
    found = known.get(e)
    if found is None:
        found = known[e] = _over_dictionary(e, column, dictionary)
        # it is described, then rendered, once a kernel and plan
        while len(known) > tuning.kernel_texts.remembered_results:
            known.popitem(last=False)
    return found


def _over_dictionary(e: Expr, column: Column, dictionary: Dictionary) -> Evaluated:
    tested = truth(e, dictionary) if e.dtype == BOOLEAN else None
    return _interpreted_over(e, column, dictionary) if tested is None else _truth_table(tested)


def _truth_table(tested: Truth) -> Evaluated:
    """The outcome of a test as a table by code."""
    valid = tested.true | tested.false
    nullable = not valid[:-1].all() if len(valid) > 1 else True
    validity = Buffer(valid.view(np.uint8)) if nullable or not valid[-1] else None
    what = ValueProperties(BOOLEAN, Bounds(0, 1), nullable)
    return Evaluated(what, PhysicalType.BOOL, Buffer(tested.true.view(np.uint8)), validity)


def _interpreted_over(e: Expr, column: Column, dictionary: Dictionary) -> Evaluated:
    entries = pa.concat_arrays([dictionary.values, pa.nulls(1, dictionary.values.type)])
    if column.dtype == JSON:  # '' is the entry of no value, and no JSON
        import pyarrow.compute as pc

        entries = pc.if_else(pc.equal(entries, ""), pa.scalar(None, entries.type), entries)
    stored = _stored(entries, column)
    what = ValueProperties(column.dtype, None, True)
    evaluation = _Evaluation(len(entries), {column.id: (what, stored)}, {column.id: entries})
    e = evaluation.prepared(e)
    if isinstance(e, Column):
        array = evaluation.arrays[e.id]
        results = array if e.dtype.is_string else registers_of(array, e.dtype)
        known = evaluation.columns[e.id][0]
    else:
        results, known = evaluation.interpreted(e)
        if known.dtype.is_string:
            results = string_array(results)
    return _as_table(results, known, evaluation)


def _as_table(results: Any, known: ValueProperties, evaluation: _Evaluation) -> Evaluated:
    """Results, registers or an array of text, as a table by code."""
    dtype, dictionary = known.dtype, None
    if dtype.is_string:
        valid = bits_of(results, 0)
        dictionary, results = _encoded(results)
    else:
        valid = np.array([r is not None for r in results], dtype=np.uint8)
    nullable = not valid[:-1].all() if len(valid) > 1 else True
    failure = evaluation.failure
    flags = Buffer(evaluation.errors.astype(np.uint8)) if failure is not None else None
    error, message = failure or (None, "")
    bounds, physical_type, values = _narrowed(results, ValueProperties(dtype, known.bounds, True, dictionary))
    validity = Buffer(valid) if nullable or not valid[-1] else None
    return Evaluated(
        ValueProperties(dtype, bounds, nullable, dictionary),
        physical_type,
        Buffer(values),
        validity,
        flags,
        error,
        message,
    )


def _encoded(texts: pa.Array) -> tuple[Dictionary, list[Any]]:
    """The sorted dictionary of texts, and their codes."""
    union = run_phases([union_in_phases([codes := codes_of(texts.dictionary_encode())])], 1)[0]
    if len(union) == 0:
        return Dictionary(string_array([""])), [0] * len(texts)
    written = np.zeros(len(texts), union.physical_type.numpy)
    union.write(0, codes, written, None if codes.ok is None else codes.ok.copy())
    return Dictionary(union.values), written.tolist()


def _narrowed(results: Sequence[Any], what: ValueProperties) -> tuple[Bounds | None, PhysicalType, Any]:
    """Registers (None for NULL) in the narrowest physical type, 0 for NULL, and their bounds."""
    match what.register:
        case Register.BOOL:
            return Bounds(0, 1), PhysicalType.BOOL, np.array([bool(r) for r in results], dtype=np.uint8)
        case Register.F64:
            return None, PhysicalType.F64, np.array([0.0 if r is None else r for r in results], dtype=np.float64)
        case _:
            numbers = [0 if r is None else int(r) for r in results]
            real = [n for n, r in zip(numbers, results, strict=True) if r is not None] or [0]
            bounds = Bounds(min(real), max(real))
            physical_type = physical_type_for(bounds | Bounds(0, 0))
            if (
                physical_type is PhysicalType.I128
                and ValueProperties(what.dtype, bounds, True, what.dictionary).register is Register.I64
            ):
                physical_type = PhysicalType.I64
            if physical_type is not PhysicalType.I128:
                return bounds, physical_type, np.array(numbers, dtype=physical_type.numpy)
            words = [w for n in numbers for w in (signed(n & (2**64 - 1)), n >> 64)]
            return bounds, physical_type, np.array(words, dtype=np.int64)


__all__ = ["Evaluated", "evaluate", "evaluate_over_dictionary", "reset_arena"]
