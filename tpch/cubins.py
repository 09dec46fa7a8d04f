"""What the kernels of the 22 queries use on GPUs that need not be here: registers and spilled bytes a thread.

The one module of this folder that looks inside the engine: `Connection.kernels` gives a query's kernels as they would
be made for a target, and the cuda target compiles them to machine code with no GPU and no driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gquery.api.connection import Connection
from tpch import queries

ARCHITECTURES = ((7, 5), (8, 0), (9, 0))
LOWERED_ARCHITECTURES = (*ARCHITECTURES, (10, 0), (12, 0))  # by our own lowering, which takes a quarter of the time


@dataclass(frozen=True)
class Usage:
    """One kernel on one architecture. Registers and bytes are a thread's, shared bytes a block's."""

    query: int
    kernel: int
    digest: str
    architecture: str
    registers: int
    local_bytes: int
    shared_bytes: int


def usages(
    connection: Connection, numbers: Sequence[int], architectures: Sequence[tuple[int, int]], compiler: str = "auto"
) -> Iterator[Usage]:
    """Compiles every kernel of the queries over the connection's tables, by the compiler of that name (see the setting).
    InternalError where one does not compile."""
    from gquery.kernels.targets.compilers import compiling_by
    from gquery.kernels.targets.cuda import CudaTarget

    target = CudaTarget()
    for number in numbers:
        for place, kernel in enumerate(connection.kernels(queries.sql(number), target="cuda"), 1):
            for cc in architectures:
                with compiling_by(compiler):
                    cubin = target.compile_cubin(kernel, cc)
                name = f"sm_{cc[0]}{cc[1]}"
                shared = cubin.shared_bytes
                yield Usage(number, place, kernel.digest, name, cubin.registers, cubin.local_bytes, shared)


def table(found: Sequence[Usage]) -> list[str]:
    """A line a kernel, ``registers/local bytes`` an architecture."""
    names = sorted({u.architecture for u in found})
    lines = [f"{'query':<7}{'kernel':<8}" + "".join(f"{n:>12}" for n in names) + "   registers/local bytes a thread"]
    rows: dict[tuple[int, int], dict[str, Usage]] = {}
    for u in found:
        rows.setdefault((u.query, u.kernel), {})[u.architecture] = u
    for (query, kernel), by_name in rows.items():
        cells = "".join(f"{f'{by_name[n].registers}/{by_name[n].local_bytes}':>12}" for n in names)
        lines.append(f"Q{query:<6}{kernel:<8}{cells}")
    spilled = len({u.digest for u in found if u.local_bytes})
    most = max((u.registers for u in found), default=0)
    distinct = len({u.digest for u in found})
    return [*lines, f"{distinct} different kernels, {spilled} with local memory, at most {most} registers"]
