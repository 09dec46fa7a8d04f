"""CREATE TABLE AS: the columns that a query has made, as a table.

They stay what they are, on the device where they lie: dictionaries stay dictionaries, and nothing is written anew. What a plan
wants to know of values (bounds, order, distinct ones) is looked for when a query first uses a column, as columns of Arrow are
encoded then (`io.memory`); of a short table at once. What kernels would read badly goes through Arrow at that time: texts
without a dictionary, which may repeat, numbers of 128 bits, which may be small, and values that kernels do not look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from gquery import tuning
from gquery.columns.looked_over import looked_over
from gquery.columns.store import TableStore
from gquery.columns.table import ColumnData, ColumnStatistics, Table
from gquery.device.buffer import Buffer, InPieces
from gquery.expression.types import Schema
from gquery.io.column_cache import ColumnCache, count_column
from gquery.io.memory import copy_of
from gquery.runtime import interrupt
from gquery.runtime.records import replace
from gquery.runtime.threads import run_all


class MadeTable(TableStore):
    """See above. ``cache`` is the connection's: under a limit of a CPU it moves columns into files where memory runs out."""

    def __init__(self, name: str, table: Table, cache: ColumnCache, narrow: bool) -> None:
        device = cache.device
        self._cache, self._narrow = cache, narrow
        self._looked_over: set[int] = set()
        self._lock = interrupt.Lock()
        on_host = device is not None and device.streams
        super().__init__(name, Table(table.schema, tuple(_own(c, on_host) for c in table.columns), table.rows))
        self._counts = device is not None and device.keeps_columns
        if self._counts:
            self._keep(range(len(table.columns)))
        if self._is_small(len(table.columns)):
            self.load(range(len(table.columns)))

    def __del__(self) -> None:
        cache = getattr(self, "_cache", None)
        if cache is not None:
            cache.forget(id(self))

    def statistics(self, field: int) -> ColumnStatistics:
        """Exact for columns that have been used; before, whether there are NULLs."""
        column = self.table.columns[field]
        if field in self._looked_over:
            return column.statistics
        return ColumnStatistics(null_count=0 if column.validity is None else None)

    def load(self, fields: Sequence[int]) -> Table:
        """The fields at these positions, in this order."""
        with self._lock:
            missing = sorted({f for f in fields if f not in self._looked_over})
            if missing:
                self._look_over(missing)
            columns = tuple(self.table.columns[f] for f in fields)
        return Table(Schema(tuple(self.schema.fields[f] for f in fields)), columns, self.rows)

    def _is_small(self, fields: int) -> bool:
        """Whether so many fields take one thread no longer than it takes to start others."""
        return self.rows * fields < tuning.encoding.one_thread

    def _look_over(self, fields: Sequence[int]) -> None:
        columns = list(self.table.columns)

        def look(field: int) -> None:
            columns[field] = looked_over(columns[field], self.schema.fields[field], self._narrow)

        run_all([partial(look, f) for f in fields], 1 if self._is_small(len(fields)) else self._cache.workers)
        self.table = Table(self.schema, tuple(columns), self.rows)
        self._looked_over |= set(fields)
        if self._counts:
            self._keep(fields)

    def _keep(self, fields: Sequence[int]) -> None:
        """Have the memory of columns counted, and moved into files where it is wanted for others."""
        assert self._cache.device is not None
        for f in fields:
            count_column(self._cache.device, self.table.columns[f], f"table {self.name}")
        self._cache.put(id(self), {f: self.table.columns[f] for f in fields}, self.name)


def _own(column: ColumnData, on_host: bool) -> ColumnData:
    """The column without memory that it does not need. On the host where a GPU's memory has a limit: what lies there has a copy
    on the host, so that it can be let go of."""
    characters = column.characters
    return replace(
        column,
        data=_own_buffer(column.data, on_host),
        validity=None if column.validity is None else _own_buffer(column.validity, on_host),
        characters=Buffer(characters.host) if characters is not None and on_host else characters,
    )


def _own_buffer(buffer: Buffer, on_host: bool) -> Buffer:
    """A few values of a large array are copied, so that this can go."""
    if on_host and buffer.cpu is None:
        return Buffer(buffer.host)
    device = buffer.devices[0]
    if isinstance(buffer, InPieces) and buffer.holds() <= _allowed(buffer.nbytes):
        return buffer
    array = buffer.on(device)
    owner = array
    while isinstance(base := getattr(owner, "base", None), type(array)):
        owner = base
    if owner.nbytes <= _allowed(array.nbytes):
        return buffer
    return Buffer(array.copy() if device.is_cpu else copy_of(array), device)


def _allowed(needed: int) -> float:
    """How many bytes may be held for so many that are needed."""
    return tuning.memory.kept_slack * needed + tuning.memory.least_spilled
