"""What a CSV file looks like: its delimiter, whether it begins with a header, and the names of its columns."""

from __future__ import annotations

import csv
import datetime
import io
import re
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from gquery import tuning
from gquery.io.csv_times import is_time
from gquery.runtime.records import dataclass

_DELIMITERS = ",|;\t"
_LOSSY = re.compile(
    r"\s*(?:0\d[\d.]*(?:[eE][+-]?\d+)?|\+[\d.]+(?:[eE][+-]?\d+)?|\+(?:inf|infinity|nan))\s*", re.IGNORECASE
)
_INFINITE = re.compile(r"\s*-?inf(?:inity)?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Given:
    """What of a dialect is asked for; None is found out."""

    delimiter: str | None = None
    header: bool | None = None
    quote: str | None = None
    escape: str | None = None
    skip: int | None = None
    comment: str | None = None


@dataclass(frozen=True)
class Dialect:
    delimiter: str
    has_header: bool
    names: tuple[str, ...]
    texts: frozenset[int] = field(default=frozenset(), repr=False)  # columns whose numbers are text: 01234, +5, inf
    quote: str = field(default='"', repr=False)
    escape: str = field(default='"', repr=False)
    skip: int = field(default=0, repr=False)  # lines before the header
    comment: str = field(default="", repr=False)  # begins lines that are none of the table's
    has_open_end: bool = field(default=False, repr=False)  # a delimiter ends each line but the header's


def sniff(sample: bytes, given: Given = Given(), is_whole: bool = False) -> Dialect:  # noqa: B008  (it is frozen)
    """The dialect of a file that begins with ``sample``, or is ``sample``; what is given is kept.

    >>> sniff(b"a;b\\n1,5;x\\n")
    Dialect(delimiter=';', has_header=True, names=('a', 'b'))
    >>> sniff(b"1,2\\n3,4\\n")
    Dialect(delimiter=',', has_header=False, names=('column0', 'column1'))
    """
    text = sample.decode("utf-8-sig", errors="replace")
    lines = list(io.StringIO(text, newline=""))[given.skip or 0 :]  # CR, LF or both end a line
    if len(lines) > 1 and not text.endswith(("\n", "\r")):
        lines = lines[:-1]  # the sample may end within a line
    comment = _comment(lines, given)
    if comment:
        lines = [line for line in lines if not line.startswith(comment)]
    quote, escape, delimiter = _signs("".join(lines), given, is_whole)
    skip = 0 if given.skip is not None else _lines_before(lines, delimiter, quote, escape)
    filled = (n for n in range(skip, len(lines)) if lines[n].strip("\r\n"))
    skip = next(filled, min(skip + 1, len(lines)))  # Arrow takes an empty line for the header
    lines, skip = lines[skip:], skip + (given.skip or 0)
    text = "".join(lines)
    rows = _rows(text, delimiter, quote, escape)
    first = rows[0] if rows else [""]
    if given.delimiter is None and len(first) == 1 and any(len(r) > 1 for r in rows):  # texts of one column, with commas in them
        delimiter = next((d for d in _DELIMITERS if d not in text), delimiter)
        if given.quote is None and not _rows(text, delimiter, quote, escape, len(text), strict=True):
            quote = escape = ""  # a value goes on behind its quotes: they are its own
        rows = _rows(text, delimiter, quote, escape)
    header = given.header
    if header is None:
        header = not any(_is_value(cell) for cell in first) and any(first)
    has_open_end = header and len(rows) > 1 and all(len(r) == len(first) + 1 and not r[-1] for r in rows[1:])
    names = [cell.strip() or f"column{i}" for i, cell in enumerate(first)] if header else []
    texts = _text_columns(_rows(text, delimiter, quote, escape, len(text))[header:])
    distinct = _distinct(names or [f"column{i}" for i in range(len(first))])
    return Dialect(delimiter, header, distinct, texts, quote, escape, skip, comment, has_open_end)


def _comment(lines: Sequence[str], given: Given) -> str:
    """What begins lines that are no rows: ``#`` where the lines that it begins have other numbers of values than all others. A
    line that may be a row is one."""
    if given.comment is not None:
        return given.comment
    marked = [line for line in lines if line.startswith("#")]
    if not marked or len(marked) == len(lines) or given.skip:
        return ""
    others = "".join(line for line in lines if not line.startswith("#"))
    quote, escape, delimiter = _signs(others, given, False)
    widths = {len(r) for r in _rows(others, delimiter, quote, escape)}
    own = {len(r) for line in marked for r in _rows(line, delimiter, quote, escape)}
    return "#" if len(widths) == 1 and max(widths) > 1 and not widths & own else ""


def _signs(text: str, given: Given, is_whole: bool) -> tuple[str, str, str]:
    """What quotes, what stands before a quote within quotes, and the delimiter. Other signs than the usual ones, or none, are
    taken where these do not read the text, and single quotes where the text has no other and they stand around values."""
    usual = '"' if given.quote is None else given.quote
    signs = [(usual, usual if given.escape is None else given.escape)]
    if given.escape is None and usual and "\\" + usual in text:
        signs.append((usual, "\\"))
    if given.quote is None and '"' not in text and "'" in text:
        signs.insert(0, ("'", "'" if given.escape is None else given.escape))
    elif given.quote is None and is_whole and '"' in text:
        signs.append(("", ""))
    made = [(*s, _delimiter(text, given, *s)) for s in signs]
    for quote, escape, delimiter in made if len(made) > 1 else ():
        rows = _rows(text, delimiter, quote, escape, strict=True)
        if rows and len({len(r) for r in rows}) == 1 and (quote != "'" or rows != _rows(text, delimiter, "", "")):
            return quote, escape, delimiter
    return next(m for m in made if m[0] == usual)


def _delimiter(text: str, given: Given, quote: str, escape: str) -> str:
    if given.delimiter is not None:
        return given.delimiter
    return max(_DELIMITERS, key=lambda d: _score(_rows(text, d, quote, escape)))


def _lines_before(lines: Sequence[str], delimiter: str, quote: str, escape: str) -> int:
    """How many lines stand before the table: words without a delimiter, where all behind them have equally many values."""
    some = lines[: tuning.reading.csv_rows]
    if quote and any(line.count(quote) % 2 for line in some):  # a value may have several lines
        return 0
    rows = [_rows(line, delimiter, quote, escape) for line in some]
    begin = next((n for n, row in enumerate(rows) if row and len(row[0]) > 1), 0)
    before = [row[0] for row in rows[:begin] if row]
    behind = [row[0] for row in rows[begin:] if row]
    if not before or len(behind) < 2 or len({len(row) for row in behind}) > 1 or any(_is_value(row[0]) for row in before):
        return 0
    return begin


def _text_columns(rows: Sequence[Sequence[str]]) -> frozenset[int]:
    """Columns with a cell that Arrow takes for a number and DuckDB, whose text it would lose, does not. Infinity is a number
    behind another, or behind NaN: DuckDB takes the first of a column for a day."""
    texts, numbers = set[int](), set[int]()
    for row in rows:
        for k, cell in enumerate(row):
            if _LOSSY.fullmatch(cell) or (k not in numbers and _INFINITE.fullmatch(cell)):
                texts.add(k)
            elif k not in numbers and _is_number(cell):
                numbers.add(k)
    return frozenset(texts)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _rows(
    text: str, delimiter: str, quote: str, escape: str, most: int | None = None, strict: bool = False
) -> list[list[str]]:
    """The first rows; with ``strict`` none where quotes do not stand as they should."""
    found, most = [], tuning.reading.csv_rows if most is None else most
    form: dict[str, Any] = {"quoting": csv.QUOTE_NONE}
    if quote:
        form = {"quotechar": quote, "doublequote": escape in ("", quote), "strict": strict}
        if escape not in ("", quote):
            form["escapechar"] = escape
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, **form):
            if row:
                found.append(row)
            if len(found) == most:
                break
    except csv.Error:  # a lone quote: what was read so far tells enough
        return [] if strict else found
    return found


def _score(rows: Sequence[Sequence[str]]) -> tuple[bool, int]:
    """Better the more columns there are, as long as every row has as many."""
    widths = {len(r) for r in rows}
    return (len(widths) == 1, max(widths)) if widths and max(widths) > 1 else (False, 0)


def _is_value(text: str) -> bool:
    """Whether a text is a number, a truth value, a date or a time, which names of columns are not."""
    if text.strip().lower() in ("true", "false") or is_time(text):
        return True
    for parse in (float, datetime.date.fromisoformat, datetime.datetime.fromisoformat):
        try:
            parse(text.strip())
        except ValueError:
            continue
        return True
    return False


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Names that stand twice get a number, letter case ignored.

    >>> _distinct(["a", "A", "b"])
    ('a', 'A_1', 'b')
    """
    seen: set[str] = set()
    made = []
    for name in names:
        candidate, number = name, 0
        while candidate.lower() in seen:
            number += 1
            candidate = f"{name}_{number}"
        seen.add(candidate.lower())
        made.append(candidate)
    return tuple(made)
