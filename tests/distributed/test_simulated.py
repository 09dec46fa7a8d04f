"""CPUs that stand for devices: memory of their own, an account of it, and kernels that take no other's."""

from __future__ import annotations

import gc
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery.device.address_space import owner_of, space_of
from gquery.device.buffer import Buffer, device_of
from gquery.device.device import Device, cpu_device
from gquery.device.simulated import SimulatedDevice, active_device
from gquery.errors import InternalError
from gquery.kernels import checks
from gquery.kernels.builtin import gathers
from gquery.kernels.builtin.define import FILLS, launch
from tests.support.harness import compare, expect

HOST, ONE, TWO = cpu_device(), Device("cpu", 1), Device("cpu", 2)


def live(device: Device) -> int:
    """The bytes that live arrays of `device` have. The tests that compare two such figures each use a device that no
    other test has: what another test left behind may be freed at any moment."""
    assert isinstance(device, SimulatedDevice)
    return device.live_bytes


# ---- memory ---------------------------------------------------------------------------------------------------------


def test_devices_are_what_they_are_called() -> None:
    assert (ONE.name, TWO.name, HOST.name) == ("cpu:1", "cpu:2", "cpu")
    assert Device("cpu", 1) == ONE != TWO != HOST and hash(Device("cpu", 1)) == hash(ONE)
    assert ONE.is_cpu and not ONE.is_cuda and ONE.xp is np
    assert isinstance(ONE.with_limit(100), SimulatedDevice) and ONE.with_limit(100).memory_limit == 100
    assert not isinstance(HOST, SimulatedDevice) and not isinstance(Device("cuda", 1), SimulatedDevice)


@pytest.mark.parametrize("shape", [5, 0, (3, 4), (0, 4), 70_000])
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32"])
def test_arrays_lie_in_the_device(shape: Any, dtype: str) -> None:
    for made in (ONE.empty(shape, dtype), ONE.zeros(shape, dtype), ONE.full(shape, 1, dtype)):
        like = np.zeros(shape, dtype)
        assert (made.shape, made.dtype) == (like.shape, like.dtype)
        assert made.flags.writeable and made.flags.c_contiguous
        assert owner_of(made) == (1 if made.size else 0) and device_of(made) == (ONE if made.size else HOST)
        assert made.size == 0 or (made.ctypes.data % 16 == 0 and owner_of(made.ctypes.data) == 1)
    host = np.arange(12, dtype=dtype)
    for copy in (ONE.from_host(host), ONE.initialized(host)):
        assert owner_of(copy) == 1 and (copy == host).all()
    again = ONE.from_host(host)
    assert ONE.from_host(again) is again and not np.shares_memory(ONE.initialized(again), again)
    assert owner_of(ONE.to_host(again)) == 0 and ONE.to_host(host) is host
    assert owner_of(host) == 0 and owner_of(None) == 0 and owner_of("text") == 0


def test_zeros_are_zeros_where_other_arrays_were() -> None:
    for size in (10, 1000, 1 << 15, 1 << 16, 3 << 20):
        for _ in range(3):
            made = TWO.zeros(size, np.uint8)
            assert not made.any()
            made.fill(7)
            del made


def test_the_account_follows_arrays_and_their_views() -> None:
    device = Device("cpu", 94)
    made = device.empty(1000, np.int64)
    view = made[10:20].view(np.uint8)
    del made
    assert live(device) == 8000, "a view keeps the memory"
    del view
    assert live(device) == 0


@pytest.mark.parametrize("seed", range(4))
def test_arrays_do_not_overlap(seed: int) -> None:
    """Threads take and let go of arrays at once; each finds in its own what it wrote there."""
    device = Device("cpu", 100 + seed)
    errors: list[int] = []

    def work(number: int) -> None:
        order = random.Random(f"{seed} {number}")
        held: list[tuple[Any, int]] = []
        for _ in range(400):
            if held and order.random() < 0.5:
                array, value = held.pop(order.randrange(len(held)))
                if not (array == value).all():
                    errors.append(value)
            else:
                value = order.randrange(256)
                held.append((device.full(order.choice((1, 60, 65, 4000, 70_000)), value, np.uint8), value))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and live(device) == 0


