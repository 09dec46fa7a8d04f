"""Dataclasses whose methods are made when they are first called.

`dataclasses` compiles up to six functions a class, 0.1 ms each, while a module is imported: for the engine's 230 classes that
was a third of what a process took to its first answer. Most of them are never compared, hashed or printed in a process, and
many are never made. Of those that are, half are made a few times: their fields are gone through one by one at first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, FrozenInstanceError, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, cast, dataclass_transform, overload

from gquery import tuning
from gquery.runtime.record_fields import add_fields, names_in

T = TypeVar("T")


@overload
def dataclass(cls: type[T], /) -> type[T]: ...


@overload
def dataclass(
    *, frozen: bool = False, eq: bool = True, slots: bool = False, unsafe_hash: bool = False
) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(field_specifiers=(field,))
def dataclass(
    cls: type[T] | None = None,
    /,
    *,
    frozen: bool = False,
    eq: bool = True,
    slots: bool = False,
    unsafe_hash: bool = False,
) -> type[T] | Callable[[type[T]], type[T]]:
    """`dataclasses.dataclass`, with those of its options that are named here."""

    def make(cls: type[T]) -> type[T]:
        return _make(cls, frozen, eq, slots, unsafe_hash)

    return make if cls is None else make(cls)


def _make(cls: type[T], frozen: bool, eq: bool, slots: bool, unsafe_hash: bool) -> type[T]:
    own = {name for name, value in vars(cls).items() if value is not None}
    if cls.__doc__ is None:  # else `dataclasses` has `inspect` make a signature for it, which takes 3 ms at first
        cls.__doc__ = cls.__name__
    wanted = ["__init__", "__repr__", *(["__eq__"] if eq else [])]
    if unsafe_hash or (eq and frozen):
        wanted.append("__hash__")
    owner: list[type] = []
    methods: dict[str, Any] = {name: _later(owner, name, frozen) for name in wanted if name not in own}
    if eq and "__hash__" not in wanted and "__hash__" not in own:
        methods["__hash__"] = None  # as `dataclasses` has it: what changes is no key
    if frozen:
        methods |= {"__setattr__": _set, "__delattr__": _delete}
        if slots:
            methods |= {"__getstate__": _fields_of, "__setstate__": _set_fields}
    made: Any = cls
    is_plain = add_fields(cls)
    if slots and is_plain:
        made = _slotted(cls, methods)
    else:
        if not is_plain:
            made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
        for name, method in methods.items():
            setattr(made, name, method)
    owner.append(made)
    return cast("type[T]", made)


def _slotted(cls: Any, methods: dict[str, Any]) -> Any:
    """A class like one that has its fields already, whose objects have a slot for each field and nothing else. Methods that are
    there when a class is made take less than those that are set later: each of these is looked for in all of its slots."""
    names = names_in(vars(cls)["__dataclass_fields__"])
    taken = {name for base in cls.__mro__[1:-1] for name in vars(base).get("__slots__", ())}
    own = {k: v for k, v in vars(cls).items() if k not in names and k not in ("__dict__", "__weakref__")}
    slots = {"__slots__": tuple([n for n in names if n not in taken])}
    made = type(cls)(cls.__name__, cls.__bases__, own | methods | slots)
    made.__qualname__ = cls.__qualname__
    return made


if TYPE_CHECKING:
    from functools import cached_property as cached_property  # of which a type checker knows what it is
else:

    class _CachedProperty:
        """`functools.cached_property` as Python 3.12 has it, in 40 % of the time: the one of 3.11 takes a lock, the same for all
        objects of a class, so that threads that plan wait for each other. Two threads that ask at once may both compute it.

        >>> class Circle:
        ...     @cached_property
        ...     def area(self):
        ...         return print("computed") or 3
        >>> circle = Circle()
        >>> circle.area, circle.area
        computed
        (3, 3)
        """

        def __init__(self, compute):
            self.compute = compute
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, record, owner=None):
            if record is None:
                return self
            found = record.__dict__[self.name] = self.compute(record)
            return found

    cached_property = _CachedProperty


if TYPE_CHECKING:
    from dataclasses import replace as replace  # whose arguments a type checker knows
else:

    def replace(record: Any, /, **changes: object) -> Any:
        """`dataclasses.replace` in a third of the time: which fields a class has is looked up once, and a choice of fields that
        is asked for again and again has a function. Raises TypeError for a name that is no argument of the class."""
        cls = record.__class__
        chosen = (cls, *changes)
        if (made := _copies.get(chosen)) is not None:
            return made(record, *changes.values())
        get, places, plain = _arguments.get(cls) or _arguments_of(cls)
        values = [*get(record)]
        for name, value in changes.items():
            if (place := places.get(name)) is None:
                raise TypeError(f"{cls.__name__} is not made with {name!r}")
            values[place] = value
        calls = _copied[chosen] = _copied.get(chosen, 0) + 1
        if calls >= tuning.startup.compiled_calls:
            _copies[chosen] = _copy(cls, tuple(changes), places, plain)
        if plain == len(values):
            return cls(*values)
        return cls(*values[:plain], **{name: values[n] for name, n in places.items() if n >= plain})


_Chosen = tuple[object, ...]
"""A class, and the names of the fields that are given."""
_copied: dict[_Chosen, int] = {}  # how often that was asked for
_copies: dict[_Chosen, Callable[..., Any]] = {}  # the function that does it


def _copy(cls: type, changed: tuple[str, ...], places: dict[str, int], plain: int) -> Callable[..., Any]:
    """A record with other values of some fields, as a function of the record and of these."""
    values = {name: name if name in changed else f"_record_.{name}" for name in places}
    given = ", ".join([value if places[name] < plain else f"{name}={value}" for name, value in values.items()])
    scope: dict[str, Any] = {"_class_": cls}
    exec(f"def copied(_record_, {', '.join(changed)}):\n return _class_({given})", scope)  # as in `_init`
    copied: Callable[..., Any] = scope["copied"]
    return copied


_Arguments = tuple[Callable[[object], tuple[object, ...]], dict[str, int], int]
_arguments: dict[type, _Arguments] = {}


def _arguments_of(cls: type) -> _Arguments:
    """What gives the fields that a record is made of, the place of each, and how many are not given by name."""
    given = sorted((f for f in dataclasses.fields(cls) if f.init), key=lambda f: bool(f.kw_only))
    names = [f.name for f in given]
    plain = sum(not f.kw_only for f in given)
    found = _arguments[cls] = _getter(names), {name: n for n, name in enumerate(names)}, plain
    return found


def remembered_by(cls: type) -> tuple[str, ...]:
    """What a class calls ``REMEMBERED``: names beside its fields, for what is found out about an object later. They are None when
    it is made, since to ask for a slot without a value raises an error, which takes as long as ten assignments."""
    names: tuple[str, ...] = getattr(cls, "REMEMBERED", ())
    return names


def _later(owner: list[type], name: str, frozen: bool) -> Callable[..., Any]:
    """A method that has the true one made, and put in its place where nobody has put another there, such as one that remembers
    what this one gives. ``owner`` has the class, once that is made."""
    made: Callable[..., Any] | None = None
    fields: tuple[dataclasses.Field[Any], ...] = ()
    calls = 0

    def method(self: object, *arguments: object, **named: object) -> Any:
        nonlocal made, calls, fields
        if made is None:
            cls = owner[0]
            calls += 1
            if name == "__init__" and calls < tuning.startup.compiled_calls:
                fields = fields or dataclasses.fields(cast(Any, cls))
                if _fill(self, fields, frozen, arguments, named):
                    return None
            made = _made(cls, name, frozen)
            made.__qualname__ = f"{cls.__qualname__}.{name}"
            if vars(cls).get(name) is method:
                setattr(cls, name, made)
            for put in method.__dict__.get("waiting", ()):
                put(made)
        return made(self, *arguments, **named)

    method.__name__ = name
    return method


def when_made(method: Callable[..., Any], put: Callable[[Callable[..., Any]], None]) -> None:
    """Have ``put`` called with what takes the place of a method that is made when it is first called, for who goes on to call the
    one that is there now."""
    method.__dict__.setdefault("waiting", []).append(put)


def _fill(
    record: Any,
    fields: tuple[dataclasses.Field[Any], ...],
    frozen: bool,
    given: tuple[object, ...],
    named: dict[str, object],
) -> bool:
    """What a compiled ``__init__`` does in a fifteenth of the time, once 60 us have been spent on it. False, and nothing is done,
    where the arguments do not fit: that raises the error then."""
    values: list[tuple[str, object]] = []
    at = used = 0
    for f in fields:
        if f.init and not f.kw_only and at < len(given):
            value, at = given[at], at + 1
        elif f.init and f.name in named:
            value, used = named[f.name], used + 1
        elif f.default is not MISSING:
            value = f.default
        elif f.default_factory is not MISSING:
            value = f.default_factory()
        elif f.init:
            return False
        else:
            continue  # it is set later
        values.append((f.name, value))
    if at < len(given) or used < len(named):
        return False
    put = object.__setattr__ if frozen else setattr
    for name, value in values:
        put(record, name, value)
    for name in remembered_by(type(record)):
        put(record, name, None)
    if hasattr(record, "__post_init__"):
        record.__post_init__()
    return True


def _made(cls: type, name: str, frozen: bool) -> Any:
    """A method as `dataclasses` makes it for a class with the same fields."""
    match name:
        case "__init__":
            return _init(cls, frozen)
        case "__eq__":
            return _eq(_getter([f.name for f in dataclasses.fields(cls) if f.compare]))
        case "__hash__":
            return _hash(
                _getter([f.name for f in dataclasses.fields(cls) if (f.compare if f.hash is None else f.hash)])
            )
        case _:
            own = [(f.name, object, copy(f)) for f in dataclasses.fields(cls)]
            twin = dataclasses.make_dataclass(
                cls.__name__, own, init=False, eq=False, namespace={"__doc__": cls.__doc__}
            )
            return vars(twin)[name]


def _getter(names: list[str]) -> Callable[[object], tuple[object, ...]]:
    """Makes a tuple of the fields of a record that are compared: tuples take an object to be equal to itself, a NaN too."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple([getattr(record, name) for name in names])


