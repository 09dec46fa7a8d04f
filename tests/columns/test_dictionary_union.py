"""One sorted dictionary of many, made in one range or in several: the same values, and codes for the same texts."""

import numpy as np
import pyarrow as pa
import pytest

from gquery import tuning
from gquery.columns import dictionary_union
from gquery.columns.dictionary_union import codes_of, union_in_phases
from gquery.runtime.threads import run_phases
from tests.support.tuned import Tune

SKEWED: list[str | None] = ["same"] * 500
SKEWED += [f"same{n % 3}" for n in range(500)]
CASES: dict[str, list[list[str | None]]] = {
    "shuffled": [[f"text {n * 7919 % 1009}" for n in range(k, k + 300)] for k in range(0, 900, 100)],
    "skewed": [SKEWED, [*reversed(SKEWED)], ["same"]],
    "one value": [["x"] * 40, ["x"]],
    "NULL alone": [[None] * 5, [None]],
    "NULL and values": [["b", None, "a"], [None], [f"{n}" for n in range(200)], ["", None]],
    "empty pieces": [[], ["z", "y"], [], ["y", "a" * 300], []],
    "bytes beyond ASCII": [["é", "e", "z", "\U0001f600"], ["\uffff", "\x00", "\x00a", ""]],
}


@pytest.fixture(params=[1, 2, 7, 16], ids=lambda n: f"{n} ranges")
def ranges(request: pytest.FixtureRequest, tune: Tune) -> int:
    tune(tuning.encoding, union_part=1)
    tune(tuning.encoding, union_ranges=request.param)
    return int(request.param)


def encoded(rows: list[str | None], with_null_entries: bool, type_: pa.DataType) -> pa.DictionaryArray:
    array = pa.array(rows, type_)
    return array.dictionary_encode("encode" if with_null_entries else "mask")


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
@pytest.mark.parametrize("with_null_entries", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_union_of_dictionaries(
    ranges: int, name: str, with_null_entries: bool, type_: pa.DataType, workers: int
) -> None:
    plain = pa.string() if type_ == pa.string_view() else type_
    arrays = [encoded(rows, with_null_entries, plain) for rows in CASES[name]]
    if type_ == pa.string_view():
        arrays = [pa.DictionaryArray.from_arrays(a.indices, a.dictionary.cast(type_)) for a in arrays]
    pieces = [codes_of(a) for a in arrays]
    union = run_phases([union_in_phases(pieces)], workers)[0]
    distinct = {t for rows in CASES[name] for t in rows if t is not None}
    assert union.values.to_pylist() == sorted(distinct, key=lambda t: t.encode())
    for number, (piece, rows) in enumerate(zip(pieces, CASES[name], strict=True)):
        codes, validity = np.zeros(len(rows), union.physical_type.numpy), np.ones(len(rows), np.uint8)
        union.write(number, piece, codes, validity)
        values = union.values.to_pylist() or [None]
        assert [values[c] if ok else None for c, ok in zip(codes.tolist(), validity, strict=True)] == rows
    assert union.has_nulls == (with_null_entries and any(None in rows for rows in CASES[name]))


def test_several_ranges_are_made(ranges: int) -> None:
    pieces = [codes_of(encoded(rows, False, pa.string())) for rows in CASES["shuffled"]]
    assert len(dictionary_union._bounds([p.dictionary for p in pieces], ranges)) + 1 == ranges
