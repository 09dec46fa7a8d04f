"""Numbers of work that is divided: among ranks, into parts that fit a memory limit, among the workers of a cluster."""

from dataclasses import dataclass

from gquery.tuning.record import Record, number

_TWO_GPUS = "2026-11-23: two H200s"
_MERGED = "2026-11-24: two H200s"
_JOINED = "2026-11-28: small tables are cut on GPUs, too"
_FILES = "2026-11-28: files as the tier below a device are written and read"
_RANKS = "2026-11-27: what a rank of a cluster does beside its share"


@dataclass(init=False, eq=False, repr=False)
class Distribution(Record):
    """How the rows of a query are divided among ranks."""

    most_ranks: int = number(256, "ranks", "of a connection: each is a thread with tables of its own")
    replicated_bytes: int = number(
        2**28, "bytes", "of the columns that a query reads of a table, below which every rank has all of them"
    )
    joined_bytes: int = number(
        2**24,
        "bytes",
        "of the columns that a query reads of a table, from which on it is cut as a larger one is that it is joined with on "
        "sorted columns of both, if all of the query gets cheaper by that: a read of as many takes 4 us",
        _JOINED,
    )
    alone_bytes: int = number(
        2**29,
        "bytes",
        "of all columns that a query reads, below which the first rank runs it: a read of as many takes 0.12 ms",
    )
    alone_rows: int = number(2**24, "rows", "of a frame, from which on ranks divide it where they divide no table")
    extent_rows: int = number(
        2**16,
        "rows",
        "more on both sides that a rank's copy of a part has, a 64th of the column at most: others are cut near it",
    )
    cut_frame_rows: int = number(
        2**20, "rows", "of a frame that all ranks have, from which on each takes a part of them"
    )
    gathered_rows: int = number(
        2**20,
        "rows",
        "of all parts of a frame, below which the first rank goes on with them, not each with its own",
    )
    gathered_located_rows: int = number(
        2**20,
        "rows",
        "the same where a join table or groups are made of them that need nothing of other ranks: later stages exchange less",
    )
    merged_slot_words: int = number(
        2**13,
        "words",
        "of groups in arrays, up to which ranks combine them slot by slot: 64 kB take less than the 80 launches that find groups",
    )
    hashed_bytes: int = number(
        2**28,
        "bytes",
        "of a join table, from which on it is asked whether the rows of both sides go to ranks by the hash of their keys",
    )
    hashed_most: float = number(
        0.9,
        "times",
        "what moving and writing rows costs without that exchange, at most, as `distributed.rank_cost` has it",
    )
    hashed_us: float = number(
        190.0,
        "us",
        "that an exchange takes for one side, however few its rows: of a join of 3 and 7 columns, by SF30 and SF100",
        _TWO_GPUS,
    )
    exchanged_us: float = number(17.0, "us", "that each other exchange takes, however little: in a graph", _TWO_GPUS)
    waited_us: float = number(
        150.0,
        "us",
        "that the cut of a small table has to save for each exchange that it adds: one takes 40 us, and what is predicted of "
        "join tables is four times what they take",
        _JOINED,
    )
    received_ps: float = number(2.6, "ps a byte", "that comes from another GPU: 766 GB/s both ways in sum", _TWO_GPUS)
    partitioned_ps: float = number(
        0.93, "ps a byte", "of rows that are put in the order of 2 to 8 parts: 10 GB in 9.3 ms", _TWO_GPUS
    )
    copied_ps: float = number(0.47, "ps a byte", "that is read and written: a copy of 10 GB takes 4.7 ms", _TWO_GPUS)
    entered_ps: float = number(
        180.0,
        "ps a row",
        "that is entered in a large hash table: a trial's kernel entered 5.5 G rows a second on an H200",
    )
    ranged_ps: float = number(
        100.0,
        "ps a row",
        "whose range in a join table is found by sorting: 7 ms for 40 M rows of a divided join, less what else they took",
        _TWO_GPUS,
    )
    placed_ps: float = number(30.0, "ps a row", "that goes to its slot of an array, in no order: predicted")
    ordered_ps: float = number(
        6.0, "ps a row", "that comes in the order of its key, so that ranges are counted: predicted"
    )
    merged_ps: float = number(
        400.0,
        "ps a group",
        "of a rank that goes to another and is merged there with others: 5.9 M groups without words took some 2.5 ms",
        _MERGED,
    )
    unmerged_most: float = number(
        0.0,
        "times",
        "what merging a join table of arrays costs that it may cost to have all of its rows on every rank, at most; 0: never, as "
        "each GPU has memory for its part",
    )
    grouped_fraction: float = number(
        0.5,
        "groups a row",
        "from which on it is asked whether rows go to ranks by the hash of their keys and are grouped once",
    )
    spread_groups: int = number(1024, "groups", "of a part of the keys that spread rows evenly enough")
    sorted_later_bytes: int = number(
        2**23,
        "bytes",
        "of a rank's rows, of which the first few are wanted, up to which all of them go to the others: that takes 22 us, and a "
        "sort that leaves few, with some columns of text, a hundred",
        _MERGED,
    )
    uneven: float = number(
        1.25,
        "times the mean",
        "that the rows of a rank are at most where tables are cut between values; those with fewer values are cut evenly",
    )
    uneven_rows: int = number(2**16, "rows", "more than that, in small tables")
    text_bytes: int = number(24, "bytes", "of the characters of a text, about, where nothing is known of it")
    parted_bytes: int = number(
        2**20, "bytes", "of the states of groups of a rank, from which on each rank merges a part of them alone"
    )


