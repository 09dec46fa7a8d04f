"""Memory limits, watched from outside the process."""

from __future__ import annotations

import mmap
import os
import sys
import tempfile

import numpy as np
import pytest

from tests.support.resident import Limited, resident_bytes

SIZE = 40_000_000
ROWS = 400_000

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")


def test_what_counts() -> None:
    """Memory of the process counts as soon as it is written; pages of a file that is mapped do not."""
    before = resident_bytes(os.getpid())
    kept = np.ones(SIZE, np.uint8)
    assert resident_bytes(os.getpid()) - before > 0.9 * SIZE
    del kept
    with tempfile.TemporaryFile(dir="/var/tmp") as file:
        os.ftruncate(file.fileno(), SIZE)
        with mmap.mmap(file.fileno(), SIZE) as pages:
            pages.write(bytes(SIZE))
            assert resident_bytes(os.getpid()) - before < 0.5 * SIZE


def test_a_statement_is_watched() -> None:
    """Rows as Python has them take more than their columns, and are watched from outside."""
    with Limited({"threads": 2}, {}) as process:
        answer = process.run(f"SELECT range AS a, range * 2 + 1000 AS b FROM range({ROWS})")
        assert (len(answer.rows), answer.error, answer.types) == (ROWS, "", ["BIGINT", "BIGINT"])
        assert answer.above > ROWS * 2 * 28, "two numbers a row"
        assert process.run("SELECT nothing").error.startswith("BindError")
