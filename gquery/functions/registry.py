"""What a function declaration is, where it is kept, and how a call is resolved to one.

Two tables stand side by side. `FUNCTIONS` holds every name that may stand in `Call.function`: a kernel body, a host
function, or an operator that the engine renders itself. `RESOLVERS` holds every name that a user may write: each entry
turns bound arguments into an expression, or declines. Most names are both; ``coalesce``, ``greatest`` or ``floor`` of a
decimal only stand for larger expressions, so the engine never learns of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from gquery.errors import BindError, DatabaseError, did_you_mean
from gquery.expression.expr import Call, Expr, Literal
from gquery.expression.types import Bounds, DType, Kind
from gquery.functions.casts import cast, implicit_cost, is_text_literal
from gquery.functions.opaque import CARRYING, refuse_nested, refuse_opaque
from gquery.runtime.records import dataclass

BoundsRule = Callable[..., Bounds | None]  # one ``Bounds | None`` an argument
Resolver = Callable[[tuple[Expr, ...]], Expr | None]
Domain = tuple[tuple[Callable[..., bool], str], ...]
Failure = tuple[type[DatabaseError], str]  # and what it says
Signature = tuple[Sequence[DType], DType]
"""The types of parameters, and that of the result."""
F = TypeVar("F", bound=Callable[..., Any])
_TAKES_ANY = 4  # `inspect.CO_VARARGS`


@dataclass(frozen=True)
class ScalarFunction:
    """A function that may stand in `Call.function`.

    Exactly one of three: ``body`` is a plain Python function over registers that calls primitives by name; ``host`` is
    a function over Arrow arrays (it makes new strings, or nothing in a kernel can do it; `gquery.functions.vectors`);
    neither means that the engine renders the operator for each type. ``bounds`` gives the physical range of an exact
    result from those of the arguments. ``strict``: NULL in gives NULL out, and the function is not called. ``nullable``:
    it may give NULL for arguments that are not (division by zero); with ``null_if_all`` it is where all arguments are. A
    body gets a parameter that ``takes_null`` as its value and whether it is there; with ``gives_null`` it returns such a
    pair. ``unproved``: nothing is known of what the body returns but its register, so it is checked against its type.
    Each of ``domain`` is a body that tells whether arguments raise, and the error's text. ``fails``: the error where a
    host function gives NULL for arguments that are there. ``example`` is (SQL, its value as text).
    """

    name: str
    body: Callable[..., Any] | None = None
    host: Callable[..., Any] | None = None
    bounds: BoundsRule | None = None
    strict: bool = True
    nullable: bool = False
    doc: str = ""
    example: tuple[str, str] | None = None
    takes_null: tuple[bool, ...] = ()
    gives_null: bool = False
    unproved: bool = False
    domain: Domain = ()
    null_if_all: bool = False
    fails: Failure | None = None

    def may_be_null(self, args: Sequence[Expr]) -> bool:
        """Whether a call may be NULL, as it follows from its arguments."""
        if self.nullable:
            return True
        if self.null_if_all:
            return all(a.nullable for a in args)
        if self.strict:
            for a in args:  # a generator costs more
                if a.nullable:
                    return True
        return False


T = TypeVar("T")


class _Declared(dict[str, T]):
    """By name what is declared. Some modules are imported when one of their names is first asked for."""

    def __missing__(self, name: str) -> T:
        if not declared_later(name):
            raise KeyError(name)
        return self[name]

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default


FUNCTIONS: dict[str, ScalarFunction] = _Declared()
RESOLVERS: dict[str, list[Resolver]] = {}
LIST_RESOLVERS: dict[str, list[Resolver]] = {}  # those that are asked where an argument is a list
SIGNATURES: dict[str, list[str]] = {}  # for error messages
EXAMPLES: list[tuple[str, str, str]] = []  # (name, SQL, value): every declared example
DOCS: dict[str, tuple[str, str]] = {}  # by SQL name, the module that declares it and what it says: for the reference


USER_FILE = "<gquery function "  # the beginning of the file name that the text of a user's function has


def is_user_function(body: Callable[..., Any]) -> bool:
    """Whether a body was made of a user's Python function (`functions.user`)."""
    return body.__code__.co_filename.startswith(USER_FILE)


