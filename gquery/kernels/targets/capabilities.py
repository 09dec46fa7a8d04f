"""What sets one target apart from another, for those that plan for it, write its kernels and run them.

Planner, operators and execution ask for a capability; none of them compares a target's name. A new target says here what it
can do. Nothing is imported for that: neither a compiler nor a GPU's library.
"""

from __future__ import annotations

from typing import Literal

from gquery.runtime.records import dataclass


@dataclass(frozen=True)
class Capabilities:
    """What a target can do, and what costs it much.

    ``array_target`` is the target of the kernels that go over whole arrays beside its pipelines, where these arrays lie.
    ``access_bytes``: one access of memory moves at least so many.
    """

    name: str
    array_target: Literal["cpu", "cuda"]
    access_bytes: int = 64
    is_interpreted: bool = False  # nothing is compiled, and kernels call any function of Python
    runs_morsels: bool = False  # threads of the host take morsels of rows, with a state each or one for all
    scans_ranges: bool = False  # blocks of rows that cannot pass are left out: ranges are run one after another
    has_own_memory: bool = False  # what it makes lies on a device: kernels are queued, the host waits to read or copies
    has_warps: bool = False  # neighbouring threads have neighbouring rows; they vote, sum and wait together
    has_shared_memory: bool = False  # the threads of a block have memory close by
    has_atomic_bits: bool = False  # threads set bits of one word at once, so flags take an eighth of the cache
    marks_rows: bool = False  # filters are computed for a block of rows, without a branch
    interleaves_rows: bool = False  # a thread takes several rows at once, to have more loads under way
    scans_text: bool = False  # patterns are looked for in the characters of a whole column, not row by row
    prefers_sorting: bool = False  # sorting values is faster than a hash table that lies in no cache
    partitions_builds: bool = False  # a table that lies in no cache is filled a part at a time


PYTHON = Capabilities("python", array_target="cpu", is_interpreted=True, scans_ranges=True)
CPU = Capabilities("cpu", array_target="cpu", runs_morsels=True, scans_ranges=True, marks_rows=True)
CUDA = Capabilities(
    "cuda",
    array_target="cuda",
    access_bytes=32,
    has_own_memory=True,
    has_warps=True,
    has_shared_memory=True,
    has_atomic_bits=True,
    interleaves_rows=True,
    scans_text=True,
    prefers_sorting=True,
    partitions_builds=True,
)
_BY_NAME = {known.name: known for known in (PYTHON, CPU, CUDA)}


def capabilities(target: str) -> Capabilities:
    """Those of a target by its name."""
    return _BY_NAME[target]
