"""Frozen: small records that are made by the thousand while a query is planned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def frozen(cls: type[T]) -> type[T]:
    """Make a class a dataclass with slots and a hash that is frozen to the type checker. At run time it is a plain one, because
    a frozen one takes three times as long to make: 0.27 us with two fields, in place of 0.10."""
    return dataclass(slots=True, unsafe_hash="__hash__" not in vars(cls))(cls)
