"""Typed expressions: a closed union of frozen nodes, typed when they are made.

The binder makes them with the constructors of `gquery.functions` (`call`, `cast`), which insert the casts that a
function's signature asks for, so every node's arguments already have the types that its meaning is defined on.
Columns are identified by the id that the binder mints; names are for people. A column that a plan uses and does not
make itself is a reference to an outer query (correlation): there is no node of its own for that.

Planning asks the same of an expression again and again (its hash, the columns that it reads), so a node remembers what
was once found out about it: nodes never change. A node may stand in several places (COALESCE tests a value and then gives
it), so nested ones are graphs whose trees double in size at each level: what goes over an expression looks at a node once.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, islice
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, get_args

from gquery.expression.exact import exact
from gquery.expression.frozen import comparing, frozen, remembering_hash, remembering_nullable
from gquery.expression.types import BIGINT, BOOLEAN, JSON, DType

if TYPE_CHECKING:
    from gquery.expression.types import Schema
    from gquery.planner.logical.nodes import Plan

T = TypeVar("T")
_ids = count(1)


class _Node:
    """Room for what is remembered of an expression: None until somebody asks."""

    REMEMBERED: ClassVar[tuple[str, ...]] = (
        "memo_columns", "memo_flags", "memo_hash", "memo_nullable", "memo_subqueries", "memo_twin", "memo_values",
    )  # fmt: skip
    __slots__ = REMEMBERED

    memo_hash: int | None
    memo_nullable: bool | None
    memo_values: tuple[Any, ...] | None  # of an IN list without slots
    memo_twin: Expr | None  # an equal node, which stands for both where they are compared again
    memo_columns: frozenset[int] | None  # by `planner.logical.tree.used_columns`
    memo_flags: frozenset[tuple[int, bool]] | bool | None  # False for none, by `planner.rules.refresh_nullability`
    memo_subqueries: tuple[ScalarSubquery | Exists | InSubquery, ...] | None  # by `planner.logical.tree.subqueries`


class _Truth(_Node):
    """What is TRUE, FALSE or NULL."""

    __slots__ = ()
    dtype: ClassVar[DType] = BOOLEAN


class _OfOne(_Node):
    """What has one argument."""

    __slots__ = ()
    arg: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.arg,)


class _OfSeveral(_Node):
    """What has any number of arguments."""

    __slots__ = ()
    args: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


class _Connective(_OfSeveral, _Truth):
    """NULL only where an argument is."""

    __slots__ = ()

    @property
    def nullable(self) -> bool:
        return any(a.nullable for a in self.args)


@frozen
class Column(_Node):
    """A column of some plan node; two are the same where their ids are."""

    REMEMBERED = ("memo_columns", "memo_flags", "memo_subqueries")  # what else is remembered of expressions it knows
    id: int
    name: str
    dtype: DType
    nullable: bool = True
    children: ClassVar[tuple[Expr, ...]] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Column) and other.id == self.id

    def __hash__(self) -> int:
        return self.id


def new_column(name: str, dtype: DType, nullable: bool = True) -> Column:
    """A column with an id that no other has."""
    return Column(next(_ids), name, dtype, nullable)


def new_columns(schema: Schema) -> tuple[Column, ...]:
    """Such columns for the fields of a schema: a table has dozens, of which a query names few."""
    return tuple(map(Column, islice(_ids, len(schema)), *schema.parts))


@frozen
class Literal(_Node):
    """A constant, as its physical value (see `gquery.expression.types`): unscaled integers for decimals, days for dates, str for
    VARCHAR, a packed integer for INTERVAL; None is NULL."""

    value: Any
    dtype: DType
    children: ClassVar[tuple[Expr, ...]] = ()

    @property
    def is_null(self) -> bool:
        """Whether it is NULL: known of every literal, whatever else of its value is."""
        return self.value is None

    @property
    def nullable(self) -> bool:
        return self.value is None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Any, DType]:
        """0.0 is another constant than -0.0, and a NaN the same one."""
        return exact(self.value) if isinstance(self.value, float) else self.value, self.dtype


@frozen
class Call(_OfSeveral):
    """A scalar function or operator of `gquery.functions`; NULL in gives NULL out unless the declaration says otherwise."""

    function: str
    args: tuple[Expr, ...]
    dtype: DType
    nullable: bool


@frozen
class Cast(_OfOne):
    """CAST; ``try_`` gives NULL where CAST raises ConversionError. NULL stays NULL."""

    arg: Expr
    dtype: DType
    try_: bool = False

    @property
    def nullable(self) -> bool:
        return self.gives_null or self.arg.nullable

    @property
    def gives_null(self) -> bool:
        """Whether a value that is not NULL may become it: null of JSON is no list."""
        return self.try_ or (self.dtype.is_nested and self.arg.dtype == JSON)


@frozen
class Case(_Node):
    """The value of the first branch whose condition is TRUE, else ``otherwise``; all values have one type. Only the
    branch that is taken is evaluated. COALESCE, NULLIF and IF are written with it."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (*(x for pair in self.branches for x in pair), self.otherwise)

    @property
    def dtype(self) -> DType:
        return self.otherwise.dtype

    @property
    def nullable(self) -> bool:
        """A value that a condition has tested, as COALESCE does, is not NULL."""
        known: list[Expr] = []  # what is not NULL behind the branches so far
        for condition, value in self.branches:
            if value.nullable and (of := _uncast(value)) not in known and not _tells_of(condition, of):
                return True
            if isinstance(condition, IsNull):
                known.append(_uncast(condition.arg))
        return self.otherwise.nullable and _uncast(self.otherwise) not in known


