"""``rowid``, and ranges of values of rows: a script that DuckDB and gquery both run."""

from __future__ import annotations

import duckdb
import pytest

import gquery
from gquery import errors
from tests.support.harness import compare

SCRIPT = """
CREATE TABLE a AS SELECT range % 3 AS g, range AS x FROM range(9)
SELECT rowid, x FROM a WHERE x > 5
SELECT * FROM a WHERE rowid < 2
SELECT a.*, rowid FROM a ORDER BY rowid DESC
SELECT g, max(rowid), count(rowid) FROM a GROUP BY g ORDER BY g
SELECT a.rowid, b.rowid FROM a JOIN a b ON a.g = b.g AND a.x < b.x ORDER BY ALL
SELECT count(*) FROM a NATURAL JOIN a b WHERE b.rowid > 1
SELECT t.rowid FROM main.a t WHERE t.rowid = 1
SELECT * FROM (SELECT rowid, * FROM a) WHERE rowid = 0
SELECT (SELECT max(rowid) FROM a b WHERE b.g = a.g) AS m, x FROM a ORDER BY x
SELECT rowid, x FROM a QUALIFY row_number() OVER (PARTITION BY g ORDER BY rowid DESC) = 1 ORDER BY ALL
SELECT rowid FROM a UNION ALL SELECT 100 ORDER BY 1
SELECT min(COLUMNS(*)) FROM a WHERE rowid > 3
CREATE TABLE m AS FROM a
UPDATE m SET g = rowid % 3, x = x + m.rowid + (SELECT max(rowid) FROM m b WHERE b.rowid < m.rowid) WHERE rowid > 4
UPDATE m AS t SET x = CASE WHEN t.rowid % 2 = 0 THEN -x ELSE rowid END
UPDATE m SET x = m.x + m.rowid + b.rowid FROM m b WHERE m.g = b.rowid AND b.rowid < 2
MERGE INTO m USING (SELECT 2 k) u ON m.rowid = k WHEN NOT MATCHED BY SOURCE AND m.rowid > 6 THEN UPDATE SET x = m.rowid
MERGE INTO m USING m u ON m.x = u.rowid + 2 WHEN NOT MATCHED THEN INSERT VALUES (u.rowid, u.x)
FROM m ORDER BY ALL
UPDATE a SET x = x + 100 WHERE rowid >= 7
DELETE FROM a WHERE rowid NOT IN (SELECT min(rowid) FROM a GROUP BY g)
FROM a ORDER BY x
CREATE TABLE r (rowid INTEGER, y INTEGER)
INSERT INTO r SELECT 7, rowid FROM a
SELECT rowid, y FROM r ORDER BY y
CREATE VIEW v AS SELECT rowid, g FROM a
FROM v WHERE rowid = 0
SELECT id, k FROM (VALUES (1), (2), (NULL), (0)) t(id), range(t.id) r(k) ORDER BY ALL
SELECT id, k FROM (VALUES (1), (2)) t(id), generate_series(id, 3) r(k) ORDER BY ALL
SELECT * FROM (VALUES (1), (2)) t(id), generate_series(id, id + 1) ORDER BY ALL
SELECT * FROM (VALUES (1), (0)) t(id) LEFT JOIN range(t.id) r(k) ON TRUE ORDER BY ALL
SELECT d FROM (VALUES (DATE '2024-01-01')) t(s), range(s, s + INTERVAL 2 DAY, INTERVAL 1 DAY) r(d) ORDER BY ALL
SELECT (SELECT sum(range) FROM range(t.id)) FROM (VALUES (3)) t(id)
SELECT i, j FROM range(3) a(i), range(a.i) b(j) ORDER BY ALL
"""


@pytest.mark.parametrize("partitions", [1, 3])
def test_as_in_duckdb(partitions: int) -> None:
    ours, theirs = gquery.connect(device="cpu", partitions=partitions), duckdb.connect()
    for line in SCRIPT.strip().splitlines():
        done = theirs.execute(line)
        want, types = done.fetchall(), [str(d[1]) for d in done.description or ()]
        got = ours.sql(line).fetchall()
        if line.startswith(("SELECT", "FROM")):
            assert (found := compare(got, want, "ORDER" in line, types)) is None, f"{line}: {found}"


@pytest.mark.parametrize(
    "sql", ["SELECT s.rowid FROM (FROM a) s", "SELECT rowid FROM a, a b", "SELECT * FROM range(x)", "UPDATE a SET rowid = x"]
)
def test_errors(sql: str) -> None:
    db = gquery.connect(device="python")
    db.sql("CREATE TABLE a AS SELECT 1 AS x")
    with pytest.raises(errors.BindError):
        db.sql(sql).fetchall()
    assert db.sql("FROM a").fetchall() == [(1,)]
