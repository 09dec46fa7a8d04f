"""Arrays that are copied to files of the tier below a device, and from them: several threads write and read a piece at a time.

The pages of such files are not touched through their mapping. A system writes to one file for one thread at a time: so long
arrays lie in several by turns, and pieces of all files are written in turn. Those of a GPU are moved without the interpreter
(`device.movers`), once what does so is compiled: threads would wait for its lock longer than for the bytes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gquery import tuning
from gquery.device.array import Array, on_gpu
from gquery.device.device import Device
from gquery.device.host import address_of
from gquery.device.movers import movers
from gquery.device.spill import OpenFile, Place, place_of
from gquery.errors import FileError, OutOfMemoryError
from gquery.runtime.threads import core_count
from gquery.runtime.tuples import NamedTuple

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

MEMORY = -1  # in the place of a file: see `kernels.primitives.moves`
DONE, NO_BYTES = 0, -1  # as there
Pairs = Sequence[tuple[Array, Array]]
"""Arrays, each behind the one that it is copied to: of as many elements, of the same type, contiguous."""


class _Piece(NamedTuple):
    """Some bytes of an array, from byte ``at`` on, which a file has from byte ``start`` on."""

    array: Any  # all bytes of it; of a GPU, where they begin
    at: int
    size: int
    file: OpenFile
    start: int

    @property
    def bytes(self) -> Array:
        """Those of the host."""
        found: Array = self.array[self.at : self.at + self.size]
        return found


def write_files(pairs: Pairs, source: Device) -> None:
    """Copy arrays of a device to arrays in files. OutOfMemoryError where a file cannot be written."""
    given = [(array, place_of(to)) for to, array in pairs]
    if not source.is_cuda:
        _run(_pieces(given), lambda p: p.file.write(p.start, p.bytes), "written")
        return
    from gquery.device.staging import staging

    stage, pieces = staging(source), _pieces(given)
    source.synchronize()

    def write(piece: _Piece) -> None:
        file = piece.file
        stage.receive(piece.array + piece.at, piece.size, lambda at, part: file.write(piece.start + at, part))

    if _has_movers(source):
        table = np.array([(p.array + p.at, p.size, p.file.descriptor, p.start) for p in pieces], np.int64)
        _run_moves(table, partial(stage.move, is_sent=False), lambda n: write(pieces[n]), "written")
    else:
        _run(pieces, write, "written")


def read_files(pairs: Pairs, device: Device) -> None:
    """Copy arrays in files to arrays of a device, where they have arrived. FileError where a file cannot be read."""
    if not device.is_cuda:
        given = [(to, place_of(array)) for to, array in pairs]
        _run(_pieces(given), lambda p: p.file.read(p.start, p.bytes), "read")
        return
    from gquery.device.staging import staging

    stage = staging(device)
    stage.drain()
    try:
        send_files([(int(on_gpu(to).data.ptr), array) for to, array in pairs], device)
    finally:  # before an array is let go of
        stage.wait()


def send_files(moves: Sequence[tuple[int, Array]], device: Device, stream: Any = None) -> None:
    """Start to copy arrays in files, or in memory that is not page-locked, to addresses of a GPU; see `Staging.send`. FileError
    as above."""
    from gquery.device.staging import staging

    stage, step = staging(device), _step()
    if not _has_movers(device):
        pieces = [
            (to + at, raw[at : at + step]) for to, a in moves for raw in (_bytes(a),) for at in range(0, raw.size, step)
        ]
        _run(pieces, lambda p: stage.send(p[0], p[1], stream), "read")
        return
    rows, parts = list[tuple[int, int, int, int]](), list[Array]()
    for to, array in moves:
        raw, place = _bytes(array), place_of(array)
        for at, size, file, start in _cut(raw.size, place):
            parts.append(raw[at : at + size])
            here = (MEMORY, address_of(raw) + at) if file is None else (file.descriptor, start)
            rows.append((to + at, size, *here))
    _run_moves(
        np.array(rows, np.int64),
        partial(stage.move, is_sent=True, stream=stream),
        lambda n: stage.send(rows[n][0], parts[n], stream),
        "read",
    )


def close_together(files: list[OpenFile]) -> None:
    """Let go of files, which this list may be the last to hold: to give the pages of one back takes the system as long as to read
    them. The list is emptied."""
    if not files:
        return
    left, files[:] = list(files), []

    def close(_: int) -> None:
        while left:
            with suppress(IndexError):  # another thread has the last one
                left.pop()

    _on_threads(close, min(tuning.transfers.file_movers, core_count(), len(left)), "closed")


def _has_movers(device: Device) -> bool:
    return device.copy_calls() is not None and movers() is not None


def _step() -> int:
    return tuning.transfers.buffer_bytes


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _cut(size: int, place: Place | None) -> Iterator[tuple[int, int, OpenFile | None, int]]:
    """Pieces of so many bytes, of which each lies in one file, if it does in any: the first byte, how many, the file, and where
    it has them."""
    at = 0
    while at < size:
        part, file, start = min(_step(), size - at), None, 0
        if place is not None:
            file, start, left = place.file.place(place.at + at)
            part = min(part, left)
        yield at, part, file, start
        at += part


def _pieces(arrays: Sequence[tuple[Array, Place | None]]) -> list[_Piece]:
    """All pieces of arrays in files: the first of each file, the second of each, and so on."""
    made: list[tuple[int, _Piece]] = []
    turns: Counter[int] = Counter()
    for array, place in arrays:
        raw = _bytes(array) if isinstance(array, np.ndarray) else int(on_gpu(array).data.ptr)
        for at, size, file, start in _cut(int(array.nbytes), place):
            assert file is not None
            made.append((turns[id(file)], _Piece(raw, at, size, file, start)))
            turns[id(file)] += 1
    made.sort(key=lambda m: m[0])
    return [piece for _, piece in made]


def _run_moves(
    table: Array, move: Callable[[Array, int, int], tuple[int, int]], plainly: Callable[[int], None], what: str
) -> None:
    """Have pieces moved by several threads, each of which takes one of so many. A piece that the system refuses is moved
    ``plainly``, which raises the system's error, or does it."""
    threads = min(tuning.transfers.file_movers, core_count(), len(table))

    def run(first: int) -> None:
        outcome = NO_BYTES
        while outcome != DONE:
            outcome, first = move(table, first, threads)
            if outcome != DONE:
                plainly(first)
                first += threads

    _on_threads(run, threads, what)


