"""Values of a column as words of 64 bits, and who makes them of a file's pages.

Arrow's reader of Parquet makes arrays of Arrow's types, integers of 16 bytes for decimals among them, which are narrowed
afterwards. Kernels that read pages themselves (`kernels.builtin.parquet_pages`) make words, which stay in a core's cache
until they are narrowed. Kernels lie above columns and files, so the engine hands them down when it is loaded. Nobody waits for a
compiler here: until they are ready, Arrow does the work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa

from gquery.device.array import Array
from gquery.runtime.records import dataclass


@dataclass(frozen=True, eq=False)
class Words:
    """Some values of a column, none NULL: int64, to be used before the next are asked for. With a ``dictionary`` of texts, which
    are valid, they are codes into it."""

    values: Any
    dictionary: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.values)


class PageKernels(Protocol):
    """What reads pages."""

    def read_chunks(self, state: Array) -> int:
        """See `kernels.primitives.pages.read_chunks`."""
        ...

    def texts(self, source: Array, size: int, offsets: Array, characters: Array) -> bool:
        """Takes texts with lengths in front apart, as many as there are offsets (int32) but the first, which is 0; whether so
        many are there, and no more."""
        ...

    def pick(self, words: Array, bits: Array, first: int) -> int:
        """Moves those words whose bit is set, that of the first one is ``first``, to the front, in order; how many there are.
        Behind the bits lie eight bytes that may be read."""
        ...


_find: Callable[[], PageKernels | None] | None = None


def use_page_kernels(find: Callable[[], PageKernels | None]) -> None:
    """Take kernels from here on, in all of the process."""
    global _find
    _find = find


def page_kernels() -> PageKernels | None:
    """The kernels; None while they are not ready."""
    return None if _find is None else _find()
