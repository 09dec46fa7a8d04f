"""Decisions as a list of numbers: what was drawn is kept, so that a query can be made again from a shorter list.

The first choice of every decision is the simplest one, and a tape that has ended gives that: shrinking a query is deleting and
lowering numbers, whatever they decide.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Tape:
    """Draws from a seed, or from numbers that were drawn before."""

    def __init__(self, seed: int | None = None, numbers: Sequence[int] = ()) -> None:
        self._rng = None if seed is None else random.Random(seed)
        self._given = list(numbers)
        self.drawn: list[int] = []

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        if self._rng is not None:
            number = self._rng.randrange(n)
        else:
            at = len(self.drawn)
            number = self._given[at] % n if at < len(self._given) else 0
        self.drawn.append(number)
        return number

    def one(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def chance(self, percent: int) -> bool:
        """True in so many of a hundred cases; False is the simple one."""
        return self.below(100) >= 100 - percent

    def count(self, least: int, most: int) -> int:
        return least + self.below(most - least + 1)