def _run(pieces: Sequence[Any], work: Callable[[Any], None], what: str) -> None:
    """Do the work for each piece, on several threads."""
    threads = min(tuning.transfers.file_movers, core_count(), len(pieces))
    left = iter(pieces)  # that threads take from: the next one each

    def run(_: int) -> None:
        for piece in left:
            work(piece)

    _on_threads(run, threads, what)


@cache
def _threads() -> ThreadPoolExecutor:
    """Threads that stay, as to start some takes as long as to move what they are for: of one who reads parts of two sides ahead,
    and one who writes behind."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(3 * tuning.transfers.file_movers, "gquery-files")


os.register_at_fork(after_in_child=_threads.cache_clear)  # threads do not survive a fork


def _await(others: Sequence[Future[None]]) -> None:
    """Until all have ended, whoever presses Ctrl-C meanwhile: they are at work on arrays that would be let go of."""
    from concurrent.futures import wait

    stopped: KeyboardInterrupt | None = None
    while not all(other.done() for other in others):
        try:
            wait(others)
        except KeyboardInterrupt as error:
            stopped = error
    if stopped is not None:
        raise stopped


def _on_threads(run: Callable[[int], None], threads: int, what: str) -> None:
    """Call a function with the number of each of so many threads. OutOfMemoryError, FileError where files cannot be ``what``."""
    try:
        if threads <= 1:
            run(0)
            return
        others: list[Future[None]] = []
        try:
            for number in range(1, threads):
                others.append(_threads().submit(run, number))
            run(0)
        finally:
            _await(others)
        for other in others:
            other.result()
    except OSError as error:
        words = f"a file of spill_directory cannot be {what} ({error.strerror})"
        if what == "read":
            raise FileError(f"Of what did not fit memory, {words}.") from None
        raise OutOfMemoryError(
            f"Out of memory: {words}. Remedies: raise memory_limit, or set another spill_directory."
        ) from None
