"""Dictionary strings in kernels: what depends on one dictionary column alone is computed once an entry, not once a row.

An expression over one dictionary column (``substring(phone, 1, 2) IN ('13', '31')``, ``name LIKE '%green%'``) is evaluated
over the dictionary's entries by the python target; the kernel looks the result up by code. Comparisons with a constant
need no table: the dictionary is sorted, so they are comparisons of codes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from gquery import tuning
from gquery.columns.opaque import Opaque, joined
from gquery.columns.table import ColumnData, Dictionary
from gquery.device.buffer import Buffer
from gquery.errors import DatabaseError
from gquery.expression.exact import exact
from gquery.expression.expr import Call, Column, Expr, In, IsNull, Literal
from gquery.expression.slots import SlotLiteral, decided, is_recorded, pin, shown
from gquery.expression.traverse import columns_of, transform, walk
from gquery.expression.types import BOOLEAN, VARCHAR, Bounds, PhysicalType, Scalar, physical_type_for
from gquery.functions import FUNCTIONS, MIRRORED
from gquery.functions.vectors import characters_of, offsets_of
from gquery.kernels import ir
from gquery.kernels.bindings import Content
from gquery.kernels.code import Code
from gquery.kernels.slot_constants import array_of, number_of
from gquery.kernels.stored import element_type
from gquery.kernels.values import Value, ValueProperties, opaque_properties, value_properties
from gquery.runtime.records import replace

if TYPE_CHECKING:
    from gquery.kernels.host import Evaluated

_NEVER = (Column, Literal, IsNull)  # looked up by a code; a union would be made anew for each expression
_ORDERED = {"eq": "eq", "ne": "eq", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}


def lookup(e: Expr, code: Code) -> Value | None:
    """The value of an expression over one dictionary column, by its code; None where it is not one."""
    if isinstance(e, _NEVER):
        return None
    column = _only_column(e, code)
    if column is None or _makes_lists(e):
        return None
    dictionary = code.known[column.id].dictionary
    assert isinstance(dictionary, Dictionary)
    compared = _compare_codes(e, dictionary, code)
    if compared is not None or len(dictionary) > tuning.kernel_texts.dictionary_entries:
        return compared
    return _table(e, column, dictionary, code)


def is_looked_up(e: Expr, known: Mapping[int, ValueProperties]) -> bool:
    """Whether the value of ``e`` is looked up by the code of a dictionary column."""
    if isinstance(e, _NEVER):
        return False
    used = columns_of(e)
    what = known.get(next(iter(used))) if len(used) == 1 else None  # None: of a column that is still to be made
    dictionary = None if what is None else what.dictionary
    is_short = isinstance(dictionary, Dictionary) and len(dictionary) <= tuning.kernel_texts.dictionary_entries
    return is_short and not _makes_lists(e)


def _makes_lists(e: Expr) -> bool:
    """Whether ``e`` is a list, or of lists that kernels choose among: a table has none."""
    return e.dtype.is_opaque or any(
        x.dtype.is_opaque and not (isinstance(x, Call) and FUNCTIONS[x.function].host is not None) for x in walk(e)
    )


def _only_column(e: Expr, code: Code) -> Column | None:
    """The one column that ``e`` uses, if it is a dictionary-encoded string."""
    used = columns_of(e)
    if len(used) != 1:
        return None
    (column,) = used
    if not isinstance(code.known[column].dictionary, Dictionary):
        return None
    return next((x for x in walk(e) if isinstance(x, Column)), None)


def _compare_codes(e: Expr, dictionary: Dictionary, code: Code) -> Value | None:
    """``column < 'text'`` and the like, as a comparison of codes."""
    if isinstance(e, In) and isinstance(e.arg, Column):
        if len(e.items) > tuning.kernel_texts.chained_codes:
            return None
        value = code.column(e.arg)
        tests = [code.call("eq_i64", value.var, number_of(place, (x,), code, dictionary)) for x in e.items]
        return Value(
            code.let(ir.disjunction(tests)), value.ok, value_properties(BOOLEAN, nullable=value.properties.nullable)
        )
    if not (isinstance(e, Call) and e.function in _ORDERED and len(e.args) == 2):
        return None
    function, left, right = e.function, e.args[0], e.args[1]
    if isinstance(left, Literal):
        function, left, right = MIRRORED[function], right, left
    if not (isinstance(left, Column) and isinstance(right, Literal)) or right.is_null:
        return None
    value = code.column(left)
    what = value_properties(BOOLEAN, nullable=value.properties.nullable)
    find = place if function in ("eq", "ne") else _lower_bound if function in ("lt", "ge") else _upper_bound
    compares = {"le": "lt", "gt": "ge"}.get(function, function)
    test = code.call(f"{compares}_i64", value.var, number_of(find, (right,), code, dictionary))
    return Value(code.let(test), value.ok, what)


def place(text: str, dictionary: Dictionary) -> int:
    """The code of a text, -1 where it has none."""
    code = dictionary.code_of(text)
    return -1 if code is None else code


def _lower_bound(text: str, dictionary: Dictionary) -> int:
    """The first code that is not below a text."""
    return dictionary.lower_bound(text)


def _upper_bound(text: str, dictionary: Dictionary) -> int:
    """The first code that is above a text."""
    return dictionary.lower_bound(text) + (dictionary.code_of(text) is not None)


def _table(e: Expr, column: Column, dictionary: Dictionary, code: Code) -> Value:
    """Look the result of ``e`` up by code in a table that is computed now."""
    value = code.column(column)
    lookup = _Lookup(e, column, dictionary)
    if decided(_form, lookup.slots, lookup) is None:
        pin(lookup.slots)
    var, ok = value.var, value.ok
    if value.properties.nullable and not _strict(e):  # a CASE gives NULL a value: it has the entry behind the last
        assert ok is not None
        var = code.let(var)
        with code.when(ir.Not(ok)):
            code.set(var, code.constant(len(dictionary)))
        ok = None
    elif value.properties.nullable and len(dictionary) == 0:
        pass  # every row is NULL; the table's one placeholder is read
    return _read_table(lookup, var, ok, code, covers_null=ok is None and value.ok is not None)


class _Lookup:
    """An expression over the entries of a dictionary, for any values of its slots."""

    def __init__(self, e: Expr, column: Column, dictionary: Dictionary) -> None:
        entry = Column(0, "entry", column.dtype, True)  # results are kept for expressions of other columns, too
        self._e = transform(e, lambda x: entry if x == column else x)
        self._entry, self._dictionary = entry, dictionary
        literals = (x for part in walk(e) for x in (part.items if isinstance(part, In) else (part,)))
        self.slots = tuple(dict.fromkeys(x for x in literals if isinstance(x, SlotLiteral) and is_recorded(x)))
        self._last: tuple[Hashable, Evaluated] | None = None  # a guard asks, then each constant of the kernel

    def table(self, *values: Scalar) -> Evaluated:
        """The results for these values of the slots."""
        key, last = exact(values), self._last
        if last is not None and last[0] == key:
            return last[1]
        made = self._made(*values)
        self._last = key, made
        return made

    def _made(self, *values: Scalar) -> Evaluated:
        from gquery.kernels.host import evaluate_over_dictionary

        known = {x.key: Literal(v, x.dtype) for x, v in zip(self.slots, values, strict=True)}

        def constant(x: Literal) -> Literal:
            if not isinstance(x, SlotLiteral):
                return x
            return known.get(x.key) or Literal(x.value, x.dtype)

        def plain(x: Expr) -> Expr:
            if isinstance(x, In):
                return (
                    In(x.arg, tuple(map(constant, x.items))) if any(isinstance(i, SlotLiteral) for i in x.items) else x
                )
            return constant(x) if isinstance(x, Literal) else x

        return evaluate_over_dictionary(transform(self._e, plain), self._entry, self._dictionary)


def _form(*given: Scalar | _Lookup) -> tuple[str, str, int, int, bool, bool] | None:
    """What a kernel's text knows of a table; None of one that has more to it than numbers."""
    result = _table_of(*given)
    what = result.properties
    if result.errors is not None or what.dictionary is not None:
        return None
    low, high = (0, 0) if what.bounds is None else (what.bounds.low, what.bounds.high)
    return str(what.dtype), result.physical_type.name, low, high, what.nullable, result.validity is not None