def declare(function: ScalarFunction) -> ScalarFunction:
    """Adds a function to `FUNCTIONS`."""
    assert function.name not in FUNCTIONS, function.name
    FUNCTIONS[function.name] = function
    if function.example:
        EXAMPLES.append((function.name, *function.example))
    return function


def scalar(
    names: str,
    *signatures: Signature,
    bounds: BoundsRule | None = None,
    example: tuple[str, str] | None = None,
    domain: Domain = (),
) -> Callable[[F], F]:
    """Declares the decorated function, a kernel's body, as a function of SQL.

    ``names`` are the SQL names, the first of which is the function's; a first name that starts with ``_`` is for
    resolvers alone. Each signature is (parameter types, result type). ``bounds`` tells which integers come out, ``domain`` which
    arguments raise.
    """

    def declare_body(f: F) -> F:
        name, doc = names.split()[0], f.__doc__ or ""
        declare(ScalarFunction(name, f, None, bounds, doc=doc, example=example, domain=domain))
        _declare_names(names, signatures, f.__module__, doc)
        return f

    return declare_body


def host_scalar(
    names: str,
    *signatures: Signature,
    nullable: bool = False,
    example: tuple[str, str] | None = None,
    strict: bool = True,
    fails: Failure | None = None,
) -> Callable[[F], F]:
    """Declares the decorated function over Arrow arrays, which the host calls, as a function of SQL; names and signatures as in
    `scalar`. ``nullable``: its result may be NULL though no argument is. Where it is not ``strict``, NULL is an argument like
    others. ``fails`` is the error that a row without a result raises."""

    def declare_host(f: F) -> F:
        name, doc = names.split()[0], f.__doc__ or ""
        declare(ScalarFunction(name, None, f, None, strict, nullable, doc=doc, example=example, fails=fails))
        _declare_names(names, signatures, f.__module__, doc)
        return f

    return declare_host


def _declare_names(names: str, signatures: Sequence[Signature], module: str, doc: str) -> None:
    """Every SQL name of a function resolves to it by its signatures."""
    name = names.split()[0]
    for alias in names.split():
        RESOLVERS.setdefault(alias, []).append(lambda args: by_signature(name, args, signatures))
        shown = (f"{alias}({', '.join(map(str, types))}) -> {result}" for types, result in signatures)
        SIGNATURES.setdefault(alias, []).extend(shown)
        DOCS.setdefault(alias, (module, doc))


def resolver(
    names: str, *signatures: str, example: tuple[str, str] | None = None
) -> Callable[[Callable[..., Expr | None]], Callable[..., Expr | None]]:
    """Declares SQL names that the decorated function rewrites: from bound arguments to an expression, or None where it
    does not fit them. It is tried before earlier declarations of a name. A wrong count of arguments does not fit."""

    def declare_resolver(f: Callable[..., Expr | None]) -> Callable[..., Expr | None]:
        least, most = arguments_of(f)

        def resolve(args: tuple[Expr, ...]) -> Expr | None:
            return f(*args) if least <= len(args) <= most else None

        for name in names.split():
            RESOLVERS.setdefault(name, []).insert(0, resolve)
            SIGNATURES.setdefault(name, []).extend(s.replace("$", name) for s in signatures)
            DOCS.setdefault(name, (f.__module__, f.__doc__ or ""))
        if example:
            EXAMPLES.append((names.split()[0], *example))
        return f

    return declare_resolver


def arguments_of(rule: Callable[..., Any]) -> tuple[int, int]:
    """How few and how many arguments a function of Python takes by position, as `inspect.signature` has it in ten times the time.
    None of the functions here has parameters that are given by name alone."""
    function: Any = rule
    named = function.__code__.co_argcount
    most = 10**9 if function.__code__.co_flags & _TAKES_ANY else named
    return named - len(function.__defaults__ or ()), most


