"""A client of Dask that cannot connect is gone at once: nothing of it is closed later, when Python collects it."""

from __future__ import annotations

import gc
import threading
from dataclasses import replace

import pytest

import gquery
from gquery import tuning

distributed = pytest.importorskip("distributed")


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "x", ":", "nonsense://q"])
def test_nothing_is_left_of_a_client_that_cannot_connect(address: str) -> None:
    before = _loops()
    quick = tuning.using(replace(tuning.cluster, connect_seconds=1))
    with quick, pytest.raises(gquery.OperationalError, match="There is no scheduler of Dask at"):
        gquery.connect(device="python", cluster=address)
    open_ones = [o for o in gc.get_objects() if isinstance(o, distributed.Client) and o.status != "closed"]
    assert not open_ones, "closed by the collector, it waits for a lock that a client which starts may hold"
    assert _loops() == before


@pytest.mark.parametrize("address", ["x", "", ":", "tcp://x", "nonsense://q:1"])
def test_what_is_no_address_starts_no_client(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[threading.Thread] = []
    monkeypatch.setattr(threading.Thread, "start", started.append)
    with pytest.raises(gquery.OperationalError, match="There is no scheduler of Dask at"):
        gquery.connect(device="python", cluster=address)
    assert not started


def _loops() -> int:
    return sum(t.name == "IO loop" for t in threading.enumerate())
