"""Numbers of the operators and of execution: accumulators, materialization, generated loops, interpreting, readback."""

import os
from dataclasses import dataclass

from gquery.tuning.record import Record, number

_H200_QUERIES = "2026-11-21: where the time of the 22 queries goes on an H200"
_MANY_CORES = "2026-11-21: many cores"
_FEW = "2026-11-22: blocks of rows that cannot match"
_CASE_SUMS = "2026-11-22: sums of CASE columns for a GPU"
_FIRST = "2026-11-22: what a fresh process does not need"
_PROBES = "2026-11-29: least texts of groups by the best row so far"
_LOOKUPS = "2026-11-23: rows looked up together"
_HOISTED = "2026-11-21: columns loaded ahead"
_OPERATIONS = "2026-11-21: single operations on an H200"
_ROUNDS = "2026-11-24: rows that a recursion has seen"
_GAPS = "2026-11-27: gaps closed in place"
_DRAFTS = "2026-11-24: drafts of a CPU's kernels"
_LARGE_GROUPS = "2026-11-27: many groups on two cores"
_IN_ONE_PIECE = "2026-11-28: what two ranks do that one does not"
_INTERPRETED = "2026-11-21: what is interpreted, and for how long"


@dataclass(init=False, eq=False, repr=False)
class Accumulators(Record):
    """Where the state of groups lies while rows are accumulated."""

    private_words: int = number(
        48, "64-bit words a thread", "of private state: 128 threads of them fill 48 KB of shared memory", _H200_QUERIES
    )
    block_words: int = number(
        8192, "64-bit words a block", "of shared state: 64 KB, what any GPU can give one block", _H200_QUERIES
    )
    copied_words: int = number(
        2048, "64-bit words a block", "of copies for neighbouring lanes: 16 KB, of which a multiprocessor holds eight"
    )
    numbered_slots: int = number(
        4,
        "slots a group",
        "of a range of keys, up to which groups of ranks are found by a flag a slot and not by sorting keys",
    )
    numbered_at_once: int = number(
        2**22,
        "slots",
        "of a range of keys, up to which GPUs do so however few groups there are: 5 us a million, a sort takes 150 and more",
        "2026-11-28: groups that are merged in parts need no sort",
    )
    few_merged: int = number(
        512,
        "groups",
        "of all ranks, up to which a GPU compares each with all others to merge them: 151 us of sorting for 84 of them",
        _IN_ONE_PIECE,
    )
    numbered_slots_on_host: int = number(
        8, "slots a group", "the same of ranks of CPUs", "2026-11-28: exchanges through sockets of the host"
    )
    most_copies: int = number(32, "copies", "of a small state: as many as a warp has lanes", _H200_QUERIES)
    register_words: int = number(
        8, "accumulators", "of the group that a thread holds in registers: more leave fewer threads"
    )
    pass_words: int = number(
        32,
        "accumulators",
        "without groups, of one of a GPU's passes over the rows: twice as many take 80 to 100 registers more",
        _CASE_SUMS,
    )
    pass_words_behind_joins: int = number(
        64, "accumulators", "of such a pass where each looks rows up in other tables again", _CASE_SUMS
    )
    most_evictions: int = number(
        32, "rows", "of other groups after which the group in registers is evicted", _OPERATIONS
    )
    cache_slots: int = number(256, "slots", "of a thread's aggregation cache, a power of two", _MANY_CORES)
    own_words: int = number(
        2**16,
        "64-bit words a thread",
        "of a state of its own: half a MB, which lies in a core's second cache",
        _MANY_CORES,
    )
    own_slot_rows: int = number(
        4,
        "rows a slot and thread",
        "from which on a larger state of arrays is each thread's own: clearing and combining it takes less than atomics",
        _LARGE_GROUPS,
    )
    own_group_rows: int = number(
        32, "rows a group and thread", "from which on a larger hash table is each thread's own", _LARGE_GROUPS
    )
    own_memory: int = number(
        8, "times", "the states of all threads that must be free where each has a large one", _LARGE_GROUPS
    )
    partitioned_words: int = number(
        2**20,
        "64-bit words",
        "of a hash table that threads would share, from which on its groups are made by parts: 8 MB, which no core's cache holds",
        _LARGE_GROUPS,
    )
    partitioned_rows: int = number(
        16, "rows a group", "at most where groups are made by parts: of more a table takes less memory", _LARGE_GROUPS
    )
    partitioned_memory: int = number(
        3, "times", "the room for contributions that must be free: they become columns", _LARGE_GROUPS
    )
    part_bytes: int = number(
        2**19, "bytes", "of a part's contributions: with its table of groups in a core's second cache", _LARGE_GROUPS
    )
    most_parts: int = number(
        2**10, "parts", "of groups at once: a core writes to so many places without waiting", _LARGE_GROUPS
    )
    combined_slots: int = number(2**15, "slots", "of states that one thread combines at once", _MANY_CORES)
    sorted_slots: int = number(2**14, "entries", "of all threads' hash tables up to which they are combined by sorting")
    finalized_slots: int = number(2**16, "slots", "of a CPU's state from which on a kernel finalizes it", _MANY_CORES)
    host_words: int = number(2**14, "64-bit words", "of a GPU's state up to which the host finalizes it")
    parts_a_worker: int = number(2, "parts", "that a finalized state is split into for each worker")
    loaded_words: int = number(
        32,
        "accumulators",
        "of a group that are loaded before the first result is made: more find no registers",
        _CASE_SUMS,
    )
    unrolled_rows: int = number(4, "groups", "an iteration of the unrolled loop that finalizes")


