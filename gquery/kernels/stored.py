"""Stored columns in a kernel: how an element becomes a register, and how a register is stored."""

from __future__ import annotations

from gquery import tuning
from gquery.expression.frozen import frozen
from gquery.expression.types import PhysicalType
from gquery.kernels import ir
from gquery.kernels.bindings import ColumnPart
from gquery.kernels.code import Code
from gquery.kernels.kernel import ElementType
from gquery.kernels.values import Value, ValueProperties

_OFFSETS = (PhysicalType.STRING32, PhysicalType.STRING64)
SECTOR_BYTES = 32  # what a GPU reads from memory at once
_ELEMENT: dict[PhysicalType, ElementType] = {
    PhysicalType.BOOL: "u8", PhysicalType.I8: "i8", PhysicalType.I16: "i16", PhysicalType.I32: "i32",
    PhysicalType.I64: "i64", PhysicalType.U8: "u8", PhysicalType.U16: "u16", PhysicalType.U32: "u32",
    PhysicalType.I128: "i64", PhysicalType.F32: "f32", PhysicalType.F64: "f64", PhysicalType.STRING32: "i32",
    PhysicalType.STRING64: "i64", PhysicalType.VIEW: "i64",
}  # fmt: skip


def element_type(physical_type: PhysicalType) -> ElementType:
    """The element type of the pointer to a physical type's buffer."""
    return _ELEMENT[physical_type]


@frozen
class StoredColumn:
    """A column that lies in memory: of the build side of stage ``owner``, or of the pipeline's input (None), the id under which
    it is bound there, how it is stored, and what is known of its values."""

    owner: int | None
    column: int
    physical_type: PhysicalType
    properties: ValueProperties


@frozen
class Elements:
    """What is read of a stored column at a row, the same wherever a kernel reads it: the value, whether it is there (None:
    always), and the parameters that both read."""

    stored: StoredColumn
    value: ir.Call
    is_valid: ir.Call | None
    parameters: tuple[ir.Name, ...]


def load(stored: StoredColumn, row: ir.Expression, code: Code, guard: ir.Expression | None = None) -> Value:
    """Load a stored column at ``row``; under ``guard`` (a boolean variable: there is such a row) it is NULL where that is
    False."""
    return load_elements(elements(stored, row, code), code, guard)


def load_again(found: Elements, code: Code, guard: ir.Expression | None) -> Value:
    """Load what was loaded before, in a block that has closed."""
    for name in found.parameters:
        code.selectivities[name.id] = max(code.selectivities[name.id], code.selectivity)
    return load_elements(found, code, guard)


def load_elements(found: Elements, code: Code, guard: ir.Expression | None) -> Value:
    """The lines of `load`."""
    stored = found.stored
    physical_type, what = stored.physical_type, stored.properties
    ok: ir.Name | None = None
    if found.is_valid is not None:
        if guard is None:
            ok = code.let(found.is_valid)
        else:
            ok = code.let(ir.FALSE)
            with code.when(guard):
                code.set(ok, found.is_valid)
    if guard is None:
        var = code.let(found.value)
        # text is followed to its characters, which wait anyway
        is_plain = stored.owner is None and not physical_type.is_string
        skipped = (1.0 - code.selectivity) ** (SECTOR_BYTES / physical_type.bytes)  # sectors that no row needs
        if is_plain and skipped < tuning.kernel_texts.skipped_sectors:
            code.hoisted.update((var, ok) if ok is not None else (var,))
        return Value(var, ok, what)
    var = code.let(code.zero(what.register))
    with code.when(guard):
        code.set(var, found.value)
    return Value(var, ok or guard, what)


def elements(stored: StoredColumn, row: ir.Expression, code: Code) -> Elements:
    """What is read of a stored column at a row."""
    owner, column = stored.owner, stored.column
    data = code.pointer(element_type(stored.physical_type), ColumnPart(owner, column, "data"), "c")
    parameters, is_valid = [data], None
    if stored.properties.nullable:
        valid = code.pointer("u8", ColumnPart(owner, column, "validity"), "m")
        parameters.append(valid)
        is_valid = code.call("truth", ir.Load(valid, row))
    if stored.physical_type in _OFFSETS:
        parameters.append(code.scalar(ColumnPart(owner, column, "characters"), "i64", "a"))
        value = code.call(stored.physical_type.value, data, parameters[-1], row)
    else:
        value = _loaded(stored.physical_type, data, row, code)
    return Elements(stored, value, is_valid, tuple(parameters))


def _loaded(physical_type: PhysicalType, pointer: ir.Name, row: ir.Expression, code: Code) -> ir.Call:
    if (wide := _WIDE.get(physical_type)) is not None:
        return code.call(wide, pointer, row)
    return code.call(_NARROW.get(physical_type, "i64"), ir.Load(pointer, row))


_WIDE = {PhysicalType.I128: "load_i128", PhysicalType.VIEW: "view"}  # of two words
_NARROW = {PhysicalType.BOOL: "truth", PhysicalType.F32: "f64", PhysicalType.F64: "f64"}
_STORES = {t: f"store_{t.value}" for t in PhysicalType} | {PhysicalType.I128: "store_i128", PhysicalType.VIEW: "store_view"}


def store(code: Code, physical_type: PhysicalType, pointer: ir.Name, row: ir.Expression, var: ir.Expression) -> None:
    """Store a register at ``row`` in a physical type's layout."""
    code.do(store_call(code, physical_type, pointer, row, var))


def store_call(code: Code, physical_type: PhysicalType, pointer: ir.Name, row: ir.Expression, var: ir.Expression) -> ir.Call:
    """The call that does it."""
    return code.call(_STORES[physical_type], pointer, row, var)
