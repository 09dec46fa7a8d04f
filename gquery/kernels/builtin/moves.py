"""The kernels of `device.file_copies`: pieces of arrays that go to a GPU and come from it."""

from __future__ import annotations

import numpy as np

from gquery.device.array import Array
from gquery.device.movers import Movers, use_movers
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel
from gquery.kernels.builtin.held_pages import are_ready, run

SEND = builtin_kernel("job:*i64 found:*i64", "store_i64(found, i64(i), send_pieces(job))")
RECEIVE = builtin_kernel("job:*i64 found:*i64", "store_i64(found, i64(i), receive_pieces(job))")


class Kernels:
    """See `Movers`."""

    def send(self, job: Array) -> int:
        """See `Movers.send`."""
        return _outcome(SEND, job)

    def receive(self, job: Array) -> int:
        """See `Movers.receive`."""
        return _outcome(RECEIVE, job)


def _outcome(builtin: BuiltinKernel, job: Array) -> int:
    found = np.zeros(1, np.int64)
    run("cpu", builtin, 1, job, found)
    return int(found[0])


_kernels = Kernels()


def find_movers() -> Movers | None:
    """The kernels, if they are compiled; else they will be, in the background."""
    return _kernels if are_ready("cpu", SEND, RECEIVE) else None


use_movers(find_movers)
