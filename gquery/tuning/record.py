"""What the records of tuning share: numbers with a unit, a meaning and the measurement behind them.

The modules of records do without ``from __future__ import annotations``: `dataclasses` matches an annotation that is text with
expressions, which took 1 ms of a process's first query.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError, field, fields
from typing import Any, NamedTuple, TypeVar, cast

Value = TypeVar("Value", int, float)


def number(value: Value, unit: str, meaning: str, measured: str = "") -> Value:
    """A field of a `Record`. ``measured`` begins a heading of benchmarks/NOTES.md; empty where no measurement is known."""
    made: Any = field(default=value, metadata={"unit": unit, "meaning": meaning, "measured": measured})
    return made  # type: ignore[no-any-return]  # a dataclass reads a Field as the default of a number


class Record:
    """A group of numbers that are tuned together; it does not change. Each is a dataclass without methods of its own, which
    Python would compile while gquery is imported, for 10 ms in all."""

    def __init__(self, **given: int | float) -> None:
        """Those that are ``given``, by name, in place of the defaults, which are the class's."""
        if unknown := given.keys() - {f.name for f in fields(cast(Any, self))}:
            raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(unknown))}")
        vars(self).update(given)

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")


class Described(NamedTuple):
    """One number of a record as the documentation lists it."""

    name: str
    value: int | float
    unit: str
    meaning: str
    measured: str


def described(record: Record) -> list[Described]:
    """Every number of a record with what stands at its field.

    >>> from gquery import tuning
    >>> described(tuning.join_order)[0].name
    'most_by_dp'
    """
    return [
        Described(f.name, getattr(record, f.name), f.metadata["unit"], f.metadata["meaning"], f.metadata["measured"])
        for f in fields(cast(Any, record))
    ]
