"""Types and constants as SQL writes them: type names to `DType`, literals, parameters and intervals to `Literal`."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from sqlglot import exp

from gquery.errors import BindError, ConversionError, InterfaceError, NotSupportedError, unicode_text
from gquery.expression.expr import Cast, Expr, Literal
from gquery.expression.interval import Interval
from gquery.expression.nested_types import list_of, map_of, struct_of
from gquery.expression.slots import derived
from gquery.expression.types import (
    BIGINT,
    BLOB,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSON,
    NULL,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TINYINT,
    UBIGINT,
    UINTEGER,
    USMALLINT,
    UTINYINT,
    UUID,
    VARCHAR,
    DType,
    Kind,
    decimal,
)
from gquery.functions.calendar import days_from_civil
from gquery.functions.interval_texts import parse_interval
from gquery.functions.intervals import of_unit

_FRACTION = re.compile(r"\.\d+(?:[eE][+-]?\d+)?")
Parameters = Sequence[Any] | Mapping[str, Any] | None

_TYPES = {
    "BOOLEAN": BOOLEAN, "TINYINT": TINYINT, "SMALLINT": SMALLINT, "INT": INTEGER, "BIGINT": BIGINT,
    "UTINYINT": UTINYINT, "USMALLINT": USMALLINT, "UINT": UINTEGER, "UBIGINT": UBIGINT, "FLOAT": REAL,
    "DOUBLE": DOUBLE, "DATE": DATE, "TIME": TIME, "TIMESTAMP": TIMESTAMP, "TIMESTAMPNTZ": TIMESTAMP,
    "TIMESTAMPTZ": TIMESTAMPTZ, "DATETIME": TIMESTAMP,
    "TEXT": VARCHAR, "VARCHAR": VARCHAR,
    "CHAR": VARCHAR, "BPCHAR": VARCHAR, "NCHAR": VARCHAR, "NVARCHAR": VARCHAR, "NAME": VARCHAR, "INTERVAL": INTERVAL,
    # names that sqlglot leaves to us
    "BOOL": BOOLEAN, "INT1": TINYINT, "INT2": SMALLINT, "INT4": INTEGER, "INT8": BIGINT, "SIGNED": INTEGER,
    "LONG": BIGINT,
    "SHORT": SMALLINT, "UINT8": UTINYINT, "UINT16": USMALLINT, "UINT32": UINTEGER, "UINT64": UBIGINT, "REAL": REAL,
    "FLOAT4": REAL, "FLOAT8": DOUBLE, "STRING": VARCHAR, "BLOB": BLOB, "BYTEA": BLOB, "BINARY": BLOB, "VARBINARY": BLOB,
    "JSON": JSON, "UUID": UUID, "GUID": UUID,
}  # fmt: skip


def sql_type(node: exp.DataType) -> DType:
    """The type that a SQL type name stands for; NotSupportedError for types that gquery does not have, BindError for numbers
    in parentheses that the type does not take."""
    kind = node.this
    name = kind.name if isinstance(kind, exp.DataType.Type) else str(kind).upper()
    if name in ("ARRAY", "LIST") and len(node.expressions) == 1 and not node.args.get("values"):
        return list_of(sql_type(node.expressions[0]))
    if name == "STRUCT" and node.expressions and all(isinstance(f, exp.ColumnDef) for f in node.expressions):
        return struct_of([(f.name, sql_type(f.args["kind"])) for f in node.expressions])
    if name == "MAP" and len(node.expressions) == 2:
        key, value = map(sql_type, node.expressions)
        return map_of(key, value)
    if name == "USERDEFINED":
        name = str(node.args.get("kind") or "").upper()
    if name == "DECIMAL":
        if not all(p.name.isdecimal() for p in node.expressions):
            raise BindError(f"{node.sql('duckdb')}: precision and scale are numbers")
        digits = [int(p.name) for p in node.expressions]
        if len(digits) > 2:
            raise BindError(f"DECIMAL takes precision and scale, {len(digits)} numbers are given")
        precision, scale = (18, 3) if not digits else (digits[0], digits[1] if len(digits) > 1 else 0)
        if not (1 <= precision <= 38 and 0 <= scale <= precision):
            raise BindError(f"DECIMAL({precision},{scale}): precision is 1 to 38 and scale 0 to precision")
        return decimal(precision, scale)
    places = [p.name for p in node.expressions]
    if name in ("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME") and places and places[0] not in ("4", "5", "6"):
        raise NotSupportedError(
            f"not supported: type TIMESTAMP({places[0]}): a TIMESTAMP has microseconds; date_trunc cuts it"
        )
    if name not in _TYPES:
        raise NotSupportedError(f"not supported: type {'HUGEINT' if name == 'INT128' else node.sql('duckdb')}")
    dtype = _TYPES[name]
    if name == "FLOAT" and len(places) == 1:
        return _float(places[0])
    if places and dtype not in (VARCHAR, TIMESTAMP):
        raise BindError(f"type {dtype} takes no number in parentheses: {name}({', '.join(places)})")
    return dtype


def _float(bits: str) -> DType:
    """FLOAT(n), by the bits that its fraction has at least."""
    if not (bits.isdecimal() and 1 <= int(bits) <= 53):
        raise BindError(f"FLOAT({bits}): the number of bits is 1 to 53")
    return REAL if int(bits) < 25 else DOUBLE


def cut_node(number: int) -> exp.Expr:
    """What stands in a tree for a constant that was cut out of a text (`gquery.sql.cut`), by the number of its slot. It is of
    the class that all of sqlglot's nodes come of: no parser makes such a node, and whoever prints it gets a ValueError. A class
    of our own is not possible: nothing may inherit from sqlglot's classes where they are compiled."""
    return exp.Expression(this=number)


