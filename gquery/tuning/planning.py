"""Numbers of the planner: estimates, the costs of joins, what a rewrite must gain, and layouts of tables."""

from dataclasses import dataclass

from gquery.tuning.record import Record, number

_H200_QUERIES = "2026-11-21: where the time of the 22 queries goes on an H200"
_FIRST_RUNS = "2026-11-22: first runs of ClickBench on a GPU"
_RANGE_JOINS = "2026-11-24: joins by order"
_RANKS = "2026-11-28: what two ranks do that one does not"
_LOOKUPS = "2026-11-23: rows looked up together"
_KEY_FILTERS = "2026-11-22: key filters"
_REGISTERS = "2026-11-24: HyperLogLog as groups"
_SUMS = "2026-11-28: sums of one value and constants"
_WRITTEN_LISTS = "2026-11-29: lists that are written out"
_HOST_KEYS = "2026-11-29: groups by what the host makes"
_INTERPRETED = "2026-11-21: what is interpreted, and for how long"


@dataclass(init=False, eq=False, repr=False)
class Cardinality(Record):
    """What the cardinality estimator assumes where statistics say nothing."""

    equals: float = number(0.1, "share of rows", "kept by an equality with a value of unknown distribution")
    range: float = number(1 / 3, "share of rows", "kept by a comparison whose bounds are unknown")
    like: float = number(0.06, "share of rows", "kept by a pattern")
    other: float = number(0.33, "share of rows", "kept by any other predicate")
    boolean: float = number(0.5, "share of rows", "kept by a boolean column")
    null: float = number(0.05, "share of rows", "that are NULL in a nullable expression")
    cross_match: float = number(0.9, "share of rows", "that find a match in a SEMI join without an equality")
    rounds: float = number(10.0, "rounds", "that a recursion has as many rows in as in its first")
    round_rows: float = number(1000.0, "rows", "of a round of a recursion")
    list_elements: float = number(4.0, "elements", "of a list")
    likely_unique: float = number(0.99, "distinct values a row", "from which on a column probably repeats none")
    unknown_distinct: float = number(1e12, "values", "assumed where nothing is known: more than any table has rows")
    rows_a_repeated_key: float = number(2.0, "rows a key", "of a side of a join that refers to another one")
    least_rows: float = number(0.1, "rows", "the least estimate, so that products stay positive")
    least_unequal: float = number(
        0.5, "share of rows", "that two different columns keep at least where they must differ"
    )
    least_unmatched: float = number(0.1, "share of rows", "that an ANTI join keeps at least")
    least_match: float = number(1e-6, "share of rows", "that a SEMI join keeps at least")
    served_selectivities: float = number(
        16,
        "times",
        "as many rows pass a filter at most as at least where one template serves; what it was planned for is between",
    )
    least_range: float = number(1e-4, "share of rows", "that a range keeps at least")
    counts_a_mean: float = number(
        16, "times their mean", "distinct values that counts by group have, and so many more:"
    )
    least_counts: int = number(64, "distinct values", "of counts by group whose mean is small")


@dataclass(init=False, eq=False, repr=False)
class JoinCosts(Record):
    """What a row of a join costs, in reads of one value."""

    unique_build: float = number(2.0, "reads a row", "to enter a row of a unique key into a join table", _H200_QUERIES)
    duplicate_build: float = number(5.0, "reads a row", "to enter a row of a key that repeats", _H200_QUERIES)
    duplicate_source: float = number(1.5, "reads a row", "of the scan below such a build side, which runs twice")
    probe: float = number(1.0, "reads a row", "to probe a table of unique keys", _H200_QUERIES)
    duplicate_probe: float = number(2.0, "reads a row", "to probe a table of keys that repeat", _H200_QUERIES)
    sorted_build: float = number(20.0, "reads a row", "to sort a side of which ranges match", _RANGE_JOINS)
    sorted_probe: float = number(1.0, "reads a row and step", "of the binary searches for a range", _RANGE_JOINS)
    materialize_source: float = number(0.5, "reads a row", "of the scan below rows that are materialized first")
    materialize_column: float = number(0.5, "reads a value", "to materialize a value of fixed width")
    materialize_text: float = number(4.0, "reads a value", "to materialize a text")


@dataclass(init=False, eq=False, repr=False)
class JoinOrder(Record):
    """How far the search for an order of joins goes."""

    most_by_dp: int = number(10, "relations", "up to which every order is tried; beyond, joins are chosen greedily")
    most_pairs: int = number(1500, "pairs of subsets", "that are tried: some 15 milliseconds")
    early_selectivity: float = number(
        0.3, "share of rows", "below which a SEMI join of the probe side goes before other joins"
    )


