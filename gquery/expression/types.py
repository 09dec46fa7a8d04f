"""SQL types, schemas, bounds and physical types.

Two notions of type stand apart. A *logical type* (`DType`) is what SQL sees: ``DECIMAL(15,2)``, ``DATE``. A *physical
type* is how a column's values lie in memory, chosen from their minimum and maximum: a
``DECIMAL(15,2)`` whose values are 0.00 to 0.10 lies in one byte. In generated code every value is held in one of the
few *register classes* of `Register`: all integers, dates and small decimals are 64-bit there.

Physical values: integers as they are; BOOLEAN 0 or 1; DECIMAL the unscaled integer; DATE days since 1970-01-01;
TIMESTAMP and TIMESTAMPTZ microseconds since 1970-01-01 (UTC), TIME since midnight; REAL and DOUBLE IEEE floats; VARCHAR either
a code into a sorted dictionary or an (address, length) pair of UTF-8 bytes; INTERVAL one integer of three parts (`interval`);
LIST, STRUCT, MAP, BLOB and OPAQUE a row number into Arrow values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from enum import Enum
from functools import cache
from typing import Any, TypeAlias

from gquery.expression.frozen import frozen
from gquery.expression.interval import GREATEST, LEAST, Interval
from gquery.runtime.records import cached_property, dataclass


class _Constants(Enum):
    """Members are single objects, so identity hashes them: Enum's own hash, that of their name, is a function of Python."""

    __hash__ = object.__hash__


class Kind(_Constants):
    """The kind of a logical type; the value is its SQL name."""

    NULL = "NULL"
    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    UTINYINT = "UTINYINT"
    USMALLINT = "USMALLINT"
    UINTEGER = "UINTEGER"
    UBIGINT = "UBIGINT"
    DECIMAL = "DECIMAL"
    REAL = "FLOAT"
    DOUBLE = "DOUBLE"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    # a moment; what asks for a local time takes that of UTC
    TIMESTAMPTZ = "TIMESTAMP WITH TIME ZONE"
    TIME = "TIME"  # of day
    INTERVAL = "INTERVAL"
    VARCHAR = "VARCHAR"
    LIST = "LIST"  # of values of one type that is computed with; `gquery.functions.lists` looks into them
    STRUCT = "STRUCT"  # of named values, or of values without names; `gquery.functions.structs`
    MAP = "MAP"  # of values by keys; `gquery.functions.maps`
    BLOB = "BLOB"  # bytes, which functions on the host look into; `gquery.functions.blobs`
    OPAQUE = "OPAQUE"  # carried, not computed with: see `gquery.columns.opaque`

    __hash__ = object.__hash__  # as fast as equality, which is identity; Enum's hashes the name


INTEGER_BOUNDS = {
    Kind.TINYINT: (-(2**7), 2**7 - 1),
    Kind.SMALLINT: (-(2**15), 2**15 - 1),
    Kind.INTEGER: (-(2**31), 2**31 - 1),
    Kind.BIGINT: (-(2**63), 2**63 - 1),
    Kind.UTINYINT: (0, 2**8 - 1),
    Kind.USMALLINT: (0, 2**16 - 1),
    Kind.UINTEGER: (0, 2**32 - 1),
    Kind.UBIGINT: (0, 2**64 - 1),
}


_NUMBERS = (*INTEGER_BOUNDS, Kind.DECIMAL, Kind.REAL, Kind.DOUBLE)
_NESTED = (Kind.LIST, Kind.STRUCT, Kind.MAP, Kind.BLOB)
_KINDS: dict[str, tuple[Kind, ...]] = {
    "is_integer": tuple(INTEGER_BOUNDS), "is_decimal": (Kind.DECIMAL,), "is_float": (Kind.REAL, Kind.DOUBLE),
    "is_numeric": _NUMBERS, "is_temporal": (Kind.DATE, Kind.TIMESTAMP), "is_string": (Kind.VARCHAR,),
    "is_nested": _NESTED, "is_opaque": (Kind.OPAQUE, *_NESTED), "is_list": (Kind.LIST,), "is_struct": (Kind.STRUCT,),
    "is_exact": (
        *INTEGER_BOUNDS, Kind.DECIMAL, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.BOOLEAN, Kind.TIMESTAMPTZ, Kind.INTERVAL,
    ),
}  # fmt: skip
"""What is said of a type by its kind alone."""


