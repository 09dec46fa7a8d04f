"""What the kernels that partition rows on a GPU do, row by row, where there is none: by what stands in their job."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from gquery import tuning
from gquery.device.device import Device
from gquery.device.profile import H200
from gquery.kernels.builtin import row_partition
from gquery.kernels.builtin.define import BuiltinKernel
from gquery.kernels.primitives import row_partition as words


def run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have launches of these kernels done here, also over arrays of a CPU."""
    monkeypatch.setattr(row_partition, "_run", _run_here)
    monkeypatch.setattr(Device, "empty", Device.zeros)  # counts are added to


def _elements(address: int, size: int) -> Any:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def _run_here(
    builtin: BuiltinKernel, rows: int, shared: int, device: Device, job: np.ndarray, values: np.ndarray
) -> None:
    """What the two kernels do, row by row, by what stands in their job."""
    labels, wide, count, tiles, parts, bits, copies, columns, mask = job[: words.FIRST_COLUMN].tolist()
    assert count == rows and 2**bits >= parts > 2 ** (bits - 1) and parts * copies <= tuning.partitioning.counters
    found = _elements(labels, rows << wide).view(np.uint16 if wide else np.uint8)
    tile = np.arange(rows) // words.TILE
    if builtin is row_partition.COUNT_ROWS:
        np.add.at(values.reshape(parts, tiles), (found, tile), 1)
        return
    assert shared * 8 <= H200.most_shared_bytes
    places = values[:-1].reshape(parts, tiles).copy()
    new = np.empty(rows, np.int64)
    for row in range(rows):
        new[row] = places[found[row], tile[row]]
        places[found[row], tile[row]] += 1
    end = words.FIRST_COLUMN + columns * words.COLUMN_WORDS
    for source, at, shift, size in job[words.FIRST_COLUMN : end].reshape(columns, words.COLUMN_WORDS).tolist():
        for row in range(rows):
            target = int(job[at + (int(found[row]) & mask)])
            ctypes.memmove(target + (int(new[row]) << shift), source + (row << shift), size)
