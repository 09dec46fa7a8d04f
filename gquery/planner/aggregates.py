"""Aggregates as words of state: the accumulators that rows change, and what becomes of them.

What an aggregate accumulates, and how its result is made of that, is declared (`functions.aggregate_record`). Here each of its
accumulators is given words by what is known of the values, which an accumulator adds up, or takes the minimum or maximum of: one
64-bit word a row. They are shared: ``sum(x)``, ``avg(x)`` and ``count(x)`` need two between them. Sums are exact: a sum that
bounds prove to fit 64 bits is one word, any other is split into words of 32 bits (of 16, where the rows may be more than 2^31),
whose sums cannot overflow; `operators.finalize` passes their carries on. An identity never stands for NULL: whether a group had a
value is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal, assert_never

from gquery.errors import NotSupportedError
from gquery.expression.expr import AggregateCall, Expr
from gquery.expression.facts import INT64_BITS, INT128_BITS, LARGE_ROWS, SMALL_SUM_WORD_BITS, SUM_WORD_BITS
from gquery.expression.frozen import frozen_open
from gquery.expression.types import BIGINT, DOUBLE, INT64, Bounds, DType, Register, type_bounds
from gquery.functions import declaration
from gquery.functions.aggregate_record import (
    Accumulate,
    Accumulated,
    AtEnd,
    Count,
    Extreme,
    Finalize,
    Mean,
    OneValue,
    State,
    Total,
)
from gquery.functions.certain import never_null
from gquery.kernels.values import ValueProperties
from gquery.runtime.records import cached_property

Op = Literal["add", "min", "max"]

# ---- what a row gives an accumulator ---------------------------------------------------------------------------------


@frozen_open
class One:
    """1: rows are counted."""


@frozen_open
class Whole:
    """The value itself; 1 for TRUE."""


@frozen_open
class Ordered:
    """A DOUBLE as an integer of the same order."""


@frozen_open
class Piece:
    """The piece ``number`` of ``bits`` bits of an integer, low first; the last one carries the sign."""

    number: int
    bits: int


@frozen_open
class Address:
    """Where a text lies, and its first characters."""


@frozen_open
class Length:
    """How long a text is."""


Input = One | Whole | Ordered | Piece | Address | Length


@frozen_open
class Accumulator:
    """One word of state: ``op`` over the ``input`` that ``arg`` gives, for rows where that is not NULL and ``filter`` is TRUE."""

    op: Op
    word: Literal["i64", "f64"]
    input: Input
    arg: Expr | None = None
    filter: Expr | None = None

    @property
    def identity(self) -> int | float:
        match self.op:
            case "add":
                return 0 if self.word == "i64" else 0.0
            case "min":
                return INT64.high
            case "max":
                return INT64.low


# ---- what a group has of an aggregate --------------------------------------------------------------------------------


@frozen_open
class Word:
    """A value that is one word: by the number of its accumulator."""

    word: int


@frozen_open
class OrderedWord:
    """A DOUBLE that is kept in order."""

    word: int


@frozen_open
class TextWords:
    """A text: where it lies and its length."""

    address: int
    length: int


@frozen_open
class SumOfDoubles:
    """A sum that may differ in its last bits."""

    word: int


@frozen_open
class ExactSum:
    """A sum of integers in one word, or in words of so many ``bits``."""

    words: tuple[int, ...]
    bits: int = 0


GroupWords = Word | OrderedWord | TextWords | SumOfDoubles | ExactSum


def words_of(state: GroupWords) -> tuple[int, ...]:
    """The accumulators of a value, by their numbers."""
    match state:
        case Word(word) | OrderedWord(word) | SumOfDoubles(word):
            return (word,)
        case TextWords(address, length):
            return address, length
        case ExactSum(words):
            return words
        case _:
            assert_never(state)


@frozen_open
class AggregatePlan:
    """An aggregate as the expression that ``finalize`` is over ``states``. ``count`` is the accumulator that counts its values;
    None where every group has one."""

    call: AggregateCall
    finalize: Finalize
    states: tuple[GroupWords, ...]
    count: int | None
    arg: ValueProperties | None
    result: ValueProperties

    @cached_property
    def accumulators(self) -> tuple[int, ...]:
        """The accumulators of all states."""
        return tuple([n for state in self.states for n in words_of(state)])

    @property
    def sum_word_bits(self) -> int:
        """The bits of each word of a sum of several; 0 where there is none."""
        return max([state.bits for state in self.states if isinstance(state, ExactSum)], default=0)

    @property
    def is_text(self) -> bool:
        """Whether its state says where a text lies."""
        return any(isinstance(state, TextWords) for state in self.states)


def plan_aggregates(
    calls: Sequence[AggregateCall],
    known: Sequence[ValueProperties | None],
    rows: int | None,
    grouped: bool,
    results: Sequence[ValueProperties] = (),
) -> tuple[tuple[Accumulator, ...], tuple[AggregatePlan, ...]]:
    """The accumulators that a list of aggregates needs together, and each one's plan. ``known[i]`` tells of the argument of call
    i, ``rows`` is a proved limit of the rows of one group (None: none), ``results`` are those of plans that were made before."""
    accumulators = _Accumulators()
    plans = []
    for n, (call, arg) in enumerate(zip(calls, known, strict=True)):
        made = declaration(call).accumulated
        if made is None:
            raise NotSupportedError(f"aggregate {call.function}")
        plans.append(_plan(made, _Use(call, arg, rows, grouped, accumulators), results[n] if results else None))
    return tuple(accumulators.all), tuple(plans)


class _Accumulators:
    """The accumulators of a list of aggregates, each once. The words of a sum are asked for together: of one argument their
    number tells which they are."""

    __slots__ = ("_indices", "all")

    def __init__(self) -> None:
        self.all: list[Accumulator] = []
        self._indices: dict[tuple[object, ...], tuple[int, ...]] = {}

    def of(
        self, op: Op, word: Literal["i64", "f64"], inputs: tuple[Input, ...], arg: Expr | None, only: Expr | None
    ) -> tuple[int, ...]:
        """The numbers of accumulators that have all but their inputs in common."""
        key = (op, word, type(inputs[0]), len(inputs), arg, only)
        found = self._indices.get(key)
        if found is None:
            first = len(self.all)
            self.all += [Accumulator(op, word, one, arg, only) for one in inputs]
            found = self._indices[key] = tuple(range(first, len(self.all)))
        return found


class _Use:
    """An aggregate that is planned: its argument and what is known of it, the rows of a group at most, whether a group may have
    no value, and where accumulators go."""

    __slots__ = ("accumulators", "arg", "call", "can_be_empty", "rows")

    def __init__(
        self,
        call: AggregateCall,
        arg: ValueProperties | None,
        rows: int | None,
        grouped: bool,
        accumulators: _Accumulators,
    ) -> None:
        self.call, self.arg, self.rows, self.accumulators = call, arg, rows, accumulators
        self.can_be_empty = call.filter is not None or not grouped or (arg is not None and arg.nullable)

    @property
    def known(self) -> ValueProperties:
        """What is known of the argument, of an aggregate that has one."""
        assert self.arg is not None
        return self.arg

    def accumulate(self, op: Op, register: Literal["i64", "f64"], *inputs: Input) -> tuple[int, ...]:
        """The indices of accumulators of the argument."""
        return self.accumulators.of(op, register, inputs, self.call.args[0], self.call.filter)

    def _count(self, e: Expr | None) -> int:
        """The index of the accumulator that counts the values of ``e``, or rows."""
        return self.accumulators.of("add", "i64", (ONE,), e, self.call.filter)[0]

    def count_values(self) -> int:
        """The index of the accumulator that counts the argument's values: the rows, where it has no NULL."""
        e = self.call.args[0] if self.known.nullable else None
        return self._count(e)

    def count_alone(self) -> int:
        """The same where nothing else looks at the argument: what fails has no count, so it is looked at unless it surely has
        a value."""
        e = self.call.args[0] if self.call.args else None
        return self._count(None if e is None or never_null(e) else e)


