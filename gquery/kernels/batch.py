"""The batched loop shape: several rows an iteration, with columns loaded ahead.

A loop that loads a column when it first needs it waits for memory once a column; loading the columns of several rows first
keeps many loads in flight. That pays for columns of which nearly every sector of memory is needed (`Code.ahead`), also
behind a filter, if they are narrow. The batch is made from the text of the lazy body: these loads move to the front, and
everything is written once a row with the row's own names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

_LOAD = re.compile(r"^\s*(v\d+) = (?:i64|f64|truth)\((?:[cm]\d+\[i\]|s\d+\[word_index\(i\)\])\)$")
_LOCAL = re.compile(r"\b(v\d+|h\d+|j\d+)\b")
_ROW = re.compile(r"\bi\b")


def batched(body: Sequence[str], rows: int, ahead: Collection[str]) -> tuple[str, ...]:
    """``body`` for ``rows`` rows at once, whose indices are ``i0``, ``i1``, ...; the variables of ``ahead`` come first.

    >>> for line in batched(["v0 = i64(c0[i])", "if lt_i64(v0, k0):", "    n = add_i64(n, v0)"], 2, {"v0"}):
    ...     print(line)
    v0_0 = i64(c0[i0])
    v0_1 = i64(c0[i1])
    if lt_i64(v0_0, k0):
        n = add_i64(n, v0_0)
    if lt_i64(v0_1, k0):
        n = add_i64(n, v0_1)
    """
    loads, rest = split_loads(body, ahead)
    text = [for_row(line, row) for line in loads for row in range(rows)]
    return tuple(text + [for_row(line, row) for row in range(rows) for line in rest])


def split_loads(body: Sequence[str], ahead: Collection[str]) -> tuple[list[str], list[str]]:
    """The loads of the variables ``ahead``, and the body without them."""
    is_ahead = [(found := _LOAD.match(line)) is not None and found[1] in ahead for line in body]
    loads = [line.strip() for line, first in zip(body, is_ahead, strict=True) if first]
    return loads, _without_empty_blocks([line for line, first in zip(body, is_ahead, strict=True) if not first])


def for_row(line: str, row: int) -> str:
    """A line with the names of one row of several."""
    return _ROW.sub(f"i{row}", _LOCAL.sub(rf"\1_{row}", line))


def _without_empty_blocks(lines: Sequence[str]) -> list[str]:
    """A block whose only lines were loads has none left: it gets a ``pass``."""
    out: list[str] = []
    for n, line in enumerate(lines):
        out.append(line)
        depth = len(line) - len(line.lstrip())
        following = lines[n + 1] if n + 1 < len(lines) else ""
        if line.rstrip().endswith(":") and len(following) - len(following.lstrip()) <= depth:
            out.append(" " * (depth + 4) + "pass")
    return out
