"""Numbers of columns, files, memory and the host: encoding, reading, transfers, what connections keep."""

from dataclasses import dataclass

from gquery.tuning.record import Record, number

_SORTED = "2026-11-22: a sorted Parquet file asked for little"
_PARQUET = "2026-11-21: columns of the 22 queries from Parquet"
_NARROWED = "2026-11-24: integers narrowed in one pass"
_ZONES = "2026-11-22: blocks of rows that cannot match"
_UNITED = "2026-11-24: dictionaries of longer pieces"
_FIRST_RUNS = "2026-11-22: first runs of ClickBench on a GPU"
_RUNS = "2026-11-27: files of many small row groups on 16 cores"
_BATCHES = "2026-11-23: batches of Parquet on 16 cores"
_FROZEN = "2026-11-23: the end of a process, and cold files"
_PAGES = "2026-11-24: pages of Parquet read by kernels"
_SELECTED = "2026-11-24: rows that a filter keeps are all that is read under a memory limit"
_LIMITS = "2026-11-23: a memory limit of 100 MB at SF1 from Parquet"
_INSERTS = "2026-11-24: 10,000 INSERTs of one row each"
_KEYS = "2026-11-27: an INSERT of one row into a table with conditions and keys"
_KEPT = "2026-11-27: memory of large arrays is kept for some seconds"
_TASKS = "2026-11-28: tasks of about the same length"
_RANKS = "2026-11-28: what two ranks do that one does not"
_TOGETHER = "2026-11-28: where the time of exchanges goes on two GPUs"
_ALONE = "2026-11-28: columns that a GPU has leave the host alone"
_TEXTS = "2026-11-28: a GPU decodes texts as they are"
_DECODED = "2026-11-28: a GPU decodes pages of Parquet"
_CUTS = "2026-11-28: long row groups, cut at pages for a GPU"
_CODED = "2026-11-28: texts that repeat are coded in one table"
_UNIQUE = "2026-11-28: first use of a column whose values all differ"
_CREATED = "2026-11-27: CREATE OR REPLACE TABLE AS keeps its plan"
_SHARED = "2026-11-28: first runs of ClickBench: what of reading one core does"
_FREQUENT = "2026-11-28: frequent values"
_FILES = "2026-11-28: files as the tier below a device are written and read"
_TURNS = "2026-11-28: turns at the interpreter's lock"
_BEING_RIGHT = "2026-11-22: what being right costs"


@dataclass(init=False, eq=False, repr=False)
class Encoding(Record):
    """How Arrow's columns are encoded, and what is found out about them."""

    sample: int = number(65_536, "values", "that decide on a dictionary and estimate distinct values")
    frequent_values: int = number(16, "values", "of a column that are noted as frequent, at most", _FREQUENT)
    frequent_times: float = number(4, "times", "the rows of an average value that a frequent one has at least", _FREQUENT)
    frequent_share: float = number(0.001, "share of rows", "that it has at least: 65 rows of the sample", _FREQUENT)
    sampled_places: int = number(8, "places", "of a column of text that the sample comes from")
    first_step: int = number(4_096, "values", "of the first step of a test that may end early")
    step: int = number(1 << 20, "values", "of its other steps")
    recoded: int = number(1 << 17, "codes", "that are written into another dictionary at a time: in cache", _RUNS)
    marked: int = number(
        1 << 26, "bits", "of a bitmap where all values are to differ: in cache, and little under a memory limit", _UNIQUE
    )
    marked_rows: int = number(1 << 17, "values", "that a thread marks before it looks whether two were equal", _UNIQUE)
    coded_rows: int = number(1 << 20, "rows", "of text that repeats from which on one table for all rows codes it", _CODED)
    coded_texts: int = number(4_096, "texts", "that differ, from which on it does: fewer stay in cache", _CODED)
    coded_slots: int = number(1 << 12, "slots", "of that table beside two for each text that it may hold", _CODED)
    coded_block: int = number(1 << 11, "rows", "that a thread enters before it looks whether there are too many texts", _CODED)
    longest_run: int = number(
        64, "rows", "of one value in a sorted column whose greatest number is noted: a power of two, so "
        "that one thread may take them, and the 31 beside it do not wait long",
    )  # fmt: skip
    compiled_rows: int = number(
        1 << 20, "rows", "of a column from which on a compiled loop narrows its integers, once it is there", _NARROWED
    )
    small_dictionary: int = number(1_024, "entries", "of a dictionary that always pays")
    rows_an_entry: int = number(16, "rows an entry", "from which on a larger dictionary pays")
    largest_dictionary: int = number(1_000_000, "entries", "of a dictionary")
    narrow_offsets: int = number(2**31, "bytes", "of text from which on offsets take 64 bits")
    one_thread: int = number(200_000, "values", "that one thread encodes before others have started", _PARQUET)
    piece: int = number(1 << 20, "rows", "that a thread encodes at once", _PARQUET)
    least_piece: int = number(
        1 << 17, "rows", "that a thread encodes at once, and of text gives a dictionary of their own, at least", _FIRST_RUNS
    )
    least_numbers: int = number(
        1 << 19, "rows", "of numbers that a thread encodes at once, at least: less are soon done, and wait for turns", _TURNS
    )
    largest_piece: int = number(
        1 << 19, "texts", "of them at most, about: their dictionary is to stay in cache", _FIRST_RUNS
    )
    piece_rows_an_entry: int = number(
        16,
        "rows an entry",
        "of a piece that has a dictionary of its own, if cores have so many: what is joined stays few",
        _UNITED,
    )
    union_part: int = number(
        1 << 14, "entries", "of dictionaries that are joined as one range, or taken by one task, at least", _SHARED
    )
    union_ranges: int = number(
        16,
        "ranges",
        "that long dictionaries are cut into: a thread each, and what is in one stays in cache",
        _FIRST_RUNS,
    )
    union_sample: int = number(64, "entries", "a range that are sampled for that")
    zone_rows: int = number(
        1 << 14, "rows", "of a block whose extremes are kept: a multiple of what one count covers", _ZONES
    )
    least_zones: int = number(4, "blocks", "of a column whose extremes are worth keeping")
    whole_scan: float = number(
        0.9, "share of a table's rows", "in a scan, above which later runs do not ask again which blocks they need"
    )
    zone_share: float = number(0.5, "share of all values", "between the extremes of a block, at most, on the average")


