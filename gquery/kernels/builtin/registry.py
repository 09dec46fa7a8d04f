"""The built-in kernels of whole-array operations, so that they can be compiled beside a query's own."""

from __future__ import annotations

import importlib
from functools import cache

from gquery.kernels.builtin.define import BuiltinKernel
from gquery.kernels.kernel import Kernel

MODULES = ("scans", "grouping", "gathers", "define", "order", "counted_order", "partition", "row_partition", "text_keys",
           "text_scan", "parquet_pages")  # fmt: skip
OF_FILES = ("parquet_pages",)


@cache
def builtin_kernels(on_gpus: bool = False) -> dict[str, Kernel]:
    """Each by the name it has in its module; of a table of kernels with its key behind it. Those that read files are not for
    GPUs."""
    found: dict[str, Kernel] = {}
    for module in MODULES:
        if on_gpus and module in OF_FILES:
            continue
        for name, value in vars(importlib.import_module(f"gquery.kernels.builtin.{module}")).items():
            if isinstance(value, BuiltinKernel):
                found[f"{module}.{name}"] = value.kernel
            elif isinstance(value, dict):
                found |= {f"{module}.{name}[{k}]": v.kernel for k, v in value.items() if isinstance(v, BuiltinKernel)}
    return found
