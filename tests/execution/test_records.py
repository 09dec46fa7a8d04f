"""Records are dataclasses in all that can be seen of them; their methods are made when they are first called."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar

import pytest

from gquery.runtime.records import dataclass, replace

OPTIONS = [
    {},
    {"frozen": True},
    {"eq": False},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "eq": False},
    {"unsafe_hash": True},
]


class Fields:
    a: int
    b: list[int] = field(default_factory=list)
    c: str = "c"
    d: float = field(default=0.5, compare=False, repr=False)
    e: int = field(default=7, init=False)
    f: int = field(default=8, kw_only=True)
    kind: ClassVar[str] = "kind"


def both(options: dict[str, bool]) -> list[Any]:
    """A class made by `dataclasses`, and one of ours."""
    body = {k: v for k, v in vars(Fields).items() if k not in ("__dict__", "__weakref__")}
    make: list[Any] = [dataclasses.dataclass, dataclass]
    return [m(**options)(type("Fields", (), {k: copy.copy(v) for k, v in body.items()})) for m in make]


def outcome(act: Any, cls: Any) -> Any:
    """What comes of something that is done with a class: what it gives or raises, in words."""
    try:
        return act(cls)
    except Exception as error:
        return type(error), str(error)


ACTS = {
    "made": lambda c: vars_of(c(1)),
    "all given": lambda c: vars_of(c(1, [2], "x", 2.5, f=3)),
    "by name": lambda c: vars_of(c(c="x", a=1)),
    "too few": lambda c: c(),
    "too many, by name": lambda c: c(1, zz=5),
    "twice": lambda c: c(1, a=5),
    "twice, later": lambda c: c(1, [], b=5),
    "not to be given": lambda c: c(1, e=5),
    "too many": lambda c: c(1, [], "", 0.0, 8),
    "a list of its own": lambda c: c(1).b is c(1).b,
    "printed": lambda c: repr(c(1, f=2)) if "object at" not in repr(c(1)) else None,
    "equal": lambda c: (c(1) == c(1), c(1) == c(2), c(1, d=2.0) == c(1), c(1) == 1, c(1) != c(2)),
    "hashed": lambda c: len({hash(made) for made in [c(1, (), f=5), c(1, (), f=5)]}) if c.__hash__ else None,
    "no hash": lambda c: hash(c(1)) and 0,
    "set": lambda c: setattr(c(1), "a", 2),
    "deleted": lambda c: delattr(c(1), "a"),
    "a new field": lambda c: setattr(c(1), "new", 2),
    "replaced": lambda c: vars_of(dataclasses.replace(c(1), a=5, f=9)),
    "as a dictionary": lambda c: dataclasses.asdict(c(1)),
    "copied": lambda c: vars_of(copy.copy(c(1, [3]))),
    "matched": lambda c: c.__match_args__,
    "fields": lambda c: [(f.name, f.compare, f.kw_only) for f in dataclasses.fields(c)],
}


def vars_of(made: Any) -> list[Any]:
    return [getattr(made, f.name) for f in dataclasses.fields(made)]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: " ".join(o) or "plain")
@pytest.mark.parametrize("act", ACTS)
def test_a_record_is_a_dataclass(act: str, options: dict[str, bool]) -> None:
    theirs, ours = both(options)
    want, got = outcome(ACTS[act], theirs), outcome(ACTS[act], ours)
    if act == "a new field" and options.get("frozen"):
        assert got[0] is FrozenInstanceError  # theirs may fall over itself
        return
    assert got == want
    assert outcome(ACTS[act], ours) == want, "and once more, with what was made"
    _ = [ours(n) for n in range(100)]
    assert outcome(ACTS[act], ours) == want, "and with what was compiled"


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: " ".join(o) or "plain")
def test_a_changed_copy(options: dict[str, bool]) -> None:
    for kind in both(options):
        made = kind(1, [3], "x", 2.0, f=4)
        for changes in ({}, {"a": 5}, {"f": 9, "b": []}, {"c": "y", "d": 1.0}):
            assert vars_of(replace(made, **changes)) == vars_of(dataclasses.replace(made, **changes))
        with pytest.raises(TypeError, match="'missing'"):
            replace(made, missing=1)
    assert type(replace(Plain(5), b=7)) is Plain and replace(Plain(5), b=7).b == 7


@dataclass(frozen=True)
class Base:
    a: int = 1


@dataclass(frozen=True)
class Derived(Base):
    b: int = 2


class Plain(Derived):
    """Which adds no field, and has the methods of the other."""


@dataclass(frozen=True, slots=True)
class Slots:
    a: int
    b: tuple[int, ...] = ()


def test_records_of_records() -> None:
    assert repr(Plain(5)) == "Plain(a=5, b=2)"
    assert (Derived(), Base(3)) == (Derived(1, 2), Base(3))
    assert Derived() != Base() and Plain() != Derived()
    assert {Derived(4): 1}[Derived(4)] == 1
    assert vars(Plain).keys() & {"__init__", "__eq__", "__repr__", "__hash__"} == set()


def test_slots_go_to_other_processes() -> None:
    for made in (Slots(1, (2,)), Derived(7)):
        assert pickle.loads(pickle.dumps(made)) == made
    assert not hasattr(Slots(1), "__dict__")


@pytest.mark.parametrize("slots", [False, True])
def test_fields_of_a_base_and_its_class_variables(slots: bool) -> None:
    for make in (dataclasses.dataclass, dataclass):
        outer: Any = make
        base = outer(slots=slots)(type("B", (), {"__annotations__": {"a": "int", "k": "ClassVar[int]"}, "k": 3}))
        body: dict[str, Any] = {"a": 5, "b": field(default_factory=list), "d": field(default=2, init=False)}
        derived = outer()(type("D", (base,), {"__annotations__": {"b": "list[int]", "a": "int", "d": "int"}, **body}))
        empty: Any = outer()(type("E", (derived,), {}))
        for cls in (derived, empty):
            assert [f.name for f in dataclasses.fields(cls)] == ["a", "b", "d"]
            assert cls.__match_args__ == ("a", "b") and cls.k == 3 and not hasattr(cls, "b")
            assert vars_of(cls()) == [5, [], 2] and vars_of(cls(1, [2])) == [1, [2], 2]
    with pytest.raises(ValueError, match="mutable default"):
        dataclass(type("M", (), {"__annotations__": {"a": "list[int]"}, "a": []}))


def test_fields_are_made_when_somebody_asks() -> None:
    @dataclass(frozen=True)
    class Late(Base):
        b: list[int] = field(default_factory=list)

    kept = vars(Late)["__dataclass_fields__"]
    assert kept._made is None and kept.names == ["a", "b"] and not hasattr(Late, "b")
    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(lambda _: [f.name for f in dataclasses.fields(Late)], range(200)))
    assert seen == [["a", "b"]] * 200 and Late.__match_args__ == ("a", "b")
    stands = vars(Late)  # a pattern asks the class each time it matches by place
    assert list(stands["__dataclass_fields__"]) == ["a", "b"] and stands["__match_args__"] == ("a", "b")
    assert dataclasses.is_dataclass(Late(3)) and dataclasses.asdict(Late(3, [4])) == {"a": 3, "b": [4]}
    assert [f.name for f in dataclasses.fields(dataclasses.dataclass(type("Theirs", (Late,), {})))] == ["a", "b"]


@pytest.mark.parametrize("slots", [False, True])
def test_class_variables_of_a_base_that_dataclasses_made_are_no_slots(slots: bool) -> None:
    base: Any = dataclasses.dataclass(type("B", (), {"__annotations__": {"a": "int", "k": "ClassVar[int]"}, "k": 3}))
    derived: Any = dataclass(slots=slots)(type("D", (base,), {"__annotations__": {"b": "int"}}))
    assert derived.k == derived(1, 2).k == 3 and vars_of(derived(1, 2)) == [1, 2]


def test_own_methods_stay() -> None:
    @dataclass(frozen=True)
    class Own:
        a: int

        def __repr__(self) -> str:
            return "own"

        def __hash__(self) -> int:
            return 3

        def __post_init__(self) -> None:
            if self.a < 0:
                raise ValueError("negative")

    assert (repr(Own(1)), hash(Own(1))) == ("own", 3)
    with pytest.raises(ValueError, match="negative"):
        Own(-1)


def test_methods_are_made_when_they_are_called() -> None:
    @dataclass(frozen=True)
    class Late:
        a: int

    before = dict(vars(Late))
    made = Late(1)
    assert vars(Late)["__init__"] is before["__init__"]
    assert {Late(n).a for n in range(100)} == set(range(100))
    assert vars(Late)["__init__"] is not before["__init__"] and vars(Late)["__eq__"] is before["__eq__"]
    assert made == Late(1)
    assert vars(Late)["__eq__"] is not before["__eq__"] and vars(Late)["__hash__"] is before["__hash__"]


@pytest.mark.parametrize("name", ["__hash__", "__eq__", "__repr__"])
def test_a_method_that_was_wrapped_stays_so(name: str) -> None:
    """Expressions remember their hashes so: unwrapped, planning takes time with the square of an expression."""
    kind = both({"unsafe_hash": True})[1]
    inner, calls = getattr(kind, name), list[Any]()

    def wrapper(*given: Any) -> Any:
        calls.append(given)
        return inner(*given)

    setattr(kind, name, wrapper)
    a, b = kind(1, ()), kind(1, ())
    acts: dict[str, Any] = {"__hash__": lambda: hash(a), "__eq__": lambda: a == b, "__repr__": lambda: repr(a)}
    act = acts[name]
    assert act() == act() == act() and len(calls) == 3
