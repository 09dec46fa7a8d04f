"""Damaged Parquet files that end a process in PyArrow alone: ``python -m tests.mutations.pyarrow_faults truncated_minimum``.

Arrow's objects of a column's metadata and statistics are made in calls that let no C++ exception out
(``terminate called after throwing an instance of 'parquet::ParquetException'``), where reading the same file raises OSError.
Nothing of gquery is imported here: these are the reports. gquery reads the first two as errors (`gquery.io.footers`); the third
is told by nothing but the object that ends the process.
"""

from __future__ import annotations

import io
import struct
import sys
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq


def _footer() -> tuple[bytes, bytes]:
    """What stands before the footer of a file of one column of integers, and the footer."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2, None]}), sink, compression="none", use_dictionary=False)
    data = sink.getvalue()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    return data[:start], data[start:-8]


def _changed(old: bytes, new: bytes) -> bytes:
    """The file with a part of its footer changed, which stands there once."""
    before, footer = _footer()
    assert footer.count(old) == 1, "another layout of the footer"
    footer = footer.replace(old, new)
    return before + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def required() -> bytes:
    """The column may not be NULL by the schema, and has a histogram of levels."""
    return _changed(b"\x15\x04\x25\x02\x18\x01a", b"\x15\x04\x25\x00\x18\x01a")


def codec() -> bytes:
    """The pages are compressed by a method that there is not."""
    return _changed(b"\x19\x18\x01a\x15\x00", b"\x19\x18\x01a\x15\x44")


def truncated_minimum() -> bytes:
    """The least value of a column of 8 bytes has one."""
    least, most = struct.pack("<q", 1), struct.pack("<q", 2)
    return _changed(b"\x28\x08" + most + b"\x18\x08" + least, b"\x28\x08" + most + b"\x18\x01" + least[:1])


FAULTS: dict[str, Callable[[], bytes]] = {f.__name__: f for f in (required, codec, truncated_minimum)}


def main() -> None:
    data = FAULTS[sys.argv[1]]()
    try:
        pq.read_table(io.BytesIO(data), use_threads=False)
    except OSError as error:
        print("reading raises", repr(error), flush=True)
    pq.read_metadata(io.BytesIO(data)).to_dict()
    print("the process lives", flush=True)


if __name__ == "__main__":
    main()
