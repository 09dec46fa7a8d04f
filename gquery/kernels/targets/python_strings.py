"""Strings on the python target: the bytes are copied out once and Python's own methods do the work.

The bodies in `kernels.primitives.strings`, which read a byte at a time, run here too but take a microsecond a byte.
What is a view there is a view here: results are addresses within the argument.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from functools import lru_cache

from gquery.kernels.checks import string_at
from gquery.kernels.primitives.python.integers import hash_i64, hash_words
from gquery.kernels.primitives.python.values import Pointer, Str
from gquery.kernels.primitives.search import PART_WORDS
from gquery.kernels.primitives.strings import str_substring, str_substring_from

__all__ = ["str_substring", "str_substring_from"]
_SPACES = "\u0020\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"


def _bytes(s: Str) -> bytes:
    return string_at(s[0], s[1]) if s[1] else b""


def _text(s: Str) -> str:
    return _bytes(s).decode("utf-8", "replace")


def hash_str(s: Str) -> int:
    length = s[1]
    words = length // 8 + 1  # the last one is what is left of the text, which may be nothing
    return hash_words(hash_i64(length), _words(words).unpack(_bytes(s).ljust(8 * words, b"\0")))


@lru_cache(256)
def _words(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}Q")


def eq_str(s: Str, t: Str) -> bool:
    return s[1] == t[1] and _bytes(s) == _bytes(t)


def ne_str(s: Str, t: Str) -> bool:
    return s[1] != t[1] or _bytes(s) != _bytes(t)


def one_of(s: Str, texts: int, ends: Pointer, count: int) -> bool:
    found = _bytes(s)
    every = string_at(texts, int(ends[count - 1]) if count else 0)
    start = every.find(found)
    while start >= 0:  # the text that this place lies in is compared, or the first one behind it
        k = bisect_left(range(count), start, key=lambda k: int(ends[k - 1]) if k else 0)
        while k < count and (int(ends[k - 1]) if k else 0) == start:
            if int(ends[k]) - start == len(found):
                return True
            k += 1  # behind an empty one
        start = every.find(found, start + 1)
    return False


def lt_str(s: Str, t: Str) -> bool:
    return _bytes(s) < _bytes(t)


def le_str(s: Str, t: Str) -> bool:
    return _bytes(s) <= _bytes(t)


def gt_str(s: Str, t: Str) -> bool:
    return _bytes(s) > _bytes(t)


def ge_str(s: Str, t: Str) -> bool:
    return _bytes(s) >= _bytes(t)


def compare_str(s: Str, t: Str) -> int:
    a, b = _bytes(s), _bytes(t)
    return (a > b) - (a < b)


def str_length(s: Str) -> int:
    return len(_text(s))


def str_contains(s: Str, needle: Str) -> bool:
    return _bytes(needle) in _bytes(s)


def str_starts_with(s: Str, prefix: Str) -> bool:
    return _bytes(s).startswith(_bytes(prefix))


def str_ends_with(s: Str, suffix: Str) -> bool:
    return _bytes(s).endswith(_bytes(suffix))


def str_position(s: Str, needle: Str) -> int:
    data = _bytes(s)
    offset = data.find(_bytes(needle))
    return len(data[:offset].decode("utf-8", "replace")) + 1 if offset >= 0 else 0


def str_part(s: Str, separator: Str, n: int) -> Str:
    data, mark = _bytes(s), _bytes(separator)
    parts = data.split(mark) if mark else [c.encode() for c in data.decode("utf-8", "replace")]
    index = n - 1 if n > 0 else n
    if not n or not -len(parts) <= index < len(parts):
        return s[0] + s[1], 0
    index %= len(parts)
    return s[0] + sum(map(len, parts[:index])) + index * len(mark), len(parts[index])


@lru_cache(256)
def _expression(pattern: bytes, fold: bool) -> re.Pattern[bytes]:
    parts = []
    for byte in pattern:
        if byte == 0xFF:
            parts.append(b".*")
        elif byte == 0xFE:
            parts.append(rb"[\x00-\x7f\xc0-\xff][\x80-\xbf]*")
        else:
            parts.append(re.escape(bytes([byte])))
    return re.compile(b"".join(parts), re.DOTALL | (re.IGNORECASE if fold else 0))


def str_like(s: Str, pattern: Str) -> bool:
    return _expression(_bytes(pattern), False).fullmatch(_bytes(s)) is not None


def str_inside(s: Str, start: Str, end: Str) -> Str:
    rest = s[1] - start[1] - end[1]
    if rest < 0 or not (str_starts_with(s, start) and str_ends_with(s, end)):
        return s[0], -1
    return s[0] + start[1], rest


def str_has_parts(s: Str, parts: Pointer, stop: int, needles: Str) -> bool:
    if s[1] < 0:
        return False
    text, all_parts, at = _bytes(s), _bytes(needles), 0
    for part in range(0, stop, PART_WORDS):
        size, place = parts[part], parts[part + PART_WORDS - 1]
        at = text.find(all_parts[place : place + size], at)
        if at < 0:
            return False
        at += size
    return True


def str_ilike(s: Str, pattern: Str) -> bool:
    return _expression(_bytes(pattern), True).fullmatch(_bytes(s)) is not None


def str_ltrim(s: Str) -> Str:
    kept = len(_text(s).lstrip(_SPACES).encode())
    return s[0] + s[1] - kept, kept


def str_rtrim(s: Str) -> Str:
    return s[0], len(_text(s).rstrip(_SPACES).encode())


def str_trim(s: Str) -> Str:
    return str_rtrim(str_ltrim(s))
