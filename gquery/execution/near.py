"""What another rank hands over, as one copy: its small arrays come to a GPU by one kernel, which reads them where they lie.

A copy of the driver's takes 8 to 18 microseconds in a graph, however small, and an exchange has one for each array. Long arrays
are left where they are, for copies of their own, and so is everything that is not an array or made of arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import READ_AHEAD, Array
from gquery.device.buffer import Buffer, device_of
from gquery.device.device import Device
from gquery.device.peer import is_in_reach
from gquery.kernels.builtin.elements import copy_together
from gquery.operators.base import Frame
from gquery.operators.merge_groups import PartGroups
from gquery.runtime.records import replace

T = TypeVar("T")
Placed = Sequence[tuple[Array, Device]]
Take = Callable[[Placed], Sequence[Array] | None]
"""What stands for arrays that go together, each with the device that it lies on; None for themselves."""


def near(values: Sequence[T], device: Device, reaches: Callable[[Device, Device], bool] = is_in_reach) -> list[T]:
    """Values that other ranks have handed over, with small arrays of devices that it ``reaches`` on ``device``.
    What is queued there waits for those who write them."""
    found: dict[int, Array] = {}

    def note(arrays: Placed) -> None:
        if all(_is_small(a) and at != device and reaches(device, at) for a, at in arrays):
            found.update({id(array): array for array, _ in arrays})

    for value in values:
        _with_arrays(value, device, note)
    if not found:
        return list(values)
    starts, size, apart = {}, 0, tuning.transfers.together_alignment
    for identity, array in found.items():
        starts[identity] = size
        size += -(-(int(array.nbytes) + READ_AHEAD) // apart) * apart
    with device.activate():
        block = device.empty(size, np.uint8, "what ranks hand over")
        made = {
            identity: block[start : start + found[identity].nbytes].view(found[identity].dtype)
            for identity, start in starts.items()
        }
        copy_together([(array, made[identity]) for identity, array in found.items()], device)

    def taken(arrays: Placed) -> list[Array] | None:
        return [made[id(a)] for a, _ in arrays] if all(id(a) in made for a, _ in arrays) else None

    return [_with_arrays(v, device, taken) for v in values]


def _is_small(array: Array) -> bool:
    return bool(array.nbytes <= tuning.transfers.together_bytes and array.flags.c_contiguous)


def _with_arrays(value: T, device: Device, take: Take) -> T:
    """A value with what stands for each of its arrays."""
    made: object = value
    match value:
        case PartGroups():
            words, texts = _with_arrays(value.words, device, take), _with_arrays(value.texts, device, take)
            made = PartGroups(_with_arrays(value.encoded, device, take), words, texts)
        case ColumnData():
            made = _of_column(value, device, take)
        case Frame():
            columns = {i: _of_column(c, device, take) for i, c in value.columns.items()}
            made = replace(
                value,
                columns=columns,
                rank_values={i: _of_column(c, device, take) for i, c in value.rank_values.items()},
            )
        case list() | tuple() if type(value) in (list, tuple):
            every = [_with_arrays(v, device, take) for v in value]
            made = every if isinstance(value, list) else tuple(every)
        case _ if getattr(value, "ndim", 0) == 1:
            array = cast(Array, value)
            (made,) = take([(array, device_of(array))]) or (value,)
    return cast(T, made)


def _of_column(column: ColumnData, device: Device, take: Take) -> ColumnData:
    """All of a column comes, or nothing: who puts columns together takes it from one device."""
    buffers = column.buffers
    if any(b.is_on(device) for b in buffers):
        return column
    taken = take([(b.on(b.devices[0]), b.devices[0]) for b in buffers])
    if taken is None:
        return column
    made = iter([Buffer(array, device) for array in taken])
    data = next(made)
    validity = None if column.validity is None else next(made)
    characters = None if column.characters is None else next(made)
    return replace(column, data=data, validity=validity, characters=characters)
