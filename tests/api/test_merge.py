"""MERGE INTO: scripts that DuckDB and gquery both run."""

from __future__ import annotations

import random

import duckdb
import pytest

import gquery
from gquery import errors
from tests.support.harness import compare

SCRIPT = """
CREATE TABLE t(id INTEGER, v INTEGER DEFAULT 7, s VARCHAR)
INSERT INTO t VALUES (1, 10, 'a'), (2, 20, NULL), (NULL, 30, 'n')
CREATE TABLE u AS SELECT * FROM (VALUES (2, 22, 'two'), (3, 33, 'three'), (NULL, 0, 'null')) x(id, v, s)
MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN UPDATE SET v = u.v
  WHEN NOT MATCHED THEN INSERT VALUES (u.id, u.v, u.s)
MERGE INTO t AS z USING (SELECT id, v + 1 AS w FROM u) AS x ON z.id = x.id WHEN MATCHED AND w > 30 THEN DELETE
  WHEN MATCHED THEN UPDATE SET v = z.v + w, s = upper(z.s)
MERGE INTO t USING u USING (id) WHEN NOT MATCHED THEN INSERT (id) VALUES (u.id + 100)
MERGE INTO t USING (VALUES (5, 50, 'five'), (1, 11, 'one')) n(id, v, s) USING (id) WHEN MATCHED THEN UPDATE
  WHEN NOT MATCHED THEN INSERT
MERGE INTO t USING (SELECT 's' AS s, 5 AS id UNION ALL SELECT 'q', 6) n USING (id)
  WHEN MATCHED THEN UPDATE BY NAME WHEN NOT MATCHED THEN INSERT BY NAME
MERGE INTO t USING (VALUES (7, 70, 'x'), (1, 12, 'y')) n(id, v, s) USING (id) WHEN MATCHED THEN UPDATE SET *
  WHEN NOT MATCHED THEN INSERT *
MERGE INTO t USING u USING (id) WHEN NOT MATCHED BY SOURCE AND v > 60 THEN DELETE
  WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = v + 1000, s = DEFAULT
  WHEN NOT MATCHED BY TARGET AND u.v > 0 THEN INSERT (v, id) VALUES (DEFAULT, u.id)
MERGE INTO t USING u USING (id) WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED AND u.v > 100 THEN INSERT
  WHEN NOT MATCHED THEN DO NOTHING
MERGE INTO t USING u ON t.id = u.id AND u.v > 30 WHEN MATCHED AND t.v IS NULL THEN DO NOTHING
  WHEN MATCHED THEN UPDATE SET v = (SELECT max(v) FROM u)
WITH c AS (SELECT id, 1 AS one FROM u) MERGE INTO t USING c ON c.id = t.id WHEN MATCHED THEN UPDATE SET v = one + t.v
MERGE INTO t USING range(9) r(id) USING (id) WHEN NOT MATCHED THEN INSERT VALUES (id, NULL, 'r')
MERGE INTO t USING (SELECT 40 AS id) n USING (id) WHEN NOT MATCHED THEN INSERT DEFAULT VALUES
MERGE INTO t USING u ON false WHEN NOT MATCHED BY SOURCE AND t.id > 4 THEN DELETE
MERGE INTO main.t USING u ON true WHEN MATCHED AND u.id IS NULL AND t.id IS NULL THEN UPDATE SET id = 77
MERGE INTO t USING u USING (id) WHEN MATCHED THEN UPDATE SET v = 1 WHEN MATCHED AND t.v > 20 THEN UPDATE SET s = 'many'
MERGE INTO t USING (SELECT 1 WHERE false) e ON true WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 2
  WHEN NOT MATCHED BY SOURCE AND v = 1 THEN UPDATE SET s = 'one'
MERGE INTO t USING (SELECT 1 WHERE false) e ON true WHEN MATCHED THEN DELETE
MERGE INTO t USING (SELECT 1 WHERE false) e ON true WHEN NOT MATCHED BY SOURCE THEN DELETE
MERGE INTO t USING u USING (id) WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT
CREATE MACRO twice(x) AS 2 * x
MERGE INTO t USING u USING (id) WHEN MATCHED AND twice(u.v) > 50 THEN UPDATE SET v = twice(t.v)
CREATE TABLE k(id INTEGER PRIMARY KEY, v INTEGER NOT NULL CHECK (v > 0))
MERGE INTO k USING (VALUES (1, 1), (2, 2)) n(id, v) USING (id) WHEN NOT MATCHED THEN INSERT
MERGE INTO k USING (VALUES (2, 5), (3, 3)) n(id, v) USING (id) WHEN MATCHED THEN UPDATE SET v = n.v
  WHEN NOT MATCHED THEN INSERT
"""


def test_as_in_duckdb() -> None:
    ours, theirs = gquery.connect(device="python"), duckdb.connect()
    for line in SCRIPT.replace("\n  ", " ").strip().splitlines():
        want = theirs.execute(line).fetchall()
        got = ours.sql(line).fetchall()
        if "MERGE" in line:
            assert got == want, line
        rows = f"SELECT * FROM {'k' if ' k' in line else 't'} ORDER BY ALL"
        assert ours.sql(rows).fetchall() == theirs.sql(rows).fetchall(), line


