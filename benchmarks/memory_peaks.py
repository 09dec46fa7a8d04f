"""The most memory that a connection's devices have had in use, above what an idle connection has: watched from beside, and told
to the process that asked."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import gquery
from gquery.device.device import Device

SECONDS = 0.005  # between two looks


def devices_of(connection: gquery.Connection) -> Sequence[Device]:
    return connection._context().ranks or (connection.device,)


def used_bytes(device: Device) -> int:
    """What is in use of a device: of a GPU as the driver has it, for all that run there; of a CPU rank what was reserved."""
    if not device.is_cuda:
        return device.account.peak
    with device.activate():
        free, total = device.xp.cuda.runtime.memGetInfo()
    return int(total - free)


@contextmanager
def watched(connection: gquery.Connection) -> Iterator[list[int]]:
    """Within it, each device is looked at every 5 ms; afterwards the list has the most bytes of each above the first look."""
    connection.sql("SELECT 1").fetchall()
    devices, ended = devices_of(connection), threading.Event()
    idle = [used_bytes(d) for d in devices]
    most = list(idle)

    def look() -> None:
        while not ended.wait(SECONDS):
            most[:] = [max(m, used_bytes(d)) for m, d in zip(most, devices, strict=True)]

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join()
        most[:] = [max(m, used_bytes(d)) - i for m, d, i in zip(most, devices, idle, strict=True)]


def tell(most: Sequence[int]) -> None:
    """Print what `of_process` reads."""
    print(json.dumps(list(most)))


def of_process(arguments: Sequence[str]) -> list[int]:
    """What ``benchmarks.devices`` tells with these arguments, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.devices", *arguments]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [int(b) for b in json.loads(ran.stdout.splitlines()[-1])]
