"""LIKE patterns as kernels read them: bytes, and tables of the parts that stand between the %.

What is made here is the same for every row, so it is made once, on the host: `kernels.like` has it tested row by row,
`kernels.builtin.text_scan` looks for it in the characters of a whole column.
"""

from __future__ import annotations

from itertools import cycle, islice, zip_longest

import numpy as np

from gquery import tuning
from gquery.device.buffer import Buffer
from gquery.runtime.records import dataclass

ANY, ONE = 0xFF, 0xFE  # % and _ in a prepared pattern: bytes that UTF-8 never has
KEY_WORDS = 4  # of a window in `ScannedPattern.keys`
_ROOM, _SPARE_WORDS = 32, 3  # words: steps in which packed patterns grow, and what may be read behind the needles
_EVERY_BYTE = 0x0101010101010101
_WIDE, _NARROW = 4, 2  # bytes of an aligned unit of the characters that is compared at once


def like_pattern(pattern: str, escape: str) -> bytes:
    """A LIKE pattern as kernels read it: 0xFF for %, 0xFE for _, other bytes literal (UTF-8 uses neither).

    >>> like_pattern("50!%%", "!")
    b'50%\\xff'
    """
    out, i = bytearray(), 0
    while i < len(pattern):
        c = pattern[i]
        if escape and c == escape and i + 1 < len(pattern):
            i += 1
            out += pattern[i].encode()
        elif c == "%":
            if not out or out[-1] != ANY:
                out.append(ANY)
        elif c == "_":
            out.append(ONE)
        else:
            out += c.encode()
        i += 1
    return bytes(out)


