"""Prefetching: rows are looked up in a table of row numbers a block at a time, so that they wait for memory together.

A row of such a table waits three times: for its slot, for the place of the key of the row that stands there, and for the key's
characters. Each load needs what the one before it has found, so a processor that takes a row after the other has little else to
do meanwhile: it spends four fifths of the time of a GROUP BY of texts there. Here a block of rows is gone over once for each
of these loads, which asks for what the next one needs. The rest of the rows' work then finds all of it in the nearest cache.

The places of the slots are kept from the first of these loops, so that nothing is hashed twice. What is asked for and never
needed does no harm: another thread may enter a row meanwhile, and a slot may hold another key. Only the lowered loop for a
processor has this form; the kernel's text, which other compilers take, has not.
"""

from __future__ import annotations

from collections.abc import Mapping

from gquery.kernels.ir.expressions import HIGH, LOW, ROW, Call, Constant, Expression, LeafMap, Load, Name, Operation
from gquery.kernels.ir.statements import Block, For, If, Let, Statement, Store, While
from gquery.kernels.ir.walk import expressions, over, read, statements, values
from gquery.kernels.marks import PURE, is_computed
from gquery.kernels.unroll import row_names
from gquery.runtime.records import dataclass

KEPT = Name("block_slots")
"""The parameter that points to a word (int64) a row of a block, which is the thread's own."""

_FIRST, _END = Name("block"), Name("block_end")
_HASHES = frozenset(["hash_str", "hash_i64", "hash_f64", "hash_i128", "hash_combine"])
_TEXTS = frozenset(["string32", "string64", "view"])
_FUNCTIONS = PURE | _HASHES | _TEXTS | frozenset(["load_i128"])


@dataclass(frozen=True)
class Lookup:
    """How a loop's body begins that looks each row up: the statements that compute the place ``at`` of its first slot, the slot's
    content ``found``, and, where that is no 0, the number ``other`` of a row and the loads of its keys. ``rest`` is the body
    behind the place. ``beside``: arrays of which a row that is found at that place reads the same place."""

    computed: Block
    at: Name
    slots: Name
    found: Let
    other: Let
    loads: Block
    rest: Block
    beside: tuple[Name, ...] = ()


def lookup(body: Block) -> Lookup | None:
    """The look-up that a loop's body begins with, if what comes before it can be computed for any row; else None. Rows are
    entered into the table, or it is probed."""
    walk = next((n for n, s in enumerate(body) if isinstance(s, While)), len(body))
    begun = _entering(body[walk:]) or _probing(body, walk)
    if begun is None:
        return None
    found, other, then = begun
    slots, at = _slot(found)
    place = max((n for n, s in enumerate(body[:walk]) if isinstance(s, Let) and s.target == at), default=-1)
    computed = body[: place + 1]
    if slots.role not in ("state", "build") or not computed or not all(is_computed(s, _FUNCTIONS) for s in computed):
        return None
    loads = tuple([x for x in statements(then) if (p := _place(x)) and p[1] == other.target])
    return Lookup(computed, at, slots, found, other, loads, body[place + 1 :], _beside(body[walk:], at)) if loads else None


def _beside(behind: Block, at: Name) -> tuple[Name, ...]:
    """The arrays of a table that are read behind the search, at the place that it has ended with."""
    match behind:
        case (While(body=searched), *then):
            ends = {s.target for s in statements(searched) if isinstance(s, Let) and s.value == at}
            every = (x for s in statements(then) for e in values(s) for x in expressions(e))
            return tuple(dict.fromkeys([x.pointer for x in every if isinstance(x, Load) and x.index in ends]))
    return ()


def _entering(behind: Block) -> tuple[Let, Let, Block] | None:
    """The load of a slot, the number of the row in it, and what is done with that, of a loop whose every round loads a slot."""
    match behind:
        case (While(body=(Let(value=Call("i64", (Load(_, Name()),))) as found, *rest)), *_):
            for s in rest:
                match s:
                    case If(then=(Let(value=Call("sub_i64", (Name() as value, _))) as other, *_)) if value == found.target:
                        return found, other, s.then
                    case _:
                        pass
    return None


