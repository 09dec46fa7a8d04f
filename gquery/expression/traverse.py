"""The recursion over expressions: walks, rewrites and the terms of AND and OR."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, assert_never

from gquery.expression.expr import (
    FALSE,
    TRUE,
    And,
    Call,
    Case,
    Cast,
    Column,
    Exists,
    Expr,
    In,
    InSubquery,
    IsNull,
    Literal,
    Not,
    Or,
    ScalarSubquery,
    same_objects,
)
from gquery.expression.slots import SlotLiteral
from gquery.runtime.records import replace

if TYPE_CHECKING:
    pass


def with_children(e: Expr, new: tuple[Expr, ...]) -> Expr:
    """``e`` with other children; the same object where they are the same objects."""
    if same_objects(e.children, new):
        return e
    match e:
        case Column() | Literal() | ScalarSubquery() | Exists():
            return e
        case Call():
            return replace(e, args=new)
        case And():
            return conjunction(new)
        case Or():
            return disjunction(new)
        case InSubquery():
            return replace(e, args=new)
        case Cast() | In():
            return replace(e, arg=new[0])
        case Not():
            return Not(new[0])
        case IsNull():
            return IsNull(new[0])
        case Case():
            pairs = tuple((new[i], new[i + 1]) for i in range(0, len(new) - 1, 2))
            return Case(pairs, new[-1])
        case _:
            assert_never(e)


def transform(e: Expr, f: Callable[[Expr], Expr], done: dict[int, Expr] | None = None) -> Expr:
    """``f`` applied to every expression, children first, once to one that stands in several places. Plans of subqueries are
    left to the caller. ``done`` is shared by calls with one ``f`` for expressions that all stay."""
    if not e.children:
        return f(e)
    done = {} if done is None else done
    return known if (known := done.get(id(e))) is not None else _transform(e, f, done)


def _transform(e: Expr, f: Callable[[Expr], Expr], done: dict[int, Expr]) -> Expr:
    """``done``: what was made of the expressions with children, by identity."""
    new, is_new = [], False
    for k in e.children:
        if not k.children:
            made = f(k)
        elif (known := done.get(id(k))) is not None:
            made = known
        else:
            made = _transform(k, f, done)
        is_new = is_new or made is not k
        new.append(made)
    made = done[id(e)] = f(with_children(e, tuple(new)) if is_new else e)
    return made


def walk(e: Expr) -> Iterator[Expr]:
    """``e`` and every expression below it, parents first (plans of subqueries are not expressions). One that stands in
    several places comes once; a column or constant once for each expression over it."""
    stack, seen = [e], set()
    while stack:
        x = stack.pop()
        if kids := x.children:
            if id(x) in seen:
                continue
            seen.add(id(x))
            stack.extend(kids[::-1])
        yield x


def columns_of(e: Expr) -> frozenset[int]:
    """Ids of the columns in an expression without subqueries, whose plans are not read here."""
    used = e.memo_columns
    if used is None:
        used = frozenset([e.id]) if isinstance(e, Column) else frozenset[int]().union(*map(columns_of, e.children))
        e.memo_columns = used
    return used


def pinned(e: Expr) -> Expr:
    """The expression with constants in place of slots, whose values are looked at."""

    def plain(x: Expr) -> Expr:
        if isinstance(x, In) and any(isinstance(i, SlotLiteral) for i in x.items):
            return In(x.arg, tuple([Literal(i.value, i.dtype) for i in x.items]))
        return Literal(x.value, x.dtype) if isinstance(x, SlotLiteral) else x

    return transform(e, plain)


def substitute(e: Expr, columns: dict[int, Expr]) -> Expr:
    """Columns replaced by expressions, by column id."""
    return transform(e, lambda x: columns.get(x.id, x) if isinstance(x, Column) else x)


def conjuncts(e: Expr | None) -> tuple[Expr, ...]:
    """The terms of a conjunction; () for TRUE and None."""
    if isinstance(e, And):
        return e.args
    return () if e is None or (isinstance(e, Literal) and e == TRUE) else (e,)


def conjunction(terms: tuple[Expr, ...]) -> Expr:
    """The terms joined by AND, flattened; TRUE for none."""
    flat = tuple([x for t in terms for x in conjuncts(t)])
    return TRUE if not flat else flat[0] if len(flat) == 1 else And(flat)


def disjunction(terms: tuple[Expr, ...]) -> Expr:
    """The terms joined by OR, flattened; FALSE for none."""
    flat = tuple([x for t in terms for x in (t.args if isinstance(t, Or) else (t,)) if x != FALSE])
    return FALSE if not flat else flat[0] if len(flat) == 1 else Or(flat)
