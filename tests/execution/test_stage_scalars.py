"""Scalars that plans of one template share: what is taken as given is right for the constants, or the run is made again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.device.device import cpu_device
from gquery.errors import ConversionError
from gquery.execution.feedback import RunFeedback
from gquery.execution.speculation import Speculation
from gquery.execution.stage_feedback import ScalarSite
from gquery.execution.stage_scalars import Expected, StageScalars
from gquery.expression.slots import SlotValues
from gquery.kernels.bindings import ErrorSite
from gquery.planner import slot_uses
from gquery.planner.slot_uses import slots_by_stage
from tests.support.simulated_target import simulated_connection
from tests.support.speculating import Reads, speculate_on_host
from tests.support.templates import answer, fresh
from tests.support.tuned import Tune

ROWS = 40_000
JOIN = (
    "SELECT g, count(*) AS n, sum(w) AS w FROM p JOIN (SELECT k, g FROM b WHERE v >= {}) AS b ON p.k = b.k "
    "WHERE w < {} GROUP BY g ORDER BY g"
)
SELF = "SELECT a.k, c.g FROM b AS a JOIN b AS c ON a.h = c.h WHERE a.v < {} AND c.v >= {} ORDER BY ALL"
CHAIN = (
    "SELECT p.w, x.g FROM p JOIN (SELECT a.k, c.g FROM b AS a JOIN b AS c ON a.h = c.h WHERE a.v < {} ORDER BY ALL LIMIT 4000) "
    "AS x ON p.k = x.k WHERE p.w < {} ORDER BY ALL"
)
SHAPES = {  # a text, constants that many runs may meet before, and others: none, all, few, many
    "a join and groups": (JOIN, ["0|100", "5|100"], ["99|100", "-1|1000000000", "3|0", "0|20000", "5|31"]),
    "several of a key": (SELF, ["5|2", "9|2"], ["-1|99", "100|-5", "1|1", "50|4"]),
    "two parts": (CHAIN, ["5|100", "9|100"], ["-1|100", "5|9999999", "100|3", "9|0"]),
    "texts": ("SELECT s, count(*) FROM p WHERE s LIKE '%{}%' GROUP BY s ORDER BY s", ["1", "22"], ["zz", "", "t", "9"]),
    "keys of a filter": (
        "SELECT count(*) FROM p WHERE k IN (SELECT k FROM b WHERE v < {}) AND w > {}",
        ["3|7", "5|7"],
        ["-9|7", "1000|0", "3|1000000"],
    ),
    "distinct": ("SELECT DISTINCT k FROM p WHERE w < {} ORDER BY k LIMIT 20", ["50", "51"], ["0", "1000000", "17"]),
    "a scalar": ("SELECT k FROM b WHERE v > (SELECT avg(v) FROM b WHERE k < {}) ORDER BY k", ["9"], ["-1", "100000"]),
}


def _tables(rows: int, seed: int) -> dict[str, pa.Table]:
    rng = np.random.default_rng(seed)
    few = rows // 8
    return {
        "p": pa.table(
            {
                "k": rng.integers(0, few, rows),
                "w": rng.permutation(rows),
                "s": [f"t {n}" for n in rng.integers(0, 500, rows)],
            }
        ),
        "b": pa.table(
            {
                "k": rng.permutation(few),
                "g": rng.integers(0, 9, few),
                "v": rng.integers(0, 10, few),
                "h": rng.integers(0, few, few),
            }
        ),
    }


def _connect(rows: int = ROWS, seed: int = 1) -> gquery.Connection:
    connection = gquery.connect(device="cpu")
    connection.sql("SET interpret_limit = 0")
    for name, table in _tables(rows, seed).items():
        connection.register(name, table)
    return connection


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return speculate_on_host(monkeypatch)


def _texts(shape: str, constants: list[str]) -> list[str]:
    return [shape.format(*c.split("|")) for c in constants]


def _shared(connection: gquery.Connection, sql: str) -> StageScalars:
    prepared = connection._plans.find(sql, None, connection.settings)
    assert prepared is not None and prepared.feedback.shared is not None
    scalars = prepared.feedback.shared.scalars
    assert scalars is not None
    return scalars


@pytest.mark.parametrize("name", SHAPES)
def test_first_runs_give_the_right_rows(name: str, reads: Reads) -> None:
    shape, first, others = SHAPES[name]
    with _connect() as served, _connect() as alone:
        for sql in _texts(shape, [*first, *others, *first, *reversed(others)]):
            assert answer(served, sql)[1] == fresh(alone, sql), sql
    assert reads.wrong == 0


def test_stages_that_meet_the_same_constants_wait_for_nothing(reads: Reads) -> None:
    """The inner part is the same, the rows that it is joined with are not; then its constants are others."""
    with _connect() as connection:
        for sql in _texts(CHAIN, ["5|100", "5|100"]):
            connection.sql(sql).fetchall()
        reads.clear()
        assert answer(connection, CHAIN.format(5, 200))[0] == "hit"
        assert reads.given and reads.wrong == 0
        same = set(reads.given)
        reads.clear()
        assert answer(connection, CHAIN.format(6, 200))[0] == "hit"
        assert same <= set(reads.waited) and not same & set(reads.given) and reads.wrong == 0


def test_what_stages_depend_on() -> None:
    with _connect() as connection:
        sql = JOIN.format(4, 100)
        connection.sql(sql).fetchall()
        (template,) = connection._templates._found.popitem()[1]
        assert template.prepared is not None and template.prepared.program is not None
        slots = slots_by_stage(template.prepared.program)
        constants = {n: template.slots.literal(n)._raw for n in range(template._count)}
        used = [sorted(constants[n] for n in stage) for stage in slots]
        assert used[0] == [4] and used[-1] == [4, 100], used


def test_first_runs_do_not_look_for_what_stages_depend_on(reads: Reads, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    def counted(program: Any) -> Any:
        calls.append(program)
        return slots_by_stage(program)

    monkeypatch.setattr(slot_uses, "slots_by_stage", counted)
    with _connect() as connection:
        first = connection.sql(CHAIN.format(5, 100)).fetchall()
        assert not calls
        assert connection.sql(CHAIN.format(5, 100)).fetchall() == first and len(calls) <= 1
        reads.clear()
        connection.sql(CHAIN.format(5, 200)).fetchall()
        assert len(calls) == 1 and reads.given and reads.wrong == 0


def test_changed_tables(reads: Reads) -> None:
    """Numbers of rows that are gone are no numbers of those that came."""
    with _connect() as connection:
        for seed, rows in ((1, 4_000), (2, 4_000), (3, 16), (4, 8_000)):
            for name, table in _tables(rows, seed).items():
                connection.register(name, table)
            with _connect(rows, seed) as alone:
                for shape, first, others in (
                    SHAPES[name] for name in ("a join and groups", "several of a key", "two parts")
                ):
                    for sql in _texts(shape, first + others):
                        assert answer(connection, sql)[1] == fresh(alone, sql), (sql, rows)
    assert reads.wrong == 0


def test_wrong_numbers_are_noticed(reads: Reads) -> None:
    with _connect() as connection, _connect() as alone:
        connection.sql(CHAIN.format(5, 100)).fetchall()
        shared = _shared(connection, CHAIN.format(5, 100))
        shared.enter_last()
        for key, found in list(shared._found.items()):
            shared._found[key] = found._replace(scalars={site: value + 1 for site, value in found.scalars.items()})
        reads.clear()
        sql = CHAIN.format(5, 200)
        assert answer(connection, sql)[1] == fresh(alone, sql)
        assert reads.wrong == 1
        reads.clear()
        sql = CHAIN.format(5, 300)  # the run that was made again has told what is right
        assert answer(connection, sql)[1] == fresh(alone, sql)
        assert reads.wrong == 0 and reads.given


def test_numbers_that_are_always_wrong_are_given_up(reads: Reads, monkeypatch: pytest.MonkeyPatch) -> None:
    with _connect() as connection, _connect() as alone:
        connection.sql(CHAIN.format(5, 100)).fetchall()
        shared = _shared(connection, CHAIN.format(5, 100))
        keep = shared.keep
        monkeypatch.setattr(
            shared, "keep", lambda values, seen, grown: keep(values, {s: v + 1 for s, v in seen.items()}, grown)
        )
        for n in range(2 * tuning.speculation.given_up):
            sql = CHAIN.format(5, 101 + n)
            assert answer(connection, sql)[1] == fresh(alone, sql)
        assert reads.wrong == tuning.speculation.given_up


def test_an_error_of_other_constants(reads: Reads) -> None:
    """Once with the constants of a run that had none, once with those of a run that had the same error."""
    shape = "SELECT g, max(CAST(v * {} AS TINYINT)) FROM b WHERE k < {} GROUP BY g ORDER BY g"
    with _connect() as connection, _connect() as alone:
        for constants in ("1|100", "1|200", "100|100", "100|200", "2|100"):
            (sql,) = _texts(shape, [constants])
            got = answer(connection, sql)[1]
            assert got == fresh(alone, sql)
            assert (got is ConversionError) == constants.startswith("100")


def test_as_many_are_kept_as_tuning_says(tune: Tune) -> None:
    tune(tuning.speculation, kept_stages=8)
    with _connect() as connection:
        sql = JOIN.format(4, 100)
        connection.sql(sql).fetchall()
        prepared = connection._plans.find(sql, None, connection.settings)
        assert prepared is not None and prepared.program is not None
        scalars = StageScalars(prepared.program)
        assert scalars.expected(SlotValues([100, 4])) is None
        for n in range(50):
            scalars.keep(SlotValues([100, n]), {ScalarSite(0, 0): n})
        assert len(scalars._found) <= 8
        last = scalars.expected(SlotValues([100, 49]))
        assert last is not None and last.scalars[ScalarSite(0, 0)] == 49
        gone = scalars.expected(SlotValues([100, 1]))
        assert gone is not None and not gone.scalars and not gone.has(0)


def test_constants_that_python_takes_for_equal_are_told_apart() -> None:
    with _connect() as connection:
        sql = "SELECT count(*) FROM b WHERE CAST(v AS DOUBLE) > 0e0"
        connection.sql(sql).fetchall()
        prepared = connection._plans.find(sql, None, connection.settings)
        assert prepared is not None and prepared.program is not None
        scalars = StageScalars(prepared.program)
        scalars.keep(SlotValues([0.0]), {ScalarSite(0, 0): 7})
        other = scalars.expected(SlotValues([-0.0]))
        assert other is not None and not other.scalars


def test_threads_with_other_constants(reads: Reads) -> None:
    constants = [f"{n % 11}|{m}" for n in range(-1, 11) for m in (0, 2, 5)]
    with _connect(8_000) as alone:
        want = {sql: fresh(alone, sql) for sql in _texts(SELF, constants)}
    with _connect(8_000) as connection:
        connection.sql(SELF.format(5, 2)).fetchall()
        failures: list[Any] = []

        def work(seed: int) -> None:
            texts = list(want)
            np.random.default_rng(seed).shuffle(texts)
            mine = connection.cursor() if hasattr(connection, "cursor") else connection
            try:
                for sql in texts:
                    rows = mine.execute(sql).fetchall()
                    if rows != want[sql][2]:  # type: ignore[index]
                        failures.append(sql)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not failures


# ---- with the kernels of a GPU ----------------------------------------------------------------------------------------


@pytest.fixture
def simulated() -> Iterator[gquery.Connection]:
    with simulated_connection() as connection:
        for name, table in _tables(96, 7).items():
            connection.register(name, table)
        yield connection


def test_errors_of_kernels_are_looked_at_in_the_end(simulated: gquery.Connection, reads: Reads) -> None:
    """But for those that say that a table is full, before a run has met the constants. Another text may have the same."""
    shape = "SELECT k * 1000003 AS far, count(*) AS n FROM p WHERE w < {} GROUP BY far ORDER BY far"
    for _ in range(2):
        simulated.sql(shape.format(90)).fetchall()
    with _connect(96, 7) as alone:
        for text, is_later in (("80", False), (" 80", True), ("70", False), ("90 ", True)):
            reads.clear()
            sql = shape.format(text)
            assert answer(simulated, sql) == ("hit", fresh(alone, sql))
            assert reads.wrong == 0 and bool(reads.later) is is_later


def test_a_table_that_other_constants_fill(simulated: gquery.Connection, reads: Reads, tune: Tune) -> None:
    tune(tuning.group_layouts, least_hash_slots=2)
    shape = "SELECT w * 1000003 AS far, count(*) AS n FROM p WHERE s >= '{}' GROUP BY far ORDER BY far"
    simulated.sql(shape.format("t 9")).fetchall()
    with _connect(96, 7) as alone:
        for text in ("t 8", "", "t 99", "zz", "t 2", "t", ""):
            sql = shape.format(text)
            for again in (sql, f"{sql} ", f" {sql}"):  # other texts, whose tables begin as small
                assert answer(simulated, again) == ("hit", fresh(alone, sql))
    assert reads.wrong == 0


def test_errors_of_values_can_wait(simulated: gquery.Connection, reads: Reads) -> None:
    shape = "SELECT CAST(k * 30 AS TINYINT) AS t FROM p WHERE s = '{}' ORDER BY t"
    rows = _tables(96, 7)["p"].to_pylist()
    right, wrong = [next(r["s"] for r in rows if (r["k"] > 4) is is_wrong) for is_wrong in (False, True)]
    simulated.sql(shape.format(right)).fetchall()
    with _connect(96, 7) as alone:
        for text in ("none", wrong, right + " ", wrong, "t"):
            reads.clear()
            sql = shape.format(text)
            got = answer(simulated, sql)[1]
            assert got == fresh(alone, sql) and (got is ConversionError) is (text == wrong)
            assert reads.later and reads.wrong == 0


def _status(target: Any, known: Expected | None, retry: bool) -> bool:
    """Whether a stage's errors are looked at later."""
    made = target(RunFeedback(), cpu_device(), False)
    made._expected, made._words, made.stage = known, np.zeros(4, np.uint32), 3
    return made.status((ErrorSite(ConversionError, "no", retry),)) is not None


