"""Files that are damaged at random: right or refused, and the process lives. ``make mutations`` reads 2,000 of each kind.

A failure names kind, seed and number: ``python -m tests.mutations.run --kind ipc --first 481 --count 1`` reads it again.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import gquery
from gquery.errors import FileError
from tests.mutations.files import KINDS, file_of
from tests.mutations.pyarrow_faults import FAULTS
from tests.mutations.run import Child, run

COUNT = int(os.environ.get("GQUERY_MUTATIONS", "16"))
SEED = int(os.environ.get("GQUERY_MUTATIONS_SEED", "1"))


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    with closing(Child()) as made:
        yield made


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_right_or_refused(child: Child, kind: str, tmp_path: Path) -> None:
    wrong = [str(each) for each in run(child, kind, SEED, range(COUNT), tmp_path) if not each.is_right]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", KINDS)
def test_whole_files_are_right(child: Child, kind: str, tmp_path: Path, monkeypatch: Any) -> None:
    """Without damage each is read, and as others read it."""
    monkeypatch.setattr("tests.mutations.run.make", lambda kind, seed, number: file_of(random.Random(number), kind))
    assert {each.outcome for each in run(child, kind, 0, range(5), tmp_path)} == {"right"}


def test_names_that_are_no_text(tmp_path: Path) -> None:
    """Found at seed 1: names that are not UTF-8, of columns and of fields in them."""
    path = tmp_path / "x"
    for kind, good, bad in (
        ("json", b'{"ab": 1}', b'{"a\xff": 1}'),
        ("json", b'{"x": {"ab": 1}}', b'{"x": {"a\xff": 1}}'),
    ):
        path.write_bytes(good.replace(good, bad))
        with gquery.connect(device="python") as db, pytest.raises(FileError, match="utf-8"):
            getattr(db, f"read_{kind}")(path)
    with pa.ipc.new_file(str(path), pa.schema([("name_of_it", pa.int64())])) as file:
        file.write_table(pa.table({"name_of_it": [1]}))
    path.write_bytes(path.read_bytes().replace(b"name_of", b"name_\xff\xfe"))
    with gquery.connect(device="python") as db, pytest.raises(FileError, match="utf-8"):
        db.read_ipc(path)


def footers(chance: random.Random) -> bytes:
    """A Parquet file with a byte or two of its footer changed."""
    made = bytearray(file_of(chance, "parquet"))
    size = int.from_bytes(made[-8:-4], "little")
    for _ in range(chance.choice((1, 1, 2))):
        at = len(made) - 8 - chance.randrange(1, size)
        made[at] = chance.choice((made[at] ^ (1 << chance.randrange(8)), (made[at] + 1) % 256, 0, 2))
    return bytes(made)


def test_damaged_footers_do_not_end_the_process(child: Child, tmp_path: Path) -> None:
    """PyArrow's own objects abort over some of them: lengths of histograms (661 of seed 1), codecs (1477), and values that are
    shorter than their types. Of the last gquery cannot know; PyArrow alone must die of the same file then."""
    path = tmp_path / "x.parquet"
    deaths = 0
    for number in range(4 * COUNT):
        path.write_bytes(footers(random.Random(number)))
        said = child.ask(path, "parquet", with_reference=False)
        if said["step"] == "done":
            assert "error" not in said["outcome"], f"number {number}: {said}"
        else:
            assert "Unexpected end of stream" in said["stderr"], f"number {number}: {said}"
            assert child.ask(path, "parquet")["step"] == "reference", f"number {number}: {said}"
            deaths += 1
    assert deaths <= COUNT // 50


def test_numbers_of_rows_that_contradict_each_other(tmp_path: Path) -> None:
    """Found at footer 7320: a row group of less than no rows."""
    path = tmp_path / "x.parquet"
    path.write_bytes(footers(random.Random(7320)))
    with gquery.connect(device="python") as db, pytest.raises(FileError, match="rows"):
        db.read_parquet(path)


@pytest.mark.parametrize("name", FAULTS)
def test_pyarrow_dies_alone(name: str, tmp_path: Path) -> None:
    """The reports: without gquery. Where this fails, PyArrow has been mended, and what works around it can go."""
    command = [sys.executable, "-m", "tests.mutations.pyarrow_faults", name]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.stdout.startswith("reading raises OSError")
    assert ended.returncode == -signal.SIGABRT and "parquet::ParquetException" in ended.stderr


@pytest.mark.parametrize("name", [n for n in FAULTS if n != "truncated_minimum"])
def test_gquery_refuses_what_pyarrow_dies_of(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(FAULTS[name]())
    with gquery.connect(device="python") as db, pytest.raises(FileError, match="Cannot read the Parquet file"):
        db.sql(f"SELECT * FROM '{path}' WHERE a > 1").fetchall()
