"""What a kernel that is written knows of the texts of its source that may be scanned before it runs (`kernels.text_matches`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from gquery.expression.expr import Expr
from gquery.kernels import ir
from gquery.runtime.records import dataclass


@dataclass
class ScannableTexts:
    """``columns`` are those of texts with offsets, by id: whether they have NULLs. ``row`` is the number of the row that the
    kernel is at. The step that is written began in ``block``; of the rows of the source, ``inner_selectivity`` get to a test
    within a block of its own, at least. ``bitmaps`` are the parameters of the tests so far."""

    columns: Mapping[int, bool]
    row: ir.Name
    block: list[ir.Statement]
    inner_selectivity: float = 0.0
    bitmaps: dict[Expr, ir.Name] = field(default_factory=dict)
