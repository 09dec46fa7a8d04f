"""Which slots each stage of a program depends on: those that stand in it, and in the stages that it reads."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING

from gquery.expression.slots import SlotLiteral
from gquery.planner.stage_inputs import stage_inputs

if TYPE_CHECKING:
    from gquery.expression.expr import Literal
    from gquery.planner.physical import Program

Slots = frozenset[int]
_NONE: Slots = frozenset()
_OURS = ("gquery.planner.", "gquery.expression.", "gquery.kernels.values")


def slots_by_stage(program: Program) -> tuple[Slots, ...]:
    """By stage, the numbers of the slots on whose values its result depends."""
    known: dict[int, Slots] = {}
    found: list[Slots] = []
    for stage in program.stages:
        own = _slots_of(stage.work, known)
        found.append(own.union(*[found[n] for n in stage_inputs(stage.work)]))
    return tuple(found)


def _slots_of(node: Hashable, known: dict[int, Slots]) -> Slots:
    """The slots below a node; ``known`` are those of records and tuples, by identity."""
    if isinstance(node, SlotLiteral):
        return _given(node)
    seen = known.get(id(node))
    if seen is not None:
        return seen
    below: Iterable[Hashable]
    if isinstance(node, tuple):
        below = node
    elif names := _names(type(node)):
        below = [getattr(node, name) for name in names]
    else:
        return _NONE
    known[id(node)] = _NONE  # a node that is met again below itself adds nothing
    made = known[id(node)] = _NONE.union(*[_slots_of(x, known) for x in below])
    return made


@cache
def _names(kind: type) -> tuple[str, ...]:
    """The fields of our records; none of anything else."""
    is_ours = is_dataclass(kind) and kind.__module__.startswith(_OURS)
    return tuple([f.name for f in fields(kind)]) if is_ours else ()


def _given(literal: Literal) -> Slots:
    """The slots of the text that a literal is computed from."""
    if not isinstance(literal, SlotLiteral):
        return _NONE
    return _NONE.union(*map(_given, literal.sources)) if literal.make is not None else frozenset((literal.number,))
