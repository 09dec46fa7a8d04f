"""The fields of `gquery.runtime.records`, which are made when somebody asks a class for them.

Of the engine's 340 classes a process asks some eighty, those that it makes objects of. What is found at once is what a class
cannot do without: that its defaults may be shared, and which of its names are slots.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, field
from types import MemberDescriptorType
from typing import Any, cast


@dataclasses.dataclass(init=False, repr=False, eq=False)
class _Example:
    """What `dataclasses` makes of a class without methods."""

    one: object


_PARAMETERS: Any = vars(_Example)["__dataclass_params__"]
_FIELD: Any = vars(_Example)["__dataclass_fields__"]["one"]._field_type
_CLASS_VARIABLES = ("ClassVar[", "ClassVar", "typing.ClassVar")


def _has_more(annotations: str) -> bool:
    """Whether annotations have words that are left to `dataclasses`, but for class variables."""
    return "InitVar" in annotations or "KW_ONLY" in annotations or "ClassVar" in annotations


def add_fields(cls: Any) -> bool:
    """Do what `dataclasses` does for a class without methods in a tenth of the time: it matches annotations with expressions, and
    most classes are never asked for their fields. False, and nothing is done, where there is more in it than fields and class
    variables."""
    annotations = vars(cls).get("__annotations__")
    if annotations is None:
        return False
    own = [(n, t, getattr(cls, n, MISSING)) for n, t in annotations.items() if not str(t).startswith(_CLASS_VARIABLES)]
    types = [t for _, t, _ in own]
    if not all(type(t) is str for t in types) or _has_more(" ".join(types)):
        return False
    declared = [(n, default) for n, _, default in own if isinstance(default, dataclasses.Field)]
    if any(type(default).__hash__ is None for _, _, default in own if not isinstance(default, dataclasses.Field)):
        return False
    for name, default in declared:
        if default.default is MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, default.default)
    fields = _Fields(cls.__mro__[-1:0:-1], own)
    told: dict[str, Any] = {"__dataclass_fields__": fields, "__dataclass_params__": _PARAMETERS}
    if "__match_args__" not in vars(cls):
        told["__match_args__"] = _Matched(fields)
    for name, value in told.items():
        setattr(cls, name, value)
    return True


class _Fields:
    """What stands in a class for the fields that `dataclasses` asks it for, by name, until somebody does. Two threads that ask at
    once may both make them."""

    def __init__(self, bases: tuple[type, ...], own: list[tuple[str, str, Any]]) -> None:
        self._bases, self._own = bases, own
        self._made: dict[str, Any] | None = None

    @property
    def names(self) -> list[str]:
        """The names of the fields, of which none is made for it."""
        of_bases = [name for base in self._bases for name in names_in(vars(base).get("__dataclass_fields__", {}))]
        return list(dict.fromkeys(of_bases + [name for name, _, _ in self._own]))

    def __get__(self, record: object, owner: type | None = None) -> dict[str, Any]:
        if self._made is None:
            self._made = self._make()
            _replace(owner, "__dataclass_fields__", self, self._made)
        return self._made

    def _make(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for base in self._bases:
            if "__dataclass_fields__" in vars(base):
                found |= cast(Any, base).__dataclass_fields__
        for name, type_, made in self._own:
            if not isinstance(made, dataclasses.Field):
                made = field(default=MISSING if isinstance(made, MemberDescriptorType) else made)
            made.name, made.type, made._field_type = name, type_, _FIELD
            made.kw_only = made.kw_only is True
            found[name] = made
        return found


def names_in(fields: Any) -> list[str]:
    """The names of the fields that a class has under ``__dataclass_fields__``, whoever has made them."""
    return fields.names if isinstance(fields, _Fields) else [n for n, f in fields.items() if f._field_type is _FIELD]


class _Matched:
    """The same for the names of what patterns match by place."""

    def __init__(self, fields: _Fields) -> None:
        self._fields = fields

    def __get__(self, record: object, owner: type | None = None) -> tuple[str, ...]:
        fields = self._fields.__get__(record, owner).values()
        made = tuple([f.name for f in fields if f._field_type is _FIELD and f.init and not f.kw_only])
        _replace(owner, "__match_args__", self, made)
        return made


def _replace(owner: type | None, name: str, asked: _Fields | _Matched, made: object) -> None:
    """Put what was made in the place of what was asked. Every pattern that matches by place asks its class for the names, which
    runs no Python from then on."""
    for cls in owner.__mro__ if owner is not None else ():
        if vars(cls).get(name) is asked:
            setattr(cls, name, made)
