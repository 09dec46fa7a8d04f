"""Which files are meant by paths, glob patterns, directories, lists of them and URIs of object stores, and what their paths
say: sizes and times, to see changes, and the keys of hive partitions (``year=2024/part.parquet``).

A local file has no file system here: Arrow reads it by its path. It is never mapped into memory: a program that shortens
a mapped file ends the process that looks at it, and one that writes to it changes what has been proved. For a URI
(``s3://``, ``gs://``, ``hdfs://``)
or a file system that is given, everything goes through `pyarrow.fs`.
"""

from __future__ import annotations

import datetime
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from gquery.errors import BindError, FileError, InterfaceError
from gquery.expression.frozen import frozen_open
from gquery.runtime.records import cached_property, dataclass, replace
from gquery.runtime.tuples import NamedTuple

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
SUFFIXES: dict[str, tuple[str, ...]] = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst", ".csv.bz2"),
    "json": (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz"),
    "ipc": (".arrow", ".arrows", ".feather", ".ipc"),
}
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_URI = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")


@frozen_open
class File:
    """One file as it was found; it equals the same one as long as nobody has changed it. ``path`` is what its file system knows
    it by."""

    name: str
    path: str
    size: int
    time: int
    number: int = 0  # the inode of a local file, which tells it from another in its place
    filesystem: Any = field(default=None, compare=False, repr=False)

    @cached_property
    def keys(self) -> tuple[tuple[str, str | None], ...]:
        """What its folders say: the names and values of ``name=value``."""
        folders = self.path.replace("\\", "/").split("/")[:-1]
        pairs = [f.partition("=") for f in folders if "=" in f]
        return tuple((unquote(k), None if v == _NO_VALUE else unquote(v)) for k, _, v in pairs if k)

    def stream(self, compression: str = "auto") -> Any:
        """The bytes in order, uncompressed: their compression is that which the name tells, where none is said."""
        how = {"auto": "detect", "none": None}.get(compression, compression)
        if self.filesystem is None:
            return pa.input_stream(self.path, compression=how)
        return self.filesystem.open_input_stream(self.path, compression=how)

    def random_access(self) -> Any:
        """The bytes in any order."""
        if self.filesystem is None:
            return pa.OSFile(self.path)
        return self.filesystem.open_input_file(self.path)

    def check_unchanged(self) -> None:
        """FileError where a local file is not the one that was found, to be called once it is open or was read."""
        if self.filesystem is None and _local(self.path, os.stat(self.path)) != self:
            raise FileError(f'The file "{self.name}" has changed while it was read: run the query again')


def format_of(paths: Paths) -> str | None:
    """The format that the ends of the names tell; None where they tell nothing."""
    first = paths if isinstance(paths, (str, os.PathLike)) else next(iter(paths), "")
    name = os.fspath(first).lower().split("?")[0]
    return next((f for f, ends in SUFFIXES.items() if name.endswith(ends)), None)


class Item(NamedTuple):
    """One path, pattern, directory or URI that was asked for. ``path`` is where it lies on this machine, None elsewhere."""

    name: str
    path: str | None


def items_of(asked: Paths, filesystem: Any = None) -> list[Item]:
    """What was asked for, in order."""
    names = [os.fspath(a) for a in ([asked] if isinstance(asked, (str, os.PathLike)) else asked)]
    is_here = filesystem is None
    return [Item(name, os.path.expanduser(name) if is_here and not _URI.match(name) else None) for name in names]


def resolve(items: Sequence[Item], kind: str = "parquet", filesystem: Any = None) -> list[File]:
    """The files that are meant, in the order of their names within a pattern or directory. FileError where there is none."""
    files: list[File] = []
    for name, path in items:
        with reading(name):
            files += _remote(name, kind, filesystem) if path is None else _local_files(path, kind)
    if not files:
        raise FileError("No file was named to read")
    return files


class reading:  # noqa: N801  (used as a word of a with statement)
    """Within it, what the file system and Arrow raise about a file becomes FileError."""

    __slots__ = ("_name", "_what")

    def __init__(self, name: str, what: str = "file") -> None:
        self._name, self._what = name, what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FileNotFoundError):
            raise FileError(f'There is no file "{self._name}"') from None
        if isinstance(error, (OSError, pa.ArrowException, ValueError)) and not isinstance(error, MemoryError):
            cause = str(error).split("\n")[0]
            raise FileError(f'Cannot read the {self._what} "{self._name}": {cause}') from error


def readable(data: Any) -> Any:
    """A table or schema whose names are UTF-8, those of fields of fields too; ValueError where one is not."""
    fields = list(data if isinstance(data, pa.Schema) else data.schema)
    while fields:
        field_ = fields.pop()
        _ = field_.name  # decodes it
        fields += [field_.type.field(n) for n in range(field_.type.num_fields)]
    return data


# ---- local ---------------------------------------------------------------------------------------------------------


def _local(path: str, status: os.stat_result) -> File:
    return File(path, path, status.st_size, status.st_mtime_ns, status.st_ino)


def _local_files(path: str, kind: str) -> list[File]:
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # a pattern, or nothing
        return [_local(p, os.stat(p)) for p in _matching(path)]
    if stat.S_ISDIR(status.st_mode):
        return [_local(p, os.stat(p)) for p in _within(path, kind)]
    return [_local(path, status)]


