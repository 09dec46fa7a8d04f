"""Settings: a frozen record, read once from the environment (``GQUERY_*``) and changed by ``SET name = value``.

A connection holds one `Settings`; SET replaces it by a new one, so a plan that is keyed by its settings never sees them
change. SET wins over the arguments of `connect`, those over the environment, that over the defaults.
"""

from __future__ import annotations

import os
import re
from dataclasses import fields, replace
from typing import Any, Literal

from gquery.errors import InterfaceError, ProgrammingError, did_you_mean
from gquery.runtime.records import dataclass
from gquery.runtime.threads import core_count


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user may choose. The field's comment is its documentation; its annotation decides how text is read."""

    interpret_limit: int = 100_000  # row-steps up to which a pipeline is interpreted; 0 always compiles
    threads: int | None = None  # workers of the cpu target; None takes the cores that the process may use
    memory_limit: int | None = None  # bytes on the device of the connection ("8GB" in text); None takes what is free
    host_memory_limit: int | None = (
        None  # bytes of the host for what does not fit memory_limit on a GPU; None: what is free
    )
    spill_directory: str | None = (
        None  # where arrays lie that fit neither of these limits; None: temporary files' folder
    )
    spill_limit: int | None = None  # bytes that they may take there; None: nine tenths of what is free on its disk
    partitions: int = 1  # row ranges that a query is split into
    disabled_rules: frozenset[str] = frozenset()  # optimizer rules that are switched off, separated by commas
    python_scan: bool = True  # names in SQL that are no tables mean variables of the caller, such as data frames
    narrow: bool = True  # copy columns at load into the narrowest integers that hold them
    replay: bool = True  # record a query on a GPU that comes again as a CUDA graph, which then runs as one launch
    timezone: Literal["UTC"] = "UTC"  # by whose clock moments are read that are cast, cut or taken apart
    compiler: Literal["auto", "llvm", "numba"] = "auto"  # what makes machine code of kernels; auto: llvm

    @property
    def worker_count(self) -> int:
        """``threads``, or the number of cores that this process may use."""
        return core_count() if self.threads is None else self.threads

    def with_option(self, name: str, value: Any) -> Settings:
        """A copy with one setting changed; ``value`` may be text. ProgrammingError for an unknown name or a bad value.

        >>> Settings().with_option("memory_limit", "2GB").memory_limit
        2000000000
        """
        name = name.lower()
        if name not in _TYPES:
            raise ProgrammingError(f'There is no setting "{name}".{did_you_mean(name, _TYPES)}')
        return replace(self, **{name: _parse(name, value)})


_TYPES: dict[str, str] = {f.name: str(f.type) for f in fields(Settings)}
_LEAST = {
    "interpret_limit": 0,
    "threads": 1,
    "memory_limit": 1,
    "host_memory_limit": 1,
    "spill_limit": 0,
    "partitions": 1,
}
LIMITS = ("memory_limit", "host_memory_limit", "spill_limit")
_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
          "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}  # fmt: skip


def parse_bytes(text: str | int) -> int:
    """A number of bytes from text with an optional unit.

    >>> parse_bytes("1.5 GiB")
    1610612736
    """
    match_ = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", str(text))
    if not match_ or match_[2].lower() not in _UNITS:
        raise ValueError(f"{text!r} is not a number of bytes, as 500MB or 2GiB are")
    return int(float(match_[1]) * _UNITS[match_[2].lower()])


def from_environment() -> Settings:
    """The defaults with every ``GQUERY_<NAME>`` of the environment applied; InterfaceError for a value that is none."""
    settings = Settings()
    for name in _TYPES:
        text = os.environ.get(f"GQUERY_{name.upper()}")
        if text:
            try:
                settings = settings.with_option(name, text)
            except ProgrammingError as error:
                raise InterfaceError(f"The environment variable GQUERY_{name.upper()}: {error}") from None
    return settings


def _parse(name: str, value: Any) -> Any:
    kind = _TYPES[name]
    if "None" in kind and (value is None or str(value).lower() in ("none", "default", "auto", "")):
        return None
    try:
        if kind.startswith("int"):
            number = parse_bytes(value) if name in LIMITS else int(str(value))
            if number < _LEAST[name]:
                raise ValueError(f"the least is {_LEAST[name]}")
            return number
        if kind == "bool":
            return {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}[str(value).lower()]
        if kind.startswith("Literal"):
            found = next((word for word in re.findall(r"[\w]+", kind)[1:] if word.lower() == str(value).lower()), None)
            if found is None:
                raise ValueError("")
            return found
        if kind.startswith("frozenset"):
            items = value.split(",") if isinstance(value, str) else value
            return frozenset(str(x).strip() for x in items if str(x).strip())
        return str(value)
    except (ValueError, KeyError, TypeError) as error:
        reason = f": {error}" if isinstance(error, ValueError) and str(error) else ""
        raise ProgrammingError(f"{value!r} is no value for the setting {name} ({kind}){reason}") from None