def is_cut(node: exp.Expr | None) -> bool:
    return type(node) is exp.Expression


def number(text: str) -> Literal:
    """A numeric literal, typed as DuckDB does: integers by their size, decimals by their digits, exponents DOUBLE.

    >>> [str(number(t).dtype) for t in ("1", "3000000000", "0.050", "1e3")]
    ['INTEGER', 'BIGINT', 'DECIMAL(4,3)', 'DOUBLE']
    """
    text = text.replace("_", "")
    if "e" in text.lower():
        return Literal(float(text), DOUBLE)
    if "." not in text:
        digits = text.lstrip("0") or "0"
        if len(digits) <= 39 and int(digits) < 2**128:  # so a text of digits without end is no integer of Python
            return integer_literal(int(digits))
        return Literal(float(digits), DOUBLE)
    whole, fraction = text.split(".")
    width = len(whole) + len(fraction)
    if width > 38:
        return Literal(float(text), DOUBLE)
    return Literal(int(whole + fraction or "0"), decimal(max(width, 1), len(fraction)))


def number_at(node: exp.Literal, sql: str) -> Literal:
    """The number that a node of a text is: sqlglot has ".5" as "0.5", and the 0 would count as a digit."""
    start = (node._meta or {}).get("start")
    written = _FRACTION.match(sql, start) if start is not None else None
    return number(node.name if written is None else written[0])


def integer_literal(value: int) -> Literal:
    """An integer of the least of INTEGER, BIGINT and DECIMAL(n,0) that holds it; NotSupportedError for those of 39 digits that
    are DuckDB's HUGEINT and UHUGEINT, InterfaceError beyond these."""
    if -(2**31) < value < 2**31:
        return Literal(value, INTEGER)
    if -(2**63) <= value < 2**63:
        return Literal(value, BIGINT)
    if abs(value) < 10**38:
        return Literal(value, decimal(len(str(abs(value))), 0))
    if value.bit_length() > 128:
        raise InterfaceError(f"an integer of {value.bit_length()} bits is too large for any type")
    raise NotSupportedError("not supported: integers of 39 digits; DECIMAL has 38, and 1e38 is a DOUBLE")


def interval(node: exp.Interval, bound: Callable[[exp.Expr], Any]) -> Expr:
    """INTERVAL as a literal, or of an amount that is none; ``bound`` binds the amount where it is no plain text."""
    unit = node.args.get("unit")
    amount, is_expression = node.this, isinstance(node.this, exp.Paren)
    while isinstance(amount, exp.Paren):
        amount = amount.this
    if unit is not None and not isinstance(unit, exp.Var):
        raise NotSupportedError(f"interval unit {unit.sql('duckdb')}")
    if isinstance(amount, exp.Literal) and (amount.is_string or not is_expression):
        text = amount.name
    elif is_cut(amount) and not is_expression:
        return derived(_interval, INTERVAL, (bound(amount),), unit.name if unit is not None else None)
    else:
        value = bound(node.this) if amount is not None else None
        if not isinstance(value, Literal) or value.value is None or not value.dtype.is_integer:
            made = None if value is None or unit is None else of_unit(value, unit.name)
            if made is None:
                raise NotSupportedError("not supported: INTERVAL of an amount that is no number")
            return made
        text = str(value.value)
    try:
        return Literal(_interval(text, unit.name if unit is not None else None), INTERVAL)
    except ConversionError:  # of which a row may never ask
        return Cast(Literal(text if unit is None else f"{text} {unit.name}", VARCHAR), INTERVAL)


def _interval(text: str, unit: str | None) -> int:
    parsed = parse_interval(text, unit)
    if parsed is None:
        raise ConversionError(f"{text!r} is no interval")
    try:
        return parsed.packed
    except OverflowError:
        raise ConversionError(f"the interval {text!r} is out of range") from None


def parameter(node: exp.Expr, values: Parameters) -> Expr:
    """The value of ``$1`` (``?`` is numbered while parsing) or ``$name``. InterfaceError where its value is
    missing."""
    name = node.name
    if name and not name.isdigit():
        if not isinstance(values, Mapping) or name not in values:
            raise InterfaceError(f"no value was given for parameter ${name}")
        return parameter_value(values[name])
    index = int(name or 1) - 1
    if isinstance(values, Mapping):
        if str(index + 1) in values:
            return parameter_value(values[str(index + 1)])
        raise InterfaceError("parameters ? and $1 take their values from a sequence")
    if values is None or not 0 <= index < len(values):
        given = 0 if values is None else len(values)
        raise InterfaceError(f"parameter {index + 1} has no value: {given} were given")
    return parameter_value(values[index])


