"""What a declaration of an aggregate says. `functions.aggregates` holds the table; to add an aggregate is to add a row.

What an aggregate is computed *by* is one of these, and nobody asks for its name:

- `Accumulated`: a group has words of state, which every row changes: counts, totals, extremes. So the results of parts of a
  group merge, and `finalize` is an expression over them. `planner.aggregates` chooses the words by what is known of the values.
- `Derived`: an expression over other aggregates (`aggregate_parts`).
- `OverRows`: it is computed over the rows of a group in an order (`operators.ordered_groups`).
- `StandsFor`: it is another one under a name of its own.

How windows compute it, how it merges, which rules it allows follows from that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from gquery.expression.expr import Expr, SortKey
from gquery.expression.types import INTEGER, DType, Kind
from gquery.runtime.records import cached_property, dataclass

Resolved = tuple[Sequence[DType], DType]
Checked = tuple[tuple[Expr, ...], tuple[Expr, ...], tuple[SortKey, ...]]
"""Arguments, constants and an order, as they are computed."""

# ---- accumulated -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Count:
    """How many rows have a value of the argument; how many there are, without one."""

    function = "count"
    merged_by = "sum"


@dataclass(frozen=True)
class Total:
    """The sum of the argument: exact where that is no DOUBLE. It has to fit the type of the result."""

    function = "sum"
    merged_by = "sum"


@dataclass(frozen=True)
class Extreme:
    """The least or the greatest value of the argument."""

    op: Literal["min", "max"]

    @property
    def function(self) -> str:
        """The aggregate that this is, alone."""
        return self.op

    @property
    def merged_by(self) -> str:
        """The aggregate that makes one of those of parts of a group."""
        return self.op


@dataclass(frozen=True)
class OneValue:
    """The value of the argument, which all rows of a group share."""

    function = "dependent_value"
    merged_by = "dependent_value"


Accumulate = Count | Total | Extreme | OneValue


@dataclass(frozen=True)
class State:
    """The value of an accumulator, by its number."""

    number: int = 0


@dataclass(frozen=True)
class Mean:
    """A total by a count, as DOUBLE; NULL where the count is 0."""

    total: State
    count: State


Finalize = State | Mean
"""The result of an aggregate, as an expression over its accumulators."""


@dataclass(frozen=True)
class Accumulated:
    """Words of state that each row changes. Of no value the result is NULL, unless the declaration says otherwise."""

    accumulators: tuple[Accumulate, ...]
    finalize: Finalize = State()

    @property
    def only(self) -> Accumulate | None:
        """The accumulator whose value the result is."""
        return self.accumulators[self.finalize.number] if isinstance(self.finalize, State) else None


# ---- over rows in an order -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AtEnd:
    """The value of the first row, or of the last. Without an ORDER BY that is the row with the least or greatest number."""

    last: bool = False

    @property
    def picks(self) -> Literal["min", "max"]:
        """Which row number it looks for."""
        return "max" if self.last else "min"


@dataclass(frozen=True)
class AtFraction:
    """The value at a fraction of the values in order; ``between`` two of them, it is what lies there."""

    between: bool


@dataclass(frozen=True)
class MostFrequent:
    """The value that most rows have, of several the first one. An ORDER BY can only be one by the value."""


@dataclass(frozen=True)
class Reduced:
    """All values put together by one operation, a primitive of that word; ``identity`` is the value that changes no other."""

    operation: Literal["and", "or", "xor", "mul"]
    word: Literal["i64", "f64"]
    identity: str


@dataclass(frozen=True)
class JoinedText:
    """The texts of the values one behind another, with a separator."""


@dataclass(frozen=True)
class Listed:
    """A list of the values."""


OverRows = AtEnd | AtFraction | MostFrequent | Reduced | JoinedText | Listed

# ---- over others -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Derived:
    """An expression over other aggregates: ``parts`` asks `aggregate_parts.Parts` for these. Arguments from number ``compares``
    on are only compared, so that keys can stand for nested values; if it ``equates``, for intervals too."""

    parts: Callable[..., Expr]
    compares: int | None = None
    equates: bool = False


@dataclass(frozen=True)
class StandsFor:
    """Another aggregate, to whose calls its own are bound."""

    function: str


By = Accumulated | AtEnd | AtFraction | MostFrequent | Reduced | JoinedText | Listed | Derived | StandsFor


@dataclass(frozen=True)
class AggregateFunction:
    """An aggregate: ``resolve`` gives (argument types, result type), or None for arguments that it does not take. ``by`` is what
    computes it. Over no row ``of_nothing`` is the result, NULL where that is None; that of parts follows from theirs.

    ``repeats_count``: it matters how often a value is there, so DISTINCT changes the result. ``null_type``: what an argument
    NULL of no type is. ``skips_null``: rows without a value are none to it. ``orders_itself``: the order of rows that it looks at
    is that of its argument. ``takes_order``: an ORDER BY in the call changes its result. ``checked``: takes apart arguments,
    constants and the order."""

    name: str
    resolve: Callable[[Sequence[DType]], Resolved | None]
    signatures: tuple[str, ...]
    doc: str
    example: tuple[str, str]
    by: By
    aliases: tuple[str, ...] = ()
    of_nothing: int | None = None
    repeats_count: bool = True
    null_type: DType = INTEGER
    skips_null: bool = True
    orders_itself: bool = False
    takes_order: bool = False
    checked: Callable[[str, Sequence[Expr], tuple[SortKey, ...]], Checked] | None = None

    @cached_property
    def accumulated(self) -> Accumulated | None:
        """Its words of state, where it has some."""
        return self.by if isinstance(self.by, Accumulated) else None

    @cached_property
    def only(self) -> Accumulate | None:
        """The one accumulator that it is, where it is no more."""
        return self.by.only if isinstance(self.by, Accumulated) else None

    @cached_property
    def merged_by(self) -> str | None:
        """The aggregate that makes one result of those of parts of a group; None where they do not tell."""
        return None if self.only is None else self.only.merged_by

    @cached_property
    def parts(self) -> Callable[..., Expr] | None:
        """The expression over the aggregates that it is made of, if it is."""
        return self.by.parts if isinstance(self.by, Derived) else None

    @cached_property
    def is_ordered(self) -> bool:
        """Whether rows have to be put in an order for it, even without ORDER BY."""
        return isinstance(self.by, OverRows) and not isinstance(self.by, AtEnd)

    def is_of_no_type(self, args: Sequence[Expr]) -> bool:
        """Whether the type of a call is that of its first argument, an untyped NULL."""
        types = [a.dtype for a in args]
        if not types or types[0].kind is not Kind.NULL or self.null_type != INTEGER:
            return False
        return any(r is not None and r[1].kind is Kind.NULL for r in map(self.resolve, (types, types[:1])))

    @cached_property
    def gives_argument(self) -> bool:
        """Whether its result is one of the values of its first argument."""
        return isinstance(self.only, Extreme | OneValue) or isinstance(self.by, AtEnd | MostFrequent | AtFraction)

    @cached_property
    def carries(self) -> bool:
        """Whether it looks at no value, so that it takes those which nothing is computed with."""
        return isinstance(self.by, AtEnd) or isinstance(self.only, Count | OneValue)

    @cached_property
    def tells_by_key(self) -> bool:
        """Whether keys say which values are different, for a DISTINCT."""
        compares_all = isinstance(self.by, Derived) and self.by.compares == 0
        return compares_all or isinstance(self.only, Count) or isinstance(self.by, MostFrequent)
