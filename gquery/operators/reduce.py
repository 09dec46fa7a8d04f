"""Reduce: aggregates without keys. Each thread accumulates into variables; one row comes out, also for no input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gquery.device.array import Array
from gquery.device.device import cpu_device
from gquery.kernels import ir
from gquery.kernels.code import Code
from gquery.operators.aggregates import emit_accumulate
from gquery.operators.base import Frame, Launch, SinkRun, SinkState, make_column, narrow, words_part
from gquery.operators.finalize import finalize_aggregate
from gquery.operators.materialize import contiguous
from gquery.planner.aggregates import Accumulator
from gquery.planner.physical import Reduce
from gquery.runtime.records import dataclass

# ---- text -----------------------------------------------------------------------------------------------------------


def begin(accumulators: Sequence[Accumulator], code: Code) -> None:
    """Write the statements before the loop: each accumulator is a variable with its identity."""
    for n, accumulator in enumerate(accumulators):
        code.prologue.append(ir.Let(accumulated(n), identity(accumulator, code)))


def accumulated(n: int) -> ir.Name:
    """The thread's variable of accumulator ``n``."""
    return ir.Name(f"acc{n}")


def identity(accumulator: Accumulator, code: Code) -> ir.Expression:
    """The value that changes no other one, as an expression."""
    if accumulator.op == "add":
        return code.call(accumulator.word, ir.Constant(0 if accumulator.word == "i64" else 0.0))
    return code.constant(accumulator.identity)


def emit(accumulators: Sequence[Accumulator], code: Code) -> None:
    """Write the statements that accumulate the current row into the variables."""

    def into(n: int, accumulator: Accumulator, word: ir.Expression) -> None:
        total = accumulated(n)
        code.set(total, code.call(f"{accumulator.op}_{accumulator.word}", total, word))

    emit_accumulate(accumulators, code, into)


def end(accumulators: Sequence[Accumulator], code: Code) -> None:
    """Write the statements behind the loop: each variable goes into the state, against other threads."""
    for n, accumulator in enumerate(accumulators):
        state = code.pointer(accumulator.word, words_part(accumulator.word), "s")
        call = code.call(f"reduce_{accumulator.op}_{accumulator.word}", state, ir.Constant(n), accumulated(n))
        code.epilogue.append(ir.Store(call))


# ---- run time -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ReduceState(SinkState):
    """A word an accumulator, on the run's device, owned by the run."""

    words_i64: Array

    @property
    def words_f64(self) -> Array:
        """The same words as float64."""
        return self.words_i64.view(np.float64)


class ReduceRun(SinkRun[ReduceState]):
    """One word an accumulator for each worker."""

    def __init__(self, sink: Reduce, launch: Launch, label: str) -> None:
        super().__init__(launch, label)
        self.sink = sink

    def make_state(self) -> ReduceState:
        """The identities of all accumulators."""
        identities = [f.identity if f.word == "i64" else 0 for f in self.sink.accumulators]  # 0.0 has no bit set
        if any(identities):
            words = self.device.from_host(np.array(identities, np.int64))
        else:
            words = self.device.zeros(max(len(identities), 1), np.int64)
        return ReduceState(words)

    def finalize(self) -> Frame:
        """The frame of one row, on the host. OutOfRangeError where a result does not fit its type."""
        host = [self.device.to_host(s.words_i64) for s in self.states]
        words = []
        for n, accumulator in enumerate(self.sink.accumulators):
            parts = np.array([w.view(np.int64 if accumulator.word == "i64" else np.float64)[n] for w in host])
            words.append(np.array([combine(accumulator.op, parts)], dtype=parts.dtype))
        device = cpu_device()
        columns = {}
        for column, plan in self.sink.aggregates:
            values, validity = finalize_aggregate(plan, words, np)
            physical_type = plan.result.physical_type
            made = make_column(plan.result, physical_type, narrow(values, physical_type), validity, 1, device)
            columns[column.id] = contiguous(made, device if not self.device.is_cuda else self.device)
        return Frame(columns, 1)


def combine(op: str, parts: Array) -> Array:
    """The combination of the words of several states (along the first axis)."""
    match op:
        case "add":
            total: Array = parts.sum(axis=0, dtype=parts.dtype)
        case "min":
            total = parts.min(axis=0)
        case _:
            total = parts.max(axis=0)
    return total
