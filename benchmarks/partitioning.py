"""Rows of two columns of int64, partitioned by the hash of the first: what it takes beside a copy of the same bytes.

    python -m benchmarks.partitioning --device cpu --rows 4000000 --parts 2 8 64
    python -m benchmarks.partitioning --device cuda --rows 625000000 --parts 2 8 64 --keys distinct half

A line a number of parts: milliseconds (least of several; of a GPU by its events, of a CPU the time of one thread) in all, for
the part of each row, for counting and scanning, and for moving; the share of a copy's rate, counting each column as read
and written once; and the bytes that are really moved, over that rate. The result is checked: what has moved, where and in
which order.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.device import Device, cpu_device, cuda_device
from gquery.expression.types import BIGINT, PhysicalType
from gquery.kernels.builtin import row_partition, row_scatter
from gquery.kernels.builtin.define import address
from gquery.kernels.builtin.key_hashes import PartRule, label_rows
from gquery.kernels.primitives.row_partition import TILE
from gquery.operators.base import Frame
from gquery.operators.partition_rows import HashPartitioning, Partitioned, partition_rows

ODD = 0x1E3779B97F4A7C15  # times a row's number: keys that are all different
ROW_BYTES = 16
RUNS = 7


def make_frame(rows: int, keys: str, device: Device) -> Frame:
    """Keys and the numbers of rows; of the keys all are different, or one has half or all of the rows."""
    numbers = device.xp.arange(rows, dtype=np.int64)
    made = numbers * ODD
    if keys != "distinct":
        made[numbers % 2 == 0 if keys == "half" else numbers >= 0] = 7
    columns = [ColumnData(BIGINT, PhysicalType.I64, rows, Buffer(a, device)) for a in (made, numbers)]
    return Frame(dict(enumerate(columns)), rows)


def least(work: Callable[[], Any], device: Device, runs: int) -> float:
    """Milliseconds of the quickest run, behind one that is not counted."""
    work()
    return min(_once(work, device) for _ in range(runs))


def _once(work: Callable[[], Any], device: Device) -> float:
    if device.is_cpu:
        start = time.process_time()
        work()
        return 1e3 * (time.process_time() - start)
    cuda = device.xp.cuda
    events = cuda.Event(), cuda.Event()
    events[0].record()
    work()
    events[1].record()
    events[1].synchronize()
    return float(cuda.get_elapsed_time(*events))


def copy_rate(frame: Frame, device: Device, runs: int) -> float:
    """Bytes read and written a millisecond by a copy of both columns."""
    sources = [c.data.on(device) for c in frame.columns.values()]
    targets = [device.xp.empty_like(s) for s in sources]

    def copy() -> None:
        for source, target in zip(sources, targets, strict=True):
            device.xp.copyto(target, source)

    return 2 * ROW_BYTES * frame.rows / least(copy, device, runs)


def steps(frame: Frame, parts: int, device: Device) -> list[Callable[[], Any]]:
    """The three steps of a partitioning, each over what the one before has made."""
    labels = row_partition.labels_for(frame.rows, parts, device, "")
    label_rows([frame.columns[0]], labels, PartRule(parts), device)
    sources = [c.data.on(device) for c in frame.columns.values()]
    found: list[Callable[[], Any]] = [lambda: label_rows([frame.columns[0]], labels, PartRule(parts), device)]
    if device.is_cpu:
        units, _ = row_scatter.count_units(labels, parts, 1)
        found.append(lambda: row_scatter.count_units(labels, parts, 1))
        found.append(lambda: [row_scatter.move_fixed(units, s, 1, device, "") for s in sources])
        return found
    starts = row_partition.count_on_gpu(labels, parts, device, "")
    targets = [device.empty(frame.rows, np.int64) for _ in sources]
    moves = [(address(s), address(t), 8, 1) for s, t in zip(sources, targets, strict=True)]
    found.append(lambda: row_partition.count_on_gpu(labels, parts, device, ""))

    def move() -> list[Array]:
        row_partition.move_on_gpu(labels, starts, parts, moves, device)
        return targets  # which so are there for as long as this is

    return [*found, move]


def moved_bytes(rows: int, parts: int) -> int:
    """What the three steps read and write: keys and labels; labels and counts, which are scanned; labels and columns."""
    label = np.dtype(row_partition.label_type(parts)).itemsize
    counts = parts * -(-rows // TILE)
    return rows * (8 + label) + rows * label + counts * (4 + 4 + 8) + rows * (label + 2 * ROW_BYTES) + 8 * counts


def check(given: Frame, made: Partitioned, device: Device) -> None:
    """Every row has moved as a whole, to the part of its key, behind those of its part that came before it."""
    keys, numbers = (made.frame.columns[i].data.on(device) for i in (0, 1))
    assert bool((given.columns[0].data.on(device)[numbers] == keys).all()), "rows have come apart"
    labels = row_partition.labels_for(given.rows, made.parts, device, "")
    label_rows([made.frame.columns[0]], labels, PartRule(made.parts), device)
    starts = device.xp.asarray(np.array(made.starts))
    assert device.xp.array_equal(device.xp.searchsorted(labels, device.xp.arange(made.parts)), starts[:-1]), "starts"
    first = device.xp.zeros(given.rows + 1, bool)
    first[starts] = True
    assert bool(((numbers[1:] > numbers[:-1]) | first[1:-1]).all()), "rows are out of order"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--parts", type=int, nargs="+", default=[2, 8, 64])
    parser.add_argument("--keys", choices=("distinct", "half", "one"), nargs="+", default=["distinct"])
    parser.add_argument("--runs", type=int, default=RUNS)
    given = parser.parse_args()
    device = cpu_device() if given.device == "cpu" else cuda_device()
    with device.activate():
        for keys in given.keys:
            report(make_frame(given.rows, keys, device), keys, given, device)


def report(frame: Frame, keys: str, given: argparse.Namespace, device: Device) -> None:
    rate = copy_rate(frame, device, given.runs)
    size = ROW_BYTES * frame.rows
    print(f"{device.model}, {frame.rows:,} rows of {ROW_BYTES} bytes ({size / 1e9:.1f} GB), keys: {keys}")
    print(f"a copy: {2 * size / rate:.2f} ms, {rate / 1e9:.3f} TB/s")
    print(f"{'parts':>6} {'all':>8} {'label':>8} {'count':>8} {'move':>8} {'of copy':>8} {'at copy rate':>13}   (ms)")
    for parts in given.parts:
        by = HashPartitioning((0,), parts)
        check(frame, partition_rows(frame, by, device, 1, "the benchmark"), device)
        total = least(partial(partition_rows, frame, by, device, 1, "the benchmark"), device, given.runs)
        label, count, move = (least(step, device, given.runs) for step in steps(frame, parts, device))
        share, floor = 2 * size / rate / total, moved_bytes(frame.rows, parts) / rate
        print(f"{parts:6} {total:8.2f} {label:8.2f} {count:8.2f} {move:8.2f} {share:8.0%} {floor:13.2f}")


if __name__ == "__main__":
    main()
