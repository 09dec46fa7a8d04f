"""The physical plan: what runs. `planner.lower` makes it, `operators.codegen` turns its pipelines into kernels.

A `Program` is stages in the order in which they run: a `Pipeline` (a source, fused steps, a sink: one loop over rows) or a
`PipelineBreaker` (a whole-table operation). Stages refer to earlier ones by number. Nodes are frozen descriptions; what they
do stands in `gquery.operators`, one file an operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from gquery.expression.expr import Column, Expr, SortKey
from gquery.expression.frozen import frozen, frozen_open
from gquery.expression.windows import WindowCall
from gquery.kernels.values import ValueProperties
from gquery.planner.aggregates import Accumulator, AggregatePlan
from gquery.planner.late_fetch import LateFetch
from gquery.planner.layouts import InlinePayload, KeyEncoding, KeyFilter
from gquery.planner.logical.bounds import Bound
from gquery.planner.logical.nodes import JoinKind
from gquery.planner.ordered_call import OrderedCall
from gquery.planner.physical_sources import ByHash as ByHash
from gquery.planner.physical_sources import ReadOne as ReadOne
from gquery.planner.physical_sources import ReadRange as ReadRange
from gquery.planner.physical_sources import ReadStage as ReadStage
from gquery.planner.physical_sources import ReadTable as ReadTable
from gquery.planner.physical_sources import Source as Source
from gquery.planner.stored import Stored as Stored
from gquery.planner.unnest_rows import UnnestRows as UnnestRows

# ---- steps: fused, row to rows --------------------------------------------------------------------------------------


@frozen_open
class FilterRows:
    """Passes rows on for which the predicate is TRUE. ``selectivity`` is the estimated share of the source's rows that are left
    behind it."""

    predicate: Expr
    selectivity: float = 1.0


@frozen_open
class Compute:
    exprs: tuple[tuple[Column, Expr], ...]  # new columns, which it binds to expressions


JoinLayout = Literal["one", "loop", "sorted", "direct-address", "hash"]


@frozen_open
class JoinTable:
    """How the rows of a build side are found. ``layout``: *one* row at most (a scalar), *loop* over all rows,
    *sorted* rows of which a range is found by binary search, *direct-address* in an array over the encoded key,
    *hash* table. ``unique``: no key stands twice. ``exists``: only
    whether there is a match is asked, so a direct-address table is a bitmap. ``key_encoding`` encodes the keys of
    direct-address tables and of hash tables of encoded keys; ``inline_keys`` says that a hash table holds its keys, one
    integer each, and not only the numbers of rows where they stand.

    A plan says unique where that is proved. ``expected_unique``: it is likely, so a build tries, and finds out: what
    probes the table is specialized to it then (`operators.specialize`). ``counted``: the build counts the rows that it
    enters. ``inline_payload`` is what a unique table holds in place of a row's number. ``radix_partitioned``: a unique
    array larger than a GPU's cache, whose rows come in no order, is filled a part at a time
    (`kernels.builtin.partition`). ``clustered``: a bitmap whose rows come in the order of a key that repeats.
    ``probe_rows`` is an estimate of the rows that are looked up in it. ``filter`` is made beside
    the table as it is built (`operators.key_filter`); a plan has none. ``sorted_by``: the rows of a slot, or all of a *sorted*
    table, come in the order of this column, without those where it is NULL. ``reach_of``: a tree of the greatest values of
    this column finds among them those that reach far enough (`kernels.primitives.ranges`). ``is_bounded``: probes bound the range
    from both sides, so that few rows are expected in it. ``by_one``: one thread enters all rows; a plan says no."""

    stage: int
    layout: JoinLayout
    unique: bool
    exists: bool
    columns: tuple[Stored, ...]
    keys: tuple[Column, ...]
    null_safe: tuple[bool, ...]
    key_encoding: KeyEncoding | None
    rows: int
    inline_keys: bool = False
    expected_unique: bool = False
    inline_payload: InlinePayload | None = None
    counted: bool = False
    radix_partitioned: bool = False
    clustered: bool = False
    probe_rows: int = 0
    filter: KeyFilter | None = None
    sorted_by: Column | None = None
    reach_of: Column | None = None
    is_bounded: bool = False
    by_one: bool = False


@frozen_open
class Probe:
    """Looks a row up in a join table and passes on what the kind of join says. ``keys`` are the probing side's expressions,
    ``residual`` the part of the condition that is tested on each pair, ``payload`` the build columns that are passed on.
    ``null_key``: MARK alone, the mark is NULL without a match where the probe's key or some build key is NULL. ``always``: it
    is known that there is one match, as the key was found there before. ``selectivity`` is the estimated share of the source's
    rows that are left behind it. ``filter``: the table's filter is tested first; a plan has none.

    Of a table that is sorted: ``low`` and ``high`` bound the column that it is sorted by, ``reach`` is the least value of its
    other column that matches."""

    table: JoinTable
    kind: JoinKind
    keys: tuple[Expr, ...]
    residual: Expr | None
    payload: tuple[Column, ...]
    mark: Column | None = None
    records_matches: bool = False  # FULL: remember which build rows matched
    null_key: bool = False
    always: bool = False
    selectivity: float = 1.0
    filter: KeyFilter | None = None
    low: tuple[Bound, ...] = ()
    high: tuple[Bound, ...] = ()
    reach: Bound | None = None

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """All bounds of a range of rows, in this order."""
        return self.low + self.high + (() if self.reach is None else (self.reach,))


@frozen_open
class SegmentHeads:
    """Passes on the first row of each segment. Steps between this and `SegmentRows` come out the same for all of its rows."""

    key: Stored  # a sorted column of the source; the rows of one of its values are a segment
    selectivity: float  # estimated share of the source's rows that are passed on


@frozen_open
class SegmentRows:
    """Passes on all rows of a segment, one after another, whichever row its first one is."""

    key: Stored
    to_next_head: bool = False  # all heads are in a selection vector, so a segment ends where the next one begins


@frozen_open
class AggregateSegment:
    """Aggregates the rows of a segment that get here, in registers, and passes the segment on as one row, if there was any."""

    accumulators: tuple[Accumulator, ...]
    aggregates: tuple[tuple[Column, AggregatePlan], ...]
    selectivity: float


Step = FilterRows | Compute | Probe | SegmentHeads | SegmentRows | AggregateSegment

# ---- sinks: what a pipeline ends in ---------------------------------------------------------------------------------


@frozen_open
class Materialize:
    """Writes rows to a new frame; ``ordered`` keeps the order of the source. With a ``limit`` the first so many are enough.
    ``few``: it speculates that no morsel gives more rows than it has, though rows may find several matches."""

    columns: tuple[Stored, ...]
    ordered: bool
    limit: int | None = None
    few: bool = False


@frozen_open
class Reduce:
    """Aggregates without keys: one row. Of one pass over the rows among several it has the accumulators of that alone, from
    number ``first`` on (see `operators.reduce`)."""

    accumulators: tuple[Accumulator, ...]
    aggregates: tuple[tuple[Column, AggregatePlan], ...]
    first: int = 0


GroupLayout = Literal["direct-address", "hash", "row-id hash"]


@frozen_open
class Group:
    """Aggregates by key. ``layout``: *direct-address* in arrays over the encoded key, *hash* table of encoded keys (without a
    key encoding: of one integer of any size), or *row-id hash* table of the source frame, whose keys are compared as they stand.

    ``sparse``: the frame of direct-address groups is their sparse arrays themselves, one row a slot, also where no group is:
    these columns, each with the number of its accumulator (`TOUCHED` for the flags), for which whoever reads it tests.

    ``clustered_key``: a key that is sorted in the source, so that a group's rows lie together. ``concurrent``: the
    threads of a CPU accumulate into one state (see `operators.aggregation_cache`), else each into one of its own.
    ``partitioned``: they write what they have of groups to parts by the keys' hashes (see `operators.partitioned_groups`).
    ``windows``: how many parts of a GPU's table are filled one after another (see `operators.table_windows`)."""

    layout: GroupLayout
    keys: tuple[tuple[Column, Expr, ValueProperties], ...]
    key_encoding: KeyEncoding | None
    accumulators: tuple[Accumulator, ...]
    aggregates: tuple[tuple[Column, AggregatePlan], ...]
    groups: int  # an estimate
    sparse: tuple[tuple[Stored, int], ...] = ()
    clustered_key: Stored | None = None
    concurrent: bool = False
    partitioned: bool = False
    windows: int = 1


