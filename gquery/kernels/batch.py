"""The batched loop shape: several rows an iteration, with columns loaded ahead.

A loop that loads a column when it first needs it waits for memory once a column; loading the columns of several rows first
keeps many loads in flight. That pays for columns of which nearly every sector of memory is needed (`Code.ahead`), also
behind a filter, if they are narrow. The batch is made from the text of the lazy body: these loads move to the front, and
everything is written once a row with the row's own names. What is long becomes a function that each row calls, because a
compiler takes its time for each copy of a text.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass

FEWEST_LINES = 8  # that are worth a function
_FUNCTION = "do_row"
_LOAD = re.compile(r"^\s*(v\d+) = (?:i64|f64|truth)\((?:[cm]\d+\[i\]|s\d+\[word_index\(i\)\])\)$")
_LOCAL = re.compile(r"\b(v\d+|h\d+|j\d+)\b")
_ROW = re.compile(r"\bi\b")


@dataclass(frozen=True)
class RowFunction:
    """What is done for each row of a batch, as a function. ``results`` are variables of the thread that it changes."""

    arguments: tuple[str, ...]
    results: tuple[str, ...]
    body: tuple[str, ...]

    @property
    def call(self) -> str:
        """The line that calls it, with the names of a single row."""
        call = f"{_FUNCTION}({', '.join(self.arguments)})"
        return f"{', '.join(self.results)} = {call}" if self.results else call

    @property
    def text(self) -> tuple[str, ...]:
        lines = [f"def {_FUNCTION}({', '.join(self.arguments)}):", *("    " + line for line in self.body)]
        return (*lines, f"    return {', '.join(self.results)}") if self.results else tuple(lines)


@dataclass(frozen=True)
class Batch:
    """A kernel's work for ``rows`` rows at once, their indices in ``i0``, ``i1``, ...; ``single`` is the same for the one row in
    ``i``, where that is shorter than the kernel's body. Both may call ``function``."""

    rows: int
    body: tuple[str, ...]
    single: tuple[str, ...] = ()
    function: RowFunction | None = None

    @property
    def text(self) -> tuple[str, ...]:
        """As a reader wants to see it."""
        function = () if self.function is None else (*self.function.text, "")
        return (*function, f"{self.rows} rows at once:", *("    " + line for line in self.body))


def batched(body: Sequence[str], rows: int, ahead: Collection[str], prologue: Sequence[str] = ()) -> Batch:
    """``body`` for ``rows`` rows at once; the variables of ``ahead`` come first. ``prologue`` are the lines before the loop,
    whose variables the rows share.

    >>> for line in batched(["v0 = i64(c0[i])", "if lt_i64(v0, k0):", "    n = add_i64(n, v0)"], 2, {"v0"}).body:
    ...     print(line)
    v0_0 = i64(c0[i0])
    v0_1 = i64(c0[i1])
    if lt_i64(v0_0, k0):
        n = add_i64(n, v0_0)
    if lt_i64(v0_1, k0):
        n = add_i64(n, v0_1)
    """
    loads, rest = split_loads(body, ahead)
    function = row_function(rest, assigned(prologue))
    single = () if function is None else (*loads, function.call)
    if function is not None:
        rest = [function.call]
    text = [for_row(line, row) for line in loads for row in range(rows)]
    return Batch(rows, tuple(text + [for_row(line, row) for row in range(rows) for line in rest]), single, function)


def row_function(lines: Sequence[str], shared: Collection[str]) -> RowFunction | None:
    """Lines for a row as a function; ``shared`` are variables that outlive the row. None where they are few.

    >>> body = ["v1 = add_i64(v0, k0)", *["v1 = mul_i64(v1, i64(c1[i]))"] * 8, "n = add_i64(n, v1)"]
    >>> row_function(body, {"n", "m"}).call
    'n = do_row(v0, k0, c1, i, n)'
    """
    if len(lines) < FEWEST_LINES:
        return None
    tree = ast.parse(textwrap.dedent("\n".join(lines)))
    called: set[str] = set()
    stored: set[str] = set()
    loaded: dict[str, tuple[int, int]] = {}  # where each name is read first
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                called.add(name)
            case ast.Name(id=name, ctx=ast.Load(), lineno=line, col_offset=column):
                loaded[name] = min(loaded.get(name, (line, column)), (line, column))
            case ast.Name(id=name, ctx=ast.Store()):
                stored.add(name)
    results = sorted(stored & set(shared))
    given = sorted((n for n in loaded if n not in called and n not in stored), key=loaded.__getitem__)
    return RowFunction((*given, *results), tuple(results), tuple(lines))


def assigned(lines: Sequence[str]) -> set[str]:
    """The variables that lines of a prologue make."""
    return {name for line in lines if (name := line.partition(" = ")[0].strip()).isidentifier() and " = " in line}


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
