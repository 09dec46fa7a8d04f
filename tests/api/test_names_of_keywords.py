"""Tables, aliases and columns whose quoted names are keywords, or hold the marks of SQL: every statement as in DuckDB."""

from __future__ import annotations

import duckdb
import pytest

import gquery
from tests.support.harness import compare

NAMES = ("select", "from", "null", "as", "*", "(", ",", "where", 'x"y', "a.b")
STATEMENTS = """
CREATE TABLE {t} AS SELECT i::INTEGER AS {c}, 'v' || i AS v FROM range(4) r(i)
UPDATE {t} SET {c} = 7 WHERE {c} = 1
UPDATE {t} AS {c} SET v = 'w' WHERE {c}.{c} = 7
UPDATE {t} {c} SET v = v || '!' WHERE {c}.v = 'w'
UPDATE {t} SET {c} = n.m FROM (SELECT 3 AS k, 30 AS m) AS n WHERE n.k = {t}.{c}
UPDATE {t} SET {c} = {c} + 1 WHERE {c} = 7 RETURNING {c}, v
INSERT INTO {t} ({c}) VALUES (5)
MERGE INTO {t} USING (SELECT 5 AS k) AS n ON {t}.{c} = n.k WHEN MATCHED THEN UPDATE SET v = 'm'
DELETE FROM {t} WHERE {c} = 0
SELECT * FROM {t}
SELECT {t}.{c}, count(*) FROM {t} GROUP BY {t}.{c}
DELETE FROM {t} AS {c} USING {t} AS o WHERE o.{c} = {c}.{c} + 1000
ALTER TABLE {t} ALTER {c} TYPE BIGINT
UPDATE {t} SET {c} = 9 WHERE v = 'm'
SELECT * FROM {t}
TRUNCATE {t}
"""


@pytest.mark.parametrize(("name", "schema"), [*((n, "") for n in NAMES), ("null", "from"), ("t", "select")])
def test_every_statement_as_in_duckdb(name: str, schema: str) -> None:
    ours, theirs = gquery.connect(device="python"), duckdb.connect()
    quoted = '"' + name.replace('"', '""') + '"'
    table = f'"{schema}".{quoted}' if schema else quoted
    if schema:
        ours.sql(f'CREATE SCHEMA "{schema}"')
        theirs.execute(f'CREATE SCHEMA "{schema}"')
    for line in STATEMENTS.strip().splitlines():
        if schema and "{t}.{c}" in line:
            continue
        text = line.format(t=table, c=quoted)
        done = theirs.execute(text)
        want, types = done.fetchall(), [str(d[1]) for d in done.description or ()]
        got = ours.sql(text).fetchall()
        if not line.startswith(("CREATE", "ALTER")):
            assert (found := compare(got, want, False, types)) is None, f"{text}: {found}"