def make(name: str, args: Sequence[Expr], dtype: DType) -> Call:
    """A call whose arguments already have the right types."""
    function = FUNCTIONS[name]
    return Call(name, tuple(args), dtype, function.may_be_null(args))


def by_signature(name: str, args: Sequence[Expr], signatures: Sequence[Signature]) -> Expr | None:
    """The call of ``name`` under the signature that the arguments reach at the least cost of implicit casts. None where two
    are as near, and a text literal would take on the type of one: which is meant would be a guess."""
    best: tuple[int, Sequence[DType], DType] | None = None
    is_guess = False
    for types, result in signatures:
        if len(types) != len(args):
            continue
        costs = [implicit_cost(a, t) for a, t in zip(args, types, strict=True)]
        total = sum(c for c in costs if c is not None)
        if None not in costs and (best is None or total <= best[0]):
            is_guess = best is not None and total == best[0]
            best = best if is_guess else (total, types, result)
    if best is None or (is_guess and any(is_text_literal(a) for a in args)):
        return None
    return make(name, [cast(a, t) for a, t in zip(args, best[1], strict=True)], best[2])


_LATER: dict[str, tuple[str, ...]] = {
    "json": (
        "json", "json_extract", "json_extract_path", "json_extract_string", "json_extract_path_text", "json_type",
        "json_keys", "json_array_length", "json_valid", "json_exists", "json_contains", "json_merge_patch", "json_value",
    ),
    "uuid": ("uuid", "gen_random_uuid", "uuidv4", "uuidv7", "uuid_extract_version", "uuid_extract_timestamp"),
    "eras": (),
    "list_distances": (
        "list_distance", "list_inner_product", "list_dot_product", "list_negative_inner_product", "list_negative_dot_product",
        "list_cosine_similarity", "list_cosine_distance",
    ),
    "jsonrows": ("json_structure",),
    "tojson": ("to_json", "row_to_json", "array_to_json", "json_quote", "json_object", "json_array"),
}  # fmt: skip
"""By module the names that a user may write of what it declares; its other functions have its own name before theirs."""
LATER = {name: module for module, names in _LATER.items() for name in names}


_REST = (
    "blobs", "date_differences", "date_forms", "date_names", "dates", "day_times", "format_text", "frame_forms",
    "grapheme_pieces", "integers", "likeness", "list_aggregates", "list_moments", "list_sets", "list_splits", "lists",
    "new_strings", "numeric", "parsing", "paths", "readable", "regex", "rounding", "session", "special", "strings",
    "text_pieces", "zones",
)  # fmt: skip
"""Modules that are imported together, in this order, and by nobody else: of declarations of one name the later ones stand before
or behind the earlier ones."""
AT_ONCE = frozenset((
    "eq", "ne", "lt", "le", "gt", "ge", "is_distinct_from", "is_not_distinct_from", "add", "subtract", "multiply", "divide",
    "int_divide", "modulo", "negate", "abs", "like", "ilike", "coalesce", "ifnull", "nullif", "greatest", "least", "hash",
))  # fmt: skip
"""Names that none of them declares; a test looks."""
_is_whole = False


def declare_rest() -> bool:
    """Imports the modules whose functions few queries call; False if they are there."""
    global _is_whole
    if _is_whole:
        return False
    for module in _REST:
        importlib.import_module(f"gquery.functions.{module}")
    _is_whole = True
    return True


def declared_later(name: str) -> bool:
    """Imports what declares a name, or a function for resolvers alone; whether there may be something of it now."""
    module = LATER.get(name) or name.lstrip("_").partition("_")[0]
    if module not in _LATER:
        return declare_rest()
    declare_rest()  # which it may rest on
    importlib.import_module(f"gquery.functions.{module}")
    return True


def declare_all() -> None:
    """Imports all modules that declare functions."""
    declare_rest()
    for module in _LATER:
        importlib.import_module(f"gquery.functions.{module}")


