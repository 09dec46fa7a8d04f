"""The machine that numbers belong to: processor, memory, GPUs and their driver, versions of what ran."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import gquery

PACKAGES = (
    "numpy", "numba", "numba-cuda", "llvmlite", "cuda-core", "cuda-bindings", "nvidia-nvvm", "pyarrow", "sqlglot",
    "duckdb", "polars", "tpchgen-cli",
)  # fmt: skip
SEVERAL_NAMES = ("cupy", "cudf-polars")  # followed by the version of CUDA that they are for
ROOT = Path(__file__).resolve().parent.parent


@cache
def machine() -> dict[str, Any]:
    """What the hardware and the system are; ``gpus`` is empty and ``driver`` None where `nvidia-smi` finds nothing."""
    found = gpus()
    return {
        "cpu": _field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "gpus": [name for name, _ in found],
        "driver": found[0][1] if found else None,
    }


@cache
def versions() -> dict[str, str]:
    """Versions of Python, of gquery (with the commit where it is a checkout) and of the packages that matter."""
    found = {"python": platform.python_version(), "gquery": gquery.__version__}
    commit = _output("git", "-C", str(ROOT), "describe", "--always", "--dirty") if (ROOT / ".git").exists() else None
    if commit:
        found["commit"] = commit.strip()
    several = [f"{name}{end}" for name in SEVERAL_NAMES for end in ("", "-cu12", "-cu13", "-cuda12x", "-cuda13x")]
    for package in (*PACKAGES, *several):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


@cache
def gpus() -> list[tuple[str, str]]:
    """Name and driver version of each GPU that may be seen."""
    text = _output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    rows = [line.split(", ") for line in (text or "").splitlines()]
    return [(row[0], row[1]) for row in rows if len(row) == 2]


def _output(*command: str) -> str | None:
    """What a program prints; None where there is no such program or it fails."""
    if shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def _field(path: str, name: str) -> str | None:
    """The first value of that name in a file of ``name : value`` lines."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)
