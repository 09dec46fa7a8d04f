"""Paths into JSON: ``$.a[1]``, ``/a/1``, the name of a field, and those that lead to several values, ``$.a[*]`` and ``$.*``."""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import Any

from gquery.errors import BindError, NotSupportedError

_STEP = re.compile(r'\.(?:"((?:[^"\\]|\\.)*)"|([^.\["*]+)|(\*))|\[(#-|-)?(\d{1,18})\]|(\[#\])|(\[\*\])')


class Every(Enum):
    """A step to several values."""

    FIELD = "*"  # of an object
    PLACE = "[*]"  # of a list


Path = tuple[str | int | Every | None, ...]
"""Names and places, from the end where they are negative; None for none that there is; or a step to several values."""


class _Either(str):
    """A part of a pointer, which is a name in objects and a place in lists."""


@lru_cache(256)
def path_of(text: str, takes_several: bool = False) -> Path:
    """``$.a[1]``, ``/a/1`` or the name of a field. BindError for a path that is none, NotSupportedError for one to several values
    unless these are asked for, and for ``..``."""
    if text[:1] == "/":
        return tuple(_Either(p.replace("~1", "/").replace("~0", "~")) for p in text[1:].split("/"))
    if text[:1] != "$":
        return (text,) if text else ()
    steps: list[str | int | Every | None] = []
    at = 1
    while at < len(text):
        if text[at : at + 2] == "..":
            raise NotSupportedError(f"not supported: '..' in a path of JSON, {text!r}")
        step = _STEP.match(text, at)
        if step is None:
            raise BindError(f"{text!r} is no path of JSON; there is an error near {text[at:]!r}")
        name, plain_name, field, back, place, behind, element = step.groups()
        if field or element:
            steps.append(Every.FIELD if field else Every.PLACE)
        elif place is not None:
            steps.append(-int(place) if back else int(place))
        else:
            steps.append(None if behind else plain_name if name is None else re.sub(r"\\(.)", r"\1", name))
        at = step.end()
    if not takes_several and any(isinstance(s, Every) for s in steps):
        raise NotSupportedError(f"not supported: {text!r}, a path of JSON to several values that is no constant")
    return tuple(steps)


def has_wildcard(text: str) -> bool:
    """Whether a path leads to several values."""
    return any(isinstance(s, Every) for s in path_of(text, True))


MISSING = object()


def part_of(value: Any, path: Path) -> Any:
    """What a path leads to, `MISSING` where there is nothing."""
    for step in path:
        if isinstance(step, str) and isinstance(value, dict):
            value = value.get(step, MISSING)
            continue
        place = int(step) if isinstance(step, _Either) and step.isdecimal() else step
        if not isinstance(place, int) or not isinstance(value, list) or not -len(value) <= place < len(value):
            return MISSING
        value = value[place]
    return value


def parts_of(value: Any, path: Path) -> list[Any]:
    """All values that a path leads to, in their order."""
    found = [value]
    for step in path:
        match step:
            case Every.FIELD:
                found = [inner for v in found if isinstance(v, dict) for inner in v.values()]
            case Every.PLACE:
                found = [inner for v in found if isinstance(v, list) for inner in v]
            case _:
                found = [inner for v in found if (inner := part_of(v, (step,))) is not MISSING]
    return found
