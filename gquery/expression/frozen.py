"""Frozen: small records that are made by the thousand while a query is planned, and by the dozen in each run.

They are frozen to the type checker and plain dataclasses at run time: one that checks each assignment takes two to four times
as long to make (0.27 us with three fields and slots, in place of 0.14).

Nodes of expressions remember their hash, whether they may be NULL, and an equal node: `gquery.expression.expr` wraps their
methods so when the classes have been made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, dataclass_transform

from gquery.runtime.records import dataclass, remembered_by, when_made

T = TypeVar("T")


def _fields_of(record: Any) -> list[Any]:
    return [getattr(record, f.name) for f in fields(record)]


def _set_fields(record: Any, values: list[Any]) -> None:
    for f, value in zip(fields(record), values, strict=True):
        setattr(record, f.name, value)
    for name in remembered_by(type(record)):
        setattr(record, name, None)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Make a class such a record, with slots and a hash. Pickled and copied are its fields alone, not what is remembered in
    further slots: another process hashes texts in another way."""
    made: Any = dataclass(slots=True, unsafe_hash="__hash__" not in vars(cls))(cls)
    made.__getstate__, made.__setstate__ = _fields_of, _set_fields
    return cast("type[T]", made)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen_open(cls: type[T]) -> type[T]:
    """The same without slots: what is found out later about an object is kept on it (`functools.cached_property`)."""
    return dataclass(unsafe_hash="__hash__" not in vars(cls))(cls)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def frozen_single(cls: type[T]) -> type[T]:
    """The same for what holds arrays: equal to itself alone."""
    return dataclass(eq=False)(cls)


def remembering_hash(generated: Callable[[Any], int]) -> Callable[[Any], int]:
    """The hash, which is made of those of a node's children, computed once."""

    def put(made: Callable[..., Any]) -> None:
        nonlocal generated
        generated = made

    when_made(generated, put)

    def remembered(self: Any) -> int:
        found: int | None = self.memo_hash
        if found is None:
            found = self.memo_hash = generated(self)
        return found

    return remembered


def remembering_nullable(generated: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """The same for whether a node may be NULL."""

    def remembered(self: Any) -> bool:
        found: bool | None = self.memo_nullable
        if found is None:
            found = self.memo_nullable = generated(self)
        return found

    return remembered


def comparing(generated: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A node's equality. Two that were found equal have one twin from then on, so that graphs are compared node by node."""

    def put(made: Callable[..., Any]) -> None:
        nonlocal generated
        generated = made

    when_made(generated, put)

    def compared(self: Any, other: object) -> Any:
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        if hash(self) != hash(other):
            return False
        a, b = _twin(self), _twin(other)
        if a is b:
            return True
        is_equal = generated(a, b)
        if is_equal is True:
            a.memo_twin = b
        return is_equal

    return compared


def _twin(e: Any) -> Any:
    """The node that stands for all that were found equal to ``e``."""
    while e.memo_twin is not None:
        e = e.memo_twin
    return e


class Serializable:
    """A record of which the fields ``BLOCKS``, which have no defaults, may be kept as bytes: a kernel that is compiled is
    launched without its statements, some hundreds of objects that Python's collector would go through again and again.
    ``KEPT`` is what was found out of it and goes with it to another process; ``DERIVED`` what is found out anew."""

    BLOCKS: ClassVar[tuple[str, ...]] = ()
    KEPT: ClassVar[tuple[str, ...]] = ()
    DERIVED: ClassVar[tuple[str, ...]] = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What is serialized, or is to be read, when somebody first looks at it."""
            read = vars(self).get("read") if name in self.BLOCKS else None
            if read is None:
                raise AttributeError(name)
            found = dict(zip(self.BLOCKS, read(), strict=True))
            vars(self).update(found)  # another thread may serialize it again
            return found[name]

    def serialize(self) -> None:
        """Keep the fields as bytes, until somebody looks at them. An error of `pickle` where one cannot be."""
        import pickle  # which a first query does without

        own = vars(self)
        if "content" not in own:
            content = pickle.dumps([getattr(self, name) for name in self.BLOCKS], pickle.HIGHEST_PROTOCOL)
            own["read"] = partial(_loaded, content)
            own["content"] = content  # last: another thread that finds it drops the fields
        for name in (*self.BLOCKS, *self.DERIVED):
            own.pop(name, None)

    def __getstate__(self) -> dict[str, Any]:
        self.serialize()
        names = (*[f.name for f in fields(cast(Any, self))], *self.KEPT, "content")
        own = vars(self)
        return {name: own[name] for name in names if name in own and name not in self.BLOCKS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, read=partial(_loaded, state["content"]))


def _loaded(content: bytes) -> Any:
    import pickle  # as above

    return pickle.loads(content)
