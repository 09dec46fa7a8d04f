"""Rows that ranks exchange by the hash of their keys before a stage: each rank reads those that belong to it."""

from __future__ import annotations

from gquery.device.peer import in_step
from gquery.distributed.movable import movable, together
from gquery.execution.exchange import handed_over, stored_columns
from gquery.execution.state import Run
from gquery.operators.partition_rows import HashPartitioning, partition_rows
from gquery.planner.physical import Pipeline, ReadStage, Stage


def exchange_by_hash(state: Run, stage: Stage, pipeline: Pipeline) -> None:
    """Have the rank's part of the rows ready, where a stage reads rows by their hash. All ranks call it once a stage."""
    rank, source = state.rank, pipeline.source
    if rank is None or not isinstance(source, ReadStage) or not source.by_hash:
        return
    placed = rank.placement
    if placed[stage.number].reads == "whole" or stage.number in rank.by_hash:
        return
    device, workers = state.context.device, state.context.settings.worker_count
    origins = {s.column.id: o for s, o in zip(source.columns, source.origins, strict=True)}
    by = HashPartitioning(tuple([origins[k] for k in source.by_hash]), rank.comm.size)
    made = partition_rows(state.frames[source.stage], by, device, workers, stage.label)
    if placed[source.stage].makes == "whole":
        rank.by_hash[stage.number] = made.part(rank.comm.rank)
        return
    sent = [movable(made.part(n), device) for n in range(made.parts)]
    found = handed_over(state, rank, f"rows of stage {source.stage} by hash, for stage {stage.number}", sent)
    parts = [p[rank.comm.rank] for p in found]
    rank.received_bytes += sum(c.nbytes for n, p in enumerate(parts) if n != rank.comm.rank for c in p.columns.values())
    with in_step():
        rank.by_hash[stage.number] = together(parts, stored_columns(state, source.stage, sent[0]), device)
