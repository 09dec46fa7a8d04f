"""Parts: a long or deeply nested body is cut into functions that it calls.

A compiler takes time with the square of a function's blocks and variables, and Python nests no more than 100 blocks. So the body
of a kernel that has many lines, or many blocks within each other (`tuning.kernel_parts`), is cut from the inside out:
a run of statements becomes a function of the variables that it reads, which returns those that others read. What is cut are
finished statements, so that operators need not know. Functions of one text are one function: their variables are named by
first use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from gquery import tuning
from gquery.kernels.ir.expressions import Call, Constant, Element, Expression, Leaf, Load, Name
from gquery.kernels.ir.statements import Block, Function, If, Let, Statement, Unpack, line_count, printed
from gquery.kernels.ir.walk import (
    blocks,
    expressions,
    leaves,
    names,
    over,
    statements,
    targets,
    values,
    with_blocks,
    with_calls,
)
from gquery.kernels.unroll import called, returned
from gquery.runtime.records import dataclass

_BOUND = ("private_", "block_", "shared_", "warp_", "reduce_")  # calls bound to the kernel's own memory or threads
_BLANK = Name("_")


def parted(body: Block, outside: Block) -> tuple[Block, tuple[Function, ...]]:
    """The body, and the functions that it calls; ``outside`` are the kernel's statements around it.

    >>> from gquery.kernels.ir.read import read_lines
    >>> body = ["v0 = i64(c0[i])", *[f"n = add_i64(n, mul_i64(v0, k{k}))" for k in range(500)]]
    >>> block, parts = parted(read_lines(*body), read_lines("n = i64(0)"))
    >>> len(block), len(parts), printed(block)[1][:50]
    (11, 3, 'n = part1(n, v0, k47, k48, k49, k50, k51, k52, k53')
    """
    if line_count(body) <= tuning.kernel_parts.lines and not is_deep(body):
        return body, ()
    return _Parting(body, outside).result()


def is_deep(body: Block) -> bool:
    """Whether blocks are nested in each other so deeply that a body has to be cut, however short it is."""
    return _depth(body) > tuning.kernel_parts.depth


@dataclass(frozen=True, slots=True)
class _Unit:
    """Statements that stay together, their lines and how deep blocks are nested in them."""

    block: Block
    lines: int
    depth: int


class _Parting:
    def __init__(self, body: Block, outside: Block) -> None:
        self.body = body
        self.uses = _uses((*body, *outside))
        self.is_bound = _is_bound(body)
        self.functions: dict[tuple[str, ...], Function] = {}  # by text without the name
        self._parts: set[str] = set()  # their names

    def result(self) -> tuple[Block, tuple[Function, ...]]:
        block, _ = self._cut(self.body)
        return self._with_elements(block), tuple(self.functions.values())

    def _cut(self, block: Block) -> tuple[Block, int]:
        """A block in parts, where its statements are many or deep, and the depth of what is left of it."""
        limits = tuning.kernel_parts
        units = [self._unit(s) for s in block]
        deepest = max((u.depth for u in units), default=0)
        if sum(u.lines for u in units) <= limits.part_lines and deepest < limits.part_depth:
            return tuple(s for u in units for s in u.block), deepest
        while True:
            out: list[_Unit] = []
            for chunk in _chunks(units):
                call = self._part(tuple(s for u in chunk for s in u.block))
                out += chunk if call is None else [_Unit((call,), 1, 0)]
            if len(out) <= limits.calls or len(out) > limits.progress * len(units):
                break
            units = out
        return tuple(s for u in out for s in u.block), max((u.depth for u in out), default=0)

    def _unit(self, s: Statement) -> _Unit:
        """A statement whose own blocks are in parts."""
        inner = blocks(s)
        if not inner:
            return _Unit((s,), 1, 0)
        cut = [self._cut(block) for block in inner]
        made = with_blocks(s, [block for block, _ in cut])
        return _Unit((made,), line_count((made,)), 1 + max(depth for _, depth in cut))

    def _part(self, block: Block) -> Statement | None:
        """A call of these statements as a function; None where they have to stay."""
        if line_count(block) < 2 or (self.is_bound and _is_bound(block)):
            return None
        inside = _uses(block)
        read: dict[str, Name] = {}
        assigned = _flow(block, set(), read)
        written = {name.id: name for s in statements(block) for name in targets(s)}
        results = tuple([name for name in written.values() if self.uses[name.id] > inside[name.id]])
        read |= {name.id: name for name in results if name.id not in assigned and name.id not in read}
        firsts = _firsts(block)
        own = [name for name in written.values() if name.id not in read]
        function = self._function(block, list(read.values()), own, results, firsts)
        call = called(function, [Element(r, firsts[r]) if r in firsts else r for r in read.values()], results)
        self.uses.subtract(inside)  # those lines are one now
        self.uses.update(_named(call))
        return call

    def _function(
        self, block: Block, read: list[Name], written: list[Name], results: tuple[Name, ...], firsts: dict[Name, int]
    ) -> str:
        """The name of a function of ``read`` that sets ``written``, too: an array of constants comes with the place of the first
        one that the statements name."""
        new: dict[Name, Name] = {}
        places: dict[Name, Name] = {}
        parameters: list[Name] = []
        for name in read:
            new[name] = _numbered(parameters, name)
            if name in firsts:
                places[name] = _numbered(parameters, _BLANK)
        for n, name in enumerate(written, len(parameters)):
            new[name] = Name(f"x{n}", name.role)

        def leaf(x: Leaf) -> Expression:
            if isinstance(x, Name):
                return new.get(x, x)
            far = x.place - firsts[x.array]
            place: Expression = places[x.array]
            if far:
                place = Call("add_i64", (place, Call("i64", (Constant(far),))))
            return Load(new[x.array], place)

        inner = self._with_elements(over(block, leaf)) + returned(tuple(new[name] for name in results))
        key = (" ".join(p.id for p in parameters), *printed(inner))
        found = self.functions.get(key)
        if found is None:
            found = self.functions[key] = Function(f"part{len(self.functions)}", tuple(parameters), inner)
            self._parts.add(found.name)
        return found.name

    def _with_elements(self, block: Block) -> Block:
        """A call of a part takes an element of an array as the array and the element's place."""
        return with_calls(block, lambda call: _passing_elements(call) if call.function in self._parts else call)


