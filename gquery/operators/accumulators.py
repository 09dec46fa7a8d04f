"""Where a group's accumulators are while a kernel runs, and the lines that fold into them.

Group finds the number of a row's group; this module folds the row's words there. On a GPU the rows of few groups would wait
for each other at the same addresses of global memory, so groups that are numbered by their packed key, and few, are folded
in shared memory and flushed once: *private* columns of accumulators, one a thread, need no atomics; *block* columns, one or
several a block, are folded by shared atomics, which are many times as fast as global ones. Everything else is *global*.

Which groups have rows is told by a fold that counts all rows. Where no aggregate has one, a flag a group stands beside the
folds: it costs a store, a count would cost an atomic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from gquery.kernels.code import Code, StatePart
from gquery.operators.aggregates import Fold, emit_folds
from gquery.operators.reduce import identity_text

if TYPE_CHECKING:
    from gquery.planner.physical import Group

Place = Literal["private", "block", "global"]

PRIVATE_WORDS = 48  # 64-bit words of private state a thread: 128 threads of them fill 48 KB of shared memory
BLOCK_WORDS = 8192  # of shared state a block: 64 KB, what any GPU can give to one block
COPIED_WORDS = 2048  # so many the copies for neighbouring lanes may take: 16 KB, of which a processor holds eight
COPIES = 32  # lanes of a warp; more would not keep any two apart


def has_plain_count(folds: Sequence[Fold]) -> int | None:
    """The fold that counts every row of a group, if there is one: it tells which groups exist."""
    return next((n for n, f in enumerate(folds) if f.what == "one" and f.arg is None and f.filter is None), None)


def is_flagged(sink: Group) -> bool:
    """Whether flags tell which groups of a directly addressed state have rows."""
    return sink.layout == "direct" and has_plain_count(sink.folds) is None


def _width(sink: Group) -> int:
    """Words of state a group."""
    return len(sink.folds) + is_flagged(sink)


def place_of(sink: Group, target: str) -> Place:
    """Where the accumulators are while a kernel runs."""
    if target != "cuda" or sink.layout != "direct":
        return "global"
    assert sink.packing is not None
    words = sink.packing.size * _width(sink)
    return "private" if words <= PRIVATE_WORDS else "block" if words <= BLOCK_WORDS else "global"


def _copies(sink: Group) -> int:
    """How often a block has the accumulators of a group: a power of two."""
    assert sink.packing is not None
    copies = 1
    while copies < COPIES and 2 * copies * sink.packing.size * _width(sink) <= COPIED_WORDS:
        copies *= 2
    return copies


def shared_words(sink: Group, target: str) -> int:
    """64-bit words of shared memory, of a thread (private) or of a block, for the launch."""
    assert sink.packing is not None or sink.layout == "rows"
    match place_of(sink, target):
        case "private":
            return sink.packing.size * _width(sink)  # type: ignore[union-attr]
        case "block":
            return sink.packing.size * _width(sink) * _copies(sink)  # type: ignore[union-attr]
        case "global":
            return 0


# ---- text -----------------------------------------------------------------------------------------------------------


def _identity(fold: Fold, code: Code) -> str:
    """The identity's 64 bits."""
    return code.call("i64", "0") if fold.word == "f64" else identity_text(fold, code)  # 0.0 has no bit set


def begin(sink: Group, code: Code) -> None:
    """Identities in shared memory, before the first row."""
    match place_of(sink, code.target):
        case "private":
            _begin_private(sink, code)
        case "block":
            _begin_block(sink, code)
        case "global":
            pass


def fold(sink: Group, slot: str, code: Code) -> None:
    """The lines that fold the current row into the group with the number ``slot``."""
    match place_of(sink, code.target):
        case "private":
            _fold_private(sink, slot, code)
        case "block":
            _fold_block(sink, slot, code)
        case "global":
            _fold_global(sink, slot, code)


def end(sink: Group, code: Code) -> None:
    """What is in shared memory goes into the state, after the last row."""
    match place_of(sink, code.target):
        case "private":
            _end_private(sink, code)
        case "block":
            _end_block(sink, code)
        case "global":
            pass


def _state(n: int, fold: Fold, code: Code) -> str:
    return code.pointer(fold.word, StatePart(f"fold{n}"), "s")


def _touched(code: Code) -> str:
    return code.pointer("u8", StatePart("touched"), "s")


