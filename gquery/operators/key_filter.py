"""Key filters: a small bitmap of the keys of a join table, which a probe tests before it goes to the table.

Where few of the keys in a table's range are there, most probes find nothing, and each waits for a sector of a cache or of
memory to say so. A bitmap whose bits stand for ``2 ** shift`` neighbouring keys is small enough for a GPU's shared memory, or
for a CPU's nearest caches. Neighbours share a bit and keys are not hashed, so probes in the order of their keys stay in one
word. Every block of a GPU copies the bitmap before its first row. A bitmap of keys that is as small is copied itself, and is
all there is to test.

A build is given a filter by estimates, when it starts; it sets its bits as it enters rows. When it has ended it is known how many
bits are set: a filter with too many is dropped. What probes the table tests the filter that there is. A miss in the filter is a
miss in the table, so this is right for joins of every kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gquery import tuning
from gquery.device.array import Array
from gquery.device.profile import DeviceProfile
from gquery.expression.facts import BITMAP_BITS, BYTE_BITS, INT64_BYTES
from gquery.kernels.builtin import scans
from gquery.kernels.readback import read_scalar
from gquery.kernels.targets.capabilities import Capabilities
from gquery.operators.accumulate import shared_words, state_location
from gquery.operators.base import JoinIndex
from gquery.operators.materialize import selectivity
from gquery.planner.layouts import KeyFilter
from gquery.planner.physical import Build, Group, JoinTable, Pipeline, Probe, Sink, Step
from gquery.runtime.records import replace

# ---- whether a table has a filter ----


def with_filter(
    pipeline: Pipeline, rows: int, target: Capabilities, profile: DeviceProfile, merges: bool = False
) -> Pipeline:
    """A build over ``rows`` rows, with a filter beside its table if that is a gain by estimates. Where it ``merges`` its
    words with those of other ranks, whose rows and devices may be others, the filter follows from the plan alone: all have the
    same."""
    sink = pipeline.sink
    if not isinstance(sink, Build):
        return pipeline
    keys = int((pipeline.rows if merges else rows) * selectivity(pipeline.steps))
    most = tuning.key_filters.merged_bytes if merges else _block_bytes(profile) - tuning.key_filters.spare_bytes
    made = _planned(sink.table, keys, target, most)
    return pipeline if made is None else replace(pipeline, sink=Build(replace(sink.table, filter=made)))


def _planned(table: JoinTable, keys: int, target: Capabilities, most: int) -> KeyFilter | None:
    """The filter for a table of so many keys, by estimate; in shared memory it takes up to ``most`` bytes."""
    limits = tuning.key_filters
    is_array = table.layout == "direct-address"
    if table.key_encoding is None or not (is_array or (table.layout == "hash" and table.inline_keys)):
        return None
    size = table.key_encoding.size
    if size < limits.least_slots or table.probe_rows < least_probes(target):
        return None
    if not target.has_shared_memory:
        if is_array and _array_bytes(table, size) < limits.least_table_bytes:
            return None
        return _of_bytes(keys, size, limits.bytes)
    if is_array and table.exists and size <= BYTE_BITS * most:
        return KeyFilter(0, size, is_table=True)
    return _of_bytes(keys, size, most, is_largest=True)


def _of_bytes(keys: int, size: int, most: int, is_largest: bool = False) -> KeyFilter | None:
    """The filter of up to ``most`` bytes, or larger unless that ``is_largest``; None where too many keys share a bit."""
    limits, shift = tuning.key_filters, 0
    while (size >> shift) + BITMAP_BITS >= BYTE_BITS * most:
        shift += 1
    made = KeyFilter(shift, (size >> shift) + 1)
    if shift and not is_largest and keys > limits.few_set * made.bits and most < limits.large_bytes:
        return _of_bytes(keys, size, limits.larger * most)
    return made if keys <= limits.most_set * made.bits else None


def least_probes(target: Capabilities) -> int:
    """Rows that are looked up, at least, for a filter to pay."""
    return tuning.key_filters.least_probes_gpu if target.has_shared_memory else tuning.key_filters.least_probes


def _block_bytes(profile: DeviceProfile) -> int:
    """Shared memory of a block if a multiprocessor is to keep as many of its threads as it can, in the largest blocks."""
    blocks = max(1, profile.processor_threads // tuning.launches.most_threads)
    return min(profile.most_shared_bytes, profile.processor_shared_bytes // blocks - profile.reserved_shared_bytes)


def _array_bytes(table: JoinTable, size: int) -> int:
    from gquery.operators.join_build import slot_physical_type  # queries without joins do without

    return size // BYTE_BITS if table.exists else size * slot_physical_type(table).bytes


def is_selective(made: KeyFilter, array: Array) -> bool:
    """Whether few enough bits of a filter (uint32, on the run's device) are set. Of a GPU's no more is read back than that: it
    is the same in other runs, where the number is not."""
    most = int(tuning.key_filters.most_set * made.bits)
    return not read_scalar(scans.has_more_bits(array, most))


# ---- which probes test theirs ----


def with_tested_filters(
    pipeline: Pipeline, rows: int, joins: Mapping[int, JoinIndex], target: Capabilities, profile: DeviceProfile
) -> Pipeline:
    """The pipeline over ``rows`` rows, with probes that test the filters of the tables as they were built where that is a gain.
    On a GPU those of one kernel, and the state of its groups, lie in shared memory together."""
    if rows < least_probes(target) or not any(isinstance(s, Probe) for s in pipeline.steps):
        return pipeline
    first, rest = pipeline.steps[: pipeline.selection_steps], pipeline.steps[pipeline.selection_steps :]
    room = _block_bytes(profile) // INT64_BYTES if target.has_shared_memory else None
    left = _room_beside(pipeline.sink, room, target)
    steps = (
        *_tested(first, rows, joins, target, room),
        *_tested(rest, int(rows * selectivity(first)), joins, target, left),
    )
    return pipeline if steps == pipeline.steps else replace(pipeline, steps=steps)


def _room_beside(sink: Sink, room: int | None, target: Capabilities) -> int | None:
    """What the state of groups leaves of so many words of shared memory; None stands for any number."""
    if room is None or not isinstance(sink, Group):
        return room
    return 0 if state_location(sink, target.name) == "private" else room - shared_words(sink, target.name)


def _tested(
    steps: Sequence[Step], rows: int, joins: Mapping[int, JoinIndex], target: Capabilities, room: int | None
) -> list[Step]:
    """The steps of one kernel over so many rows; their filters take up to ``room`` words of shared memory."""
    made: list[Step] = []
    left = rows
    for step in steps:
        if isinstance(step, Probe) and not step.always:
            found = joins[step.table.stage].table.filter
            words = 0 if found is None else found.shared_words
            if found is not None and left >= least_probes(target) and (room is None or words <= room):
                step, room = replace(step, filter=found), None if room is None else room - words
        made.append(step)
        left = int(rows * selectivity(made))
    return made
