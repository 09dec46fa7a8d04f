"""What a CSV file looks like: its delimiter, whether it begins with a header, and the names of its columns."""

from __future__ import annotations

import csv
import datetime
import io
import re
from collections.abc import Sequence
from dataclasses import field

from gquery import tuning
from gquery.runtime.records import dataclass

_DELIMITERS = ",|;\t"
_LOSSY = re.compile(
    r"\s*(?:0\d[\d.]*(?:[eE][+-]?\d+)?|\+[\d.]+(?:[eE][+-]?\d+)?|\+(?:inf|infinity|nan))\s*", re.IGNORECASE
)
_INFINITE = re.compile(r"\s*-?inf(?:inity)?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Dialect:
    delimiter: str
    has_header: bool
    names: tuple[str, ...]
    texts: frozenset[int] = field(default=frozenset(), repr=False)  # columns whose numbers are text: 01234, +5, inf


def sniff(sample: bytes, delimiter: str | None, header: bool | None, quote: str, skip: int) -> Dialect:
    """The dialect of a file that begins with ``sample``; what is given is kept.

    >>> sniff(b"a;b\\n1,5;x\\n", None, None, '"', 0)
    Dialect(delimiter=';', has_header=True, names=('a', 'b'))
    >>> sniff(b"1,2\\n3,4\\n", None, None, '"', 0)
    Dialect(delimiter=',', has_header=False, names=('column0', 'column1'))
    """
    text = sample.decode("utf-8-sig", errors="replace")
    lines = list(io.StringIO(text, newline=""))[skip:]  # CR, LF or both end a line
    if len(lines) > 1 and not text.endswith(("\n", "\r")):
        lines = lines[:-1]  # the sample may end within a line
    text = "".join(lines)
    if delimiter is None:
        delimiter = max(_DELIMITERS, key=lambda d: _score(_rows(text, d, quote)))
    rows = _rows(text, delimiter, quote)
    first = rows[0] if rows else [""]
    if header is None:
        header = not any(_is_value(cell) for cell in first) and any(first)
    names = [cell.strip() or f"column{i}" for i, cell in enumerate(first)] if header else []
    texts = _text_columns(_rows(text, delimiter, quote, len(text))[header:])
    return Dialect(delimiter, header, _distinct(names or [f"column{i}" for i in range(len(first))]), texts)


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


def _rows(text: str, delimiter: str, quote: str, most: int | None = None) -> list[list[str]]:
    found, most = [], tuning.reading.csv_rows if most is None else most
    try:
        lines = io.StringIO(text, newline="")
        quoted = csv.reader(lines, delimiter=delimiter, quotechar=quote) if quote else None
        for row in quoted or csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE):
            if row:
                found.append(row)
            if len(found) == most:
                break
    except csv.Error:
        pass  # a lone quote: what was read so far tells enough
    return found


def _score(rows: Sequence[Sequence[str]]) -> tuple[bool, int]:
    """Better the more columns there are, as long as every row has as many."""
    widths = {len(r) for r in rows}
    return (len(widths) == 1, max(widths)) if widths and max(widths) > 1 else (False, 0)


def _is_value(text: str) -> bool:
    """Whether a text is a number, a truth value, a date or a time, which names of columns are not."""
    if text.strip().lower() in ("true", "false"):
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
