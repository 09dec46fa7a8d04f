"""Binding of expressions: sqlglot's nodes to typed `Expr`.

An `ExprBinder` stands for one place of a query: its scope, whether aggregates are allowed there, and the aliases of the
SELECT list that may be used. Errors get the line and a caret of the innermost node that has a place in the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from sqlglot import exp

from gquery.errors import BindError, ConversionError, Error, NotSupportedError, OutOfRangeError
from gquery.expression.expr import (
    FALSE,
    TRUE,
    AggregateCall,
    Cast,
    Column,
    Exists,
    Expr,
    IsNull,
    Literal,
    Not,
)
from gquery.expression.traverse import conjunction, disjunction, walk
from gquery.expression.types import BOOLEAN, NULL, VARCHAR
from gquery.functions import aggregate, call, cast, is_aggregate, unified
from gquery.functions.aggregates import called
from gquery.functions.casts import is_integer_literal, unify
from gquery.functions.certain import never_null
from gquery.functions.registry import is_declared
from gquery.runtime.interrupt import check
from gquery.sql.binding.columns import column_of
from gquery.sql.binding.lambdas import LAMBDAS, over_elements
from gquery.sql.binding.lists import of_list
from gquery.sql.binding.quantiles import at_fractions
from gquery.sql.binding.structs import OF_TREES, of_column, of_struct
from gquery.sql.binding.subquery import QUANTIFIED, ROWS, QueryBinder, SubqueryBinder, list_value, listed
from gquery.sql.binding.unnest import CALLS, list_to_unnest
from gquery.sql.call_parts import call_parts
from gquery.sql.calls import GROUPINGS, SESSION, VALUES, function_call, is_call, names_aggregate
from gquery.sql.collation import collated
from gquery.sql.definitions import ARGUMENT, CALL, unmarked
from gquery.sql.grammar.tokens import ARRAY, marked
from gquery.sql.order_keys import keys_of, sort_key
from gquery.sql.parse import located
from gquery.sql.scope import Scope
from gquery.sql.types import integer_literal, interval, is_cut, number_at, parameter, sql_type

BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply", exp.Div: "divide", exp.IntDiv: "int_divide",
    exp.Mod: "modulo", exp.EQ: "eq", exp.NEQ: "ne", exp.LT: "lt", exp.LTE: "le", exp.GT: "gt", exp.GTE: "ge",
    exp.NullSafeEQ: "is_not_distinct_from", exp.NullSafeNEQ: "is_distinct_from", exp.DPipe: "_concat_operator",
    exp.Pow: "pow", exp.BitwiseAnd: "_bit_and", exp.BitwiseOr: "_bit_or", exp.BitwiseXor: "xor", exp.Glob: "_glob",
    exp.BitwiseLeftShift: "_shift_left", exp.BitwiseRightShift: "_shift_right", exp.StartsWith: "starts_with",
}  # fmt: skip
_NAMES = {"divide": "int_divide"}  # divide(7, 2) is 3, and no other name of /


class AggregateCollector(Protocol):
    """Where a grouped query keeps its aggregates; the same call gives the same column."""

    def add(self, call: AggregateCall, name: str) -> Column: ...

    def grouping(self, nodes: Sequence[exp.Expr], keys: Sequence[Expr]) -> Expr: ...


class WindowCollector(Protocol):
    """Where a SELECT keeps its window functions, and the lists that it takes apart."""

    def bind(self, node: exp.Expr, binder: ExprBinder) -> Expr: ...

    def unnest(self, e: Expr, node: exp.Expr) -> Expr: ...


class ExprBinder(SubqueryBinder):
    """Binds expressions at one place of a query (``clause`` names it in errors)."""

    def __init__(
        self,
        query: QueryBinder,
        scope: Scope,
        clause: str,
        aggregates: AggregateCollector | None = None,
        aliases: Mapping[str, exp.Expr] | None = None,
        windows: WindowCollector | None = None,
    ) -> None:
        self.query, self.scope, self.clause, self.aggregates, self.windows = query, scope, clause, aggregates, windows
        self.aliases = dict(aliases or {})

    def bind(self, node: exp.Expr) -> Expr:
        """The typed expression of a node. Raises BindError or NotSupportedError with a caret."""
        check()
        try:
            return self._bind(node)
        except (BindError, ConversionError, NotSupportedError, OutOfRangeError) as e:
            raise located(e, self.query.sql, node) from None

    def condition(self, node: exp.Expr) -> Expr:
        """A predicate, cast to BOOLEAN as DuckDB does."""
        return self._truth(node)

    def _truth(self, node: exp.Expr) -> Expr:
        e = self.bind(node)
        if e.dtype is BOOLEAN:
            return e
        try:
            return cast(e, BOOLEAN)
        except Error as error:
            raise located(error, self.query.sql, node) from None

    def _bind(self, node: exp.Expr) -> Expr:
        kind = type(node)
        if kind in BINARY or kind is exp.Anonymous:  # before the cases: each would be tried first
            return self._binary(node) if kind in BINARY else self._call(node)
        match node:
            case exp.Column():
                return self._column(node)
            case exp.Paren():
                return self._key(node) or self.bind(self.entered(node).this)
            case exp.Literal():
                return Literal(node.name, VARCHAR) if node.is_string else number_at(node, self.query.sql)
            case exp.Boolean():
                return TRUE if node.this else FALSE
            case exp.Null():
                return Literal(None, NULL)
            case _ if is_cut(node):
                return self._slot(node)
            case exp.Placeholder() | exp.Parameter():
                return self._parameter(node)
            case exp.Interval():
                return interval(node, self.bind)
            case exp.And() | exp.Or():
                return self._connective(node)
            case exp.Not():
                return self._not(node)
            case exp.BitwiseNot():
                return call("_bit_not", self.bind(node.this))
            case exp.Neg():
                return self._negative(node.this)
            case exp.Is():
                return self._is(node)
            case exp.Between():
                return self._between(node)
            case exp.In():
                return self._in(node)
            case exp.Like() | exp.ILike():
                return self._like(node, None)
            case exp.Escape():
                return self._like(node.this, node.expression)
            case exp.TryCast():
                return _asked_for(cast(self.bind(node.this), sql_type(node.to), try_=True))
            case exp.Cast():
                return self._cast(node)
            case exp.AtTimeZone():
                return call("timezone", self.bind(node.args["zone"]), self.bind(node.this))
            case exp.Case():
                return self._case(node)
            case exp.Exists():
                return Exists(self.query.subquery(node.this, self.scope).plan)
            case exp.Subquery() | exp.Query():
                return self._scalar(node)
            case exp.Filter() | exp.WithinGroup():
                return self._aggregate(node)
            case exp.Bracket() | exp.Array():
                return of_list(node, self.bind, self._body, self.scope)
            case exp.Struct() | exp.ToMap() | exp.Tuple() | exp.Dot():
                return of_struct(node, self.bind)
            case exp.Star():
                raise BindError("* cannot stand here")
        return self._call(node)

    def _call(self, node: exp.Expr) -> Expr:
        """A call of a function, or what has a name of its own for one."""
        if isinstance(node, exp.Window):
            if self.windows is None:
                raise BindError(f"{self.clause} cannot contain window functions")
            return self.windows.bind(node, self)
        if isinstance(node, exp.SimilarTo | exp.RegexpLike):
            return call("regexp_full_match", self.bind(node.this), self.bind(node.expression))
        if is_call(node):
            name, args = function_call(node)
            if name == marked(ARRAY):
                return self._array(args[0])
            if name in GROUPINGS:
                return self._grouping(args)
            if name in CALLS:
                return self._unnest(name, args, node)
            if name in SESSION:
                return self._of_session(name, args)
            if name in OF_TREES:
                return OF_TREES[name](name, args, self.bind)
            if name in LAMBDAS and len(args) == 2 and isinstance(args[1], exp.Lambda):
                return over_elements(name, self.bind(args[0]), args[1], self._body, self.scope)
            if is_aggregate(name):
                return self._aggregate(node)
            function = self.query.function(name) if not is_declared(name) else None
            if function is None and names_aggregate(name):
                return self._aggregate(node)  # which says that it is missing
            bound = [self.bind(a) for a in args]
            return function.call(*bound) if function is not None else call(_NAMES.get(name, name), *bound)
        raise NotSupportedError(f"not supported: {node.sql('duckdb')}")

    def _body(self, node: exp.Expr, scope: Scope, is_condition: bool) -> Expr:
        binder = ExprBinder(self.query, scope, "a lambda function")
        return binder.condition(node) if is_condition else binder.bind(node)

    def _unnest(self, name: str, args: Sequence[exp.Expr], node: exp.Expr) -> Expr:
        if self.windows is None or self.clause not in ("SELECT", "ORDER BY"):
            raise BindError(f"{self.clause} cannot contain {name}")
        binder = ExprBinder(self.query, self.scope, f"the argument of {name}", self.aggregates, self.aliases)
        return self.windows.unnest(list_to_unnest(name, [binder.bind(a) for a in args]), node)

    def _binary(self, node: exp.Expr) -> Expr:
        left, right = collated(node)
        if type(node) in QUANTIFIED and (items := listed(right)) is not None:
            return self._listed(node, items)
        if type(node) in QUANTIFIED and (value := list_value(right)) is not None:
            return self._over_list(node, value)
        if type(node) in QUANTIFIED and isinstance(right, exp.Any | exp.All):
            return self._quantified(node)
        if type(node) in ROWS and isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple):
            return self._rows_compared(node)
        name = "_plus" if node.args.get("joins") else BINARY[type(node)]
        return self.query.interned.call(name, self.bind(left), self.bind(right))

    # ---- names and constants -----------------------------------------------------------------------------------------

    def entered(self, node: exp.Expr) -> exp.Expr:
        """The node. If it is the expansion of a macro, the names of the call's arguments mean what they mean here."""
        if node._meta is not None and (call := node._meta.get(CALL)) is not None:
            self.query.calls[call] = self.scope, {**self.aliases}, self.aggregates
        return node

    def _column(self, node: exp.Column) -> Expr:
        if node._meta is not None and (call := node._meta.get(ARGUMENT)) is not None:
            scope, aliases, _ = self.query.calls[call]
            return ExprBinder(self.query, Scope(scope), self.clause, None, aliases)._plain_column(node)
        return self._plain_column(node)

    def _plain_column(self, node: exp.Column) -> Expr:
        this, of = node.args["this"], node.args.get("table")
        if (chosen := column_of(node)) is not None:
            return chosen
        if isinstance(this, exp.Star):
            raise BindError("* cannot stand here")
        name = this.args["this"] if type(this) is exp.Identifier else node.name
        table = None if of is None else (of.args["this"] if type(of) is exp.Identifier else node.table) or None
        has_schema = node.args.get("db") is not None
        if of is not None:
            found = None if has_schema else self.scope.search(name, table)
            if found is not None or (found := of_column(node, self.scope)) is not None:
                return found
        if has_schema:
            shown = ".".join(str(p.name) for p in node.parts[:-1])
            raise BindError(f"table {shown!r} is not in the FROM clause")
        if table is None:
            found = self.scope.meant(name, rows=self.clause not in ("HAVING", "QUALIFY", "ORDER BY"))
            if found is not None:
                return found
            alias = self.aliases.pop(name.lower(), None)  # popped meanwhile: an alias does not see itself
            if alias is not None:
                try:
                    return self.bind(alias)
                finally:
                    self.aliases[name.lower()] = alias
            if (low := name.lower()) in VALUES and not self.scope.knows(name):
                return self._of_session(low, ()) if low in SESSION else call(low)
        return self.scope.resolve(name, table)

    def _parameter(self, node: exp.Expr) -> Expr:
        value, slots = parameter(node, self.query.parameters), self.query.slots
        return slots.parameter(node.name or "1", value) if slots is not None and isinstance(value, Literal) else value

    def _slot(self, node: exp.Expr) -> Literal:
        assert self.query.slots is not None
        return self.query.slots.literal(node.args["this"])

    def _negative(self, node: exp.Expr) -> Expr:
        e = self.bind(node)
        if isinstance(e, Literal) and isinstance(node, exp.Literal) and isinstance(e.value, int) and not e.dtype.scale:
            return integer_literal(-e.value) if e.dtype.is_integer or e.value == 2**63 else call("negate", e)
        return call("negate", e)

    def _cast(self, node: exp.Cast) -> Expr:
        e, dtype = self.bind(node.this), sql_type(node.to)
        if isinstance(e, Literal) and e.dtype.is_integer and dtype.is_integer and not e.is_null:
            return Cast(e, dtype)
        return _asked_for(cast(e, dtype))

    # ---- truth -------------------------------------------------------------------------------------------------------

    def _connective(self, node: exp.Expr) -> Expr:
        kind, terms, stack = type(node), [], [node]
        while stack:  # long chains lean to the left: no recursion over them
            e = stack.pop()
            if type(e) is kind:
                stack += [e.expression, e.this]
            elif isinstance(e, exp.Paren) and type(e.this) is kind:
                stack.append(self.entered(e).this)
            else:
                terms.append(self._truth(e))
        return conjunction(tuple(terms)) if kind is exp.And else disjunction(tuple(terms))

    def _not(self, node: exp.Not) -> Expr:
        e = self._truth(node.this)
        return e.arg if isinstance(e, Not) else Not(e)

    def _is(self, node: exp.Is) -> Expr:
        if node.args.get("negate"):
            return Not(self._is(exp.Is(this=node.this, expression=node.expression)))
        if isinstance(node.expression, exp.Null):
            return IsNull(self.bind(node.this))
        if isinstance(node.expression, exp.Boolean):
            truth = TRUE if node.expression.this else FALSE
            return call("is_not_distinct_from", self._truth(node.this), truth)
        raise NotSupportedError(f"not supported: {node.sql('duckdb')}")

    def _between(self, node: exp.Between) -> Expr:
        if node.args.get("symmetric"):
            raise NotSupportedError("not supported: BETWEEN SYMMETRIC")
        if isinstance(node.this, exp.Tuple):
            ends = ((exp.GTE, node.args["low"]), (exp.LTE, node.args["high"]))
            return conjunction(tuple(self.bind(kind(this=node.this, expression=end)) for kind, end in ends))
        e, low, high = (self.bind(n) for n in (node.this, node.args["low"], node.args["high"]))
        types = [unify((e, bound), comparing=True, ordering=True) for bound in (low, high)]
        if types[0] != types[1] and any(t is not None and t.is_float for t in types):  # the three meet as DOUBLE
            e, low, high = unified((e, low, high), "BETWEEN", comparing=True, ordering=True)
        return conjunction((call("ge", e, low), call("le", e, high)))

    def _like(self, node: exp.Expr, escape: exp.Expr | None) -> Expr:
        """LIKE and ILIKE; NOT LIKE is a Not in the tree, or a flag of the node."""
        if isinstance(node, exp.Not):
            return Not(self._like(node.this, escape))
        if isinstance(node.expression, exp.Any | exp.All):
            raise NotSupportedError("not supported: LIKE ANY and LIKE ALL")
        name = "like" if isinstance(node, exp.Like) else "ilike"
        args = [self.bind(n) for n in (node.this, node.expression, escape) if n is not None]
        e = call(name, *args)
        return Not(e) if node.args.get("negate") else e

    def _case(self, node: exp.Case) -> Expr:
        branches, interned = list[tuple[Expr, Expr]](), self.query.interned
        subject = self.bind(node.this) if node.this is not None else None
        for branch in node.args["ifs"]:
            when = branch.this
            test = self._truth(when) if subject is None else interned.call("eq", subject, self.bind(when))
            branches.append((test, self.bind(branch.args["true"])))
        default = node.args.get("default")
        return interned.case(branches, None if default is None else self.bind(default))

    # ---- aggregates --------------------------------------------------------------------------------------------------

    def _check_own(self, name: str, bound: Sequence[Expr]) -> None:
        """An aggregate of which all columns are an outer query's belongs to that query, in SQL; that is refused."""
        used = {x.id for e in bound for x in walk(e) if isinstance(x, Column)}
        if used and used.isdisjoint(self.scope.own_ids()):
            raise NotSupportedError(f"not supported: {name} in a subquery over columns of the query around it alone")

    def _grouping(self, args: Sequence[exp.Expr]) -> Expr:
        if self.aggregates is None:
            raise BindError(f"{self.clause} cannot contain GROUPING")
        binder = ExprBinder(self.query, self.scope, "the argument of GROUPING", None, self.aliases)
        return self.aggregates.grouping(args, [binder.bind(a) for a in args])

    def _aggregate(self, node: exp.Expr) -> Expr:
        if node._meta is not None and (number := node._meta.get(ARGUMENT)) is not None:
            scope, aliases, aggregates = self.query.calls[number]
            return ExprBinder(self.query, scope, self.clause, aggregates, aliases)._aggregate(unmarked(node))
        name = (said := call_parts(node)).name
        if not is_aggregate(name):
            what = "FILTER of a function that is no aggregate:" if is_declared(name) else "the aggregate"
            raise NotSupportedError(f"not supported: {what} {name}")
        if self.aggregates is None:
            raise BindError(f"{self.clause} cannot contain aggregates ({name})")
        binder = ExprBinder(self.query, self.scope, f"the argument of {name}", None, self.aliases)
        grouped, self.scope.grouped = self.scope.grouped, None  # arguments are of the rows, not of the groups
        try:
            bound = [binder.bind(a) for a in said.args]
            kept = binder.condition(said.where) if said.where is not None else None
            order = [sort_key(binder.bind(o.this), o, self.query.sql) for o in keys_of(said.order)]
        finally:
            self.scope.grouped = grouped
        if self.scope.parent is not None:
            self._check_own(name, bound)
        if said.distinct and any(k.expr not in bound for k in order):
            raise BindError(f"{name}(DISTINCT ...) can only be ordered by its arguments")
        if name == "count" and not said.distinct and len(bound) == 1 and never_null(bound[0]):
            bound = []  # count of a value that is never NULL is count(*)
        add = self.aggregates.add
        made = at_fractions(name, bound, lambda args: add(aggregate(name, args, said.distinct, kept, order), name))
        return Literal(None, NULL) if called(name, len(bound)).is_of_no_type(bound) else made


def _asked_for(e: Expr) -> Expr:
    """A cast that was asked for: an integer that it made does not take on the type of what it meets."""
    return Cast(e, e.dtype) if isinstance(e, Literal) and is_integer_literal(e) else e
