"""Ranges of a file on their way to a GPU: into page-locked memory, and from there by the GPU's driver, without the interpreter.

A turn at the interpreter's lock is one for which other threads wait; a column of a thousand chunks would take thousands. Of CPUs
alone.
"""

from __future__ import annotations

from gquery.kernels.primitives.python.integers import (
    add_i64,
    eq_i64,
    gt_i64,
    i64,
    lt_i64,
    min_i64,
    mod_i64,
    mul_i64,
    ne_i64,
    neg_i64,
    shl_i64,
    sub_i64,
)
from gquery.kernels.primitives.python.memory import call_native, load_i64, load_word, read_file
from gquery.kernels.primitives.python.values import Pointer

FILE, RANGES, COUNT, STREAM, WAIT, COPY, RECORD, PIECE, BUFFERS, BUFFER = range(10)
"""Words of a job: the file; where its ranges lie, and how many there are; the driver's stream; its functions that wait for an
event, begin a copy to the GPU, and record an event; how many bytes a buffer has, and how many buffers there are. From `BUFFER` on
come the address and the event of each."""
TARGET, SIZE, START, RANGE = range(4)
"""Words of a range: the address on the GPU, how many bytes, and where in the file they begin. The last is the number of words.
Addresses rise."""
DONE, NO_BYTES = 1, 0
"""What `upload_ranges` ends with: all is on its way, or the file has fewer bytes; below 0 it is the driver's error, negated."""


def upload_ranges(job: Pointer) -> int:
    """Read ranges of a file and begin to copy them to a GPU, a buffer after the other; what lies between two of them there takes
    anything where one copy has both."""
    number, done, turn, outcome = i64(0), i64(0), i64(0), i64(DONE)
    while lt_i64(number, load_i64(job, COUNT)) and eq_i64(outcome, DONE):
        slot = add_i64(BUFFER, shl_i64(mod_i64(turn, load_i64(job, BUFFERS)), 1))
        buffer, event = load_i64(job, slot), load_i64(job, add_i64(slot, 1))
        error = call_native(load_i64(job, WAIT), event, 0, 0, 0)
        first = add_i64(_word(job, number, TARGET), done)
        used, going = i64(0), i64(1)
        while eq_i64(going, 1) and eq_i64(error, 0):
            at = sub_i64(add_i64(_word(job, number, TARGET), done), first)
            left = sub_i64(_word(job, number, SIZE), done)
            size = min_i64(left, sub_i64(load_i64(job, PIECE), at))
            going = i64(0)
            if gt_i64(size, 0):
                got = read_file(load_i64(job, FILE), add_i64(buffer, at), size, add_i64(_word(job, number, START), done))
                if lt_i64(got, 1):
                    return i64(NO_BYTES)
                used, done, going = add_i64(at, got), add_i64(done, got), i64(1)
                if eq_i64(got, left):
                    number, done = add_i64(number, 1), i64(0)
            if eq_i64(number, load_i64(job, COUNT)):
                going = i64(0)
        stream = load_i64(job, STREAM)
        if eq_i64(error, 0):
            error = call_native(load_i64(job, COPY), first, buffer, used, stream)
        if eq_i64(error, 0):
            error = call_native(load_i64(job, RECORD), event, stream, 0, 0)
        if ne_i64(error, 0):
            outcome = neg_i64(error)
        turn = add_i64(turn, 1)
    return outcome


def _word(job: Pointer, number: int, word: int) -> int:
    """A word of a range."""
    return load_word(add_i64(load_i64(job, RANGES), shl_i64(add_i64(mul_i64(number, RANGE), word), 3)))
