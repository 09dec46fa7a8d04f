"""Stages that are recorded once and played with the constants of each query: what comes of them is what DuckDB says, whatever the
constants are."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Iterator
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.execution import template_replay
from gquery.execution.feedback import TemplateProgress
from gquery.execution.template_recording import TemplateRecording
from gquery.planner.later import Later
from tests.support.quiet import wait_until_compiled
from tests.support.tuned import Tune

ROWS = 300_000
SHAPES = {
    "filter": "SELECT k, v FROM t WHERE v < {a} AND k >= {b} ORDER BY k",
    "texts": "SELECT k, s, n FROM t WHERE v BETWEEN {a} AND {a} + 3 ORDER BY k",
    "reduce": "SELECT count(*), sum(v), sum(d), min(k), max(k) FROM t WHERE v > {a} AND k < {b}",
    "few groups": "SELECT g, count(*), sum(d), avg(v) FROM t WHERE v <> {a} GROUP BY g ORDER BY g",
    "many groups": "SELECT k % 5000 AS r, sum(v) AS total FROM t WHERE v < {a} GROUP BY r ORDER BY total DESC, r LIMIT 10",
    "hash groups": "SELECT k * 977 AS r, count(*), sum(v) FROM t WHERE k < {b} GROUP BY r ORDER BY r LIMIT 20",
    "text groups": "SELECT s, count(*) FROM t WHERE v < {a} GROUP BY s ORDER BY 2 DESC, 1 LIMIT 20",
    "join": "SELECT a.k, b.v FROM t a JOIN t b ON a.k = b.k + 1 WHERE b.v < {a} AND a.v < 50 ORDER BY 1, 2",
    "join of groups": "SELECT count(*), sum(u.n) FROM t JOIN (SELECT v AS w, count(*) AS n FROM t WHERE k < {b} GROUP BY v) u "
    "ON v = w WHERE u.n > {a}",
    "fan-out": "SELECT t.v, count(*), sum(o.k) FROM t JOIN (SELECT v, k FROM t WHERE k < {b} / 100) o ON t.v = o.v "
    "WHERE t.k < 5000 GROUP BY t.v ORDER BY 1",
    "left join": "SELECT g, count(s.n), count(*) FROM t LEFT JOIN (SELECT * FROM small WHERE n > {a} / 20) s ON t.v = s.id "
    "GROUP BY g ORDER BY g NULLS FIRST",
    "not in": "SELECT count(*) FROM t WHERE v NOT IN (SELECT id FROM small WHERE id > {a} / 2)",
    "exists": "SELECT count(*) FROM t WHERE EXISTS (SELECT * FROM small WHERE small.id = t.v AND small.n < {a})",
    "scalar": "SELECT count(*) FROM t WHERE v > (SELECT avg(v) FROM t WHERE k < {b})",
    "dictionary": "SELECT g, count(*) FROM t WHERE g IN ('{c}', 'b') AND v < {a} GROUP BY g ORDER BY g",
    "segments": "SELECT o, sum(v) AS total, count(*) FROM ordered GROUP BY o HAVING sum(v) > {a} * 4 "
    "ORDER BY total DESC, o LIMIT 50",
    "segments of some": "SELECT o, max(v) FROM ordered WHERE v < {a} GROUP BY o ORDER BY o LIMIT 20",
    "parts": "SELECT count(*), min(k) FROM t WHERE s LIKE '%xt {a}%' OR s NOT LIKE '%{b}%{a}'",
    "like": "SELECT count(*), sum(k) FROM t WHERE s LIKE '%{a}%' AND v < 90",
    "case": "SELECT sum(CASE WHEN v < {a} THEN k ELSE -{b} END), count(CASE WHEN k > {b} THEN 1 END) FROM t",
    "distinct": "SELECT DISTINCT g, v FROM t WHERE k > {b} ORDER BY ALL",
    "union": "(SELECT g FROM t WHERE v < {a}) UNION ALL (SELECT g FROM t WHERE k > {b}) ORDER BY 1 NULLS LAST LIMIT 50",
    "having": "SELECT k % 1000 AS r, sum(v) FROM t GROUP BY r HAVING sum(v) > {b} / 20 ORDER BY r",
    "shared": "WITH u AS (SELECT k % 3000 AS r, sum(v) AS total FROM t WHERE v < {a} GROUP BY r) "
    "SELECT r, total FROM u WHERE total = (SELECT max(total) FROM u) ORDER BY r",
    "nulls": "SELECT n, g, k FROM t WHERE v < {a} ORDER BY n DESC NULLS FIRST, g NULLS LAST, k LIMIT 100 OFFSET 5",
    "text keys": "SELECT s, k FROM t WHERE k < {b} / 100 ORDER BY s DESC, k",
    "averages": "SELECT k % 700 AS r, avg(v) AS m FROM t WHERE v < {a} GROUP BY r ORDER BY m DESC, r",
    "wide sums": "SELECT v, sum(CAST(k AS DECIMAL(38, 0)) * 10000000000000000) AS x FROM t WHERE k < {b} GROUP BY v "
    "ORDER BY x DESC, v",
    "behind a sort": "SELECT x.k, b.s FROM (SELECT k, v FROM t WHERE v < {a} ORDER BY v, k LIMIT 20) x "
    "JOIN t b ON x.k + 1 = b.k ORDER BY 1",
    "part of a sort": "SELECT k, g FROM t WHERE v < {a} AND k < {b} / 50 ORDER BY k DESC OFFSET 700",
    "window of keys": "SELECT count(*) FROM t a WHERE a.k IN (SELECT b.k + {a} FROM t b WHERE b.v = 7)",
}


def _table(seed: int, rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(seed)
    v = rng.integers(0, 100, rows)
    null = rng.random(rows) < 0.1
    k = rng.permutation(rows)
    return pa.table(
        {
            "k": k,
            "e": np.where(k % 1000 == 999, "bad", (1 + k % 1).astype(str)),
            "v": v,
            "g": pa.array(np.array(["a", "b", "c", "d"])[v % 4], mask=null),
            "s": [f"text {n % 977}" for n in v * 7919],
            "n": pa.array(v * 3, mask=null),
            "d": pa.array([Decimal(int(n)) / 100 for n in v], pa.decimal128(12, 2)),
        }
    )


def _ordered() -> pa.Table:
    """Rows that lie in the order of a key, some of each."""
    rng = np.random.default_rng(7)
    keys = np.repeat(np.arange(ROWS // 3), rng.integers(1, 8, ROWS // 3))
    return pa.table({"o": keys, "v": rng.integers(0, 100, len(keys))})


@pytest.fixture
def connection() -> Iterator[gquery.Connection]:
    with gquery.connect(device="cuda") as made:
        made.register("t", _table(1))
        made.register("ordered", _ordered())
        made.register("small", pa.table({"id": [1, 2, 3, 50, 50, 60], "n": [1, None, 3, 4, 5, 6]}))
        yield made


def _oracle(seed: int = 1) -> duckdb.DuckDBPyConnection:
    oracle = duckdb.connect()
    oracle.register("t", _table(seed))
    oracle.register("ordered", _ordered())
    oracle.register("small", pa.table({"id": [1, 2, 3, 50, 50, 60], "n": [1, None, 3, 4, 5, 6]}))
    return oracle


def _texts(shape: str, count: int, seed: int = 3) -> list[str]:
    """Texts of a shape: some constants near each other, then extremes, for which no or all rows are left."""
    rng = random.Random(seed)
    made = [(rng.randrange(10, 60), rng.randrange(100_000, 200_000), rng.choice("acd")) for _ in range(count - 4)]
    return [
        shape.format(a=a, b=b, c=c)
        for a, b, c in [*made, (0, 0, "z"), (99, 299_999, "a"), (1, 1, "c"), (50, 10**6, "d")]
    ]


def _progress(connection: gquery.Connection, sql: str) -> TemplateProgress:
    prepared = connection._plans.find(sql, None, connection.settings)
    assert prepared is not None and prepared.feedback.shared is not None, sql
    return prepared.feedback.shared.replay


def _alike(rows: list[tuple[Any, ...]], others: list[tuple[Any, ...]]) -> bool:
    """Whether rows are the same, averages of doubles aside."""
    return len(rows) == len(others) and all(
        x == y or (isinstance(x, float) and isinstance(y, float) and abs(x - y) <= 1e-9 * abs(y))
        for a, b in zip(rows, others, strict=True)
        for x, y in zip(a, b, strict=True)
    )


def _recorded(connection: gquery.Connection, texts: list[str]) -> TemplateProgress:
    """Run texts, each once, until their template is recorded, or for good is not."""
    for sql in texts:
        connection.sql(sql).fetchall()
        progress = _progress(connection, sql)
        if progress.recorded is not None or progress.refused is not None:
            return progress
        wait_until_compiled()
    return progress


@pytest.mark.cuda
@pytest.mark.parametrize("name", SHAPES)
def test_what_is_played_is_right(connection: gquery.Connection, name: str) -> None:
    texts, oracle = _texts(SHAPES[name], 60), _oracle()
    progress = _recorded(connection, texts[:40])
    print(name, "refused:", progress.refused, "stages:", getattr(progress.recorded, "end", None))
    for sql in texts[36:]:
        rows = connection.sql(sql).fetchall()
        assert _alike(rows, oracle.sql(sql).fetchall()), sql


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["few groups", "many groups", "scalar", "join of groups", "not in"])
def test_most_shapes_are_played(connection: gquery.Connection, name: str) -> None:
    texts = _texts(SHAPES[name], 40)
    progress = _recorded(connection, texts[:30])
    assert progress.recorded is not None, progress.refused
    recorded = progress.recorded
    for sql in texts[24:30]:
        connection.sql(sql).fetchall()
    assert progress.recorded is recorded


@pytest.mark.cuda
@pytest.mark.parametrize(
    "name",
    [
        "few groups",
        "many groups",
        "texts",
        "nulls",
        "text keys",
        "averages",
        "wide sums",
        "behind a sort",
        "part of a sort",
    ],
)
def test_whole_queries_are_played(connection: gquery.Connection, name: str) -> None:
    """Sorts, what comes behind them, and a result of a few rows or of thousands."""
    texts = _texts(SHAPES[name], 40)
    recorded = _recorded(connection, texts[:30]).recorded
    assert isinstance(recorded, TemplateRecording)
    prepared = connection._plans.find(texts[0], None, connection.settings)
    assert prepared is not None and prepared.program is not None
    assert recorded.end == len(prepared.program.stages)
    assert any(_bound_stages(connection, sql) == 0 for sql in texts[30:36]), (
        "those of some had no use for their constants"
    )


def _bound_stages(connection: gquery.Connection, sql: str) -> int | None:
    """How many stages of a query got its constants, once it has run; None where its plan is not a template's."""
    connection.sql(sql).fetchall()
    prepared = connection._plans.find(sql, None, connection.settings)
    assert prepared is not None and prepared.program is not None
    stages = prepared.program.stages
    return len(stages.bound) if isinstance(stages, Later) else None


