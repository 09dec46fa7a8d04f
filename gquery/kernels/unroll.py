"""The unrolled loop: several rows an iteration, with hoisted loads of columns.

A loop that loads a column when it first needs it waits for memory once a column; loading the columns of several rows
first keeps many loads in flight. That pays for columns of which nearly every sector of memory is needed
(`Code.hoisted`), also behind a filter, if they are narrow. It is made from the statements of the lazy body: these loads
move to the front, and everything is written once a row with the row's own names. What is long becomes a function that
each row calls, because a compiler takes its time for each copy of a text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from gquery import tuning
from gquery.expression.facts import BITMAP_BITS
from gquery.expression.frozen import Serializable
from gquery.kernels.ir.expressions import ROW, Call, Constant, Expression, Leaf, LeafMap, Load, Name, Tuple
from gquery.kernels.ir.statements import Block, Function, Let, Return, Statement, Store, Unpack, line_count, printed
from gquery.kernels.ir.walk import assigned, blocks, over, read, statements, with_blocks, with_calls
from gquery.runtime.records import dataclass

_FUNCTION = "do_row"
_ALL_LANES = Call("i64", (Constant((1 << BITMAP_BITS) - 1),))
_LOADS = frozenset(["i64", "f64", "truth"])  # what makes a register of an element
_NUMBER = Call("i64", (ROW,))
PREVIOUS_ROW = Call("sub_i64", (_NUMBER, Call("from_bool", (Call("ne_i64", (_NUMBER, Call("i64", (Constant(0),)))),))))
"""The row before the one at hand; the first row itself."""
_PLACES: tuple[Expression, ...] = (ROW, Call("word_index", (ROW,)), PREVIOUS_ROW)  # known before anything is loaded


@dataclass(frozen=True)
class RowFunction:
    """What is done for each row of an unrolled loop, as a function. ``results`` are variables of the thread that it
    changes."""

    arguments: tuple[Name, ...]
    results: tuple[Name, ...]
    body: Block

    @property
    def call(self) -> Statement:
        """The statement that calls it, with the names of a single row."""
        return called(_FUNCTION, self.arguments, self.results)

    @property
    def function(self) -> Function:
        """Its definition."""
        return Function(_FUNCTION, self.arguments, (*self.body, *returned(self.results)))

    @property
    def text(self) -> tuple[str, ...]:
        """The lines of the function's definition."""
        return self.function.lines


@dataclass(frozen=True)
class UnrolledLoop(Serializable):
    """A kernel's work for ``rows`` rows at once, their indices in ``i0``, ``i1``, ...; ``single`` is the same for the one row in
    ``i``, where that is shorter than the kernel's body. Both may call ``function``."""

    BLOCKS = "body", "single", "function"

    rows: int
    body: Block
    single: Block
    function: RowFunction | None

    @property
    def text(self) -> tuple[str, ...]:
        """As a reader wants to see it."""
        function = () if self.function is None else (*self.function.text, "")
        return (*function, f"{self.rows} rows at once:", *printed(self.body, 1))


def unrolled(body: Block, rows: int, hoisted: Collection[Name], prologue: Block = ()) -> UnrolledLoop:
    """``body`` for ``rows`` rows at once; the variables of ``hoisted`` come first. ``prologue`` are the statements
    before the loop, whose variables the rows share.

    >>> from gquery.kernels.ir.read import read_lines
    >>> body = read_lines("v0 = i64(c0[i])", "if lt_i64(v0, k0):", "    n = add_i64(n, v0)")
    >>> print("\\n".join(printed(unrolled(body, 2, {Name("v0", "row")}).body)))
    v0_0 = i64(c0[i0])
    v0_1 = i64(c0[i1])
    if lt_i64(v0_0, k0):
        n = add_i64(n, v0_0)
    if lt_i64(v0_1, k0):
        n = add_i64(n, v0_1)
    """
    loads, rest = split_loads(body, hoisted)
    function = row_function(rest, assigned(prologue))
    single: Block = ()
    if function is not None:
        rest = (function.call,)
        single = (*loads, *rest)
    rows_ = [row_names(row) for row in range(rows)]
    made = [s for load in loads for names in rows_ for s in over((load,), names)]
    made += [s for names in rows_ for s in of_whole_warps(over(rest, names))]
    return UnrolledLoop(rows, tuple(made), single, function)


