"""Years that Python's dates do not have: BC, and behind 9999. Whatever shows no such value to Python computes with them."""

from __future__ import annotations

import duckdb
import pytest

import gquery
from gquery import errors

SCRIPT = """
CREATE TABLE t AS SELECT TIMESTAMP '10001-07-01 00:00:00' AS x, DATE '0044-01-01 (BC)' AS d, 1 AS k
INSERT INTO t VALUES ('20000-01-01', '10000-01-01', 2), (NULL, NULL, 3)
INSERT INTO t(x) VALUES ('290000-01-01')
SELECT x::VARCHAR, d::VARCHAR, k FROM t
SELECT x::VARCHAR, y::VARCHAR FROM (VALUES (TIMESTAMP '10001-07-01', DATE '0001-01-01 (BC)'), (NULL, '5881580-07-10')) v(x, y)
SELECT x::VARCHAR FROM (VALUES (TIMESTAMPTZ '10001-07-01 00:00:00+02'), (NULL), ('0044-03-15 (BC) 00:00:00+00')) v(x)
SELECT count(*) FROM t WHERE x > TIMESTAMP '10000-01-01' AND d <= DATE '10000-01-01'
CREATE TABLE u (x TIMESTAMP PRIMARY KEY, d DATE DEFAULT '10000-02-01', CHECK (x > '-9999-01-01'))
INSERT INTO u VALUES ('20000-01-01', '10000-01-01'), ('20001-01-01', DEFAULT)
INSERT INTO u VALUES ('20000-01-01', '10000-01-01')
INSERT INTO u VALUES ('20000-01-01', '10000-01-01') ON CONFLICT (x) DO UPDATE SET d = '10005-01-01'
SELECT x::VARCHAR, d::VARCHAR FROM u
CREATE TABLE bc AS SELECT i AS k, TIMESTAMPTZ '0005-06-01 12:00:00+00' - i * INTERVAL 1300 DAY AS z FROM range(0, 600, 3) r(i)
SELECT k, year(z), date_part('year', z), extract(decade FROM z), decade(z), isoyear(z), century(z), era(z), yearweek(z) FROM bc
SELECT k, date_trunc('decade', z)::VARCHAR, date_trunc('century', z)::VARCHAR, date_trunc('millennium', z)::VARCHAR FROM bc
SELECT k, date_trunc('year', z)::VARCHAR, date_trunc('decade', z::TIMESTAMP)::VARCHAR, year(z::DATE), decade(z::TIMESTAMP) FROM bc
SELECT (x AT TIME ZONE 'Asia/Kolkata')::VARCHAR, (x AT TIME ZONE 'Europe/Berlin')::VARCHAR FROM t
SELECT ((x::TIMESTAMPTZ) AT TIME ZONE 'America/New_York')::VARCHAR FROM t
SELECT (z AT TIME ZONE 'CET')::VARCHAR FROM (VALUES (TIMESTAMPTZ '20050-03-27 00:59:59+00'), ('20050-03-27 01:00:00+00')) v(z)
SELECT (z AT TIME ZONE 'Europe/Berlin')::VARCHAR FROM (VALUES (TIMESTAMP '20050-03-27 02:30:00'), ('20050-10-30 02:30:00')) v(z)
"""


def test_as_in_duckdb() -> None:
    ours, theirs = gquery.connect(device="python"), duckdb.connect()
    theirs.execute("SET TimeZone = 'UTC'")
    for line in SCRIPT.strip().splitlines():
        try:
            want = sorted(theirs.execute(line).fetchall(), key=repr)
        except duckdb.ConstraintException:
            with pytest.raises(errors.IntegrityError, match="20000-01-01"):
                ours.sql(line)
            continue
        got = sorted(ours.sql(line).fetchall(), key=repr)
        assert line.startswith("CREATE") or got == want, line


def test_what_shows_them_to_python_is_refused() -> None:
    db = gquery.connect(device="python")
    for sql in ("SELECT DATE '10000-01-01'", "SELECT TIMESTAMP '0044-01-01 (BC)' FROM range(3)"):
        with pytest.raises(errors.DataError, match="which Python does not have"):
            db.sql(sql).fetchall()
    db.sql("PREPARE p AS SELECT $1")
    with pytest.raises(errors.DataError, match="which Python does not have"):
        db.sql("EXECUTE p(DATE '10000-01-01')")
    assert "> TIMESTAMP '10000-01-01 00:00:00" in db.explain(
        "SELECT x FROM (VALUES (TIMESTAMP '2020-01-01'), (NULL)) v(x) WHERE x > TIMESTAMP '10000-01-01'"
    )
