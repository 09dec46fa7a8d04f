"""Rows of two columns of int64 on each rank, exchanged by the hash of the first: what it takes, partitioning included.

    python -m benchmarks.exchange --devices 2 --rows 625_000_000
    python -m benchmarks.exchange --device cpu --devices 3 --rows 1_000_000

Each rank has so many rows (625 million are 10 GB), and gets about as many. It is the exchange of joins and windows
(`execution.hashed_rows`): GPUs write to each other's memory, or partition, and copy what is theirs. A line for each way:
milliseconds, least and median of several runs, from when all ranks are ready until the last one has all its rows. What has come
is checked: whole rows, of the right part, in rank order and within a rank in their order.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import replace
from unittest import mock

import numpy as np

import gquery
from benchmarks.partitioning import ODD, ROW_BYTES, make_frame
from gquery.columns.table import ColumnData
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.distributed.transport import Comm, run_ranks
from gquery.execution import direct_exchange
from gquery.execution.feedback import RunFeedback
from gquery.execution.hashed_rows import exchanged
from gquery.execution.speculation import Speculation
from gquery.execution.state import Rank, Run
from gquery.expression.expr import Column
from gquery.expression.types import BIGINT, PhysicalType
from gquery.kernels.builtin import row_partition
from gquery.kernels.builtin.key_hashes import PartRule, label_rows
from gquery.kernels.values import value_properties
from gquery.operators.base import Frame
from gquery.operators.partition_rows import HashPartitioning
from gquery.planner.physical import Program, Stored

STORED = tuple(
    [
        Stored(
            Column(n, name, BIGINT), physical_type=PhysicalType.I64, properties=value_properties(BIGINT, nullable=False)
        )
        for n, name in enumerate(("key", "number"))
    ]
)


def rows_of(rank: int, rows: int, device: Device) -> Frame:
    """Rows whose numbers go on where those of the rank before end."""
    made = make_frame(rows, "distinct", device)
    numbers = made.columns[1].data.on(device) + np.int64(rank * rows)
    columns = [ColumnData(BIGINT, PhysicalType.I64, rows, Buffer(a, device)) for a in (numbers * ODD, numbers)]
    return Frame(dict(enumerate(columns)), rows)


def check(made: Frame, comm: Comm, device: Device) -> None:
    keys, numbers = (made.columns[i].data.on(device) for i in (0, 1))
    assert bool((numbers * ODD == keys).all()), "rows have come apart"
    assert bool((numbers[1:] > numbers[:-1]).all()), "rows are out of order"
    labels = row_partition.labels_for(made.rows, comm.size, device, "")
    label_rows([made.columns[0]], labels, PartRule(comm.size), device)
    assert bool((labels == comm.rank).all()), "rows of others have come"


def times(connection: gquery.Connection, rows: int, runs: int) -> list[float]:
    """Milliseconds of each run but for the first."""
    context = connection._context()
    found = []

    def work(comm: Comm) -> list[float]:
        device = context.ranks[comm.rank]
        with device.activate():
            frame = rows_of(comm.rank, rows, device)
            own = replace(context, device=device, ranks=())
            feedback = RunFeedback()
            state = Run(Program((), (), ()), own, feedback, Speculation(feedback, device, waits=True))
            rank = Rank(comm, (), {})
            how, made = HashPartitioning((0,), comm.size), []
            for run in range(1 + runs):
                device.synchronize()
                comm.agree("begin", True)
                start = time.perf_counter()
                got = exchanged(state, rank, frame, how, STORED, "rows")
                device.synchronize()
                comm.agree("end", True)
                made.append(1e3 * (time.perf_counter() - start))
                if run == 0:
                    check(got, comm, device)
                    assert sum(comm.all_gather("rows", got.rows)) == rows * comm.size
                del got
            return made[1:]

    found = run_ranks(work, len(context.ranks))
    return [max(of_run) for of_run in zip(*found, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--rows", type=int, default=625_000_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    devices = list(range(given.devices)) if given.device == "cuda" else given.devices
    print(f"{given.rows:,} rows, {ROW_BYTES * given.rows / 1e9:.1f} GB on each of {given.devices} ranks")
    never = mock.Mock(return_value=False)
    ways = {"written": direct_exchange.may_write, "copied": never}
    for name, way in ways.items() if given.device == "cuda" else [("copied", never)]:
        with gquery.connect(given.device, devices=devices) as connection:
            with mock.patch.object(direct_exchange, "may_write", way):
                made = times(connection, given.rows, given.runs)
        print(f"{name:>8}: {min(made):8.2f} {statistics.median(made):8.2f} ms", flush=True)


if __name__ == "__main__":
    main()