def of_whole_warps(block: Block) -> Block:
    """The statements where all lanes of a warp have a row, as in an unrolled loop: who votes need not be found out.

    >>> from gquery.kernels.ir.read import read_lines
    >>> print(*printed(of_whole_warps(read_lines("v0 = ballot(members(i, hi), keep)"))))
    v0 = ballot(i64(4294967295), keep)
    """
    return with_calls(block, _by_all)


def _by_all(call: Call) -> Call:
    return Call("ballot", (_ALL_LANES, *call.arguments[1:])) if call.function == "ballot" else call


def row_function(block: Block, shared: Iterable[Name]) -> RowFunction | None:
    """Statements for a row as a function; ``shared`` are variables that outlive the row. None where they are few.

    >>> from gquery.kernels.ir.read import read_lines
    >>> body = read_lines("v1 = add_i64(v0, k0)", *["v1 = mul_i64(v1, i64(c1[i]))"] * 8, "n = add_i64(n, v1)")
    >>> printed([row_function(body, [Name("n"), Name("m")]).call])
    ['n = do_row(v0, k0, c1, i, n)']
    """
    if line_count(block) < tuning.kernel_texts.function_lines:
        return None
    stored = assigned(block)
    results = tuple(sorted(stored.keys() & set(shared), key=lambda name: name.id))
    given = tuple(name for name in dict.fromkeys(read(block)) if name not in stored)
    return RowFunction((*given, *results), results, block)


def called(function: str, arguments: Sequence[Expression], results: tuple[Name, ...]) -> Statement:
    """The statement that calls a function of a kernel's module and takes what it returns."""
    call = Call(function, tuple(arguments))
    match results:
        case ():
            return Store(call)
        case (only,):
            return Let(only, call)
        case _:
            return Unpack(results, call)


def returned(results: tuple[Name, ...]) -> Block:
    """The end of a function that returns variables, if any."""
    return (Return(results[0] if len(results) == 1 else Tuple(results)),) if results else ()


def split_loads(body: Block, hoisted: Collection[Name], places: Sequence[Expression] = _PLACES) -> tuple[Block, Block]:
    """The loads of the variables ``hoisted`` from these places of arrays, wherever they stand, and the body without them."""
    loads: list[Statement] = []
    rest = _without_loads(body, hoisted, places, loads)
    return tuple(loads), rest


def loads_at(body: Block, row: Name) -> frozenset[Name]:
    """The variables that are loaded from place ``row`` of arrays."""
    return frozenset(
        s.target
        for s in statements(body)
        if isinstance(s, Let) and isinstance(s.value, Call) and s.value.function in _LOADS
        and [a.index for a in s.value.arguments if isinstance(a, Load)] == [row]
    )  # fmt: skip


def _without_loads(
    block: Block, hoisted: Collection[Name], places: Sequence[Expression], loads: list[Statement]
) -> Block:
    """The block without loads that move to the front, which are appended to ``loads``."""
    out: list[Statement] = []
    for s in block:
        match s:
            case Let(target, Call(function, (Load(index=index),))) if (
                target in hoisted and function in _LOADS and index in places
            ):
                loads.append(s)
            case _:
                out.append(with_blocks(s, [_without_loads(inner, hoisted, places, loads) for inner in blocks(s)]))
    return tuple(out)


def row_names(row: int) -> LeafMap:
    """Gives the names of one row of several: a row's own variables and its index are numbered."""
    known: dict[Leaf, Leaf] = {}

    def renamed(leaf: Leaf) -> Leaf:
        if not isinstance(leaf, Name) or leaf.role != "row":
            return leaf
        found = known.get(leaf)
        if found is None:
            found = known[leaf] = Name(f"i{row}" if leaf == ROW else f"{leaf.id}_{row}", "row")
        return found

    return renamed
