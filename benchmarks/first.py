"""What a fresh process takes to its first answer, with an empty cache of kernels, and to its end: least of several processes.

    python -m benchmarks.first
    python -m benchmarks.first --imports      and which modules take the longest to import

One after the other on the processors that it may use (`taskset -c 0,1`). The query is compiled, not interpreted. *answer* are
the seconds from the process's start to the rows; *wall* and *CPU* those of the whole process, the interpreter's own end included,
which takes all modules apart. On a machine that others use, look at CPU.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter

SCRIPT = """
import gquery
db = gquery.connect("cpu")
db.sql("SET interpret_limit = 0")
rows = db.sql("SELECT sum(i * 2), count(*) FROM range(1000000) t(i) WHERE i % 3 = 1").fetchall()
assert rows == [(2 * sum(range(1, 1000000, 3)), 333333)], rows
import time
print(time.time())
"""
_LINE = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s*(\S+)")
MOST = 30


def run(*options: str) -> tuple[float, float, float, str]:
    """Seconds to the answer of a process, its wall and CPU seconds, and what it wrote to its standard error."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        before, began, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.time(), time.perf_counter()
        done = subprocess.run(
            [sys.executable, *options, "-c", SCRIPT], env=environment | {"GQUERY_CACHE_DIR": folder},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return float(done.stdout) - began, wall, cpu, done.stderr


def imports(times: int) -> Counter[str]:
    """By module, the least time that its own import took in so many processes, microseconds."""
    least: Counter[str] = Counter()
    for _ in range(times):
        for taken, name in _LINE.findall(run("-X", "importtime")[-1]):
            least[name] = min(least.get(name, int(taken)), int(taken))
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--times", type=int, default=9)
    parser.add_argument("--imports", action="store_true")
    given = parser.parse_args()
    run()  # Python keeps its bytecode
    found = [run() for _ in range(given.times)]
    answer, wall, cpu = (min(f[n] for f in found) for n in range(3))
    print(f"answer {answer:.3f} s, wall {wall:.3f} s, CPU {cpu:.3f} s, least of {given.times}")
    if given.imports:
        least = imports(given.times)
        packages: Counter[str] = Counter()
        for name, taken in least.items():
            packages[name.partition(".")[0]] += taken
        for counted in (packages, least):
            print(*[f"{taken / 1e3:8.1f} ms  {name}" for name, taken in counted.most_common(MOST)], "", sep="\n")


if __name__ == "__main__":
    main()
