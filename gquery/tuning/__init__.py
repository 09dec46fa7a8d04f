"""Tuning: every number that was chosen and not given, in frozen records, each with its unit and where it was measured.

Nothing comes in; rooms read ``tuning.joins.slots_a_row`` where they need it, at run time, through this module, so that a
record set by `using` is seen by all rooms and threads at once. Arithmetic facts (the bits of a type) are no tuning.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gquery.tuning.data import Encoding, Memory, Ownership, Reading, Startup, Streaming, Transfers
from gquery.tuning.dividing import Clusters, Distribution, Spilling, WorkerDistribution
from gquery.tuning.kernels import (
    BuiltInKernels,
    Compiling,
    KernelParts,
    KernelTexts,
    Partitioning,
    Sorting,
    TextScans,
    WindowFunctions,
)
from gquery.tuning.planning import (
    Cardinality,
    GroupLayouts,
    InterpreterCosts,
    JoinCosts,
    JoinLayouts,
    JoinOrder,
    KeyFilters,
    LateFetches,
    Rewrites,
    SemiJoins,
    Windows,
)
from gquery.tuning.record import Record
from gquery.tuning.running import (
    Accumulators,
    HostFunctions,
    Interpreting,
    Launches,
    Loops,
    Materialization,
    Measuring,
    Prefixes,
    Recursion,
    Replay,
    Speculation,
    Threads,
)

# planner
cardinality = Cardinality()
join_costs = JoinCosts()
join_order = JoinOrder()
rewrites = Rewrites()
late_fetch = LateFetches()
semi_joins = SemiJoins()
join_layouts = JoinLayouts()
key_filters = KeyFilters()
windows = Windows()
window_functions = WindowFunctions()
group_layouts = GroupLayouts()
interpreter_costs = InterpreterCosts()
# operators and execution
distribution = Distribution()
worker_distribution = WorkerDistribution()
cluster = Clusters()
spilling = Spilling()
accumulators = Accumulators()
materialization = Materialization()
loops = Loops()
host_functions = HostFunctions()
prefixes = Prefixes()
interpreting = Interpreting()
recursion = Recursion()
speculation = Speculation()
replay = Replay()
measuring = Measuring()
threads = Threads()
launches = Launches()
# kernels
kernel_texts = KernelTexts()
kernel_parts = KernelParts()
built_in_kernels = BuiltInKernels()
partitioning = Partitioning()
text_scans = TextScans()
sorting = Sorting()
compiling = Compiling()
# columns, files, memory
encoding = Encoding()
ownership = Ownership()
reading = Reading()
transfers = Transfers()
streaming = Streaming()
memory = Memory()
startup = Startup()

_NAMES = {type(record): name for name, record in globals().items() if isinstance(record, Record)}


def records() -> dict[str, Record]:
    """The records in use, by name."""
    return {name: globals()[name] for name in _NAMES.values()}


def use(*chosen: Record) -> list[Record]:
    """Put records into use, each in place of the one of its type; those that were in use before."""
    before = [globals()[_NAMES[type(record)]] for record in chosen]
    globals().update((_NAMES[type(record)], record) for record in chosen)
    return before


@contextmanager
def using(*chosen: Record) -> Iterator[None]:
    """Records that are in use inside of a block, in all threads: for tests and experiments, one at a time.

    >>> from dataclasses import replace
    >>> from gquery import tuning
    >>> with tuning.using(replace(tuning.join_order, most_by_dp=2)):
    ...     tuning.join_order.most_by_dp
    2
    >>> tuning.join_order.most_by_dp
    10
    """
    before = use(*chosen)
    try:
        yield
    finally:
        use(*before)
