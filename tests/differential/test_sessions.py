"""Scripts of statements as users type them, beside DuckDB: rows, names and types of each statement, or an error of both.

``python -m tests.fuzzing.sessions --seeds 0:2000`` runs more of the random ones.
"""

from __future__ import annotations

from collections import Counter

import pytest

import gquery
from tests.fuzzing.sessions.check import Fault, Seen, run, shrunk
from tests.fuzzing.sessions.script import construct, script
from tests.support.marks import one_in

BATCH = 15


@pytest.mark.parametrize("first", one_in(2, range(0, 60, BATCH)))
def test_random_scripts(first: int) -> None:
    for seed in range(first, first + BATCH):
        statements = script(seed)
        if (found := run(statements, Seen())) is not None:
            small, fault = shrunk(statements, found)
            pytest.fail(f"seed {seed}, {fault}\nof\n" + "\n".join(small))


def test_scripts_have_all_constructs() -> None:
    counted = Counter(construct(text) for seed in range(500) for text in script(seed))
    few = {c: counted[c] for c in CONSTRUCTS if counted[c] < 5}
    assert not few
    assert all(5 <= len(script(seed)) <= 22 for seed in range(50))
    assert script(7) == script(7)


CONSTRUCTS = (
    "ALTER ADD COLUMN", "ALTER DROP COLUMN", "ALTER RENAME", "ALTER TYPE", "ALTER SET DEFAULT", "ALTER DROP DEFAULT",
    "ALTER SET NOT NULL", "ALTER DROP NOT NULL", "ALTER ADD PRIMARY KEY", "CREATE SCHEMA", "CREATE TABLE",
    "CREATE VIEW", "CREATE SEQUENCE", "CREATE MACRO", "DROP", "INSERT", "UPDATE", "DELETE", "MERGE", "SET",
    "getvariable", "nextval", "json", "PIVOT", "UNPIVOT", "SUMMARIZE", "DESCRIBE", "SHOW", "COLUMNS", "BEGIN",
    "ROLLBACK", "COMMIT", "PREPARE", "EXECUTE", "GROUP BY", "JOIN", "UNION", "WITH",
)  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("SELECT typeof(sum(a)) FROM t", "rows"),  # a documented difference of each kind
        ("SELECT -nullif(1.5, 1.5) AS x", "types"),
        ("SELECT a AS b FROM t ORDER BY ALL", None),
        ("CREATE TYPE mood AS ENUM ('sad', 'ok')", "refused"),
        ("SELECT nvl(a, 1) AS x FROM t", "accepted"),
        ("SELECT b FROM t", None),
    ],
)
def test_what_differs_is_found_and_made_small(statement: str, kind: str | None) -> None:
    statements = [
        "CREATE TABLE u (x INTEGER)",
        "CREATE TABLE t (a INTEGER)",
        "SELECT 1",
        "INSERT INTO t VALUES (1)",
        statement,
        "FROM t",
    ]
    found = run(statements, Seen())
    assert (None if found is None else found.kind) == kind
    if found is not None:
        small, fault = shrunk(statements, found)
        asked = ["CREATE TABLE t (a INTEGER)"] if " t" in statement else []
        assert (list(small), fault.kind) == ([*asked, statement], kind)


def test_names_that_differ_are_found() -> None:
    assert isinstance(run(["SELECT 1 AS x WHERE current_schema() = 'main'"], Seen()), Fault) is False
    found = run(
        [
            "CREATE TABLE t (a INTEGER)",
            "INSERT INTO t VALUES (1)",
            'SELECT COLUMNS(* RENAME (a AS b)) AS "x\\0" FROM t',
        ],
        Seen(),
    )
    assert found is not None and found.kind == "names"