@pytest.mark.cuda
def test_more_rows_than_there_was_room_for(connection: gquery.Connection) -> None:
    """The GPU notices, and the query runs as usual."""
    oracle, shape = _oracle(), "SELECT k, v FROM t WHERE k < {} ORDER BY k"
    progress = _recorded(connection, [shape.format(1000 + n) for n in range(30)])
    assert progress.recorded is not None, progress.refused
    for most in (1010, 3000, 0, 100_000, 299_999, 1005):
        sql = shape.format(most)
        assert connection.sql(sql).fetchall() == oracle.sql(sql).fetchall()
    assert progress.given_up > 0, "3,000 rows are more than 1,029 and some slack"


@pytest.mark.cuda
def test_a_recording_gets_more_room(connection: gquery.Connection) -> None:
    """Few and many rows in turns: once there is room for the many, it stays."""
    oracle, shape = _oracle(), "SELECT k, v FROM t WHERE k % 1000 < {} ORDER BY k"
    progress = _recorded(connection, [shape.format(1 + n % 3) for n in range(30)])
    assert progress.recorded is not None, progress.refused
    for n in range(10):
        sql = shape.format(20 + n if n % 2 else 1)
        assert connection.sql(sql).fetchall() == oracle.sql(sql).fetchall()
    assert progress.given_up == 1 and progress.refused is None


