"""What names meant while something was bound, so that it can be told whether they still mean the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Noted = dict[tuple[str, str], object]
"""What names meant: by kind and name in lower case, `ALL` for what depends on more than names."""
ALL = ("", "")
_noted: ContextVar[Noted | None] = ContextVar("what names meant", default=None)


@contextmanager
def noting() -> Iterator[Noted]:
    """Within it, what this thread asks catalogs for is noted; see `Catalog.still_has`."""
    made: Noted = {}
    token = _noted.set(made)
    try:
        yield made
    finally:
        _noted.reset(token)


def note(key: tuple[str, str], found: object) -> None:
    """Notes what a catalog gives for a name."""
    noted = _noted.get()
    if noted is not None:
        noted[key] = found if noted.get(key, found) is found else noted  # another meanwhile: never the same again