TOUCHED = -1  # stands for the flags of groups that are there, among the accumulators of sparse groups


@frozen_open
class Build:
    """Enters the rows of its source frame into a join table."""

    table: JoinTable


Sink = Materialize | Reduce | Group | Build


@frozen_open
class Pipeline:
    """One loop over the rows of a source. ``host`` names the function for whose sake it runs on the python target: one that
    no kernel can call, in the condition of an outer join. The rows that get past the first ``selection_steps`` are
    compacted into a selection vector by a kernel of their own (see `operators.selection`)."""

    source: Source
    steps: tuple[Step, ...]
    sink: Sink
    rows: int  # estimated rows that the source gives
    work: int  # estimated row-steps, fan-out included
    host: str | None = None
    selection_steps: int = 0


@frozen_open
class HostRows:
    """Adds columns to the rows of a source: calls over its columns and constants that no kernel can make, made over arrays
    on the host (`kernels.host_calls`). Nothing else is read or written: the source's columns are passed on, not copied."""

    source: ReadTable | ReadStage
    made: tuple[tuple[Stored, Expr], ...]
    columns: tuple[Stored, ...]


# ---- pipeline breakers: whole tables ----------------------------------------------------------------------------------


@frozen_open
class SortRows:
    """Sorts a frame, stable; ``limit`` keeps the first rows after ``offset``. Keys are columns of the frame."""

    stage: int
    keys: tuple[SortKey, ...]
    columns: tuple[Stored, ...]
    limit: int | None
    offset: int


