"""Arrays that are copied to files of the tier below a device, and from them: several threads write and read a piece at a time.

The pages of such files are not touched through their mapping. A system writes to one file for one thread at a time: so long
arrays lie in several, and pieces of all files are written in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gquery import tuning
from gquery.device.array import Array, on_gpu
from gquery.device.device import Device
from gquery.device.spill import Place, place_of
from gquery.errors import FileError, OutOfMemoryError
from gquery.runtime.threads import core_count
from gquery.runtime.tuples import NamedTuple

Pairs = Sequence[tuple[Array, Array]]
"""Arrays, each behind the one that it is copied to: of as many elements, of the same type, contiguous."""


class _Piece(NamedTuple):
    """Some bytes of an array, from byte ``at`` on."""

    array: Any  # all bytes of it; of a GPU, where they begin
    at: int
    size: int
    place: Place

    @property
    def bytes(self) -> Array:
        """Those of the host."""
        found: Array = self.array[self.at : self.at + self.size]
        return found


def write_files(pairs: Pairs, source: Device) -> None:
    """Copy arrays of a device to arrays in files. OutOfMemoryError where a file cannot be written."""
    given = [(array, place_of(to)) for to, array in pairs]
    if not source.is_cuda:
        _run(_pieces(given), lambda p: p.place.file.write(p.place.at + p.at, p.bytes), "written")
        return
    from gquery.device.staging import staging

    stage = staging(source)
    source.synchronize()

    def write(piece: _Piece) -> None:
        first = piece.place.at + piece.at
        stage.receive(piece.array + piece.at, piece.size, lambda at, part: piece.place.file.write(first + at, part))

    _run(_pieces(given), write, "written")


def read_files(pairs: Pairs, device: Device) -> None:
    """Copy arrays in files to arrays of a device, where they have arrived. FileError where a file cannot be read."""
    if not device.is_cuda:
        given = [(to, place_of(array)) for to, array in pairs]
        _run(_pieces(given), lambda p: p.place.file.read(p.place.at + p.at, p.bytes), "read")
        return
    from gquery.device.staging import staging

    stage = staging(device)
    stage.drain()
    try:
        send_files([(int(on_gpu(to).data.ptr), array) for to, array in pairs], device)
    finally:  # before an array is let go of
        stage.wait()


def send_files(moves: Sequence[tuple[int, Array]], device: Device, stream: Any = None) -> None:
    """Start to copy arrays in files to addresses of a GPU; see `Staging.send`. FileError as above."""
    from gquery.device.staging import staging

    stage, step = staging(device), _step()
    pieces = [
        (to + at, raw[at : at + step]) for to, a in moves for raw in (_bytes(a),) for at in range(0, raw.size, step)
    ]
    _run(pieces, lambda p: stage.send(p[0], p[1], stream), "read")


def _step() -> int:
    return tuning.transfers.buffer_bytes


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _pieces(arrays: Sequence[tuple[Array, Place | None]]) -> list[_Piece]:
    """All pieces of arrays: the first of each file, the second of each, and so on."""
    made: list[tuple[int, _Piece]] = []
    for array, place in arrays:
        assert place is not None
        size = int(array.nbytes)
        raw = _bytes(array) if isinstance(array, np.ndarray) else int(on_gpu(array).data.ptr)
        for at in range(0, size, _step()):
            made.append(((place.at + at) % place.file.size, _Piece(raw, at, min(_step(), size - at), place)))
    made.sort(key=lambda m: m[0])
    return [piece for _, piece in made]


def _run(pieces: Sequence[Any], work: Callable[[Any], None], what: str) -> None:
    """Do the work for each piece, on several threads."""
    threads = min(tuning.transfers.file_movers, core_count(), len(pieces))
    left = iter(pieces)  # that threads take from: the next one each

    def run(_: int) -> None:
        for piece in left:
            work(piece)

    try:
        if threads <= 1:
            run(0)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(run, range(threads)))
    except OSError as error:
        words = f"a file of spill_directory cannot be {what} ({error.strerror})"
        if what == "read":
            raise FileError(f"Of what did not fit memory, {words}.") from None
        raise OutOfMemoryError(
            f"Out of memory: {words}. Remedies: raise memory_limit, or set another spill_directory."
        ) from None
