"""Text that a GPU joins: HostRows whose calls do no more than join columns and constants (``a || b``, ``concat(a, b)``).

A joined text is its pieces one after another. So the views of all pieces, those of a row side by side, are strings that
`gathers.gather_strings` copies one after another, and of the offsets that it gives every n-th is where a row begins. Other
calls of HostRows make text that only the host can make; see `operators.host_rows`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gquery.columns.table import ColumnData, Dictionary
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.device.recording import CannotRecordError
from gquery.expression.expr import Call, Column, Expr, Literal
from gquery.expression.types import PhysicalType
from gquery.kernels.builtin import gathers
from gquery.kernels.builtin.define import address, builtin_kernel, launch
from gquery.kernels.builtin.elements import converted, every
from gquery.kernels.dictionaries import text_of
from gquery.operators.base import Frame
from gquery.planner.physical import HostRows, Stored
from gquery.runtime.tuples import NamedTuple

_KEEPS_NULLS, _PASSES_NULLS = "_joined", "_concatenated"
_AT = "at = mul_i64(add_i64(mul_i64(i64(i), pieces), piece), 2)"  # of the piece among those of all rows
_STORE = "store_i64(made, at, start)", "store_i64(made, add_i64(at, 1), length)"
_VIEW = (
    "start = i64(views[row_index(mul_i64(i64(i), 2))])",
    "length = i64(views[row_index(add_i64(mul_i64(i64(i), 2), 1))])",
)
_MASK = "length = mul_i64(length, i64(valid[i]))"  # nothing lies under NULL
_PIECE = builtin_kernel("views:*i64 pieces:i64 piece:i64 made:*i64", _AT, *_VIEW, *_STORE)
_VALID_PIECE = builtin_kernel("views:*i64 valid:*u8 pieces:i64 piece:i64 made:*i64", _AT, *_VIEW, _MASK, *_STORE)
_SAME = builtin_kernel(
    "characters:i64 size:i64 made:*i64",
    "store_i64(made, shl_i64(i64(i), 1), characters)",
    "store_i64(made, add_i64(shl_i64(i64(i), 1), 1), size)",
)
_BOTH = builtin_kernel(
    "one:*u8 other:*u8 made:*u8", "store_bool(made, i, ne_i64(and_i64(i64(one[i]), i64(other[i])), 0))"
)


class _Piece(NamedTuple):
    """A part of a text: its views (int64, rows by 2), and in which rows it is there (uint8; None: in all)."""

    views: Array
    valid: Array | None


class _Text(NamedTuple):
    """A text as its pieces, and in which rows it is no NULL (uint8; None: in all)."""

    pieces: list[_Piece]
    valid: Array | None


def joins_text(work: HostRows) -> bool:
    """Whether its calls do no more than join texts."""
    return all(isinstance(e, Call) and _is_joined(e) for _, e in work.made)


def _is_joined(e: Expr) -> bool:
    match e:
        case Column(dtype=dtype):
            return dtype.is_string
        case Literal(value, dtype):
            return dtype.is_string and value is not None
        case Call(function=function, args=args):
            return function in (_KEEPS_NULLS, _PASSES_NULLS) and all(map(_is_joined, args))
        case _:
            return False


def run_joined_text(work: HostRows, frame: Frame, device: Device) -> Frame:
    """The frame with the texts."""
    if frame.number is not None:
        raise CannotRecordError("the rows of joined texts are not known before they are made")
    columns = {s.column.id: frame.columns[s.column.id] for s in work.columns if s.column.id in frame.columns}
    made = {stored.column.id: _Joining(frame, device).column(stored, e) for stored, e in work.made}
    return Frame(columns | made, frame.rows, frame.rank_values)


class _Joining:
    """One text column in the making. It holds what views point to until the characters are copied."""

    def __init__(self, frame: Frame, device: Device) -> None:
        self._frame, self._device, self._constants = frame, device, list[Array]()

    def column(self, stored: Stored, e: Expr) -> ColumnData:
        """The text of all rows."""
        xp, rows, device = self._device.xp, self._frame.rows, self._device
        text = self._text(e)
        width = len(text.pieces)
        views = xp.empty(2 * rows * width, np.int64)
        for n, piece in enumerate(text.pieces):
            if piece.valid is None:
                launch(_PIECE, rows, views, piece.views, width, n, views)
            else:
                launch(_VALID_PIECE, rows, views, piece.views, piece.valid, width, n, views)
        offsets, characters = gathers.gather_strings(views, device=device)
        validity = text.valid
        if validity is None and stored.properties.nullable:
            validity = device.full(rows, 1, np.uint8)
        return ColumnData(
            stored.properties.dtype, PhysicalType.STRING64, rows, Buffer(every(offsets, width), device),
            None if validity is None else Buffer(validity, device), Buffer(characters, device),
        )  # fmt: skip

    def _text(self, e: Expr) -> _Text:
        match e:
            case Column(id=id_):
                return self._of_column(self._frame.columns[id_])
            case Literal(value):
                assert isinstance(value, str)
                return _Text([_Piece(self._constant(value.encode()), None)], None)
            case Call(function=function, args=args):
                each = [self._text(a) for a in args]
                return self._all_of(each) if function == _KEEPS_NULLS else _those_there(each)
            case _:
                raise AssertionError(e)

    def _of_column(self, column: ColumnData) -> _Text:
        device = self._device
        valid = None if column.validity is None else column.validity.on(device)
        if isinstance(column.dictionary, Dictionary):
            codes = converted(column.data.on(device), np.uint32)
            views = gathers.string_views(text_of(column.dictionary), device, codes)
        else:
            views = gathers.string_views(column, device)
        return _Text([_Piece(views, valid)], valid)

    def _constant(self, text: bytes) -> Array:
        """The views of a constant."""
        characters = self._device.from_host(np.frombuffer(text or b"\0", np.uint8))
        self._constants.append(characters)
        views = self._device.empty(2 * self._frame.rows, np.int64)
        launch(_SAME, self._frame.rows, views, address(characters), len(text), views)
        return views

    def _all_of(self, each: Sequence[_Text]) -> _Text:
        """All of them joined, NULL with a NULL."""
        valid: Array | None = None
        for text in each:
            valid = self._both(valid, text.valid)
        return _Text([_Piece(p.views, self._both(p.valid, valid)) for text in each for p in text.pieces], valid)

    def _both(self, one: Array | None, other: Array | None) -> Array | None:
        """The rows that are in both."""
        if one is None or other is None or one is other:
            return other if one is None else one
        made = self._device.empty(one.size, np.uint8)
        launch(_BOTH, one.size, made, one, other, made)
        return made


def _those_there(each: Sequence[_Text]) -> _Text:
    """Those joined that are no NULL; of these no piece is there."""
    return _Text([piece for text in each for piece in text.pieces], None)