def _table_of(*given: Scalar | _Lookup) -> Evaluated:
    *values, lookup = given
    assert isinstance(lookup, _Lookup)
    return lookup.table(*(v for v in values if not isinstance(v, _Lookup)))


def _values_of(*given: Scalar | _Lookup) -> Buffer:
    return _table_of(*given).values


def _validity_of(*given: Scalar | _Lookup) -> Buffer:
    found = _table_of(*given).validity
    assert found is not None
    return found


def _strict(e: Expr) -> bool:
    """Whether NULL in gives NULL out (LIKE, comparisons, casts, functions, but not CASE, IS NULL, AND, OR)."""
    return all(
        isinstance(x, Column | Literal | In) or (isinstance(x, Call) and FUNCTIONS[x.function].strict) for x in walk(e)
    )


def _read_table(
    lookup: _Lookup, index: ir.Expression, ok: ir.Expression | None, code: Code, covers_null: bool
) -> Value:
    slots = lookup.slots
    result = lookup.table(*map(shown, slots))
    what = result.properties
    if result.errors is not None:
        flags = code.pointer("u8", Content(result.errors), "t")
        site = code.site(result.error or DatabaseError, result.message)
        test = code.call("truth", ir.Load(flags, index))
        with code.when(test if ok is None else ir.And((ok, test))):
            code.do(code.call("fail", code.status(), site))
    if (what.nullable or covers_null) and result.validity is not None:
        valid = array_of(_validity_of, slots, code, "u8", lookup)
        found = code.let(code.call("truth", ir.Load(valid, index)))
        ok = found if ok is None else code.both(ok, found)
    table = array_of(_values_of, slots, code, element_type(result.physical_type), lookup)
    match result.physical_type:
        case PhysicalType.BOOL:
            entry = code.call("truth", ir.Load(table, index))
        case PhysicalType.F64:
            entry = code.call("f64", ir.Load(table, index))
        case PhysicalType.I128:
            entry = code.call("load_i128", table, index)
        case _:
            entry = code.call("i64", ir.Load(table, index))
    return Value(code.let(entry), ok, replace(what, nullable=ok is not None))