SCRIPTS = {
    "whole rows": r"""
        CREATE TABLE t (a INTEGER, b VARCHAR)
        INSERT INTO t VALUES (1, 'x'), (2, NULL)
        SELECT t FROM t
        SELECT t.a, t FROM t
        SELECT x FROM t AS x
        SELECT T FROM t
        SELECT t FROM T
        SELECT main.t FROM t
        SELECT memory.main.t FROM t
        SELECT x.t FROM t
        SELECT s, t, t IS NULL FROM (SELECT 1 a) s LEFT JOIN (SELECT 2 a) t ON s.a = t.a
        SELECT count(t) FROM (SELECT 1 a) s LEFT JOIN (SELECT 2 a) t ON s.a = t.a
        SELECT (t).a FROM t
        SELECT t.a.b FROM t
        SELECT t AS a FROM t ORDER BY t
        SELECT 1 AS t, t FROM t
        SELECT 5 AS t FROM t WHERE t IS NOT NULL
        SELECT 5 AS t, count(*) FROM t GROUP BY t
        SELECT (SELECT t) FROM t
        SELECT (SELECT count(*) FROM (SELECT t)) AS n FROM t
        SELECT max(t) FROM t
        SELECT t, count(*) FROM t GROUP BY t
        SELECT unnest(t) FROM t
        SELECT to_json(t) FROM t
        SELECT json_object('r', t) AS j FROM t
        SELECT list(t) FROM t
        SELECT DISTINCT t FROM t
        SELECT t FROM t WHERE t = {'a': 1, 'b': 'x'}
        SELECT t FROM (SELECT 3 t) t
        SELECT t FROM t, (SELECT 3 AS t) x
        SELECT t.a FROM t, (SELECT {'a': 3} AS t) y
        SELECT t FROM t JOIN t u USING (a)
        SELECT u FROM t JOIN t u USING (a)
        SELECT t FROM range(2) t(i)
        SELECT t FROM (VALUES (1, 2)) t
        SELECT t FROM t, t AS u WHERE u = t
        WITH c AS (SELECT * FROM t) SELECT c FROM c
        UPDATE t SET b = t::VARCHAR RETURNING t AS r
        UPDATE t AS q SET a = 4 WHERE q.a = 1 RETURNING q AS r
        MERGE INTO t USING (SELECT 4 AS b) s ON t.a = s.b WHEN MATCHED THEN UPDATE SET a = s.b + 1 RETURNING t AS r
        DELETE FROM t WHERE t IS NULL
        DELETE FROM t AS q WHERE q IS NOT NULL RETURNING q AS r
        INSERT INTO t VALUES (3, 'z') RETURNING t AS r
        SELECT t FROM t JOIN t u USING (t)
        SELECT z FROM t
    """,
    "columns unpacked": r"""
        CREATE TABLE t (a INTEGER, b VARCHAR, c INTEGER)
        INSERT INTO t VALUES (1, 'x', 3), (2, NULL, NULL)
        SELECT struct_pack(*COLUMNS(*)) AS r FROM t
        SELECT concat(*COLUMNS(*), '!') AS r, a FROM t
        SELECT coalesce(*COLUMNS(*)) FROM t
        SELECT coalesce(*COLUMNS('a|c')) AS r FROM t
        SELECT greatest(*COLUMNS('a|c')) AS r FROM t
        SELECT [*COLUMNS('a|c')] AS r FROM t
        SELECT list_value(0, *COLUMNS(* EXCLUDE (b)), 9) AS r FROM t
        SELECT row(*COLUMNS(*)) AS r FROM t
        SELECT 3 IN (*COLUMNS('a|c')) AS r FROM t
        SELECT a FROM t WHERE 3 IN (*COLUMNS('a|c'))
        SELECT concat_ws(',', *COLUMNS(t.*)) AS r FROM t
        SELECT max(concat(*COLUMNS(*))) AS r FROM t
        SELECT coalesce(*COLUMNS(lambda n: n = 'b'), 'z') AS r FROM t
        SELECT unnest([*COLUMNS('a')]) AS r FROM t
        SELECT count(*COLUMNS('a')) AS r FROM t
        SELECT *COLUMNS(*) FROM t
        SELECT (*COLUMNS(*)) FROM t
        SELECT a FROM t WHERE *COLUMNS(*)
        SELECT concat(COLUMNS(*)::VARCHAR, *COLUMNS(*)) FROM t
        SELECT concat(*COLUMNS(*)::VARCHAR) FROM t
        SELECT struct_pack(*COLUMNS('zz')) FROM t
        SELECT a * COLUMNS('a') AS r FROM t
        SELECT COLUMNS(* EXCLUDE (zz)) FROM t
        SELECT COLUMNS(* EXCLUDE (A)) FROM t
        SELECT COLUMNS(t.* EXCLUDE (a)) FROM t
        SELECT COLUMNS(t.* RENAME (a AS z)) FROM t
        SELECT t.* EXCLUDE (a) FROM t
        SELECT max(COLUMNS(t.* EXCLUDE (b, c))) FROM t JOIN t AS u USING (a)
        SELECT COLUMNS(t.* EXCLUDE (zz)) FROM t
        SELECT COLUMNS(* RENAME (zz AS y)) FROM t
        SELECT COLUMNS(['A', 'zz']) FROM t
        SELECT column_name, column_type FROM (DESCRIBE SELECT MAP {} AS m, [NULL] AS l, {'a': NULL} AS s, NULL AS n)
    """,
    "names of columns": r"""
        CREATE TABLE t (a INTEGER, B VARCHAR)
        INSERT INTO t VALUES (1, 'x')
        SELECT a AS X FROM t
        SELECT a AS x FROM t
        SELECT a + 1 AS X FROM t
        SELECT a + 1 AS x FROM t
        SELECT A + 1 AS Select FROM t
        SELECT A + 1 AS select FROM t
        SELECT COLUMNS(*) AS "x_\0" FROM t
        SELECT COLUMNS(['a', 'B']) AS "x_\0" FROM t
        SELECT COLUMNS(c -> true) AS "x_\0" FROM t
        SELECT COLUMNS(* EXCLUDE a) AS "x_\0" FROM t
        SELECT min(COLUMNS(*)) AS "min_\0" FROM t
        SELECT COLUMNS(*) AS "x\1" FROM t
        SELECT COLUMNS('(a)|(B)') AS "x\1_\0\2\7" FROM t
        SELECT COLUMNS(*) AS "\\0" FROM t
        SELECT COLUMNS(*) AS "\" FROM t
        SELECT COLUMNS('a') AS "a\b" FROM t
        SELECT a AS "\0" FROM t
        SELECT * REPLACE (3 AS "A") FROM t
        SELECT * REPLACE ('y' AS b) FROM t
        SELECT * FROM t JOIN t AS u USING ("A")
        SELECT * FROM t FULL JOIN (SELECT 1 AS A) AS u USING (a)
        SELECT * FROM t RIGHT JOIN (SELECT 1 AS A) AS u USING (a)
        SELECT * FROM t NATURAL JOIN (SELECT 1 AS A) AS u
    """,
    "tables and views of one name": r"""
        CREATE VIEW v AS SELECT 1 AS a
        CREATE OR REPLACE TABLE v (b INTEGER)
        CREATE OR REPLACE TABLE v AS SELECT 3 AS c
        FROM v
        CREATE TABLE IF NOT EXISTS v (b INTEGER)
        CREATE OR REPLACE VIEW v AS SELECT 2 AS a
        FROM v
        CREATE TABLE t (a INTEGER)
        CREATE OR REPLACE VIEW t AS SELECT 1 AS z
        INSERT INTO t VALUES (4)
        DROP VIEW t
        DROP TABLE v
        DROP VIEW IF EXISTS t
        FROM t
        DROP VIEW v
        CREATE OR REPLACE TABLE v AS SELECT 3 AS c
        CREATE OR REPLACE TABLE v AS SELECT 3 AS c
        FROM v
        DROP TABLE v
        CREATE VIEW v AS SELECT 1 AS a
        CREATE OR REPLACE TABLE v AS SELECT 3 AS c
        FROM v
    """,
    "names of schemas": r"""
        CREATE SCHEMA "x.y"
        CREATE TABLE "x.y"."q""q" AS SELECT 1 AS a
        CREATE OR REPLACE VIEW "x.y".v AS SELECT a + 1 AS b FROM "x.y"."q""q"
        SELECT * FROM "X.Y"."q""q"
        FROM "x.y".v
        CREATE SCHEMA "q""q"
        CREATE TABLE "q""q"."a.b" (a INTEGER)
        INSERT INTO "q""q"."a.b" VALUES (1)
        UPDATE "q""q"."a.b" SET a = 2
        CREATE SCHEMA "."
        CREATE TABLE "."."." (a INTEGER)
        FROM "."."."
        SELECT table_schema, table_name FROM information_schema.tables
        USE "q""q"
        FROM "a.b"
        USE main
        DROP SCHEMA "x.y"
        DROP SCHEMA "x.y" CASCADE
        FROM "x.y".v
    """,
    "names in texts": r"""
        CREATE SEQUENCE s
        CREATE SEQUENCE "Two words"
        SELECT nextval('"s"')
        SELECT nextval('S')
        SELECT nextval('main."S"')
        SELECT nextval('memory.main.s')
        SELECT currval('"main"."s"')
        SELECT nextval('"two words"')
        SELECT nextval('Two words')
        SELECT nextval('other.s')
        CREATE TABLE "Two words" (a INTEGER PRIMARY KEY)
        SELECT name, type, pk FROM pragma_table_info('"two words"')
        SELECT name, type, pk FROM pragma_table_info('main."two words"')
        PRAGMA table_info('"Two words"')
        PRAGMA table_info('zz')
    """,
    "ADD PRIMARY KEY": r"""
        CREATE TABLE t (a INTEGER, b INTEGER)
        INSERT INTO t VALUES (1, 2), (2, 2)
        ALTER TABLE t ADD PRIMARY KEY (b)
        ALTER TABLE t ADD PRIMARY KEY (zz)
        ALTER TABLE t ADD PRIMARY KEY (a, a)
        ALTER TABLE t ADD PRIMARY KEY (a)
        SELECT column_name, "null", key FROM (DESCRIBE t)
        INSERT INTO t VALUES (1, 3)
        INSERT INTO t VALUES (NULL, 3)
        INSERT INTO t VALUES (1, 9) ON CONFLICT DO UPDATE SET b = excluded.b
        ALTER TABLE t ADD PRIMARY KEY (b)
        ALTER TABLE t ALTER a TYPE BIGINT
        ALTER TABLE t DROP COLUMN a
        ALTER TABLE t RENAME a TO c
        INSERT INTO t VALUES (1, 3)
        FROM t
        CREATE TABLE u (a INTEGER UNIQUE, b INTEGER)
        INSERT INTO u VALUES (NULL, 1)
        ALTER TABLE u ADD PRIMARY KEY (a)
        DELETE FROM u
        BEGIN
        ALTER TABLE u ADD CONSTRAINT pk PRIMARY KEY (a, b)
        ROLLBACK
        INSERT INTO u VALUES (NULL, 1)
        DELETE FROM u
        ALTER TABLE u ADD CONSTRAINT pk PRIMARY KEY (a, b)
        SELECT column_name, "null", key FROM (DESCRIBE u)
        ALTER TABLE IF EXISTS zz ADD PRIMARY KEY (a)
        CREATE VIEW v AS SELECT 1 AS a
        ALTER TABLE v ADD PRIMARY KEY (a)
        ALTER TABLE u ADD UNIQUE (a)
        ALTER TABLE u ADD CONSTRAINT c UNIQUE (a)
        CREATE TABLE l (a INTEGER[])
        ALTER TABLE l ADD PRIMARY KEY (a)
        ALTER TABLE l ALTER a SET TYPE VARCHAR
        ALTER TABLE l ALTER COLUMN a SET DATA TYPE JSON
    """,
    "fields of structs in ALTER TABLE": r"""
        CREATE TABLE t AS SELECT * FROM (VALUES (1, {'x': 1, 'y': {'z': 'q'}}), (2, NULL), (3, {'x': NULL, 'y': NULL})) v(i, s)
        ALTER TABLE t ADD COLUMN s.k INTEGER
        FROM t
        ALTER TABLE t ADD COLUMN s.x INTEGER
        ALTER TABLE t ADD COLUMN IF NOT EXISTS s.x INTEGER
        ALTER TABLE t ADD s.y.w STRUCT(a DATE, b INTEGER[])
        FROM t
        ALTER TABLE t ADD COLUMN i.k INTEGER
        ALTER TABLE t ADD COLUMN s.q.k INTEGER
        ALTER TABLE t ADD COLUMN s.x.k INTEGER
        ALTER TABLE t ADD COLUMN s.v INTEGER NOT NULL
        ALTER TABLE t RENAME COLUMN s.y.z TO "Two words"
        ALTER TABLE t RENAME s.x TO y
        ALTER TABLE t RENAME s.x TO x
        ALTER TABLE t RENAME s.nope TO k
        ALTER TABLE t RENAME s.x TO v
        INSERT INTO t VALUES (4, {'v': 7, 'y': NULL, 'k': 9})
        UPDATE t SET s = struct_update(s, k := 3) WHERE i = 1
        FROM t
        ALTER TABLE t DROP COLUMN s.nope
        ALTER TABLE t DROP COLUMN IF EXISTS s.nope
        ALTER TABLE t DROP COLUMN IF EXISTS zz.nope
        ALTER TABLE t DROP s.y
        FROM t
        BEGIN
        ALTER TABLE t DROP s.k CASCADE
        FROM t
        ROLLBACK
        FROM t
        ALTER TABLE t RENAME COLUMN t.s TO k
        ALTER TABLE t DROP COLUMN t.i
        ALTER TABLE t ALTER s.x TYPE BIGINT
        CREATE TABLE u (s STRUCT(x INTEGER) DEFAULT {'x': 3}, l STRUCT(a INTEGER)[], i INTEGER)
        INSERT INTO u VALUES ({'x': 1}, [{'a': 1}], 1)
        ALTER TABLE u DROP COLUMN s.x
        ALTER TABLE u ADD COLUMN s.k INTEGER
        INSERT INTO u (i) VALUES (3)
        ALTER TABLE u ADD COLUMN l.k INTEGER
        ALTER TABLE u ADD COLUMN l.element.k INTEGER
        FROM u
        ALTER TABLE u DROP COLUMN s.x
        FROM u
        CREATE VIEW v AS SELECT {'x': 1} AS s
        ALTER TABLE v ADD COLUMN s.k INTEGER
    """,
    "null of JSON": r"""
        CREATE TABLE k AS SELECT * FROM (VALUES (0, 'null'::JSON), (1, '[7]'), (2, NULL), (3, 'null')) v(i, j)
        SELECT i, j::INTEGER[] AS l, j::INTEGER[] IS NULL AS n, j::INTEGER[]::VARCHAR AS v FROM k
        SELECT count(j::INTEGER[]), min(j::INTEGER[]), list(j::INTEGER[] ORDER BY i) FROM k
        SELECT string_agg('null'::JSON::STRUCT(x INTEGER)::VARCHAR, ',') AS s FROM k
        SELECT list('null'::JSON::STRUCT(x INTEGER)::VARCHAR) AS s, count('null'::JSON::MAP(VARCHAR, INTEGER)) AS n FROM k
        SELECT 'null'::JSON::STRUCT(x INTEGER) AS s, 'null'::JSON::INTEGER[] IS NULL AS n, 'null'::JSON::INTEGER AS i
        SELECT coalesce(j::INTEGER[], [0]) AS l FROM k WHERE j::INTEGER[] IS NULL
        SELECT a.i, b.i FROM k a JOIN k b ON a.j::INTEGER[] = b.j::INTEGER[]
        SELECT a.i, b.i FROM k a LEFT JOIN k b ON a.j::INTEGER[] IS NOT DISTINCT FROM b.j::INTEGER[]
        SELECT j::INTEGER[] AS l, count(*) FROM k GROUP BY l
    """,
    "json_merge_patch": r"""
        SELECT json_merge_patch(NULL, ' { "a" : 1}') AS x, json_merge_patch('{"a": 1}', NULL) AS y
        SELECT json_merge_patch(NULL, NULL) AS z
        CREATE TABLE t AS SELECT * FROM (VALUES (NULL::JSON, NULL::JSON), (NULL, '{"x": null}'), ('[1]', ' 1 ')) v(j, k)
        SELECT json_merge_patch(j, ' {"a": null, "b": {"c": null}}') AS x FROM t
        SELECT json_merge_patch(j, k) AS x, json_merge_patch(k, j) AS y FROM t
        SELECT json_merge_patch(' {"a": 1} ', NULL, '{"b": 1}') AS x
        SELECT json_merge_patch('{"a": 1}', '{"b": 1}', '{"a": null, "c": 2}') AS y
        SELECT json_merge_patch('{"a": 2, "b": {"x": 1, "y": 2}, "c": 1}', '{"b": {"x": 3}}') AS x
        SELECT json_merge_patch('{"a": 2, "b": null, "c": 1}', '{"a": 3}') AS x
        SELECT json_merge_patch('{"a": {"q": 1}}', '{"b": {"x": null}, "a": 5}') AS x
        SELECT json_merge_patch('{"a": 1}')
        SELECT json_merge_patch('{', NULL)
        SELECT json_merge_patch(j, '{"a": 1}') IS NULL AS x, json_merge_patch('{}', j) IS NULL AS y FROM t
    """,
    "choices among nested values": r"""
        CREATE TABLE t AS SELECT * FROM (VALUES ('a', 1, true), ('b', 2, true), (NULL, 3, true)) v(x, i, c)
        SELECT CASE WHEN c THEN MAP {'a': 2}::VARCHAR ELSE x END AS y FROM (SELECT x, true AS c FROM t)
        SELECT CASE WHEN x IS NOT NULL THEN map([x], [1])::VARCHAR ELSE x END AS y FROM t
        SELECT CASE WHEN x <> 'b' THEN map_keys(map([x], [1]))[1] ELSE x END AS y FROM t
        SELECT array_to_string(IF(x = 'a', ['p', 'q'], IF(x = 'b', NULL, ['z'])), '-') AS y FROM t
        SELECT array_to_string(coalesce(IF(x = 'a', NULL, [x]), ['z']), '-') AS y FROM t
        UPDATE t SET x = MAP {'a': 2}::VARCHAR RETURNING *
        UPDATE t SET x = CASE WHEN false THEN MAP([]::VARCHAR[], []::INTEGER[]) ELSE MAP {'b': 7} END::VARCHAR RETURNING *
        FROM t
    """,
    "elements of no type": r"""
        CREATE TABLE t AS SELECT 1 AS a UNION ALL SELECT 2
        SELECT [NULL][1] IS NULL AS x, coalesce([NULL][a], 3) AS y FROM t
        SELECT x FROM (SELECT MAP {'12': NULL}['a'] AS x FROM t) WHERE x IS NOT NULL
        SELECT count(x) AS n, max(x) AS m FROM (SELECT [NULL, NULL][a] AS x FROM t)
        SELECT a FROM t WHERE map_values(MAP {'1': NULL})[a] IS NULL
        SELECT CASE WHEN [NULL][a] IS NULL THEN a END AS x FROM t
    """,
    "VALUES with subqueries": r"""
        CREATE TABLE t (a VARCHAR, b DOUBLE, c BOOLEAN)
        INSERT INTO t VALUES ('x', DEFAULT, (3 = ANY (SELECT 1))), ('y', 2, true)
        INSERT INTO t (a, c) VALUES ('x', (SELECT true)), (NULL, true)
        VALUES (1, 3 IN (SELECT b FROM t)), (NULL, true)
        VALUES ((SELECT max(1)), 2), (NULL, 3)
        VALUES (1, (SELECT count(*) FROM t)), (2, 3)
        SELECT * FROM (VALUES (1, EXISTS (SELECT 1)), (NULL, true)) v(x, y) WHERE y IS NOT NULL
        FROM t
    """,
    "SUMMARIZE of nested values": r"""
        CREATE TABLE t (l INTEGER[], s STRUCT(a INTEGER, b VARCHAR), m MAP(VARCHAR, INTEGER), b BLOB, n STRUCT(l INTEGER[]))
        SELECT column_name, column_type, min, max, approx_unique, count FROM (SUMMARIZE t)
        INSERT INTO t VALUES ([1, 2], {'a': 1, 'b': 'x'}, MAP {'k': 1}, 'ab', {'l': [1]}), (NULL, NULL, NULL, NULL, NULL)
        INSERT INTO t VALUES ([0], {'a': 0, 'b': 'it''s'}, MAP {'j': 2}, '\x00', {'l': []})
        SELECT column_name, min, max, approx_unique, count, null_percentage FROM (SUMMARIZE t)
    """,
    "texts of nested values": r"""
        CREATE TABLE t (i INTEGER, s STRUCT(a INTEGER), m MAP(VARCHAR, INTEGER), b BLOB, l INTEGER[])
        INSERT INTO t VALUES (1, {'a': 1}, MAP {'k': 2}, 'ab', [1]), (2, NULL, NULL, NULL, NULL)
        SELECT concat(i, s, m, b) AS x, concat(s, NULL) AS y, concat_ws('-', s, m, b, l, i) AS z FROM t
        SELECT s || 'x' AS a, 'x' || m AS b, s || m AS c, m || m AS d, s || s AS e, i || m AS f, b || 'x' AS g, b || b AS h FROM t
        SELECT concat(l, l) AS x, count(concat(s)) AS n FROM t GROUP BY ALL
        SELECT concat([1], 'x')
        SELECT concat({'a': 1}, [1])
        SELECT 'x' || l FROM t
        SELECT concat_ws([1], 'a')
        SELECT map_keys(MAP {}) AS k, map_values(MAP {}) AS v, map_entries(MAP {}) AS e FROM t
        CREATE TABLE m AS SELECT MAP {} AS m
        SELECT map_keys(m), cardinality(m) FROM m
    """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script(name: str) -> None:
    found = run([line.strip() for line in SCRIPTS[name].strip().splitlines()], Seen())
    assert found is None, str(found)


def test_what_there_is_with_views_that_cannot_be_bound_any_more() -> None:
    """DuckDB knows which columns they had; here they have none, and lists of tables are lists yet."""
    db = gquery.connect(device="python")
    for text in (
        "CREATE TABLE t (a INTEGER)",
        "CREATE VIEW v AS SELECT a FROM t",
        "CREATE VIEW w AS FROM v",
        "DROP TABLE t",
    ):
        db.sql(text)
    rows = db.sql("SHOW ALL TABLES").fetchall()
    assert [(r[2], r[3], r[4]) for r in rows] == [("v", [], []), ("w", [], [])]
    db.sql("CREATE TABLE t (a INTEGER, b VARCHAR)")
    assert [(r[2], r[3]) for r in db.sql("SHOW ALL TABLES").fetchall()] == [
        ("t", ["a", "b"]),
        ("v", ["a"]),
        ("w", ["a"]),
    ]
    db.sql("DROP VIEW v")
    for text in ("FROM w", "DESCRIBE w", "PRAGMA table_info('w')"):
        with pytest.raises(gquery.CatalogError, match="'v' does not exist"):
            db.sql(text)


def test_a_check_of_a_field_keeps_it() -> None:
    """DuckDB refuses such checks; here the column of the field is theirs."""
    db = gquery.connect(device="python")
    db.sql("CREATE TABLE t (s STRUCT(x INTEGER), i INTEGER, CHECK (i > s.x))")
    for change in ("ADD COLUMN s.k INTEGER", "RENAME s.x TO z", "RENAME s TO r", "DROP COLUMN s"):
        with pytest.raises(gquery.CatalogError, match="CHECK"):
            db.sql(f"ALTER TABLE t {change}")
    with pytest.raises(gquery.NotSupportedError, match="DEFAULT of a field"):
        db.sql("ALTER TABLE t ADD COLUMN s.k INTEGER DEFAULT 7")