@dataclass(init=False, eq=False, repr=False)
class Materialization(Record):
    """How rows are materialized."""

    unit: int = number(
        1024, "rows", "that one count of a materializing kernel covers; partitions begin at its multiples"
    )
    listed_counts: int = number(
        8, "counts", "of units, up to which a list of them is looked through: NumPy takes longer to begin"
    )
    sparse_selectivity: float = number(
        0.1, "share of rows", "below which each morsel writes a few small pages of its part", _MANY_CORES
    )
    moved_selectivity: float = number(
        0.5,
        "share of rows",
        "of an array that are kept, from which on its gaps are closed within it: fewer are copied sooner",
        _GAPS,
    )
    bounded_least_rows: int = number(
        2**16, "rows", "of a source from which on a CPU speculates that a fan-out makes few rows", _FEW
    )
    bounded_selectivity: float = number(0.5, "rows a row", "of the source that are expected, at most, for that")
    compacted_least_rows: int = number(
        2**22, "rows", "of a source that a selection vector is worth: fewer do not fill a GPU twice", _H200_QUERIES
    )
    compacted_most_selectivity: float = number(
        1 / 6, "share of rows", "that pass the first steps, for a selection vector", _H200_QUERIES
    )
    compacted_most_heads: float = number(
        0.5, "share of rows", "that head segments, for a selection vector of them: it is four bytes each"
    )
    compacted_least_probes: int = number(
        2, "memory accesses", "behind the first steps, which the selection spares other rows"
    )
    sorted_on_host: int = number(
        4096, "rows", "that are candidates of a sort with a limit, up to which the host sorts them"
    )


@dataclass(init=False, eq=False, repr=False)
class Loops(Record):
    """The generated loop: how many rows an iteration takes, and how long its text may get."""

    unrolled_rows: int = number(
        4, "rows", "an iteration of the unrolled loop: 8 are no faster with narrow columns", _HOISTED
    )
    segment_rows: int = number(4, "rows", "of a segment that are loaded at once: most segments are short")
    segment_lines: int = number(24, "lines", "that are written once for each of them, at most")
    segment_loads: int = number(8, "columns", "that are loaded for each of them, at most: in registers of the thread")
    interleaved_rows: int = number(
        2**22, "rows", "from which on interleaved probes pay for a larger kernel's load", _H200_QUERIES
    )
    interleaved_lines: int = number(48, "lines", "of a loop with interleaved probes: the rest is written once a row")
    marked_rows: int = number(
        1024, "rows", "of a block whose filters a processor computes before the rest: they stay in L1"
    )
    marked_least_rows: int = number(2**16, "rows", "from which on that pays for a larger kernel")
    lookup_rows: int = number(
        64,
        "rows",
        "that a processor looks up together: what they ask for stays in L1, and is there when the last has asked",
    )
    lookup_least_rows: int = number(2**12, "rows", "from which on that pays for a larger kernel", _LOOKUPS)
    lookup_table_rows: int = number(2**14, "rows", "of a table from which on that pays where it is probed", _PROBES)
    unrolled_lines: int = number(60, "lines", "of an unrolled loop that materializes")
    unrolled_variables: int = number(48, "variables", "of a thread beside which several rows at once find no registers")
    unrolled_lines_reduced: int = number(
        300, "lines", "of an unrolled loop that aggregates: the longest of common queries has 37"
    )