ONE, WHOLE, ORDERED, ADDRESS, LENGTH = One(), Whole(), Ordered(), Address(), Length()


def _plan(made: Accumulated, a: _Use, result: ValueProperties | None) -> AggregatePlan:
    match made.finalize:
        case State():
            assert made.only is not None
            return _one(made, made.only, a, result)
        case Mean():
            states = tuple(_words(one, a) for one in made.accumulators)
            counting = states[made.finalize.count.number]
            assert isinstance(counting, Word)
            result = result or ValueProperties(a.call.dtype, None, a.can_be_empty)
            return AggregatePlan(a.call, made.finalize, states, counting.word, a.arg, result)
        case _:
            assert_never(made.finalize)


def _one(made: Accumulated, one: Accumulate, a: _Use, result: ValueProperties | None) -> AggregatePlan:
    """An aggregate whose result one accumulator is."""
    match one:
        case Count():
            result = result or ValueProperties(BIGINT, Bounds(0, INT64.high if a.rows is None else a.rows), False)
            return AggregatePlan(a.call, made.finalize, (Word(a.count_alone()),), None, a.arg, result)
        case Total():
            states = (_words(one, a),)
            count = a.count_values() if a.can_be_empty else None
            result = result or _sum_properties(a.call.dtype, a.known, a.rows, a.can_be_empty)
            return AggregatePlan(a.call, made.finalize, states, count, a.arg, result)
        case Extreme() | OneValue():
            count = a.count_values() if a.can_be_empty else None
            arg = a.known
            result = result or ValueProperties(a.call.dtype, arg.bounds, a.can_be_empty, arg.dictionary)
            return AggregatePlan(a.call, made.finalize, (_words(one, a),), count, arg, result)
        case _:
            assert_never(one)