FAULTS = [
    ("MERGE INTO t USING u ON id = 1 WHEN MATCHED THEN DELETE", errors.BindError, r"ambiguous(.|\n)*\n {32}\^"),
    ("MERGE INTO t USING u USING (id) WHEN MATCHED THEN UPDATE SET v = v", errors.BindError, "ambiguous"),
    ("MERGE INTO t USING u USING (id) WHEN MATCHED THEN UPDATE SET zz = 1", errors.BindError, "no column 'zz'"),
    (
        "MERGE INTO t USING u USING (id) WHEN NOT MATCHED THEN INSERT VALUES (1)",
        errors.BindError,
        "2 columns has 1 values",
    ),
    ("MERGE INTO t USING u USING (id) WHEN NOT MATCHED THEN INSERT VALUES (t.id, 1)", errors.BindError, "table 't'"),
    (
        "MERGE INTO t USING u USING (id) WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = u.v",
        errors.BindError,
        "table 'u'",
    ),
    ("MERGE INTO t USING t ON true WHEN MATCHED THEN DELETE", errors.BindError, "there twice"),
    ("MERGE INTO t USING nosuch ON true WHEN MATCHED THEN DELETE", errors.CatalogError, "'nosuch' does not exist"),
    ("MERGE INTO nosuch USING u ON true WHEN MATCHED THEN DELETE", errors.CatalogError, "'nosuch' does not exist"),
    ("MERGE INTO t USING u ON true", errors.ParseError, "WHEN is expected"),
    ("MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE WHEN MATCHED THEN DO NOTHING", errors.BindError, "several clauses"),
    ("MERGE INTO t USING u ON true WHEN MATCHED AND v < ? THEN UPDATE SET v = ? + $1", errors.NotSupportedError, "beside"),
    ("PREPARE p AS MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE", errors.NotSupportedError, "PREPARE of MERGE"),
    ("MERGE INTO t USING u ON true WHEN MATCHED THEN ERROR", errors.NotSupportedError, "THEN ERROR"),
    ("MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE RETURNING u.v", errors.BindError, "table 'u'"),
    ("MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE RETURNING count(*)", errors.BindError, "contain aggregates"),
    ("MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE RETURNING * EXCLUDE (merge_action)", errors.BindError, "no column"),
    (
        "MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE RETURNING COLUMNS(*), merge_action",
        errors.NotSupportedError,
        "COLUMNS beside merge_action",
    ),
    (
        "MERGE INTO t USING u USING (id) WHEN NOT MATCHED THEN INSERT VALUES (1, 1)",
        errors.IntegrityError,
        "PRIMARY KEY",
    ),
    ("MERGE INTO t USING u USING (id) WHEN MATCHED THEN UPDATE SET v = NULL", errors.IntegrityError, "NOT NULL"),
    ("MERGE INTO t USING u USING (id) WHEN MATCHED THEN UPDATE SET v = 'x'", errors.ConversionError, "'x'"),
]


@pytest.mark.parametrize(("sql", "kind", "message"), FAULTS)
def test_a_fault_changes_nothing(sql: str, kind: type[Exception], message: str) -> None:
    db = gquery.connect(device="python")
    db.sql("CREATE TABLE t(id INTEGER PRIMARY KEY, v INTEGER NOT NULL); INSERT INTO t VALUES (1, 1), (2, 2)")
    db.sql("CREATE TABLE u AS SELECT * FROM (VALUES (2, 2), (3, 3)) x(id, v)")
    params = [1] if "?" in sql else None
    with pytest.raises(kind, match=message):
        db.sql(sql, params)
    assert db.sql("FROM t ORDER BY id").fetchall() == [(1, 1), (2, 2)]


def test_parameters_have_names() -> None:
    db = gquery.connect(device="python")
    db.sql("CREATE TABLE t AS SELECT 1 AS id, 1 AS v")
    db.sql("MERGE INTO t USING (SELECT $2 AS id) s USING (id) WHEN MATCHED THEN UPDATE SET v = $1", [9, 1])
    assert db.sql("FROM t").fetchall() == [(1, 9)]


def test_names_in_quotes() -> None:
    db = gquery.connect(device="python")
    db.sql('CREATE TABLE "my t"("select" INTEGER, "a""b" INTEGER); INSERT INTO "my t" VALUES (1, 2)')
    merge = 'MERGE INTO "my t" AS "X y" USING (SELECT 1 AS "select", 5 AS "a""b" UNION ALL SELECT 2, 6) AS "s s" '
    matched = 'ON "X y"."select" = "s s"."select" WHEN MATCHED THEN UPDATE SET "a""b" = "s s"."a""b" + "X y"."a""b" '
    db.sql(f'{merge}{matched}WHEN NOT MATCHED THEN INSERT ("a""b", "select") VALUES ("s s"."a""b", "select")')
    assert db.sql('FROM "my t" ORDER BY 1').fetchall() == [(1, 7), (2, 6)]