@dataclass(init=False, eq=False, repr=False)
class Ownership(Record):
    """How registered columns are copied, so that nobody changes them under a query."""

    copied_rows: int = number(
        1 << 20, "rows", "up to which a column is copied first and encoded when it is used", _BEING_RIGHT
    )
    block: int = number(
        1 << 19, "rows", "copied at a time where they are narrowed next: a block is 18 turns at the interpreter's lock", _TURNS
    )
    long_column: int = number(200_000, "rows", "of a column from which on threads copy it together", _BEING_RIGHT)
    piece_rows: int = number(1 << 20, "rows", "that one task validates, or whose offsets it copies")
    piece_bytes: int = number(1 << 22, "bytes", "that one task copies", _SHARED)
    reduced_rows: int = number(1 << 30, "rows", "of one reduction, so that no library counts beyond 32 bits")


@dataclass(init=False, eq=False, repr=False)
class Reading(Record):
    """How files are read."""

    one_thread: int = number(200_000, "values", "that one thread reads before others have started", _PARQUET)
    batch_bytes: int = number(
        1 << 22, "bytes", "that Arrow decodes at a time: threads wait for the interpreter at each", _BATCHES
    )
    run_rows: int = number(
        1 << 22, "rows", "of row groups side by side that a task reads of a column: its turns at the interpreter", _RUNS
    )
    thread_tasks: int = number(
        4, "tasks", "a thread that columns which are read together are cut into, about", _TASKS
    )
    value_cost: int = number(2, "bytes", "of a file that are unpacked and decoded while one more value is written", _TASKS)
    window_bytes: int = number(
        1 << 21, "bytes", "of pages that a kernel is given at a time, and of the words that it makes of them", _PAGES
    )
    largest_page: int = number(
        1 << 24, "bytes", "of a page, or of its words, that a kernel reads: others Arrow does", _PAGES
    )
    text_bytes: int = number(1 << 29, "bytes", "of text at most that kernels read into one array", _PAGES)
    decoded_columns: int = number(4, "columns", "that a GPU decodes at once, each with memory of its own meanwhile", _DECODED)
    decoded_rows: int = number(1 << 17, "rows", "of a page that a GPU decodes at most", _DECODED)
    decoded_bytes: int = number(5 << 18, "bytes", "of a page, unpacked, that a GPU decodes at most", _DECODED)
    cut_rows: int = number(1 << 17, "rows", "of a chunk that a GPU's warp decodes at most: longer ones are cut at pages", _CUTS)
    cuts: int = number(1 << 12, "parts", "that a column whose chunks are cut has, about: warps that a GPU keeps busy", _CUTS)
    listed_pages: int = number(16, "pages", "of a chunk that a GPU decodes by pages, for which there is room at first", _TEXTS)
    decoding_share: int = number(8, "parts", "of a GPU's free memory, of which one is enough to decode a column", _DECODED)
    limited_bytes: int = number(
        1 << 18,
        "bytes",
        "that are read, or decoded, at a time under a memory limit: else a column's chunk is read whole",
        _LIMITS,
    )
    limited_words: int = number(
        1 << 17, "words", "that a kernel makes of pages at a time then: each turn costs the interpreter 60 us", _SELECTED
    )
    thread_bytes: int = number(
        12 << 20,
        "bytes",
        "that decoding takes at most, a thread: pages, a batch, and what the C library keeps",
        _LIMITS,
    )
    null_groups: int = number(
        256, "row groups", "of a column whose NULLs are counted before it is read: 2 us each", _SORTED
    )
    buffer_bytes: int = number(
        64 << 10, "bytes", "that are read at a time of a column of which the first rows are wanted"
    )
    largest_part: float = number(
        0.5, "share of rows", "of a file that is read in place of the whole where the rest is not needed"
    )
    selected_share: float = number(
        0.6,
        "share of rows",
        "that a filter may keep, up to which they are found first, and are all that is read",
        _SELECTED,
    )
    selected_memory: float = number(
        0.2, "share of a memory limit", "that columns take in a file, from which on that is done", _SELECTED
    )
    text_share: float = number(0.25, "share of rows", "that are taken to have one of the texts of a small dictionary")
    uploaded_bytes: int = number(4 << 20, "bytes", "of chunks that a GPU decodes that a thread sends at least")
    coded_rows: int = number(100, "rows", "from which on text is read with the dictionary that its file has")
    first_groups: int = number(1, "row groups", "that a filter below a LIMIT is tried on first")
    more_groups: int = number(4, "times", "as many row groups are tried next where those gave too few rows")
    csv_sample: int = number(1 << 16, "bytes", "that tell a CSV file's dialect")
    csv_rows: int = number(100, "rows", "that tell a CSV file's dialect")


