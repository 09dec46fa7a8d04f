"""What is known of a stage, and what tells one form of it from another: records that runs leave in the feedback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from gquery.expression.frozen import frozen_open
from gquery.runtime.tuples import NamedTuple

if TYPE_CHECKING:
    from gquery.operators.accumulate import StateLocation
    from gquery.planner.layouts import KeyEncoding, KeyFilter
    from gquery.planner.physical import GroupLayout, JoinLayout, JoinTable, Probe


Cached = Literal["kernels", "drafts", "nothing"]
"""What a cache on disk has of a stage."""


@frozen_open
class BuiltTable:
    """A join table as it was built: at most ``rows`` of the rows of its frame are in it, and at most ``longest`` of one key
    (None: nobody has asked)."""

    table: JoinTable
    rows: int
    frame_rows: int
    longest: int | None

    def is_like(self, other: BuiltTable) -> bool:
        """Whether the same stage has built another table of the same form and size."""
        mine, theirs = table_variant(self.table), table_variant(other.table)
        sizes = (self.rows, self.frame_rows, self.longest) == (other.rows, other.frame_rows, other.longest)
        return mine == theirs and sizes


@frozen_open
class StageFeedback:
    """What runs have told of one stage. ``capacity`` is that of a hash table that had to grow (0: none had), ``groups`` how
    many groups the last compiled run on a CPU made, ``cached`` what an earlier process has compiled (None: nobody has
    looked)."""

    duplicate_keys: bool = False
    fanned_out: bool = False  # a morsel gave more rows than it has
    interpreted_seconds: float = 0.0  # of all runs
    outgrown: bool = False  # a run had so much work that interpreting it was given up
    capacity: int = 0
    groups: int | None = None
    cached: Cached | None = None
    is_requested: bool = False  # its kernels are compiled in the background
    rows: int | None = None  # that the source gave to the last run
    table: BuiltTable | None = None  # that the last run built


NO_FEEDBACK = StageFeedback()  # of a stage that no run has told of


class ScalarSite(NamedTuple):
    """Which scalar of a run: the ``ordinal``-th that a stage reads back."""

    stage: int
    ordinal: int


class TableVariant(NamedTuple):
    """What tells the kernels of a join table apart, once it was specialized."""

    layout: JoinLayout
    unique: bool
    radix_partitioned: bool
    filter: KeyFilter | None
    own_keys: KeyEncoding | None
    by_one: bool


def table_variant(table: JoinTable, probe: Probe | None = None) -> TableVariant:
    """The variant of a table that is built, or of one that ``probe`` looks rows up in: it may leave the table's filter out."""
    tested = table.filter if probe is None else probe.filter
    own = own_keys(table.key_encoding)
    return TableVariant(table.layout, table.unique, table.radix_partitioned, tested, own, table.by_one)


def own_keys(encoding: KeyEncoding | None) -> KeyEncoding | None:
    """The encoding of keys of which a rank has values of its own; None where all ranks have the same."""
    return encoding if encoding is not None and any(p.is_own for p in encoding.parts) else None


class GroupVariant(NamedTuple):
    """What tells the kernels of a Group apart, once it was specialized."""

    layout: GroupLayout
    place: StateLocation
    windowed: bool
    own_keys: KeyEncoding | None


class UnitsKey(NamedTuple):
    """What tells the kernels of one stage apart: all that specialization may change."""

    stage: int
    target: str
    base: int  # the first key of sparse groups that are read
    group: GroupVariant | None
    sum_words: tuple[int | None, ...]
    tables: tuple[TableVariant, ...]
    wide_index: bool
    counts: bool
    selection_steps: int
    few: bool
    is_draft: bool


class OutputKey(NamedTuple):
    """The same of the kernel that makes columns of groups."""

    stage: int
    target: str
    layout: GroupLayout
    partitioned: bool
    sum_words: tuple[int | None, ...]
    own_keys: KeyEncoding | None
