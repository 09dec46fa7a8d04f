"""Files as values: ``glob``, which gives their names, ``read_text`` and ``read_blob``, whose rows are whole files."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence

import pyarrow as pa

from gquery.columns.table import TableSource
from gquery.errors import FileError, NotSupportedError
from gquery.io.files import Item, items_of, reading
from gquery.io.memory import kept_source
from gquery.runtime.value_arrays import value_array


def whole_files(paths: Sequence[str], kind: str, narrow: bool) -> TableSource:
    """A table of the files that paths and patterns mean, which may be none: for "glob" their names, else with their contents,
    sizes and times. They are read now. FileError for a text that is not UTF-8."""
    names = [path for item in items_of(paths) for path in _meant(item)]
    columns: dict[str, pa.Array] = {"file" if kind == "glob" else "filename": value_array(names, pa.string())}
    if kind != "glob":
        contents = [_content(name, kind) for name in names]
        columns["content"] = value_array(contents, pa.large_binary() if kind == "blob" else pa.large_string())
        columns["size"] = value_array([len(c) for c in contents], pa.int64())
        micros = [os.stat(name).st_mtime_ns // 1000 for name in names]
        columns["last_modified"] = value_array(micros, pa.int64()).view(pa.timestamp("us", "UTC"))
    return kept_source(kind if kind == "glob" else f"read_{kind}", pa.table(columns), narrow)


def _meant(item: Item) -> list[str]:
    """The files of a path or pattern, by name."""
    if item.path is None:
        raise NotSupportedError(f'not supported: "{item.name}", which is not on this machine')
    if glob.has_magic(item.path):
        return sorted(p for p in glob.glob(item.path, recursive=True) if not os.path.isdir(p))
    return [item.path] if os.path.isfile(item.path) else []


def _content(name: str, kind: str) -> bytes:
    with reading(name), open(name, "rb") as file:
        content = file.read()
    if kind == "text":
        try:
            content.decode()
        except UnicodeDecodeError:
            raise FileError(f'The file "{name}" is no text of UTF-8; read_blob reads it') from None
    return content
