"""JSON: random values and paths beside DuckDB, over columns, and what is wrong with texts."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import gquery
from gquery import errors
from tests.support.harness import compare

NAMES = ("a", "b", "a b", "é", "", "0", 'q"')


def made(r: random.Random, depth: int = 0) -> Any:
    """A random value."""
    kind = r.randrange(9 if depth < 3 else 6)
    match kind:
        case 0:
            return r.choice((None, True, False))
        case 1:
            return r.choice((0, -1, 7, 2**63, -(2**63), r.randrange(10**6)))
        case 2:
            return r.choice((1.5, -0.25, 1e20, 1e-9, r.random(), r.uniform(-1e9, 1e9)))
        case 3 | 4 | 5:
            return r.choice(("", "x", "5", "1.5", "é\n", 'a"b\\c', "null", "\u0001", "2024-01-01"))
        case 6:
            return [made(r, depth + 1) for _ in range(r.randrange(4))]
        case _:
            return {r.choice(NAMES): made(r, depth + 1) for _ in range(r.randrange(4))}


def test_random_values_as_in_duckdb() -> None:
    r = random.Random(7)
    texts: list[str | None] = [
        json.dumps(made(r), ensure_ascii=r.random() < 0.5, indent=r.choice((None, 1))) for _ in range(600)
    ]
    texts = [None if r.random() < 0.05 else t for t in texts]
    paths = ["$", "$.a", "$.b[0]", "$[0]", "$[1].a", "$[-1]", "/a/0", "/0", "a", "a b", '$."q\\""', "$.a.b", "$[#-1]", ""]
    table = pa.table({"j": texts, "p": [r.choice((*paths, None)) for _ in texts]})
    ours, theirs = gquery.connect(device="cpu"), duckdb.connect()
    ours.set("interpret_limit", 0)
    for db in (ours, theirs):
        db.register("t", table)
    one = [f"j->'{p}'" for p in paths] + [f"j->>'{p}'" for p in paths] + [f"json_type(j, '{p}')" for p in paths]
    whole = ["json(j)", "json_array_length(j)", "json_array_length(j, p)", "json_keys(j)", "json_exists(j, p)", "j->p"]
    whole += ["j->>p", "json_valid(p)"]
    whole += [ "to_json(j)", "json_array(j, p, j::JSON)", "j::JSON::VARCHAR", "j->0", "j->>-1", "json_value(j, p)"]
    whole += ["json_object('k', j::JSON, 'p', p)", "to_json([j, p])", "TRY_CAST(p AS JSON)", "json_contains(j, '5')"]
    each = ("json_extract", "json_extract_string", "json_value", "json_type", "json_keys", "json_array_length", "json_exists")
    whole += [f"{f}(j, '{p}')" for f in each for p in ("$[*]", "$.*", "$[*].a", "$.*[0]", '$."a b"[*][*]')]
    whole += ["json_extract(j, ['$.a', '/0', 'b'])", "j->>['$[0]']", "json_structure(j)"]
    whole += ["from_json(j, '[\"JSON\"]')", """json_transform(j, '{"a": "BIGINT", "b": ["VARCHAR"], "é": {"a": "DOUBLE"}}')"""]
    for sql in (*one, *whole):
        text = f"SELECT {sql} AS x FROM t"
        want = theirs.sql(text)
        got = ours.sql(text)
        assert [str(t) for t in got.types] == [str(t) for t in want.types], sql
        assert (found := compare(got.fetchall(), want.fetchall(), True, [str(t) for t in want.types])) is None, f"{sql}: {found}"


SCRIPT = """
CREATE TABLE e (id INTEGER, p JSON, s VARCHAR)
INSERT INTO e VALUES (1, '{"k": [1, {"z": true}], "n": "a"}', 'no'), (2, NULL, '{"n": "b"}'), (3, '{"k": [], "n": "a"}', NULL)
SELECT id, p->'$.k[1].z', p->>'$.k[0]', typeof(p), p IS NULL FROM e ORDER BY id
SELECT p->>'n' AS n, count(*), sum(id) FROM e GROUP BY n ORDER BY n
SELECT p->'n' AS n, max(p), min(p) FROM e GROUP BY ALL ORDER BY ALL
SELECT p, count(*) FROM e GROUP BY p ORDER BY p
SELECT DISTINCT typeof(p->'k') FROM e
SELECT a.id, b.id FROM e a JOIN e b ON (a.p->>'n') = (b.p->>'n') ORDER BY ALL
SELECT id FROM e WHERE (p->>'n') = 'a' AND (p->'k'->>0)::INTEGER = 1
SELECT id, CASE WHEN json_valid(s) THEN s->>'n' ELSE 'none' END FROM e ORDER BY id
SELECT s->>'n' FROM e WHERE json_valid(s)
SELECT id, coalesce(p, s) FROM e WHERE id < 3 AND json_valid(s) ORDER BY id
SELECT id, lag(p) OVER (ORDER BY id), first_value(p->>'n') OVER (ORDER BY id) FROM e ORDER BY id
SELECT list(p ORDER BY id), to_json(list(id ORDER BY id)) FROM e
SELECT to_json({'id': id, 's': s}) FROM e ORDER BY id
SELECT unnest((p->'k')::JSON::VARCHAR[]) FROM e WHERE id = 3
SELECT id, x->'z' FROM e, unnest((p->'k')::JSON[]) u(x) ORDER BY ALL
SELECT p::STRUCT(k JSON[], n JSON) FROM e WHERE id = 1
SELECT e.id, r.* FROM e, json_each(p) r ORDER BY ALL
SELECT e.id, r.* FROM e, json_tree(p) r ORDER BY ALL
SELECT e.id, r.key, t.fullkey FROM e LEFT JOIN json_each(p, '$.k') r ON true, json_tree(r.value, '$.z') t ORDER BY ALL
SELECT key, value, type, id FROM json_each({'a': 1, 'b': [true, NULL]})
SELECT * FROM json_tree('[[5, 5], {"a": {"b": 5}}]', '$[1].a')
SELECT * FROM json_each('{"a": [7]}', 'a')
SELECT * FROM json_each('{"a": 5}', '$.a')
SELECT * FROM json_each('5') r(k)
SELECT p->>'n' AS n, json_group_array(id), json_group_object('k' || id, p) FROM (FROM e ORDER BY id) GROUP BY n ORDER BY n
SELECT json_group_array(s) FROM (FROM e ORDER BY id)
SELECT json_group_array(id), json_group_object(id, s) FROM e WHERE id > 9
SELECT json_group_array({'id': id, 'at': DATE '2024-01-01' + id}) FROM (FROM e ORDER BY id)
SELECT 'true'::JSON::INTEGER, 'false'::JSON::DOUBLE, '[true, 2]'::JSON::DECIMAL(4,1)[], TRY_CAST('[1]'::JSON AS STRUCT(a INTEGER))
UPDATE e SET p = json_merge_patch(p, '{"n": "c"}') WHERE id = 1
SELECT p->>'n' FROM e ORDER BY id
CREATE TABLE f AS SELECT id, p FROM e UNION ALL SELECT 9, json_object('n', 'z', 'at', DATE '2024-01-01')
SELECT * FROM f ORDER BY id
DESCRIBE f
ALTER TABLE f ADD COLUMN q JSON DEFAULT '[1]'
SELECT q->>0, count(*) FROM f GROUP BY 1
ALTER TABLE f ALTER p TYPE VARCHAR
SELECT typeof(p) FROM f LIMIT 1
"""


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_columns_as_in_duckdb(device: str) -> None:
    ours, theirs = gquery.connect(device=device), duckdb.connect()
    if device == "cpu":
        ours.set("interpret_limit", 0)
    for line in SCRIPT.strip().splitlines():
        done = theirs.execute(line)
        want, types = done.fetchall(), [str(d[1]) for d in done.description or ()]
        got = ours.sql(line).fetchall()
        if line.startswith(("SELECT", "DESCRIBE")):
            assert (found := compare(got, want, "ORDER" in line, types)) is None, f"{line}: {found}"


FAULTS = [
    ("SELECT 'x'::JSON", errors.ConversionError, r"malformed JSON: 'x'\nLINE 1: .*\n {15}\^"),
    ("SELECT s->>'a' FROM t", errors.ConversionError, "malformed JSON"),
    ("SELECT s::JSON FROM t", errors.ConversionError, "malformed JSON"),
    ("INSERT INTO t VALUES (2, '{', 'x')", errors.ConversionError, "malformed JSON"),
    ("UPDATE t SET j = s", errors.ConversionError, "malformed JSON"),
    ("SELECT j->'$a' FROM t", errors.BindError, "no path of JSON; there is an error near 'a'"),
    ("SELECT j->'$.' FROM t", errors.BindError, "no path of JSON"),
    ("SELECT j->(s || '$.a[*]')[2:] FROM t", errors.NotSupportedError, "path of JSON to several values"),
    ("SELECT j->'$..a' FROM t", errors.NotSupportedError, "'..' in a path of JSON"),
    ("SELECT j->['$.a', '$[*]'] FROM t", errors.BindError, "none leads to several values"),
    ("SELECT j->[s] FROM t", errors.NotSupportedError, "paths of json_extract that are no list"),
    ("FROM json_each('[1]', '$[*]')", errors.BindError, "a path to one value"),
    ("FROM json_each('[1]', '/0')", errors.BindError, "which begins with"),
    ("FROM t, json_each(s)", errors.ConversionError, "malformed JSON"),
    ("FROM json_tree()", errors.BindError, "takes JSON and a path"),
    ("SELECT json_transform(j, '{\"a\": \"NOPE\"}') FROM t", errors.NotSupportedError, "type NOPE"),
    ("SELECT json_transform(j, '[]') FROM t", errors.BindError, "lists of one structure"),
    ("SELECT json_transform(j, '{') FROM t", errors.ConversionError, "malformed JSON"),
    ("SELECT json_transform(j, s) FROM t", errors.NotSupportedError, "no constant text"),
    ("SELECT json_transform(j) FROM t", errors.BindError, "takes JSON and its structure"),
    ("SELECT json_transform_strict(j, '[\"JSON\"]') FROM t", errors.NotSupportedError, "json_transform_strict"),
    ("SELECT json_group_array(1, 2) FROM t", errors.BindError, "takes one value"),
    ("SELECT json_group_object(1) FROM t", errors.BindError, "a name and a value"),
    ("SELECT json_group_array(DISTINCT i ORDER BY i) FROM t", errors.NotSupportedError, "in another order"),
    ("SELECT string_agg(DISTINCT i ORDER BY i) FROM t", errors.NotSupportedError, "in another order"),
    ("SELECT j->1.5 FROM t", errors.BindError, "no function matches json_extract"),
    ("SELECT i->'a' FROM t", errors.BindError, "no function matches json_extract"),
    ("SELECT json_object('a') FROM t", errors.BindError, "an even number"),
    ("SELECT json_object(i, 1) FROM t", errors.BindError, "a name is a VARCHAR"),
    ("SELECT json_object(nullif(s, s), 1) FROM t", errors.ConversionError, "a name is NULL"),
    ("SELECT j::INTEGER FROM t", errors.ConversionError, "could not convert"),
    ("SELECT j::INTEGER[] FROM t", errors.ConversionError, 'JSON {"a":1} is no INTEGER'),
    ("SELECT j::STRUCT(b INTEGER) FROM t", errors.ConversionError, "has not the fields"),
    ("SELECT to_json({'a': j, 'b': s}) FROM t", errors.NotSupportedError, "JSON beside VARCHAR"),
    ("SELECT j = i FROM t", errors.BindError, "cannot mix"),
    ("SELECT sum(j) FROM t", errors.BindError, "sum"),
    ("SELECT '" + "[" * 100_000 + "'::JSON", errors.ConversionError, "malformed JSON"),
]


@pytest.mark.parametrize(("sql", "kind", "message"), FAULTS)
def test_errors(sql: str, kind: type[Exception], message: str) -> None:
    """Nothing is changed by them."""
    db = gquery.connect(device="python")
    db.sql("""CREATE TABLE t (i INTEGER, j JSON, s VARCHAR); INSERT INTO t VALUES (1, '{"a":1}', 'x')""")
    with pytest.raises(kind, match=message):
        db.sql(sql).fetchall()
    assert db.sql("FROM t").fetchall() == [(1, '{"a":1}', "x")]


def test_declared_when_asked_for() -> None:
    """A process that has asked for no JSON finds its functions, also those that only a plan names."""
    code = (
        "import sys; from gquery.functions import FUNCTIONS, call; from gquery.functions.registry import is_declared\n"
        "assert 'gquery.functions.json' not in sys.modules and is_declared('json_valid') and not is_declared('json_nothing')\n"
        "assert FUNCTIONS['_tojson_object'].host and FUNCTIONS['_json_extract'].host\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
