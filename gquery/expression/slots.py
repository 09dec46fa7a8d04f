"""Slots: literals of a query whose values its plan does not depend on, and the guards where it does.

A plan that is made for one query serves others that differ in literals alone, as long as nothing was decided by looking at a
value that they do not share. So a literal of the text is a `SlotLiteral`. Who reads its ``value`` pins it: every recorder that
is active notes that the slot must have that very value. Three functions look without pinning:

    decided(test, literals, *given)           the outcome of a test, which must come out the same for other values
    derived(make, dtype, literals, *given)    a literal that is computed from others, and computed again for other values
    shown(literal)                            the value, for what is not kept, or stays right for any value (an estimate)

Tests and what makes values are functions of modules, which close over nothing: the same function, literals and ``given`` are
the same guard.

A `Template` (`gquery.api.templates`) holds the guards with what was made under them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from operator import is_
from typing import Any, TypeVar, cast

from gquery.errors import DataError, NotSupportedError, ProgrammingError
from gquery.expression.exact import exact
from gquery.expression.expr import Literal
from gquery.expression.types import DType, Kind
from gquery.runtime.records import dataclass

T = TypeVar("T")

# of computing a literal from others
FAILURES = (DataError, ProgrammingError, NotSupportedError, ArithmeticError, ValueError)


@dataclass(frozen=True, slots=True)
class Guard:
    """What must come out the same for other values of the slots: ``test`` of the literals' values, and of what is ``given``, is
    ``outcome``."""

    test: Callable[..., Any]
    literals: tuple[Literal, ...]
    given: tuple[Any, ...]
    outcome: Hashable

    def __str__(self) -> str:
        """For EXPLAIN ANALYZE: what is asked, and of which values it was answered."""
        values = ", ".join(repr(shown(x)) for x in self.literals)
        if self.test is is_the_same:
            return f"the plan rests on {values}"
        asked = self.test.__name__.strip("_").replace("_", " ")
        return f"the plan rests on {asked!r} of {values}"

    def holds(self, values: SlotValues) -> bool:
        """Whether it does for these values."""
        try:
            return bool(exact(self.test(*map(values.of, self.literals), *self.given)) == self.outcome)
        except FAILURES:
            return False


class Recorder:
    """The guards of what is made while it is active, each once; ``made_for`` are the values that it is made for, where somebody
    has them."""

    def __init__(self, made_for: SlotValues | None = None) -> None:
        self.guards: dict[Hashable, Guard] = {}
        self.made_for = made_for
        self._numbered: list[tuple[frozenset[int], Guard]] = []  # with the slots that a guard looks at

    def failed(self, values: SlotValues) -> Guard | None:
        """The first guard that does not hold for these values. Those hold that look at none but values that it was made for."""
        if len(self._numbered) != len(self.guards):
            self._numbered = [(numbers_in(g.literals), g) for g in list(self.guards.values())]
        changed = values.changed_here if values.near is not None and values.near is self.made_for else None
        for numbers, guard in self._numbered:
            if (changed is None or not changed.isdisjoint(numbers)) and not guard.holds(values):
                return guard
        return None


class Slots:
    """The slots of one text. What is looked at is noted by all ``recorders`` that are active, whoever looks: two things that
    are made at once share their guards, which does no harm."""

    def __init__(self) -> None:
        self.recorders: tuple[Recorder, ...] = ()
        self._keys: dict[Hashable, int] = {}
        self.is_closed = False  # the plan is made: from here on two slots are equal by their keys alone

    @contextmanager
    def recording(self, recorder: Recorder) -> Iterator[Recorder]:
        """Within it the recorder is active."""
        self.recorders = (*self.recorders, recorder)
        try:
            yield recorder
        finally:
            self.recorders = tuple(r for r in self.recorders if r is not recorder)

    def key_of(self, how: Hashable) -> int:
        """A number for what is derived in one way."""
        return self._keys.setdefault(how, -1 - len(self._keys))

    def note(self, key: Hashable, guard: Guard) -> None:
        for recorder in self.recorders:
            recorder.guards.setdefault(key, guard)


class SlotValues:
    """The values of a query's slots, by number; what is derived from them is computed once. ``near`` are those of a query of
    the same shape, which most often has many of the same values; ``changed_here`` are the slots that have others."""

    def __init__(self, given: Sequence[Any], near: SlotValues | None = None) -> None:
        self._given = given
        self._made: dict[int, Any] = {}
        self.near = near
        self.changed_here = frozenset[int]() if near is None else self.changed_since(near)

    def changed_since(self, other: SlotValues) -> frozenset[int]:
        """The slots that have other values than in another query of the shape."""
        pairs = enumerate(zip(self._given, other._given, strict=True))
        return frozenset([n for n, (one, another) in pairs if one is not another and exact(one) != exact(another)])

    def is_near(self, literal: Literal) -> bool:
        """Whether a literal has the same value as in the query near by: those do that are derived from such."""
        if not isinstance(literal, SlotLiteral):
            return True
        return self.near is not None and self.changed_here.isdisjoint(literal.numbers)

    def keys(self) -> list[Hashable]:
        """For each slot of the text a key that is equal for the same value alone."""
        return list(map(exact, self._given))

    def of(self, literal: Literal) -> Any:
        """The value of a literal; whatever computing it raises where it is derived (`FAILURES`)."""
        if not isinstance(literal, SlotLiteral):
            return literal.value
        if literal.make is None:
            return self._given[literal.number]
        value = self._made.get(literal.key)
        if value is None:
            if self.near is not None and self.changed_here.isdisjoint(literal.numbers):
                value = self.near.of(literal)
            else:
                value = literal.make(*map(self.of, literal.sources), *literal.given)
            if value is None:
                raise ValueError("a derived literal is NULL")
            self._made[literal.key] = value
        return value

    def literal(self, slot: SlotLiteral) -> SlotLiteral:
        """The slot with the value that it has here."""
        return slot.with_value(self.of(slot))


class SlotLiteral(Literal):
    """A literal that is never NULL, of which other queries have another value: slot ``number`` of its ``slots``, or what
    ``make`` computes of the values of ``sources`` and of ``given``; ``numbers`` are the slots that it comes of, in the end.
    ``key`` is equal for slots that always have one value."""

    __slots__ = ("_raw", "given", "key", "make", "number", "numbers", "slots", "sources")

    def __init__(self, value: Any, dtype: DType, slots: Slots, number: int = -1) -> None:
        super().__init__(value, dtype)
        self.slots, self.number = slots, number
        self.make: Callable[..., Any] | None = None
        self.sources: tuple[Literal, ...] = ()
        self.given: tuple[Any, ...] = ()
        self.key = number
        self.numbers = frozenset((number,))

    def made_by(self, make: Callable[..., Any], sources: tuple[Literal, ...], given: tuple[Any, ...]) -> SlotLiteral:
        """The slot as one that is derived."""
        self.make, self.sources, self.given = make, sources, given
        self.key = self.slots.key_of((make, given, self.dtype, *map(literal_key, sources)))
        self.numbers = numbers_in(sources)
        return self

    def with_value(self, value: Any) -> SlotLiteral:
        """The same slot where it has another value."""
        other = SlotLiteral(value, self.dtype, self.slots, self.number)
        other.make, other.sources, other.given, other.key = self.make, self.sources, self.given, self.key
        other.numbers = self.numbers
        return other

    @property
    def value(self) -> Any:
        """The value here. What is made now rests on it, and serves no other."""
        if self.slots.recorders:
            self.slots.note((is_the_same, self.key), Guard(is_the_same, (self,), (), exact(self._raw)))
        return self._raw

    @value.setter
    def value(self, value: Any) -> None:  # as a literal is made
        self._raw = value

    @property
    def is_null(self) -> bool:
        return False

    @property
    def nullable(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        """Two with one key are equal; others that are equal here need not be so elsewhere, and are pinned. That two slots
        differ is nothing that a plan rests on: what is not the same twice is computed twice. Expressions remember that they are
        equal, so kernels, which have guards of their own, compare keys."""
        if not isinstance(other, Literal):
            return NotImplemented
        if self.dtype != other.dtype:
            return False
        if not isinstance(other, SlotLiteral) and not decided(_is_value, (self,), exact(other.value)):
            return False
        if exact(self._raw) != exact(shown(other)):
            return False
        if isinstance(other, SlotLiteral) and other.slots is self.slots and other.key == self.key:
            return True
        if self.slots.is_closed or not self.slots.recorders:
            return False
        pin((self, other))
        return True

    def __hash__(self) -> int:
        if self.memo_hash is None:
            self.memo_hash = hash(Literal(self._raw, self.dtype))
        return self.memo_hash

    def __repr__(self) -> str:
        return f"SlotLiteral({self._raw!r}, {self.dtype}, {self.key!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Literal, (self._raw, self.dtype)


def numbers_in(literals: Sequence[Literal]) -> frozenset[int]:
    """The slots that literals come of."""
    return frozenset[int]().union(*[x.numbers for x in literals if isinstance(x, SlotLiteral)])


def _is_value(value: Any, key: Hashable) -> bool:
    return bool(exact(value) == key)


def is_the_same(value: T) -> T:
    """The test of a slot that is pinned."""
    return value


def shown(literal: Literal) -> Any:
    """The value of a literal, pinning nothing: for what is shown or estimated."""
    return literal._raw if isinstance(literal, SlotLiteral) else literal.value


def is_recorded(literal: object) -> bool:
    """Whether a literal is a slot, and what is made of it now is kept for other values."""
    return isinstance(literal, SlotLiteral) and bool(literal.slots.recorders)


_YES = exact(True)


def decided(test: Callable[..., T], literals: tuple[Literal, ...], *given: Any) -> T:
    """What ``test`` says of the literals' values and ``given``: a bool, a number, text or a tuple of such."""
    assert getattr(test, "__closure__", None) is None
    slots = next((x.slots for x in literals if isinstance(x, SlotLiteral)), None)
    if slots is None or not slots.recorders:
        return test(*map(shown, literals), *given)
    key = (test, given, *map(literal_key, literals))
    guard = slots.recorders[-1].guards.get(key)
    if guard is not None and guard.outcome == _YES and all(map(is_, map(shown, literals), map(shown, guard.literals))):
        slots.note(key, guard)  # it was asked before: each estimate asks again
        return cast("T", True)
    outcome = test(*map(shown, literals), *given)
    slots.note(key, Guard(test, literals, given, exact(outcome)))
    return outcome


