"""JSON files with values of several kinds in one field, beside DuckDB."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import gquery

FILES = {
    "num_text": '{"a":1}\n{"a":"x"}\n{"a":null}\n{"a":"7"}\n',
    "bool_num": '{"a":true}\n{"a":2}\n',
    "num_obj": '{"a":1}\n{"a":{"b":2}}\n',
    "list_num": '{"a":[1]}\n{"a":2}\n',
    "list_mixed": '{"a":[1,"x",null]}\n',
    "list_objects": '{"a":[1,{"b":2}]}\n',
    "objects": '{"a":{"b":1}}\n{"a":{"b":"x","c":2}}\n{"a":null}\n{}\n',
    "objects_of_list": '{"a":[{"b":1},{"b":"x"}]}\n',
    "lists": '{"a":[[1],["x"]]}\n',
    "days": '{"a":1,"d":"2020-01-01","t":"2020-01-01 10:00:00"}\n{"a":"2020-01-02","d":"2020-01-02","t":"2020-01-01 11:00:00"}\n',
    "all": '{"a":1}\n{"a":true}\n{"a":"x"}\n{"a":[1,2]}\n{"a":1.50}\n{"a":1e3}\n{"a":{"b": {}}}\n',
    "array": '[{"a":1},{"a":"x"}]',
    "characters": '{"a":1}\n{"a":"\\u00e9\\n\\"q"}\n{"a":"\U0001f600"}',
    "mark": '\ufeff{"a":1}\r\n{"a":"x"}\r\n',
    "late": '{"a":1}\n' + '{"b":2}\n' * 5 + '{"a":"x"}\n',
    "deep": '{"a":' + "[" * 50 + "1" + "]" * 50 + '}\n{"a":1}\n',
    "no_name": '{"":1}\n{"":"x"}\n',
}
ASKED = (
    "SELECT a->'b', a IS NULL FROM '{}/num_obj.json'",
    "SELECT a, count(*) FROM '{}/num_text.json' GROUP BY a ORDER BY a::VARCHAR",
    "SELECT typeof(a), a.b, a.b::VARCHAR FROM '{}/objects.json'",
    "SELECT a.b->>'$' FROM '{}/objects.json' WHERE a.b IS NOT NULL",
    "SELECT unnest(a) FROM '{}/list_mixed.json'",
    "SELECT a[1], a[2]->>'b' FROM '{}/list_objects.json'",
    "DESCRIBE SELECT * FROM '{}/objects.json'",
    "SELECT a::INTEGER FROM '{}/num_text.json' WHERE a::VARCHAR = '1'",
    "SELECT * FROM read_json(['{0}/plain.json', '{0}/num_text.json', '{0}/none.json'])",
    "SELECT * FROM read_json(['{0}/plain.json', '{0}/texts.json'])",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("json")
    for name, text in {**FILES, "plain": '{"a":5}\n', "texts": '{"a":"q"}\n', "none": ""}.items():
        (made / f"{name}.json").write_bytes(text.encode())
    return made


@pytest.mark.parametrize("target", ["python", "cpu"])
@pytest.mark.parametrize("sql", [*(f"SELECT * FROM '{{}}/{name}.json'" for name in FILES), *ASKED])
def test_as_in_duckdb(folder: Path, sql: str, target: str) -> None:
    text = sql.format(folder)
    theirs = duckdb.sql(text)
    with gquery.connect(target) as db:
        ours = db.sql(text)
        assert ([str(t) for t in ours.types], ours.fetchall()) == ([str(t) for t in theirs.types], theirs.fetchall())


def test_objects_without_fields(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"a":{},"b":[{}],"c":{"d":{}}}\n{"a":null}\n')
    found = gquery.connect("python").sql(f"SELECT * FROM '{tmp_path}/t.json'")
    assert [str(t) for t in found.types] == ["JSON", "JSON[]", "STRUCT(d JSON)"]
    assert found.fetchall() == [("{}", ["{}"], {"d": "{}"}), (None, None, None)]


@pytest.mark.parametrize("text", ['{"a":1}\n{"a":\n', '{"a":1}\n{"a":"x"}}\n', '{"a":1}\n2\n', '{"a":1,"a":"x"}', "x"])
def test_what_is_no_such_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(gquery.FileError, match="Cannot read the JSON file"):
        gquery.connect("python").sql(f"SELECT * FROM '{tmp_path}/t.json'")


def test_a_table_of_them(folder: Path) -> None:
    db = gquery.connect("python")
    db.sql(f"CREATE TABLE t AS FROM '{folder}/objects.json'")
    db.sql("INSERT INTO t VALUES ({'b': '[1]'::JSON, 'c': 3})")
    found = db.sql("SELECT a.b, a.b -> 0 FROM t").fetchall()
    assert found == [("1", None), ('"x"', None), (None, None), (None, None), ("[1]", "1")]


def test_structs_without_fields_of_arrow() -> None:
    db = gquery.connect("python")
    db.register("t", pa.table({"a": pa.array([{}, None], pa.struct([])), "b": pa.array([[{}], None], pa.list_(pa.struct([])))}))
    assert db.sql("SELECT * FROM t").fetchall() == [({}, [{}]), (None, None)]