@dataclass(init=False, eq=False, repr=False)
class WorkerDistribution(Distribution):
    """The same for the workers of a cluster: costs are those of one thread of a CPU, and of a network between processes."""

    alone_rows: int = number(2**19, "rows", "of a frame, from which on ranks divide it where they divide no table")
    cut_frame_rows: int = number(
        2**18,
        "rows",
        "of a frame that all ranks have, from which on each takes a part of them: a probe of as many takes 10 ms",
    )
    gathered_rows: int = number(
        2**16,
        "rows",
        "of all parts of a frame, below which the first rank goes on with them: 3 ms of a thread for as many, as of an exchange",
    )
    gathered_located_rows: int = number(
        0,
        "rows",
        "the same where a join table or groups are made of them that need nothing of other ranks: that saves an exchange",
    )
    hashed_bytes: int = number(
        2**24,
        "bytes",
        "of a join table, from which on it is asked whether the rows of both sides go to ranks by the hash of their keys",
    )
    sorted_later_bytes: int = number(
        2**15,
        "bytes",
        "of a rank's rows, of which the first few are wanted, up to which all of them go to the others: to find its first rows "
        "takes a thread 0.6 ms",
        "2026-11-28: what ranks of a cluster do twice",
    )
    unmerged_most: float = number(
        0.9,
        "times",
        "what merging a join table of arrays costs that it may cost to read or gather all of its rows, at most",
    )
    hashed_us: float = number(1500.0, "us", "that an exchange takes for one side, however few its rows: predicted")
    exchanged_us: float = number(
        1400.0, "us", "that each other exchange takes, however little: CPU of 10 numbers to each of 4", _RANKS
    )
    waited_us: float = number(0.0, "us", "that the cut of a small table has to save for each exchange that it adds")
    received_ps: float = number(2000.0, "ps a byte", "that comes from another worker, packed and unpacked: predicted")
    partitioned_ps: float = number(600.0, "ps a byte", "of rows that are put in the order of a few parts: predicted")
    copied_ps: float = number(600.0, "ps a byte", "that is read and written: a thread scans 3 GB a second")
    entered_ps: float = number(40_000.0, "ps a row", "that is entered in a large hash table: predicted")
    ranged_ps: float = number(20_000.0, "ps a row", "whose range in a join table is found by sorting: predicted")
    placed_ps: float = number(5000.0, "ps a row", "that goes to its slot of an array, in no order: predicted")
    ordered_ps: float = number(
        1000.0, "ps a row", "that comes in the order of its key, so that ranges are counted: predicted"
    )
    merged_ps: float = number(
        40_000.0, "ps a group", "of a rank that goes to another and is merged there with others: predicted"
    )


