"""The suite of sqllogictest files on gquery and on DuckDB, and the runner itself: it finds what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slt.__main__ import main
from tests.slt.records import FormatError, read
from tests.slt.run import DuckDB, Gquery, faults

FILES = sorted((Path(__file__).parent / "suite").glob("*.slt"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_suite(path: Path) -> None:
    assert not [str(f) for f in faults(path, Gquery())]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_suite_is_what_duckdb_says(path: Path) -> None:
    assert not [str(f) for f in faults(path, DuckDB())]


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_suite_compiled_on_three_ranks(path: Path) -> None:
    assert not [str(f) for f in faults(path, Gquery("cpu", 3, compiled=True))]


@pytest.mark.cuda
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_suite_on_a_gpu(path: Path) -> None:
    assert not [str(f) for f in faults(path, Gquery("cuda", compiled=True))]


TRUE = "query IT rowsort\nSELECT * FROM (VALUES (2, 'b'), (1, NULL)) t(a, b)\n----\n1\tNULL\n2\tb\n"
# what a file says that is not so, and what is said of it
WRONG = {
    "a value": (TRUE.replace("\tb\n", "\tc\n"), "row 1 is"),
    "too many rows": (TRUE + "3\tc\n", "2 rows, 3 expected"),
    "the order": (TRUE.replace(" rowsort", ""), "row 0 is"),
    "the columns": (TRUE.replace("IT", "ITI"), "2 columns, 3 expected"),
    "a hash": ("query I\nSELECT 1\n----\n1 values hashing to 00000000000000000000000000000000\n", "hash to b026"),
    "no error": ("statement error\nSELECT 1\n", "an error expected"),
    "another error": ("statement error\nSELECT nothing\n----\ndivision by zero\n", "does not say"),
    "an error": ("statement ok\nSELECT nothing\n", "nothing"),
    "a label": ("query I nosort x\nSELECT 1\n----\n1\n\nquery I nosort x\nSELECT 2\n----\n2\n", "labelled x"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_found(name: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.slt"
    path.write_text(WRONG[name][0])
    found = [f.said for f in faults(path, Gquery())]
    assert len(found) == 1 and WRONG[name][1] in found[0]


def test_values_a_line_loops_and_engines(tmp_path: Path) -> None:
    path = tmp_path / "right.test"
    path.write_text(
        "loop i 0 2\n\nforeach t a b\n\nquery IT\nSELECT ${i}, '${t}'\n----\n${i}\n${t}\n\nendloop\n\nendloop\n\n"
        "skipif gquery\nstatement ok\nno sql at all\n\nonlyif duckdb\nstatement ok\nnor this\n\nhalt\n\nand nothing behind it\n"
    )
    records = read(path)
    assert [r.sql for r in records[:4]] == ["SELECT 0, 'a'", "SELECT 0, 'b'", "SELECT 1, 'a'", "SELECT 1, 'b'"]
    assert [r.is_for("gquery") for r in records[4:]] == [False, False]
    assert not list(faults(path, Gquery()))


@pytest.mark.parametrize("text", ["loop i 0 3\n", "select 1\n", "query X\nSELECT 1\n----\n1\n", "statement ok\n\n"])
def test_what_is_no_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "none.slt"
    path.write_text(text)
    with pytest.raises(FormatError, match=r"none\.slt:1"):
        read(path)


def test_rows_are_written_and_then_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new.slt"
    path.write_text(
        TRUE.partition("----")[0] + "----\nold\n\nloop i 0 2\n\nquery I\nSELECT ${i}\n----\n${i}\n\nendloop\n"
    )
    assert main(["--complete", str(path)]) == 0
    assert TRUE in path.read_text() and "${i}\n----\n${i}" in path.read_text()
    assert capsys.readouterr().out == "3 records, 0 faults\n"
    path.write_text(path.read_text().replace("2\tb", "2\tx"))
    assert main([str(path)]) == 1