@pytest.mark.parametrize(
    ("known", "retry", "is_later"),
    [
        (None, False, False),
        (Expected({}, None), True, True),
        (Expected({}, frozenset()), True, False),
        (Expected({}, frozenset()), False, True),
        (Expected({}, frozenset((3,))), True, True),
    ],
)
def test_which_errors_wait_for_the_end(known: Expected | None, retry: bool, is_later: bool) -> None:
    assert _status(Speculation, known, retry) is is_later


# ---- on a GPU ---------------------------------------------------------------------------------------------------------


@pytest.mark.cuda
@pytest.mark.parametrize("name", SHAPES)
def test_first_runs_on_a_gpu(name: str) -> None:
    """Each text once, then once more written in another way, which has the same constants."""
    shape, first, others = SHAPES[name]
    with gquery.connect(device="cuda") as served, _connect() as alone:
        served.sql("SET interpret_limit = 0")
        for table, rows in _tables(ROWS, 1).items():
            served.register(table, rows)
        for sql in _texts(shape, [*first, *others, *first, *reversed(others)]):
            want = fresh(alone, sql)
            for text in (sql, f"{sql} ", f" {sql}", sql.replace(" FROM", "  FROM")):
                assert answer(served, text)[1] == want, text


@pytest.mark.cuda
def test_wrong_numbers_are_noticed_on_a_gpu() -> None:
    with gquery.connect(device="cuda") as served, _connect() as alone:
        served.sql("SET interpret_limit = 0")
        for table, rows in _tables(ROWS, 1).items():
            served.register(table, rows)
        for shift in (1, -1, 10**12, -(10**12)):
            served.sql(CHAIN.format(5, 100)).fetchall()
            shared = _shared(served, CHAIN.format(5, 100))
            shared.enter_last()
            assert len(shared._found)
            for key, found in list(shared._found.items()):
                shared._found[key] = found._replace(
                    scalars={site: value + shift for site, value in found.scalars.items()}
                )
            for n in range(3):
                sql = CHAIN.format(5, 101 + n + 10 * abs(shift))
                assert answer(served, sql)[1] == fresh(alone, sql)


@pytest.mark.cuda
def test_errors_of_first_runs_on_a_gpu() -> None:
    shape = "SELECT g, max(CAST(v * {} AS TINYINT)) FROM b WHERE k < {} GROUP BY g ORDER BY g"
    with gquery.connect(device="cuda") as served, _connect() as alone:
        served.sql("SET interpret_limit = 0")
        for table, rows in _tables(ROWS, 1).items():
            served.register(table, rows)
        for constants in ("1|100", "1|200", "100|100", "100|200", "2|100", "100|300", "100|200", "3|200"):
            (sql,) = _texts(shape, [constants])
            assert answer(served, sql)[1] == fresh(alone, sql), sql
