"""A program whose stages get the constants of a query when they are asked for: a replayed query asks for few of them or none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Generic, TypeVar, overload

from gquery.planner.physical import Program, Stage
from gquery.planner.rebind import Literals, Rebinding
from gquery.runtime.nesting import with_room
from gquery.runtime.records import replace

T = TypeVar("T", bound=Hashable)


class Later(Sequence[T], Generic[T]):
    """``pattern``, each item of which is bound when it is first asked for, once, whoever asks."""

    def __init__(self, pattern: Sequence[T], bind: Callable[[T], T]) -> None:
        self.pattern = pattern
        self._bind = bind
        self._made: dict[int, T] = {}
        self._lock = threading.Lock()  # what two items have in common is made once, too

    def __len__(self) -> int:
        return len(self.pattern)

    def __iter__(self) -> Iterator[T]:
        return map(self._item, range(len(self.pattern)))

    @overload
    def __getitem__(self, at: int) -> T: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[T, ...]: ...

    def __getitem__(self, at: int | slice) -> T | tuple[T, ...]:
        places = range(len(self.pattern))[at]
        return self._item(places) if isinstance(places, int) else tuple(map(self._item, places))

    def _item(self, n: int) -> T:
        made = self._made.get(n)
        if made is None:
            with self._lock:
                made = self._made.get(n)
                if made is None:
                    made = self._made[n] = with_room(lambda: self._bind(self.pattern[n]))
        return made

    @property
    def bound(self) -> frozenset[int]:
        """The places of the items that were asked for."""
        return frozenset(self._made)


def pattern_of(program: Program) -> Sequence[Stage]:
    """The stages with the constants of some query: for who asks what stages do, which no constant changes."""
    return program.stages.pattern if isinstance(program.stages, Later) else program.stages


def bound_later(rebinding: Rebinding[Program], literals: Literals) -> Program:
    """The program with other literals for its slots, stage by stage as they are asked for."""
    program, bind = rebinding.tree, rebinding.binder(literals)
    outputs, fetch = with_room(lambda: (bind(program.outputs), bind(program.fetch)))
    return replace(program, stages=Later(program.stages, bind), outputs=outputs, fetch=fetch)
