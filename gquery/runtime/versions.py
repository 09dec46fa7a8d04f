"""Versions of installed packages, by the names of the folders that tell of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress


def installed_versions(names: Sequence[str], path: Sequence[str] | None = None) -> dict[str, str]:
    """The version of each package of these names that is installed: the first one on ``path`` (None: ``sys.path``).

    `importlib.metadata` takes 10 ms for that, as it brings a parser of letters along and reads each package's own.
    """
    path = sys.path if path is None else path
    wanted = {_normal(name): name for name in names}
    found: dict[str, str] = {}
    for folder in path:
        try:
            entries = os.listdir(folder or ".")
        except OSError:
            if os.path.isfile(folder):  # packages in an archive: who knows how to read it
                return _told_versions(names)
            continue
        for entry in sorted([entry for entry in entries if entry.endswith((".dist-info", ".egg-info"))]):
            parts = entry.rpartition(".")[0].split("-")  # name-version, name-version-py3.11
            if len(parts) > 2 and parts[-1].startswith("py"):
                parts.pop()
            name = wanted.get(_normal("-".join(parts[:-1])))
            if name is not None:
                found.setdefault(name, parts[-1])
    return found


def _told_versions(names: Sequence[str]) -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str] = {}
    for name in names:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _normal(name: str) -> str:
    """Names are equal where these are (PEP 503). No regular expression: to compile one takes longer than all the rest."""
    return "-".join([part for part in name.lower().replace("_", "-").replace(".", "-").split("-") if part])