@dataclass(init=False, eq=False, repr=False)
class Rewrites(Record):
    """How large rules may make a plan, and what is worth rewriting."""

    most_keys: int = number(8, "keys", "that are kept of a relation's alternative unique keys")
    most_filter_parts: int = number(500, "expression nodes", "that a predicate may gain as it moves below an operator")
    most_or_terms: int = number(16, "terms", "of an OR that predicates are inferred from")
    most_written_values: int = number(
        16, "values", "of a list for each of which an expression is written out", _WRITTEN_LISTS
    )
    most_copied_parts: int = number(64, "expression nodes", "of a shared definition that is copied into its uses")
    most_copied_nodes: int = number(2_000, "plan nodes", "that copies of NOT MATERIALIZED may add to a query")
    most_merged_calls: int = number(
        32, "aggregates", "of one table that are computed in one pass: each holds registers"
    )
    most_merged_parts: int = number(16, "expression nodes", "of a filter that is tested beside others in one pass")
    most_sets: int = number(65_535, "sets", "of keys that one GROUP BY may have, as in DuckDB")
    most_pivot_columns: int = number(1_000, "columns", "that a PIVOT makes at most")
    most_pivot_tests: int = number(
        24, "values", "of a PIVOT that each row is tested for; for more, rows are grouped by value first: 100 values in 1 M rows "
        "take 2 cores 0.02 s of CPU time in place of 0.63, and 0.3 in place of 1.5 in a first run"
    )  # fmt: skip
    most_set_keys: int = number(62, "keys", "of grouping sets: which are missing from a set is said in a BIGINT")
    sets_by_themselves: int = number(
        10, "grouping sets", "that are grouped each for itself, from the smallest that holds it; more are one group by"
    )
    sets_at_once: int = number(
        32, "grouping sets", "of one group by; more are made in two steps, the first of which knows half of the keys"
    )
    sharing_rounds: int = number(4, "rounds", "of deciding which subplans are shared, each over what the last one left")
    least_in_list: int = number(6, "constants", "that a value differs from, from which on they become a NOT IN list")
    sums_of_all: int = number(
        8, "sums", "over one value and constants, of all rows, from which on they are computed of one sum", _SUMS
    )
    sums_of_groups: int = number(
        3, "sums", "the same of groups; one less where each sum would count its own values", _SUMS
    )
    argument_rows: float = number(
        100_000, "rows", "from which on groups by what the host makes are groups by its arguments first", _HOST_KEYS
    )
    rows_an_argument: float = number(8, "rows", "of each group of these arguments at least", _HOST_KEYS)
    rows_a_day: float = number(64, "rows", "of a day from which on moments are cut to days, not to months", _HOST_KEYS)


@dataclass(init=False, eq=False, repr=False)
class SemiJoins(Record):
    """When rows are reduced by a SEMI join, or aggregated before a join."""

    aggregate_selectivity: float = number(
        0.25, "share of rows", "kept, below which a SEMI join below an aggregate, a union or a window pays"
    )
    aggregate_least_rows: int = number(10_000, "rows", "that such an operator reads, below which none is added")
    build_selectivity: float = number(0.1, "share of keys", "on the probe side, up to which it reduces the build side")
    build_least_rows: int = number(100_000, "rows", "of a build side that is worth reducing")
    build_reading: float = number(0.25, "build rows a row", "read to compute the probe side again, at least")
    shared_least_rows: int = number(100_000, "rows", "of a table that two subplans read")
    shared_selectivity: float = number(
        0.1, "share of rows", "that may be left for their common part to be materialized"
    )
    rows_a_group: float = number(1.5, "rows a key", "of a join's right side, from which on it is aggregated first")
    least_probe_selectivity: float = number(
        0.05, "share of keys", "that the left side has: with fewer rows it finds few groups"
    )


