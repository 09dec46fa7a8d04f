"""The ways to write a result. A mode takes names, types and rows as they come, and writes text.

`box` is the one for people: it is given the first and last rows and how many there are. All others write every row.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from html import escape
from typing import Any, TextIO

from gquery.expression.types import DType
from gquery.result.display import cell_text, display_width
from gquery.runtime.records import dataclass

Row = Sequence[Any]
MODES = ("box", "table", "csv", "json", "jsonlines", "markdown", "line", "html")


@dataclass(frozen=True)
class Format:
    """How results are written: the mode, whether with names, and what stands for NULL (None takes the mode's own)."""

    mode: str = "box"
    headers: bool = True
    null: str | None = None


def write(out: TextIO, names: Sequence[str], types: Sequence[DType], rows: Iterable[Row], form: Format) -> None:
    """Write all rows in a mode other than box."""
    _WRITERS[form.mode](out, names, types, rows, form)


def _csv(out: TextIO, names: Sequence[str], types: Sequence[DType], rows: Iterable[Row], form: Format) -> None:
    null = "" if form.null is None else form.null
    writer = csv.writer(out, lineterminator="\n")
    if form.headers:
        writer.writerow(names)
    for row in rows:
        if len(row) == 1 and row[0] is None and not null:  # the writer quotes a lonely empty field
            out.write("\n")
        else:
            writer.writerow([cell_text(v, null) for v in row])


def _json(out: TextIO, names: Sequence[str], types: Sequence[DType], rows: Iterable[Row], form: Format) -> None:
    out.write("[")
    for number, line in enumerate(_objects(names, rows)):
        out.write((",\n" if number else "") + line)
    out.write("]\n")


def _jsonlines(out: TextIO, names: Sequence[str], types: Sequence[DType], rows: Iterable[Row], form: Format) -> None:
    for line in _objects(names, rows):
        out.write(line + "\n")


def _objects(names: Sequence[str], rows: Iterable[Row]) -> Iterable[str]:
    keys = [json.dumps(n, ensure_ascii=False) for n in unique(names)]
    for row in rows:
        yield "{" + ",".join(f"{k}:{json_value(v)}" for k, v in zip(keys, row, strict=True)) + "}"


def json_value(value: Any) -> str:
    """A value as JSON. Decimals keep their digits; NaN and the infinities, which JSON does not have, are strings.

    >>> print(json_value(Decimal("1.10")), json_value(None), json_value(float("inf")), json_value(date(2024, 2, 29)))
    1.10 null "Infinity" "2024-02-29"
    >>> print(json_value({"a": [1, None], "b": b"x"}))
    {"a":[1,null],"b":"x"}
    """
    match value:
        case Decimal():
            return f"{value:f}"
        case float() if not math.isfinite(value):
            return '"NaN"' if value != value else '"Infinity"' if value > 0 else '"-Infinity"'
        case date() | datetime():
            return f'"{value}"'
        case None | bool() | int() | float() | str():
            return json.dumps(value, ensure_ascii=False)
        case list() | tuple():
            return f"[{','.join(map(json_value, value))}]"
        case dict():
            pairs = (f"{json.dumps(cell_text(k), ensure_ascii=False)}:{json_value(v)}" for k, v in value.items())
            return "{" + ",".join(pairs) + "}"
        case _:
            return json.dumps(cell_text(value), ensure_ascii=False)


def _markdown(out: TextIO, names: Sequence[str], types: Sequence[DType], rows: Iterable[Row], form: Format) -> None:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(c.replace("|", "\\|").replace("\n", "<br>") for c in cells) + " |\n"

    out.write(line(names))
    out.write("|" + "|".join("--:" if t.is_numeric else "---" for t in types) + "|\n")
    for row in rows:
        out.write(line(cell_text(v, _null(form)) for v in row))


def _line(out: TextIO, names: Sequence[str], types: Sequence[DType], rows: Iterable[Row], form: Format) -> None:
    width = max(map(display_width, names), default=0)
    for number, row in enumerate(rows):
        if number:
            out.write("\n")
        for name, value in zip(names, row, strict=True):
            out.write(f"{' ' * (width - display_width(name))}{name} = {_one_line(cell_text(value, _null(form)))}\n")


def _html(out: TextIO, names: Sequence[str], types: Sequence[DType], rows: Iterable[Row], form: Format) -> None:
    out.write("<table>\n")
    if form.headers:
        out.write("<tr>" + "".join(f"<th>{escape(n)}</th>" for n in names) + "</tr>\n")
    for row in rows:
        out.write("<tr>" + "".join(f"<td>{escape(cell_text(v, _null(form)))}</td>" for v in row) + "</tr>\n")
    out.write("</table>\n")


def _table(out: TextIO, names: Sequence[str], types: Sequence[DType], rows: Iterable[Row], form: Format) -> None:
    texts = [[_one_line(cell_text(v, _null(form))) for v in row] for row in rows]
    heads = [_one_line(n) for n in names] if form.headers else ["" for _ in names]
    widths = [max(map(display_width, column)) for column in zip(heads, *texts)]
    rule = "+" + "+".join("-" * (w + 2) for w in widths) + "+\n"
    right = [t.is_numeric for t in types]

    def line(cells: Sequence[str], flags: Sequence[bool]) -> str:
        padded = (
            " " * (w - display_width(c)) + c if r else c + " " * (w - display_width(c))
            for c, w, r in zip(cells, widths, flags, strict=True)
        )
        return "| " + " | ".join(padded) + " |\n"

    out.write(rule)
    if form.headers:
        out.write(line(heads, [False] * len(heads)) + rule)
    for row in texts:
        out.write(line(row, right))
    out.write(rule)


def _null(form: Format) -> str:
    return "NULL" if form.null is None else form.null


def _one_line(text: str) -> str:
    """Text without what would break a line or move a terminal's cursor."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def unique(names: Sequence[str]) -> list[str]:
    """Names with numbers where one comes again, as keys of an object.

    >>> unique(["a", "b", "a"])
    ['a', 'b', 'a_1']
    """
    seen: set[str] = set()
    result = []
    for name in names:
        new, number = name, 0
        while new in seen:
            number += 1
            new = f"{name}_{number}"
        seen.add(new)
        result.append(new)
    return result


_WRITERS: dict[str, Callable[[TextIO, Sequence[str], Sequence[DType], Iterable[Row], Format], None]] = {
    "table": _table, "csv": _csv, "json": _json, "jsonlines": _jsonlines,
    "markdown": _markdown, "line": _line, "html": _html,
}  # fmt: skip
