"""What a query moves through memory, and how fast the memory is: for the share of the copy bandwidth.

With `cubins` the one module of this folder that looks inside the engine. The bytes are those of `gquery.execution.measure`, the
account behind EXPLAIN ANALYZE: what the kernels read and wrote in a run of its own, which is not timed. Beside them
stands what the query's columns take in memory, as they are kept: a scan that reads each of them once moves that much.
"""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import dataclass

import numpy as np

from gquery.api.connection import Connection
from gquery.execution import ExecutionContext, run_with_report
from gquery.execution.measure import Meter
from gquery.planner.physical import Pipeline, Program, ReadTable

CUDA_BYTES, CPU_BYTES = 1 << 30, 1 << 28  # of each array of a copy
COPIES = 7


@dataclass(frozen=True)
class Traffic:
    """Bytes that the kernels of a query read and wrote, that its columns take, and seconds that its kernels took."""

    read: int
    written: int
    columns: int
    kernel_seconds: float


def traffic(connection: Connection, sql: str) -> Traffic:
    """Runs a query once with a meter on each launch."""
    program = connection.program(sql)
    meter = Meter(connection.device)
    context = ExecutionContext(connection.target, connection.device, connection.settings, meter=meter)
    run_with_report(program, context)
    kernels = [report for of_stage in meter.kernels.values() for report in of_stage.values()]
    read, written = sum(k.bytes_read for k in kernels), sum(k.bytes_written for k in kernels)
    return Traffic(read, written, column_bytes(program), sum(k.seconds for k in kernels))


def column_bytes(program: Program) -> int:
    """What the columns of tables that a program reads take, each counted once."""
    wanted: dict[tuple[int, int], int] = {}
    for stage in program.stages:
        if isinstance(stage.work, Pipeline) and isinstance(stage.work.source, ReadTable):
            source, fields = stage.work.source.source, stage.work.source.fields
            for field, column in zip(fields, source.load(fields).columns, strict=True):
                wanted[id(source), field] = column.nbytes
    return sum(wanted.values())


def copy_bandwidth(connection: Connection) -> float:
    """Bytes a second, read and written, of the fastest of several copies: within a GPU's memory, or within the host's by
    as many threads as the connection has."""
    return _cuda_copy(connection) if connection.device.is_cuda else _host_copy(connection.settings.worker_count)


def _cuda_copy(connection: Connection) -> float:
    from gquery.kernels.targets.cuda_events import copy_seconds

    size = min(CUDA_BYTES, connection.device.free_bytes // 4) // 8 * 8
    with connection.device.activate():
        return 2 * size / copy_seconds(size, COPIES)


def _host_copy(threads: int) -> float:
    source, target = np.ones(CPU_BYTES // 8), np.zeros(CPU_BYTES // 8)
    bounds = [len(source) * n // threads for n in range(threads + 1)]
    times = []
    for _ in range(COPIES):
        workers = [
            threading.Thread(target=np.copyto, args=(target[low:high], source[low:high]))
            for low, high in itertools.pairwise(bounds)
        ]
        start = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        times.append(time.perf_counter() - start)
    return 2 * CPU_BYTES / min(times)
