"""A long column of others, of values of one width or of codes into dictionaries, taken into memory of our own: copied and
validated in pieces, on threads, as `OwnedText` does it for text. Chunks stay chunks, so that each keeps its dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from gquery import tuning
from gquery.columns.arrow_buffers import bits_of, numpy_name, values_of

Task = Callable[[], None]


class OwnedValues:
    """The copy of an array. Its buffers are long enough. First all of `copies` are done, then all of `checks`; then `chunks`
    are valid. A ValueError or ArrowInvalid says what is wrong. ``copied`` copies and validates a dictionary."""

    def __init__(self, array: pa.ChunkedArray, copied: Callable[[pa.Array], pa.Array]) -> None:
        self._given = [chunk for chunk in array.chunks if len(chunk)]
        self._copied = copied
        self.chunks: list[pa.Array] = []

    def copies(self) -> Iterator[Task]:
        """Tasks that copy values into memory of gquery's own; they may run in any order."""
        for chunk in self._given:
            is_coded = pa.types.is_dictionary(chunk.type)
            values = chunk.indices if is_coded else chunk
            width, rows = values.type.bit_width // 8, len(values)
            given = np.frombuffer(values.buffers()[1], np.uint8)[width * values.offset :][: width * rows]
            made = np.empty(width * rows, np.uint8)
            valid = np.packbits(bits_of(values, 0), bitorder="little") if values.null_count else None
            buffers = [None if valid is None else pa.py_buffer(valid), pa.py_buffer(made)]
            whole = pa.Array.from_buffers(values.type, rows, buffers)
            if is_coded:
                dictionary = self._copied(chunk.dictionary)
                whole = pa.DictionaryArray.from_arrays(whole, dictionary, ordered=chunk.type.ordered, safe=False)
            self.chunks.append(whole)
            step = tuning.ownership.piece_bytes
            for low in range(0, len(made), step):
                yield partial(np.copyto, made[low : low + step], given[low : low + step])

    def checks(self) -> Iterator[Task]:
        """Tasks that validate the copy as Arrow does. They run behind the copies."""
        for chunk in self.chunks:
            for low in range(0, len(chunk), tuning.ownership.piece_rows):
                yield partial(_check, chunk.slice(low, tuning.ownership.piece_rows))


def _check(piece: pa.Array) -> None:
    """Codes within their dictionary need no look at it, which Arrow takes for each piece. Under NULL they may be anything."""
    if pa.types.is_dictionary(piece.type):
        codes: Any = values_of(piece.indices, numpy_name(piece.indices.type))
        codes = codes[bits_of(piece.indices, 0).view(np.bool_)] if piece.null_count else codes
        if not len(codes) or (codes.min() >= 0 and codes.max() < len(piece.dictionary)):
            return
    piece.validate(full=True)
