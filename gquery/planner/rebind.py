"""A plan or program for other values of its slots: the same tree, with other literals where slots stand."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import fields, is_dataclass
from typing import Generic, Protocol, TypeVar, cast

from gquery.expression.expr import Literal
from gquery.expression.slots import SlotLiteral, SlotValues, shown

T = TypeVar("T", bound=Hashable)
U = TypeVar("U", bound=Hashable)
_NONE: frozenset[int] = frozenset()
_OURS = ("gquery.planner.", "gquery.expression.", "gquery.kernels.values")


class Literals(Protocol):
    """What stands for slots in another tree (`SlotValues`)."""

    def literal(self, slot: SlotLiteral) -> Literal: ...

    def is_near(self, literal: Literal) -> bool:
        """Whether a slot stays as it is."""


class Rebinding(Generic[T]):
    """The parts of a tree that depend on slots, found once. What does not is shared by all that are made of it."""

    def __init__(self, tree: T) -> None:
        self.tree = tree
        self._kept: list[Hashable] = []  # what is known by identity must stay
        self._slots: dict[int, SlotLiteral] = {}  # by key
        self._depends: dict[int, frozenset[int]] = {}  # by identity of a record or tuple, the keys of the slots in it
        self._find(tree)

    def with_literals(self, literal: Callable[[SlotLiteral], Literal]) -> T:
        """The tree with other literals for slots; an object that stands in several places does so again."""
        return cast(T, _Rebound(self._depends, literal, frozenset(self._slots)).of(self.tree))  # of the same class

    def binder(self, literals: Literals) -> Callable[[U], U]:
        """What gives parts of the tree with other literals for slots, but for those that stay as they are; what stands in
        several of the parts does so again."""
        changed = frozenset(key for key, slot in self._slots.items() if not literals.is_near(slot))
        return cast(Callable[[U], U], _Rebound(self._depends, literals.literal, changed).of)  # of the same class

    def _find(self, node: Hashable) -> frozenset[int]:
        """The keys of the slots that a node depends on."""
        if isinstance(node, SlotLiteral):
            self._slots.setdefault(node.key, node)
            return frozenset((node.key,))
        known = self._depends.get(id(node))
        if known is not None:
            return known
        if isinstance(node, tuple):
            below: Iterable[Hashable] = node
        elif is_dataclass(node) and type(node).__module__.startswith(_OURS):
            below = [getattr(node, name) for name in _names(type(node))]
        else:
            return _NONE
        self._kept.append(node)
        self._depends[id(node)] = _NONE
        found = self._depends[id(node)] = _NONE.union(*map(self._find, below))
        return found


class _Rebound:
    def __init__(
        self, depends: dict[int, frozenset[int]], literal: Callable[[SlotLiteral], Literal], changed: frozenset[int]
    ) -> None:
        self._depends, self._literal, self._changed = depends, literal, changed
        self._made: dict[int, Hashable] = {}

    def of(self, node: Hashable) -> Hashable:
        if isinstance(node, SlotLiteral):
            return self._literal(node) if node.key in self._changed else node
        if self._changed.isdisjoint(self._depends.get(id(node), _NONE)):
            return node
        made = self._made.get(id(node))
        if made is None:
            if isinstance(node, tuple):
                made = tuple(map(self.of, node))
            else:
                kind = cast(Callable[..., Hashable], type(node))
                made = kind(*[self.of(getattr(node, name)) for name in _names(type(node))])
            self._made[id(node)] = made
        return made


_fields: dict[type, tuple[str, ...]] = {}


def _names(kind: type) -> tuple[str, ...]:
    """The fields of a record, in the order in which it takes them."""
    found = _fields.get(kind)
    if found is None:
        found = _fields[kind] = tuple(f.name for f in fields(kind))
    return found


def rebound(tree: T, values: SlotValues) -> T:
    """A tree for other values, where that is wanted once, with constants in place of slots."""
    return Rebinding(tree).with_literals(lambda slot: Literal(values.of(slot), slot.dtype))


def without_slots(tree: T) -> T:
    """A tree with constants in place of slots."""
    return Rebinding(tree).with_literals(lambda slot: Literal(shown(slot), slot.dtype))
