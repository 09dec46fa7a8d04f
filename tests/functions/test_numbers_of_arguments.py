"""Calls with any number of arguments of any types: planned, or refused with an error of gquery's own."""

from __future__ import annotations

import pytest

import gquery
from gquery.functions import FUNCTIONS
from gquery.functions.registry import LIST_RESOLVERS, RESOLVERS
from tests.support.marks import one_in

TABLE = """
CREATE TABLE t AS SELECT 1 AS i, 1.5 AS c, 2.5::DOUBLE AS f, 'x' AS s, DATE '2000-01-01' AS d, TIMESTAMP '2000-01-01' AS m,
    TIMESTAMPTZ '2000-01-01' AS z, TIME '10:00:00' AS k, true AS o, [1] AS l, {'a': 1} AS st, MAP {'a': 1} AS mp, 'ab'::BLOB AS b,
    '{}'::JSON AS j, INTERVAL 1 DAY AS v, uuid() AS u
"""
ARGUMENTS = (
    *((name,) * 5 for name in ("i", "s", "z", "d", "m", "l", "NULL", "st", "mp", "b", "j", "v", "u", "1", "'x'")),
    ("'day'", "z", "z", "z", "z"), ("'day'", "d", "m", "i", "i"), ("'decade'", "z", "m", "z", "i"), ("s", "i", "i", "s", "i"),
    ("l", "i", "s", "l", "i"), ("k", "z", "k", "i", "i"), ("f", "c", "o", "f", "s"),
)  # fmt: skip
NAMES = sorted({name for name in (*FUNCTIONS, *RESOLVERS, *LIST_RESOLVERS) if not name.startswith("_")})


@pytest.mark.parametrize("count", one_in(2, range(6)))
def test_no_call_is_a_fault(count: int) -> None:
    """Of the lists of arguments each function gets a sixth, others at each number."""
    db = gquery.connect("python")
    db.sql(TABLE)
    for n, name in enumerate(NAMES):
        for given in ARGUMENTS[(n + count) % 6 :: 6]:
            sql = f"SELECT {name}({', '.join(given[:count])}) FROM t LIMIT 0"
            try:
                db.sql(sql)
            except gquery.InternalError as error:
                raise AssertionError(sql) from error
            except gquery.Error:
                pass


@pytest.mark.parametrize("name", ["date_diff", "datediff", "date_sub"])
@pytest.mark.parametrize("given", ["z", "z, z", "'decade', z", "'decade', z, z, z", "z, 'decade'"])
def test_differences_of_moments(name: str, given: str) -> None:
    db = gquery.connect("python")
    db.sql(TABLE)
    with pytest.raises(gquery.BindError, match="no function matches"):
        db.sql(f"SELECT {name}({given}) FROM t")
