"""The built-in kernels of whole-array operations, so that they can be compiled beside a query's own."""

from __future__ import annotations

import importlib
from functools import cache

from gquery.kernels.builtin.define import BuiltinKernel
from gquery.kernels.kernel import Kernel

MODULES = ("scans", "grouping", "gathers", "define", "order_bits", "counted_order", "partition", "row_partition", "text_keys",
           "text_scan", "parquet_pages", "held_pages", "held_texts", "elements", "prefix_sums", "wide_arrays", "narrowing",
           "json_texts", "marking", "text_coding", "combining", "sort_room", "ranked", "extremes", "reach", "moves", "choosing",
           "group_columns", "group_modes", "group_ranges", "group_texts", "interpolating")  # fmt: skip
ENCODING = ("text_coding", "marking", "narrowing")
ON_CPUS = ("gathers._APPEND", "parquet_pages.READ", "parquet_pages.FOOTER", "held_pages.FETCH", "held_pages.UPLOAD",
           "held_pages.DICTIONARIES", "held_pages.LIST", "json_texts", "moves", *ENCODING)  # fmt: skip
"""Beginnings of names: these have memory fetched early, read files, or encode what comes from outside."""
NOT_AWAITED = ("held_pages", "held_texts", "extremes.ORDERS", "reach", "moves", "choosing", "group_",
               "interpolating", "elements.RENUMBERED", "grouping.COMBINED", "order_bits.PLACED_LATER",
               "scans.SELECTED", "scans.WITHIN", "wide_arrays.DECIMALS", "wide_arrays.UNSIGNED",
               "wide_arrays.WIDE_DECIMALS")  # fmt: skip
"""Beginnings of names: what these do on a GPU, the host does until they are compiled, or few queries ask for."""


def encoding_kernels() -> list[Kernel]:
    """Those that columns are encoded with, on CPUs whatever device runs the queries: first those that are waited for."""
    return [kernel for module in ENCODING for kernel in _kernels_of(module).values()]


@cache
def builtin_kernels(on_gpus: bool = False) -> dict[str, Kernel]:
    """Each by the name it has in its module; of a table of kernels with its key behind it. ``on_gpus``: without
    those that are for CPUs alone."""
    found = {name: kernel for module in MODULES for name, kernel in _kernels_of(module).items()}
    return {name: kernel for name, kernel in found.items() if not (on_gpus and name.startswith(ON_CPUS))}


@cache
def awaited_kernels() -> tuple[Kernel, ...]:
    """Those for which queries on a GPU would wait, so that they are compiled first."""
    return tuple(kernel for name, kernel in builtin_kernels(on_gpus=True).items() if not name.startswith(NOT_AWAITED))


def _kernels_of(module: str) -> dict[str, Kernel]:
    found: dict[str, Kernel] = {}
    for name, value in vars(importlib.import_module(f"gquery.kernels.builtin.{module}")).items():
        if isinstance(value, BuiltinKernel):
            found[f"{module}.{name}"] = value.kernel
        elif isinstance(value, dict):
            found |= {f"{module}.{name}[{k}]": v.kernel for k, v in value.items() if isinstance(v, BuiltinKernel)}
    return found
