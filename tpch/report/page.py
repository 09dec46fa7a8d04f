"""The page itself: headline numbers, plots, tables, and what all of it was measured on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from tpch.report import charts
from tpch.report.charts import Plot
from tpch.report.series import OWN, Panel, Series, account_bytes, panels
from tpch.report.style import STYLE
from tpch.samples import Sample
from tpch.table import milliseconds

NOTE = "Derived from TPC-H, not comparable to published TPC results."


def page(samples: Sequence[Sample], title: str) -> str:
    """All samples as one page of HTML; JavaScript included, nothing is fetched."""
    found = panels(samples)
    plots: list[Plot] = []
    body = "\n".join(_panel(p, plots) for p in found)
    over = _plot(charts.scaling(found), plots)
    scaling = f"<h2>Scaling</h2>{over}" if over else ""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>\n'
        f"<h1>{escape(title)}</h1>\n<p class=note>{NOTE}</p>\n{body}\n{scaling}\n{_settings(samples)}\n"
        f"<script>{_javascript()}</script>\n<script>{_embed(plots)}</script>\n</body></html>\n"
    )


def svg(samples: Sequence[Sample]) -> str:
    """The first plot of the page alone, for a README."""
    import vl_convert

    chart = charts.times(panels(samples)[0])
    assert chart is not None, "there are times"
    return str(vl_convert.vegalite_to_svg(chart, vl_version=_version()))


# ---- plots ---------------------------------------------------------------------------------------------------------


def _plot(chart: Plot | None, plots: list[Plot]) -> str:
    """The place of a plot, which a script fills; nothing where there is nothing to plot."""
    if chart is None:
        return ""
    plots.append(chart)
    return f'<div class=plot id="plot{len(plots)}"></div>'


def _javascript() -> str:
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=_version()))


def _version() -> str:
    """The version of Vega-Lite that Altair writes, as the converter names it."""
    import altair

    return ".".join(altair.SCHEMA_VERSION.lstrip("v").split(".")[:2])


def _embed(plots: Sequence[Plot]) -> str:
    specs = json.dumps(list(plots)).replace("</", "<\\/")
    return (
        f"const specs = {specs};\n"
        "specs.forEach((spec, n) => vegaEmbed('#plot' + (n + 1), spec, {actions: false, renderer: 'svg'}));"
    )


# ---- a panel -------------------------------------------------------------------------------------------------------


def _panel(panel: Panel, plots: list[Plot]) -> str:
    parts = [f"<h2>{escape(panel.title)}</h2>", _headlines(panel)]
    parts += [_plot(charts.times(panel), plots), _plot(charts.speedups(panel), plots)]
    for series in panel.series:
        if series.is_own:
            parts += [_plot(charts.traffic(panel, series), plots), _plot(charts.shares(panel, series), plots)]
            parts += [_plot(charts.split(panel, series, kind), plots) for kind in reversed(series.kinds())]
    parts += [_throughput(panel), _table(panel)]
    return "\n".join(part for part in parts if part)


def _headlines(panel: Panel) -> str:
    """A tile a series: totals, geometric mean, correctness."""
    tiles = []
    for s in panel.series:
        facts = [(f"total {kind}", _total(s, kind)) for kind in reversed(s.kinds()) if s.is_own or kind != "warm"]
        mean = s.geometric_mean()
        if mean is not None:
            facts.append(("geometric mean", f"{milliseconds(mean)} ms"))
        facts += _memory(s)
        facts.append(("answers", _answers(s)))
        tiles.append(
            f"<div class='tile{' own' if s.is_own else ''}'><h3>{escape(s.name)}</h3>"
            f"<p>{escape(s.setting.description)}</p><dl>{_facts(facts)}</dl></div>"
        )
    return f"<div class=tiles>{''.join(tiles)}</div>"


def _total(s: Series, kind: str) -> str:
    total = s.total(kind)
    return "-" if total is None else f"{milliseconds(total)} ms for {len(s.medians(kind))} queries"


def _answers(s: Series) -> str:
    wrong, unchecked = s.wrong(), s.unchecked()
    if not wrong and not unchecked:
        return "all right"
    by_text: dict[str, list[str]] = {}
    for q, text in sorted(wrong.items()):
        by_text.setdefault(text, []).append(f"Q{q}")
    texts = [f"{', '.join(of)}: {text}" for text, of in by_text.items()]
    return "; ".join([*texts, *([f"{unchecked} unchecked"] if unchecked else [])])


def _memory(s: Series) -> Iterator[tuple[str, str]]:
    peaks = [x.moved for x in s.samples if x.kind == "memory"]
    for name, text in (("device_peak_bytes", "GPU memory"), ("host_peak_bytes", "host memory")):
        most = max((p[name] or 0 for p in peaks), default=0)
        if most:
            yield f"peak of {text}", f"{most / 1e9:,.1f} GB"


def _throughput(panel: Panel) -> str:
    rows = []
    for s in panel.series:
        for whole in (x for x in s.samples if x.kind == "throughput" and x.seconds):
            done = [x for x in s.samples if x.kind == "stream" and x.setting.time == whole.setting.time]
            streams = len({x.stream for x in done})
            assert whole.seconds is not None
            rate = len(done) / whole.seconds * 3600
            rows.append([s.name, str(streams), str(len(done)), f"{whole.seconds:.3f}", f"{rate:,.0f}"])
    if not rows:
        return ""
    head = ["engine", "streams", "queries", "seconds", "queries per hour"]
    return f"<h3>Throughput</h3>{_grid(head, rows)}"


def _table(panel: Panel) -> str:
    """All medians in milliseconds; of gquery every kind of run and its bytes."""
    head, columns = ["query"], []
    base = panel.own.medians() if panel.own else {}
    for s in panel.series:
        for kind in s.kinds() if s.is_own else [k for k in s.kinds() if k in ("hot", "first")]:
            if s.medians(kind):
                head.append(f"{s.name} {kind}")
                columns.append({q: milliseconds(v) for q, v in s.medians(kind).items()} | _sums(s, kind))
        if s.is_own and s.traffic():
            head += [f"{s.name} GB", f"{s.name} share of copy"]
            columns.append({q: f"{account_bytes(a, 'moved') / 1e9:.3g}" for q, a in s.traffic().items()})
            columns.append({q: f"{s.share(q, 'moved'):.0%}" for q in s.traffic() if s.share(q, "moved") is not None})
        if base and s is not panel.own and s.medians():
            head.append(f"{s.name} / {OWN}")
            columns.append({q: f"{v / base[q]:.2f}" for q, v in s.medians().items() if q in base})
    rows = [[f"Q{q}", *(c.get(q, "-") for c in columns)] for q in panel.queries]
    rows += [[name, *(c.get(place, "") for c in columns)] for place, name in _PLACES.items()]
    return f"<h3>Medians in milliseconds</h3>{_grid(head, rows)}"


_PLACES = {-1: "total", -2: "geometric mean"}


def _sums(s: Series, kind: str) -> dict[int, str]:
    return {-1: milliseconds(s.total(kind)), -2: milliseconds(s.geometric_mean(kind))}


def _grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(h)}</th>" for h in head)
    lines = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in rows)
    return f"<div class=grid><table><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table></div>"


# ---- what it was measured on ---------------------------------------------------------------------------------------


def _settings(samples: Sequence[Sample]) -> str:
    """Machines, versions and commands, each once."""
    machines = {json.dumps(s.setting.machine, sort_keys=True): s.setting.machine for s in samples}
    commands = dict.fromkeys((s.setting.time[:10], s.setting.command) for s in samples)
    parts = ["<h2>Machine, versions, commands</h2>"]
    for m in machines.values():
        gpus = ", ".join(m["gpus"]) or "none"
        facts = [("processor", f"{m['cpu']}, {m['cores']} cores"), ("memory", f"{m['memory_bytes'] / 2**30:.0f} GiB")]
        facts += [("GPU", gpus), ("driver", m["driver"] or "-"), ("system", m["system"])]
        parts.append(f"<dl class=machine>{_facts(facts)}</dl>")
    versions: dict[str, list[str]] = {}
    for s in samples:
        for name, version in s.setting.versions.items():
            known = versions.setdefault(name, [])
            known += [] if version in known else [version]
    parts.append(f"<dl class=machine>{_facts([(name, ', '.join(v)) for name, v in versions.items()])}</dl>")
    lines = "\n".join(f"{day}  {command}" for day, command in commands)
    parts.append(f"<pre>{escape(lines)}</pre><p class=note>{NOTE}</p>")
    return "\n".join(parts)


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    return "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
