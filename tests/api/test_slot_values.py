"""What a text asks of slots whose values are those that a plan was made for: nothing is computed, tested or made again."""

from __future__ import annotations

import pytest

from gquery.expression.expr import Call, Column, Expr, Literal
from gquery.expression.slots import Recorder, SlotLiteral, Slots, SlotValues, decided, derived
from gquery.expression.types import BIGINT, BOOLEAN
from gquery.planner.rebind import Rebinding

made: list[int] = []


def twice(value: int) -> int:
    made.append(value)
    return 2 * value


def is_small(value: int) -> bool:
    made.append(value)
    return value < 10


@pytest.fixture(autouse=True)
def nothing_made() -> None:
    made.clear()


def two(slots: Slots) -> tuple[SlotLiteral, SlotLiteral]:
    return SlotLiteral(1, BIGINT, slots, 0), SlotLiteral(2, BIGINT, slots, 1)


def test_a_derived_value_is_taken_over() -> None:
    slots = Slots()
    x, _ = two(slots)
    double = derived(twice, BIGINT, (x,))
    first = SlotValues([1, 2])
    assert first.of(double) == 2
    made.clear()
    assert SlotValues([1, 99], near=first).of(double) == 2
    assert made == []
    assert SlotValues([5, 2], near=first).of(double) == 10
    assert made == [5]


def test_values_of_another_type_differ() -> None:
    slots = Slots()
    x, y = two(slots)
    values = SlotValues([True, 2], near=SlotValues([1, 2]))
    assert not values.is_near(x)
    assert values.is_near(y)
    assert not SlotValues([1, 2]).is_near(x), "nothing is near by"


def test_guards_of_the_same_values_are_not_tested() -> None:
    slots = Slots()
    x, y = two(slots)
    first = SlotValues([1, 2])
    with slots.recording(Recorder(first)) as recorder:
        decided(is_small, (x,))
        decided(is_small, (y,))
    made.clear()
    assert recorder.failed(SlotValues([1, 3], near=first)) is None
    assert made == [3]
    assert recorder.failed(SlotValues([1, 30], near=first)) is not None


def test_guards_that_were_noted_for_others_are() -> None:
    """A kernel that was written for a second text is asked by a third, which is near the first."""
    slots = Slots()
    first, second = SlotValues([1, 2]), SlotValues([50, 2])
    x = SlotLiteral(50, BIGINT, slots, 0)
    with slots.recording(Recorder(second)) as recorder:
        assert not decided(is_small, (x,))
    assert recorder.failed(SlotValues([1, 7], near=first)) is not None
    assert recorder.failed(SlotValues([70, 7], near=first)) is None


def test_what_depends_on_the_same_values_is_shared() -> None:
    slots = Slots()
    x, y = two(slots)
    column = Column(7, "a", BIGINT, False)
    one: Expr = Call("eq", (column, x), BOOLEAN, False)
    other: Expr = Call("eq", (column, y), BOOLEAN, False)
    first = SlotValues([1, 2])
    values = SlotValues([1, 3], near=first)
    both: tuple[Expr, ...] = (one, other, one)
    tree = Rebinding(both)
    bind = tree.binder(values)
    again = bind(both)
    assert bind(other) is again[1]
    assert again[0] is one
    assert again[2] is one
    changed = again[1]
    assert isinstance(changed, Call)
    assert [a.value for a in changed.args if isinstance(a, Literal)] == [3]
    assert tree.binder(SlotValues([1, 2], near=first))(both) is both
    whole = tree.with_literals(lambda s: Literal(values.of(s), s.dtype))
    assert isinstance(whole, tuple)
    assert whole[0] is not one
