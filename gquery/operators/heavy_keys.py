"""Heavy keys: those that have so many rows that the part which gets them is much larger than the others.

No hash divides the rows of one key. So they stay where they are (`HashPartitioning.own`), and what they are to meet comes to
them. A sample of each rank's rows tells which keys these are; all ranks have to decide from the same samples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.expression.frozen import frozen_single
from gquery.kernels.builtin.key_hashes import hash_rows
from gquery.kernels.readback import read_scalar, validate
from gquery.operators.base import Frame


@frozen_single
class KeySample:
    """The hashes of some rows' keys (int64, on the host), and how many rows they stand for."""

    hashes: Array
    rows: int


def sample_keys(frame: Frame, keys: Sequence[int], device: Device, workers: int = 1) -> KeySample:
    """A sample of a frame's rows, the same each time: one row of each few that follow each other, not always the first."""
    rows = frame.rows if frame.number is None else read_scalar(frame.number)
    stride = max(1, rows // tuning.partitioning.sampled_rows)
    with device.activate():
        hashes = hash_rows([frame.columns[k] for k in keys], rows // stride, device, workers, stride)
        validate()
        return KeySample(device.to_host(hashes), rows)


def heavy_among(samples: Sequence[KeySample], parts: int) -> Array:
    """The hashes (int64, ascending, on the host) of the keys that have more than a share of a mean part's rows, by the samples of
    all ranks. A key that was met a few times alone is none: of few rows each key has a large share."""
    every = np.concatenate([np.zeros(0, np.int64), *(s.hashes for s in samples)])
    found, group, met = np.unique(every, return_inverse=True, return_counts=True)
    each = [np.full(s.hashes.size, s.rows / max(s.hashes.size, 1)) for s in samples]
    rows = np.bincount(group, np.concatenate([np.zeros(0), *each]), minlength=found.size)
    limits = tuning.partitioning
    enough = limits.heavy_fraction * sum(s.rows for s in samples) / parts
    heavy: Array = found[(rows > enough) & (met >= limits.heavy_least_sampled)]
    return heavy


def heavy_keys(frame: Frame, keys: Sequence[int], parts: int, device: Device, workers: int = 1) -> Array:
    """Those of one frame; see `heavy_among`."""
    return heavy_among([sample_keys(frame, keys, device, workers)], parts)