def _said() -> Any:
    return field(init=False, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class DType:
    """A logical type. ``precision`` and ``scale`` belong to DECIMAL alone (1 <= precision <= 38, 0 <= scale <= precision),
    ``name`` to OPAQUE, LIST, STRUCT, MAP, JSON and UUID: its name, which tells it apart; ``arrow`` to the first four: the type
    of the values where they come from outside; ``element`` to LIST; ``fields`` to STRUCT, by name, and to MAP, whose are the key
    and the value; ``zone`` to TIMESTAMPTZ: where results show its moments, which makes no other type of it."""

    kind: Kind
    precision: int = 0
    scale: int = 0
    name: str = field(default="", repr=False)
    arrow: Any = field(default=None, compare=False, repr=False)
    zone: str = field(default="", compare=False, repr=False)
    element: DType | None = field(default=None, compare=False, repr=False)
    fields: tuple[tuple[str, DType], ...] = field(default=(), compare=False, repr=False)
    # What is asked of types again and again. ``is_opaque``: carried as numbers of Arrow values, which kernels move and do not
    # look at; ``is_nested``: of other values, or bytes, which functions on the host look into, compared by keys
    # (`functions.nested_keys`); ``is_exact``: held as an integer, so that bounds apply.
    is_integer: bool = _said()
    is_decimal: bool = _said()
    is_float: bool = _said()
    is_numeric: bool = _said()
    is_temporal: bool = _said()  # DATE, TIMESTAMP
    is_string: bool = _said()
    is_nested: bool = _said()
    is_opaque: bool = _said()
    is_list: bool = _said()
    is_struct: bool = _said()
    is_exact: bool = _said()

    def __post_init__(self) -> None:
        for name, kinds in _KINDS.items():
            object.__setattr__(self, name, self.kind in kinds)

    def __eq__(self, other: object) -> bool:
        if self is other:  # most types are constants of this module
            return True
        if not isinstance(other, DType):
            return NotImplemented
        is_same = self.kind is other.kind and self.precision == other.precision and self.scale == other.scale
        return is_same and self.name == other.name

    def __str__(self) -> str:
        if self.kind is Kind.DECIMAL:
            return f"DECIMAL({self.precision},{self.scale})"
        return self.name or self.kind.value

NULL = DType(Kind.NULL)
BOOLEAN = DType(Kind.BOOLEAN)
TINYINT = DType(Kind.TINYINT)
SMALLINT = DType(Kind.SMALLINT)
INTEGER = DType(Kind.INTEGER)
BIGINT = DType(Kind.BIGINT)
UTINYINT = DType(Kind.UTINYINT)
USMALLINT = DType(Kind.USMALLINT)
UINTEGER = DType(Kind.UINTEGER)
UBIGINT = DType(Kind.UBIGINT)
REAL = DType(Kind.REAL)
DOUBLE = DType(Kind.DOUBLE)
DATE = DType(Kind.DATE)
TIMESTAMP = DType(Kind.TIMESTAMP)
TIMESTAMPTZ = DType(Kind.TIMESTAMPTZ, zone="UTC")
TIME = DType(Kind.TIME)
INTERVAL = DType(Kind.INTERVAL)
VARCHAR = DType(Kind.VARCHAR)
JSON = DType(Kind.VARCHAR, name="JSON")  # a text that is valid JSON; `gquery.functions.json`
UUID = DType(Kind.VARCHAR, name="UUID")  # a text in one form; `gquery.functions.uuid`
BLOB = DType(Kind.BLOB, name="BLOB")


@cache
def decimal(precision: int, scale: int) -> DType:
    """DECIMAL(precision, scale).

    >>> str(decimal(15, 2))
    'DECIMAL(15,2)'
    """
    if not (1 <= precision <= 38 and 0 <= scale <= precision):
        raise ValueError(f"DECIMAL({precision},{scale}): precision is 1 to 38 and scale 0 to precision")
    return DType(Kind.DECIMAL, precision, scale)


Scalar: TypeAlias = int | float | str
"""The physical value of a literal that is not NULL."""


@frozen
class Bounds:
    """An inclusive range of physical integers that a value is proved to lie in."""

    low: int
    high: int

    def __or__(self, other: Bounds) -> Bounds:
        return Bounds(min(self.low, other.low), max(self.high, other.high))

    def within(self, other: Bounds) -> bool:
        return other.low <= self.low and self.high <= other.high

    @property
    def magnitude(self) -> int:
        """The largest absolute value."""
        return max(abs(self.low), abs(self.high))

    @property
    def width(self) -> int:
        """How many integers lie in the range."""
        return self.high - self.low + 1


INT64 = Bounds(-(2**63), 2**63 - 1)
INT128 = Bounds(-(2**127), 2**127 - 1)
# DATE and TIMESTAMP as DuckDB limits them; the two infinities are not representable
_DATE_BOUNDS = Bounds(-(2**31) + 2, 2**31 - 2)
_ROW_NUMBERS = Bounds(0, 2**63 - 1)
_TIME_BOUNDS = Bounds(0, 86_399_999_999)
_TIMESTAMP_BOUNDS = Bounds(-106_751_991 * 86_400_000_000, 2**63 - 2)  # it begins with the first whole day


@cache
def type_bounds(dtype: DType) -> Bounds | None:
    """The physical range that values of a logical type may take; None for floats, strings, NULL."""
    match dtype.kind:
        case Kind.BOOLEAN:
            return Bounds(0, 1)
        case Kind.DECIMAL:
            return Bounds(-(10**dtype.precision) + 1, 10**dtype.precision - 1)
        case Kind.DATE:
            return _DATE_BOUNDS
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return _TIMESTAMP_BOUNDS
        case Kind.TIME:
            return _TIME_BOUNDS
        case Kind.INTERVAL:
            return Bounds(LEAST, GREATEST)
        case Kind.OPAQUE | Kind.LIST | Kind.STRUCT | Kind.MAP | Kind.BLOB:
            return _ROW_NUMBERS
        case _:
            pair = INTEGER_BOUNDS.get(dtype.kind)
            return Bounds(*pair) if pair else None


class Register(_Constants):
    """The class of a value in generated code. The enum's value ends the name of primitives (``add_i64``)."""

    BOOL = "bool"  # Python bool / numba boolean
    I64 = "i64"  # integers, decimals, dates, timestamps and dictionary codes that bounds prove to fit 64 bits
    I128 = "i128"  # (high: int64, low: uint64) on cpu and cuda, a Python int on python
    F64 = "f64"  # REAL is computed as DOUBLE and rounded after each operation, which gives the same bits
    STR = "str"  # (address, length) of UTF-8 bytes, on every target


class PhysicalType(_Constants):
    """How a column's values lie in memory; the value is the name that kernels and NumPy derive theirs from."""

    BOOL = "bool"  # one byte, 0 or 1
    I8 = "i8"
    I16 = "i16"
    I32 = "i32"
    I64 = "i64"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    I128 = "i128"  # two int64 words a row, low word first (the layout of Arrow's decimal128)
    F32 = "f32"
    F64 = "f64"
    STRING32 = "string32"  # int32 offsets (rows + 1) and UTF-8 bytes
    STRING64 = "string64"  # int64 offsets (rows + 1) and UTF-8 bytes
    VIEW = "view"  # two int64 words a row: address and length of bytes that another buffer owns

    @property
    def bytes(self) -> int:
        """Bytes a row, without the characters of strings."""
        return _PHYSICAL_TYPE_BYTES[self]

    @property
    def numpy(self) -> str:
        """The NumPy dtype of the buffer that holds values (of the offsets for strings)."""
        return _PHYSICAL_TYPE_NUMPY[self]

    @property
    def is_string(self) -> bool:
        return self in _STRINGS


_STRINGS = (PhysicalType.STRING32, PhysicalType.STRING64, PhysicalType.VIEW)  # to name a member takes 40 ns
_PHYSICAL_TYPE_NUMPY = {
    PhysicalType.BOOL: "uint8", PhysicalType.I8: "int8", PhysicalType.I16: "int16", PhysicalType.I32: "int32",
    PhysicalType.I64: "int64", PhysicalType.U8: "uint8", PhysicalType.U16: "uint16", PhysicalType.U32: "uint32",
    PhysicalType.I128: "int64", PhysicalType.F32: "float32", PhysicalType.F64: "float64",
    PhysicalType.STRING32: "int32", PhysicalType.STRING64: "int64", PhysicalType.VIEW: "int64",
}  # fmt: skip
_PHYSICAL_TYPE_BYTES = {
    PhysicalType.BOOL: 1, PhysicalType.I8: 1, PhysicalType.I16: 2, PhysicalType.I32: 4, PhysicalType.I64: 8,
    PhysicalType.U8: 1, PhysicalType.U16: 2, PhysicalType.U32: 4, PhysicalType.I128: 16, PhysicalType.F32: 4,
    PhysicalType.F64: 8, PhysicalType.STRING32: 4, PhysicalType.STRING64: 8, PhysicalType.VIEW: 16,
}  # fmt: skip
_INTEGER_PHYSICAL_TYPES = (
    (PhysicalType.I8, Bounds(-(2**7), 2**7 - 1)),
    (PhysicalType.U8, Bounds(0, 2**8 - 1)),
    (PhysicalType.I16, Bounds(-(2**15), 2**15 - 1)),
    (PhysicalType.U16, Bounds(0, 2**16 - 1)),
    (PhysicalType.I32, Bounds(-(2**31), 2**31 - 1)),
    (PhysicalType.U32, Bounds(0, 2**32 - 1)),
    (PhysicalType.I64, INT64),
    (PhysicalType.I128, INT128),
)


def physical_type_for(bounds: Bounds) -> PhysicalType:
    """The narrowest integer physical type that holds every value of ``bounds``.

    >>> physical_type_for(Bounds(0, 200)), physical_type_for(Bounds(-1, 40_000))
    (<PhysicalType.U8: 'u8'>, <PhysicalType.I32: 'i32'>)
    """
    low, high = bounds.low, bounds.high
    for physical_type, range_ in _INTEGER_PHYSICAL_TYPES:
        if range_.low <= low and high <= range_.high:
            return physical_type
    raise ValueError(f"{bounds} does not fit 128 bits")


_REGISTERS = {
    Kind.BOOLEAN: Register.BOOL, Kind.NULL: Register.BOOL, Kind.REAL: Register.F64, Kind.DOUBLE: Register.F64,
    Kind.VARCHAR: Register.STR,
}  # fmt: skip


def register_for(dtype: DType, bounds: Bounds | None) -> Register:
    """The register class of a value of this logical type within these bounds (dictionary codes are I64: see
    `ValueProperties`)."""
    register = _REGISTERS.get(dtype.kind)
    if register is not None:
        return register
    bounds = bounds or type_bounds(dtype)
    return Register.I64 if bounds is None or bounds.within(INT64) else Register.I128


@dataclass(frozen=True, slots=True)
class Field:
    """A named, typed column of a table or result."""

    name: str
    dtype: DType
    nullable: bool = True


@dataclass(frozen=True)
class Schema:
    """An ordered tuple of fields. Names need not differ in a result (``SELECT a, a``); in a table they do, ignoring case."""

    fields: tuple[Field, ...]

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    @cached_property
    def parts(self) -> tuple[tuple[str, ...], tuple[DType, ...], tuple[bool, ...]]:
        """The names of all fields, their types, and whether they may be NULL."""
        return self.names, tuple(f.dtype for f in self.fields), tuple(f.nullable for f in self.fields)

    @cached_property
    def exported(self) -> dict[str, Any]:
        """What `columns.arrow` has made of it last: no part of it, and not compared."""
        return {}

    def find(self, name: str) -> int | None:
        """The position of the field of that name, letter case ignored."""
        return next((i for i, f in enumerate(self.fields) if f.name.lower() == name.lower()), None)


def python_value(dtype: DType, physical: Any) -> Any:
    """The Python object that `fetchall` returns for a physical value (see the module's docstring); None stays None."""
    import datetime
    from decimal import Decimal

    if physical is None:
        return None
    match dtype.kind:
        case Kind.BOOLEAN:
            return bool(physical)
        case Kind.DECIMAL:
            return Decimal(f"{int(physical)}E{-dtype.scale}")  # of a text it is exact; `scaleb` rounds to 28 digits
        case Kind.DATE:
            return datetime.date(1970, 1, 1) + datetime.timedelta(days=int(physical))
        case Kind.TIMESTAMP:
            return datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=int(physical))
        case Kind.TIMESTAMPTZ:
            return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=int(physical))
        case Kind.REAL | Kind.DOUBLE:
            return float(physical)
        case Kind.VARCHAR:
            return str(physical)
        case Kind.TIME:
            return (datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=int(physical))).time()
        case Kind.INTERVAL:
            return datetime.timedelta(microseconds=Interval.of(int(physical)).total)
        case _:
            return int(physical)
