"""Pieces of arrays on their way between a GPU and files, or memory that is not page-locked: through page-locked buffers, without
the interpreter, for whose lock the threads that move them would wait longer than for the bytes. Of CPUs alone.
"""

from __future__ import annotations

from gquery.kernels.primitives.python.integers import (
    add_i64,
    eq_i64,
    gt_i64,
    i64,
    lt_i64,
    mod_i64,
    mul_i64,
    shl_i64,
    sub_i64,
)
from gquery.kernels.primitives.python.memory import call_native, load_i64, load_word, read_file, store_i64
from gquery.kernels.primitives.python.values import Pointer

PIECES, COUNT, NEXT, STEP, STREAM, WAIT, COPY, RECORD, NATIVE, BUFFERS, BUFFER = range(11)
"""Words of a job: where its pieces lie, and how many there are; which is the next, and how much further the one behind it is, as
others move those between; the driver's stream; its functions that wait for an event, begin a copy, and record an event; the C
library's function that copies memory (to a GPU), or writes to a file (from one); how many buffers there are. From `BUFFER` on
come the address and the event of each."""
DEVICE, SIZE, FILE, START, PIECE = range(5)
"""Words of a piece: its address on the GPU, how many bytes, in which file, or `MEMORY`, and where they begin there. The last is
the number of words."""
MEMORY = -1
DONE, NO_BYTES = 0, -1
"""What moving ends with: all were moved, or the file has, or takes, fewer bytes of the next piece; above 0 it is the driver's
error."""


def send_pieces(job: Pointer) -> int:
    """Begin to copy pieces to a GPU, a buffer after the other."""
    turn, outcome = i64(0), i64(DONE)
    while lt_i64(load_i64(job, NEXT), load_i64(job, COUNT)) and eq_i64(outcome, DONE):
        slot = add_i64(BUFFER, shl_i64(mod_i64(turn, load_i64(job, BUFFERS)), 1))
        buffer, event = load_i64(job, slot), load_i64(job, add_i64(slot, 1))
        size, file, stream = _piece_word(job, SIZE), _piece_word(job, FILE), load_i64(job, STREAM)
        done, got = i64(0), i64(1)
        outcome = call_native(load_i64(job, WAIT), event, 0, 0, 0)
        if eq_i64(file, MEMORY) and eq_i64(outcome, DONE):
            got = call_native(load_i64(job, NATIVE), buffer, _piece_word(job, START), size, 0)
            done = size
        while lt_i64(done, size) and gt_i64(got, 0) and eq_i64(outcome, DONE):
            got = read_file(file, add_i64(buffer, done), sub_i64(size, done), add_i64(_piece_word(job, START), done))
            if gt_i64(got, 0):
                done = add_i64(done, got)
        if lt_i64(done, size) and eq_i64(outcome, DONE):
            outcome = i64(NO_BYTES)
        if eq_i64(outcome, DONE):
            outcome = call_native(load_i64(job, COPY), _piece_word(job, DEVICE), buffer, size, stream)
        if eq_i64(outcome, DONE):
            outcome = call_native(load_i64(job, RECORD), event, stream, 0, 0)
        if eq_i64(outcome, DONE):
            store_i64(job, NEXT, add_i64(load_i64(job, NEXT), load_i64(job, STEP)))
        turn = add_i64(turn, 1)
    return outcome


def receive_pieces(job: Pointer) -> int:
    """Write pieces of a GPU's memory, of which what makes them has ended, to files."""
    buffer, event, outcome = load_i64(job, BUFFER), load_i64(job, add_i64(BUFFER, 1)), i64(DONE)
    while lt_i64(load_i64(job, NEXT), load_i64(job, COUNT)) and eq_i64(outcome, DONE):
        size, stream = _piece_word(job, SIZE), load_i64(job, STREAM)
        done, got = i64(0), i64(1)
        outcome = call_native(load_i64(job, WAIT), event, 0, 0, 0)
        if eq_i64(outcome, DONE):
            outcome = call_native(load_i64(job, COPY), buffer, _piece_word(job, DEVICE), size, stream)
        if eq_i64(outcome, DONE):
            outcome = call_native(load_i64(job, RECORD), event, stream, 0, 0)
        if eq_i64(outcome, DONE):
            outcome = call_native(load_i64(job, WAIT), event, 0, 0, 0)
        while lt_i64(done, size) and gt_i64(got, 0) and eq_i64(outcome, DONE):
            from_there, to_there = add_i64(buffer, done), add_i64(_piece_word(job, START), done)
            got = call_native(load_i64(job, NATIVE), _piece_word(job, FILE), from_there, sub_i64(size, done), to_there)
            if gt_i64(got, 0):
                done = add_i64(done, got)
        if lt_i64(done, size) and eq_i64(outcome, DONE):
            outcome = i64(NO_BYTES)
        if eq_i64(outcome, DONE):
            store_i64(job, NEXT, add_i64(load_i64(job, NEXT), load_i64(job, STEP)))
    return outcome


def _piece_word(job: Pointer, word: int) -> int:
    """A word of the next piece."""
    at = add_i64(mul_i64(load_i64(job, NEXT), PIECE), word)
    return load_word(add_i64(load_i64(job, PIECES), shl_i64(at, 3)))
