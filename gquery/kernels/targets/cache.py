"""The folder of compiled kernels, kept between processes.

A file is named by the hash of everything that decides its machine code: the kernel's text, the primitives' sources, and
the versions of what compiles it. Files are only ever added, whole. The folder holds code that we load, so it must
belong to the user, and nobody else may write to it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import stat
import sys
import tempfile
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType

from gquery.errors import InternalError, OperationalError
from gquery.interrupt import holding

_PACKAGE = Path(__file__).resolve().parent.parent


def cache_directory() -> Path:
    """The folder, made if needed: ``GQUERY_CACHE_DIR``, else the user's cache folder."""
    given = os.environ.get("GQUERY_CACHE_DIR")
    if given:
        return _checked_directory(given)
    import platformdirs

    return _checked_directory(os.path.join(platformdirs.user_cache_dir("gquery"), "kernels"))


@cache
def _checked_directory(name: str) -> Path:
    path = Path(name).expanduser().absolute()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.stat()
    except OSError as e:
        raise OperationalError(f"the kernel cache {path} cannot be used: {e}; set GQUERY_CACHE_DIR") from e
    if hasattr(os, "getuid") and status.st_uid != os.getuid():
        raise OperationalError(f"the kernel cache {path} belongs to another user; set GQUERY_CACHE_DIR to one of yours")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise OperationalError(f"the kernel cache {path} can be written by others; run: chmod go-w {path}")
    return path


@cache
def _fixed_hash() -> str:
    """Hash of the primitives' sources and of the compilers' versions."""
    parts = [sys.version]
    for package in ("numba", "llvmlite", "numba-cuda", "cuda-core", "nvidia-nvvm"):
        try:
            parts.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            parts.append(f"{package} -")
    for file in sorted([*(_PACKAGE / "primitives").glob("*.py"), *(_PACKAGE / "targets").glob("*.py")]):
        parts.append(file.read_text())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def module_path(text: str, *key: str) -> Path:
    """The file that holds a kernel's module; written if it is not there."""
    digest = hashlib.sha256("\0".join([_fixed_hash(), *key, text]).encode()).hexdigest()[:32]
    path = cache_directory() / f"k{digest}.py"
    if not path.exists():
        write_whole(path, text.encode())
    return path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever reads a part of it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(content)
        os.replace(temporary, path)
    except OSError as e:
        Path(temporary).unlink(missing_ok=True)
        raise OperationalError(f"cannot write {path}: {e}") from e


@holding()  # Numba would stay broken where an interrupt ends its import
def load_module(path: Path, again: bool = False) -> ModuleType:
    """Import a file that we wrote, ``again`` if need be. A failure to compile is one line and the place of the text."""
    name = f"gquery_kernels.{path.stem}"
    if name in sys.modules and not again:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Numba's cache finds the module of a function by its name
    try:
        spec.loader.exec_module(module)
    except Exception as e:
        del sys.modules[name]
        raise compile_error(path, e) from e
    except BaseException:  # an interrupt: half a module must not be found by the next query
        del sys.modules[name]
        raise
    return module


def compile_error(path: Path, error: Exception) -> InternalError:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))  # Numba colours its messages
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    said = next((line for line in lines if "Failed in" not in line), "")
    return InternalError(f"a kernel does not compile: {type(error).__name__}: {said[:300]} (source: {path})")