def _passing_elements(call: Call) -> Call:
    arguments: list[Expression] = []
    for a in call.arguments:
        match a:
            case Element(array, place):
                arguments += [array, Call("i64", (Constant(place),))]
            case Load(pointer, index):
                arguments += [pointer, index]
            case _:
                arguments.append(a)
    return Call(call.function, tuple(arguments))


def _numbered(parameters: list[Name], name: Name) -> Name:
    parameters.append(Name(f"x{len(parameters)}", name.role))
    return parameters[-1]


def _depth(block: Block) -> int:
    return max((1 + _depth(inner) for s in block for inner in blocks(s)), default=0)


def _named(s: Statement) -> set[str]:
    """The names that a statement reads or sets, without those of its blocks."""
    found: list[Leaf] = []
    for e in values(s):
        e.leaves(found)
    named = {leaf.id if isinstance(leaf, Name) else leaf.array.id for leaf in found}
    named.update([target.id for target in targets(s)])
    return named


def _uses(block: Iterable[Statement]) -> Counter[str]:
    """By name, the statements that name it."""
    return Counter([name for s in statements(block) for name in _named(s)])


def _is_bound(block: Block) -> bool:
    return any(
        isinstance(x, Call) and x.function.startswith(_BOUND)
        for s in statements(block)
        for e in values(s)
        for x in expressions(e)
    )


def _firsts(block: Block) -> dict[Name, int]:
    """By array of constants, the first one that statements name."""
    firsts: dict[Name, int] = {}
    for x in leaves(block):
        if isinstance(x, Element):
            firsts[x.array] = min(firsts.get(x.array, x.place), x.place)
    return firsts


def _chunks(units: list[_Unit]) -> Iterator[list[_Unit]]:
    """Neighbours, as many as make a part. What repeats itself, as the columns of a wide result do, is cut where it does, so
    that its parts are one function."""
    every = _period(units)
    chunk: list[_Unit] = []
    first = _phase(units, every)
    for at in range(first - every if first else 0, len(units), every):
        several = units[max(at, 0) : at + every]
        if chunk and sum(u.lines for u in (*chunk, *several)) > tuning.kernel_parts.part_lines:
            yield chunk
            chunk = []
        chunk += several
    if chunk:
        yield chunk


def _period(units: list[_Unit]) -> int:
    """After how many statements most look the same again; 1 where they do not."""
    shapes = [[_shape(s) for s in u.block] for u in units]
    for every in range(1, min(tuning.kernel_parts.period, len(shapes) // 2) + 1):
        same = sum(a == b for a, b in zip(shapes, shapes[every:], strict=False))
        if same >= tuning.kernel_parts.alike * (len(shapes) - every):
            return every
    return 1


def _shape(s: Statement) -> tuple[object, ...]:
    """What statements share that differ in names and in elements of arrays of constants alone."""
    return (s.__class__, *map(_shape_of, values(s)), *[tuple(map(_shape, inner)) for inner in blocks(s)])


def _shape_of(e: Expression) -> object:
    match e:
        case Name() | Element():
            return None
        case Call(function, arguments):
            return (function, *map(_shape_of, arguments))
        case Load(index=index):
            return ("[", _shape_of(index))
        case _:
            return e.over(lambda leaf: _BLANK).text()


def _phase(units: list[_Unit], every: int) -> int:
    """Where in the first ``every`` statements repetitions begin: the fewest variables are alive between two of them."""
    if every == 1:
        return 0
    middle = len(units) // 2 // every * every
    written = [{name.id for s in statements(u.block) for name in targets(s)} for u in units]
    named = [{name for s in statements(u.block) for name in _named(s)} for u in units]

    def alive(first: int) -> int:
        return len(set().union(*written[: middle + first]) & set().union(*named[middle + first :]))

    return min(range(every), key=alive)


def _flow(block: Block, assigned: set[str], read: dict[str, Name]) -> set[str]:
    """What is surely assigned behind the statements; what they may read before it is goes to ``read``."""
    for s in block:
        for e in values(s):
            for name in names(e):
                if name.id not in assigned:
                    read.setdefault(name.id, name)
        if isinstance(s, Let):
            assigned = {*assigned, s.target.id}
            continue
        inside = assigned.union([target.id for target in targets(s)])
        behind = [_flow(inner, inside, read) for inner in blocks(s)]
        match s:
            case Unpack():
                assigned = inside
            case If(otherwise=otherwise) if otherwise is not None:
                assigned = assigned | (behind[0] & behind[1])
            case _:
                pass
    return assigned
