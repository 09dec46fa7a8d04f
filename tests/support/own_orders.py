"""Ranks on a CPU that make what ranks on GPUs may: each has groups in an order of its own, and sums of doubles with last bits of
its own.

A GPU's hash table has its groups where its threads came first, and its atomics add doubles in any order. So ranks that each make
all groups for themselves do not make the same. A CPU of one thread always does; here what it makes is changed by rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gquery.columns.table import ColumnData
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.kernels.builtin import gathers
from gquery.operators.base import Frame
from gquery.operators.group import GroupRun
from gquery.operators.merge_groups import merges_slots
from gquery.operators.reduce_run import ReduceRun
from gquery.planner.aggregates import SumOfDoubles


@contextmanager
def own_orders() -> Iterator[list[int]]:
    """Within it each rank has what it makes for itself its own way. The ranks that did are noted."""
    seen: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        for run in (GroupRun, ReduceRun):
            patch.setattr(run, "finalize", _changed(run.finalize, seen))
        yield seen


def _changed(finalize: Callable[[Any], Frame], seen: list[int]) -> Callable[[Any], Frame]:
    def changed(self: GroupRun | ReduceRun) -> Frame:
        frame = finalize(self)
        if self.device.ordinal == 0 or (self.exchange is not None and not _merges_in_any_order(self)):
            return frame
        seen.append(self.device.ordinal)
        sums = {c.id for c, plan in self.sink.aggregates if any(isinstance(s, SumOfDoubles) for s in plan.states)}
        columns = {i: _nudged(c, self.device) if i in sums else c for i, c in frame.columns.items()}
        if isinstance(self, GroupRun) and self.exchange is None and self.sink.layout != "direct-address":
            order = np.random.default_rng(self.device.ordinal).permutation(frame.rows).astype(np.uint32)
            rows = self.device.from_host(order)
            columns = {i: gathers.take(c, rows, self.device) for i, c in columns.items()}
        return replace(frame, columns=columns)

    return changed


def _merges_in_any_order(run: GroupRun | ReduceRun) -> bool:
    """Whether words of several ranks are added in any order, and the sums go to all ranks."""
    return (
        isinstance(run, GroupRun)
        and not merges_slots(run.sink)
        and run.exchange is not None
        and run.exchange.parts is None
    )


def _nudged(column: ColumnData, device: Device) -> ColumnData:
    """Doubles that are as many steps larger as the rank's number is. Those with zeros as last bits are the same in any order."""
    values = column.data.on(device).view(np.int64).copy()
    values += np.where((values & 0xFF != 0) & (values & 0x7FF << 52 != 0x7FF << 52), device.ordinal, 0)
    return replace(column, data=Buffer(values.view(np.float64), device))