@dataclass(init=False, eq=False, repr=False)
class HostFunctions(Record):
    """Rows that functions of the host (Arrow, Python) compute."""

    chunk_rows: int = number(2**16, "rows", "that one call takes")
    chunk_bytes: int = number(2**24, "bytes", "of text that one call takes")
    spare: float = number(1.1, "bytes a byte", "of room for text, by the length of what was made so far")
    spare_bytes: int = number(2**16, "bytes", "of room for text beyond that")
    dictionary_rows: int = number(
        2, "rows an entry", "from which on a function is computed once an entry of a dictionary"
    )


@dataclass(init=False, eq=False, repr=False)
class Prefixes(Record):
    """Queries with a LIMIT that read a prefix of a table first."""

    first_rows: int = number(16_384, "rows", "of the first prefix on a CPU")
    first_rows_gpu: int = number(2**20, "rows", "of the first prefix on a GPU")
    growth: int = number(8, "times", "that the next prefix is longer, at least")
    largest_growth: int = number(64, "times", "that the next prefix is longer, at most")
    headroom: float = number(1.25, "rows a wanted row", "that the next prefix is expected to give")


@dataclass(init=False, eq=False, repr=False)
class Interpreting(Record):
    """What the interpreter runs, and for how long."""

    trial_seconds: float = number(
        0.02,
        "seconds",
        "of interpreting after which the rest of a pipeline runs compiled: what a kernel takes to compile",
    )
    most_seconds: float = number(
        0.05, "seconds", "of interpreting after which a unit of rows is given up: all rows run again, compiled"
    )
    paced_turns: int = number(4096, "turns", "of loops in an interpreted kernel between two looks at the clock")
    background_tasks: int = number(32, "kernels", "that wait to be compiled beside the queries, at most")
    background_threads: int = number(
        2, "threads", "that have such kernels compiled: as many at once, where processes that compile are up"
    )
    break_even_seconds: float = number(
        0.03, "seconds", "of interpreting, in all runs, from which on a usual pipeline is compiled", _INTERPRETED
    )
    background_seconds: float = number(
        0.001,
        "seconds",
        "of interpreting, in all runs, from which on the kernel of a usual pipeline is compiled beside a CPU's query",
    )
    draft_limits: float = number(
        0.1, "interpret_limits", "of row-steps from which on a CPU runs a draft of a usual pipeline's kernel", _DRAFTS
    )
    draft_seconds: float = number(
        0.005,
        "seconds",
        "of interpreting, in all runs, from which on a draft of a usual pipeline's kernel is made",
        _DRAFTS,
    )
    tiny_steps: int = number(
        300, "row-steps", "that the interpreter takes sooner than a GPU launches", "2026-11-21: primitives"
    )
    breaker_seconds: float = number(
        33.3e-6,
        "seconds",
        "of copying frames of a GPU to the host for an operator there: 2 MB from an H200",
        _INTERPRETED,
    )
    table_seconds: float = number(
        2.081e-6, "seconds", "of copying join tables of a GPU for the interpreter: 128 KB from an H200", _INTERPRETED
    )
    cached_steps: int = number(
        5000,
        "row-steps",
        "from which on a first run on a CPU looks for kernels on disk: as long as it takes to write one's text",
    )
    table_slot_bytes: int = number(8, "bytes", "of a slot or a value of a join table, on the average")
    rows_of_a_key: int = number(4, "rows", "that a key which may repeat is forecast to have")
    forecast_rows: int = number(1000, "rows", "up to which a later stage is forecast where an earlier one keeps few")
    plain_rows: int = number(
        500, "rows", "up to which a kernel runs as it is: to inline its primitives takes longer than it saves"
    )
    loop_steps: int = number(2**20, "row-steps", "of an interpreted nested loop between two looks at an interrupt")
    loop_steps_cpu: int = number(2**25, "row-steps", "of a compiled nested loop on a CPU between two looks")
    loop_steps_gpu: int = number(2**38, "row-steps", "of a nested loop on a GPU between two looks")