def _probing(body: Block, walk: int) -> tuple[Let, Let, Block] | None:
    """The same of a loop that goes on while there is a row in the slot, which is loaded before it and at the end of a round."""
    match body[max(walk - 1, 0) : walk + 1]:
        case (
            Let(value=Call("i64", (Load(_, Name()),))) as found,
            While(Call("ne_i64", (Name() as value, _)), (Let(value=Call("sub_i64", (Name() as row, _))) as other, *_) as then),
        ) if found.target == value == row:
            return found, other, then
    return None


def _slot(found: Let) -> tuple[Name, Name]:
    """The table, and the place of a slot in it, of the statement that loads the slot."""
    match found.value:
        case Call(_, (Load(slots, Name() as at),)):
            return slots, at
    raise AssertionError("a slot is loaded from a place")


def looked_up_loop(found: Lookup, rows: int, elements: Mapping[str, str]) -> Block:
    """The loop over the rows ``lo`` to ``hi`` in blocks of ``rows``; `KEPT` has room for as many words. ``elements`` are the
    types of what pointers point to, by name."""
    size = Call("uint64", (Constant(rows),))
    end = Call("min_i64", (_integer(Operation(_FIRST, "+", size)), _integer(HIGH)))
    body: list[Statement] = [Let(_END, Call("row_index", (end,)))]
    slot = _asked(found.slots, found.at, 1, elements)
    kept = Store(Call("store_i64", (KEPT, _number(ROW), found.at)))
    beside = [_asked(pointer, found.at, 1, elements) for pointer in found.beside]
    body.append(_each(0, (*_live(found.computed, {found.at}), kept, slot, *beside)))
    wanted = [_asked(*place, elements) for load in found.loads if (place := _place(load))]
    body.append(_each(1, _of_found(found, tuple(wanted))))
    texts: list[Statement] = []
    for load in found.loads:
        match load:
            case Let(target, Call(function)) if function in _TEXTS:
                texts += [load, Store(Call("prefetch_text", (Call("str_address", (target,)),)))]
    if texts:
        body.append(_each(2, _of_found(found, tuple(texts))))
    needed = set(read(found.rest))
    before = _live(found.computed[:-1], needed)
    body.append(For(ROW, _FIRST, _END, (*before, _kept(found), *found.rest)))
    body.append(Let(_FIRST, _END))
    return (Let(_FIRST, Call("uint64", (LOW,))), While(Operation(_FIRST, "<", HIGH), tuple(body)))


def _each(number: int, block: Block) -> For:
    """A loop of the block's rows over statements, with names of its own."""
    renamed: LeafMap = row_names(number)
    row = renamed(ROW)
    assert isinstance(row, Name)
    return For(row, _FIRST, _END, over(block, renamed))


def _of_found(found: Lookup, block: Block) -> Block:
    """Statements for the row that stands in the first slot, if one does."""
    is_taken = Call("ne_i64", (found.found.target, Call("i64", (Constant(0),))))
    return (_kept(found), found.found, If(is_taken, (found.other, *block)))


def _kept(found: Lookup) -> Let:
    return Let(found.at, Call("load_i64", (KEPT, _number(ROW))))


def _live(block: Block, needed: set[Name]) -> Block:
    """Those of the statements, which do nothing but compute, whose results are needed."""
    kept: list[Statement] = []
    for s in reversed(block):
        sets = {x.target for x in statements((s,)) if isinstance(x, Let)}
        if not sets.isdisjoint(needed):
            kept.insert(0, s)
            needed = needed | set(read((s,)))
    return tuple(kept)


def _place(s: Statement) -> tuple[Name, Name, int] | None:
    """The pointer, the row and a row's number of elements of a statement that loads a stored column; None for any other."""
    match s:
        case Let(value=Call("string32" | "string64", (Name() as pointer, _, Name() as row))):
            return pointer, row, 1
        case Let(value=Call("view" | "load_i128", (Name() as pointer, Name() as row))):
            return pointer, row, 2
        case Let(value=Call("i64" | "f64" | "truth", (Load(pointer, Name() as row),))):
            return pointer, row, 1
        case _:
            return None


def _asked(pointer: Name, row: Name, count: int, elements: Mapping[str, str]) -> Store:
    """Ask for the memory of a row, which has so many elements."""
    width = count * int(elements[pointer.id][1:]) // 8
    return Store(Call("prefetch_bytes", (pointer, Call("mul_i64", (row, Call("i64", (Constant(width),)))))))


def _number(row: Name) -> Expression:
    return _integer(Operation(row, "-", _FIRST))


def _integer(e: Expression) -> Call:
    return Call("i64", (e,))
