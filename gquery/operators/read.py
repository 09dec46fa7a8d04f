"""Read: where a pipeline's rows come from. Columns are loaded where the row first uses them."""

from __future__ import annotations

from typing import assert_never

from gquery.kernels import ir
from gquery.kernels.bindings import Constant
from gquery.kernels.code import Code
from gquery.kernels.stored import Elements, StoredColumn, elements, load_again, load_elements
from gquery.kernels.values import Value, ValueProperties
from gquery.planner.layouts import nullable
from gquery.planner.physical import ReadOne, ReadRange, ReadStage, ReadTable, Source, Stored


def read(source: Source, code: Code, row: ir.Name = ir.ROW) -> None:
    """Say how each column of the source is loaded for its row ``row``."""
    match source:
        case ReadTable(columns=columns) | ReadStage(columns=columns):
            for stored in columns:
                provide_stored(code, None, stored, row)
            if isinstance(source, ReadStage) and (numbered := source.numbered) is not None:
                known, base = numbered.properties, source.base
                code.provide(numbered.column.id, known, lambda: _row_number(known, base, row, code))
        case ReadRange():
            code.provide(source.column.id, source.properties, lambda: _range_value(source, code))
        case ReadOne():
            pass
        case _:
            assert_never(source)


def provide_stored(
    code: Code, owner: int | None, stored: Stored, row: ir.Expression, guard: ir.Expression | None = None
) -> None:
    """Provide a stored column at a row of the pipeline's input, or of the build side ``owner``."""
    what = stored.properties if guard is None else nullable(stored.properties)
    found: Elements | None = None

    def make() -> Value:
        nonlocal found
        if found is None:
            column = StoredColumn(owner, stored.column.id, stored.physical_type, stored.properties)
            found = elements(column, row, code)
            value = load_elements(found, code, guard)
        else:
            value = load_again(found, code, guard)
        return value if guard is None else Value(value.var, value.ok, what)

    code.provide(stored.column.id, what, make)


def _row_number(known: ValueProperties, base: int, row: ir.Name, code: Code) -> Value:
    """The number of the row, counted from ``base``."""
    var = code.call("i64", row)
    if base:
        var = code.call("add_i64", var, code.constant(base))
    return Value(code.let(var), None, known)


def _range_value(source: ReadRange, code: Code) -> Value:
    var = code.call("i64", ir.ROW)
    if source.step != 1:
        var = code.call("mul_i64", var, code.scalar(Constant(source.step)))
    if source.start:
        var = code.call("add_i64", var, code.scalar(Constant(source.start)))
    return Value(code.let(var), None, source.properties)
