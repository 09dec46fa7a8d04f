"""The state of groups at run time: arrays by slot, or a hash table whose slots hold a key and its words."""

from __future__ import annotations

from collections.abc import Iterator

from gquery.device.array import Array
from gquery.kernels.readback import Count
from gquery.operators.base import SinkState
from gquery.runtime.records import dataclass


@dataclass(slots=True)
class GroupState(SinkState):
    """What kernels accumulate groups into, on the run's device, owned by the run. A *slot* is a group's place, a *word* has 64
    bits.

    *direct-address* and *row-id hash* have ``accumulators``, which are parts of ``words_i64``. *hash* has ``words_i64`` alone:
    slots of `accumulate_state.slot_words` words each, of which that of the key 0 stands behind the ``mask`` + 1 others.
    """

    mask: int  # the slots less 1
    words_i64: Array  # all words, int64: one piece of memory
    accumulators: tuple[Array, ...] = ()  # int64 or float64, a word a slot
    touched: Array | None = None  # uint8, not 0 for slots that have rows; None where an accumulator counts them
    bits: Array | None = None  # uint32, the same as a bit a slot
    # uint32, row-id hash: the number plus 1 of a row that has the slot's key, 0 where it is empty
    slots: Array | None = None
    slots_in_order: Array | None = None  # uint32, row-id hash: the slots that have rows, in the order of these
    groups: Count | None = None  # how many of them count; None: all
    cache_i64: Array | None = None  # the worker's own: `aggregation_cache`
    part_ends: Array | None = None  # int64, the worker's own: where its next contribution of each part goes
    chunk_parts: Array | None = None  # uint32: the part that a chunk of contributions belongs to
    chunks_taken: Array | None = None  # int64, two: how many chunks are taken, and how many there are
    part_shift: int = 0  # from which bit of a key's hash on its part is told
    windows: int = 1  # that the slots are filled in, see `operators.table_windows`
    window_low: int = 0  # the first slot of the one at hand, and the one behind its last
    window_high: int = 0

    def each_window(self) -> Iterator[GroupState]:
        """See `SinkState.each_window`."""
        size = -(-(self.mask + 1) // self.windows)
        for n in range(self.windows):
            self.window_low, self.window_high = n * size, (n + 1) * size
            yield self

    @property
    def words_f64(self) -> Array:
        """``words_i64`` as float64."""
        return self.words_i64.view("float64")

    @property
    def cache_f64(self) -> Array | None:
        """``cache_i64`` as float64."""
        return None if self.cache_i64 is None else self.cache_i64.view("float64")

    def presence(self, plain: int | None) -> Array:
        """The array that is not 0 for slots that have rows: accumulator ``plain``, which counts them, or flags."""
        if plain is not None:
            return self.accumulators[plain]
        assert self.touched is not None
        return self.touched
