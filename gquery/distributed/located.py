"""What says on which rank a row lies: the value of a column that is *located*.

Tables are cut at values of a sorted column. Groups of ranks that become one are parted by the hash of their keys, or at the
values where a table is cut that they are joined with later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gquery.expression.expr import Column
from gquery.expression.frozen import frozen
from gquery.expression.types import DType
from gquery.operators.cut_keys import CutKeys


@frozen
class MadeBy:
    """The stage that has chosen where its groups lie, and the position of a column among their keys."""

    stage: int
    position: int


class HashKeys:
    """Rows lie by the hash of a key, whose values hash alike where ``kind`` is the same. None: by that of so many ``keys``, of
    which one alone says nothing; then this is like no other."""

    def __init__(self, kind: str | None, by: MadeBy, keys: int = 1) -> None:
        self.kind, self.by, self.keys = kind, by, keys

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashKeys) and self.kind is not None and self.kind == other.kind

    def __hash__(self) -> int:
        return hash(self.kind)


class ChosenKeys(CutKeys):
    """Groups lie by the ranges of a key that their stage has chosen."""

    def __init__(self, bounds: Iterable[int], by: MadeBy) -> None:
        super().__init__(tuple(bounds))
        self.by = by


Locating = CutKeys | HashKeys
Located = Mapping[int, Locating]
"""By the id of a column that is located what says so: rows with equal values of columns of equal ones lie on one rank."""

NOWHERE: Located = {}


def is_located(located: Located, column: int) -> bool:
    """Whether a column alone says on which rank a row lies."""
    found = located.get(column)
    return found is not None and not (isinstance(found, HashKeys) and found.kind is None)


def hashed_by(keys: Sequence[Column], stage: int) -> Located:
    """The located columns of rows that lie by the hash of these keys, as a stage has chosen."""
    kind = hash_kind(keys[0].dtype) if len(keys) == 1 else None
    return {c.id: HashKeys(kind, MadeBy(stage, n), len(keys)) for n, c in enumerate(keys)}


def lie_together(located: Located, columns: Sequence[int]) -> bool:
    """Whether rows that are equal in all of these columns lie on one rank: one of them alone says where, or all keys of a hash
    are among them."""
    if any(is_located(located, c) for c in columns):
        return True
    met: dict[int, set[int]] = {}
    for column in columns:
        at = located.get(column)
        if isinstance(at, HashKeys):
            met.setdefault(at.by.stage, set()).add(at.by.position)
            if len(met[at.by.stage]) == at.keys:
                return True
    return False


def hash_kind(dtype: DType) -> str:
    """What is the same for types of which equal values have equal hashes (`kernels.builtin.key_hashes`)."""
    if dtype.is_decimal:
        return f"decimal of scale {dtype.scale}"
    return "integer" if dtype.is_integer else str(dtype)


def wished(a: Locating | None, b: Locating | None) -> tuple[MadeBy, CutKeys] | None:
    """Of the keys of both sides of a join, one of which lies where a table is cut, and the other where the stage of its groups
    has chosen: that stage, and the cut that it should choose. None where it is not so."""
    for fixed, chosen in ((a, b), (b, a)):
        if (
            isinstance(fixed, CutKeys)
            and not isinstance(fixed, ChosenKeys)
            and isinstance(chosen, HashKeys | ChosenKeys)
        ):
            return chosen.by, fixed
    return None