@dataclass(init=False, eq=False, repr=False)
class Recursion(Record):
    """What the rounds of a recursion have made."""

    levels: int = number(
        3,
        "levels",
        "of rows seen, each in a join table of its own: a round's new rows are looked up in all of them",
        _ROUNDS,
    )
    ratio: int = number(
        16,
        "times",
        "as many rows as one level has the next: where it has more, both become one. A row is put into tables some 16 times "
        "a level, however many rounds there are",
        _ROUNDS,
    )


@dataclass(init=False, eq=False, repr=False)
class Speculation(Record):
    """Runs that go on before their scalars are read back."""

    status_words: int = number(1024, "32-bit words", "for the abort flag and the errors of kernels", _H200_QUERIES)
    kept_stages: int = number(512, "stages", "with the constants that they met, whose scalars a template keeps")
    given_up: int = number(
        8, "runs", "of a template's plans made twice, after which none takes what others read back as given"
    )
    varying_slack: float = number(
        1.5, "times", "by which a count may be greater than it was that depends on the order a GPU left rows in"
    )


@dataclass(init=False, eq=False, repr=False)
class Replay(Record):
    """Runs that are recorded as CUDA graphs."""

    runs: int = number(2, "runs", "behind the first with which a program begins to be recorded")
    runs_beside_template: int = number(
        8, "runs", "likewise, where the stages of its template are recorded for all constants"
    )
    poll_seconds: float = number(
        0.05, "seconds", "between two looks at whether the kernels of a recording are compiled"
    )
    given_up: int = number(3, "recordings", "of one program that may be given up before none is made any more")
    template_runs: int = number(
        2, "runs", "of plans of one template, with other constants each, with which one begins to be recorded for all"
    )
    worthwhile: int = number(
        20,
        "runs",
        "for which a recording of a template was worth making: it may be given up and made again any number of times",
    )
    slack: float = number(
        1.3, "times", "by which counts may be greater than they were where a run is recorded for all constants"
    )
    slack_rows: int = number(1024, "rows", "that are added to that")
    alignment: int = number(16, "bytes", "at multiples of which the buffers of a result lie in one piece")
    block_bytes: int = number(
        1 << 23,
        "bytes",
        "of a result that is copied to the host in one piece: four arrays of 1.1 MB took 440 us by themselves",
        _IN_ONE_PIECE,
    )
    long_seconds: float = number(
        0.02, "seconds", "of a recorded run that is waited for beside its thread, for interrupts"
    )


@dataclass(init=False, eq=False, repr=False)
class Measuring(Record):
    """EXPLAIN ANALYZE's measure of bandwidth."""

    copied_bytes: int = number(1 << 26, "bytes", "of each array of the copy that measures a CPU's bandwidth")
    copied_bytes_gpu: int = number(1 << 29, "bytes", "of each array of the copy that measures a GPU's bandwidth")
    least_copied: int = number(1 << 20, "bytes", "of a copy that says anything")
    most_memory: int = number(4, "parts of free memory", "of which the copy takes one at most")
    copies: int = number(5, "copies", "of which the fastest counts")


@dataclass(init=False, eq=False, repr=False)
class Threads(Record):
    """How a CPU's threads share the rows of a kernel."""

    morsel_rows: int = number(131_072, "rows", "that a thread takes at once", _MANY_CORES)
    most: int = number(max(64, os.cpu_count() or 1), "threads", "that wait for something to help with")
    blas_spin: int = number(18, "log2 of cycles", "that threads of NumPy's OpenBLAS spin before they sleep", _FIRST)


@dataclass(init=False, eq=False, repr=False)
class Launches(Record):
    """The shape of a launch on a GPU."""

    threads: int = number(256, "threads a block", "of a kernel without private state")
    most_threads: int = number(1024, "threads a block", "of a kernel whose blocks have a state: the most of any GPU")
    blocks_a_processor: int = number(16, "blocks a multiprocessor", "of a kernel without shared memory, at most")