def test_recordings_that_paid_may_be_given_up_any_number_of_times() -> None:
    """Those that did not are given up some times, one after another."""
    recorded: Any = SimpleNamespace(speculation=SimpleNamespace(seen={}), release=lambda: None, played=1000)
    progress = TemplateProgress()
    for _ in range(5 * tuning.replay.given_up):
        template_replay._give_up(progress, recorded)
    assert progress.refused is None
    recorded.played = 1
    for _ in range(tuning.replay.given_up - 1):
        assert progress.refused is None
        template_replay._give_up(progress, recorded)
    assert progress.refused is not None


@pytest.mark.cuda
@pytest.mark.parametrize("order", ["k", "k DESC LIMIT 3000"])
def test_as_many_rows_as_there_is_room_for(connection: gquery.Connection, order: str) -> None:
    """No row, one, all that have room, and one more."""
    oracle, shape = _oracle(), f"SELECT k, s FROM t WHERE k < {{}} ORDER BY {order}"
    progress = _recorded(connection, [shape.format(900 + n % 3) for n in range(30)])
    assert isinstance(progress.recorded, TemplateRecording), progress.refused
    room = max(frame.frame.rows for frame in progress.recorded.frames.values())
    for most in (0, 1, room - 1, room, 0, 2, room + 1, 0, 1):
        sql = shape.format(most)
        assert connection.sql(sql).fetchall() == oracle.sql(sql).fetchall()
    assert progress.refused is None


