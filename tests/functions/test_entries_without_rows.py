"""Functions over a dictionary's entries: one that no row has, or the '' that stands for no value, is not converted or read."""

from __future__ import annotations

import duckdb
import pytest

import gquery
from tests.support.harness import compare, devices_of

SCRIPT = """
CREATE TABLE n AS SELECT NULL::VARCHAR AS s, NULL::JSON AS j, [NULL::JSON] l, {'j': NULL::JSON} st, NULL::UUID u FROM range(9)
CREATE TABLE t AS SELECT CASE i % 4 WHEN 0 THEN 'x' WHEN 1 THEN '[1]' WHEN 2 THEN '[2, 3]' END AS s, i FROM range(400) r(i)
CREATE TABLE e AS SELECT '{"a": 1}'::JSON AS j
"""
QUESTIONS = """
SELECT j->'a', j->>'$', j->0, json_type(j), json_type(j, 'a'), json_exists(j, 'a'), json_value(j, 'a'), j::VARCHAR FROM n
SELECT json_keys(j), json_array_length(j), json_structure(j), json_quote(j), json_contains(j, '1'), json_valid(j) FROM n
SELECT json_extract(j, '$.*'), json_extract(j, ['$.a', '$.b']) FROM n
SELECT j::INTEGER, j::INTEGER[], j::STRUCT(a INTEGER), j::DATE, to_json(j), json_object('a', j) FROM n
SELECT s::JSON->'a', TRY_CAST(s AS JSON)->'a', json_type(s), json_keys(s), json_extract(s, '$.*'), json_valid(s) FROM n
SELECT l[1]->'a', list_transform(l, lambda x: x->'a'), st.j->'a', json_keys(st.j), u::VARCHAR FROM n
SELECT s::INTEGER[], s::STRUCT(a INTEGER), s::MAP(VARCHAR, INTEGER), TRY_CAST(s AS INTEGER[]) FROM n
SELECT s::DATE, s::INTERVAL, s::UUID FROM n
SELECT max(j)->'a', first(j)->'a' FROM n
SELECT j->'a' FROM (SELECT j FROM n UNION ALL SELECT j FROM e)
SELECT coalesce(n.j, e.j)->'a', json_keys(coalesce(n.j, e.j)), CASE WHEN e.j IS NULL THEN e.j ELSE n.j END->'a' FROM n, e
SELECT x.value FROM n, json_each(n.j) AS x
SELECT count(*) FROM n WHERE (j->>'a') = '1' OR json_exists(j, 'a')
SELECT s::INTEGER[] AS l, count(*) FROM t WHERE i % 4 <> 0 GROUP BY ALL
SELECT json_extract(s, '$[*]') AS l, count(*) FROM t WHERE i % 4 <> 0 GROUP BY ALL
SELECT CASE WHEN s LIKE '[%' THEN s::INTEGER[] END AS l, count(*) FROM t GROUP BY ALL
SELECT TRY_CAST(s AS INTEGER[]) AS l, count(*) FROM t GROUP BY ALL
"""


@pytest.mark.parametrize("ranks", [1, 3])
def test_as_in_duckdb(ranks: int) -> None:
    ours, theirs = gquery.connect(device="python", devices=devices_of("python", ranks)), duckdb.connect()
    for line in SCRIPT.strip().splitlines():
        ours.sql(line)
        theirs.execute(line)
    for line in QUESTIONS.strip().splitlines():
        done = theirs.execute(line)
        want, types = done.fetchall(), [str(d[1]) for d in done.description or ()]
        assert (found := compare(ours.sql(line).fetchall(), want, False, types)) is None, f"{line}: {found}"


def test_an_entry_that_a_row_has_fails() -> None:
    db = gquery.connect(device="python")
    for line in SCRIPT.strip().splitlines():
        db.sql(line)
    for cast in ("s::INTEGER[]", "s::JSON", "json_extract(s, '$[*]')"):
        with pytest.raises(gquery.DataError, match="could not convert|malformed"):
            db.sql(f"SELECT {cast} FROM t").fetchall()