def part_table(parts: list[bytes]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """What the search wants to know of each part: its length; its first byte eight times, its second likewise, and which
    second bytes do (all, of a part of one byte); its first eight bytes as a word, and which of them it has; where it begins
    in all parts one after another.

    >>> [int(w) & 2**64 - 1 for w in part_table([b"a"])]
    [1, 7016996765293437281, 0, 18446744073709551615, 97, 255, 0]
    """
    words: list[int] = []
    place = 0
    for part in parts:
        first, size = part[:8], len(part)
        second = part[1] * _EVERY_BYTE if size > 1 else 0
        loose = 0 if size > 1 else 2**64 - 1
        mask = 2 ** (8 * len(first)) - 1
        words += [size, part[0] * _EVERY_BYTE, second, loose, int.from_bytes(first, "little"), mask, place]
        place += size
    return np.array(words, np.uint64).view(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class ScannedPattern:
    """A pattern without ``_`` that a text scan can look for, as it was ``prepared``.

    Bytes of a part, twice ``unit`` less one of them, are a *window*: wherever they occur, an aligned unit of the characters lies
    within them. ``keys`` (int64, `KEY_WORDS` a window) has for each of the ``windows`` the units that it can have at an aligned
    place, by how many of its bytes stand before it. ``parts`` is the `part_table` of all parts. ``needles`` (uint8) has the bytes
    of the beginning, of the parts one after another, and of the end; ``begin``, ``middle`` and ``end`` are how many each has."""

    prepared: bytes
    unit: int
    windows: int
    keys: Buffer
    parts: Buffer
    needles: Buffer
    begin: int
    middle: int
    end: int

    def packed(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """All that kernels read of the pattern, as `PackedPattern` says: as long for others that are about as long."""
        places = PackedPattern(self)
        words = np.zeros(places.size, np.int64)
        words[: places.keys] = [self.parts.length, self.begin, self.middle, self.end]
        words[places.keys : places.keys + self.keys.length] = self.keys.host
        words[places.parts : places.parts + self.parts.length] = self.parts.host
        words[places.needles :].view(np.uint8)[: self.needles.length] = self.needles.host
        return words

    def is_like(self, other: ScannedPattern) -> bool:
        """Whether the same kernels look for both, in the same places of their packed words."""
        mine, theirs = PackedPattern(self), PackedPattern(other)
        kinds = (self.unit, self.windows) == (other.unit, other.windows)
        return kinds and (mine.parts, mine.needles, mine.size) == (theirs.parts, theirs.needles, theirs.size)

    def in_form_of(self, other: ScannedPattern) -> ScannedPattern:
        """The pattern with as wide units and as many windows as another one has, so that it is like that one; as it is where its
        parts are too short for them, have more windows to choose from, or take more room."""
        if self.is_like(other) or longest_part(self.prepared) < 2 * other.unit - 1:
            return self
        made = _scanned(self.prepared, other.unit, other.windows)
        return made if made.is_like(other) else self


class PackedPattern:
    """Where the words (int64) of a packed pattern are: first how many ``parts`` has, then ``begin``, ``middle`` and ``end``; from
    ``keys`` on the keys, and so on. ``size`` are all words."""

    def __init__(self, pattern: ScannedPattern) -> None:
        self.keys = 4
        self.parts = self.keys + pattern.keys.length
        self.needles = self.parts + _rounded(pattern.parts.length)
        self.size = self.needles + _rounded(pattern.needles.length // 8 + _SPARE_WORDS)


def _rounded(words: int) -> int:
    """Room for words that other patterns have, too."""
    return -(-max(words, 1) // _ROOM) * _ROOM


def longest_part(prepared: bytes) -> int:
    """The bytes of the longest part of a prepared pattern; 0 where it has none, or is matched a code point at a time."""
    if ONE in prepared:
        return 0
    return max(map(len, prepared.split(bytes([ANY]))[1:-1]), default=0)


def scanned_pattern(prepared: bytes) -> ScannedPattern:
    """What a text scan wants to know of a prepared pattern, whose `longest_part` has three bytes at least.

    >>> p = scanned_pattern(b"\\xffspecial\\xffrequests\\xff")
    >>> p.unit, p.windows, p.keys.host[:4].tobytes()[::2]
    (4, 2, b'se\\x00\\x00pc\\x00\\x00ei\\x00\\x00ca\\x00\\x00')
    """
    unit = _WIDE if longest_part(prepared) >= 2 * _WIDE - 1 else _NARROW
    return _scanned(prepared, unit)


def _scanned(prepared: bytes, unit: int, least: int = 0) -> ScannedPattern:
    """A pattern with such units, and so many windows at least: some come again then."""
    begin, *parts, end = prepared.split(bytes([ANY]))
    found = _windows(parts, unit)
    found = list(islice(cycle(found), max(least, len(found))))
    keys = [[int.from_bytes(w[k : k + unit], "little") for k in range(unit)] for w in found]
    assert keys, "a part of three bytes"
    needles = begin + b"".join(parts) + end
    return ScannedPattern(
        prepared,
        unit,
        len(keys),
        Buffer(np.array([row + [0] * (KEY_WORDS - unit) for row in keys], np.int64).reshape(-1)),
        Buffer(part_table(parts)),
        Buffer(np.frombuffer(needles, np.uint8).copy()),
        len(begin),
        sum(map(len, parts)),
        len(end),
    )


def _windows(parts: list[bytes], unit: int) -> list[bytes]:
    """Windows of the parts that are long enough: the first one of each part; of units that are in many texts also the last one of
    each, and then others.

    >>> _windows([b"google", b"a", b"maps"], 2)
    [b'goo', b'map', b'gle', b'aps', b'oog', b'ogl']
    >>> _windows([b"requests", b"special"], 4)
    [b'request', b'special']
    """
    size, of_each = 2 * unit - 1, []
    for part in parts:
        starts = range(len(part) - size + 1)
        more = (*starts[1:][-1:], *starts[1:-1]) if unit == _NARROW else ()
        of_each.append([part[s : s + size] for s in (*starts[:1], *more)])
    most, turns = tuning.text_scans.sampled_windows, zip_longest(*of_each)
    found = [w for turn in turns for w in turn if w is not None][:most]
    # as many for most patterns, so that a recorded run serves others (`is_like`)
    if unit == _NARROW and len(found) > 1:
        found = list(islice(cycle(found), most))
    return found
