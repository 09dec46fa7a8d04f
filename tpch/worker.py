"""The process that runs one engine: reads a `Job` on stdin, writes an event a line to stdout.

Events: ``engine`` (what runs) or ``broken`` (why it does not), ``doing`` (for progress), ``sample`` (a time), ``answer``
(where a result was written), ``traffic`` (bytes), ``failed`` (with a reason), ``done`` (with a query), ``throughput`` (the
time of all streams), ``memory`` (peaks, at the end). A time is from the SQL text to the Arrow table on the host. What
libraries print goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa

from gquery.runtime.stopwatch import Watch, watched
from tpch.engines import Answer, Engine, GQueryEngine, NotRunError, open_engine
from tpch.job import Job, Text

INTERRUPTED = 130


class Worker:
    """One job on its way."""

    def __init__(self, job: Job, out: TextIO) -> None:
        self.job, self.out = job, out
        self.lock = threading.Lock()
        self.saved = 0

    def run(self) -> None:
        job = self.job
        self.send("doing", text=f"{job.engine} opens the tables")
        start = time.perf_counter()
        try:
            engine = open_engine(job.engine, job.folder, job.options)
        except Exception as error:
            self.send("broken", reason=f"{type(error).__name__}: {error}")
            return
        seconds = time.perf_counter() - start
        bandwidth = None
        if job.measures and isinstance(engine, GQueryEngine):
            from tpch.traffic import copy_bandwidth

            bandwidth = copy_bandwidth(engine.connection)
            forget_peak()
        self.send("engine", description=engine.description, seconds=seconds, copy_bandwidth=bandwidth)
        for query in job.queries:
            self.query(engine, query)
        if job.streams:
            self.streams(engine)
        self.send("memory", **memory(engine))
        engine.close()

    def send(self, event: str, **values: Any) -> None:
        with self.lock:
            self.out.write(json.dumps({"event": event, **values}) + "\n")
            self.out.flush()

    # ---- one query after another ----

    def query(self, engine: Engine, query: Text) -> None:
        """All runs of a query. One that raises is told, and the next query runs."""
        job = self.job
        try:
            answer = self.timed(engine, query, job.first, 0)
            self.save(query, 0, answer)
            last = answer
            for number in range(job.runs + 1 if job.runs else 0):
                last = self.timed(engine, query, "hot" if number else "warmup", number)
            if not last.table.equals(answer.table):  # rows that tie may have changed places: the checker decides
                self.save(query, 0, last)
            if job.measures and isinstance(engine, GQueryEngine) and job.options.io == "resident":
                from tpch.traffic import traffic

                self.send("traffic", query=query.number, **asdict(traffic(engine.connection, query.sql)))
        except Exception as error:
            self.failed(query, 0, error)
        self.send("done", query=query.number, stream=0)

    def timed(self, engine: Engine, query: Text, kind: str, number: int) -> Answer:
        self.send("doing", text=f"{engine.name} Q{query.number} {kind}" + (f" {number}" if number else ""))
        watch = Watch()
        start = time.perf_counter()
        with watched(watch):
            answer = engine.run(query.sql)
        seconds = time.perf_counter() - start
        split = dict(watch.seconds) if isinstance(engine, GQueryEngine) else None
        self.sample(query, 0, kind, number, seconds, answer, split)
        return answer

    def sample(
        self, query: Text, stream: int, kind: str, number: int, seconds: float, answer: Answer, split: Any
    ) -> None:
        self.send(
            "sample", query=query.number, stream=stream, kind=kind, number=number, seconds=seconds,
            rows=answer.table.num_rows, split=split,
        )  # fmt: skip

    def failed(self, query: Text, stream: int, error: Exception) -> None:
        """The engine lacks something (not run), or it has failed."""
        text = str(error) if isinstance(error, NotRunError) else f"{type(error).__name__}: {error}"
        kind = "not run" if isinstance(error, NotRunError) else "failed"
        self.send("failed", query=query.number, stream=stream, reason=f"{kind}: {text.splitlines()[0]}")

    def save(self, query: Text, stream: int, answer: Answer) -> None:
        self.saved += 1
        path = self.job.answers / f"{self.job.engine}-{self.job.first}-{self.saved}.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, answer.table.schema) as writer:
            writer.write_table(answer.table)
        self.send("answer", query=query.number, stream=stream, path=str(path), types=answer.types)

    # ---- streams ----

    def streams(self, engine: Engine) -> None:
        """Every stream on a thread; all start at once. What they found is sent when all have ended."""
        streams = self.job.streams
        self.send("doing", text=f"{engine.name} runs {len(streams)} streams")
        start_line = threading.Barrier(len(streams) + 1)
        found: list[list[tuple[Text, float, Answer | Exception]]] = [[] for _ in streams]
        threads = [
            threading.Thread(target=run_stream, args=(engine.stream(), stream, start_line, results))
            for stream, results in zip(streams, found)
        ]
        for thread in threads:
            thread.start()
        start_line.wait()
        start = time.perf_counter()
        for thread in threads:
            thread.join()
        self.send("throughput", seconds=time.perf_counter() - start)
        for number, results in enumerate(found, 1):
            for query, seconds, answer in results:
                if isinstance(answer, Answer):
                    self.sample(query, number, "stream", 0, seconds, answer, None)
                    self.save(query, number, answer)
                else:
                    self.failed(query, number, answer)
                self.send("done", query=query.number, stream=number)


def run_stream(
    engine: Engine, queries: Sequence[Text], start_line: threading.Barrier,
    results: list[tuple[Text, float, Answer | Exception]],
) -> None:  # fmt: skip
    """One stream: its queries one after another."""
    start_line.wait()
    for query in queries:
        start = time.perf_counter()
        answer: Answer | Exception
        try:
            answer = engine.run(query.sql)
        except Exception as error:
            answer = error
        results.append((query, time.perf_counter() - start, answer))
    engine.close()


def memory(engine: Engine) -> dict[str, int | None]:
    """The most that the process had in the host's memory, and what CuPy's pool took of a GPU's (it gives nothing back
    unless memory runs out)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    host = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    if not (isinstance(engine, GQueryEngine) and engine.connection.device.is_cuda):
        return {"host_peak_bytes": host, "device_peak_bytes": None}
    import cupy

    return {"host_peak_bytes": host, "device_peak_bytes": int(cupy.get_default_memory_pool().total_bytes())}


def forget_peak() -> None:
    """Have the peak of the host's memory start anew: what the copies took is not the queries'."""
    with suppress(OSError):  # where the kernel does not let us, the peak holds the copies
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def main() -> None:
    """Run the job on stdin."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with out:
        try:
            Worker(Job.from_json(sys.stdin.read()), out).run()
        except (KeyboardInterrupt, BrokenPipeError):  # whoever asked has left
            os._exit(INTERRUPTED)
