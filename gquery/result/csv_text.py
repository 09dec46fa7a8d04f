"""CSV as DuckDB writes it, made of columns of text by Arrow's functions, a batch at a time.

Arrow's own writer quotes every text and has no other word for NULL. Here a value is quoted where it has to be: where it holds the
separator, a quote or the end of a line, begins with ``#``, is what NULL is written as, or where that is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from gquery.result.output import writing
from gquery.runtime.records import dataclass


@dataclass(frozen=True)
class CsvStyle:
    """How a CSV file looks: ``quoted`` are columns whose values are always in quotes."""

    separator: str = ","
    quote: str = '"'
    escape: str = '"'
    null: str = ""
    header: bool = True
    quoted: tuple[str, ...] = ()

    @property
    def escaped(self) -> tuple[str, ...]:
        """What stands behind the escape sign in quotes."""
        return tuple(dict.fromkeys((self.escape, self.quote)))

    @property
    def odd(self) -> str:
        """What values need quotes, as a regular expression."""
        return f"[{re.escape(self.separator)}{re.escape(self.quote)}\r\n]|^#"


def write_csv(names: Sequence[str], batches: Iterable[pa.RecordBatch], path: str, style: CsvStyle) -> None:
    """Write a CSV file of batches whose columns are texts."""
    with writing(path) as sink:
        if style.header:
            cells = [_cell(name, style, name in style.quoted) for name in names]
            sink.write((style.separator.join(cells) + "\n").encode())
        for batch in batches:
            if batch.num_rows:
                sink.write(_lines(names, batch, style))


def _cell(text: str, style: CsvStyle, is_quoted: bool) -> str:
    if not is_quoted and text != style.null and re.search(style.odd, text) is None:
        return text
    for sign in style.escaped:
        text = text.replace(sign, style.escape + sign)
    return style.quote + text + style.quote


def _lines(names: Sequence[str], batch: pa.RecordBatch, style: CsvStyle) -> Any:
    from pyarrow import compute as pc

    columns = []
    for name, given in zip(names, batch.columns, strict=True):
        texts = given.cast(pa.large_string())
        quote = pa.scalar(style.quote, pa.large_string())
        within = texts
        for sign in style.escaped:
            within = pc.replace_substring(within, sign, style.escape + sign)
        within = pc.binary_join_element_wise(quote, within, quote, pa.scalar("", pa.large_string()))
        if name not in style.quoted:
            odd = pc.or_(pc.match_substring_regex(texts, style.odd), pc.equal(texts, style.null))
            within = pc.if_else(odd, within, texts)
        columns.append(pc.fill_null(within, style.null))
    separator = pa.scalar(style.separator, pa.large_string())
    rows = columns[0] if len(columns) == 1 else pc.binary_join_element_wise(*columns, separator)
    ends = pa.scalar("\n", pa.large_string())
    lines = pc.binary_join_element_wise(rows, ends, pa.scalar("", pa.large_string()))
    offsets = lines.buffers()[1]
    first, last = (memoryview(offsets).cast("q")[lines.offset + n] for n in (0, len(lines)))
    return lines.buffers()[2].slice(first, last - first)
