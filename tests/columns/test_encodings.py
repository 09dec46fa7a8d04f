"""Each kind of values under each encoding of Arrow's: its values come back, whether gquery computes with them or carries them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

import gquery
from tests.support.marks import in_turns

ENDS = pa.array([2, 3, 4], pa.int32())
CODES = pa.array([0, 0, 1, None], pa.int8())
OFFSETS = pa.array([0, 2, 2, 3, 4], pa.int32())


def _extension(name: str) -> Any:
    """An extension type that is written in Python, which has no hash."""

    def init(self: Any) -> None:
        pa.ExtensionType.__init__(self, pa.int64(), name)

    def serialized(_: Any) -> bytes:
        return b""

    def deserialized(cls: Any, _: pa.DataType, __: bytes) -> Any:
        return cls()

    methods = {"__init__": init, "__arrow_ext_serialize__": serialized}
    return type("Own", (pa.ExtensionType,), {**methods, "__arrow_ext_deserialize__": classmethod(deserialized)})


Own = _extension("gquery.own")


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    pa.register_extension_type(Own())
    yield
    pa.unregister_extension_type("gquery.own")


@cache
def kinds() -> dict[str, pa.Array]:
    """Four values each, of which the first two are equal and the last is NULL."""

    def extension(type_: Any, values: list[Any]) -> pa.Array:
        return pa.ExtensionArray.from_storage(type_, pa.array([*values, None], type_.storage_type))

    ids = [uuid.UUID(int=n).bytes for n in (1, 1, 2)]
    texts = ["1", "1", "[2]"]
    return {
        "uuid": extension(pa.uuid(), ids),
        "json": extension(pa.json_(pa.string()), texts),
        "json in large texts": extension(pa.json_(pa.large_string()), texts),
        "json in views": extension(pa.json_(pa.string_view()), texts),
        "bool8": extension(pa.bool8(), [1, 1, 0]),
        "opaque": extension(pa.opaque(pa.int32(), "t", "v"), [1, 1, 0]),
        "tensor": extension(pa.fixed_shape_tensor(pa.int32(), [2]), [[1, 2], [1, 2], [3, 4]]),
        "own": extension(Own(), [1, 1, 0]),
        "blob": pa.array([b"a", b"a", b"b", None]),
        "bytes of one length": pa.array([b"a", b"a", b"b", None], pa.binary(1)),
        "text": pa.array(["a", "a", "b", None]),
        "number": pa.array([1, 1, 2, None]),
        "list": pa.array([[1], [1], [2], None]),
        "struct": pa.array([{"a": 1}, {"a": 1}, {"a": 2}, None]),
    }


def coded(a: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(CODES, a.slice(1, 2))


def runs(a: pa.Array) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(ENDS, a.slice(1))


ENCODINGS: dict[str, Callable[[pa.Array], pa.Array | pa.ChunkedArray]] = {
    "plain": lambda a: a,
    "chunks": lambda a: pa.chunked_array([a.slice(0, 1), a.slice(1)]),
    "slice": lambda a: pa.concat_arrays([a, a]).slice(4, 4),
    "codes": coded,
    "runs": runs,
    "runs of a slice": lambda a: pa.RunEndEncodedArray.from_arrays(pa.array([4, 6, 7, 8], pa.int32()), a).slice(2, 4),
    "runs of codes": lambda a: pa.RunEndEncodedArray.from_arrays(
        ENDS, pa.DictionaryArray.from_arrays(CODES.slice(1), a.slice(1, 2))
    ),
    "codes of runs": lambda a: pa.DictionaryArray.from_arrays(
        CODES, pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), a.slice(1, 2))
    ),
    "lists": lambda a: pa.ListArray.from_arrays(OFFSETS, a),
    "large lists": lambda a: pa.LargeListArray.from_arrays(OFFSETS.cast(pa.int64()), a),
    "lists of runs": lambda a: pa.ListArray.from_arrays(OFFSETS, runs(a)),
    "lists of codes": lambda a: pa.ListArray.from_arrays(OFFSETS, coded(a)),
    "list views": lambda a: pa.ListViewArray.from_arrays(OFFSETS.slice(0, 4), pa.array([2, 0, 1, 1], pa.int32()), a),
    "lists of one length": lambda a: pa.FixedSizeListArray.from_arrays(a, 1),
    "lists of one length of runs": lambda a: pa.FixedSizeListArray.from_arrays(runs(a), 1),
    "structs": lambda a: pa.StructArray.from_arrays([a], ["f"]),
    "structs of runs": lambda a: pa.StructArray.from_arrays([runs(a)], ["f"]),
    "maps": lambda a: pa.MapArray.from_arrays(OFFSETS, pa.array(["a", "b", "a", "b"]), a),
    "runs of lists": lambda a: pa.RunEndEncodedArray.from_arrays(
        ENDS, pa.ListArray.from_arrays(OFFSETS.slice(0, 4), a.slice(0, 3))
    ),
}


def python(array: Any, name: str) -> list[Any]:
    """The values, those of bool8 as booleans wherever they are."""

    def value(v: Any) -> Any:
        if isinstance(v, list | tuple):
            return [value(x) for x in v]
        if isinstance(v, dict):
            return {k: value(x) for k, x in v.items()}
        return bool(v) if name == "bool8" and v in (0, 1) and v is not None else v

    return [value(v) for v in array.to_pylist()]


@pytest.mark.parametrize(("name", "encoding"), in_turns(2, kinds(), list(ENCODINGS)))
def test_values_come_back(name: str, encoding: str) -> None:
    array = ENCODINGS[encoding](kinds()[name])
    want = python(array, name)
    with gquery.connect(device="python") as connection:
        connection.register("t", pa.table({"x": array, "id": [1, 2, 3, 4]}))
        connection.register("none", pa.table({"x": array, "id": [1, 2, 3, 4]}).slice(0, 0))

        def check(sql: str, rows: list[Any]) -> None:
            made = connection.sql(sql).to_arrow_table().column(0)
            made.validate(full=True)
            assert python(made, name) == rows, sql

        check("SELECT x FROM t ORDER BY id DESC", want[::-1])
        check("SELECT a.x FROM t a JOIN t b USING (id) WHERE id > 1 ORDER BY id", want[1:])
        check("SELECT lag(x) OVER (ORDER BY id) FROM t ORDER BY id", [None, *want[:-1]])
        check("SELECT x FROM t UNION ALL SELECT x FROM none", want)
        check("SELECT x FROM none", [])
        check("SELECT count(x) FROM t", [sum(v is not None for v in want)])
        connection.sql("CREATE TABLE u AS SELECT * FROM t")
        connection.sql("INSERT INTO u SELECT * FROM t")
        check("SELECT x FROM u", want + want)
        assert len(connection.sql("SELECT * FROM u").fetchall()) == 8


def test_a_blob_in_codes_or_runs_is_computed_with() -> None:
    with gquery.connect(device="python") as connection:
        for array in (coded(kinds()["blob"]), runs(kinds()["blob"]), runs(kinds()["bytes of one length"])):
            connection.register("t", pa.table({"x": array}))
            found = connection.sql("SELECT x, count(*), hex(x) FROM t GROUP BY x ORDER BY x").fetchall()
            assert found == [(b"a", 2, "61"), (b"b", 1, "62"), (None, 1, None)]


def test_an_extension_that_arrow_does_not_know_is_an_error_within_others() -> None:
    unknown = _extension("gquery.unknown")
    array = pa.ExtensionArray.from_storage(unknown(), pa.array([1, 2, 3, None]))
    with gquery.connect(device="python") as connection:
        connection.register("t", pa.table({"x": array}))
        assert connection.sql("SELECT x FROM t").to_arrow_table().column(0).type == unknown()
        connection.register("t", pa.table({"x": pa.ListArray.from_arrays(OFFSETS, array)}))
        with pytest.raises(gquery.DataError, match="register_extension_type"):
            connection.sql("SELECT x FROM t").fetchall()