def _eq(get: Callable[[object], object]) -> Any:
    def __eq__(self: object, other: object) -> Any:  # noqa: N807  (its name)
        return get(self) == get(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(get: Callable[[object], object]) -> Any:
    def __hash__(self: object) -> int:  # noqa: N807  (its name)
        return hash(get(self))

    return __hash__


def _init(cls: type, frozen: bool) -> Any:
    """The same for the one that all need: `dataclasses` would make two more for a frozen class."""
    scope: dict[str, Any] = {"set_field": object.__setattr__, "not_given": object()}
    plain: list[str] = ["self"]
    named: list[str] = []
    lines: list[str] = ["pass"]
    for n, f in enumerate(dataclasses.fields(cls)):
        value, default = f.name, ""
        if f.default is not MISSING:
            scope[f"default{n}"], default = f.default, f"=default{n}"
            value = f.name if f.init else f"default{n}"
        elif f.default_factory is not MISSING:
            scope[f"default{n}"], default = f.default_factory, "=not_given"
            value = f"default{n}() if {f.name} is not_given else {f.name}" if f.init else f"default{n}()"
        elif not f.init:
            continue  # it is set later
        if f.init:
            (named if f.kw_only else plain).append(f.name + default)
        lines.append(f"set_field(self, {f.name!r}, {value})" if frozen else f"self.{f.name} = {value}")
    if names := remembered_by(cls):
        lines.append(f"{' = '.join(f'self.{name}' for name in names)} = None")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join([*plain, *(["*", *named] if named else [])])
    exec(f"def __init__({parameters}):\n " + "\n ".join(lines), scope)  # names of fields, which are in our own text
    return scope["__init__"]


# ---- what all frozen ones share -------------------------------------------------------------------------------------
def _set(record: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(record: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _fields_of(record: Any) -> list[Any]:
    return [getattr(record, f.name) for f in dataclasses.fields(record)]


def _set_fields(record: Any, values: list[Any]) -> None:
    for f, value in zip(dataclasses.fields(record), values, strict=True):
        object.__setattr__(record, f.name, value)
