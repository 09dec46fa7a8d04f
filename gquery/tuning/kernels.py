"""Numbers of the kernels: how their text is written and cut, the built-in ones, sorting, and how they are compiled."""

from dataclasses import dataclass

from gquery.tuning.record import Record, number

_RANKS = "2026-11-28: what two ranks do that one does not"
_COMPARED = "2026-11-29: new constants without a program, and few rows that are compared with each other"
_BEST = "2026-11-29: least texts of groups by the best row so far"
_H200_QUERIES = "2026-11-21: where the time of the 22 queries goes on an H200"
_BRANCHES = "2026-11-28: a fresh plan: what many branches of CASE give is computed before them"
_FRAMES = "2026-11-24: passes behind a window's sort, counted"
_BUCKETS = "2026-11-28: sorts by buckets, and keys of a few bits more than a word has room for"
_PARTITIONING = "2026-11-23: rows partitioned by keys"
_FIRST_RUNS = "2026-11-28: first runs of TPC-DS on an H200: what the host's calls cost"
_SORTED_TILES = "2026-11-27: quantiles of frames that slide, sorted by tiles"


@dataclass(init=False, eq=False, repr=False)
class KernelTexts(Record):
    """What a kernel's text looks like: each form is shorter, or quicker to compile, than the one it takes the place of."""

    own_constants: int = number(
        64, "constants", "that are parameters of their own; later ones are elements of an array, quicker to compile"
    )
    nested_terms: int = number(12, "terms", "of AND and OR that are tested one inside another: Python nests 100 blocks")
    chained_integers: int = number(8, "integers", "of an IN list that are tests; a longer one is a binary search")
    chained_texts: int = number(2, "texts", "of an IN list that are tests; a longer one is a loop")
    chained_codes: int = number(4, "codes of a dictionary", "of an IN list that are tests; a longer one is a table")
    looped_terms: int = number(24, "terms", "of AND and OR alike but for constants, from which on they are a loop")
    looped_nodes: int = number(64, "expression nodes", "of a term that is looked at for that")
    dictionary_entries: int = number(
        2**16, "entries", "of a dictionary up to which an expression is computed once an entry"
    )
    remembered_results: int = number(16, "expressions", "over a dictionary whose values are kept")
    function_lines: int = number(8, "lines", "of an unrolled row that are worth a function")
    interleaved_steps: int = number(4, "nested ifs behind loads", "of a row whose probes are interleaved")
    interleaved_tail: int = number(24, "lines", "behind the last interleaved probe: they are written for each row")
    shared_branches: int = number(4, "CASEs", "that give a value, from which on it is computed before them", _BRANCHES)
    skipped_sectors: float = number(
        0.3, "share of sectors", "that no row needs, from which on a column is loaded only where it is", _H200_QUERIES
    )
    kept_names: int = number(256, "names a stem", "that kernels share")
    kept_integers: int = number(1024, "integers", "of either sign that kernels share")


@dataclass(init=False, eq=False, repr=False)
class KernelParts(Record):
    """When a kernel is cut into functions, and how large they are: Numba takes time with the square of a function."""

    lines: int = number(400, "lines", "of a body that stays whole")
    depth: int = number(60, "blocks", "within each other in a body that stays whole")
    part_lines: int = number(48, "lines", "of a function, unless a single statement has more")
    part_depth: int = number(12, "blocks", "within each other in a function")
    calls: int = number(192, "calls", "of a block: what calls functions has many arguments, which take their time too")
    period: int = number(16, "statements", "that repeat themselves, at most")
    alike: float = number(0.8, "share of statements", "that look like those a period before, at least")
    progress: float = number(0.7, "calls a statement", "up to which calls are put into functions once more")


@dataclass(init=False, eq=False, repr=False)
class BuiltInKernels(Record):
    """When built-in kernels are interpreted, compiled, or not used."""

    interpreted_rows: int = number(2_000, "rows", "of one call from which on a kernel is compiled")
    compiled_after: int = number(
        100_000, "rows", "of all calls after which it is compiled: some 0.3 s of interpreting, as long as a compiler"
    )
    remembered: int = number(1024, "kernels", "whose rows are counted for that")
    viewed_rows: int = number(50_000, "texts", "on a CPU from which on a kernel finds where each lies, and not NumPy", _BEST)
    filled_rows: int = number(2**19, "elements", "of an array that one thread fills at once")
    scanned_rows: int = number(128, "elements", "of a running sum that a warp of a GPU goes over, at least", _COMPARED)
    scanned_by: int = number(
        1024, "warps", "among which those of up to a million are divided: an H200 takes 7 us for 100,000 so, 15 by 100", _COMPARED
    )
    scanned_large: int = number(1024, "elements", "that a warp goes over of so many, at least", _COMPARED)
    scanned_parts: int = number(2**14, "warps", "that go over an array for running sums, at most: twice what a GPU runs at once")
    compiled_texts: int = number(
        50_000, "texts", "of JSON that wait for the kernel that looks into them; fewer are read by Python meanwhile"
    )
    numpy_text_rows: int = number(200_000, "rows", "of text on a host below which NumPy makes its keys")
    arrow_text_rows: int = number(200_000, "rows", "of text up to which Arrow finds the extremes")
    prefetched_texts: int = number(
        32, "texts", "ahead of the one that is copied, whose memory is asked for", "2026-11-27: many groups on two cores"
    )
    text_slice: int = number(2**24, "rows", "of text between two looks at whether the query is interrupted")


