"""What leaves as Arrow: texts of dictionaries, and the schema that a query that comes again has once more."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from gquery.columns.arrow import export_column, export_table
from gquery.columns.table import ColumnData, Dictionary, Table
from gquery.device.buffer import Buffer
from gquery.expression.types import BIGINT, VARCHAR, Field, PhysicalType, Schema


@pytest.mark.parametrize("rows", [0, 1, 64, 65])
@pytest.mark.parametrize("entries", [1, 256, 257])
@pytest.mark.parametrize("nulls", [False, True])
def test_few_texts_and_many_of_a_dictionary_are_alike(rows: int, entries: int, nulls: bool) -> None:
    """Python puts few together, Arrow many."""
    texts = sorted({"", "é" * 200, *(f"text {n}\0" for n in range(entries))}, key=str.encode)[:entries]
    codes = np.arange(rows, dtype=np.int64) * 7 % len(texts)
    validity = (codes % 3 != 1).astype(np.uint8) if nulls else None
    column = ColumnData(
        VARCHAR,
        PhysicalType.I64,
        rows,
        Buffer(codes),
        None if validity is None else Buffer(validity),
        dictionary=Dictionary(pa.array(texts, pa.large_string())),
    )
    made = export_column(column)
    made.validate(full=True)
    assert made.type == pa.string()
    assert made.to_pylist() == [None if nulls and c % 3 == 1 else texts[c] for c in codes]


def test_long_texts_of_a_dictionary_are_no_list() -> None:
    entries = pa.array(["a" * (1 << 20), "b"], pa.large_string())
    assert Dictionary(entries).listed is None
    assert Dictionary(entries.slice(1)).listed == [b"b"]


def test_a_schema_is_that_of_the_result_at_hand() -> None:
    """It is kept for the next result, whose columns may have NULLs, or other types of text."""
    schema = Schema((Field("a", BIGINT, False), Field("b", VARCHAR, True)))

    def table(validity: list[int] | None, offsets: PhysicalType) -> Table:
        valid = None if validity is None else Buffer(np.array(validity, np.uint8))
        numbers = ColumnData(BIGINT, PhysicalType.I64, 2, Buffer(np.array([1, 2])), valid)
        place = np.array([0, 1, 2], np.int32 if offsets is PhysicalType.STRING32 else np.int64)
        texts = ColumnData(VARCHAR, offsets, 2, Buffer(place), characters=Buffer(np.frombuffer(b"xy", np.uint8)))
        return Table(schema, (numbers, texts), 2)

    plain = export_table(table(None, PhysicalType.STRING32)).schema
    assert [f.nullable for f in plain] == [False, True]
    assert export_table(table([1, 0], PhysicalType.STRING64)).schema.field("a").nullable
    assert export_table(table([1, 1], PhysicalType.STRING32)).schema == plain
    assert len(schema.exported) == 1 and schema == Schema(schema.fields)
