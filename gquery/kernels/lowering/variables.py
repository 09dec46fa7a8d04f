"""Which variables of a function are set once, before all that reads them: those are registers, others places on the stack."""

from __future__ import annotations

from collections.abc import Iterable

from gquery.kernels.ir.expressions import Element, Expression, Leaf, Name
from gquery.kernels.ir.statements import Block, For
from gquery.kernels.ir.walk import blocks, targets, values


def registers(parameters: Iterable[Name], body: Block) -> set[str]:
    """The variables, and parameters, that one statement sets (or the call), in whose block, behind it, all stands that reads
    them: there the value is known without a look at which way was taken.

    >>> from gquery.kernels.ir.read import read_lines
    >>> body = read_lines("a = f(x)", "if a:", "    b = f(a)", "    c = f(b)", "d = f(c)", "d = f(d)")
    >>> sorted(registers([Name("x")], body))
    ['a', 'b', 'x']
    """
    seen = _Seen()
    for p in parameters:
        seen.set(p.id)
    seen.block(body)
    return {name for name, times in seen.times.items() if times == 1 and name not in seen.read_elsewhere}


class _Seen:
    """What was met on the way through a function: how often a variable is set, and those that are read where no value of theirs
    is sure to be."""

    def __init__(self) -> None:
        self.times: dict[str, int] = {}
        self.read_elsewhere: set[str] = set()
        self._known: set[str] = set()  # in the blocks that are open

    def set(self, name: str) -> bool:
        """Note that a variable is set; whether that is new here."""
        self.times[name] = self.times.get(name, 0) + 1
        if name in self._known:
            return False
        self._known.add(name)
        return True

    def block(self, block: Block, loop: Name | None = None) -> None:
        """A block; that of a loop over integers sets its variable."""
        own = [loop.id] if loop is not None and self.set(loop.id) else []
        for s in block:
            for e in values(s):
                self._read(e)
            if isinstance(s, For):
                self.block(s.body, s.target)
                continue
            own += [t.id for t in targets(s) if self.set(t.id)]
            for inner in blocks(s):
                self.block(inner)
        self._known.difference_update(own)

    def _read(self, e: Expression) -> None:
        found: list[Leaf] = []
        e.leaves(found)
        for leaf in found:
            name = leaf.array.id if isinstance(leaf, Element) else leaf.id
            if name not in self._known:
                self.read_elsewhere.add(name)
