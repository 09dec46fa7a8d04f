"""COPY ... TO with PARTITION_BY: a folder of files, each with the rows of some values: ``folder/a=1/b=x/data_0.parquet``."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from gquery.columns.arrow import code_array
from gquery.columns.arrow_buffers import values_of
from gquery.errors import BindError, FileError, NotSupportedError
from gquery.expression.expr import new_column
from gquery.expression.types import VARCHAR
from gquery.functions import cast
from gquery.planner.logical.nodes import Project, Query
from gquery.runtime.records import replace
from gquery.sql.grammar.tokens import marked

_NULL = "__HIVE_DEFAULT_PARTITION__"


def places_of(query: Query, options: Mapping[str, object]) -> list[int]:
    """Which of a query's columns are those of PARTITION_BY; BindError for names that are none."""
    given = options["partition_by"]
    names = query.names if given == "*" else (given,) if isinstance(given, str) else given
    assert isinstance(names, tuple)
    low = [n.lower() for n in query.names]
    for n, name in enumerate(names):
        is_there = name.lower() in low
        if not is_there or name.lower() in [str(m).lower() for m in names[:n]]:
            raise BindError(f"COPY: PARTITION_BY names {name!r}, which is {'there twice' if is_there else 'no column'}")
    return [low.index(n.lower()) for n in names]


def without(query: Query, places: Sequence[int]) -> Query:
    """A query without some of its columns; NotSupportedError where none is left."""
    kept = [n for n in range(len(query.names)) if n not in places]
    if not kept:
        raise NotSupportedError("not supported: PARTITION_BY all columns without WRITE_PARTITION_COLUMNS")
    return replace(query, outputs=tuple(query.outputs[n] for n in kept), names=tuple(query.names[n] for n in kept))


def with_keys(content: Query, query: Query, places: Sequence[int]) -> Query:
    """What is written of a query, with the texts of the columns that say where behind it. ``content`` is a projection of
    ``query``."""
    keys = [(new_column(marked("part"), VARCHAR, True), cast(query.outputs[n], VARCHAR)) for n in places]
    inner = content.plan
    made: list[Any] = [(c, c) for c in content.outputs]
    if isinstance(inner, Project) and inner is not query.plan:  # of texts, over the query
        made, inner = list(inner.exprs), inner.source
    plan = Project(inner, (*made, *keys))
    columns = (*content.outputs, *(c for c, _ in keys))
    return replace(content, plan=plan, outputs=columns, names=(*content.names, *(f"{marked('part')}{n}" for n in places)))


def parts(table: pa.Table, names: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """The folders of a table's rows, and their rows. Its last columns say where they are, of these names."""
    keys = table.columns[len(table.columns) - len(names) :]
    content = table.select(range(len(table.columns) - len(names)))
    codes = np.zeros(table.num_rows, np.int64)
    values: list[list[Any]] = []
    for key in keys:
        encoded = key.combine_chunks().dictionary_encode(null_encoding="encode")
        encoded = encoded if isinstance(encoded, pa.DictionaryArray) else encoded.combine_chunks()
        values.append(encoded.dictionary.to_pylist())
        numbers = values_of(encoded.indices, np.int32)
        _, codes = np.unique(codes * max(len(values[-1]), 1) + numbers, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    ends = np.flatnonzero(np.diff(codes[order], append=-1)) + 1
    start = 0
    for end in ends.tolist() if len(order) else ():
        rows = order[start:end]
        shown = [key[int(rows[0])].as_py() for key in keys]
        folder = "/".join(f"{_quoted(n)}={_NULL if v is None else _quoted(v)}" for n, v in zip(names, shown, strict=True))
        yield folder, content.take(code_array(rows, None))
        start = end


def _quoted(text: str) -> str:
    return quote(text, safe="")


def prepare(path: str, options: Mapping[str, object], flag: Any) -> None:
    """Makes the folder. FileError where there is something in it, unless an option says what becomes of that."""
    folder = os.path.expanduser(path)
    if "://" in folder:
        raise NotSupportedError("not supported: PARTITION_BY into folders that are not on this machine")
    asked = [n for n in ("overwrite", "overwrite_or_ignore", "append") if flag(options.get(n, False), n)]
    if len(asked) > 1:
        raise BindError(f"COPY: {asked[0].upper()} and {asked[1].upper()} exclude each other")
    try:
        if os.path.isdir(folder) and os.listdir(folder) and not asked:
            says = "OVERWRITE, OVERWRITE_OR_IGNORE or APPEND says what becomes of it"
            raise FileError(f'The directory "{path}" is not empty; {says}')
        if "overwrite" in asked and os.path.isdir(folder):
            shutil.rmtree(folder)
        os.makedirs(folder, exist_ok=True)
    except FileError:
        raise
    except OSError as error:
        raise FileError(f'Cannot write the directory "{path}": {error}') from error


def name_of(options: Mapping[str, object], end: str, is_appended: bool) -> str:
    """The name of a file in a folder."""
    pattern = str(options.get("filename_pattern", "{uuid}" if is_appended else "data_{i}"))
    if is_appended and "{uuid}" not in pattern:
        raise BindError("COPY: the FILENAME_PATTERN of APPEND has {uuid} in it")
    return pattern.replace("{i}", "0").replace("{uuid}", str(uuid.uuid4())) + end