def _within(directory: str, kind: str) -> list[str]:
    import glob

    everything = glob.iglob(os.path.join(glob.escape(directory), "**", "*"), recursive=True)
    found = sorted(p for p in everything if p.lower().endswith(SUFFIXES[kind]))
    if not found:
        raise FileError(f'There is no {SUFFIXES[kind][0]} file in the directory "{directory}"')
    return found


def _matching(path: str) -> list[str]:
    import glob

    if glob.has_magic(path):
        found = sorted(p for p in glob.glob(path, recursive=True) if not os.path.isdir(p))
        if not found:
            raise FileError(f'No file matches "{path}"')
        return found
    raise FileError(f'There is no file "{path}"')


# ---- elsewhere -----------------------------------------------------------------------------------------------------


def _remote(name: str, kind: str, filesystem: Any) -> list[File]:
    import glob

    from pyarrow import fs

    if filesystem is None:
        filesystem, path = fs.FileSystem.from_uri(name)
        if isinstance(filesystem, fs.LocalFileSystem):
            return _local_files(path, kind)
    else:
        filesystem, path = _given(filesystem), name
    if glob.has_magic(path):
        fixed = path[: re.search(r"[*?\[]", path).start()].rpartition("/")[0]  # type: ignore[union-attr]
        pattern = _pattern(path)
        infos = [i for i in filesystem.get_file_info(fs.FileSelector(fixed, recursive=True)) if pattern.match(i.path)]
        missing = f'No file matches "{name}"'
    else:
        info = filesystem.get_file_info(path)
        missing = f'There is no file "{name}"'
        infos = [info]
        if info.type is fs.FileType.Directory:
            infos = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
            infos = [i for i in infos if i.path.lower().endswith(SUFFIXES[kind])]
            missing = f'There is no {SUFFIXES[kind][0]} file in the directory "{name}"'
    found = sorted((i for i in infos if i.type is fs.FileType.File), key=lambda i: i.path)
    if not found:
        raise FileError(missing)
    scheme = match[0] if (match := _URI.match(name)) else ""
    return [File(scheme + i.path, i.path, i.size or 0, i.mtime_ns or 0, 0, filesystem) for i in found]


def _given(filesystem: Any) -> Any:
    from pyarrow import fs

    if isinstance(filesystem, fs.FileSystem):
        return filesystem
    if hasattr(filesystem, "open") and hasattr(filesystem, "info"):
        return fs.PyFileSystem(fs.FSSpecHandler(filesystem))
    raise InterfaceError(f"A {type(filesystem).__name__} is no file system of pyarrow.fs or fsspec")


def _pattern(path: str) -> re.Pattern[str]:
    """A glob pattern as a regular expression; ``**`` stands for any number of folders."""
    parts = []
    for part in re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]]+\])", path):
        known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part)
        if known is None:
            known = part.replace("[!", "[^") if part.startswith("[") else re.escape(part)
        parts.append(known)
    return re.compile("".join(parts) + r"\Z")


# ---- what paths say ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PathColumn:
    """A column whose value is one in each file: a partition's key, or the file's name."""

    name: str
    type: Any
    values: tuple[Any, ...]

    def array(self, rows: Sequence[int]) -> pa.ChunkedArray:
        """The column for files of so many rows each."""
        chunks = []
        for value, n in zip(self.values, rows, strict=True):
            if value is None:
                chunks.append(pa.nulls(n, self.type))
            else:
                chunks.append(pa.repeat(pa.scalar(value, self.type), n))
        return pa.chunked_array(chunks, self.type)


def path_columns(
    files: Sequence[File], hive: bool | None, filename: str | None, taken: Sequence[str]
) -> list[PathColumn]:
    """The columns that the paths hold: keys in the order of their names, as in DuckDB. ``hive`` None: they count where every file
    has the same. A key that stands in the files, too, has its name there (``taken``) and takes that column's place. ``filename``
    names a column for the file's name."""
    made = []
    keys = [dict(f.keys) for f in files]
    if hive is not False and any(keys):
        if all(k.keys() == keys[0].keys() for k in keys):
            made = [_typed(name, [k[name] for k in keys]) for name in sorted(keys[0])]
        elif hive:
            other = next(f for f, k in zip(files, keys, strict=True) if k.keys() != keys[0].keys())
            raise FileError(f'"{files[0].name}" and "{other.name}" have other partition keys: {_keys(files[0])}; {_keys(other)}')
    own = {n.lower(): n for n in taken}
    made = [replace(c, name=own.get(c.name.lower(), c.name)) for c in made]
    if filename is not None:
        if filename.lower() in own.keys() | {c.name.lower() for c in made}:
            raise BindError(f"There is a column \"{filename}\" in the files: filename = 'other' names the new one")
        made.append(PathColumn(filename, pa.string(), tuple(f.name for f in files)))
    return made


def _keys(file: File) -> str:
    return ", ".join(k for k, _ in file.keys) or "none"


def _typed(name: str, texts: Sequence[str | None]) -> PathColumn:
    """A key of whole numbers is BIGINT, one of dates DATE, any other VARCHAR."""
    for type_, parse in ((pa.int64(), _integer), (pa.date32(), datetime.date.fromisoformat)):
        try:
            return PathColumn(name, type_, tuple(None if t is None else parse(t) for t in texts))
        except ValueError:
            continue
    return PathColumn(name, pa.string(), tuple(texts))


def _integer(text: str) -> int:
    value = int(text)
    if str(value) != text or not -(2**63) <= value < 2**63:
        raise ValueError(text)
    return value
