"""Texts as lists, structs and maps: ``[a, 'b c', NULL]``, ``{x: 1, 'y': [2]}``, ``(1, 2)``, ``{k=v}``, by DuckDB's rules.

A text is taken apart into the texts of its parts, which are cast by themselves. Quotes and backslashes go, but within brackets,
which are the next type's to read.
"""

from __future__ import annotations

from collections.abc import Sequence

_QUOTES = "\"'"
_SPACES = " \t\n\v\f\r"
_CLOSED_BY = {"[": "]", "{": "}", "(": ")"}

Part = str | None


class _Reader:
    """Goes through a text; None in place of what it reads where the text ends too early."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self._is_escaped = False  # a backslash stands before the next character, which means something to a quote alone

    def spaces(self) -> None:
        """Goes over spaces."""
        while self.at < len(self.text) and self.text[self.at] in _SPACES:
            self.at += 1
            self._is_escaped = False

    def take(self, char: str) -> bool:
        """Goes over a character and the spaces around it, where it is the next one."""
        self.spaces()
        if self.text[self.at : self.at + 1] != char:
            return False
        self.at += 1
        self.spaces()
        return True

    def is_over(self) -> bool:
        """Whether nothing but spaces is left."""
        self.spaces()
        return self.at == len(self.text)

    def part(self, ends: str) -> tuple[int, int] | None:
        """Where what stands before one of ``ends`` begins and ends, without the spaces around it; (-1, -1) for nothing."""
        text, start, end = self.text, -1, -1
        while self.at < len(text) and text[self.at] not in ends:
            char, first = text[self.at], self.at
            if (char in _QUOTES and not self._is_escaped and not self._quotes()) or (
                char in _CLOSED_BY and not self._brackets()
            ):
                return None
            if char not in _SPACES:
                start, end = first if start < 0 else start, self.at + 1
            self.at += 1
            self._is_escaped = char == "\\"
        return None if self.at == len(text) else (start, end)

    def _quotes(self) -> bool:
        """Goes to the quote that closes the one here; whether there is one."""
        quote, is_escaped = self.text[self.at], False
        self.at += 1
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == quote and not is_escaped:
                return True
            is_escaped = char == "\\" and not is_escaped
            self.at += 1
        return False

    def _brackets(self) -> bool:
        """Goes to the bracket that closes the one here; whether there is one."""
        open_ = [_CLOSED_BY[self.text[self.at]]]
        self.at += 1
        self._is_escaped = False
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in _QUOTES:
                if not self._is_escaped and not self._quotes():
                    return False
            elif char in _CLOSED_BY:
                open_.append(_CLOSED_BY[char])
            elif char == open_[-1]:
                open_.pop()
                if not open_:
                    return True
            self.at += 1
            self._is_escaped = char == "\\"
        return False


def _value(text: str, place: tuple[int, int]) -> Part:
    """The text of a part; None for NULL."""
    raw = text[max(place[0], 0) : max(place[1], 0)]
    return None if raw.lower() == "null" else _plain(raw)


def _plain(raw: str) -> str:
    """Without the quotes that are in no brackets, and the backslashes before these and in them."""
    if not any(c in raw for c in "\\\"'"):
        return raw
    out: list[str] = []
    scopes: list[str] = []
    quote, is_escaped = "", False
    for n, c in enumerate(raw):
        if is_escaped:
            out.append(c)
            is_escaped = False
        elif not scopes and c == "\\" and (quote or raw[n + 1 : n + 2] in ('"', "'")):
            is_escaped = True
        elif not scopes and c in _QUOTES and quote in ("", c):
            quote = "" if quote else c
        else:
            if not quote and c in _CLOSED_BY:
                scopes.append(_CLOSED_BY[c])
            elif scopes and c == scopes[-1]:
                scopes.pop()
            out.append(c)
    return "".join(out)


def list_parts(text: str) -> list[Part] | None:
    """The texts of a list's elements; None where the text is no list."""
    reader = _Reader(text)
    if not reader.take("["):
        return None
    return _parts(reader, "]")


def _parts(reader: _Reader, end: str) -> list[Part] | None:
    found: list[Part] = []
    while reader.at < len(reader.text):
        place = reader.part("," + end)
        if place is None:
            return None
        is_last = reader.text[reader.at] == end
        if not is_last or place[0] >= 0 or found:
            found.append(_value(reader.text, place))
        reader.take(reader.text[reader.at])
        if is_last:
            return found if reader.is_over() else None
    return None


def pairs(text: str, between: str) -> list[tuple[Part, Part]] | None:
    """The texts of keys and values in braces; None where the text is no such thing."""
    reader = _Reader(text)
    if not reader.take("{"):
        return None
    if reader.take("}"):
        return [] if reader.is_over() else None
    found: list[tuple[Part, Part]] = []
    while reader.at < len(text):
        key = reader.part(between)
        if key is None:
            return None
        reader.take(between)
        value = reader.part(",}")
        if value is None:
            return None
        found.append((_value(text, key), _value(text, value)))
        is_last = text[reader.at] == "}"
        reader.take(text[reader.at])
        if is_last:
            return found if reader.is_over() else None
    return None


def struct_parts(text: str, names: Sequence[str]) -> list[Part] | None:
    """The texts of a struct's fields, NULL for one that is not there; None where the text is no such struct."""
    reader = _Reader(text)
    if reader.take("("):
        found = _parts(reader, ")")
        return found + [None] * (len(names) - len(found)) if found is not None and len(found) <= len(names) else None
    named = pairs(text, ":")
    if named is None or any(k not in names for k, _ in named):
        return None
    by_name = dict(named)
    return [by_name.get(n) for n in names]