def _uncast(e: Expr) -> Expr:
    """What an expression is a cast of, which is NULL where that is."""
    while isinstance(e, Cast) and not e.try_:
        e = e.arg
    return e


def _tells_of(condition: Expr, value: Expr) -> bool:
    """Whether a condition that holds says that a value is not NULL."""
    match condition:
        case Not(arg=IsNull(arg=tested)):
            return _uncast(tested) == value
        case And(args=args):
            return any(_tells_of(a, value) for a in args)
        case _:
            return False


@frozen
class And(_Connective):
    """Conjunction in three-valued logic: FALSE wins over NULL. At least two arguments, none of them an And."""

    args: tuple[Expr, ...]


@frozen
class Or(_Connective):
    """Disjunction in three-valued logic: TRUE wins over NULL. At least two arguments, none of them an Or."""

    args: tuple[Expr, ...]


@frozen
class Not(_OfOne, _Truth):
    """Negation: NOT NULL is NULL."""

    arg: Expr

    @property
    def nullable(self) -> bool:
        return self.arg.nullable


@frozen
class IsNull(_OfOne, _Truth):
    """``arg IS NULL``: never NULL itself. IS NOT NULL is Not(IsNull)."""

    arg: Expr
    nullable: ClassVar[bool] = False


@frozen
class In(_OfOne, _Truth):
    """``arg IN (constants)``. The items are of the argument's type, none NULL, at least one; a list that holds expressions or
    NULL is bound as an Or of equalities."""

    arg: Expr
    items: tuple[Literal, ...]

    @property
    def values(self) -> tuple[Any, ...]:
        """The physical values of the items, each looked at."""
        if self.memo_values is not None:
            return self.memo_values
        values = tuple([x.value for x in self.items])
        if all(type(x) is Literal for x in self.items):
            self.memo_values = values
        return values

    @property
    def nullable(self) -> bool:
        return self.arg.nullable


@frozen
class ScalarSubquery(_Node):
    """The ``field``-th column of a plan's one row: NULL for no row, CardinalityError for two. Gone after decorrelation."""

    plan: Plan
    field: int = 0
    children: ClassVar[tuple[Expr, ...]] = ()
    nullable: ClassVar[bool] = True

    @property
    def dtype(self) -> DType:
        return self.plan.columns[self.field].dtype


@frozen
class Exists(_Truth):
    """Whether a plan has a row: never NULL. Gone after decorrelation."""

    plan: Plan
    children: ClassVar[tuple[Expr, ...]] = ()
    nullable: ClassVar[bool] = False


@frozen
class InSubquery(_OfSeveral, _Truth):
    """``args IN (plan)`` with SQL's three values: NULL where no row matches but a NULL might. The plan has as many
    columns as there are arguments, of the same types. Gone after decorrelation."""

    args: tuple[Expr, ...]
    plan: Plan

    @property
    def nullable(self) -> bool:
        return any(a.nullable for a in self.args) or any(c.nullable for c in self.plan.columns)


Expr = Column | Literal | Call | Cast | Case | And | Or | Not | IsNull | In | ScalarSubquery | Exists | InSubquery
TRUE = Literal(1, BOOLEAN)
FALSE = Literal(0, BOOLEAN)


@frozen
class SortKey:
    """One key of an ORDER BY."""

    expr: Expr
    descending: bool = False
    nulls_first: bool = False


@frozen
class AggregateCall:
    """An aggregate of `gquery.functions` over a group; ``args`` is empty for ``count(*)``. ``filter`` keeps rows where it
    is TRUE. ``order``: the order in which rows are looked at, in place of the input's."""

    function: str
    args: tuple[Expr, ...]
    dtype: DType
    distinct: bool = False
    filter: Expr | None = None
    order: tuple[SortKey, ...] = ()

    @property
    def nullable(self) -> bool:
        return self.function != "count"

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """What a call reads: arguments, filter, keys of its order."""
        if self.filter is None and not self.order:
            return self.args
        only = () if self.filter is None else (self.filter,)
        return (*self.args, *only, *(k.expr for k in self.order))

    def mapped(self, f: Callable[[Expr], Expr]) -> AggregateCall:
        """The call over what ``f`` makes of its expressions, in their order."""
        args = tuple([f(e) for e in self.args])
        only = None if self.filter is None else f(self.filter)
        order = tuple([SortKey(f(k.expr), k.descending, k.nulls_first) for k in self.order])
        return AggregateCall(self.function, args, self.dtype, self.distinct, only, order)


for _kind in get_args(Expr):
    if _kind is not Column:
        _kind.__hash__ = remembering_hash(_kind.__hash__)
    if _kind not in (Column, Literal):
        _kind.__eq__ = comparing(_kind.__eq__)
    if _kind in (Cast, Case, And, Or, Not, In):
        _kind.nullable = property(remembering_nullable(_kind.nullable.fget))


def same_objects(a: tuple[object, ...], b: tuple[object, ...]) -> bool:
    """Whether two tuples hold the same objects (which is more than equal ones)."""
    return len(a) == len(b) and all(map(is_, a, b))


def integer(value: int) -> Literal:
    """A BIGINT literal."""
    return Literal(value, BIGINT)
