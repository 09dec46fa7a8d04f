"""Files at the edges, beside DuckDB over the same files: without rows or bytes, all NULL, nested days, hive folders."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from tests.support.harness import compare


def _write(root: Path) -> None:
    texts = {
        "empty.csv": "", "mark.csv": "\ufeff", "head.csv": "a,b\n", "nulls.csv": "a,b\n,\n,\n", "one.csv": "a\n\n\n1\n",
        "some.csv": "a,b\n1,x\n2,\n", "quoted.csv": 'a,b\n"x, y","he said ""hi"""\n"two\nlines",z\n', "short.csv": "a,b\n1,2",
        "days/day=2020-01-01/x.csv": "v\n1\n", "days/day=2020-01-02/x.csv": "v\n2\n", "own/a=9/x.csv": "a,v\n1,2\n3,4\n",
        "word/a=x/x.csv": "a,v\n1,2\n", "own/a=9/x.json": '{"a": 1, "v": 2}',
        "empty.json": "", "none.json": "[]", "nulls.json": '[{"a": 1, "b": null}, {"a": null, "b": null}]',
        "some.json": '{"a": 7, "d": "2020-01-01"}\n{"a": null, "d": null}\n',
        "nested.json": '[{"a": [{"b": [1, 2], "c": null}, null]}, {"a": [{"b": null, "c": {"d": "2020-01-01"}}]}]',
        "moments.json": '[{"a": ["2020-01-01 10:00:00"], "b": {"d": "2020-02-03", "e": "2020-02-03 00:00:00"}}]',
    }  # fmt: skip
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    nulls = {"a": pa.int32(), "s": pa.string(), "l": pa.list_(pa.int32()), "r": pa.struct([("x", pa.int32())])}
    tables = {
        "none.parquet": pa.table({"a": pa.array([], pa.int32()), "s": pa.array([], pa.string())}),
        "nulls.parquet": pa.table({name: pa.array([None] * 3, type_) for name, type_ in nulls.items()}),
        "nested.parquet": pa.table({
            "l": pa.array([[{"x": 1, "y": ["a", None]}, None], [], None, [{"x": None, "y": []}]]),
            "m": pa.array([[("k", 1)], [], None, [("z", None)]], pa.map_(pa.string(), pa.int32())),
        }),
        "long.parquet": pa.table({"s": ["x" * 3_000_000, "y", None]}),
        "own/a=9/x.parquet": pa.table({"a": [1, 2], "v": [3, 4]}),
        "listed/a=9/x.parquet": pa.table({"A": [[1], [2, 3]], "v": [3, 4], "w": ["p", "q"]}),
        "turned/x=1/y=2/x.parquet": pa.table({"v": [1]}),
        "turned/y=3/x=4/x.parquet": pa.table({"v": [2]}),
        "part/x=1/x.parquet": pa.table({"v": [1]}),
        "part/x.parquet": pa.table({"v": [2]}),
        "null/k=1/x.parquet": pa.table({"v": [1]}),
        "null/k=__HIVE_DEFAULT_PARTITION__/x.parquet": pa.table({"v": [2]}),
        "keys/p=a%20b/n=3/x.parquet": pa.table({"v": [1]}),
        "keys/p=c/n=__HIVE_DEFAULT_PARTITION__/x.parquet": pa.table({"v": [2]}),
    }  # fmt: skip
    for name, table in tables.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, root / name)


QUERIES = """
FROM 'empty.csv'
SELECT count(*) FROM 'empty.csv'
FROM 'mark.csv'
FROM read_csv('empty.csv', filename = true)
FROM 'head.csv'
FROM read_csv('head.csv', columns = {'x': 'INTEGER', 'y': 'DATE'})
FROM 'nulls.csv'
FROM 'one.csv'
FROM 'quoted.csv'
FROM 'short.csv'
FROM read_csv(['head.csv', 'some.csv'])
FROM read_csv(['empty.csv', 'some.csv'])
FROM read_csv(['some.csv', 'empty.csv', 'head.csv'])
FROM read_csv(['head.csv', 'head.csv'])
FROM read_csv(['head.csv', 'head.csv'], types = {'a': 'INTEGER'})
FROM 'days/*/*.csv'
FROM 'days/*/*.csv' WHERE day = DATE '2020-01-02'
FROM 'own/*/*.csv'
FROM read_csv('own/*/*.csv', hive_partitioning = false)
FROM 'word/*/*.csv'
FROM read_json('own/*/*.json')
FROM 'empty.json'
FROM 'none.json'
SELECT count(*) FROM 'none.json'
FROM read_json(['empty.json', 'some.json', 'none.json'])
FROM 'nested.json'
FROM 'moments.json'
FROM 'some.json'
FROM 'none.parquet'
SELECT sum(a), count(s), max(s), list(a) FROM 'none.parquet'
FROM 'nulls.parquet'
SELECT count(a), min(s), any_value(l), first(r), r.x FROM 'nulls.parquet' GROUP BY r.x
FROM 'nested.parquet'
SELECT l, count(*), any_value(m) FROM 'nested.parquet' GROUP BY l
SELECT length(s), length(upper(s) || s), s = 'y' FROM 'long.parquet'
FROM 'own/*/*.parquet'
SELECT v FROM 'own/*/*.parquet' WHERE a = 9
SELECT count(*) FROM 'own/*/*.parquet' WHERE a < 9
FROM 'listed/*/*.parquet'
SELECT w, v FROM 'listed/*/*.parquet' WHERE A = 9
FROM read_parquet('listed/*/*.parquet', hive_partitioning = false)
FROM 'turned/*/*/*.parquet'
FROM read_parquet('turned/*/*/*.parquet', hive_partitioning = true) WHERE x = 4
FROM 'part/**/*.parquet'
FROM read_parquet('part/**/*.parquet', hive_partitioning = true)
FROM 'null/*/*.parquet'
FROM 'null/*/*.parquet' WHERE k IS NULL
SELECT k, sum(v) FROM 'null/*/*.parquet' GROUP BY k
FROM 'keys/*/*/*.parquet'
FROM 'keys/*/*/*.parquet' WHERE n IS NULL AND p > 'b'
FROM 'nothing*.parquet'
FROM 'nothing.csv'
FROM read_csv('nothing*.csv')
FROM read_parquet([])
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    _write(made)
    return made


def _placed(sql: str, root: Path) -> str:
    """The statement with whole paths, as both engines are asked."""
    for ending in (".csv'", ".json'", ".parquet'"):
        parts = sql.split(ending)
        parts = [p[: p.rindex("'") + 1] + f"{root}/" + p[p.rindex("'") + 1 :] for p in parts[:-1]] + parts[-1:]
        sql = ending.join(parts)
    return sql


@pytest.mark.parametrize("sql", QUERIES.strip().splitlines())
def test_as_in_duckdb(sql: str, root: Path) -> None:
    """Names, types and rows are DuckDB's, or both have an error."""
    placed = _placed(sql, root)
    db = gquery.connect(device="python")
    try:
        cursor = duckdb.connect().execute(placed)
        names, types = zip(*[(str(d[0]), str(d[1])) for d in cursor.description or ()], strict=True)
        want = cursor.fetchall()
    except duckdb.Error:
        with pytest.raises(gquery.Error) as raised:
            db.sql(placed).fetchall()
        assert not isinstance(raised.value, gquery.InternalError)
        return
    got = db.sql(placed)
    assert tuple(got.columns) == names
    types = tuple(t.replace("HUGEINT", "BIGINT") for t in types)
    assert tuple(map(str, got.types)) == types
    assert compare(got.fetchall(), want, False, types) is None
