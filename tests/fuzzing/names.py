"""What expressions of random queries can read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Name:
    """A column that can be read."""

    sql: str
    kind: str
    edge: bool = False
    made: bool = False  # by a query inside this one: of any type and any value of its kind


Names = tuple[Name, ...]
