"""Ranks of a column's values: codes that compare as the values do, where no register holds these."""

from __future__ import annotations

import numpy as np

from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.kernels.builtin import gathers, order, scans
from gquery.kernels.builtin.elements import put
from gquery.kernels.builtin.prefix_sums import group_numbers
from gquery.operators.base import make_column, narrow, with_flags
from gquery.operators.sort_keys import key_parts
from gquery.planner.physical import Stored
from gquery.runtime.records import replace


def rank(column: ColumnData, device: Device) -> tuple[Array, ColumnData]:
    """For each row the rank of its value among the distinct values (int64), and those values as a column."""
    xp = device.xp
    rows, starts = order.sort_starts(key_parts(column, device))
    codes = xp.empty(column.length, np.int64)
    put(codes, rows, group_numbers(starts, np.int64))
    return codes, gathers.take(replace(column, validity=None), gathers.gather(rows, scans.compact(starts)), device)


def code_column(made: Stored, codes: Array, of: ColumnData, device: Device) -> ColumnData:
    """The column that a plan made of codes (any integers) for the rows of another; NULL with 0 under it where that is NULL."""
    column = make_column(made.properties, made.physical_type, narrow(codes, made.physical_type), None, of.length, device)
    return column if of.validity is None else with_flags(column, of.validity.on(device), device)