@dataclass(init=False, eq=False, repr=False)
class Spilling(Record):
    """How what does not fit a memory limit is made in parts, which lie in the tier below: in files, or on the host."""

    slots_a_group: int = number(4, "slots a group", "of a hash table that grows, at most, about")
    joined_row: int = number(64, "bytes", "a row of a join table, at most, about: two slots, its place in a range")
    part_fraction: float = number(0.25, "share of free memory", "that the state of a part takes, about")
    slice_fraction: float = number(
        0.15,
        "share of free memory",
        "that a slice of rows takes which is brought to a device, partitioned and put below again, while the next one is brought",
        _FILES,
    )
    least_free: float = number(0.125, "share of a memory limit", "that is taken to be free, at least")
    least_parts: int = number(8, "parts", "that something is made in, at least")
    most_parts: int = number(256, "parts", "that rows are written in at once: each is written to a place of its own")
    sampled_rows: int = number(64, "rows", "a range of a sort that tell where ranges end")
    levels: int = number(3, "times", "that the rows of a part are partitioned again, at most")
    least_rows: int = number(1024, "rows", "of a part from which on it is")


@dataclass(init=False, eq=False, repr=False)
class Clusters(Record):
    """How a connection speaks with the workers of a cluster."""

    whole_bytes: int = number(
        2**24,
        "bytes",
        "of the columns that a query reads of a table of files, below which every worker has all of them: a thread reads them in "
        "5 ms, as long as an exchange takes",
    )
    joined_bytes: int = number(
        2**20,
        "bytes",
        "of the columns that a query reads of a table, from which on it is cut as a larger one is that it is joined with on "
        "sorted columns of both, if all of the query gets cheaper by that",
    )
    sorted_fields: int = number(
        4, "fields", "that may be sorted, by their footers, and are looked at for a cut of a table"
    )
    near_border: float = number(
        0.01,
        "of a rank's rows",
        "from where a row group begins to where a table would be cut evenly, at most: it is cut there, since a row group on two "
        "ranks is read by both; every later query waits for the rank with most rows",
    )
    alike: float = number(
        0.9,
        "share",
        "of the bounds of two sorted columns that is common to them where their tables are cut at the same values",
    )
    connect_seconds: int = number(10, "seconds", "for which a scheduler may take to answer")
    look_seconds: float = number(
        0.2, "seconds", "between two looks at whether a query was interrupted, or workers are left"
    )
    ask_seconds: float = number(
        5.0, "seconds", "for which a rank waits for others before it asks how they stand, and between two such times"
    )
    alone_seconds: int = number(10, "seconds", "without any worker after which a query fails")
    answer_seconds: int = number(20, "seconds", "for which a scheduler may take to answer a query that waits")
    leave_seconds: int = number(
        5, "seconds", "for which a connection that ends a run, or itself, waits for workers to tidy up"
    )
    beside_bytes: int = number(
        2**15, "bytes", "of an array, from which on it is sent beside the pickled bytes: each one so sent costs 50 us"
    )
    remembered_ranks: int = number(
        1000, "ranks", "of runs that have ended, for which a worker drops what still comes from other workers"
    )
    remembered_sessions: int = number(
        1000, "connections", "that have closed, of which a worker begins nothing that still comes"
    )
    more_fragments: int = number(
        2, "fragments", "of each rank that are asked for where a run makes more exchanges than expected"
    )