def parameter_value(value: Any) -> Expr:
    """A Python value as a constant, a list or a dict as an expression of some."""
    if not _is_nested(value):
        return python_literal(value)
    from gquery.sql.nested_parameters import nested_value

    return nested_value(value, parameter_value)


def _is_nested(value: Any) -> bool:
    return isinstance(value, list | tuple | dict | bytes) or getattr(value, "ndim", 0) == 1


def parameter_names(values: Parameters) -> frozenset[str]:
    """The names by which `parameter` reads values."""
    names = () if values is None else values if isinstance(values, Mapping) else range(1, len(values) + 1)
    return frozenset(map(str, names))


def python_literals(values: Parameters) -> dict[str, Literal]:
    """All parameters as literals, by the names that `parameter` reads. TypeError for one that is a list or a dict."""
    if values is None:
        return {}
    named = values.items() if isinstance(values, Mapping) else [(str(n), v) for n, v in enumerate(values, 1)]
    if any(_is_nested(v) for _, v in named):
        raise TypeError("a list is no literal")
    return {str(name): python_literal(value) for name, value in named}


def python_literal(value: Any) -> Literal:
    """A Python value as a literal.

    >>> python_literal(Decimal("1.50"))
    Literal(value=150, dtype=DType(kind=<Kind.DECIMAL: 'DECIMAL'>, precision=3, scale=2))
    """
    match value:
        case None:
            return Literal(None, NULL)
        case bool():
            return Literal(int(value), BOOLEAN)
        case int():
            return integer_literal(value)
        case float():
            return Literal(value, DOUBLE)
        case str():
            return Literal(unicode_text(value, "a parameter"), VARCHAR)
        case Decimal():
            return _decimal_literal(value)
        case datetime.datetime():
            if value != value:  # pandas.NaT, which is one
                return Literal(None, NULL)
            if getattr(value, "nanosecond", 0):  # of pandas
                raise InterfaceError(f"the parameter {value} has nanoseconds, and TIMESTAMP microseconds")
            start = datetime.datetime(1970, 1, 1, tzinfo=None if value.tzinfo is None else datetime.UTC)
            micros = (value - start) // datetime.timedelta(microseconds=1)
            return Literal(micros, TIMESTAMP if value.tzinfo is None else DType(Kind.TIMESTAMPTZ, zone=_zone(value)))
        case datetime.time() if value.tzinfo is None:
            micros = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
            return Literal(micros, TIME)
        case datetime.date():
            return Literal(days_from_civil(value.year, value.month, value.day), DATE)
        case datetime.timedelta():
            if getattr(value, "nanoseconds", 0):
                raise InterfaceError(f"the parameter {value} has nanoseconds, and INTERVAL microseconds")
            micros = value.seconds * 1_000_000 + value.microseconds
            return Literal(Interval(0, value.days, micros).packed, INTERVAL)
        case _ if type(value).__name__ == "NAType":  # pandas.NA
            return Literal(None, NULL)
        case _ if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:  # a NumPy or CuPy scalar
            return _scalar_literal(value)
        case _:
            raise InterfaceError(f"a parameter of type {type(value).__name__} has no SQL type")


def _zone(value: datetime.datetime) -> str:
    """The name of a moment's zone as Arrow knows it: the zone's own, or the offset."""
    name = getattr(value.tzinfo, "key", None)
    if name is not None:
        return str(name)
    minutes = (value.utcoffset() or datetime.timedelta()) // datetime.timedelta(minutes=1)
    return "UTC" if minutes == 0 else f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def _scalar_literal(value: Any) -> Literal:
    kind = getattr(value.dtype, "kind", "")
    if kind not in ("M", "m"):
        item = value.item()
        if hasattr(item, "item"):  # wider than any type of Python's
            raise InterfaceError(f"a parameter of type {type(value).__name__} has no SQL type")
        return python_literal(item)
    if value != value:  # NaT
        return Literal(None, NULL)
    micros = value.astype(f"{kind}8[us]")
    if micros.astype(value.dtype) != value:
        raise InterfaceError(f"the parameter {value} has nanoseconds; gquery has microseconds")
    item = value.item()
    return python_literal(micros.item() if isinstance(item, int) else item)


def _decimal_literal(value: Decimal) -> Literal:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return Literal(float(value), DOUBLE)
    scale = max(0, -exponent)
    unscaled = int("".join(map(str, digits))) * int(10 ** max(0, exponent))
    width = max(len(str(unscaled)), scale, 1)
    if width > 38:
        raise InterfaceError(f"a Decimal of {width} digits: DECIMAL has 38 at most")
    return Literal(-unscaled if sign else unscaled, decimal(width, scale))