@dataclass(init=False, eq=False, repr=False)
class Partitioning(Record):
    """Rows that are partitioned by the hashes of keys."""

    unit_rows: int = number(2**17, "rows", "that a thread of a CPU moves at once, and of which parts are counted apart")
    counters: int = number(1024, "32-bit counters", "of a GPU's block, for all parts that there may be")
    counter_copies: int = number(
        32, "counters", "of a part in a block, at most: lanes of a warp that meet at one wait for each other"
    )
    sampled_rows: int = number(
        2**16, "rows", "of a rank that tell its heavy keys: a key of a twentieth of one part of 64 is met 51 times"
    )
    heavy_fraction: float = number(
        0.05, "of a mean part's rows", "from which on the rows of a key stay where they are", _PARTITIONING
    )
    heavy_least_sampled: int = number(8, "rows", "of a sample that a heavy key has, at least")
    blocks_a_processor: int = number(
        8,
        "blocks of 1,024 threads",
        "that a multiprocessor is given, at most: each takes one tile of rows after another",
    )


@dataclass(init=False, eq=False, repr=False)
class TextScans(Record):
    """When a GPU looks for a LIKE pattern in the characters of a whole column, and how."""

    least_rows: int = number(2**22, "rows", "of a table from which on a text scan pays")
    least_selectivity: float = number(0.5, "share of rows", "that get to the test, at least: a scan reads all texts")
    least_bytes: int = number(3, "bytes", "of the longest part of a pattern: shorter ones are in most texts")
    sampled_rows: int = number(2**14, "rows", "that tell which windows of the pattern are the least frequent")
    sampled_windows: int = number(6, "windows", "of a pattern's parts that are counted for that")
    sampled_bytes: int = number(2**10, "bytes", "of a row's text that are looked at for that")
    most_frequent: float = number(
        0.25,
        "share of rows",
        "that have units of both windows, from which on each row is tested by itself: for 150 million texts of 49 bytes an H200"
        " takes 2.6 ms to find the rows and 16 to test all of them so; row by row 5.3 to 8",
    )


@dataclass(init=False, eq=False, repr=False)
class Sorting(Record):
    """How rows are sorted, and how the first ones are found."""

    few_words: int = number(
        256, "words", "that a GPU sorts by comparing each with all others, in 5 us: its sorts take 15, however few", _RANKS
    )
    ranked_rows: int = number(
        4096,
        "rows",
        "of as many as only a GPU knows that it sorts by comparing each with all others: a radix sort takes 14 us a word, 25 with"
        " what is made before and behind it",
        _COMPARED,
    )
    ranked_words: int = number(4, "words", "of a row that one kernel compares: there is one for each number", _COMPARED)
    room_fraction: float = number(1 / 16, "share of a copy", "that a sort of a GPU takes beside it")
    room_bytes: int = number(1 << 16, "bytes", "that it takes in any case: counts of digits, alignment")
    round_bits: int = number(12, "bits", "of a radix sort's round, below which two sorts of whole words are faster")
    text_words: int = number(32, "64-bit words", "of a text by which rows are compared on the device")
    spare_bits: int = number(4, "bits", "more than a row number has, of the keys by which the first rows are chosen")
    bound_chunk: int = number(1024, "rows", "of which a bound looks at the least only")
    chunks_a_row: int = number(4, "chunks a wanted row", "that a bound looks at, at least")
    candidate_rows: int = number(
        4, "rows a wanted row", "from which on the first rows are chosen before they are sorted"
    )
    counted_words: int = number(
        1 << 22,
        "64-bit words",
        "of the keys of a sort that nothing is read back for: with more, ties are looked for round by round",
    )
    counted_rounds: int = number(16, "rounds", "of such a sort: its keys have more bits where texts are long")
    addressed_slots: int = number(
        2,
        "slots a row",
        "of the range of a key up to which groups in order are numbered by addresses, not by sorting it",
    )
    fused_rows: int = number(
        1 << 18, "rows", "of a sort from which on the words of its first round are made in one pass"
    )
    bucket_rows: int = number(
        1 << 18, "rows", "of a sort on a CPU from which on they are sorted in buckets", _BUCKETS
    )
    bucket_bits: int = number(8, "bits", "of the keys that choose a bucket", _BUCKETS)
    tasks_a_thread: int = number(8, "tasks a thread", "of neighbouring buckets, so that threads end together", _BUCKETS)
    leading_rows: int = number(
        2, "rows a wanted row", "from which on the first rows of partitions are looked for before they are sorted"
    )
    leading_least: int = number(1 << 12, "rows", "from which on those are looked for")
    leading_selectivity: float = number(
        0.5, "share of all rows", "that may be among the first ones, up to which others are left out"
    )
    leading_sample: int = number(1 << 14, "rows", "of a sample that gives a bound on the first rows of all, at least")
    leading_ties: int = number(
        2,
        "rows a group",
        "that begin alike up to which a least text is found by ranks, and not by its next eight bytes",
    )
    hashed_rows: int = number(
        1 << 15, "rows", "on a CPU from which on partitions by texts are told apart by a hash table, and not sorted", _BEST
    )
    placed_rows: int = number(
        8, "rows a group", "up to which groups are put in the order of their rows by a place a row, and not sorted", _BEST
    )
    numbered_rows: int = number(
        4, "rows a group", "that are expected where groups are numbered; a table that is too small grows by as much", _BEST
    )
    numbered_least: int = number(1 << 12, "groups", "that have room in the first such table", _BEST)
    most_leading: int = number(100, "rows", "of a partition that are worth looking for without a sort")
    reduced_rows: int = number(4096, "rows", "of a group in order that one thread reduces one after another")
    kernel_values: int = number(4096, "values", "of a group up to which a kernel selects one, and not NumPy")
    selection_rounds: int = number(
        64, "rounds", "of such a selection, before the range of the values is halved instead"
    )


