"""Expression nodes of a kernel: what a statement computes, as a small tree of primitives' calls over names and constants.

A node prints itself (`text`) as the Python that the interpreter runs and Numba compiles, lists what it reads (`leaves`, in
the order of the text), and copies itself over other leaves (`over`). Nodes are immutable and compare by structure. A name
carries the role of what it names, so that no pass reads a role from how a name is spelled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from gquery.expression.frozen import frozen

Role = Literal["row", "thread", "mark", "column", "state", "build", "table", "scalar"]
"""What a name names. Variables: of the *row* at hand, of which each row of an unrolled loop has its own; of the
*thread*, which its rows share or write anew; the *mark* says whether the row is kept. Pointers: to a *column* of the
input or of a build side, to a *state* of the sink, to a *build* side's join table, to a small *table* of constants.
*scalar*: a number or an address."""

IN_MEMORY: frozenset[Role] = frozenset(("column", "state", "build"))
"""The pointers to arrays that do not lie in a cache."""


@frozen
class Name:
    """A variable or a parameter."""

    id: str
    role: Role = "thread"

    def __hash__(self) -> int:
        return hash(self.id)

    def text(self) -> str:
        return self.id

    def leaves(self, found: list[Leaf]) -> None:
        found.append(self)

    def over(self, leaf: LeafMap) -> Expression:
        return leaf(self)


@frozen
class Constant:
    """A number, a truth value or None that stands in the text."""

    value: int | float | None

    def text(self) -> str:
        return repr(self.value)

    def leaves(self, found: list[Leaf]) -> None:
        pass

    def over(self, leaf: LeafMap) -> Expression:
        return self


@frozen
class Call:
    """A call of a primitive, of a scalar function or of a part of the kernel."""

    function: str
    arguments: tuple[Expression, ...]

    def text(self) -> str:
        several = self.arguments
        count = len(several)  # of most calls one or two, and most of these are names
        if count == 1:
            (a,) = several
            return f"{self.function}({a.id if a.__class__ is Name else a.text()})"
        if count == 2:
            a, b = several
            first = a.id if a.__class__ is Name else a.text()
            return f"{self.function}({first}, {b.id if b.__class__ is Name else b.text()})"
        return f"{self.function}({', '.join([a.id if a.__class__ is Name else a.text() for a in several])})"

    def leaves(self, found: list[Leaf]) -> None:
        for a in self.arguments:
            a.leaves(found)

    def over(self, leaf: LeafMap) -> Call:
        return Call(self.function, tuple([a.over(leaf) for a in self.arguments]))


@frozen
class Load:
    """The element of an array at an index."""

    pointer: Name
    index: Expression

    def text(self) -> str:
        index = self.index
        return f"{self.pointer.id}[{index.id if index.__class__ is Name else index.text()}]"

    def leaves(self, found: list[Leaf]) -> None:
        found.append(self.pointer)
        self.index.leaves(found)

    def over(self, leaf: LeafMap) -> Load:
        return Load(name_of(leaf(self.pointer)), self.index.over(leaf))


@frozen
class Element:
    """One of the constants that a kernel has in an array: number ``place`` of them."""

    array: Name
    place: int

    def text(self) -> str:
        return f"{self.array.id}[{self.place}]"

    def leaves(self, found: list[Leaf]) -> None:
        found.append(self)

    def over(self, leaf: LeafMap) -> Expression:
        return leaf(self)


@frozen
class Item:
    """An item of a tuple that a call has given."""

    tuple: Name
    place: int

    def text(self) -> str:
        return f"{self.tuple.id}[{self.place}]"

    def leaves(self, found: list[Leaf]) -> None:
        found.append(self.tuple)

    def over(self, leaf: LeafMap) -> Item:
        return Item(name_of(leaf(self.tuple)), self.place)


@frozen
class Not:
    """``not operand``."""

    operand: Expression

    def text(self) -> str:
        operand = self.operand
        return f"not ({operand.text()})" if isinstance(operand, And | Or | Choice) else f"not {operand.text()}"

    def leaves(self, found: list[Leaf]) -> None:
        self.operand.leaves(found)

    def over(self, leaf: LeafMap) -> Not:
        return Not(self.operand.over(leaf))


@frozen
class And:
    """The conjunction of tests, each looked at only where those before it are true."""

    terms: tuple[Expression, ...]

    def text(self) -> str:
        return " and ".join([f"({t.text()})" if isinstance(t, (Or, Choice)) else t.text() for t in self.terms])

    def leaves(self, found: list[Leaf]) -> None:
        for t in self.terms:
            t.leaves(found)

    def over(self, leaf: LeafMap) -> And:
        return And(tuple([t.over(leaf) for t in self.terms]))


@frozen
class Or:
    """The disjunction of tests, each looked at only where those before it are false."""

    terms: tuple[Expression, ...]

    def text(self) -> str:
        return " or ".join([f"({t.text()})" if isinstance(t, Choice) else t.text() for t in self.terms])

    def leaves(self, found: list[Leaf]) -> None:
        for t in self.terms:
            t.leaves(found)

    def over(self, leaf: LeafMap) -> Or:
        return Or(tuple([t.over(leaf) for t in self.terms]))


@frozen
class Parenthesized:
    """An expression in parentheses."""

    inner: Expression

    def text(self) -> str:
        return f"({self.inner.text()})"

    def leaves(self, found: list[Leaf]) -> None:
        self.inner.leaves(found)

    def over(self, leaf: LeafMap) -> Parenthesized:
        return Parenthesized(self.inner.over(leaf))


Operator = Literal["<", "+", "-", "*", "|", "is not"]


@frozen
class Operation:
    """Python's own operator, which row indices and the interpreter's calls use; values of SQL are computed by primitives."""

    left: Expression
    operator: Operator
    right: Expression

    def text(self) -> str:
        return f"{self.left.text()} {self.operator} {self.right.text()}"

    def leaves(self, found: list[Leaf]) -> None:
        self.left.leaves(found)
        self.right.leaves(found)

    def over(self, leaf: LeafMap) -> Operation:
        return Operation(self.left.over(leaf), self.operator, self.right.over(leaf))


@frozen
class Choice:
    """One of two values, by a test."""

    then: Expression
    test: Expression
    otherwise: Expression

    def text(self) -> str:
        return f"{self.then.text()} if {self.test.text()} else {self.otherwise.text()}"

    def leaves(self, found: list[Leaf]) -> None:
        self.then.leaves(found)
        self.test.leaves(found)
        self.otherwise.leaves(found)

    def over(self, leaf: LeafMap) -> Choice:
        return Choice(self.then.over(leaf), self.test.over(leaf), self.otherwise.over(leaf))


@frozen
class Tuple:
    """Several values, for as many names."""

    items: tuple[Expression, ...]

    def text(self) -> str:
        return ", ".join([i.text() for i in self.items])

    def leaves(self, found: list[Leaf]) -> None:
        for i in self.items:
            i.leaves(found)

    def over(self, leaf: LeafMap) -> Tuple:
        return Tuple(tuple([i.over(leaf) for i in self.items]))


Expression = Name | Constant | Call | Load | Element | Item | Not | And | Or | Parenthesized | Operation | Choice | Tuple
Leaf = Name | Element
LeafMap = Callable[[Leaf], Expression]

TRUE, FALSE, NONE = Constant(True), Constant(False), Constant(None)
ROW = Name("i", "row")
"""The index of the row at hand."""

LOW, HIGH = Name("lo"), Name("hi")
"""The first row of a launch or a morsel, and the end of its rows."""
MARK = Name("keep", "mark")
"""Whether the row at hand is kept, in a body that marks rows in a bitmap."""


def name_of(e: Expression) -> Name:
    """A leaf that has to be a name: an array that is indexed, a variable that is set."""
    assert isinstance(e, Name), e
    return e


def disjunction(tests: Sequence[Expression]) -> Expression:
    """The disjunction of tests; FALSE of none."""
    return Or(tuple(tests)) if len(tests) > 1 else tests[0] if tests else FALSE


def conjunction(*tests: Expression | None) -> Expression:
    """The conjunction of those tests that are there, one at least."""
    present = tuple([t for t in tests if t is not None])
    return present[0] if len(present) == 1 else And(present)