@dataclass(init=False, eq=False, repr=False)
class JoinLayouts(Record):
    """Which join tables are arrays addressed by the key (direct-address), and how large they may be."""

    slots_a_row: int = number(16, "slots a build row", "of an array of row numbers", _H200_QUERIES)
    bits_a_row: int = number(512, "bits a build row", "of a bitmap of keys")
    wide_slots_a_row: int = number(
        4, "slots a build row", "of an array whose slots hold columns wider than a row number"
    )
    small_array: int = number(2**20, "slots", "that an array may always have")
    small_bitmap: int = number(2**23, "bits", "that a bitmap may always have")
    largest: int = number(2**31, "slots", "of an array or bits of a bitmap, at most")
    range_keys: int = number(64, "rows a slot", "up to which one key of several is addressed and the others are tested")
    range_slots: int = number(
        16,
        "slots",
        "that such an array has at least, as how many rows come is an estimate",
        "2026-11-24: the window queries of TPC-DS",
    )
    short_range: int = number(64, "rows of a key", "at most, of a table that no morsel takes long to probe")
    near_slots: int = number(
        8,
        "slots",
        "before a row's own in whose ranges a GPU's thread writes where they begin; others look for that by halving the rows",
        _RANKS,
    )
    sorted_rows: int = number(
        32, "rows a key", "that a probe would test, from which on they are sorted by a column that a range of matches"
    )
    rows_a_bucket: int = number(2, "keys a bucket", "of a sorted table's, where they are spread evenly")
    bucket_bits: int = number(27, "bits", "of a sorted key that tell its bucket, at most: 512 MB of starts")
    range_matches: int = number(64, "rows", "that are expected of a range that is bounded from both sides, at most")
    partitioned_caches: float = number(
        32 / 15,
        "sizes of the L2 cache",
        "from which on an array is filled partition by partition: 128 MB on an H200",
        _H200_QUERIES,
    )
    partitioned_selectivity: float = number(
        0.5, "share of rows", "that enter the array, at least, for a partitioned build", _H200_QUERIES
    )
    partitioned_slots_a_row: int = number(
        2, "slots a row", "of an array that is filled partition by partition, at most"
    )
    partitioned_row_bytes: int = number(
        32, "bytes a row", "of scratch memory: twice an entry of 8 and two slots of 4, and more"
    )
    least_hash_slots: int = number(64, "slots", "of a hash table")
    most_hash_slots: int = number(2**32 - 2**20, "slots", "of a hash table: their numbers have 32 bits")


@dataclass(init=False, eq=False, repr=False)
class Windows(Record):
    """When a GPU fills a table of groups in windows of its slots. 150 million atomics on random words took an H200 6.8 ms over
    120 MB, 1.7 over 32 MB, 1.5 over 8 MB; its L2 cache has 60 MB."""

    cache_fraction: float = number(0.55, "of the L2 cache", "that a window takes")
    rows_a_slot: int = number(2, "rows a slot", "that are accumulated, from which on windows pay")
    most: int = number(8, "windows", "each of which reads the keys again")
    tested_again_selectivity: float = number(
        0.5, "share of rows", "that get past filters which each window tests again"
    )
    tested_again_bytes: int = number(4, "bytes a row", "that such filters read: as many as the number of a row has")


@dataclass(init=False, eq=False, repr=False)
class KeyFilters(Record):
    """When a join table has a small bitmap of its keys' high bits beside it, which a probe tests first. A GPU's multiprocessor
    does 150 G random look-ups of its L2 cache a second together with the others; in shared memory 32 lanes meet in 3 to 4."""

    most_set: float = number(0.25, "keys a bit", "of the bitmap, at most: so many of its bits may be set")
    bytes: int = number(2**14, "bytes", "of the bitmap on a CPU: half of a core's L1 cache", _KEY_FILTERS)
    large_bytes: int = number(2**18, "bytes", "of one for more keys on a CPU: a quarter of an L2 cache", _KEY_FILTERS)
    few_set: float = number(
        1 / 16, "keys a bit", "from which on a CPU's is made larger: branches are foreseen less", _KEY_FILTERS
    )
    larger: int = number(4, "times", "that a CPU's bitmap is made larger at once")
    spare_bytes: int = number(
        2**13,
        "bytes of shared memory",
        "that the bitmap leaves to groups where two blocks of 1024 threads share the rest",
    )
    merged_bytes: int = number(
        2**16, "bytes of shared memory", "of one that is merged with those of other ranks: devices of all kinds have them"
    )
    least_slots: int = number(
        2**14, "slots", "of the table: a smaller one lies in the L1 cache, its sectors side by side"
    )
    least_table_bytes: int = number(
        2**22,
        "bytes",
        "of an array or bitmap from which on a CPU gains: the L2 cache holds a smaller one",
        _KEY_FILTERS,
    )
    least_probes: int = number(2**17, "rows", "that are looked up on a CPU")
    least_probes_gpu: int = number(
        2**22, "rows", "that are looked up on a GPU: all blocks copy the bitmap, some 15 MB in 10 us"
    )


