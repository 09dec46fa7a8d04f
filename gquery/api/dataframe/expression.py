"""Expressions of the DataFrame API: `col`, `lit`, `when`, operators, and every SQL function as a method.

An expression holds sqlglot's tree of what it stands for, as if it had been parsed from SQL; it has no type and belongs to
no relation until a method of one binds it. Functions are looked up among those that `gquery.functions` declares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError

from gquery.api.dataframe.constants import constant
from gquery.api.dataframe.methods import Methods
from gquery.api.dataframe.values import Values
from gquery.errors import BindError, InterfaceError, did_you_mean
from gquery.functions import AGGREGATES, is_aggregate
from gquery.functions.registry import scalar_names
from gquery.functions.windows import WINDOWS
from gquery.runtime.arguments import checked

_NO_METHODS = ("if", "cast")  # written another way


class Expression(Methods, Values):
    """A computation over the columns of some relation. Made by `col`, `lit`, `when` and `fn`; combined by operators.

    Comparisons and ``& | ~`` follow SQL, NULLs included. ``names`` are the relations and Python functions that the tree
    refers to, by the names that it has for them.
    """

    __slots__ = ("names", "node")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, node: exp.Expr, names: Mapping[str, Any] | None = None) -> None:
        self.node = node
        self.names: dict[str, Any] = dict(names or {})

    # ---- operators -------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Expression:
        return _binary(exp.Add, self, other, joins=True)

    def __radd__(self, other: Any) -> Expression:
        return _binary(exp.Add, other, self, joins=True)

    def __sub__(self, other: Any) -> Expression:
        return _binary(exp.Sub, self, other)

    def __rsub__(self, other: Any) -> Expression:
        return _binary(exp.Sub, other, self)

    def __mul__(self, other: Any) -> Expression:
        return _binary(exp.Mul, self, other)

    def __rmul__(self, other: Any) -> Expression:
        return _binary(exp.Mul, other, self)

    def __truediv__(self, other: Any) -> Expression:
        return _binary(exp.Div, self, other)

    def __rtruediv__(self, other: Any) -> Expression:
        return _binary(exp.Div, other, self)

    def __floordiv__(self, other: Any) -> Expression:
        return _binary(exp.IntDiv, self, other)

    def __rfloordiv__(self, other: Any) -> Expression:
        return _binary(exp.IntDiv, other, self)

    def __mod__(self, other: Any) -> Expression:
        return _binary(exp.Mod, self, other)

    def __rmod__(self, other: Any) -> Expression:
        return _binary(exp.Mod, other, self)

    def __pow__(self, other: Any) -> Expression:
        return _binary(exp.Pow, self, other)

    def __rpow__(self, other: Any) -> Expression:
        return _binary(exp.Pow, other, self)

    def __neg__(self) -> Expression:
        return Expression(exp.Neg(this=self.node), self.names)

    def __abs__(self) -> Expression:
        return call("abs", self)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return self.is_null() if other is None else _binary(exp.EQ, self, other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return self.is_not_null() if other is None else _binary(exp.NEQ, self, other)

    def __lt__(self, other: Any) -> Expression:
        return _binary(exp.LT, self, other)

    def __le__(self, other: Any) -> Expression:
        return _binary(exp.LTE, self, other)

    def __gt__(self, other: Any) -> Expression:
        return _binary(exp.GT, self, other)

    def __ge__(self, other: Any) -> Expression:
        return _binary(exp.GTE, self, other)

    def __and__(self, other: Any) -> Expression:
        return _binary(exp.And, self, other)

    def __rand__(self, other: Any) -> Expression:
        return _binary(exp.And, other, self)

    def __or__(self, other: Any) -> Expression:
        return _binary(exp.Or, self, other)

    def __ror__(self, other: Any) -> Expression:
        return _binary(exp.Or, other, self)

    def __invert__(self) -> Expression:
        return Expression(exp.Not(this=self.node), self.names)

    def __bool__(self) -> bool:
        raise InterfaceError(
            "An expression has no truth value: write & | ~ for AND, OR, NOT, with parentheses around sides"
        )

    # ---- what SQL writes with words --------------------------------------------------------------------------------

    def is_null(self) -> Expression:
        """``IS NULL``."""
        return Expression(exp.Is(this=self.node, expression=exp.Null()), self.names)

    def is_not_null(self) -> Expression:
        """``IS NOT NULL``."""
        return ~self.is_null()

    def between(self, low: Any, high: Any) -> Expression:
        """``BETWEEN low AND high``, both included."""
        a, b = lift(low), lift(high)
        return Expression(exp.Between(this=self.node, low=a.node, high=b.node), _names(self, a, b))

    def is_in(self, values: Any) -> Expression:
        """Whether a value is in a list, or in a relation of one column, as SQL's ``IN``. None in a list is no value, as in
        Polars: nothing is in a list without values. NULL stays NULL."""
        if _is_relation(values):
            subquery = lift(values)
            return Expression(exp.In(this=self.node, query=subquery.node), _names(self, subquery))
        if not isinstance(values, Iterable):
            raise InterfaceError(f"is_in takes a list of values or a relation, not {values!r}")
        items = [lift(v) for v in values if v is not None]
        if not items:
            return when(self.is_not_null()).then(False).otherwise(None)
        return Expression(exp.In(this=self.node, expressions=[i.node for i in items]), _names(self, *items))

    def like(self, pattern: Any) -> Expression:
        """``LIKE pattern``: ``%`` stands for any text, ``_`` for one character."""
        return _binary(exp.Like, self, pattern)

    def ilike(self, pattern: Any) -> Expression:
        """`like`, letter case ignored."""
        return _binary(exp.ILike, self, pattern)

    def cast(self, dtype: Any, try_: bool = False) -> Expression:
        """``CAST(... AS dtype)`` to a type of SQL, as in ``cast("DECIMAL(15,2)")``; ``try_`` gives NULL for an error."""
        try:
            to = exp.DataType.build(str(dtype), dialect="duckdb")
        except ParseError:
            raise InterfaceError(f"cast takes a type of SQL, as in cast('DECIMAL(15,2)'), not {dtype!r}") from None
        return Expression((exp.TryCast if try_ else exp.Cast)(this=self.node, to=to), self.names)

    @checked
    def alias(self, name: str) -> Expression:
        """The same under another name."""
        node = self.node.this if isinstance(self.node, exp.Alias) else self.node
        return Expression(exp.Alias(this=node, alias=_identifier(name)), self.names)

    def asc(self, nulls_first: bool = False) -> Expression:
        """As a key of `Relation.sort`: upwards, NULLs last."""
        return Expression(exp.Ordered(this=self.node, desc=False, nulls_first=nulls_first), self.names)

    def desc(self, nulls_first: bool = False) -> Expression:
        """As a key of `Relation.sort`: downwards, NULLs last."""
        return Expression(exp.Ordered(this=self.node, desc=True, nulls_first=nulls_first), self.names)

    def where(self, condition: Any) -> Expression:
        """An aggregate over the rows for which the condition is TRUE: SQL's ``FILTER (WHERE ...)``."""
        test = lift(condition)
        return Expression(exp.Filter(this=self.node, expression=exp.Where(this=test.node)), _names(self, test))

    # ---- functions -------------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Callable[..., Expression]:
        """A function or aggregate with this expression as its first argument; ``distinct=True`` for an aggregate."""
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in _function_names():
            raise AttributeError(f"expressions have no function {name!r}.{did_you_mean(name, _function_names())}")
        return lambda *args, distinct=False: call(name, self, *args, distinct=distinct)

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *_function_names()]

    def __repr__(self) -> str:
        return f"<gquery.Expression {self.node.sql('duckdb', normalize_functions='lower')}>"

    def __gquery_call__(self, function: Any, args: tuple[Any, ...]) -> Expression:
        """A call of a Python function (`gquery.udf`) with expressions among its arguments."""
        items = [lift(a) for a in args]
        node = exp.Anonymous(this=function.name, expressions=[i.node for i in items])
        return Expression(node, _names(*items, Expression(node, {function.name: function})))


