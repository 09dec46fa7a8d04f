"""Versions of packages are those that `importlib.metadata` tells."""

from __future__ import annotations

import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from gquery.runtime.versions import installed_versions

NAMES = ("numba", "llvmlite", "numpy", "pyarrow", "pytest", "no-such-package")


def test_those_of_this_process() -> None:
    assert installed_versions(NAMES) == {name: version(name) for name in NAMES[:-1]}


def test_the_first_on_the_path_however_its_name_is_spelled(tmp_path: Path) -> None:
    for folder, entry in (
        ("a", "numba_cuda-0.3.dist-info"),
        ("b", "Numba.Cuda-0.9.dist-info"),
        ("b", "x-1.0-py3.egg-info"),
    ):
        (tmp_path / folder / entry).mkdir(parents=True)
    path = [str(tmp_path / name) for name in ("missing", "a", "b")]
    assert installed_versions(["numba-cuda", "x", "cuda"], path) == {"numba-cuda": "0.3", "x": "1.0"}


def test_packages_in_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as packed:
        packed.writestr("packed_one-2.5.dist-info/METADATA", "Name: packed-one\nVersion: 2.5\n")
    monkeypatch.syspath_prepend(str(tmp_path / "packed.zip"))
    assert installed_versions(["packed-one", "numba"]) == {"packed-one": "2.5", "numba": version("numba")}
