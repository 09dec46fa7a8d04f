"""The kernels of `io.held_texts`: pages of texts that a GPU unpacks and puts in place."""

from __future__ import annotations

import numpy as np

from gquery.columns.held_pages import HeldTextKernels, use_held_text_kernels
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel
from gquery.kernels.builtin.held_pages import Kernels, are_ready, find_kernels, run
from gquery.kernels.primitives.held_texts import FOUND, HIGHEST, NOT_ASCII, OUTCOME, PAGE, STATE


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
            if are_ready("cuda", *ON_GPU) and find_kernels(device) is not None:
                _found[device.ordinal] = TextKernels()
    return _found.get(device.ordinal)


use_held_text_kernels(find_text_kernels)
