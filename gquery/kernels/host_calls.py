"""Calls that no kernel can make: functions that make new text, and casts from and to text.

They are made over whole arrays of Arrow's (`vectorised`). Around them stand expressions that kernels compute, so an
expression with such calls is taken apart into rounds (`split`): what kernels compute first, the calls over it, then the
next round, and at last an expression that a kernel computes over what was made. A call in a branch that may raise gets
NULL in the rows that do not go there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import pyarrow as pa

from gquery.columns.arrow import arrow_type, carried_type
from gquery.columns.opaque import Pending
from gquery.errors import ConversionError, DataError
from gquery.expression.expr import (
    And,
    Call,
    Case,
    Cast,
    Column,
    Expr,
    IsNull,
    Literal,
    Not,
    Or,
    new_column,
)
from gquery.expression.traverse import conjunction, with_children
from gquery.expression.types import INTEGER_BOUNDS, DType, Kind, type_bounds
from gquery.functions import FUNCTIONS, cast_to_text, nested_casts, text_casts
from gquery.functions.json_scan import use_finder
from gquery.functions.nested_arrays import as_type
from gquery.functions.operators import COMPARISONS
from gquery.functions.registry import ScalarFunction
from gquery.functions.vectors import flags, null, size_of
from gquery.kernels.failures import Failure, of_raised, of_text
from gquery.kernels.registers import array_of_registers
from gquery.kernels.values import ValueProperties, opaque_properties
from gquery.runtime.records import dataclass

Guard = tuple[Expr, ...] | None  # conditions of a branch; None: not known before this round has ended


def outermost(e: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """``f`` applied to every expression, parents first; what it has replaced is not looked into."""
    made = f(e)
    return made if made is not e else with_children(e, tuple(outermost(c, f) for c in e.children))


def is_host_call(e: Expr) -> bool:
    """Whether ``e`` is a call that no kernel can make."""
    match e:
        case Call(function=function):
            return FUNCTIONS[function].host is not None
        case Cast(arg, dtype):
            is_host = arg.dtype.is_string != dtype.is_string or arg.dtype.is_nested or dtype.is_nested
            return is_host and arg.dtype.kind is not Kind.NULL
        case _:
            return False


def name_of(e: Expr) -> str:
    """What such a call is called, for EXPLAIN."""
    if isinstance(e, Cast):
        return f"CAST({e.arg.dtype} AS {e.dtype})"
    return e.function.lstrip("_") if isinstance(e, Call) else ""


def known_of(e: Expr, known: Mapping[int, ValueProperties]) -> ValueProperties:
    """What is known of the result of calls over columns and constants."""
    match e:
        case Column():
            return known[e.id]
        case Literal():
            return ValueProperties(e.dtype, None, e.value is None)
        case Cast(arg, dtype):
            return made_properties(dtype, e.gives_null or known_of(arg, known).nullable)
        case Call(function, args, dtype, nullable):
            declared = FUNCTIONS[function]
            if declared.strict:
                nullable = declared.nullable or any(known_of(a, known).nullable for a in args)
            return made_properties(dtype, nullable)
        case _:
            raise AssertionError(e)


def made_properties(dtype: DType, nullable: bool) -> ValueProperties:
    """What is known of values that the host makes: of lists that they are numbers of lists yet to be made."""
    if dtype.is_nested:
        return opaque_properties(dtype, Pending(), nullable)
    return ValueProperties(dtype, type_bounds(dtype), nullable)


def _find_json(data: Any, ends: Any, steps: Any) -> Any:
    from gquery.kernels.builtin.json_texts import find_json_parts  # with the first call that looks into JSON

    return find_json_parts(data, ends, steps)


use_finder(_find_json)


# ---- calls over arrays ------------------------------------------------------------------------------------------------


def vectorised(e: Expr, columns: Mapping[int, pa.Array], failures: list[Failure]) -> Any:
    """Calls over columns and constants, for all rows: an array, or a scalar where no column is asked. Rows in which one of
    them raises are NULL, and noted."""
    match e:
        case Column():
            return columns[e.id]
        case Literal():
            return constant(e)
        case Cast():
            return _cast(e, vectorised(e.arg, columns, failures), failures)
        case Call():
            return _called(e, [vectorised(a, columns, failures) for a in e.args], failures)
        case _:
            raise AssertionError(e)


def constant(e: Literal) -> pa.Scalar:
    """A constant as Arrow has it."""
    value = e.value.encode() if isinstance(e.value, str) else e.value
    return array_of_registers([value], e.dtype)[0]


def _cast(e: Cast, arg: Any, failures: list[Failure]) -> Any:
    is_constant = not isinstance(arg, pa.Array)
    array = pa.repeat(arg, 1) if is_constant else arg
    if e.dtype.is_nested or e.arg.dtype.is_nested:
        try:
            made = nested_casts.cast_nested(array, e.arg.dtype, e.dtype, arrow_type(e.dtype), e.try_)
        except DataError as error:
            if not is_constant:
                raise
            failures.append(of_raised(error))
            return null(arrow_type(e.dtype))
    elif e.dtype.is_string:
        made = cast_to_text.to_text(array, e.arg.dtype)
    else:
        made = text_casts.from_text(array, e.dtype, carried_type(e.dtype))
        if not e.try_ and made.null_count > array.null_count:
            failed = flags(made.is_null()) & flags(array.is_valid())
            message = f"could not convert string {{}} to {e.dtype}"
            failures.append(of_text(failed, ConversionError, message, array, is_constant))
    return made[0] if is_constant else made


def _called(e: Call, args: list[Any], failures: list[Failure]) -> Any:
    function = FUNCTIONS[e.function]
    assert function.host is not None
    type_ = carried_type(e.dtype)
    if function.strict and any(isinstance(a, pa.Scalar) and not a.is_valid for a in args):
        arrays = [a for a in args if isinstance(a, pa.Array)]
        return pa.nulls(len(arrays[0]), type_) if arrays else null(type_)
    is_constant = not any(isinstance(a, pa.Array) for a in args)
    if is_constant:
        args = [pa.repeat(args[0], 1), *args[1:]]
    try:
        made = function.host(*args)
    except DataError as raised:
        if not is_constant:
            raise
        failures.append(of_raised(raised))
        return null(type_)
    if function.fails is not None and made.null_count:
        failed = flags(made.is_null())
        for a in args if function.strict else ():
            if isinstance(a, pa.Array):
                failed &= flags(a.is_valid())
        if failed.any():
            failures.append(of_text(failed, *function.fails, args[0], is_constant))
    assert len(made) == size_of(*args), e.function
    if e.dtype.is_nested:
        made = as_type(made, type_)
    elif not pa.types.is_large_string(made.type) and made.type != type_:
        made = made.cast(type_)
    return made[0] if is_constant else made


# ---- expressions taken apart -------------------------------------------------------------------------------------------


@dataclass
class Round:
    """What kernels compute, and the calls over columns and constants that are made then."""

    computed: list[tuple[Column, Expr]] = field(default_factory=list)
    made: list[tuple[Column, Expr]] = field(default_factory=list)
    new: set[int] = field(default_factory=set)  # the columns among them


class Needs:
    """Which expressions hold calls that no kernel can make. ``is_looked_up``: an expression over a dictionary is a table."""

    def __init__(self, is_looked_up: Callable[[Expr], bool]) -> None:
        self._is_looked_up = is_looked_up
        self._found: dict[int, tuple[Expr, bool]] = {}

    def __call__(self, e: Expr) -> bool:
        if not e.children:
            return False
        known = self._found.get(id(e))
        if known is None:
            held = (is_host_call(e) or any(map(self, e.children))) and not self._is_looked_up(e)
            known = self._found[id(e)] = e, held
        return known[1]


def split(exprs: Sequence[Expr], needs: Needs) -> tuple[list[Round], list[Expr]]:
    """The rounds that make what the expressions need, and the expressions over it."""
    splitter, left = _Splitter(needs), list(exprs)
    while any(needs(e) for e in left):
        splitter.round = Round()
        before, left = left, [splitter.rewritten(e, ()) for e in left]
        if splitter.round.made:
            splitter.rounds.append(splitter.round)
        else:  # a branch that had to wait reads what another expression has had made
            assert left != before, "every round makes something, or reads what is made"
    return splitter.rounds, left


class _Splitter:
    def __init__(self, needs: Needs) -> None:
        self.needs = needs
        self.rounds: list[Round] = []
        self.round = Round()
        self._made: dict[Expr, Column] = {}
        self._computed: dict[Expr, Column] = {}

    def rewritten(self, e: Expr, guard: Guard) -> Expr:
        """``e`` over the columns that this round makes."""
        if not self.needs(e):
            return e
        if (made := self._made.get(e)) is not None:
            return made
        is_open = guard is not None or not may_fail(e)
        # NULL where the branch does not go: what is made below must hand that on
        is_closed = bool(guard) and may_fail(e)
        if (
            is_host_call(e)
            and is_open
            and self._is_ready(e)
            and (self._hands_null_on(e) if is_closed else not self._waits(e))
        ):
            return self._make(e, guard or ())
        match e:
            case And(args) | Or(args):
                return with_children(e, tuple(self._connected(args, isinstance(e, Or), guard)))
            case Case():
                return self._case(e, guard)
            case _:
                return with_children(e, tuple(self.rewritten(c, guard) for c in e.children))

    def _tested(self, e: Expr, guard: Guard) -> Expr:
        """A test, where NULL is as good as FALSE: AND stops at either (`gquery.kernels.render.condition`)."""
        if isinstance(e, And | Or) and self.needs(e):
            return with_children(e, tuple(self._connected(e.args, isinstance(e, Or), guard, True)))
        return self.rewritten(e, guard)

    def _connected(self, args: tuple[Expr, ...], stops_at: bool, guard: Guard, is_test: bool = False) -> list[Expr]:
        out = []
        for arg in args:
            out.append(self._tested(arg, guard) if is_test else self.rewritten(arg, guard))
            passed = arg if is_test and not stops_at else Or((Not(arg) if stops_at else arg, IsNull(arg)))
            guard = None if guard is None or self.needs(arg) else (*guard, passed)
        return out

    def _case(self, e: Case, guard: Guard) -> Expr:
        branches = []
        for test, value in e.branches:
            test_ = self._tested(test, guard)
            is_open = guard is None or self.needs(test)
            value_ = self.rewritten(value, None if is_open else (*(guard or ()), test))
            guard = None if is_open else (*(guard or ()), Or((Not(test), IsNull(test))))
            branches.append((test_, value_))
        return Case(tuple(branches), self.rewritten(e.otherwise, guard))

    def _is_ready(self, e: Expr) -> bool:
        """Whether all arguments are columns, constants, what kernels compute, or such calls."""
        return all(not self.needs(a) or (is_host_call(a) and self._is_ready(a)) for a in e.children)

    def _waits(self, e: Expr) -> bool:
        """Whether a call among the arguments is made in this very round: a round's calls read what lay there before."""
        found = (self._made.get(a) or (is_host_call(a) and self._waits(a)) for a in e.children if self.needs(a))
        return any(f is True or (isinstance(f, Column) and f.id in self.round.new) for f in found)

    def _hands_null_on(self, e: Expr) -> bool:
        """Whether all calls below one that raises are NULL where an argument is (a list of NULL is none). Arguments that kernels
        compute are NULL themselves where the branch does not go."""
        if not self.needs(e):
            return True
        match e:
            case Call(function=function, args=args) if is_host_call(e):
                is_raised = FUNCTIONS[function].fails is not None
                return all(map(self._hands_null_on, args)) and (not is_raised or all(map(self._is_strict, args)))
            case Cast(arg, dtype, try_) if is_host_call(e):
                is_raised = not try_ and not dtype.is_string
                return self._hands_null_on(arg) and (not is_raised or self._is_strict(arg))
            case _:
                return True

    def _is_strict(self, e: Expr) -> bool:
        """Whether a host call, and all below it, is NULL where an argument is."""
        if not is_host_call(e) or not self.needs(e):
            return True
        is_strict = FUNCTIONS[e.function].strict if isinstance(e, Call) else True
        return is_strict and all(map(self._is_strict, e.children))

    def _make(self, e: Expr, guard: tuple[Expr, ...]) -> Column:
        tested = conjunction(guard) if guard and may_fail(e) else None
        column = new_column(name_of(e), e.dtype, e.nullable or tested is not None)
        self.round.made.append((column, self._over_columns(e, tested)))
        self.round.new.add(column.id)
        if tested is None:
            self._made[e] = column
        return column

    def _over_columns(self, e: Expr, tested: Expr | None) -> Expr:
        """Calls whose arguments are columns and constants, NULL where ``tested`` is not TRUE."""
        args: list[Expr] = []
        for n, a in enumerate(e.children):
            if self.needs(a):
                made = self._made.get(a) if tested is None else None
                args.append(made or self._over_columns(a, tested))
            elif tested is not None and (not isinstance(a, Literal) or (n == 0 and _is_constant(e))):
                args.append(self._column(Case(((tested, a),), Literal(None, a.dtype))))
            else:
                args.append(a if isinstance(a, Column | Literal) else self._column(a))
        return with_children(e, tuple(args))

    def _column(self, e: Expr) -> Column:
        found = self._computed.get(e)
        if found is None:
            found = self._computed[e] = new_column("argument", e.dtype, e.nullable)
            self.round.computed.append((found, e))
        return found


