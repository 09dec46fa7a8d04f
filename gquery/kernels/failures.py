"""What calls that the host makes raise: in which rows, and with which text."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.errors import ConversionError, DatabaseError, beginning, of_constant
from gquery.runtime.records import dataclass


@dataclass(frozen=True)
class Failure:
    """Rows in which a call raises, and what."""

    rows: Any
    error: Callable[[str], DatabaseError]
    message: str

    @property
    def kind(self) -> type[DatabaseError]:
        """The error's class."""
        return self.error if isinstance(self.error, type) else ConversionError


def of_text(failed: Any, error: type[DatabaseError], message: str, texts: Any, is_constant: bool) -> Failure:
    """The failure of a call in some rows, which says the first text that it does not take: in place of {} in the message, else
    behind it. That of a constant points at its place."""
    first = int(np.flatnonzero(failed)[0])
    value = texts if isinstance(texts, pa.Scalar) else texts[first] if isinstance(texts, pa.Array) else None
    text = value.as_py() if value is not None and _is_text(value.type) else None
    if not isinstance(text, str) or not issubclass(error, ConversionError):
        return Failure(failed, error, message)
    shown = repr(beginning(text))
    said = message.replace("{}", shown) if "{}" in message else f"{message}: {shown}"
    return Failure(failed, partial(of_constant, text) if is_constant else error, said)


def _is_text(of: pa.DataType) -> bool:
    """Whether values of a type are texts. Others are not asked for: a struct whose fields have one name is no value of Python."""
    plain = of.value_type if pa.types.is_dictionary(of) else of
    return any(t(plain) for t in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def of_raised(error: DatabaseError) -> Failure:
    """The failure of a call over constants that has raised: no row may ask for it."""
    return Failure(np.ones(1, np.bool_), type(error), str(error))
