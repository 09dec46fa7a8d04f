"""The kernels of `io.held_chunks`: chunks of Parquet fetched into the host's memory or sent to a GPU, the entries of
their dictionaries, their pages, and what a GPU decodes."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from gquery import tuning
from gquery.columns.held_pages import HeldChunks, HeldKernels, use_held_kernels
from gquery.device.array import Array, on_gpu
from gquery.device.device import Device
from gquery.device.host import address_of
from gquery.kernels.bindings import Argument
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel
from gquery.kernels.primitives import page_list, pages
from gquery.kernels.primitives.held_chunks import CHUNK, FOUND
from gquery.kernels.primitives.page_list import JOB, PAGE_WORDS, WINDOW_BYTES
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import MorselTarget, arguments_of

_STATE = pages.STATE + 1
DECODE = builtin_kernel(
    "states:*i64 own:*i64 chunks:*i64 made:*i64 low:*i64 high:*i64",
    "chunk, word = div_i64(i64(i), lanes()), i64(0)",
    f"while lt_i64(word, {_STATE}):",  # each lane has a state of its own, as none waits for others where it changes
    f"    store_i64(own, add_i64(mul_i64(i64(i), {_STATE}), word), load_i64(states, add_i64(mul_i64(chunk, {_STATE}), word)))",
    "    word = add_i64(word, 1)",
    f"read_held(words_behind(own, mul_i64(i64(i), {_STATE})), words_behind(chunks, mul_i64(chunk, {CHUNK})), "
    f"words_behind(made, mul_i64(chunk, {FOUND})), low, high)",
)
PICK = builtin_kernel(
    "places:*i64 values:i64 size:i64 found:*i64",
    "store_i64(found, i64(i), load_bytes(add_i64(values, mul_i64(load_i64(places, i64(i)), size)), size))",
)
FETCH = builtin_kernel(
    "file:i64 chunks:*i64 found:*i64",
    "k, size, got, left = mul_i64(i64(i), 3), i64(0), i64(1), i64(0)",
    "left = load_i64(chunks, add_i64(k, 1))",
    "while gt_i64(left, 0) and gt_i64(got, 0):",
    "    got = read_file(file, add_i64(load_i64(chunks, k), size), left, add_i64(load_i64(chunks, add_i64(k, 2)), size))",
    "    size, left = add_i64(size, got), sub_i64(left, got)",
    "store_i64(found, i64(i), from_bool(eq_i64(left, 0)))",
)
UPLOAD = builtin_kernel("job:*i64 found:*i64", "store_i64(found, i64(i), upload_ranges(job))")
LIST = builtin_kernel(
    "job:*i64 chunks:*i64 listed:*i64 found:*i64", "store_i64(found, i64(i), list_pages(job, chunks, listed))"
)
DICTIONARIES = builtin_kernel(
    "states:*i64 count:i64 found:*i64",
    "k, texts, used, ok, state = i64(0), i64(0), i64(0), i64(1), words_behind(states, i64(0))",
    "while lt_i64(k, count) and eq_i64(ok, 1):",
    f"    state = words_behind(states, mul_i64(k, {_STATE}))",
    f"    store_i64(state, {pages.TEXTS}, texts)",
    f"    store_i64(state, {pages.BYTES}, used)",
    f"    ok = from_bool(eq_i64(read_pages(state), {pages.FOUND_DICTIONARY}))",
    "    if eq_i64(ok, 1):",
    f"        ok = from_bool(eq_i64(take_dictionary(state), {pages.DONE}))",
    f"    texts, used = load_i64(state, {pages.TEXTS}), load_i64(state, {pages.BYTES})",
    "    k = add_i64(k, 1)",
    "store_i64(found, i64(i), ok)",
)
ON_HOST = (FETCH, UPLOAD, LIST, DICTIONARIES)


class Kernels:
    """See `HeldKernels`. Of a GPU where each column has a stream of its own, as one takes but a part of the processors."""

    def __init__(self, target: str = "cuda", lanes: int = 32) -> None:
        self._target, self._lanes = target, lanes
        self._streams: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def fetch(self, file: int, chunks: Array) -> bool:
        """See `HeldKernels.fetch`."""
        found = np.zeros(len(chunks), np.int64)
        run("cpu", FETCH, len(chunks), file, chunks.reshape(-1), found)
        return bool(found.all())

    def upload(self, job: Array) -> int:
        """See `HeldKernels.upload`."""
        found = np.zeros(1, np.int64)
        run("cpu", UPLOAD, 1, job, found)
        return int(found[0])

    def dictionaries(self, states: Array) -> bool:
        """See `HeldKernels.dictionaries`."""
        found = np.zeros(1, np.int64)
        run("cpu", DICTIONARIES, 1, states.reshape(-1), len(states), found)
        return bool(found[0])

    def list_pages(self, file: int, chunks: Array, has_levels: bool, entry_bytes: int, largest: int) -> Array | None:
        """See `HeldKernels.list_pages`."""
        room, window = tuning.reading.listed_pages * len(chunks), np.empty(WINDOW_BYTES + pages.SLACK, np.uint8)
        while True:
            job, listed, found = np.zeros(JOB, np.int64), np.empty((room, PAGE_WORDS), np.int64), np.zeros(1, np.int64)
            job[: page_list.ENTRY_BYTES + 1] = file, len(chunks), int(has_levels), address_of(window), largest, room, entry_bytes
            run("cpu", LIST, 1, job, chunks.reshape(-1), listed.reshape(-1), found)
            if found[0] <= room:
                return None if found[0] < 0 else listed[: found[0]]
            room = int(found[0])

    def decode(self, device: Device, chunks: HeldChunks) -> Array:
        """See `HeldKernels.decode`."""
        count = len(chunks.states)
        size, block, limit = (np.full(count, n) for n in (chunks.size, chunks.block, tuning.encoding.longest_run))
        described = np.stack((chunks.places, chunks.rows, size, block, limit), 1)
        with device.activate(), self._stream(device):
            states = chunks.states
            if chunks.table is not None:
                table = device.initialized(chunks.table)
                states = states.copy()
                states[:, pages.DICTIONARY] += _address(table)
            own = device.empty(states.size * self._lanes, np.int64, "decoding columns")
            on_device, about, made, low, high = (
                device.initialized(a.reshape(-1))
                for a in (states, described, np.zeros((count, FOUND), np.int64), chunks.low, chunks.high)
            )
            run(self._target, DECODE, count * self._lanes, on_device, own, about, made, low, high)
            chunks.low[:], chunks.high[:] = device.to_host(low), device.to_host(high)
            return device.to_host(made).reshape(count, FOUND)

    def pick(self, device: Device, address: int, size: int, places: Array) -> Array:
        """See `HeldKernels.pick`."""
        with device.activate(), self._stream(device):
            found = device.initialized(np.zeros(len(places), np.int64))
            run(self._target, PICK, len(places), device.initialized(places), address, size, found)
            return device.to_host(found)

    @contextmanager
    def _stream(self, device: Device) -> Iterator[None]:
        """Within it, a stream is the current one that goes on when all that was queued before has run: memory that is given out
        again may be in use by that. Behind it, all has run."""
        if device.is_cpu:
            yield
            return
        try:
            stream = self._streams.get_nowait()
        except queue.Empty:
            stream = device.stream()
        stream.wait_event(device.xp.cuda.get_current_stream().record())
        with stream:
            yield
        stream.synchronize()
        self._streams.put(stream)


def _address(array: Array) -> int:
    return address_of(array) if isinstance(array, np.ndarray) else int(on_gpu(array).data.ptr)


def run(name: str, builtin: BuiltinKernel, rows: int, *values: Argument) -> None:
    """Run a kernel on a target."""
    target = get_target(name)
    compiled = target.compile(builtin.kernel)
    target.run(compiled, 0, rows, arguments_of(target, compiled.kernel, values))


_asked: set[tuple[str, str]] = set()  # targets, and digests of kernels that are being compiled
_found: dict[int, Kernels] = {}  # of each GPU, once they are there


def find_kernels(device: Device) -> HeldKernels | None:
    """The kernels, if they are compiled; else they will be, in the background."""
    with device.activate():
        if device.ordinal not in _found and are_ready("cpu", *ON_HOST) and are_ready("cuda", DECODE, PICK):
            _found[device.ordinal] = Kernels()
    return _found.get(device.ordinal)


def are_ready(name: str, *builtins: BuiltinKernel) -> bool:
    """Whether kernels are compiled for a target; else they will be, in the background."""
    target = cast(MorselTarget, get_target(name))
    missing = [b.kernel for b in builtins if not target.is_ready(b.kernel) and not target.is_cached(b.kernel)]
    if new := [kernel for kernel in missing if (name, kernel.digest) not in _asked]:
        _asked.update((name, kernel.digest) for kernel in new)
        target.compile_in_background(new)
    return not missing


use_held_kernels(find_kernels)
