"""Regular expressions that are compiled when they are first used: a quarter of a millisecond each, of which most processes
use few."""

from __future__ import annotations

import re
from typing import Any, cast


class _Pattern:
    def __init__(self, text: str, flags: int) -> None:
        self._made_of = text, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._made_of), name)  # which `re` keeps
        setattr(self, name, found)
        return found


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile` for a module's constant.

    >>> pattern("b+").search("abbc")[0]
    'bb'
    """
    return cast("re.Pattern[str]", _Pattern(text, flags))
