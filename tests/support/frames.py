"""Frames made by hand: columns of a physical type that a test names, and their values back as Python's."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.columns.table import ColumnData, Dictionary
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.expression.types import BIGINT, BOOLEAN, DOUBLE, VARCHAR, PhysicalType
from gquery.kernels.builtin.gathers import gather_views, string_views
from gquery.operators.base import Frame

Values = Sequence[Any]
KINDS = {
    PhysicalType.BOOL: BOOLEAN, PhysicalType.F32: DOUBLE, PhysicalType.F64: DOUBLE, PhysicalType.STRING32: VARCHAR,
    PhysicalType.STRING64: VARCHAR, PhysicalType.VIEW: VARCHAR,
}  # fmt: skip
LEFT_OUT = "left out"  # stands before the texts of a column


def column(values: Values, physical_type: PhysicalType, device: Device, nullable: bool | None = None) -> ColumnData:
    """A column on a device; with validity if there is a None, or if it is to be."""
    has_null = any(v is None for v in values) if nullable is None else nullable
    ok = Buffer(device.from_host(np.array([v is not None for v in values], np.uint8)), device) if has_null else None
    dtype = KINDS.get(physical_type, BIGINT)
    if physical_type.is_string:
        return _text([v or "" for v in values], ok, physical_type, device)
    data = Buffer(device.from_host(_fixed([v or 0 for v in values], physical_type)), device)
    return ColumnData(dtype, physical_type, len(values), data, ok)


def _fixed(values: Values, physical_type: PhysicalType) -> np.ndarray:
    if physical_type is not PhysicalType.I128:
        return np.array(values, physical_type.numpy)
    words = [w for v in values for w in ((v + 2**63) % 2**64 - 2**63, v >> 64)]
    return np.array(words, np.int64)


def _text(values: Sequence[str], ok: Buffer | None, physical_type: PhysicalType, device: Device) -> ColumnData:
    """Texts whose first offset is not 0."""
    encoded = [v.encode() for v in (LEFT_OUT, *values)]
    wide = physical_type is not PhysicalType.STRING32
    offsets = np.cumsum([0, *map(len, encoded)]).astype(np.int64 if wide else np.int32)[1:]
    characters = Buffer(device.from_host(np.frombuffer(b"".join(encoded), np.uint8)), device)
    data = Buffer(device.from_host(np.ascontiguousarray(offsets)), device)
    plain = PhysicalType.STRING64 if wide else PhysicalType.STRING32
    made = ColumnData(VARCHAR, plain, len(values), data, ok, characters)
    if physical_type is not PhysicalType.VIEW:
        return made
    views = Buffer(string_views(made, device), device)
    return ColumnData(VARCHAR, PhysicalType.VIEW, len(values), views, ok, None, owners=(characters,))


def encoded(values: Values, device: Device, physical_type: PhysicalType = PhysicalType.U8) -> ColumnData:
    """A dictionary-encoded column of texts."""
    entries = sorted({v for v in values if v is not None}, key=str.encode) or ["none"]
    codes = column([None if v is None else entries.index(v) for v in values], physical_type, device)
    made = ColumnData(VARCHAR, physical_type, len(values), codes.data, codes.validity)
    return ColumnData(
        VARCHAR, physical_type, made.length, made.data, made.validity, None, Dictionary(pa.array(entries, pa.string()))
    )


def frame(*columns: ColumnData) -> Frame:
    """A frame whose columns are numbered from 0 on."""
    return Frame(dict(enumerate(columns)), columns[0].length if columns else 0)


def values_of(column: ColumnData) -> list[Any]:
    """The values of a column, None for NULL; floats as they lie, bit by bit."""
    ok = [True] * column.length if column.validity is None else column.validity.host[: column.length].tolist()
    return [v if k else None for v, k in zip(_payloads(column), ok, strict=True)]


def _payloads(column: ColumnData) -> list[Any]:
    data = column.data.host
    if isinstance(column.dictionary, Dictionary):
        return [column.dictionary.strings[k] for k in data.tolist()]
    match column.physical_type:
        case PhysicalType.I128:
            return [int(h) << 64 | int(low) & 2**64 - 1 for low, h in data.reshape(-1, 2)]
        case PhysicalType.VIEW:
            return _payloads(gather_views(column, column.data.devices[0]))
        case PhysicalType.STRING32 | PhysicalType.STRING64:
            assert column.characters is not None
            text = column.characters.host.tobytes()
            return [text[a:b].decode() for a, b in zip(data[:-1].tolist(), data[1:].tolist(), strict=True)]
        case PhysicalType.F32 | PhysicalType.F64:
            return [struct.pack("<d", v) for v in data.astype(np.float64).tolist()]
        case _:
            return list(data.tolist())


def rows_of(frame: Frame) -> list[tuple[Any, ...]]:
    """The rows of a frame."""
    columns = [values_of(c) for c in frame.columns.values()]
    assert all(len(c) == frame.rows for c in columns)
    return list(zip(*columns, strict=True)) if columns else [()] * frame.rows