def _is_constant(e: Expr) -> bool:
    return all(isinstance(a, Literal) for a in e.children)


def may_fail(e: Expr) -> bool:
    """Whether calls, or what kernels compute for them, raise for some values."""
    match e:
        case Call(function=function, args=args):
            return _call_may_fail(e, FUNCTIONS[function]) or any(map(may_fail, args))
        case Cast(arg, dtype, try_) if is_host_call(e):
            return (not try_ and not dtype.is_string) or may_fail(arg)
        case Cast(arg, dtype, try_):
            return (not try_ and not _widens(arg.dtype, dtype)) or may_fail(arg)
        case _:
            return any(map(may_fail, e.children))


def _call_may_fail(e: Call, declared: ScalarFunction) -> bool:
    """The same of a call whose arguments do not. Kernels check exact numbers and days, where no bounds prove that they fit."""
    if declared.host is not None:
        return declared.fails is not None
    if e.function in COMPARISONS:
        return False
    exact = e.dtype.kind is not Kind.BOOLEAN and type_bounds(e.dtype) is not None
    has_days = any(a.dtype.is_temporal for a in e.args)
    is_checked = declared.body is None or declared.bounds is not None or declared.unproved
    return bool(declared.domain) or has_days or (exact and is_checked)


def _widens(source: DType, target: DType) -> bool:
    """Whether a cast takes every value to one of another type."""
    inner, outer = INTEGER_BOUNDS.get(source.kind), INTEGER_BOUNDS.get(target.kind)
    if inner is None:
        return source.kind is Kind.NULL
    return target.kind is Kind.DOUBLE or (outer is not None and outer[0] <= inner[0] and inner[1] <= outer[1])