def clauses(r: random.Random) -> str:
    matched = ["UPDATE SET v = s.v", "UPDATE SET v = t.v * 2, g = s.g", "DELETE", "DO NOTHING", "UPDATE"]
    alone = ["UPDATE SET v = -t.v", "DELETE", "DO NOTHING", "UPDATE SET g = NULL, k = t.k + 100"]
    new = ["INSERT", "INSERT (g, k) VALUES (s.g, s.k)", "INSERT (v) VALUES (s.k + 1)", "DO NOTHING", "INSERT BY NAME"]
    made = []
    for head, bodies, conditions in (
        ("WHEN MATCHED", matched, ("t.v > s.v", "t.g = s.g", "s.v IS NULL", "t.k > 3")),
        ("WHEN NOT MATCHED BY SOURCE", alone, ("t.v > 5", "t.g = 'a'", "t.k IS NULL")),
        ("WHEN NOT MATCHED", new, ("s.v > 5", "s.g = 'b'", "s.k IS NULL")),
    ):
        for _ in range(r.randrange(3)):
            made.append(f"{head} AND {r.choice(conditions)} THEN {r.choice(bodies)}")
        if r.random() < 0.6:
            made.append(f"{head} THEN {r.choice(bodies)}")
    return " ".join(made) or "WHEN MATCHED THEN DELETE"


def test_random_merges() -> None:
    """Each row of the table meets one row of the source at most, as DuckDB does with several what it likes."""
    r = random.Random(11)
    ours, theirs = gquery.connect(device="python"), duckdb.connect()
    for _ in range(30):
        for name, keys in (
            ("t", [r.choice([None, *range(12)]) for _ in range(r.choice((0, 1, 9, 25)))]),
            ("s", range(r.randrange(9))),
        ):
            own = [(k, r.choice((None, *range(9))), r.choice((None, "a", "b"))) for k in keys]
            own += [(None, 3, "a")] * (name == "s" and r.random() < 0.5)
            rows = ", ".join(str(x).replace("None", "NULL") for x in own) or "(NULL, NULL, NULL)"
            for db in (ours, theirs):
                db.execute(
                    f"CREATE OR REPLACE TABLE {name}(k INTEGER, v INTEGER, g VARCHAR); INSERT INTO {name} VALUES {rows}"
                )
        on = r.choice(("t.k = s.k", "t.k = s.k AND s.v > 2", "t.k IS NOT DISTINCT FROM s.k", "t.k = s.k AND t.v < 7"))
        sql = f"MERGE INTO t USING s ON {on} {clauses(r)}"
        assert ours.sql(sql).fetchall() == theirs.execute(sql).fetchall(), sql
        got, want = (db.sql("FROM t").fetchall() for db in (ours, theirs))
        assert compare(got, want, False, ["INTEGER", "INTEGER", "VARCHAR"]) is None, sql


RETURNED = ("*", "merge_action, *", "merge_action AS m, t.id + 1 AS n, upper(merge_action)", "t.merge_action", "v", "COLUMNS(*)")


@pytest.mark.parametrize("returning", RETURNED)
def test_rows_that_are_returned(returning: str) -> None:
    """Those that are changed, new and gone, with what is done with each; rows that stay are none of them."""
    merge = (
        "MERGE INTO t USING (VALUES (1, 11), (2, 22), (3, 33), (5, ?)) u(id, w) ON t.id = u.id AND w > ? WHEN MATCHED AND w > 30 "
        f"THEN DO NOTHING WHEN MATCHED AND w > ? THEN DELETE WHEN MATCHED THEN UPDATE SET v = w + ? "
        f"WHEN NOT MATCHED THEN INSERT VALUES (u.id, w, 'n') RETURNING {returning}"
    )
    found = []
    for db in (gquery.connect(device="python"), duckdb.connect()):
        execute = db.sql if isinstance(db, gquery.Connection) else db.execute
        execute("CREATE TABLE t(id INTEGER, v INTEGER, s VARCHAR)")
        execute("INSERT INTO t VALUES (1, 10, 'a'), (2, 20, NULL), (3, 30, 'c'), (NULL, NULL, 'd')")
        rows = execute(merge, [55, 0, 20, 1000]).fetchall()
        found.append((sorted(rows, key=repr), sorted(execute("SELECT * FROM t").fetchall(), key=repr)))
    assert found[0] == found[1]
    assert len(found[0][0]) == 3


def test_an_own_column_hides_what_is_done() -> None:
    db = gquery.connect(device="python")
    db.sql("CREATE TABLE t(id INTEGER, merge_action VARCHAR); INSERT INTO t VALUES (1, 'own')")
    merge = "MERGE INTO t USING (SELECT 1 AS id) u USING (id) WHEN MATCHED THEN UPDATE SET id = 4 RETURNING merge_action, *"
    assert db.sql(merge).fetchall() == [("own", 4, "own")]
