"""What several GPUs are expected to take for TPC-H's 22 queries, from what one takes and what the ranks exchange.

    python -m benchmarks.rank_model --ranks 2 4 8 16 --sf 100

The queries run on so many CPU ranks at scale factor 0.01, with the thresholds of `tuning.distribution` as much smaller as the
tables are, so that ranks are given the same. Of each stage that tells the bytes that a rank reads and gets from others. The model
of a query on n GPUs, with one GPU's measured time T(1) (benchmarks/NOTES.md):

    T(n) = fixed + (T(1) - fixed) * bytes read by a rank of n / bytes read by one
         + bytes received * received_ps + exchanges * 17 us + launches * 3 us

A part of T(1) is fixed: launches and small tables. An exchange has some launches more for each other rank, and many where a
column is text. At other scale factors T(1) and the bytes grow with the tables; one GPU's time there is a prediction, too. A line
a query, milliseconds; what two GPUs took at scale factor 100 stands beside.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import gquery
from gquery import tuning
from gquery.execution import StageReport, run_with_report
from gquery.planner.physical import Pipeline, Program, ReadStage, ReadTable
from gquery.planner.stage_columns import stage_columns
from gquery.tuning.dividing import Distribution
from tpch import queries
from tpch.generate import files, generate

SF, TARGET = 0.01, 100.0
# All from benchmarks/NOTES.md, two H200s: an exchange in a CUDA graph; what a query of one GPU takes at SF30 and SF100 beyond
# what grows with the tables; a launch, by Q2 and Q16 at SF30 with 176 and 125 more a GPU; how many more these and others have.
EXCHANGE_MS, FIXED_MS, LAUNCH_MS = 0.017, 0.4, 0.003
LAUNCHES, TEXT_LAUNCHES = 3, 45
ONE = (4.10, 1.58, 4.67, 3.38, 6.11, 1.69, 5.37, 5.58, 12.5, 5.62, 1.04, 3.35, 6.32, 1.90, 2.45, 3.02, 3.35, 5.47, 2.95, 4.58,
       10.9, 2.64)  # fmt: skip
TWO = (2.64, 2.10, 2.88, 2.21, 3.98, 0.96, 3.85, 3.93, 8.39, 4.66, 0.72, 2.38, 4.61, 1.13, 1.51, 6.37, 2.18, 3.23, 1.70, 3.73,
       5.87, 1.98)  # fmt: skip


class Shares(NamedTuple):
    """Of a query on some ranks: the bytes that a rank reads, and gets, and in how many exchanges, of which some have text."""

    read: float
    received: float
    exchanges: int
    with_text: int


def scaled(sf: float) -> Distribution:
    """The thresholds, as much smaller as the tables are."""
    by, known = SF / sf, Distribution()
    return replace(
        known,
        replicated_bytes=int(known.replicated_bytes * by),
        joined_bytes=int(known.joined_bytes * by),
        cut_frame_rows=int(known.cut_frame_rows * by),
        hashed_bytes=int(known.hashed_bytes * by),
        hashed_us=known.hashed_us * by,
        exchanged_us=known.exchanged_us * by,
        waited_us=known.waited_us * by,
        alone_bytes=int(known.alone_bytes * by),
        alone_rows=int(known.alone_rows * by),
        gathered_rows=int(known.gathered_rows * by),
        gathered_located_rows=int(known.gathered_located_rows * by),
        parted_bytes=int(known.parted_bytes * by),
        sorted_later_bytes=int(known.sorted_later_bytes * by),
        merged_slot_words=max(1, int(known.merged_slot_words * by)),
    )


def shares(db: gquery.Connection, number: int, ranks: int) -> Shares:
    """What a run tells of a query."""
    prepared = db.sql(queries.sql(number)).prepared
    assert prepared is not None
    program = db._program(prepared)
    reports = run_with_report(program, db._context(), prepared.feedback)[1]
    read = sum(_read(program, r) for r in reports)
    ranked = prepared.feedback.ranked
    if ranked is None or not all(r.of_ranks for r in reports):  # one device's, or the first rank has it alone
        return Shares(read, 0.0, 0, 0)
    exchanged: list[int] = []  # the stages whose rows or states are
    for at, placed in enumerate(ranked.placement):
        hashed = () if placed.hashed is None else (placed.hashed.stage,)
        exchanged += [*placed.gathers, *[at] * placed.merges, *hashed]
    with_text = sum(any(c.physical_type.is_string for c in stage_columns(program.stages[n].work)) for n in exchanged)
    received = max(sum(s.of_ranks[n].received_bytes for s in reports) for n in range(ranks))
    return Shares(read, received, len(exchanged), with_text)


def _read(program: Program, report: StageReport) -> float:
    work = program.stages[report.number].work
    if not isinstance(work, Pipeline) or not isinstance(work.source, ReadTable | ReadStage):
        return 0.0
    rows = max((r.rows for r in report.of_ranks), default=report.rows)
    kinds = [s.physical_type for s in work.source.columns]
    return rows * sum(k.bytes + tuning.distribution.text_bytes * k.is_string for k in kinds)


def alone_ms(number: int, sf: float) -> float:
    """Milliseconds of one GPU."""
    return FIXED_MS + (ONE[number - 1] - FIXED_MS) * sf / TARGET


def predicted(number: int, one: Shares, of_ranks: Shares, ranks: int, sf: float) -> float:
    """Milliseconds of so many GPUs."""
    moved = of_ranks.received * (sf / SF) * tuning.distribution.received_ps * 1e-9
    launches = (of_ranks.exchanges * LAUNCHES + of_ranks.with_text * TEXT_LAUNCHES) * (ranks - 1)
    exchanged = of_ranks.exchanges * EXCHANGE_MS + launches * LAUNCH_MS
    return FIXED_MS + (alone_ms(number, sf) - FIXED_MS) * of_ranks.read / one.read + moved + exchanged


def connection(ranks: int) -> gquery.Connection:
    """One that interprets, with the tables."""
    db = gquery.connect(device="python", devices=ranks)
    for table, path in files(generate(SF)).items():
        db.sql(f"CREATE VIEW {table} AS SELECT * FROM '{path}'")
    return db


def times(ranks: int, sf: float = TARGET) -> list[float]:
    """Milliseconds of each query on so many GPUs."""
    with tuning.using(scaled(sf)), connection(1) as one, connection(ranks) as several:
        return [predicted(n, shares(one, n, 1), shares(several, n, ranks), ranks, sf) for n in queries.NUMBERS]


def main(given: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8, 16])
    parser.add_argument("--sf", type=float, default=TARGET)
    options = parser.parse_args(given)
    made = {ranks: times(ranks, options.sf) for ranks in options.ranks}
    print("query      one  two, measured " + "".join(f"{r:>9}" for r in options.ranks))
    for n in queries.NUMBERS:
        of_query = "".join(f"{made[r][n - 1]:9.2f}" for r in options.ranks)
        print(f"Q{n:<5}{alone_ms(n, options.sf):9.2f}{TWO[n - 1]:15.2f} {of_query}")
    total = sum(alone_ms(n, options.sf) for n in queries.NUMBERS)
    print(f"{'all':6}{total:9.2f}{sum(TWO):15.2f} " + "".join(f"{sum(made[r]):9.2f}" for r in options.ranks))


if __name__ == "__main__":
    main()
