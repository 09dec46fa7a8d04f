"""Groups by parts of their keys' hashes: the text of the loop over the rows.

A hash table of nearly as many groups as rows lies in no cache: each row waits for memory, and its pages take the system as long
again. So threads only write *contributions* (a key and what the row gives each accumulator), each to the part that its key's
hash says. A part's contributions lie in *chunks*, which threads take from one array as they need them. Then each part's groups
are made by one thread, without atomics, in a table that lies in its core's second cache, and become rows at once
(`operators.part_output`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gquery.errors import OperationalError
from gquery.kernels import ir
from gquery.kernels.bindings import StatePart
from gquery.kernels.code import Code
from gquery.operators.base import words_part
from gquery.operators.register_aggregation import row_contributions
from gquery.planner.aggregates import One

if TYPE_CHECKING:
    from gquery.planner.physical import Group


def written(sink: Group) -> list[int]:
    """The accumulators of which a contribution has a word, by their numbers; to others each row gives 1."""
    return [n for n, a in enumerate(sink.accumulators) if not (isinstance(a.input, One) and a.filter is a.arg is None)]


def contribution_words(sink: Group) -> int:
    """Words of 64 bits of a contribution: the key and what is written."""
    return 1 + len(written(sink))


def emit(sink: Group, key: ir.Expression, code: Code) -> None:
    """The lines that write the current row's contribution."""
    words = row_contributions(sink.accumulators, code)
    part = code.let(code.call("shr_u64", code.call("hash_i64", key), code.scalar(StatePart("part_shift"))))
    ends, parts = code.pointer("i64", StatePart("part_ends"), "s"), code.pointer("u32", StatePart("chunk_parts"), "s")
    taken = code.pointer("i64", StatePart("chunks_taken"), "s")
    site = code.site(OperationalError, "the room for groups is full", retry=True)
    contribution = code.let(code.call("next_contribution", ends, parts, taken, part, code.status(), site))
    with code.when(code.call("ge_i64", contribution, code.integer(0))):
        at = code.let(code.call("mul_i64", contribution, code.integer(contribution_words(sink))))
        code.do(code.call("store_i64", code.pointer("i64", words_part("i64"), "s"), at, key))
        for k, n in enumerate(written(sink), 1):
            word = sink.accumulators[n].word
            contributions = code.pointer(word, words_part(word), "s")
            code.do(code.call(f"store_{word}", contributions, code.call("add_i64", at, code.integer(k)), words[n]))
