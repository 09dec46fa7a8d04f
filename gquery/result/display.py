"""Results as a box of text, the way DuckDB's shell draws them.

Pure Python over rows that are fetched already: the caller bounds how many. Numbers stand right, text left, NULL is
written out; of many rows the first and the last are shown, of many columns those at both ends.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gquery.expression.types import DType

_CELL = 60  # the widest cell
_ELLIPSIS = "…"
_DOT = "·"


@dataclass(frozen=True)
class Box:
    """How a result is drawn: at most ``max_rows`` rows, ``width`` columns of the terminal where two columns fit; ``null`` is
    written for NULL, and ``style_null`` colours such a cell."""

    max_rows: int = 40
    width: int = 120
    null: str = "NULL"
    style_null: Callable[[str], str] | None = None
    headers: bool = True


def render(
    names: Sequence[str],
    types: Sequence[DType],
    rows: Sequence[Sequence[Any]],
    total: int | None = None,
    box: Box = Box(),
) -> str:
    """A box with the rows (tuples of Python values). ``total`` is how many the whole result has where ``rows`` are its
    first and last alone, -1 for "more, nobody counted".

    >>> from gquery.expression.types import INTEGER, VARCHAR
    >>> print(render(["a", "name"], [INTEGER, VARCHAR], [(1, "x"), (20, None)]))
    ┌─────────┬─────────┐
    │    a    │  name   │
    │ integer │ varchar │
    ├─────────┼─────────┤
    │       1 │ x       │
    │      20 │ NULL    │
    ├─────────┴─────────┤
    │ 2 rows            │
    └───────────────────┘
    """
    count = len(rows) if total is None else total
    top, bottom = _shown(len(rows), count, box.max_rows)
    shown = [*rows[:top], *(rows[len(rows) - bottom :] if bottom else ())]
    columns, hidden = _columns(names, types, shown, box)
    footer = _footer(count, len(shown), len(names), hidden)
    inner = sum(c.width + 2 for c in columns) + len(columns) - 1
    if inner < display_width(footer) + 2:
        columns[-1].width += display_width(footer) + 2 - inner
        inner = display_width(footer) + 2
    widths = [c.width for c in columns]
    lines = [_rule("┌", "┬", "┐", widths)]
    if box.headers:
        lines += [_line([_center(c.head[line], c.width) for c in columns]) for line in range(2)]
        lines.append(_rule("├", "┼", "┤", widths))
    for number in range(len(shown)):
        if number == top and bottom:
            lines += [_line([_align(_DOT, c.width, c.is_right) for c in columns])] * 3
        lines.append(_line([c.cell(number, box) for c in columns]))
    lines.append(_rule("├", "┴", "┤", widths))
    lines.append(f"│ {footer}{' ' * (inner - 2 - display_width(footer))} │")
    lines.append("└" + "─" * inner + "┘")
    return "\n".join(lines)


@dataclass
class _Drawn:
    """A column as it is drawn: name and type, the texts of its cells, and which of them hold NULL."""

    head: tuple[str, str]
    texts: list[str]
    nulls: list[bool]
    is_right: bool
    width: int = 1

    def cell(self, number: int, box: Box) -> str:
        text = _align(self.texts[number], self.width, self.is_right)
        return box.style_null(text) if box.style_null is not None and self.nulls[number] else text


def _columns(
    names: Sequence[str], types: Sequence[DType], rows: Sequence[Sequence[Any]], box: Box
) -> tuple[list[_Drawn], int]:
    """The columns that fit, one of ellipses where some do not; and how many are left out."""
    columns = []
    for n, (name, dtype) in enumerate(zip(names, types, strict=True)):
        texts = [_text(row[n], box.null) for row in rows]
        head = (_clip(name), str(dtype).lower())
        width = max(map(display_width, (*head, *texts)))
        columns.append(_Drawn(head, texts, [row[n] is None for row in rows], dtype.is_numeric, width))
    kept = _fit([c.width for c in columns], box.width)
    hidden = len(names) - len(kept)
    drawn = [columns[k] for k in kept]
    if hidden:
        ellipses = _Drawn((_ELLIPSIS, ""), [_ELLIPSIS for _ in rows], [False for _ in rows], False)
        drawn.insert(len(kept) // 2 + len(kept) % 2, ellipses)
    return drawn, hidden


def render_html(names: Sequence[str], types: Sequence[DType], rows: Sequence[Sequence[Any]], total: int) -> str:
    """The same as an HTML table, all text escaped."""
    from html import escape

    head = "".join(f"<th>{escape(n)}<br><small>{escape(str(t).lower())}</small></th>" for n, t in zip(names, types))
    body = "".join("<tr>" + "".join(f"<td>{escape(_text(v, 'NULL'))}</td>" for v in row) + "</tr>" for row in rows)
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<p>{escape(_footer(total, len(rows), len(names), 0))}</p>"
    )


def text_html(text: str) -> str:
    """A text for a notebook: as it stands, or in a frame of its own where it is a page."""
    from html import escape

    if text.lstrip().lower().startswith("<!doctype html"):
        return f'<iframe srcdoc="{escape(text)}" style="width:100%;height:640px;border:1px solid #ccc"></iframe>'
    return f"<pre>{escape(text)}</pre>"


def display_width(text: str) -> int:
    """Columns that a terminal gives the text.

    >>> display_width("añ"), display_width("日本")
    (2, 4)
    """
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _shown(have: int, count: int, max_rows: int) -> tuple[int, int]:
    """How many rows from the start and from the end are drawn."""
    if have <= max_rows and count == have:
        return have, 0
    limit = max(1, min(max_rows, have))
    if count < 0:  # the end is not known
        return limit, 0
    return limit - limit // 2, limit // 2


def _text(value: Any, null: str) -> str:
    return null if value is None else _clip(cell_text(value))


def cell_text(value: Any, null: str = "NULL") -> str:
    """A value of any type as text, whole.

    >>> cell_text(None), cell_text(True), cell_text(0.1), cell_text([{"a": None}])
    ('NULL', 'true', '0.1', "[{'a': NULL}]")
    """
    match value:
        case None:
            return null
        case bool():
            return "true" if value else "false"
        case float():
            return _float(value)
        case bytes():
            return "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02X}" for b in value)
        case list() | tuple():
            return f"[{', '.join(map(cell_text, value))}]"
        case dict():
            return "{" + ", ".join(f"{_key(k)}: {cell_text(v)}" for k, v in value.items()) + "}"
        case _:
            return str(value)


def _key(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else cell_text(value)


def _float(value: float) -> str:
    if value != value:
        return "nan"
    return repr(value) if abs(value) < 1e16 or value in (float("inf"), float("-inf")) else f"{value:.17g}"


def _clip(text: str) -> str:
    """One line of at most `_CELL` columns; what a terminal would obey is escaped."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    if display_width(text) <= _CELL:
        return text
    while display_width(text) > _CELL - 1:
        text = text[: max(1, len(text) - max(1, (display_width(text) - _CELL + 1) // 2))]
    return text + _ELLIPSIS


def _fit(widths: list[int], width: int) -> list[int]:
    """The columns that fit, taken from both ends by turns."""
    if sum(w + 3 for w in widths) + 1 <= width or len(widths) <= 2:
        return list(range(len(widths)))
    room = width - 1 - 4  # the border and the column of ellipses
    left, right = 0, len(widths) - 1
    kept: list[int] = []
    while left <= right:
        pick = left if len(kept) % 2 == 0 else right
        if room < widths[pick] + 3 and len(kept) >= 2:
            break
        room -= widths[pick] + 3
        kept.append(pick)
        left, right = (left + 1, right) if pick == left else (left, right - 1)
    return sorted(kept)


def _footer(count: int, shown: int, columns: int, hidden: int) -> str:
    if count < 0:
        text = f"? rows (>{shown} rows, {shown} shown)"
    else:
        text = f"{count:,} row{'' if count == 1 else 's'}" + (f" ({shown} shown)" if shown < count else "")
    return text + (f"  {columns} columns ({columns - hidden} shown)" if hidden else "")


def _rule(left: str, middle: str, right: str, widths: list[int]) -> str:
    return left + middle.join("─" * (w + 2) for w in widths) + right


def _line(cells: list[str]) -> str:
    return "│ " + " │ ".join(cells) + " │"


def _align(text: str, width: int, right: bool) -> str:
    space = " " * (width - display_width(text))
    return space + text if right else text + space


def _center(text: str, width: int) -> str:
    space = width - display_width(text)
    return " " * (space // 2) + text + " " * (space - space // 2)
