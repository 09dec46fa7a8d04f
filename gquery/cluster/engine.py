"""What all processes of a cluster must have alike: they place rows, choose how states are merged and encode columns by it."""

from __future__ import annotations

import sys

from gquery import tuning
from gquery.errors import OperationalError
from gquery.runtime.tuples import NamedTuple
from gquery.runtime.versions import installed_versions
from gquery.tuning.record import Record

_PACKAGES = ("gquery", "numpy", "pyarrow")


class Engine(NamedTuple):
    """The versions of a process, and the numbers that it works by."""

    versions: str
    numbers: tuple[Record, ...]


def this_engine() -> Engine:
    """That of this process."""
    found = installed_versions(_PACKAGES)
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    versions = ", ".join([python, *(f"{name} {found.get(name, 'of no version')}" for name in _PACKAGES)])
    return Engine(versions, tuple(tuning.records().values()))


def be_like(other: Engine) -> None:
    """Work by the numbers of another process. OperationalError where its versions are others."""
    own = this_engine()
    if own.versions != other.versions:
        raise OperationalError(f"A worker of the cluster has {own.versions}, the connection {other.versions}")
    if different := _different(own, other):
        tuning.use(*different)


def works_otherwise(one: Engine, other: Engine) -> bool:
    """Whether two processes work by different numbers."""
    return bool(_different(one, other))


def _different(own: Engine, other: Engine) -> list[Record]:
    """The records of another process that are not those of this one."""
    numbers = {type(record): vars(record) for record in own.numbers}
    return [record for record in other.numbers if type(record) not in numbers or vars(record) != numbers[type(record)]]
