"""Shapes of texts that were asked before, found without lexing: lexing is a third of what finding a template's plan takes.

A text is cut at its constants by one regular expression. The parts between them, and the types of the constants, are the key
of a shape that the lexer has made. It is kept only where the lexer found the same constants as the expression did.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence

from gquery import tuning
from gquery.sql.cut import Shape, ShapeKey, type_of
from gquery.sql.lexer import split_at_constants


class KnownShapes:
    """The shapes of the texts that were asked last."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, ShapeKey] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, sql: str) -> Shape | None:
        """The shape of a text, if one like it is known."""
        parts = split_at_constants(sql)
        if parts is None:
            return None
        key = self._known.get(_key(parts))
        return None if key is None else Shape(key, _constants(parts), _starts(parts))

    def keep(self, sql: str, shape: Shape) -> None:
        """Remember the shape that the lexer found."""
        parts = split_at_constants(sql)
        if parts is None or (_constants(parts), _starts(parts)) != (shape.constants, shape.starts):
            return
        with self._lock:
            self._known[_key(parts)] = shape.key
            while len(self._known) > tuning.memory.plans:
                self._known.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._known.clear()


def _constants(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple([text for text in parts[1::2] if text[0] != '"'])


def _key(parts: Sequence[str]) -> Hashable:
    """What stands between constants, and their types."""
    return *parts[0::2], *[text if text[0] == '"' else type_of(text) for text in parts[1::2]]


def _starts(parts: Sequence[str]) -> tuple[int, ...]:
    """Where the constants begin."""
    starts: list[int] = []
    at = 0
    for n, text in enumerate(parts):
        if n % 2 and text[0] != '"':
            starts.append(at)
        at += len(text)
    return tuple(starts)
