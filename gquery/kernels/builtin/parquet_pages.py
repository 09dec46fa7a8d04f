"""The kernels of `io.pages`: pages of Parquet into words, and the texts of a dictionary taken apart."""

from __future__ import annotations

from typing import cast

import numpy as np

from gquery.columns.page_values import PageKernels, use_page_kernels
from gquery.device.array import Array
from gquery.device.host import address_of
from gquery.kernels.builtin.define import builtin_kernel
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import Compiled, MorselTarget, arguments_of

READ = builtin_kernel("state:*i64 outcome:*i64", "store_i64(outcome, i64(i), read_pages(state))")
TEXTS = builtin_kernel(
    "source:i64 size:i64 count:i64 offsets:i64 characters:i64 found:*i64",
    "store_i64(found, i64(i), from_bool(text_entries(source, size, count, offsets, characters)))",
)
_asked: set[str] = set()  # digests of kernels that are being compiled


class _Kernels:
    """Both kernels, compiled."""

    def __init__(self, read: Compiled, texts: Compiled) -> None:
        self._read, self._texts = read, texts

    def read_pages(self, state: Array) -> int:
        outcome = np.zeros(1, np.int64)
        _run(self._read, state, outcome)
        return int(outcome[0])

    def texts(self, source: Array, size: int, offsets: Array, characters: Array) -> bool:
        found, count = np.zeros(1, np.int64), len(offsets) - 1
        _run(self._texts, address_of(source), size, count, address_of(offsets), address_of(characters), found)
        return bool(found[0])


def _run(compiled: Compiled, *values: int | Array) -> None:
    target = get_target("cpu")
    target.run(compiled, 0, 1, arguments_of(target, compiled.kernel, values))


def find_kernels() -> PageKernels | None:
    """The kernels, if they are compiled; else they will be, in the background."""
    target = cast(MorselTarget, get_target("cpu"))
    kernels = [READ.kernel, TEXTS.kernel]
    missing = [k for k in kernels if not target.is_ready(k) and not target.is_cached(k)]
    if missing:
        new = [k for k in missing if k.digest not in _asked]
        _asked.update(k.digest for k in new)
        if new:
            target.compile_in_background(new)
        return None
    return _Kernels(target.compile(READ.kernel), target.compile(TEXTS.kernel))


use_page_kernels(find_kernels)
