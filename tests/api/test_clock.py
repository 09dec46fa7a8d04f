"""now() and its kin: one moment within a query, a new one for each run, whatever is kept of the query."""

from __future__ import annotations

import datetime

import pytest

import gquery
from gquery.errors import BindError, NotSupportedError
from gquery.functions import clock
from gquery.planner.optimizer import RULES
from tests.support.harness import TARGETS

_START = 1_700_000_000_000_000  # 2023-11-14 22:13:20
_FIRST = datetime.datetime(2023, 11, 14, 22, 13, 21)


@pytest.fixture(autouse=True)
def hours(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A clock that goes on by a second whenever it is read."""
    read: list[int] = []

    def moment() -> int:
        read.append(len(read))
        return _START + len(read) * 1_000_000

    monkeypatch.setattr(clock, "moment", moment)
    return read


def seconds(connection: gquery.Connection, sql: str) -> int:
    value = connection.sql(sql).fetchall()[0][0]
    assert isinstance(value, datetime.datetime)
    return round((value.replace(tzinfo=None) - _FIRST).total_seconds())


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT localtimestamp",
        "SELECT max(now()) FROM range(1000)",
        "SELECT n FROM (SELECT now() AS n) WHERE n <= now()",
        "WITH c AS (SELECT now() AS n) SELECT a.n FROM c a, c b WHERE a.n = b.n",
        "SELECT (SELECT now())",
        "SELECT now() FROM range(3) WHERE EXISTS (SELECT 1 WHERE now() > TIMESTAMPTZ '2023-01-01 00:00:00+00')",
        "SELECT get_current_timestamp() AS x UNION SELECT current_timestamp",
    ],
)
def test_every_run_has_a_moment_of_its_own(target: str, sql: str) -> None:
    connection = gquery.connect(device=target)
    connection.sql("SET interpret_limit = 0")
    runs = [seconds(connection, sql) for _ in range(3)]
    assert runs == sorted(set(runs))


def test_a_relation_that_is_run_again(hours: list[int]) -> None:
    connection = gquery.connect(device="python")
    for relation in (
        connection.sql("SELECT now() AS n"),
        connection.sql("SELECT 1 AS a").select("now() AS n"),
        connection.sql("SELECT now() AS n").limit(1),
    ):
        first, again = relation.fetchall(), relation.fetchall()
        assert first == again  # it holds its rows
    made = {connection.sql("SELECT now()").fetchall()[0][0] for _ in range(5)}
    assert len(made) == 5


def test_views_and_templates() -> None:
    connection = gquery.connect(device="python")
    connection.sql("CREATE VIEW v AS SELECT now() AS n")
    views = [seconds(connection, "SELECT n FROM v") for _ in range(3)]
    assert views == sorted(set(views))
    texts = [seconds(connection, f"SELECT now() AS n FROM range(5) t(i) WHERE i = {i}") for i in range(4)]
    assert texts == sorted(set(texts))
    connection.sql("CREATE TABLE kept AS SELECT now() AS n")
    assert seconds(connection, "SELECT n FROM kept") == seconds(connection, "SELECT n FROM kept")


def test_without_the_rules_that_may_be_left_out() -> None:
    connection = gquery.connect(device="python")
    off = ", ".join(rule.name for rule in RULES if not rule.required)
    connection.sql(f"SET disabled_rules = '{off}'")
    sql = "SELECT count(*) FROM range(3) WHERE now() = now() AND current_date = today()"
    assert connection.sql(sql).fetchall() == [(3,)]


def test_days_and_columns_of_the_name() -> None:
    connection = gquery.connect(device="python")
    assert connection.sql("SELECT current_date, today()").fetchall() == [(datetime.date(2023, 11, 14),) * 2]
    assert connection.sql("SELECT current_date FROM (SELECT 7 AS current_date)").fetchall() == [(7,)]
    assert connection.sql("SELECT (SELECT current_date) FROM (SELECT 7 AS current_date)").fetchall() == [(7,)]
    assert connection.sql("SELECT now() AS x FROM range(2) GROUP BY ALL").columns == ["x"]
    sql = "SELECT now() - INTERVAL 1 DAY < now(), now() + INTERVAL 1 MONTH"
    assert connection.sql(sql).fetchall()[0][1].month == 12


@pytest.mark.parametrize("sql", ["SELECT current_time", "SELECT current_timezone"])
def test_what_is_refused(sql: str) -> None:
    with pytest.raises((BindError, NotSupportedError)):
        gquery.connect(device="python").sql(sql)