@dataclass(init=False, eq=False, repr=False)
class Transfers(Record):
    """How arrays come to a GPU."""

    buffer_bytes: int = number(2 << 20, "bytes", "of a page-locked buffer")
    buffers: int = number(32, "buffers", "of a GPU")
    movers: int = number(4, "threads", "that copy one array into page-locked memory")
    mover_bytes: int = number(16 << 20, "bytes", "that a thread copies at a time")
    file_movers: int = number(
        8,
        "threads",
        "that write arrays to files of the tier below a device, or read them, of which the system writes 3 GB a second each",
        _FILES,
    )
    staged_bytes: int = number(4 << 20, "bytes", "of an array from which on its copy goes through page-locked memory")
    kept_on_host: int = number(
        1 << 20, "bytes", "of an array below which it waits on the host for a kernel that asks for it"
    )
    device_alone: float = number(
        0.5,
        "share of a GPU's memory",
        "that is free where columns that are read stay there alone: the host has no copy, which others could let go of",
        _ALONE,
    )
    together_bytes: int = number(
        1 << 20,
        "bytes",
        "of an array of another GPU, up to which one kernel copies it with all others of an exchange: a copy by itself takes 8 "
        "to 18 us in a graph",
        _TOGETHER,
    )
    combined_bytes: int = number(
        1 << 28,
        "bytes",
        "of an array that ranks combine, up to which a kernel reads those of other GPUs where they lie: 60 MB by a copy and an "
        "addition took 157 and 45 us",
        _RANKS,
    )
    together_alignment: int = number(256, "bytes", "at multiples of which they begin, as memory of their own does")
    bridge_buffers: int = number(8, "buffers", "page-locked, between two GPUs that have no access to each other")
    headroom: int = number(16, "parts of memory", "of which columns that are loaded leave one free")


@dataclass(init=False, eq=False, repr=False)
class Streaming(Record):
    """How columns that do not fit a device's memory limit go through it, a chunk after the other."""

    pieces: int = number(2, "pieces of memory", "that chunks go into by turns: one is read while the next is filled")
    chunk_bytes: int = number(
        64 << 20, "bytes", "of a chunk: 1.2 ms of a GPU's link, many times what it takes to launch a kernel"
    )
    chunk_parts: int = number(16, "parts of a limit", "of which a chunk takes one at most")
    most_resident: float = number(
        0.5,
        "share of a limit",
        "that may be taken when one more column stays on the device; states need the rest",
    )
    locked_bytes: int = number(1 << 20, "bytes", "of an array of the host whose pages are locked for copies")