def is_declared(name: str) -> bool:
    """Whether there is a scalar function of that name."""
    if name not in AT_ONCE:
        declare_rest()
    return name in RESOLVERS or name in LATER


def scalar_names() -> list[str]:
    """The names of all scalar functions, those that start with ``_`` among them."""
    declare_rest()
    return [*{**RESOLVERS, **LATER}]


def call(name: str, *args: Expr) -> Expr:
    """The expression that a function's name stands for, typed, with the casts that its signature asks for.

    Raises BindError, naming the argument types and the candidates, where no declaration fits.
    """
    if name not in AT_ONCE:
        declare_rest()
    resolvers = RESOLVERS.get(name)
    if resolvers is None and name in LATER and declared_later(name):
        resolvers = RESOLVERS[name]
    if resolvers is None:
        raise BindError(f"there is no scalar function {name!r}.{did_you_mean(name, _public_names())}")
    for a in args:
        if a.dtype.kind is Kind.NULL:
            if (null := _of_null(name, args)) is not None:
                return null
            break
    if name not in CARRYING:
        for a in args:
            if a.dtype.is_opaque:
                resolvers = of_lists(name, args)
                break
    for resolve in resolvers:
        result = resolve(args)
        if result is not None:
            return result
    raise no_match(name, args, SIGNATURES.get(name, []))


def _of_null(name: str, args: Sequence[Expr]) -> Expr | None:
    """What a call with an untyped NULL is; None where NULL is an argument like others."""
    from gquery.functions.untyped_nulls import nearest  # few calls have one

    best = nearest(name, args)
    if best is None:
        return None
    if not best:
        raise no_match(name, args, SIGNATURES.get(name, []))
    if len(best) > 1:
        meant = " or ".join(f"({', '.join(o.types)})" for o in best)
        given = ", ".join(str(a.dtype) for a in args)
        raise BindError(f"{shown(name)}({given}) may be {shown(name)} of {meant}; an explicit CAST is needed")
    return Literal(None, best[0].dtype) if best[0].result else None


def of_lists(name: str, args: Sequence[Expr]) -> list[Resolver]:
    """What makes a call some of whose arguments are lists, or of other types that no kernel looks at."""
    resolvers = LIST_RESOLVERS.get(name)
    if resolvers is None:
        refuse_nested(args, shown(name))
    refuse_opaque(args, shown(name))
    return resolvers or []


def no_match(name: str, args: Sequence[Expr], candidates: Sequence[str]) -> BindError:
    """The error for arguments that no declaration of ``name`` takes."""
    given = ", ".join(str(a.dtype) for a in args)
    listed = "".join(f"\n  candidate: {c}" for c in candidates)
    return BindError(f"no function matches {shown(name)}({given}); an explicit CAST may be needed{listed}")


def shown(name: str) -> str:
    """How a user writes a function."""
    return _SYMBOLS.get(name, name)


def is_null_literal(e: Expr) -> bool:
    """Whether ``e`` is NULL of no type yet."""
    return e.dtype.kind is Kind.NULL


def _public_names() -> list[str]:
    return [n for n in scalar_names() if not n.startswith("_") and n not in OPERATORS]


_SYMBOLS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "int_divide": "//", "modulo": "%", "negate": "-",
    "eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "_concat_operator": "||", "_plus": "+", "_bit_and": "&",
    "_bit_or": "|", "_bit_not": "~", "_shift_left": "<<",
    "_shift_right": ">>", "_glob": "GLOB", "is_distinct_from": "IS DISTINCT FROM", "is_not_distinct_from": "IS NOT DISTINCT FROM",
    "like": "LIKE", "ilike": "ILIKE",
}  # fmt: skip
# names under which operators are declared, which are no functions of DuckDB's
OPERATORS = frozenset((
    "eq", "ne", "lt", "le", "gt", "ge", "is_distinct_from", "is_not_distinct_from", "int_divide", "modulo", "negate",
    "like", "ilike",
))  # fmt: skip