def as_string(value: Value, code: Code) -> Value:
    """A string as STR: a code is read from its dictionary's characters."""
    dictionary = value.properties.dictionary
    if not isinstance(dictionary, Dictionary):
        return value
    offsets, characters = _buffers(dictionary)
    pointer = code.pointer("i64", Content(offsets), "t")
    address = code.scalar(Content(characters), "i64", "a")
    var = code.let(code.call("string64", pointer, address, value.var))
    return Value(var, value.ok, ValueProperties(value.properties.dtype, None, value.properties.nullable))


_encoded: WeakKeyDictionary[Dictionary, tuple[Buffer, Buffer]] = WeakKeyDictionary()


def _buffers(dictionary: Dictionary) -> tuple[Buffer, Buffer]:
    """Offsets (int64) and characters of a dictionary's strings, made once a dictionary."""
    found = _encoded.get(dictionary)
    if found is None:
        values = dictionary.values
        characters = characters_of(values)
        characters = characters if len(characters) else np.zeros(1, np.uint8)  # an empty array has no address
        found = _encoded[dictionary] = Buffer(offsets_of(values)), Buffer(characters)
    return found


def text_of(dictionary: Dictionary) -> ColumnData:
    """The strings of a dictionary as a column of text, a row a code."""
    offsets, characters = _buffers(dictionary)
    return ColumnData(VARCHAR, PhysicalType.STRING64, len(dictionary), offsets, None, characters)


def recode(value: Value, target: Dictionary, code: Code) -> Value:
    """A code of one dictionary as the code of another; -1 for entries that the other does not have. A constant string
    must be an entry."""
    from gquery.columns.dictionary_codes import codes_among

    source = value.properties.dictionary
    assert isinstance(source, Dictionary), "only dictionary strings can be recoded"
    codes = codes_among(source, target) if len(source) else np.zeros(1, np.int64)
    bounds = Bounds(int(codes.min()), max(int(codes.max()), 0))
    physical_type = physical_type_for(bounds)
    table = code.pointer(element_type(physical_type), Content(Buffer(codes.astype(physical_type.numpy))), "t")
    var = code.let(code.call("i64", ir.Load(table, value.var)))
    return Value(var, value.ok, ValueProperties(value.properties.dtype, bounds, value.properties.nullable, target))


def renumber(value: Value, target: Opaque, code: Code) -> Value:
    """A row number of opaque values as the number of the same value among those of ``target``, which hold them."""
    source = value.properties.dictionary
    if source is target or not isinstance(source, Opaque):  # the latter is NULL
        return value
    what = opaque_properties(value.properties.dtype, target, value.properties.nullable)
    start = target.start_of(source)
    return (
        value if start == 0 else Value(code.let(code.call("add_i64", value.var, code.constant(start))), value.ok, what)
    )


def merge_opaque(known: Sequence[ValueProperties]) -> ValueProperties:
    """What is known of an opaque value that is one of several: its numbers are of all their values one after another."""
    nullable = any(k.nullable for k in known)
    several = [k.dictionary for k in known if isinstance(k.dictionary, Opaque)]
    if not several:  # NULLs alone
        return ValueProperties(known[0].dtype, Bounds(0, 0), nullable)
    return opaque_properties(known[0].dtype, joined(several), nullable)


def code_properties(dictionary: Dictionary, nullable: bool) -> ValueProperties:
    """What is known of codes of a dictionary."""
    return ValueProperties(VARCHAR, Bounds(0, max(len(dictionary) - 1, 0)), nullable, dictionary)


__all__ = ["as_string", "code_properties", "lookup", "merge_opaque", "recode", "renumber"]
