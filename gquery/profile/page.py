"""EXPLAIN as one page of HTML that stands alone: the plan as a picture, stages with bars of their time and of their kernels'
share of a copy's bandwidth, generated source on a click. Everything that a user wrote is escaped; nothing is fetched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from gquery.profile.style import SCRIPT, STYLE
from gquery.profile.text import blocks_text, kernel_facts, parts_text, rows_text, seconds_text, streamed_text
from gquery.profile.tree import Explained, KernelNode, Node, StageNode
from gquery.runtime.amounts import format_bytes

WIDTH, HEIGHT, GAP_X, GAP_Y = 250, 48, 18, 34
COLOURS = 12  # of stages, in turn


def as_page(tree: Explained) -> str:
    """The page."""
    title = "EXPLAIN ANALYZE" if tree.analyzed else "EXPLAIN"
    slowest = max((s.seconds or 0.0 for s in tree.stages), default=0.0)
    stages = "\n".join(_stage(s, slowest) for s in tree.stages)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>\n'
        f"<h1>{title}</h1>\n<pre class=sql>{escape(tree.sql or ', '.join(tree.columns))}</pre>\n{_totals(tree)}\n"
        f"<h2>Plan</h2>\n<p class=hint>An operator has the colour of the stage that it is fused into; a click opens "
        f"it.</p>\n{picture(tree.plan)}\n<h2>Stages</h2>\n{stages}\n<script>{SCRIPT}</script></body></html>\n"
    )


def _totals(tree: Explained) -> str:
    facts = [("device", tree.device)]
    if tree.analyzed:
        facts += [
            ("rows", f"{tree.rows or 0:,}"),
            ("time", seconds_text(tree.seconds or 0.0)),
            ("of it, compiling and loading", seconds_text(tree.compile_seconds or 0.0)),
            ("peak memory", format_bytes(tree.peak_bytes or 0)),
            ("in files", format_bytes(tree.spilled_bytes or 0)),
            ("copy bandwidth", f"{(tree.copy_bandwidth or 0.0) / 1e9:,.1f} GB/s"),
        ]
    return f"<dl class=totals>{_facts(facts)}</dl>"


def _facts(facts: list[tuple[str, str]]) -> str:
    return "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)


# ---- the plan as a picture -------------------------------------------------------------------------------------------


def picture(plan: Node) -> str:
    """The plan as SVG: the result at the top, an edge as thick as its rows are many."""
    places: dict[int, tuple[float, int]] = {}
    columns = _place(plan, 0, 0, places)
    depth = max(y for _, y in places.values())
    width = columns * (WIDTH + GAP_X) + GAP_X
    height = (depth + 1) * (HEIGHT + GAP_Y) + GAP_Y // 2
    parts = [*_edges(plan, places), *_boxes(plan, places)]
    return (
        f'<div class=plan><svg role="img" aria-label="query plan" width="{width}" '
        f'style="max-width:max(100%,{0.7 * width:.0f}px)" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg></div>'
    )


def _place(node: Node, left: int, depth: int, places: dict[int, tuple[float, int]]) -> int:
    """Give a node and what is below it places; the number of columns that they take from ``left`` on."""
    taken = 0
    for child in node.children:
        taken += _place(child, left + taken, depth + 1, places)
    taken = max(taken, 1)
    places[id(node)] = (left + (taken - 1) / 2, depth)
    return taken


def _corner(node: Node, places: dict[int, tuple[float, int]]) -> tuple[float, float]:
    column, depth = places[id(node)]
    return GAP_X + column * (WIDTH + GAP_X), GAP_Y / 2 + depth * (HEIGHT + GAP_Y)


def _edges(node: Node, places: dict[int, tuple[float, int]]) -> Iterator[str]:
    x, y = _corner(node, places)
    for child in node.children:
        below_x, below_y = _corner(child, places)
        rows = child.true_rows if child.true_rows is not None else child.estimated_rows or 0
        thick = 1 + math.log10(max(rows, 1)) / 1.5
        x1, y1, x2, y2 = below_x + WIDTH / 2, below_y, x + WIDTH / 2, y + HEIGHT
        middle = (y1 + y2) / 2
        path = f"M{x1:.0f} {y1:.0f}C{x1:.0f} {middle:.0f} {x2:.0f} {middle:.0f} {x2:.0f} {y2:.0f}"
        yield f'<path class=edge d="{path}" stroke-width="{thick:.1f}"/>'
        yield from _edges(child, places)


def _boxes(node: Node, places: dict[int, tuple[float, int]]) -> Iterator[str]:
    x, y = _corner(node, places)
    colour = "" if node.stage is None else f" c{node.stage % COLOURS}"
    goal = "" if node.stage is None else f' data-stage="{node.stage}" tabindex="0"'
    text = node.text.removeprefix(node.operator).strip()
    head = f"{node.operator} {text}".strip()
    yield (
        f'<g class="node{colour}"{goal}><title>{escape(node.text)}</title>'
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>'
        f'<text x="{x + 10:.0f}" y="{y + 20:.0f}" class=name>{escape(_short(head, 31))}</text>'
        f'<text x="{x + 10:.0f}" y="{y + 38:.0f}" class=rows>{escape(rows_text(node))}</text></g>'
    )
    for child in node.children:
        yield from _boxes(child, places)


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


# ---- stages ----------------------------------------------------------------------------------------------------------


def _stage(stage: StageNode, slowest: float) -> str:
    time = ""
    if stage.seconds is not None and slowest > 0:
        time = _bar("time", stage.seconds / slowest, seconds_text(stage.seconds))
    where = f"{stage.target}: {stage.reason}" if stage.reason else stage.target
    reads = f", reads stage {', '.join(map(str, stage.inputs))}" if stage.inputs else ""
    again = f", run {stage.attempts} times: a table was full" if (stage.attempts or 1) > 1 else ""
    groups = ""
    if stage.row_groups_read is not None:
        skipped = f"{stage.row_groups_skipped or 0:,} skipped"
        groups = f"<p class=where>row groups: {stage.row_groups_read:,} read, {skipped}</p>"
    if stage.skipped_blocks is not None:
        groups += f"<p class=where>{blocks_text(stage)}</p>"
    if stage.parts is not None:
        groups += f"<p class=where>{parts_text(stage)}</p>"
    if stage.streamed_bytes is not None:
        groups += f"<p class=where>{streamed_text(stage)}</p>"
    groups += "".join(f"<p class=where>{escape(text)}</p>" for text in stage.ranks)
    operators = "".join(
        f"<li><code>{escape(o.text)}</code> <span class=rows>{escape(rows_text(o))}</span></li>"
        for o in stage.operators
    )
    fused = f"<p class=where>{len(stage.operators)} operators, one loop</p>" if len(stage.operators) > 1 else ""
    kernels = "".join(_kernel(k) for k in stage.kernels)
    return (
        f'<section class="stage c{stage.number % COLOURS}" id="stage{stage.number}"><h3>stage {stage.number}: '
        f"{escape(stage.label)}</h3>{time}<p class=where>{escape(where + reads + again)}</p>{groups}{fused}"
        f"<ol>{operators}</ol>{kernels}</section>"
    )


def _kernel(kernel: KernelNode) -> str:
    bar = ""
    if kernel.share_of_copy is not None and kernel.bandwidth is not None:
        about = "about " if kernel.bytes_are_estimated else ""
        label = f"{about}{kernel.bandwidth / 1e9:,.2f} GB/s, {kernel.share_of_copy:.0%} of a copy's"
        bar = _bar("bandwidth", kernel.share_of_copy, label)
    facts = [(name, value) for name, value in kernel_facts(kernel) if name != "bandwidth"]  # the bar says it
    return (
        f"<div class=kernel><h4>kernel {escape(kernel.role)}</h4>{bar}<dl>{_facts(facts)}</dl>"
        f"<details class=source><summary>generated source</summary><pre>{escape(kernel.source)}</pre></details></div>"
    )


def _bar(kind: str, share: float, label: str) -> str:
    width = max(0.0, min(share, 1.0)) * 100
    return (
        f'<div class="bar {kind}" role="img" aria-label="{kind}: {escape(label)}"><span class=what>{kind}</span>'
        f"<span class=track>"
        f'<i style="width:{width:.1f}%"></i></span><b>{escape(label)}</b></div>'
    )
