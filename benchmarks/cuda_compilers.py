"""What the two compilers for GPUs take, and what their kernels use; needs no GPU.

    python -m benchmarks.cuda_compilers                                TPC-H's kernels over SF0.01, for sm_90
    python -m benchmarks.cuda_compilers --workload tpcds --compilers llvm --architecture 100

A line a compiler: CPU seconds of this process for the text, for PTX and for the cubin, over all different kernels, after a first
one; registers and bytes of local memory a thread, summed. Nothing is read from the cache of kernels or written to it.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from benchmarks.rules import workloads
from gquery.errors import Error
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets import cubin
from gquery.kernels.targets.compilers import Compiler
from gquery.kernels.targets.cubin_assembler import assemble


def kernels(workload: workloads.Workload) -> Iterator[Kernel]:
    """The kernels of a workload's queries as they would be made for a GPU; a query that is not supported is left out."""
    connection = workload.connect()
    for text in workload.texts.values():
        try:
            yield from connection.kernels(text, target="cuda")
        except Error:
            continue


def measure(found: list[Kernel], name: Compiler, cc: tuple[int, int]) -> tuple[dict[str, float], Counter[str]]:
    """CPU seconds by phase, and what the kernels use, summed."""
    compiler = cubin.cuda_compiler(name)
    seconds, used = dict.fromkeys(("text", "ptx", "cubin"), 0.0), Counter[str]()
    for place, kernel in enumerate([found[0], *found]):
        times = [time.process_time()]
        source = compiler.source(kernel)
        _ = source.text
        times.append(time.process_time())
        text, entry = compiler.ptx(source, cc)
        times.append(time.process_time())
        code = assemble(text, cc)
        times.append(time.process_time())
        if place == 0:  # its imports and tables
            continue
        for phase, (before, after) in zip(seconds, pairwise(times), strict=True):
            seconds[phase] += after - before
        registers, local, _ = cubin._resources(code, entry)
        used.update(registers=registers, local_bytes=local, with_local_bytes=int(local > 0))
    return seconds, used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", choices=("tpch", "tpcds"), default="tpch")
    parser.add_argument("--sf", type=float, default=0.01)
    parser.add_argument("--compilers", default="numba,llvm")
    parser.add_argument("--architecture", type=int, default=90)
    options = parser.parse_args()
    found = list({k.digest: k for k in kernels(getattr(workloads, options.workload)(options.sf))}.values())
    print(f"{len(found)} kernels for sm_{options.architecture}")
    for name in options.compilers.split(","):
        seconds, used = measure(found, name, divmod(options.architecture, 10))
        parts = "  ".join(f"{part} {value:.2f}" for part, value in seconds.items())
        print(f"{name:<6} {sum(seconds.values()):6.2f} s: {parts}; " + ", ".join(f"{k} {v}" for k, v in used.items()))


if __name__ == "__main__":
    main()
