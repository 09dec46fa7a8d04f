"""EXPLAIN as text: the plan with rows, then its stages, and with an analyzed run what their kernels took."""

from __future__ import annotations

from collections.abc import Iterator

from gquery.kernels.targets.capabilities import capabilities
from gquery.profile.tree import Explained, KernelNode, Node, StageNode
from gquery.runtime.amounts import format_bytes


def as_text(tree: Explained) -> str:
    """The tree in lines.

    Rows are written behind each operator: what it gave where the query was run, and what was expected.
    """
    lines = [f"Query {', '.join(tree.columns)}", *_plan(tree.plan, 1)]
    for stage in tree.stages:
        lines += ["", *_stage(stage)]
    if tree.fetch:
        lines += ["", tree.fetch]
    if tree.analyzed:
        lines += ["", *_total(tree)]
    return "\n".join(lines) + "\n"


def rows_text(node: Node) -> str:
    """How many rows an operator gives: true and estimated, as far as known.

    >>> rows_text(Node("Scan", "Scan t", 1000, 900))
    '900 rows, 1,000 expected'
    """
    estimated, true = node.estimated_rows, node.true_rows
    if true is None:
        return "" if estimated is None else f"about {_count(estimated)}"
    return _count(true) + ("" if estimated in (None, true) else f", {estimated:,} expected")


def blocks_text(stage: StageNode) -> str:
    """How many blocks of rows a scan left out, since no row of them could pass."""
    return f"blocks of rows: {stage.skipped_blocks or 0:,} of {stage.blocks or 0:,} skipped"


def _count(rows: int) -> str:
    return f"{rows:,} row" + ("s" if rows != 1 else "")


def seconds_text(seconds: float) -> str:
    """
    >>> seconds_text(0.00123), seconds_text(2.5), seconds_text(4e-6)
    ('1.23 ms', '2.50 s', '4 us')
    """
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.0f} us"


def kernel_facts(kernel: KernelNode) -> Iterator[tuple[str, str]]:
    """What a run measured of a kernel: names and values."""
    if kernel.seconds is None or kernel.bytes_read is None or kernel.bytes_written is None:
        return
    about = "about " if kernel.bytes_are_estimated else ""
    yield "time", seconds_text(kernel.seconds)
    yield "launches", f"{kernel.launches:,}"
    yield "read", about + format_bytes(kernel.bytes_read)
    yield "written", about + format_bytes(kernel.bytes_written)
    if kernel.bandwidth is not None and kernel.share_of_copy is not None:
        yield "bandwidth", f"{about}{kernel.bandwidth / 1e9:,.2f} GB/s, {kernel.share_of_copy:.0%} of a copy's"
    if kernel.registers is not None and kernel.shared_bytes is not None:
        yield "registers", f"{kernel.registers} a thread"
        yield "shared memory", f"{format_bytes(kernel.shared_bytes)} a block"
        if kernel.spilled_bytes:
            yield "spilled", f"{format_bytes(kernel.spilled_bytes)} a thread"
    yield "code", "cached" if kernel.cached else f"compiled in {seconds_text(kernel.compile_seconds or 0.0)}"


def parts_text(stage: StageNode) -> str:
    """In how many parts a stage was made that did not fit memory, and what lay in files, or on the host, for that."""
    return f"made in {stage.parts or 0:,} parts, {format_bytes(stage.spilled_bytes or 0)} spilled"


def streamed_text(stage: StageNode) -> str:
    """How much of its columns a stage has brought through the device in chunks, and at which rate while its kernels ran."""
    size, seconds = stage.streamed_bytes or 0, sum(k.seconds or 0.0 for k in stage.kernels)
    rate = f" at {size / seconds / 1e9:,.1f} GB/s" if seconds else ""
    return f"streamed {format_bytes(size)}{rate}, copied beside the kernels"


def _plan(node: Node, depth: int) -> Iterator[str]:
    rows = rows_text(node)
    yield "  " * depth + node.text + (f"  [{rows}]" if rows else "")
    for child in node.children:
        yield from _plan(child, depth + 1)


def _stage(stage: StageNode) -> Iterator[str]:
    where = f"{stage.target}: {stage.reason}" if stage.reason else stage.target
    took = f"  {seconds_text(stage.seconds)}" if stage.seconds is not None else ""
    again = f", run {stage.attempts} times: a table was full" if (stage.attempts or 1) > 1 else ""
    kind = ", one loop" if len(stage.operators) > 1 else ""
    yield f"stage {stage.number}: {stage.label}  [{where}{kind}{again}]{took}"
    for operator in stage.operators:
        rows = rows_text(operator)
        yield f"  {operator.text}" + (f"  [{rows}]" if rows else "")
    if stage.row_groups_read is not None:
        yield f"  row groups: {stage.row_groups_read:,} read, {stage.row_groups_skipped or 0:,} skipped"
    if stage.skipped_blocks is not None:
        yield f"  {blocks_text(stage)}"
    if stage.parts is not None:
        yield f"  {parts_text(stage)}"
    if stage.streamed_bytes is not None:
        yield f"  {streamed_text(stage)}"
    for text in stage.ranks:
        yield f"  {text}"
    for kernel in stage.kernels:
        facts = ", ".join(f"{name} {value}" for name, value in kernel_facts(kernel))
        if facts:
            yield f"  kernel {kernel.role}: {facts}"


def _total(tree: Explained) -> Iterator[str]:
    yield f"{_count(tree.rows or 0)} in {seconds_text(tree.seconds or 0.0)} on {tree.device}"
    if tree.template:
        yield f"template: {tree.template}"
    yield f"compiling and loading kernels took {seconds_text(tree.compile_seconds or 0.0)} of it"
    held = "" if capabilities(tree.device.partition(":")[0]).has_own_memory else " held between stages"
    yield f"memory at its peak: {format_bytes(tree.peak_bytes or 0)}{held}"
    if tree.spilled_bytes:
        yield f"in files, as memory_limit asks for: {format_bytes(tree.spilled_bytes)}"
    if tree.copy_bandwidth:
        yield f"a copy on {tree.device.partition(',')[0]} moves {tree.copy_bandwidth / 1e9:,.1f} GB/s, read and written"