@dataclass(init=False, eq=False, repr=False)
class GroupLayouts(Record):
    """Which groups are addressed by their key, hashed, or read sparsely."""

    slots_a_row: int = number(4, "slots an input row", "of an array of groups")
    small_state: int = number(2**16, "slots", "that an array of groups may always have")
    largest_state: int = number(2**31, "slots", "of an array of groups")
    register_rows: int = number(
        1024,
        "rows a group",
        "of which different values are counted by registers: in groups of fewer each is looked at",
        _REGISTERS,
    )
    sparse_slots: int = number(
        2**18, "slots", "of an array of groups from which on it is read without compaction", _H200_QUERIES
    )
    sparse_slots_a_group: int = number(16, "slots a group", "of such an array, at most")
    hashed_slots_a_group: int = number(
        16, "slots a group", "from which on an array gives way to a hash table", _INTERPRETED
    )
    hashed_least_slots: int = number(2**16, "slots", "of an array that gives way to a hash table", _INTERPRETED)
    least_hash_slots: int = number(512, "slots", "of a hash table of groups")
    rows_a_build_row: int = number(
        2, "rows a value", "of each join key, at least, for groups by several of them before those by text"
    )
    least_segments: int = number(
        2**16,
        "groups",
        "of a sorted key from which on a GPU aggregates segments without a table: fewer lie in its cache",
    )
    least_segments_cpu: int = number(
        2**40, "groups", "of the same on a CPU: never, as its cores write groups that lie together one after another, "
        "which their caches hold: by segments they took a tenth to a third longer",
    )  # fmt: skip
    segment_words: int = number(
        16, "words", "of accumulators of a segment, at most: each takes two registers of a GPU's thread"
    )
    headroom: float = number(2.25, "slots a group", "of a hash table whose groups were counted by an earlier run")
    growth: int = number(4, "times", "that a full hash table grows by")
    longest_walk: int = number(512, "slots", "that a row looks at before it says that a table of row numbers is full")
    long_walk: int = number(32, "slots", "after which it asks whether another row has said so")
    unknown_rows: int = number(2**40, "rows", "assumed of a numbered frame without a bound")
    distinct_slots_a_row: int = number(4, "slots an input row", "of a bitmap of distinct values")
    distinct_bytes_a_value: int = number(
        30, "bytes of L2 cache a value", "more values overflow the cache and are counted by partitions",
        "2026-11-21: single operations on an H200",
    )  # fmt: skip


@dataclass(init=False, eq=False, repr=False)
class InterpreterCosts(Record):
    """What the interpreter takes for a row, in row-steps: what ``interpret_limit`` is compared with."""

    usual_length: int = number(64, "operations", "of a usual kernel, which compiles in a usual time", _INTERPRETED)
    most_lengths: float = number(100.0, "usual kernels", "that a long kernel counts as, at most")
    expression: float = number(0.5, "row-steps", "of an expression")
    operation: float = number(0.5, "row-steps", "of an operation", _INTERPRETED)
    text: float = number(10.0, "row-steps", "of a text that an operation reads", _INTERPRETED)
    row_id_key: float = number(10.0, "row-steps", "to find a group by a key that is compared in its row")
    hashed_group: float = number(6.0, "row-steps", "to find a group in a hash table")
    hashed_build: float = number(10.0, "row-steps", "to enter one key into a hash table")
    materialized_text: float = number(3.0, "row-steps", "to materialize a text")
    materialized_value: float = number(0.5, "row-steps", "to materialize any other value")
    probe: int = number(2, "row-steps", "to probe a join table")
    duplicate_probe: int = number(3, "row-steps", "for each match of a key that repeats")
    state_slots_a_step: int = number(64, "slots", "of an array that are initialized in one row-step", _INTERPRETED)


@dataclass(init=False, eq=False, repr=False)
class LateFetches(Record):
    """When columns of a table in memory are read for the rows of a result alone, by row number."""

    least_rows: int = number(200_000, "rows", "of a table, from which on encoding a column takes longer", _FIRST_RUNS)
    most_rows: int = number(1_000, "rows", "of a result: some 0.1 us a row and column", _FIRST_RUNS)
    sorted_rows: int = number(
        2**15, "rows", "that get to a sort: carrying a loaded column takes longer than fetching it", _LOOKUPS
    )
