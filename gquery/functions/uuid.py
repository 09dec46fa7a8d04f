"""UUIDs: texts of 32 hexadecimal digits with four hyphens, in lower case, so that they compare as their 128 bits do."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.errors import BindError, ConversionError
from gquery.expression.expr import Cast, Expr, Literal
from gquery.expression.types import BLOB, DOUBLE, TIMESTAMPTZ, UINTEGER, UUID, VARCHAR, DType, Kind
from gquery.functions.casts import cast
from gquery.functions.registry import call, host_scalar, make, resolver
from gquery.functions.vectors import (
    Vector,
    array_of,
    doubles,
    each_row,
    each_value,
    fixed_width_text,
    integers,
    size_of,
)

_HYPHENS = (8, 13, 18, 23)
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)


def canonical(text: str) -> str | None:
    """A UUID as it is kept; None for a text that is none. Hyphens may stand anywhere, or nowhere."""
    inner = text[1:-1] if text[:1] == "{" and text[-1:] == "}" else text
    digits = inner.replace("-", "")
    if len(digits) != 32 or digits.strip("0123456789abcdefABCDEF"):
        return None
    low = digits.lower()
    return f"{low[:8]}-{low[8:12]}-{low[12:16]}-{low[16:20]}-{low[20:]}"


def cast_uuid(e: Expr, dtype: DType, try_: bool) -> Expr:
    """A cast from or to UUID."""
    if e.dtype == UUID:
        if dtype == BLOB:
            return call("unhex", call("replace", cast(e, VARCHAR), Literal("-", VARCHAR), Literal("", VARCHAR)))
        if dtype != VARCHAR:
            raise BindError(f"cannot CAST UUID to {dtype}")
        return Literal(e.value, VARCHAR) if isinstance(e, Literal) else Cast(e, VARCHAR)
    if e.dtype.kind is Kind.BLOB:
        return cast_uuid(call("hex", e), dtype, try_)
    if e.dtype != VARCHAR:
        raise BindError(f"cannot CAST {e.dtype} to UUID")
    if isinstance(e, Literal):
        made = canonical(str(e.value))
        if made is not None or try_:
            return Literal(made, UUID)
    return make("_uuid_or_null" if try_ else "_uuid_checked", [e], UUID)


@host_scalar("_uuid_checked", ((VARCHAR,), UUID), fails=(ConversionError, "could not convert string {} to UUID"))
def _checked(text: Vector) -> Vector:
    """A text as a UUID."""
    return each_value(array_of(text, size_of(text)), canonical, pa.string())


@host_scalar("_uuid_or_null", ((VARCHAR,), UUID), nullable=True)
def _or_null(text: Vector) -> Vector:
    """The same, NULL for a text that is none."""
    return _checked(text)


@resolver("uuid gen_random_uuid uuidv4", "$() -> UUID", example=("typeof(uuid())", "UUID"))
def random_uuid() -> Expr:
    """A random UUID of version 4, another in each row and each run."""
    return make("_uuid_drawn", [call("random") for _ in range(3)], UUID)


@host_scalar("_uuid_drawn", ((DOUBLE, DOUBLE, DOUBLE), UUID))
def _drawn(a: Vector, b: Vector, c: Vector) -> Vector:
    """A UUID of version 4 of three numbers from 0 up to 1."""
    return _texts(_bytes(a, b, c), 4)


@resolver("uuidv7", "$() -> UUID", example=("uuid_extract_version(uuidv7())", "7"))
def timed_uuid() -> Expr:
    """A UUID of version 7, which begins with the time: now's, in milliseconds."""
    return make("_uuid_timed", [call("epoch_ms", call("now")), *(call("random") for _ in range(3))], UUID)


@host_scalar("_uuid_timed", ((DOUBLE, DOUBLE, DOUBLE, DOUBLE), UUID))
def _timed(ms: Vector, a: Vector, b: Vector, c: Vector) -> Vector:
    """A UUID of version 7 of a time and of three numbers from 0 up to 1."""
    values = _bytes(a, b, c)
    times = integers(ms, size_of(ms, a, b, c)).astype(">u8").view(np.uint8).reshape(-1, 8)
    values[:, :6] = times[:, 2:]
    return _texts(values, 7)


def _bytes(*numbers: Vector) -> Any:
    """16 random bytes a row: the upper 48 bits of each of three numbers, but for two bytes."""
    rows = size_of(*numbers)
    parts = []
    for n in numbers:
        drawn = doubles(array_of(n, rows))
        parts.append((drawn * 2.0**48).astype(">u8").view(np.uint8).reshape(-1, 8)[:, 2:])
    return np.concatenate(parts, axis=1)[:, :16].copy()


def _texts(values: Any, version: int) -> pa.Array:
    values[:, 6] = (values[:, 6] & 0x0F) | version << 4
    values[:, 8] = (values[:, 8] & 0x3F) | 0x80
    digits = _DIGITS[np.stack([values >> 4, values & 15], axis=2).reshape(len(values), 32)]
    return fixed_width_text(np.insert(digits, [at - n for n, at in enumerate(_HYPHENS)], ord("-"), axis=1))


@host_scalar("uuid_extract_version", ((UUID,), UINTEGER), example=("uuid_extract_version(uuid())", "4"))
def version(u: Vector) -> Vector:
    """The version of a UUID."""
    return each_value(array_of(u, size_of(u)), lambda text: int(text[14], 16), pa.uint32())


@host_scalar("uuid_extract_timestamp", ((UUID,), TIMESTAMPTZ),
             fails=(ConversionError, "a UUID is not of version 7"),
             example=("epoch_ms(uuid_extract_timestamp('017f22e2-79b0-7cc3-98c4-dc0c0c07398f'))", "1645557742000"))  # fmt: skip
def timestamp(u: Vector) -> Vector:
    """The time in a UUID of version 7."""

    def micros(text: str) -> int | None:
        return None if text[14] != "7" else (uuid.UUID(text).int >> 80) * 1000

    return each_row(micros, pa.int64(), u).cast(pa.timestamp("us", "UTC"))
