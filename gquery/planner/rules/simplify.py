"""Expressions in a simpler form that has the same value, NULL included.

    NOT (a < 5 OR b)                     =>  a >= 5 AND NOT b
    (k AND a) OR (k AND b)               =>  k AND (a OR b)        a join condition inside an OR comes to light
    x = 1 OR x = 2                       =>  x IN (1, 2)
    x <> 1 AND ... AND x <> 6            =>  NOT x IN (1, ..., 6)
    5 > x                                =>  x < 5                 a constant stands on the right
    CAST(d AS TIMESTAMP) < '2000-01-01'  =>  d < DATE ...          see `unwrap_casts`
    len([a, b])                          =>  2             see `list_values`
    upper('a'), CAST('1' AS INTEGER)     =>  their value           by the injected `evaluate`

Distribution and De Morgan's laws hold in three-valued logic; ``x = x`` is TRUE only where x is not NULL. What raises
when it is evaluated is left as it is: it may stand in a branch that is never taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from gquery import tuning
from gquery.expression.expr import (
    FALSE,
    TRUE,
    And,
    Call,
    Case,
    Cast,
    Column,
    Expr,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    ScalarSubquery,
)
from gquery.expression.traverse import conjunction, conjuncts, disjunction, transform
from gquery.expression.types import BOOLEAN
from gquery.functions import MIRRORED, NEGATED
from gquery.functions.certain import never_fails, never_null
from gquery.planner.logical.nodes import Filter, Plan
from gquery.planner.logical.tree import map_expressions, transform_up
from gquery.planner.rules.fold_constants import Evaluate, folded
from gquery.planner.rules.unwrap_casts import uncast

_UNKNOWN = Literal(None, BOOLEAN)
_LISTS = frozenset({"list_value", "_list_kept"})  # that are written out
_NEGATED = NEGATED | {"is_distinct_from": "is_not_distinct_from", "is_not_distinct_from": "is_distinct_from"}
_FLIPPED = MIRRORED | {"is_distinct_from": "is_distinct_from", "is_not_distinct_from": "is_not_distinct_from"}


def simplify(plan: Plan, evaluate: Evaluate | None) -> Plan | None:
    """Every expression of the plan simplified; filters that keep all rows are dropped."""

    one, done = _one(evaluate), dict[int, Expr]()

    def node(p: Plan) -> Plan:
        p = map_expressions(p, lambda e: transform(e, one, done) if e.children else e)
        return p.source if isinstance(p, Filter) and p.predicate == TRUE else p

    new = transform_up(plan, node)
    return None if new is plan else new


def simplify_expr(e: Expr) -> Expr:
    """
    >>> from gquery.expression.types import INTEGER
    >>> from gquery.expression.expr import new_column
    >>> x = new_column("x", INTEGER)
    >>> simplify_expr(Not(Call("lt", (Literal(5, INTEGER), x), BOOLEAN, True))).function
    'le'
    """
    return transform(e, _one(None)) if e.children else e


def _one(evaluate: Evaluate | None) -> Callable[[Expr], Expr]:
    """What simplifies an expression whose parts are simple."""

    def one(x: Expr) -> Expr:
        match x:
            case Column() | Literal():  # most are
                return x
            case Call():
                is_comparison = x.function in _FLIPPED and len(x.args) == 2
                return _folded_comparison(x, evaluate) if is_comparison else _folded_call(x, evaluate)
            case And(args):
                return _and(x, args)
            case Or(args):
                return _or(x, args)
            case Not(arg):
                return _not(x, arg)
            case IsNull(arg):
                if isinstance(arg, Literal):
                    return TRUE if arg.is_null else FALSE
                return FALSE if never_null(arg) else x
            case Case():
                return _case(x)
            case In(arg=arg, items=items) if len(items) == 1:
                return _folded_comparison(Call("eq", (arg, items[0]), BOOLEAN, arg.nullable), evaluate)
            case Cast(arg=arg, dtype=dtype):
                return arg if arg.dtype == dtype else _folded_cast(x, evaluate)
            case _:
                return x

    return one


def _folded_call(e: Call, evaluate: Evaluate | None) -> Expr:
    made: Expr = e
    if e.args and isinstance(first := e.args[0], Call) and first.function in _LISTS:
        from gquery.planner.rules.list_values import of_list_values  # which most queries do without

        made = of_list_values(e)
    return folded(made, evaluate) if isinstance(made, Call) else made


def _folded_cast(e: Cast, evaluate: Evaluate | None) -> Expr:
    if e.dtype.is_list:
        from gquery.planner.rules.list_values import cast_of_values  # as above

        if (made := cast_of_values(e)) is not e:
            return made
    return folded(e, evaluate)


def _folded_comparison(call: Call, evaluate: Evaluate | None) -> Expr:
    made = _comparison(call)
    return folded(made, evaluate) if isinstance(made, Call) else made


def _not(e: Expr, arg: Expr) -> Expr:
    match arg:
        case Literal(value=v):
            return _UNKNOWN if v is None else FALSE if v else TRUE
        case Not(inner):
            return inner
        case Call() if arg.function in _NEGATED:
            return Call(_NEGATED[arg.function], arg.args, BOOLEAN, arg.nullable)
        case And(args):
            return _or(None, tuple(_not(Not(a), a) for a in args))
        case Or(args):
            return _and(None, tuple(_not(Not(a), a) for a in args))
        case _:
            return e


def _and(e: Expr | None, args: tuple[Expr, ...]) -> Expr:
    terms = tuple(dict.fromkeys(t for a in args for t in conjuncts(a)))
    if FALSE in terms:
        return FALSE
    if len(terms) >= tuning.rewrites.least_in_list:
        terms = _inequalities_as_not_in(terms)
    return e if e is not None and terms == args else conjunction(terms)


def _or(e: Expr | None, args: tuple[Expr, ...]) -> Expr:
    flat = tuple(dict.fromkeys(t for a in args for t in (a.args if isinstance(a, Or) else (a,)) if t != FALSE))
    if TRUE in flat:
        return TRUE
    if len(flat) < 2:
        return disjunction(flat)
    branches = [conjuncts(b) for b in flat]
    first, *others = (set(b) for b in branches)
    common = first.intersection(*others)
    if common:
        shared = tuple(t for t in branches[0] if t in common)
        rest = tuple(conjunction(tuple(t for t in b if t not in common)) for b in branches)
        return conjunction(shared) if TRUE in rest else conjunction((*shared, _or(None, rest)))
    merged = _equalities_as_in(flat)
    return e if e is not None and merged == args else disjunction(merged)


def _equalities_as_in(args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """``x = 1 OR x IN (2, 3)`` as ``x IN (1, 2, 3)``, in the place of the first."""
    compared = [_compared(a) for a in args]
    count = Counter(c for c in compared if c is not None)
    if not any(n > 1 for n in count.values()):
        return args
    values: dict[Expr, dict[Literal, None]] = {}
    for a, c in zip(args, compared, strict=True):
        if c is not None and count[c] > 1:
            values.setdefault(c, {}).update(dict.fromkeys(_alternatives(a)))
    out: list[Expr] = []
    for a, c in zip(args, compared, strict=True):
        if c is None or count[c] == 1:
            out.append(a)
        elif c in values:
            out.append(In(c, tuple(values.pop(c))))
    return tuple(out)


def _inequalities_as_not_in(terms: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """``x <> 1 AND NOT x IN (2, 3)`` as ``NOT x IN (1, 2, 3)``, in the place of the first, where a value has many."""
    values: dict[Expr, dict[Literal, None]] = {}
    excluded = [_excluded(t) for t in terms]
    for pair in excluded:
        if pair is not None:
            values.setdefault(pair[0], {}).update(dict.fromkeys(pair[1]))
    out: list[Expr] = []
    for t, pair in zip(terms, excluded, strict=True):
        if pair is None or (pair[0] in values and len(values[pair[0]]) < tuning.rewrites.least_in_list):
            out.append(t)
        elif pair[0] in values:
            out.append(Not(In(pair[0], tuple(values.pop(pair[0])))))
    return tuple(out)


def _excluded(e: Expr) -> tuple[Expr, tuple[Literal, ...]] | None:
    match e:
        case Not(In(arg=arg, items=items)):
            return arg, items
        case Call(function="ne", args=(a, Literal() as b)) if not b.is_null and not isinstance(a, ScalarSubquery):
            return a, (b,)
        case _:
            return None


def _compared(e: Expr) -> Expr | None:
    """What a term says to be one of some constants."""
    match e:
        case In(arg=arg):
            return arg
        case Call(function="eq", args=(a, Literal() as b)) if not b.is_null and not isinstance(a, ScalarSubquery):
            return a
        case _:
            return None


def _alternatives(e: Expr) -> tuple[Literal, ...]:
    """The constants."""
    match e:
        case In(items=items):
            return items
        case Call(args=(_, Literal() as b)):
            return (b,)
        case _:
            raise AssertionError(e)


def _case(e: Case) -> Expr:
    branches: list[tuple[Expr, Expr]] = []
    otherwise = e.otherwise
    for condition, value in e.branches:
        if isinstance(condition, Literal):
            if not condition.value:
                continue
            otherwise = value
            break
        branches.append((condition, value))
    if not branches:
        return otherwise
    return e if len(branches) == len(e.branches) else Case(tuple(branches), otherwise)


def _comparison(e: Call) -> Expr:
    a, b = e.args
    if isinstance(a, Literal) and not isinstance(b, Literal):
        return _comparison(Call(_FLIPPED[e.function], (b, a), BOOLEAN, e.nullable))
    if isinstance(a, Column) and isinstance(b, Column) and a.id > b.id:  # a = b AND b = a are one condition
        return _comparison(Call(_FLIPPED[e.function], (b, a), BOOLEAN, e.nullable))
    strict = not e.function.startswith("is_")
    if strict and (_is_null(a) or _is_null(b)):
        return _UNKNOWN
    if not strict and not a.nullable and not b.nullable:
        return _comparison(Call("eq" if e.function == "is_not_distinct_from" else "ne", e.args, BOOLEAN, False))
    if not isinstance(a, Literal) and a == b and (not strict or not a.nullable) and never_fails(a):
        return TRUE if e.function in ("eq", "le", "ge", "is_not_distinct_from") else FALSE
    if e.function == "eq" and b == TRUE:
        return a
    return uncast(e)


def _is_null(e: Expr) -> bool:
    return isinstance(e, Literal) and e.is_null