def _fold_global(sink: Group, slot: str, code: Code) -> None:
    if is_flagged(sink):
        code.line(code.call("store_u8", _touched(code), slot, code.call("i64", "1")))

    def into(n: int, fold: Fold, text: str) -> None:
        code.line(code.call(f"fold_{fold.op}_{fold.word}", _state(n, fold, code), slot, text))

    emit_folds(sink.folds, code, into)


# ---- private: word ``slot * width + n`` of the thread ----


def _private_word(sink: Group, slot: str, n: int, code: Code) -> str:
    place = code.call("mul_i64", code.call("i64", slot), code.call("i64", str(_width(sink))))
    return code.call("add_i64", place, code.call("i64", str(n)))


def _begin_private(sink: Group, code: Code) -> None:
    assert sink.packing is not None
    code.uses_private = True
    code.prologue.append(f"for g in range({code.constant(sink.packing.size)}):")
    for n, fold in enumerate(sink.folds):
        word = _private_word(sink, "g", n, code)
        code.prologue.append(f"    {code.call('private_init', word, _identity(fold, code))}")
    if is_flagged(sink):
        word = _private_word(sink, "g", len(sink.folds), code)
        code.prologue.append(f"    {code.call('private_init', word, code.call('i64', '0'))}")


def _fold_private(sink: Group, slot: str, code: Code) -> None:
    if is_flagged(sink):
        word = _private_word(sink, slot, len(sink.folds), code)
        code.line(code.call("private_init", word, code.call("i64", "1")))

    def into(n: int, fold: Fold, text: str) -> None:
        code.line(code.call(f"private_{fold.op}_{fold.word}", _private_word(sink, slot, n, code), text))

    emit_folds(sink.folds, code, into)


def _end_private(sink: Group, code: Code) -> None:
    assert sink.packing is not None
    group = code.call("i64", "g")
    code.epilogue.append(f"for g in range({code.constant(sink.packing.size)}):")
    for n, fold in enumerate(sink.folds):
        word, state = _private_word(sink, "g", n, code), _state(n, fold, code)
        code.epilogue.append(f"    {code.call(f'private_flush_{fold.op}_{fold.word}', word, state, group)}")
    if is_flagged(sink):
        word = _private_word(sink, "g", len(sink.folds), code)
        code.epilogue.append(f"    {code.call('private_flush_touch', word, _touched(code), group)}")


# ---- block: fold n has the words from ``n * size`` on, ``size = groups * copies``; flags behind the folds ----


def _begin_block(sink: Group, code: Code) -> None:
    assert sink.packing is not None
    code.uses_block = True
    copies = _copies(sink)
    code.prologue.append(f"size = {code.call('i64', code.constant(sink.packing.size * copies))}")
    code.prologue.append(f"copies = {code.call('i64', code.constant(copies))}")
    for n, fold in enumerate(sink.folds):
        code.prologue.append(code.call("shared_fill", _first(n, code), "size", _identity(fold, code)))
    if is_flagged(sink):
        code.prologue.append(code.call("shared_fill", _first(len(sink.folds), code), "size", code.call("i64", "0")))
    code.prologue.append(code.call("shared_begin"))


def _first(n: int, code: Code) -> str:
    number = code.call("i64", str(n))
    return code.call("mul_i64", "size", number) if n else number


def _fold_block(sink: Group, slot: str, code: Code) -> None:
    if is_flagged(sink):
        code.line(code.call("shared_touch", _first(len(sink.folds), code), slot))
    place = code.let(code.call("shared_place", slot, "copies"))

    def into(n: int, fold: Fold, text: str) -> None:
        code.line(code.call(f"shared_{fold.op}_{fold.word}", _first(n, code), "size", place, text))

    emit_folds(sink.folds, code, into)


def _end_block(sink: Group, code: Code) -> None:
    assert sink.packing is not None
    code.epilogue.append(code.call("shared_end"))
    for n, fold in enumerate(sink.folds):
        flush = f"shared_flush_{fold.op}_{fold.word}"
        code.epilogue.append(code.call(flush, _first(n, code), "size", "copies", _state(n, fold, code)))
    if is_flagged(sink):
        groups = code.call("i64", code.constant(sink.packing.size))
        first = _first(len(sink.folds), code)
        code.epilogue.append(code.call("shared_flush_touch", first, groups, _touched(code)))