@pytest.mark.cuda
def test_longer_texts_than_there_were(connection: gquery.Connection) -> None:
    """What is sorted by has more words then."""
    texts = [(n, "x" * (n // 1000) + str(n % 7)) for n in np.random.default_rng(4).permutation(50_000).tolist()]
    connection.register("names", pa.table({"k": [k for k, _ in texts], "s": [s for _, s in texts]}))
    shape = "SELECT s, k FROM names WHERE k < {} ORDER BY s DESC, k LIMIT 50"
    progress = _recorded(connection, [shape.format(9000 + n) for n in range(30)])
    assert progress.recorded is not None, progress.refused
    for most in (9020, 9700, 30_000, 50_000, 0, 9001):
        rows = sorted([(s, k) for k, s in texts if k < most], key=lambda row: row[1])
        rows.sort(key=lambda row: row[0], reverse=True)
        assert connection.sql(shape.format(most)).fetchall() == rows[:50]


@pytest.mark.cuda
def test_patterns_of_all_lengths_are_played(connection: gquery.Connection, tune: Tune) -> None:
    """A recording for long words is given up for one of short words, which serves all."""
    tune(tuning.text_scans, least_rows=1)
    rng = np.random.default_rng(6)
    parts = ["tan", "rosy", "peach", "purple", "chiffon", "goldenrod", "cornflower", ""]
    several = rng.integers(0, 8, (ROWS, 3)).tolist()
    words = [" ".join(parts[n] for n in three) + f" {row}" for row, three in enumerate(several)]
    connection.register("parts", pa.table({"s": words, "k": np.arange(ROWS)}))
    shape = "SELECT count(*), sum(k) FROM parts WHERE s LIKE '%{}%' AND k < {}"
    long = ("chiffon", "goldenrod", "cornflower")
    progress = _recorded(connection, [shape.format(f"{w} {n}", ROWS) for n in range(9) for w in long])
    first = progress.recorded
    assert isinstance(first, TemplateRecording), progress.refused
    short = ("rosy", "tan", "chiffon", "purple", "cornflower 1", "tan 12", "goldenrod tan", "éèê", "tan " * 40, "t%n", "sy%tan")
    for word in short:
        pattern = re.compile(re.escape(word).replace("%", ".*"))
        kept = [n for n, w in enumerate(words) if pattern.search(w)]
        for n in range(4):
            want = [(len(kept), sum(kept) if kept else None)]
            assert connection.sql(shape.format(word, ROWS + n)).fetchall() == want, word
            wait_until_compiled()
    last = progress.recorded
    assert isinstance(last, TemplateRecording) and last is not first, progress.refused
    played = last.played
    for word in ("peach 1", "chiffon tan", "tan 1", "cornflower 55"):
        connection.sql(shape.format(word, ROWS)).fetchall()
    assert last.played == played + 4


@pytest.mark.cuda
def test_memory_that_runs_out_ends_a_recording(connection: gquery.Connection) -> None:
    """It holds nothing any more, no column of a table either, and another one is made."""
    texts, oracle = _texts(SHAPES["few groups"], 40), _oracle()
    recorded = _recorded(connection, texts[:30]).recorded
    assert isinstance(recorded, TemplateRecording)
    connection.device.make_room()
    assert recorded.graph is None and recorded.inputs.columns == () and not recorded.frames
    for sql in texts[30:]:
        assert _alike(connection.sql(sql).fetchall(), oracle.sql(sql).fetchall())


@pytest.mark.cuda
def test_a_table_that_was_replaced_is_seen(connection: gquery.Connection) -> None:
    texts = _texts(SHAPES["join"], 40)
    _recorded(connection, texts[:30])
    connection.register("t", _table(2))
    oracle = _oracle(2)
    for sql in texts[28:]:
        assert connection.sql(sql).fetchall() == oracle.sql(sql).fetchall()


@pytest.mark.cuda
def test_a_constant_that_fails_is_an_error(connection: gquery.Connection) -> None:
    """Only rows that a filter lets through are looked at."""
    shape = "SELECT sum(CAST(e AS INTEGER)) FROM t WHERE k % 1000 < {}"
    progress = _recorded(connection, [shape.format(500 + n) for n in range(30)])
    assert progress.recorded is not None, progress.refused
    for n in range(3):
        with pytest.raises(gquery.ConversionError):
            connection.sql(shape.format(1000 + n)).fetchall()
        assert connection.sql(shape.format(300 + n)).fetchall() == [(300 * (300 + n),)]


@pytest.mark.cuda
def test_threads_play_with_constants_of_their_own(connection: gquery.Connection) -> None:
    texts, oracle = _texts(SHAPES["many groups"], 60), _oracle()
    _recorded(connection, texts[:30])
    expected = {sql: oracle.sql(sql).fetchall() for sql in texts[30:]}
    wrong: list[str] = []

    def play(part: int) -> None:
        for sql in texts[30 + part :: 4]:
            if connection.sql(sql).fetchall() != expected[sql]:
                wrong.append(sql)

    threads = [threading.Thread(target=play, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