def test_memory_goes_back_to_the_system() -> None:
    """2 GB are taken and written, one array after another, of which two are there at once at most."""
    device = Device("cpu", 97)
    for _ in range(64):
        device.full(32 << 20, 1, np.uint8)
    space = space_of(97)
    assert live(device) == 0 and space._top <= 64 << 20


def test_buffers_are_copied_between_devices() -> None:
    host = np.arange(100)
    buffer = Buffer(host)
    first, second = buffer.on(ONE), buffer.on(TWO)
    assert [owner_of(a) for a in (buffer.on(HOST), first, second)] == [0, 1, 2]
    assert buffer.on(HOST) is host and (first == host).all() and (second == host).all()
    alone = Buffer(first, ONE)
    assert alone.devices == (ONE,) and Buffer(first).devices == (ONE,)
    assert owner_of(alone.host) == 0 and owner_of(alone.on(TWO)) == 2 and alone.cpu is first
    alone.drop(ONE)
    assert not alone.is_on(ONE) and (alone.on(ONE) == host).all()


# ---- kernels --------------------------------------------------------------------------------------------------------


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "ENABLED", True)


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("rows", [3, 100_000])
def test_a_kernel_takes_no_memory_of_another(rows: int) -> None:
    """Interpreted and compiled, arrays and addresses; memory of the host is anybody's."""
    kernel = FILLS["i64"]
    own, other, host = ONE.empty(rows, np.int64), TWO.empty(rows, np.int64), np.empty(rows, np.int64)
    device = Device("cpu", 1)
    device.task = "stage 3: sort"
    with device.activate():
        assert active_device() is device
        for values in (own, host):
            launch(kernel, 3, values, values, 7)
            assert values[:3].tolist() == [7] * 3
        digest = kernel.kernel.digest
        said = f"stage 3: sort on cpu:1: parameter values of kernel {digest} is memory of cpu:2"
        with pytest.raises(InternalError, match=f"^{said}$"):
            launch(kernel, 3, other, other, 7)
        with pytest.raises(InternalError, match="parameter value of kernel"):
            launch(kernel, 3, own, own, int(other.ctypes.data) + 8)
        with TWO.activate():
            launch(kernel, 3, other, other, 7)
        with pytest.raises(InternalError, match="parameter values"):
            launch(kernel, 3, other[1:], other[1:], 7)
    assert active_device() is None
    launch(kernel, 3, other, other, 8)


def test_views_of_text_are_of_their_device() -> None:
    offsets, characters = np.array([0, 1, 3]), np.frombuffer(b"abc", np.uint8)
    with ONE.activate():
        made, text = gathers.gather_strings(
            np.array([ONE.from_host(characters).ctypes.data, 1, ONE.from_host(characters).ctypes.data + 1, 2])
        )
    assert made.tolist() == offsets.tolist() and len(text) == 3


# ---- queries --------------------------------------------------------------------------------------------------------


def tables() -> dict[str, pa.Table]:
    order = random.Random(1)
    rows = 3000
    words = [None, "", "a", "abc", "b" * 30, "zebra", "ä"]
    return {
        "t": pa.table({
            "k": [order.choice((None, *range(50))) for _ in range(rows)],
            "v": [order.randrange(-(10**6), 10**6) for _ in range(rows)],
            "s": pa.array([f"{order.choice(words)}{order.randrange(9) if i % 3 else i}" for i in range(rows)], pa.string()),
            "w": pa.array([order.choice(words) for _ in range(rows)], pa.string()),
            "f": [order.choice((None, 0.5, -1.25, 3.0)) for _ in range(rows)],
        }),
        "u": pa.table({"k": list(range(0, 80, 2)), "n": [f"name {i}" for i in range(40)]}),
        "none": pa.table({"k": pa.array([], pa.int64()), "s": pa.array([], pa.string())}),
    }  # fmt: skip