class Filtered(Expression):
    """An expression of which the aggregate that is made of it takes the rows alone for which a condition is TRUE."""

    __slots__ = ("condition",)

    def __init__(self, of: Expression, condition: Expression) -> None:
        super().__init__(of.node, of.names)
        self.condition = condition


class Then(Expression):
    """A CASE that has a value for its last condition; NULL where no condition holds, unless `otherwise` says more."""

    __slots__ = ()

    def when(self, condition: Any) -> When:
        """A further condition, for rows where none before it is TRUE."""
        return When(lift(condition), self)

    def otherwise(self, value: Any) -> Expression:
        """The value where no condition is TRUE."""
        last = lift(value)
        ifs = list(self.node.args["ifs"])
        return Expression(exp.Case(ifs=ifs, default=last.node), _names(self, last))


class When:
    """A condition that waits for its value; see `when`."""

    def __init__(self, condition: Expression, before: Then | None = None) -> None:
        self._condition, self._before = condition, before

    def then(self, value: Any) -> Then:
        """The value where the condition is the first that is TRUE."""
        result = lift(value)
        branch = exp.If(this=self._condition.node, true=result.node)
        if self._before is None:
            return Then(exp.Case(ifs=[branch]), _names(self._condition, result))
        ifs = [*self._before.node.args["ifs"], branch]
        return Then(exp.Case(ifs=ifs), _names(self._before, self._condition, result))


