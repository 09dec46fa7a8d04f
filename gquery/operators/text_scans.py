"""Which predicates of a pipeline are tested by text scans: those that nearly all rows of a large table get to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gquery import tuning
from gquery.expression.expr import And, Or
from gquery.expression.types import PhysicalType
from gquery.kernels import ir
from gquery.kernels.bindings import Binding, TextMatches
from gquery.kernels.code import Code
from gquery.kernels.kernel import Kernel
from gquery.kernels.scannable import ScannableTexts
from gquery.kernels.targets.base import NARROW_ROWS
from gquery.kernels.targets.capabilities import capabilities
from gquery.planner.physical import FilterRows, Pipeline, ReadTable, Source, Step
from gquery.planner.segments import finds_heads

_WITH_OFFSETS = (PhysicalType.STRING32, PhysicalType.STRING64)


def scannable_texts(pipeline: Pipeline, code: Code, row: ir.Name) -> ScannableTexts | None:
    """The texts of a pipeline's source that may be scanned for its kernel, which is at ``row`` of the source."""
    columns = scannable_columns(pipeline, code.target)
    return ScannableTexts(columns, row, code.body) if columns else None


def scannable_columns(pipeline: Pipeline, target: str) -> dict[int, bool]:
    """The columns of a pipeline's source that may be scanned, by id: whether they have NULLs."""
    source = pipeline.source
    if not capabilities(target).scans_text or not isinstance(source, ReadTable) or pipeline.host is not None:
        return {}
    if finds_heads(pipeline.steps):  # whose threads test rows of others
        return {}
    if not tuning.text_scans.least_rows <= pipeline.rows < NARROW_ROWS:
        return {}
    return {s.column.id: s.properties.nullable for s in source.columns if s.physical_type in _WITH_OFFSETS}


def kernels_of_scans(source: Source, bindings: Iterable[Binding]) -> Iterator[Kernel]:
    """The built-in kernels of the text scans that the parameters of a kernel stand for."""
    types = {s.column.id: s.physical_type for s in source.columns} if isinstance(source, ReadTable) else {}
    for binding in bindings:
        if isinstance(binding, TextMatches):
            from gquery.kernels.builtin.text_scan import scan_kernels  # of GPUs alone

            yield from scan_kernels(types[binding.column], binding.pattern)


def begin_step(step: Step | None, code: Code) -> None:
    """A step begins, or the sink (None): a test that stands in its own block is made for the rows that get to the step."""
    texts = code.scannable
    if texts is None:
        return
    texts.block, texts.inner_selectivity = code.body, 0.0
    match step:  # at least so many rows get to each term of a filter
        case FilterRows(And(), selectivity):
            texts.inner_selectivity = min(code.selectivity, selectivity)
        case FilterRows(Or(), selectivity):
            texts.inner_selectivity = code.selectivity - selectivity