def _words(one: Accumulate, a: _Use) -> GroupWords:
    """The words of an accumulator of the argument."""
    arg = a.known
    match one:
        case Count():
            return Word(a.count_values())
        case Total():
            return _sum_words(a)
        case OneValue() if arg.register is Register.STR:  # any address of it will do
            return TextWords(*a.accumulate("max", "i64", ADDRESS), *a.accumulate("max", "i64", LENGTH))
        case Extreme() | OneValue():
            if arg.register in (Register.I128, Register.STR):
                raise AssertionError(f"{a.call.function} of {arg.dtype} is ranked before it is accumulated")
            op = one.op if isinstance(one, Extreme) else "max"
            is_double = arg.register is Register.F64
            (index,) = a.accumulate(op, "i64", ORDERED if is_double else WHOLE)
            return OrderedWord(index) if is_double else Word(index)
        case _:
            assert_never(one)


def _sum_words(a: _Use) -> SumOfDoubles | ExactSum:
    arg = a.known
    if arg.register is Register.F64:
        return SumOfDoubles(*a.accumulate("add", "f64", WHOLE))
    if arg.register is Register.I64 and arg.bounds is not None and a.rows is not None:
        is_one_word = a.rows * arg.bounds.magnitude <= INT64.high
    else:
        is_one_word = False
    if is_one_word:
        return ExactSum(a.accumulate("add", "i64", WHOLE))
    bits = SUM_WORD_BITS if a.rows is not None and a.rows <= LARGE_ROWS else SMALL_SUM_WORD_BITS
    count = (INT128_BITS if arg.register is Register.I128 else INT64_BITS) // bits
    return ExactSum(a.accumulate("add", "i64", *_pieces(count, bits)), bits)


@cache
def _pieces(count: int, bits: int) -> tuple[Piece, ...]:
    """The words of a sum: most aggregates of a query have the same."""
    return tuple([Piece(n, bits) for n in range(count)])


def picks_row(call: AggregateCall) -> Literal["min", "max"] | None:
    """Whether an aggregate gives the value of the row with the least or the greatest number."""
    by = declaration(call).by
    return by.picks if isinstance(by, AtEnd) else None


def needs_ranks(call: AggregateCall, arg: ValueProperties | None) -> bool:
    """Whether an aggregate's argument must be replaced by ranks first: minima that no atomic can hold; or by row numbers: the
    first value."""
    if picks_row(call) is not None:
        return True
    if arg is None:
        return False
    match declaration(call).only:
        case Extreme():
            return arg.register in (Register.I128, Register.STR)
        case OneValue():
            return arg.register is Register.I128
        case _:
            return False


def _sum_properties(dtype: DType, arg: ValueProperties, rows: int | None, nullable: bool) -> ValueProperties:
    limit = type_bounds(dtype)
    if limit is None or arg.bounds is None or rows is None:
        return ValueProperties(dtype, limit, nullable)
    low, high = min(0, arg.bounds.low * rows), max(0, arg.bounds.high * rows)
    return ValueProperties(dtype, Bounds(max(low, limit.low), min(high, limit.high)), nullable)


def is_plain(plan: AggregatePlan) -> bool:
    """Whether the result of an aggregate, where it is not NULL, is the word of its accumulator: there is nothing to do
    or to check."""
    if not isinstance(plan.finalize, State):
        return False
    match plan.states[plan.finalize.number]:
        case SumOfDoubles():
            return plan.result.dtype == DOUBLE
        case Word() | OrderedWord():
            return plan.result.register is Register.I64
        case ExactSum(bits=0):
            limit = type_bounds(plan.result.dtype)
            return plan.result.register is Register.I64 and (limit is None or INT64.within(limit))
        case _:
            return False


def has_plain_count(accumulators: Sequence[Accumulator]) -> int | None:
    """The accumulator that counts every row of a group, if there is one: it tells which groups exist."""
    found = (n for n, f in enumerate(accumulators) if f.arg is None and f.filter is None and isinstance(f.input, One))
    return next(found, None)