class Functions:
    """Every function by its name: ``fn.coalesce(col("a"), 0)``, ``fn.count()``."""

    def __getattr__(self, name: str) -> Callable[..., Expression]:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in _function_names():
            raise AttributeError(f"there is no function {name!r}.{did_you_mean(name, _function_names())}")
        return lambda *args, distinct=False: call(name, *args, distinct=distinct)

    def __dir__(self) -> list[str]:
        return _function_names()


fn = Functions()


def col(name: str | Sequence[str], *more: str, of: str | None = None) -> Expression:
    """The column of that name; ``of`` is "self" or "other" in the condition of a join, where both sides have one. Several names,
    a pattern (``"^x.*$"``) and ``"*"`` stand for several columns: what is made of them is made of each."""
    from gquery.api.dataframe.selectors import is_pattern, several

    names: tuple[Any, ...] = (
        *([name] if isinstance(name, str) else name if isinstance(name, list | tuple) else [None]),
        *more,
    )
    if not names or not all(isinstance(n, str) for n in names):
        raise InterfaceError(f"name of col is a str or a list of them, not {name!r}")
    if len(names) > 1 or is_pattern(names[0]):
        return several(names)
    return Expression(exp.Column(this=_identifier(names[0]), table=_identifier(of) if of is not None else None))


def lit(value: Any) -> Expression:
    """A constant: None, bool, int, float (DOUBLE), Decimal, str, date, datetime, timedelta; a relation of one row and column
    stands for its value."""
    if isinstance(value, Expression):
        return value
    if _is_relation(value):
        name = f"relation_{id(value)}"
        select = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Table(this=_identifier(name))))
        return Expression(exp.Subquery(this=select), {name: value})
    return Expression(constant(value))


def when(condition: Any) -> When:
    """``when(condition).then(value).otherwise(value)``: SQL's CASE."""
    return When(lift(condition))


def lift(value: Any) -> Expression:
    """A constant or an expression as a part of another one, where a name of its own says nothing."""
    e = lit(value)
    return Expression(e.node.this, e.names) if isinstance(e.node, exp.Alias) else e


def call(name: str, *args: Any, distinct: bool = False) -> Expression:
    """A function of SQL by its name, over expressions and constants."""
    items = [lift(a) for a in args]
    nodes = [i.node for i in items]
    if distinct and not is_aggregate(name):
        raise BindError(f"{name} is no aggregate: distinct does not fit it")
    if not nodes and name == "count":
        return Expression(exp.Anonymous(this="count", expressions=[exp.Star()]))
    if distinct:
        nodes = [exp.Distinct(expressions=nodes)]
    made = Expression(exp.Anonymous(this=name, expressions=nodes), _names(*items))
    if items and isinstance(items[0], Filtered) and is_aggregate(name):
        return made.where(items[0].condition)
    return made


def filtered(e: Expression, condition: Any) -> Expression:
    """``FILTER (WHERE condition)`` of an aggregate, or of the one that will be made of ``e``."""
    is_call = isinstance(e.node, exp.Anonymous) and is_aggregate(e.node.name.lower())
    return e.where(condition) if is_call else Filtered(e, lift(condition))


def missing_equal(a: Expression, b: Any) -> Expression:
    """``IS NOT DISTINCT FROM``."""
    return _binary(exp.NullSafeEQ, a, b)


def _identifier(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)


def _is_relation(value: Any) -> bool:
    from gquery.api.dataframe.verbs import Verbs

    return isinstance(value, Verbs)


def _binary(kind: type[exp.Expr], left: Any, right: Any, **more: bool) -> Expression:
    a, b = lift(left), lift(right)
    return Expression(kind(this=a.node, expression=b.node, **more), _names(a, b))


def _names(*items: Expression) -> dict[str, Any]:
    """What all of the expressions refer to; two Python functions of one name cannot be told apart."""
    return merged(i.names for i in items)


def merged(many: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The union of names; InterfaceError where one name means two things."""
    result: dict[str, Any] = {}
    for names in many:
        for name, value in names.items():
            if result.setdefault(name, value) is not value:
                raise InterfaceError(f'two Python functions are called "{name}" in one query; rename one of them')
    return result


def _function_names() -> list[str]:
    return [
        n
        for n in (*scalar_names(), *AGGREGATES, *WINDOWS)
        if not n.startswith("_") and n.isidentifier() and n not in _NO_METHODS
    ]
