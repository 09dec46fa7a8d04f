"""Chunks of Parquet that a GPU decodes: what is found of each, and who does it.

Kernels lie above columns and files, so the engine hands them down when it is loaded. Nobody waits for a compiler here: until
they are ready, the host's cores decode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from gquery.device.array import Array
from gquery.device.device import Device
from gquery.runtime.records import dataclass

# Pages.
AT, LEADING, PACKED, SIZE, CODEC, KIND, COUNT, LEVELS = range(1, 9)
"""Words of a page that is listed, behind the number of its chunk, as `kernels.primitives.page_list` has them."""
PAGE_SOURCE, PAGE_KIND, PAGE_TARGET, PAGE_BASE, PAGE_WORDS, PAGE_DICTIONARY, PAGE_ENTRIES = 0, 5, 8, 9, 10, 11, 12
PAGE_PLACE, PAGE_ENDINGS, PAGE_WIDTH, PAGE_BEFORE, PAGE = range(13, 18)
"""Words of a page to decode, as `kernels.primitives.held_texts` has them; those from `LEADING` to `LEVELS` begin at 1."""
IS_DONE, BYTES, FOUND = 0, 1, 3
"""Words that tell what was found of a page, as `kernels.primitives.held_texts` has them."""
PLAIN, CODES, DICTIONARY = range(3)
"""Kinds of pages."""
LONGEST_PAGE = (1 << 24) - 1  # bytes, unpacked, of which words tell


@dataclass(frozen=True, eq=False)
class HeldChunks:
    """Chunks of a column whose bytes lie on a device: ``states`` (int64, a row each) as `kernels.primitives.pages` has them. The
    values, integers of ``size`` bytes, go to the addresses ``places``, which are those of the column's rows ``rows``; ``low`` and
    ``high`` (int64) take the extremes of each ``block`` rows of the column. With a ``table`` (int64) the entries of dictionaries
    lie there, as many bytes behind its beginning as states say in place of an address."""

    states: Any
    places: Any
    rows: Any
    size: int
    low: Any
    high: Any
    block: int
    table: Any = None


class HeldAssembly(Protocol):
    """A column in the making whose values a device decodes."""

    def device_values(self, device: Device) -> Any:
        """Where the values go, all of them."""
        ...

    def blocks(self) -> tuple[int, Any, Any]:
        """Of how many rows a block is, and room for the extremes of each (int64), as if it had no rows."""
        ...

    def take_found(self, found: Any, low: Any, high: Any, pick: Callable[[Any], Any]) -> None:
        """What was found of values that are on the device, of each chunk in order (`page_values.FOUND`) and of blocks. ``pick``
        gives the values of some rows (int64), as words of which the low bytes count. MisfitError where the column cannot hold
        them."""
        ...


class HeldKernels(Protocol):
    """What decodes them."""

    def fetch(self, file: int, chunks: Array) -> bool:
        """Reads bytes of a file that is open into the host's memory. ``chunks`` (int64) has the address that they go to, how many
        they are, and where in the file they begin, for each. Whether all came."""
        ...

    def upload(self, job: Array) -> int:
        """Reads ranges of a file and begins to copy them to a device: what it ended with, for a job of
        `kernels.primitives.uploads`."""
        ...

    def dictionaries(self, states: Array) -> bool:
        """Takes entries of dictionaries with which chunks begin whose bytes lie in the host's memory: ``states`` (int64, a row
        each) as `kernels.primitives.pages` has them, each of which says behind it how many texts there are up to there, and where
        the page behind the dictionary lies. All texts go where the first row says, numbers where each does. Whether each has one,
        and there was room."""
        ...

    def list_pages(self, file: int, chunks: Array, has_levels: bool, entry_bytes: int, largest: int) -> Array | None:
        """The pages (int64, a row each) of chunks in an open file, of which ``chunks`` (int64) has where they begin, how many
        bytes and values they have, and 1 for Snappy. An entry of a dictionary has ``entry_bytes`` at least, a page ``largest`` at
        most. None where they contradict themselves, or kernels would not read them."""
        ...

    def decode(self, device: Device, chunks: HeldChunks) -> Array:
        """Decodes chunks, and waits for that; int64 of chunks x `page_values.FOUND`, of which the host gets no more."""
        ...

    def pick(self, device: Device, address: int, size: int, places: Array) -> Array:
        """The low ``size`` bytes (int64) of values of an array on a device, which begins at an address, at some places."""
        ...


class HeldTextKernels(HeldKernels, Protocol):
    """What decodes texts."""

    def decompress_texts(self, device: Device, pages: Array) -> Array:
        """Unpacks pages (int64, a row each), and makes a word of each text; int64 of pages x `FOUND`."""
        ...

    def place_texts(self, device: Device, pages: Array, found: Array) -> bool:
        """Puts the texts of such pages in their places, whether all are UTF-8."""
        ...


_find: Callable[[Device], HeldKernels | None] | None = None
_find_for_texts: Callable[[Device], HeldTextKernels | None] | None = None


def use_held_kernels(find: Callable[[Device], HeldKernels | None]) -> None:
    """Take kernels from here on, in all of the process."""
    global _find
    _find = find


def use_held_text_kernels(find: Callable[[Device], HeldTextKernels | None]) -> None:
    """The same of those for texts."""
    global _find_for_texts
    _find_for_texts = find


def held_kernels(device: Device) -> HeldKernels | None:
    """The kernels of a GPU; None while they are not ready."""
    return None if _find is None else _find(device)


def held_text_kernels(device: Device) -> HeldTextKernels | None:
    """The same of those for texts."""
    return None if _find_for_texts is None else _find_for_texts(device)
