"""How functions of lists are declared: their types follow from those of the elements, so that a rule stands where other functions
have signatures.

Such a function is found in two ways. Where an argument is a list, `registry.call` asks here first (a name like ``len`` is one
of texts, too, and ``=`` one of everything); where none is, as in ``list_value(1, 2)``, it is a function like others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from gquery.errors import BindError
from gquery.expression.expr import Expr
from gquery.expression.nested_types import list_of
from gquery.expression.promotion import common_type
from gquery.expression.types import DType, Kind
from gquery.functions.casts import cast, fits, is_integer_literal, is_text_literal, unify
from gquery.functions.registry import (
    DOCS,
    EXAMPLES,
    LIST_RESOLVERS,
    RESOLVERS,
    SIGNATURES,
    ScalarFunction,
    arguments_of,
    declare,
    make,
)

F = TypeVar("F", bound=Callable[..., Any])
Typed = tuple[Sequence[Expr], DType]
Rule = Callable[..., Typed | None]  # from the arguments to those that are cast, and the type of the result


def list_function(
    names: str,
    rule: Rule,
    signature: str,
    *,
    strict: bool = True,
    nullable: bool = False,
    example: tuple[str, str] | None = None,
) -> Callable[[F], F]:
    """Declares the decorated function over Arrow arrays under these names. ``strict`` and ``nullable`` as in `host_scalar`."""

    def declare_function(f: F) -> F:
        name, doc = names.split()[0], f.__doc__ or ""
        declare(ScalarFunction(name, host=f, strict=strict, nullable=nullable, doc=doc, example=example))
        resolve = _resolver(name, rule)
        for alias in names.split():
            LIST_RESOLVERS.setdefault(alias, []).append(resolve)
            RESOLVERS.setdefault(alias, []).append(resolve)
            _document(alias, signature, f.__module__, doc)
        return f

    return declare_function


def list_overload(
    names: str,
    rule: Rule,
    signature: str = "",
    *,
    nullable: bool = False,
    example: tuple[str, str] | None = None,
) -> Callable[[F], F]:
    """The same under names that are those of other functions, or of operators, where no argument is a list."""

    def declare_function(f: F) -> F:
        name, doc = f"_list_{names.split()[0].lstrip('_')}", f.__doc__ or ""
        declare(ScalarFunction(name, host=f, nullable=nullable, doc=doc))
        if example is not None:
            EXAMPLES.append((names.split()[0], *example))
        resolve = _resolver(name, rule)
        for alias in names.split():
            LIST_RESOLVERS.setdefault(alias, []).append(resolve)
            RESOLVERS.setdefault(alias, [])  # of a name that is of lists alone
            if signature:
                _document(alias, signature, f.__module__, doc)
        return f

    return declare_function


def _document(name: str, signature: str, module: str, doc: str) -> None:
    if not name.startswith("_"):
        SIGNATURES.setdefault(name, []).append(signature.replace("$", name))
        DOCS.setdefault(name, (module, doc))


def _resolver(name: str, rule: Rule) -> Callable[[tuple[Expr, ...]], Expr | None]:
    least, most = arguments_of(rule)

    def resolve(args: tuple[Expr, ...]) -> Expr | None:
        if not least <= len(args) <= most:
            return None
        typed = rule(*args)
        return None if typed is None else make(name, typed[0], typed[1])

    return resolve


def element_of(e: Expr) -> DType | None:
    """The type of a list's elements, NULL for a NULL of no type; None for what is no list."""
    return e.dtype if e.dtype.kind is Kind.NULL else e.dtype.element


def as_lists(*lists: Expr) -> list[Expr] | None:
    """Lists with elements of one type; None where that cannot be."""
    if any(element_of(e) is None for e in lists) or all(e.dtype.kind is Kind.NULL for e in lists):
        return None
    dtype = unify(lists)
    if dtype is None:
        raise BindError(f"lists of different types meet: {', '.join(str(e.dtype) for e in lists)}")
    return [cast(e, dtype) for e in lists]


def with_value(xs: Expr, value: Expr, is_new: bool = False) -> tuple[Expr, Expr, DType] | None:
    """A list and a value of the type of its elements, and that type. ``is_new``: the value becomes one of them, so that a
    constant takes on no other type."""
    element = element_of(xs)
    if element is None:
        return None
    dtype = common_type(element, value.dtype) if is_new else meeting(element, value)
    if dtype is None:
        raise BindError(f"a value of type {value.dtype} is no element of a list of type {xs.dtype}")
    return cast(xs, list_of(dtype)), cast(value, dtype), dtype


def meeting(element: DType, value: Expr) -> DType | None:
    """The type in which elements and a value meet: a constant takes on that of the elements, where it fits."""
    if is_text_literal(value) and element.kind is not Kind.NULL:
        return element
    if element.is_integer and is_integer_literal(value) and fits(value, element):
        return element
    return common_type(element, value.dtype)
