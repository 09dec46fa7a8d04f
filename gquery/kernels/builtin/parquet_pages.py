"""The kernels of `io.pages`: pages of Parquet into words, the texts of a dictionary taken apart, and some of the words picked."""

from __future__ import annotations

from typing import cast

import numpy as np

from gquery.columns.page_values import PageKernels, use_page_kernels
from gquery.device.array import Array
from gquery.device.host import address_of
from gquery.kernels.builtin.define import builtin_kernel
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import Compiled, MorselTarget, arguments_of

READ = builtin_kernel("state:*i64 outcome:*i64", "store_i64(outcome, i64(i), read_chunks(state))")
TEXTS = builtin_kernel(
    "source:i64 size:i64 count:i64 offsets:i64 characters:i64 found:*i64",
    "store_i64(found, i64(i), from_bool(text_entries(source, size, count, offsets, characters, 0)))",
)
PICK = builtin_kernel(
    "words:i64 count:i64 bits:i64 first:i64 found:*i64",
    "store_i64(found, i64(i), pick_words(words, count, bits, first))",
)
KERNELS = (READ, TEXTS, PICK)
_asked: set[str] = set()  # digests of kernels that are being compiled
_found: list[_Kernels] = []  # once they are there: who reads asks for them at each piece


class _Kernels:
    """The kernels, compiled."""

    def __init__(self, read: Compiled, texts: Compiled, pick: Compiled) -> None:
        self._read, self._texts, self._pick = read, texts, pick

    def read_chunks(self, state: Array) -> int:
        outcome = np.zeros(1, np.int64)
        _run(self._read, state, outcome)
        return int(outcome[0])

    def texts(self, source: Array, size: int, offsets: Array, characters: Array) -> bool:
        found, count = np.zeros(1, np.int64), len(offsets) - 1
        _run(self._texts, address_of(source), size, count, address_of(offsets), address_of(characters), found)
        return bool(found[0])

    def pick(self, words: Array, bits: Array, first: int) -> int:
        found = np.zeros(1, np.int64)
        _run(self._pick, address_of(words), len(words), address_of(bits), first, found)
        return int(found[0])


def _run(compiled: Compiled, *values: int | Array) -> None:
    target = get_target("cpu")
    target.run(compiled, 0, 1, arguments_of(target, compiled.kernel, values))


def find_kernels() -> PageKernels | None:
    """The kernels, if they are compiled; else they will be, in the background."""
    if not _found and (made := _compiled()) is not None:
        _found.append(made)
    return _found[0] if _found else None


def _compiled() -> _Kernels | None:
    target = cast(MorselTarget, get_target("cpu"))
    kernels = [each.kernel for each in KERNELS]
    missing = [k for k in kernels if not target.is_ready(k) and not target.is_cached(k)]
    if missing:
        new = [k for k in missing if k.digest not in _asked]
        _asked.update(k.digest for k in new)
        if new:
            target.compile_in_background(new)
        return None
    return _Kernels(*map(target.compile, kernels))


use_page_kernels(find_kernels)
