"""Parts of the paths of files: names and folders."""

from __future__ import annotations

import pyarrow as pa

from gquery.expression.expr import Expr, Literal
from gquery.expression.nested_types import list_of
from gquery.expression.types import BOOLEAN, VARCHAR
from gquery.functions.casts import cast
from gquery.functions.registry import by_signature, call, host_scalar, is_null_literal, resolver
from gquery.functions.vectors import Vector, each_row

_SS, _SBS = (((VARCHAR, VARCHAR), VARCHAR),), (((VARCHAR, BOOLEAN, VARCHAR), VARCHAR),)
_BOTH = Literal("both_slash", VARCHAR)
_SEPARATORS = {"system": "/", "forward_slash": "/", "backslash": "\\"}


def _last(path: str, separator: str) -> int:
    """The place of the last separator; -1 for none."""
    return max(path.rfind(c) for c in _SEPARATORS.get(separator, "/\\"))


@host_scalar("_filename", *_SBS)
def filename(path: Vector, is_cut: Vector, separator: Vector) -> Vector:
    """`parse_filename`."""

    def name(path: str, is_cut: bool, separator: str) -> str:
        found = path[_last(path, separator) + 1 :]
        return found[: found.rfind(".")] if is_cut and "." in found else found

    return each_row(name, pa.string(), path, is_cut, separator)


@host_scalar("_dirname", *_SS)
def dirname(path: Vector, separator: Vector) -> Vector:
    """`parse_dirname`."""

    def first(path: str, separator: str) -> str:
        places = [at for c in _SEPARATORS.get(separator, "/\\") if (at := path.find(c)) >= 0]
        return path[: min(places) or 1] if places else ""

    return each_row(first, pa.string(), path, separator)


@host_scalar("_dirpath", *_SS)
def dirpath(path: Vector, separator: Vector) -> Vector:
    """`parse_dirpath`."""

    def folder(path: str, separator: str) -> str:
        at = _last(path, separator)
        return path if at == 0 and len(path) == 1 else path[: max(at, 0)]

    return each_row(folder, pa.string(), path, separator)


@host_scalar("_path_parts", ((VARCHAR, VARCHAR), list_of(VARCHAR)))
def path_parts(path: Vector, separator: Vector) -> Vector:
    """`parse_path`."""

    def parts(path: str, separator: str) -> list[str]:
        marks = _SEPARATORS.get(separator, "/\\")
        first = [path[0]] if path[:1] and path[0] in marks else []
        for mark in marks[1:]:
            path = path.replace(mark, marks[0])
        return [*first, *(p for p in path.split(marks[0]) if p)]

    return each_row(parts, pa.list_(pa.string()), path, separator)


def _separator(e: Expr) -> Expr:
    """A separator; NULL is the one that is not named."""
    return _BOTH if isinstance(e, Literal) and e.is_null else e


@resolver(
    "parse_filename", "$(VARCHAR, cut BOOLEAN, separator) -> VARCHAR", example=("parse_filename('a/b.csv', true)", "b")
)
def _parse_filename(path: Expr, *more: Expr) -> Expr | None:
    """The name of a file; without what follows its last point where that is asked for. The separator is `both_slash`,
    `forward_slash`, `backslash` or `system`."""
    if len(more) == 1 and (more[0].dtype == BOOLEAN or is_null_literal(more[0])):
        more = (more[0], _BOTH)
    elif len(more) < 2:
        more = (Literal(False, BOOLEAN), *(more or (_BOTH,)))
    if more[0].nullable:
        more = (call("coalesce", cast(more[0], BOOLEAN), Literal(False, BOOLEAN)), *more[1:])
    return by_signature("_filename", (path, more[0], _separator(more[1])), _SBS)


@resolver("parse_dirname", "$(VARCHAR, separator) -> VARCHAR", example=("parse_dirname('a/b/c.csv')", "a"))
def _parse_dirname(path: Expr, separator: Expr = _BOTH) -> Expr | None:
    """The first folder of a path."""
    return by_signature("_dirname", (path, _separator(separator)), _SS)


@resolver("parse_dirpath", "$(VARCHAR, separator) -> VARCHAR", example=("parse_dirpath('a/b/c.csv')", "a/b"))
def _parse_dirpath(path: Expr, separator: Expr = _BOTH) -> Expr | None:
    """The folder of a path."""
    return by_signature("_dirpath", (path, _separator(separator)), _SS)


@resolver("parse_path", "$(VARCHAR, separator) -> VARCHAR[]", example=("parse_path('/a/b.csv')", "['/', 'a', 'b.csv']"))
def _parse_path(path: Expr, separator: Expr = _BOTH) -> Expr | None:
    """The folders of a path, and the name of the file."""
    return by_signature("_path_parts", (path, _separator(separator)), (((VARCHAR, VARCHAR), list_of(VARCHAR)),))
