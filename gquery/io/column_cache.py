"""The cache of loaded columns that the sources of a connection share, and loading for several sources at once."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from gquery.columns.table import ColumnData, Dictionary, Table, TableSource
from gquery.device.device import Device, cpu_device
from gquery.device.spill import SpillError, is_spilled
from gquery.errors import OutOfMemoryError
from gquery.runtime.amounts import format_bytes
from gquery.runtime.threads import core_count


class ColumnCache:
    """Loaded columns of all sources of a connection; the least recently used go first when they outgrow the limit: on a CPU into
    files, as plans that are kept hold them, too. Such a plan asks no source again, so use is told by the buffers themselves.
    ``device`` is where queries will want them, ``workers`` the threads that may load them. Of several ``ranks`` each brings its
    part to its GPU itself."""

    def __init__(
        self,
        limit: int | None = None,
        device: Device | None = None,
        workers: int | None = None,
        ranks: int = 1,
    ) -> None:
        self.limit = limit
        self._ranks = ranks
        self.device = device
        self.workers = workers or core_count()
        self._columns: dict[tuple[int, int], ColumnData] = {}
        self._gone: deque[int] = deque()  # sources that are, and whose columns nobody has dropped yet
        self._users = 0  # of the columns, on the thread that has the lock
        self._lock = threading.RLock()

    @property
    def reading_device(self) -> Device | None:
        """Where columns go while they are read."""
        device = self.device
        return None if device is not None and device.is_cuda and self._ranks > 1 else device

    @property
    def nbytes(self) -> int:
        with self._held() as columns:
            return sum(c.held_bytes for c in columns.values())

    def get(self, source: int, field: int) -> ColumnData | None:
        with self._held() as columns:
            return columns.get((source, field))

    def find(self, source: int, fields: Sequence[int]) -> tuple[ColumnData, ...] | None:
        """Columns of a source, if all are kept."""
        with self._held() as columns:
            found = [column for f in fields if (column := columns.get((source, f))) is not None]
        return tuple(found) if len(found) == len(fields) else None

    def put(self, source: int, columns: Mapping[int, ColumnData], what: str) -> None:
        """Keep columns that are used together; OutOfMemoryError where they alone exceed the limit."""
        at = self.device
        if at is None or not (at.keeps_columns or at.streams):  # its account knows of them, or the host keeps them
            limit = self.limit
        else:
            limit = None
        if limit is not None:
            wanted = sum(c.held_bytes for c in columns.values())
            if wanted > limit:
                raise OutOfMemoryError(
                    f"Out of memory in scan of {what}: its columns take {format_bytes(wanted)}, "
                    f"{format_bytes(self.nbytes)} in use, memory_limit is {format_bytes(limit)}. "
                    "Remedies: raise memory_limit, or read fewer columns."
                )
        kept = {(source, field): column for field, column in columns.items()}
        if at is not None and at.is_cuda:
            for buffer in (b for column in kept.values() for b in column.buffers):
                buffer.is_cached = True
        with self._held() as held:
            held |= kept
            excess = 0 if limit is None else self.nbytes - limit
            if excess <= 0:
                return
            for key, column in self._by_use():
                if excess > 0 and key not in kept:
                    excess -= column.held_bytes
                    del held[key]

    def evict_bytes(self, device: Device, wanted: int) -> None:
        """Let go of copies on a device of about ``wanted`` bytes, least recently used first; the host has one then, if need be
        one that is made now. What a kernel that runs has the address of is freed when it ends (`device.addresses`). On a CPU
        under a limit they move into files: SpillError where these have no room."""
        if device.streams:
            drop_mirrors(device, wanted)
            return
        if device.is_cpu:
            self._spill(device, wanted)
            return
        freed = 0
        with self._held():
            held = [b for _, column in self._by_use() for b in column.buffers if b.is_on(device)]
            held.sort(key=lambda b: len(b.devices) == 1)  # what others have, too, needs no copy
            for buffer in held:
                if freed >= wanted:
                    return
                used = buffer.used
                try:
                    buffer.on(cpu_device())
                except MemoryError:  # whoever needs the memory will be told
                    return
                buffer.used = used
                buffer.drop(device)
                freed += buffer.nbytes

    def _spill(self, device: Device, wanted: int) -> None:
        space = device.spill
        if space is None:
            return
        before = device.account.taken
        with self._held():
            for _, column in self._by_use():
                for buffer in column.buffers:
                    if before - device.account.taken >= wanted:
                        return
                    used, array = buffer.used, buffer.on(device)
                    buffer.used = used
                    if not is_spilled(array):
                        buffer.move(device, space.copy_of(array))
                        del array

    def move_to(self, device: Device, limit: int | None) -> None:
        """Count the columns on a device under another limit, and move those into files that do not fit."""
        with self._held() as columns:
            self.device, self.limit = device, limit
            if not device.keeps_columns:
                return
            for column in columns.values():
                for buffer in column.buffers:
                    array = buffer.on(device)
                    if not is_spilled(array) and not device.account.knows(array):
                        device.account.add(array.nbytes)
                        device.account.bind(array, array.nbytes)
            excess = device.account.taken - (limit or 0)
            with suppress(SpillError):  # whoever needs the memory will be told
                if excess > 0:
                    self._spill(device, excess)

    def _by_use(self) -> list[tuple[tuple[int, int], ColumnData]]:
        """The columns, the least recently used first."""
        return sorted(self._columns.items(), key=lambda kept: kept[1].used)

    def held(self, source: int) -> list[tuple[int, ColumnData]]:
        """The columns of a source that are kept, with the numbers of their fields."""
        with self._held() as columns:
            return [(field, column) for (owner, field), column in columns.items() if owner == source]

    def forget(self, source: int) -> None:
        """Drop the columns of a source that is gone or has changed. Python's collector calls it, too, on any thread and in the
        midst of anything: it waits for nobody, and who has the columns drops them."""
        self._gone.append(source)
        self._drop_now()

    @contextmanager
    def _held(self) -> Iterator[dict[tuple[int, int], ColumnData]]:
        """The columns of sources that are there; none goes by itself while somebody goes through them."""
        with self._lock:
            is_first = not self._users
            self._users += 1
            try:
                if is_first:
                    self._drop()
                yield self._columns
            finally:
                self._users -= 1
        self._drop_now()

    def _drop_now(self) -> None:
        while self._gone and self._lock.acquire(blocking=False):
            try:
                if self._users:
                    return
                self._users += 1
                self._drop()
                self._users -= 1
            finally:
                self._lock.release()

    def _drop(self) -> None:
        while self._gone:
            source = self._gone.popleft()
            for key in [k for k in self._columns if k[0] == source]:
                del self._columns[key]


def count_column(device: Device, column: ColumnData, label: str) -> None:
    """Have what a column takes on a CPU under a limit counted, where nobody has yet."""
    for buffer in column.buffers:
        device.count(buffer.on(device), buffer.nbytes, label)
    if isinstance(column.dictionary, Dictionary):
        device.count(column.dictionary, column.dictionary.values.nbytes, label)
    elif column.dictionary is not None:
        device.count(column.dictionary, column.dictionary.nbytes, label)


def drop_mirrors(device: Device, wanted: int) -> None:
    """Let go of copies of what lies on the host, too, until a device where columns are streamed has so many more bytes free, the
    least recently used first. What a kernel that runs has the address of is freed when it ends."""
    before = device.used_bytes
    for buffer in sorted(device.mirrors, key=lambda b: int(b.used)):
        if before - device.used_bytes >= wanted:
            return
        if len(buffer.devices) > 1:
            buffer.drop(device)
            device.mirrors.discard(buffer)


def load_all(requests: Sequence[tuple[TableSource, Sequence[int]]]) -> list[Table]:
    """What `TableSource.load` gives for each; sources of a kind that can load several at once do so (``load_many``)."""
    together: dict[object, list[int]] = {}
    for number, (source, _) in enumerate(requests):
        together.setdefault(getattr(type(source), "load_many", None), []).append(number)
    tables: dict[int, Table] = {}
    for load_many, numbers in together.items():
        if callable(load_many):
            tables |= dict(zip(numbers, load_many([requests[n] for n in numbers]), strict=True))
        else:
            tables |= {n: requests[n][0].load(requests[n][1]) for n in numbers}
    return [tables[number] for number in range(len(requests))]