@dataclass(init=False, eq=False, repr=False)
class Memory(Record):
    """Memory of the host, and what connections keep in it."""

    checked_bytes: int = number(
        64 << 20,
        "bytes",
        "of an array of the host from which on free memory is looked at first: Linux promises too much",
    )
    ordered_share: float = number(
        0.5, "share of a memory limit", "that columns and frames may fill, which lie in files beyond it", _LIMITS
    )
    kept_slack: int = number(
        2, "times", "its own bytes that the memory of a column of CREATE TABLE AS may have: else it is copied"
    )
    appended_values: int = number(
        10_000, "rows", "of constants that INSERT keeps as Python values before they become arrays", _INSERTS
    )
    appended_bytes: int = number(
        4_000_000, "bytes", "of such Python values, which no memory limit counts, before they become arrays", _INSERTS
    )
    python_value: int = number(64, "bytes", "that a Python value takes in a row, its characters aside", _INSERTS)
    appended_rows: int = number(1_000_000, "rows", "of such arrays before they become a table", _INSERTS)
    seen_keys: int = number(
        1_000_000, "rows", "of a table whose keys INSERT keeps as sets of Python values, which no memory limit counts", _KEYS
    )
    listed_keys: int = number(
        100_000, "rows", "of a table of which such sets are made: to make them takes about as long as to ask a query", _KEYS
    )
    least_spilled: int = number(1 << 16, "bytes", "of an array that is worth a file", _LIMITS)
    stripes: int = number(
        8, "files", "of what goes to the tier below a device at once, at most: one thread at a time writes to each", _FILES
    )
    stripe_bytes: int = number(16 << 20, "bytes", "of each, at least", _FILES)
    most_stripes: int = number(
        128,
        "pieces",
        "of an array that lie in its files by turns, at most: each is a mapping, of which Linux has 65,530 for a process",
        _FILES,
    )
    shared_file: int = number(1 << 20, "bytes", "of a file that small arrays share", _LIMITS)
    returned_bytes: int = number(
        1 << 20, "bytes", "of a block that goes back to the system when it is freed, where a limit is set", _LIMITS
    )
    sorted_row: int = number(
        28, "bytes", "a row that sorting takes: two words, of which one is a copy, and two numbers of rows", _LIMITS
    )
    joined_text: int = number(
        32,
        "bytes",
        "a row whose text is joined with others: where it lies and how long it is, and its separator",
        _LIMITS,
    )
    windowed_value: int = number(
        16,
        "bytes",
        "a row and window function: where its frame begins and ends, and the value before it is narrowed",
        _LIMITS,
    )
    least_kept: int = number(
        1 << 20, "bytes", "of an array whose memory is kept for later ones when it goes, where no limit is set", _KEPT
    )
    kept_share: float = number(0.25, "share of the machine's memory", "that is kept so at most", _KEPT)
    kept_seconds: float = number(
        10, "seconds", "that it is kept without being wanted: those who ask a question after another take as long", _KEPT
    )
    disk_share: float = number(0.9, "share of the free disk", "that files of arrays may take where no limit is set")
    written_bytes: int = number(1 << 20, "bytes", "written at once to a file whose room cannot be asked for")
    plans: int = number(256, "plans", "that a connection keeps")
    creations: int = number(
        16, "plans", "of CREATE TABLE AS that a connection keeps: each change of a table looks at all of them", _CREATED
    )
    templates: int = number(
        8, "plans", "of texts of one shape that a connection keeps, whose constants decide otherwise"
    )
    files: int = number(1024, "paths", "of files that a connection keeps open", _BEING_RIGHT)
    shared_nodes: int = number(10_000, "plan nodes", "of a shared definition that is bound for another use")
    previewed_rows: int = number(1_000, "rows", "that are made of a result, so that a small one is shown whole")
    previewed_source: int = number(1_000_000, "rows", "of a source from which on no row more is made than is shown")
    nested_calls: int = number(40_000, "calls", "within each other, of Python")
    stack_bytes: int = number(2**28, "bytes", "of the stack of a thread for them, of which what is used takes memory")
    listed_rows: int = number(
        64, "rows", "of text that Python puts together: above 80 a call of Arrow's takes no longer"
    )
    listed_entries: int = number(256, "entries", "of a dictionary that is made a list of Python's for that")
    listed_bytes: int = number(1 << 20, "bytes", "of such a dictionary's texts")
    wait_seconds: float = number(0.05, "seconds", "between two looks at whether a query that waits is interrupted")
    fork_seconds: float = number(10.0, "seconds", "that a fork of the process waits for its threads that compile, at most")


@dataclass(init=False, eq=False, repr=False)
class Startup(Record):
    """What a process does before its first answer."""

    collected_before: int = number(
        50_000,
        "objects",
        "before the first connection up to which the engine's own are kept from the collector: 0.3 us each",
        _FROZEN,
    )
    modules_missed: int = number(
        64,
        "modules",
        "that a process imported whose bytecode is not in the file of all, for which that is written anew: 8 MB",
    )
    compiled_calls: int = number(24, "records", "of a class that are made before its __init__ is compiled", _FROZEN)
