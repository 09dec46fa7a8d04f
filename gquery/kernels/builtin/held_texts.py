"""The kernels of `io.held_texts`: pages of texts, listed by the host, unpacked and put in place by a GPU."""

from __future__ import annotations

import numpy as np

from gquery import tuning
from gquery.columns.held_pages import HeldTextKernels, use_held_text_kernels
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.device.host import address_of
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel
from gquery.kernels.builtin.held_pages import Kernels, are_ready, find_kernels, run
from gquery.kernels.primitives import page_list
from gquery.kernels.primitives.held_texts import FOUND, HIGHEST, NOT_ASCII, OUTCOME, PAGE, STATE
from gquery.kernels.primitives.page_list import JOB, PAGE_WORDS, WINDOW_BYTES
from gquery.kernels.primitives.pages import SLACK

LIST = builtin_kernel(
    "job:*i64 chunks:*i64 listed:*i64 found:*i64", "store_i64(found, i64(i), list_pages(job, chunks, listed))"
)


def _of_pages(parameters: str, call: str) -> BuiltinKernel:
    """A kernel whose lanes take a page together."""
    return builtin_kernel(
        f"pages:*i64 {parameters} found:*i64",
        "number = div_i64(i64(i), lanes())",
        f"page, made = words_behind(pages, mul_i64(number, {PAGE})), words_behind(found, mul_i64(number, {FOUND}))",
        call,
    )


_OWN = f"words_behind(own, mul_i64(i64(i), {STATE}))"  # each lane's, as none waits for others where it changes
DECOMPRESS = _of_pages("own:*i64", f"decompress_texts(page, {_OWN}, made)")
CODE = _of_pages("own:*i64", f"code_texts(page, {_OWN}, made)")
PLACE = _of_pages("", "place_texts(page, made)")
CHECK = _of_pages("", "check_texts(page, made)")
ON_GPU = (DECOMPRESS, CODE, PLACE, CHECK)


class TextKernels(Kernels):
    """See `HeldTextKernels`."""

    def list_pages(self, file: int, chunks: Array, has_levels: bool, largest: int) -> Array | None:
        """See `HeldTextKernels.list_pages`."""
        room, window = tuning.reading.listed_pages * len(chunks), np.empty(WINDOW_BYTES + SLACK, np.uint8)
        while True:
            job, listed, found = np.zeros(JOB, np.int64), np.empty((room, PAGE_WORDS), np.int64), np.zeros(1, np.int64)
            job[: page_list.ROOM + 1] = file, len(chunks), int(has_levels), address_of(window), largest, room
            run("cpu", LIST, 1, job, chunks.reshape(-1), listed.reshape(-1), found)
            if found[0] <= room:
                return None if found[0] < 0 else listed[: found[0]]
            room = int(found[0])

    def decompress_texts(self, device: Device, pages: Array) -> Array:
        """See `HeldTextKernels.decompress_texts`."""
        count = len(pages)
        with device.activate(), self._stream(device):
            own = device.empty(count * self._lanes * STATE, np.int64, "decoding columns")
            on_device, found = (device.initialized(a) for a in (pages.reshape(-1), np.zeros(count * FOUND, np.int64)))
            for kernel in (DECOMPRESS, CODE):
                run(self._target, kernel, count * self._lanes, on_device, own, found)
            return device.to_host(found).reshape(count, FOUND)

    def place_texts(self, device: Device, pages: Array, found: Array) -> bool:
        """See `HeldTextKernels.place_texts`."""
        count = len(pages)
        with device.activate(), self._stream(device):
            on_device, made = (device.initialized(a.reshape(-1)) for a in (pages, found))
            run(self._target, PLACE, count * self._lanes, on_device, made)
            placed = device.to_host(made).reshape(count, FOUND)
            if placed[:, HIGHEST].max() >= NOT_ASCII:
                run(self._target, CHECK, count * self._lanes, on_device, made)
                placed = device.to_host(made).reshape(count, FOUND)
            return bool(placed[:, OUTCOME].all())


_found: dict[int, TextKernels] = {}  # of each GPU, once they are there


def find_text_kernels(device: Device) -> HeldTextKernels | None:
    """The kernels, if they are compiled; else they will be, in the background."""
    if device.ordinal not in _found:
        with device.activate():
            if are_ready("cpu", LIST) and are_ready("cuda", *ON_GPU) and find_kernels(device) is not None:
                _found[device.ordinal] = TextKernels()
    return _found.get(device.ordinal)


use_held_text_kernels(find_text_kernels)