@frozen_open
class SliceRows:
    """``limit`` rows of a frame after ``offset``. ``origins[i]`` is the id that ``columns[i]`` has there."""

    stage: int
    columns: tuple[Stored, ...]
    origins: tuple[int, ...]
    limit: int | None
    offset: int


@frozen_open
class ConcatRows:
    """The rows of several frames, one after another; ``inputs[k]`` are the columns of frame k in order."""

    stages: tuple[int, ...]
    inputs: tuple[tuple[Stored, ...], ...]
    columns: tuple[Stored, ...]


@frozen
class RankOf:
    """What is asked of codes within groups: the least or the greatest, of the rows where a column is TRUE (None: of all)."""

    greatest: bool
    only: Column | None = None


@frozen_open
class RankEncode:
    """Adds to a frame, for each (source, code) pair, the rank of the source's values: codes that compare as the values do.
    For minima of strings and of 128-bit numbers, which no atomic can hold. ``extremes``: only the least and the greatest
    code of all rows are asked for, so no other values are told apart; ``alone``: no other rows, nor columns, are kept.
    With ``keys``: one extreme of each group is asked for, ``within`` says which for each pair, and where ``alone``, others
    than rows with extremes, and some more, are left out."""

    stage: int
    pairs: tuple[tuple[Stored, Column], ...]
    columns: tuple[Stored, ...]
    extremes: bool = False
    alone: bool = False
    keys: tuple[Column, ...] = ()
    within: tuple[RankOf, ...] = ()


@frozen_open
class RankDecode:
    """Replaces code columns by the values that a `RankEncode` stage ranked; row numbers by those that a frame has there."""

    stage: int
    ranked: int
    pairs: tuple[tuple[Column, Column, Column], ...]  # (code column in the frame, source column there, new column)
    columns: tuple[Stored, ...]


@frozen_open
class WindowRows:
    """Adds the values of window functions to the rows of a frame, which keep their order. ``partition`` and the keys of ``order``
    are columns of the frame; so is what calls read, or it is a constant. ``columns``: those of the frame that are passed on, and
    the calls'. With ``first`` rows of a greater rank in their partition may be left out. ``sort``: keys, which begin with
    those of the window, that its neighbours are sorted by too; rows with equal keys of its own may come in any order then."""

    stage: int
    partition: tuple[Column, ...]
    order: tuple[SortKey, ...]
    calls: tuple[tuple[Stored, WindowCall], ...]
    columns: tuple[Stored, ...]
    first: int | None = None
    sort: tuple[SortKey, ...] = ()


@frozen_open
class UnmatchedRows:
    """The rows of a FULL join's build side that no probe of ``probe_stage`` matched."""

    table: JoinTable
    probe_stage: int
    columns: tuple[Stored, ...]


@frozen_open
class DistinctRows:
    """The different values of a column of integers without NULLs, ascending; ``counted``: how many there are, one row."""

    stage: int
    source: Column
    columns: tuple[Stored, ...]
    counted: bool


@frozen_open
class OrderedGroups:
    """The groups of a frame by keys, pairs of a new column and one of the frame, and aggregates over the rows of each in an order
    (`operators.ordered_groups`). Without keys all rows are one group."""

    stage: int
    keys: tuple[tuple[Column, Column], ...]
    calls: tuple[tuple[Stored, OrderedCall], ...]
    columns: tuple[Stored, ...]


@frozen_open
class RoundRows:
    """Within the program of a recursion's step: rows that a round is given. It makes nothing itself."""

    columns: tuple[Stored, ...]


@frozen_open
class RecursiveRows:
    """The rows of a frame, and those that a program makes of each round's rows, until it makes none. The program's first stage
    has the rows of the round before, those behind it the levels of all rows so far (`RoundRows`). ``inputs`` are the frame's
    columns; ``enough`` rows will do."""

    stage: int
    inputs: tuple[Stored, ...]
    program: Program
    columns: tuple[Stored, ...]
    enough: int | None = None


PipelineBreaker = (SortRows | SliceRows | ConcatRows | RankEncode | RankDecode | WindowRows | UnnestRows | UnmatchedRows
                   | DistinctRows | HostRows | OrderedGroups | RoundRows | RecursiveRows)  # fmt: skip


@frozen_open
class Stage:
    """One step of a program; its number is its place. ``label`` says in the user's terms what it does."""

    number: int
    work: Pipeline | PipelineBreaker
    label: str = ""


@frozen_open
class Program:
    """What a query runs: stages in order, and the last one's columns under the names that the user sees; then what is fetched."""

    stages: Sequence[Stage]
    outputs: tuple[Stored, ...]
    names: tuple[str, ...]
    fetch: LateFetch | None = None