@dataclass(init=False, eq=False, repr=False)
class WindowFunctions(Record):
    """Window functions: scans over partitions, and frames that are looked up."""

    thread_tile: int = number(2**16, "rows", "that a thread of a CPU scans one after another")
    lane_tile: int = number(32, "rows", "that a lane of a GPU scans one after another: a line of its memory")
    tree_shift: int = number(4, "bits", "of the number of nodes that a node of a tree stands for")
    spans_width: int = number(
        2**24,
        "rows",
        "of a GPU's frame up to which least and greatest values come of spans: beyond, of two scans",
        _FRAMES,
    )
    spans_steps: int = number(
        64, "values", "that a kernel combines to a span or a frame, at most: wider frames have spans of spans", _FRAMES
    )
    spans_width_cpu: int = number(0, "rows", "of the same on a CPU, whose scans take three steps a row")
    least_width: int = number(8, "rows", "of a frame from which on it is made of two scans, not row by row")
    sliding_tile: int = number(
        2**17, "rows", "that a thread of a CPU goes through at once where frames slide, at least"
    )
    frames_a_tile: int = number(
        4,
        "frames",
        "of rows that a thread of a CPU goes through at once where frames slide: each tile begins with one more",
    )
    ordered_tile: int = number(
        2**13, "rows", "that are sorted by themselves for quantiles of frames that slide, at least", _SORTED_TILES
    )
    frames_an_order: int = number(
        8, "frames", "of rows that are sorted by themselves, at least: they are sorted with one more", _SORTED_TILES
    )
    least_orders: int = number(4, "tiles", "that are sorted by themselves: else all rows are sorted at once")
    sorted_at_once: int = number(2**17, "rows", "of tiles that a thread takes at once to sort each of them")
    steps_a_row: int = number(
        8, "steps", "a row that words of equal bits are moved before all rows are sorted at once instead"
    )


@dataclass(init=False, eq=False, repr=False)
class Compiling(Record):
    """Processes that compile kernels, and what is kept of their work."""

    workers: int = number(8, "processes", "that compile beside this one")
    speculative: float = number(
        0.5, "share", "of them that compile what no query waits for: a query that comes meets some that are free"
    )
    worker_kernels: int = number(200, "kernels", "that a process compiles before another takes its place")
    kept_bytes: int = number(
        1 << 28, "bytes", "of memory that such a process keeps from one kernel to the next, at most", _FIRST_RUNS
    )
    grown_bytes: int = number(1 << 24, "bytes", "by which it grows", _FIRST_RUNS)
    listed_after: int = number(
        16,
        "kernels",
        "that the cache has not, behind which its folder is listed: a look for a file takes up to 0.5 ms",
        _FIRST_RUNS,
    )
    listed_seconds: float = number(5.0, "seconds", "that such a list is used", _FIRST_RUNS)
    own_kernels: int = number(
        128,
        "kernels",
        "for a CPU that this process compiles itself: LLVM leaves up to 0.2 MB of each behind, which ends with a worker",
    )
    patience: int = number(
        4, "kernels", "that ready workers get first where this process has not imported the compiler: it takes so long"
    )
    optimization: int = number(3, "level", "of LLVM's passes for a CPU: 1 saves a tenth of the time that they take")
    idle_seconds: float = number(300.0, "seconds", "without work after which the processes end")
    stop_seconds: float = number(5.0, "seconds", "that their end is waited for")
    look_seconds: float = number(0.05, "seconds", "between two looks at whether the query that waits is interrupted")
    kept_kernels: int = number(2048, "kernels", "that a target keeps ready")
    retired_kernels: int = number(64, "kernels", "that nobody holds, whose code a GPU unloads together: it is waited for")
    arguments: int = number(
        128, "arguments", "of a function for a CPU: Numba takes seconds for a thousand; more come in an array"
    )
    entry_bytes: int = number(1 << 28, "bytes", "of an entry of the cache: a file that is larger is not read")
