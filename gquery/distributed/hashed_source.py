"""What placement asks of a source whose rows go to ranks by their hash."""

from __future__ import annotations

from gquery.distributed.located import NOWHERE, Located, hashed_by
from gquery.distributed.row_bytes import source_bytes
from gquery.distributed.stage_placement import HashedRows
from gquery.planner.physical import ByHash, Pipeline, ReadStage


def hashed_rows(work: Pipeline) -> HashedRows | None:
    """The rows that ranks exchange before a pipeline runs; None where they do not."""
    source = work.source
    if not isinstance(source, ReadStage) or source.by_hash is None:
        return None
    names = {s.column.id: s.column.name for s in source.columns}
    return HashedRows(source.stage, tuple([names[k] for k in source.by_hash.keys]), source_bytes(source, work.rows))


def hashed_columns(source: ReadStage, by_hash: ByHash) -> Located:
    """The columns that say where a row lies. The hash of a join says nothing, as rows of heavy keys lie elsewhere."""
    if by_hash.probed is not None:
        return NOWHERE
    columns = {s.column.id: s.column for s in source.columns}
    return hashed_by([columns[k] for k in by_hash.keys], source.stage)
