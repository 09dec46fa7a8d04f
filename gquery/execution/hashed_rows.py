"""Rows that ranks exchange by the hash of their keys before a stage: each rank reads those that belong to it. They are those of
both sides of a join, or those of a window or of groups in an order, by what partitions them. Rows of a key keep their order.

    probed rows   ---hash of the key--->  rank              built rows   ---hash of the key--->  rank
      of heavy keys  ---evenly--->  ranks                     of heavy keys  --->  all ranks

Heavy keys are found once, by the first run of a program: any keys would do, as long as all ranks have the same. Where there are
none, GPUs write rows of numbers to each other's memory (`execution.direct_exchange`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from gquery.device.array import Array
from gquery.device.peer import in_step
from gquery.distributed.movable import movable, together
from gquery.execution.exchange import breaker_frames, brought_near, handed_over, handed_to_each, stored_columns
from gquery.execution.state import Rank, Run, StageReport
from gquery.kernels.builtin.key_hashes import OwnPart
from gquery.operators.base import Frame
from gquery.operators.heavy_keys import heavy_among, sample_keys
from gquery.operators.partition_rows import HashPartitioning, Partitioned, partition_rows, rows_between
from gquery.planner.partition_keys import frame_columns, partition_keys
from gquery.planner.physical import (
    ByHash,
    OrderedGroups,
    Pipeline,
    PipelineBreaker,
    ReadStage,
    Stage,
    Stored,
    WindowRows,
)


def exchange_by_hash(state: Run, stage: Stage, pipeline: Pipeline, report: StageReport) -> None:
    """Have the rank's part of the rows ready, where a stage reads rows by their hash. All ranks call it once a stage."""
    rank, source = state.rank, pipeline.source
    if rank is None or not isinstance(source, ReadStage) or source.by_hash is None:
        return
    if rank.placement[stage.number].reads == "whole" or stage.number in rank.by_hash:
        return
    device, workers, by = state.context.device, state.context.settings.worker_count, source.by_hash
    heavy = np.zeros(0, np.int64) if by.probed is None else _heavy_keys(state, rank, by, by.probed)
    report.heavy_keys = int(heavy.size)
    own = OwnPart(heavy, rank.comm.size) if heavy.size else None
    origins = {s.column.id: o for s, o in zip(source.columns, source.origins, strict=True)}
    how = HashPartitioning(tuple([origins[k] for k in by.keys]), rank.comm.size, own=own)
    frame, is_whole = state.frames[source.stage], rank.placement[source.stage].makes == "whole"
    what = f"rows of stage {source.stage} by hash, for stage {stage.number}"
    if own is None and not is_whole:
        stored = stored_columns(state, source.stage, frame)
        rank.by_hash[stage.number] = exchanged(state, rank, frame, how, stored, what)
        return
    made = partition_rows(frame, how, device, workers, stage.label)
    frames = [[made.part(n)] for n in range(rank.comm.size)]
    if own is not None:
        for to, more in zip(frames, _of_heavy_keys(state, rank, made, source.stage == by.probed), strict=True):
            to.append(more)
    if is_whole:
        parts = [movable(f, device) for f in frames[rank.comm.rank]]
    else:
        parts = _sent(state, rank, frames, what)
    with in_step():
        rank.by_hash[stage.number] = together(parts, stored_columns(state, source.stage, parts[0]), device)


def partition_frames(state: Run, stage: Stage, work: PipelineBreaker, report: StageReport) -> Mapping[int, Frame]:
    """The frames that a pipeline breaker reads; of its partitions those that belong to the rank, where ranks divide them."""
    rank = state.rank
    if rank is None or rank.placement[stage.number].hashed is None:
        return breaker_frames(state, stage, work)
    assert isinstance(work, WindowRows | OrderedGroups)
    whole = state.frames[work.stage]
    needed = frame_columns(work)
    part = Frame({i: c for i, c in whole.columns.items() if i in needed}, whole.rows, whole.rank_values, whole.number)
    how = HashPartitioning(tuple([c.id for c in partition_keys(work)]), rank.comm.size)
    what = f"rows of stage {work.stage} by hash, for stage {stage.number}"
    frame = exchanged(state, rank, part, how, stored_columns(state, work.stage, part), what)
    report.rows = frame.rows
    return {**state.frames, work.stage: frame}


def exchanged(
    state: Run, rank: Rank, frame: Frame, how: HashPartitioning, stored: Sequence[Stored], what: str
) -> Frame:
    """The rows of all ranks that belong to this one, in rank order; no key is heavy. All ranks call it."""
    from gquery.execution.direct_exchange import sent_directly  # of ranks alone

    direct = sent_directly(state, rank, frame, how, stored, what)
    if direct is not None:
        return direct
    device = state.context.device
    made = partition_rows(frame, how, device, state.context.settings.worker_count, what)
    parts = _sent(state, rank, [[made.part(n)] for n in range(rank.comm.size)], what)
    with in_step():
        return together(parts, stored, device)


def _sent(state: Run, rank: Rank, frames: Sequence[Sequence[Frame]], what: str) -> list[Frame]:
    """The rows that all ranks have for this one, in rank order; ``frames`` are its own, by the rank that they go to."""
    device = state.context.device
    found = handed_to_each(state, rank, what, [[movable(f, device) for f in to] for to in frames])
    others = [f for n, of_rank in enumerate(found) if n != rank.comm.rank for f in of_rank]
    rank.received_bytes += sum(c.nbytes for f in others for c in f.columns.values())
    return brought_near([f for of_rank in found for f in of_rank], device)


def _heavy_keys(state: Run, rank: Rank, by: ByHash, probed: int) -> Array:
    """The hashes of keys that have a large share of the rows that are probed; all ranks have the same."""
    found = rank.heavy.get(probed)
    if found is None:
        found = np.zeros(0, np.int64)
        if rank.placement[probed].makes == "part":
            device, workers = state.context.device, state.context.settings.worker_count
            sample = sample_keys(state.frames[probed], by.probed_keys, device, workers)
            samples = handed_over(state, rank, f"keys of stage {probed}", sample)
            found = heavy_among(samples, rank.comm.size)
        rank.heavy[probed] = found
    return found


def _of_heavy_keys(state: Run, rank: Rank, made: Partitioned, is_probed: bool) -> list[Frame]:
    """What goes to each rank of the rows of heavy keys, the last part: of those that are probed an even share of all ranks'
    rows, so that most stay where they are; all of the others."""
    ranks, part = rank.comm.size, made.part(made.parts - 1)
    if not is_probed:
        return [part] * ranks
    counts = handed_over(state, rank, "rows of heavy keys", part.rows)
    first, rows = sum(counts[: rank.comm.rank]), sum(counts)
    at = [min(max(rows * n // ranks - first, 0), part.rows) for n in range(ranks + 1)]
    return [rows_between(part, low, high) for low, high in pairwise(at)]