def derived(make: Callable[..., Any], dtype: DType, literals: tuple[Literal, ...], *given: Any) -> Literal:
    """The literal of type ``dtype`` whose value ``make`` computes of the literals' values and ``given``. Raises what it
    raises, and pins the literals then, as it does where the value is NULL. A truth is decided: rules look at it."""
    assert getattr(make, "__closure__", None) is None
    try:
        value = make(*map(shown, literals), *given)
    except FAILURES:
        pin(literals)
        raise
    slots = [x for x in literals if isinstance(x, SlotLiteral)]
    if not slots or value is None:
        pin(literals)
        return Literal(value, dtype)
    if dtype.kind is Kind.BOOLEAN:
        return Literal(decided(make, literals, *given), dtype)
    made = SlotLiteral(value, dtype, slots[0].slots).made_by(make, literals, given)
    made.slots.note((can_be_made, made.key), Guard(can_be_made, (made,), (), exact(True)))
    return made


def can_be_made(_: Any) -> bool:
    """The test of a derived literal: its value is there."""
    return True


def pin(literals: Sequence[Literal]) -> None:
    """What is made now rests on the very values of these."""
    for literal in literals:
        _ = literal.value


def literal_key(literal: Literal) -> Hashable:
    """What is equal for literals of one text that always have one value and type."""
    return literal.key if isinstance(literal, SlotLiteral) else (exact(literal.value), literal.dtype)
