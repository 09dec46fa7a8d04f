"""Values: what the planner knows of an expression's values, and the variable that holds one while a kernel is written."""

from __future__ import annotations

from gquery.columns.opaque import Opaque
from gquery.columns.table import Dictionary
from gquery.expression.frozen import frozen
from gquery.expression.types import (
    INT64,
    Bounds,
    DType,
    Kind,
    PhysicalType,
    Register,
    physical_type_for,
    register_for,
    type_bounds,
)
from gquery.kernels import ir

_INTEGERS = (Register.I64, Register.I128)
_STORED = {Register.BOOL: PhysicalType.BOOL, Register.F64: PhysicalType.F64, Register.STR: PhysicalType.VIEW}


class _Remembering:
    """Room for what `ValueProperties` is asked for again and again: None until then."""

    __slots__ = REMEMBERED = ("memo_register",)

    memo_register: Register | None


@frozen
class ValueProperties(_Remembering):
    """What the planner knows of a value before any row is read.

    ``bounds`` is proved for every non-NULL value of an exact type (codes where there is a dictionary), so an exact value
    is held in 64 bits where its bounds fit and in 128 where they do not.
    """

    dtype: DType
    bounds: Bounds | None = None
    nullable: bool = True
    dictionary: Dictionary | Opaque | None = None

    @property
    def register(self) -> Register:
        """The register class that holds the value in generated code."""
        found = self.memo_register
        if found is None:
            found = Register.I64 if self.dictionary is not None else register_for(self.dtype, self.bounds)
            self.memo_register = found
        return found

    @property
    def physical_type(self) -> PhysicalType:
        """How a column of such values is stored by a sink; strings as views, which `operators.materialize` makes contiguous."""
        register = self.register
        if register in _INTEGERS:  # most
            assert self.bounds is not None
            return physical_type_for(self.bounds)
        return PhysicalType.F32 if self.dtype.kind is Kind.REAL else _STORED[register]


def value_properties(dtype: DType, bounds: Bounds | None = None, nullable: bool = True) -> ValueProperties:
    """A `ValueProperties` whose bounds are those of the type where nothing narrower is known."""
    return ValueProperties(dtype, bounds if bounds is not None else type_bounds(dtype), nullable)


def opaque_properties(dtype: DType, values: Opaque, nullable: bool) -> ValueProperties:
    """What is known of row numbers of opaque values."""
    return ValueProperties(dtype, Bounds(0, max(values.numbers - 1, 0)), nullable, values)


@frozen
class Value:
    """A row value in the text: the variable (or scalar parameter) that holds it and, if it can be NULL, the boolean
    variable that says it is not."""

    var: ir.Expression
    ok: ir.Expression | None
    properties: ValueProperties


def fits_int64(bounds: Bounds | None) -> bool:
    """Whether the bounds are known and within 64 bits."""
    return bounds is not None and bounds.within(INT64)
