"""Arguments of another type or number: a gquery.InterfaceError that says what is expected, or Python's TypeError."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gquery
from gquery.errors import Error, InterfaceError, InternalError

ODD: tuple[Any, ...] = (
    None, "x", "a", "", -1, 0, 1.5, math.nan, True, object(), [], ["a"], [1], {}, {"x": 1}, {1: "a"}, b"x", int, 10**30,
)  # fmt: skip
SKIPPED = {
    "close",
    "interrupt",
    "relation",
    "run_plan",
    "current_plan",
    "run_recorded",
    "limited_plan",
    "explain_plan",
}  # no users' methods
KINDS = ("relation", "connection", "cursor", "expression", "text", "dates", "groups", "package")
SAID = {
    "fetchmany('x')": "size of fetchmany is a whole number of 64 bits, not 'x'",
    "head('a')": "n of head is a whole number of 64 bits, not 'a'",
    "limit(1, 1.5)": "offset of limit is a whole number of 64 bits, not 1.5",
    "rename('x')": "names of rename is a dict of str or None, not 'x'",
    "rename(a=1)": "a of rename is a str, not 1",
    "drop(1)": "an argument of drop is a str or a list of them, not 1",
    "column(None)": "name of column is a str, not None",
    "to_parquet(3)": "path of to_parquet is a path, not 3",
}


def _object(kind: str) -> Any:
    connection = gquery.connect(device="python").register("t", {"a": [1, 2, 3]})
    relation = connection.sql("SELECT * FROM t")
    match kind:
        case "relation":
            return relation
        case "connection":
            return connection
        case "cursor":
            return connection.cursor().execute("SELECT * FROM t")
        case "expression":
            return gquery.col("a")
        case "text":
            return gquery.col("a").str
        case "dates":
            return gquery.col("a").dt
        case "groups":
            return relation.group_by("a")
        case _:
            return gquery


def _methods(kind: str) -> Iterator[tuple[str, inspect.Signature]]:
    it = _object(kind)
    names = ("connect", "col", "lit", "when") if kind == "package" else dir(type(it))
    for name in names:
        method = getattr(type(it) if kind != "package" else it, name)
        if not name.startswith("_") and name not in SKIPPED and inspect.isfunction(method):
            yield name, inspect.signature(getattr(it, name))


def _calls(signature: inspect.Signature) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    yield from (((odd,), {}) for odd in ODD)
    yield from (((), {}), (tuple(range(9)), {}), ((), {"nonsense": 1}))
    named = [p for p in signature.parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    for p in named:
        others = {q.name: "a" for q in named if q.default is q.empty and q is not p}
        yield from (((), {**others, p.name: odd}) for odd in ODD)


@pytest.mark.parametrize("kind", KINDS)
def test_odd_arguments(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = []
    for name, signature in _methods(kind):
        it = _object(kind)
        for given, named in _calls(signature):
            try:
                getattr(it, name)(*given, **named)
            except InternalError as error:
                found.append(f"{name} {given} {named}: {error}")
            except Error:
                pass
            except TypeError as error:
                if "argument" not in str(error):
                    found.append(f"{name} {given} {named}: {error}")
    assert not found


@pytest.mark.parametrize("call", SAID)
def test_what_is_said(call: str) -> None:
    with pytest.raises(InterfaceError) as caught:
        eval(f"it.{call}", {"it": _object("relation")})
    assert str(caught.value) == SAID[call]


@pytest.mark.parametrize("call", [lambda r: r.fetchone("x"), lambda r: r.limit(), lambda r: r.df(nonsense=1)])
def test_a_wrong_number_is_a_type_error(call: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="argument"):
        call(_object("relation"))


def test_numbers_of_other_libraries_are_numbers() -> None:
    assert _object("relation").limit(np.int64(2)).fetchmany(np.int8(1)) == [(1,)]
