"""Tuples with names are those of `typing` in all that can be seen of them."""

from __future__ import annotations

import copy
import pickle
import re
import typing
from typing import Any

import pytest

from gquery.runtime.tuples import NamedTuple
from tests.support.paths import ROOT

BODY = '''
from __future__ import annotations
class Point(NamedTuple):
    """A place."""
    x: int
    y: tuple[int, ...]
    name: str = "p"
    weight: float = 0.5
    LIMIT = 7
    @property
    def total(self) -> int:
        return self.x + sum(self.y)
    @classmethod
    def origin(cls) -> Point:
        return cls(0, ())
    @staticmethod
    def one() -> int:
        return 1
    def __str__(self) -> str:
        return f"<{self.x}>"
class Empty(NamedTuple):
    pass
'''


def made(base: Any) -> dict[str, Any]:
    scope: dict[str, Any] = {"NamedTuple": base, "__name__": __name__}
    exec(BODY, scope)
    return scope


ACTS = {
    "made": lambda c: (c(1, ()), c(1, (2,), "n"), c(x=1, y=(), weight=2.0), c._make([1, 2, 3, 4]), c.origin()),
    "too few": lambda c: c(1),
    "too many": lambda c: c(1, 2, 3, 4, 5),
    "unknown": lambda c: c(1, (), z=3),
    "compared": lambda c: (c(1, ()) == c(1, ()), c(1, ()) == (1, (), "p", 0.5), c(1, ()) < c(2, ()), hash(c(1, ()))),
    "printed": lambda c: (repr(c(1, ())), str(c(1, ()))),
    "parts": lambda c: (c(1, (2,)).total, c.one(), c.LIMIT, c(1, ())[0], len(c(1, ())), [*c(1, ())]),
    "taken apart": lambda c: c(1, ())._asdict(),
    "replaced": lambda c: (c(1, ())._replace(x=5), copy.copy(c(1, ()))),
    "set": lambda c: setattr(c(1, ()), "x", 2),
    "a new name": lambda c: setattr(c(1, ()), "new", 2),
    "described": lambda c: (c.__name__, c.__qualname__, c.__module__, c.__doc__, c._fields, c._field_defaults, c.__bases__),
    "matched": lambda c: c.__match_args__,
    "annotated": lambda c: [*c.__annotations__],
}


def outcome(act: Any, cls: Any) -> Any:
    try:
        return act(cls)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("act", ACTS)
def test_they_are_typing_s(act: str) -> None:
    assert outcome(ACTS[act], made(NamedTuple)["Point"]) == outcome(ACTS[act], made(typing.NamedTuple)["Point"])


def test_without_fields() -> None:
    ours, theirs = made(NamedTuple)["Empty"], made(typing.NamedTuple)["Empty"]
    assert ours() == theirs() == () and ours._fields == theirs._fields == ()


class Sent(NamedTuple):
    a: int
    b: str = "b"


def test_they_go_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(Sent(1))) == Sent(1, "b")
    match Sent(3):
        case Sent(a, b):
            assert (a, b) == (3, "b")


def test_another_base_is_refused() -> None:
    base: Any = NamedTuple
    with pytest.raises(TypeError, match="another base"):
        type(base)("Two", (base, int), {"__annotations__": {}})


def test_the_engine_s_tuples_are_these() -> None:
    """Those of tuning, which is loaded below, are left to `typing`."""
    found = [p for p in (ROOT / "gquery").rglob("*.py") if re.search(r"^from typing import .*NamedTuple", p.read_text(), re.M)]
    assert [p.name for p in found] == ["record.py"]
