"""Makes what fails small: numbers of its tape are deleted and cleared for as long as it goes on failing in the same way."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzzing.check import Case, Engine, fault, make
from tests.fuzzing.tape import Tape

_TRIES = 1500


def shrink(case: Case, engine: Engine, tries: int = _TRIES) -> Case:
    """A smaller case with the same kind of fault."""
    kind = _kind(fault(case, engine))
    left = tries

    def still(numbers: tuple[int, ...]) -> Case | None:
        nonlocal left
        left -= 1
        made = make(case.kind, case.sets, Tape(numbers=numbers))
        return made if _size(made) < _size(best) and _kind(fault(made, engine)) == kind else None

    best = case
    while left > 0:
        found = _smaller(best, still, lambda: left > 0)
        if found is None:
            break
        best = found
    return best


def _smaller(best: Case, still: Callable[[tuple[int, ...]], Case | None], goes_on: Callable[[], bool]) -> Case | None:
    """The first smaller case that a change of the tape gives."""
    tape = best.tape
    for width in (64, 32, 16, 8, 4, 2, 1):
        for at in range(0, len(tape), max(width // 2, 1)):
            for changed in (
                tape[:at] + tape[at + width :],
                tape[:at] + (0,) * len(tape[at : at + width]) + tape[at + width :],
            ):
                if not goes_on():
                    return None
                if changed != tape and (found := still(changed)) is not None:
                    return found
    return None


def _size(case: Case) -> tuple[int, int, int]:
    return sum(map(len, case.sql)), len(case.tape), sum(case.tape)


def _kind(said: str | None) -> str | None:
    """What two faults of one cause have in common: the class of an error, or that rows differ."""
    if said is None:
        return None
    head = said.partition(":")[0]
    return head if head.endswith(("Error", "Exception")) or head in ("we fail", "DuckDB fails") else "different"
