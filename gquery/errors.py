"""Every error that gquery raises, as the tree of PEP 249.

A message says what is wrong, names candidates where there are some, and points at the place in the SQL with
``LINE n:`` and a caret. Errors up to planning carry a ``position`` (character offset in the SQL text); after
planning only data (overflow, a failed cast, a scalar subquery with two rows) and resources can fail.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_SHOWN = 80  # characters


class Warning(Exception):  # noqa: A001  (PEP 249 asks for this name)
    """Something the user should know; never raised as an error."""


class Error(Exception):
    """Base of all gquery errors."""


GQueryError = Error


class InterfaceError(Error):
    """Wrong use of the Python interface: a closed connection, an unknown option, data that cannot be registered."""


class DatabaseError(Error):
    """Base of everything that a query can raise."""


class ProgrammingError(DatabaseError):
    """The SQL text is at fault."""


class ParseError(ProgrammingError):
    """The text is not SQL."""


class BindError(ProgrammingError):
    """A name does not resolve, is ambiguous, or types do not fit."""


class CatalogError(ProgrammingError):
    """An unknown table, or a table that exists already."""


class NotSupportedError(DatabaseError):
    """Valid SQL that gquery does not run; the message lists every reason at once."""


class DataError(DatabaseError):
    """The data is at fault."""


class OutOfRangeError(DataError):
    """A value does not fit its type: integer or decimal overflow."""


class ConversionError(DataError):
    """A CAST found a value that it cannot convert. ``constant``: the text, where it stands in the statement."""

    constant: str | None = None


def beginning(text: str) -> str:
    """A text as a message shows it: of a long one the beginning."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def of_constant(text: str, message: str) -> ConversionError:
    """The error of a constant of the statement."""
    error = ConversionError(message)
    error.constant = text
    return error


class PointingAt:
    """Within it the error of a constant points at the first place in the statement where that stands."""

    def __init__(self, sql: str | None) -> None:
        self._sql = sql

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, ConversionError) or error.constant is None or self._sql is None:
            return
        place = self._sql.find("'" + error.constant.replace("'", "''") + "'")
        if place >= 0:
            raise ConversionError(f"{error}\n{point_at(self._sql, place)}") from None


class CardinalityError(DataError):
    """A scalar subquery returned more than one row."""


class OperationalError(DatabaseError):
    """The environment is at fault."""


class FileError(OperationalError):
    """A file is missing, damaged, or of the wrong format."""


class DeviceError(OperationalError):
    """The device that was asked for is not there, or cannot run what it was given."""


class OutOfMemoryError(OperationalError):
    """A query needs more memory than it may take; the message names operator, bytes and remedies."""


class InterruptError(OperationalError):
    """The query was stopped, by `Connection.interrupt` or by Ctrl-C while it could not be left; the connection can be used on."""


class InternalError(DatabaseError):
    """gquery is at fault: a broken invariant. Please report it."""


class IntegrityError(DatabaseError):
    """Rows are not what their table asks of them: NOT NULL, CHECK. The statement has changed nothing."""


def unicode_text(text: object, what: str) -> str:
    """The text itself; InterfaceError where it is none, or holds half a character, which no UTF-8 has."""
    if not isinstance(text, str):
        raise InterfaceError(f"{what} is a str, not a {type(text).__name__}")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InterfaceError(f"{what} holds no valid character at {error.start}: {text[error.start]!a}") from None
    return text


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """``' Did you mean "trips"?'`` or ``''``.

    >>> did_you_mean("tripz", ["trips", "zones"])
    ' Did you mean "trips"?'
    """
    by_lower = {c.lower(): c for c in candidates}
    close = get_close_matches(name.lower(), by_lower, n=3, cutoff=0.5)
    return f" Did you mean {' or '.join(chr(34) + by_lower[c] + chr(34) for c in close)}?" if close else ""


def point_at(sql: str, position: int) -> str:
    """The line of ``sql`` that holds the character offset ``position``, and a caret under it.

    >>> print(point_at("SELECT a\\nFROM x", 14))
    LINE 2: FROM x
                 ^
    """
    position = max(0, min(position, len(sql)))
    start = sql.rfind("\n", 0, position) + 1
    end = sql.find("\n", position)
    line = sql[start : end if end >= 0 else len(sql)]
    column = position - start
    if len(line) > 100:  # a long line: show the part around the place
        left = max(0, column - 50)
        line = ("..." if left else "") + line[left : left + 100]
        column = column - left + (3 if left else 0)
    head = f"LINE {sql.count(chr(10), 0, start) + 1}: "
    return f"{head}{line}\n{' ' * (len(head) + column)}^"