TABLES = tables()
QUERIES = [
    "SELECT sum(v), min(s), max(w), count(f), avg(f) FROM t WHERE v > 0",
    "SELECT k, count(*), sum(v), min(s), max(w) FROM t GROUP BY k",
    "SELECT s, count(*), sum(v) FROM t GROUP BY s",
    "SELECT w, k, sum(v * 3) FROM t GROUP BY w, k",
    "SELECT t.k, n, v FROM t JOIN u ON t.k = u.k WHERE s LIKE '%a%'",
    "SELECT t.k, n FROM t LEFT JOIN u ON t.k = u.k AND v > 10",
    "SELECT t.k, u.k, n FROM t FULL JOIN u ON t.k = u.k + 1",
    "SELECT a.s, b.v FROM t a JOIN t b ON a.s = b.s AND a.v < b.v",
    "SELECT k FROM u WHERE k NOT IN (SELECT k FROM t WHERE k IS NOT NULL)",
    "SELECT s, v, f FROM t ORDER BY f NULLS FIRST, s DESC, v LIMIT 50",
    "SELECT DISTINCT w, f FROM t UNION ALL SELECT n, 1.0 FROM u",
    "SELECT upper(s), length(w), substring(s, 2, 3) FROM t WHERE f IS NULL",
    "SELECT count(DISTINCT s), count(DISTINCT k) FROM t",
    "SELECT regexp_replace(w, 'a+', 'x'), count(*) FROM t GROUP BY 1",
    "SELECT v FROM t WHERE v > (SELECT avg(v) FROM t x WHERE x.k = t.k)",
    "SELECT t.k, none.s FROM t LEFT JOIN none ON t.k = none.k WHERE t.v < 0",
    "SELECT sum(k), min(s), count(*) FROM none",
]


@pytest.fixture(params=["python", "cpu"])
def connection(request: pytest.FixtureRequest) -> Iterator[gquery.Connection]:
    with gquery.connect(device=request.param) as made:
        made.device = Device("cpu", 95)
        if request.param == "cpu":
            made.sql("SET interpret_limit = 0")
        for name, table in TABLES.items():
            made.register(name, table)
        yield made


@pytest.mark.parametrize("sql", QUERIES)
def test_queries_run_as_on_the_host(connection: gquery.Connection, sql: str) -> None:
    """The first time, and speculating on what that was."""
    types, want = expect(sql, TABLES)
    for _ in range(3):
        assert compare(connection.sql(sql).fetchall(), want, False, types) is None


def test_results_lie_on_the_host_and_columns_on_the_device(connection: gquery.Connection) -> None:
    device = connection.device
    gc.collect()
    before = live(device)
    assert connection.sql("SELECT count(*) FROM t WHERE v > 0 AND s > 'a'").fetchall()[0][0] > 0
    loaded = live(device)
    assert loaded > before, "columns were copied there"
    for _ in range(3):
        connection.sql("SELECT count(*) FROM t WHERE v > 0 AND s > 'a'").fetchall()
        gc.collect()
        assert live(device) == loaded, "what a query makes is freed behind it"


@pytest.mark.usefixtures("checked")
def test_a_query_over_memory_of_another_device(connection: gquery.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """A buffer that hands out another device's copy, as one that forgot to copy would."""
    on: Callable[..., Any] = Buffer.on
    strange = Device("cpu", 96)

    def elsewhere(buffer: Buffer, device: Device, context: str = "") -> Any:
        array = on(buffer, device, context)
        return strange.from_host(array.copy()) if device.ordinal == 95 and array.size > 1000 else array

    monkeypatch.setattr(Buffer, "on", elsewhere)
    with pytest.raises(InternalError, match=r"on cpu:95: parameter \w+ of kernel \w+ is memory of cpu:96"):
        connection.sql("SELECT sum(v) FROM t").fetchall()
