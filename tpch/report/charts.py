"""The plots, as Vega-Lite made by Altair. Times are in milliseconds on logarithmic axes where engines differ by factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from tpch.report.series import SPLIT, Panel, Series, account_bytes

WIDTH, HEIGHT = 1020, 260
OWN_COLOURS = ("#0b7a75", "#19b5a5", "#7fd8c9", "#085450")
PEER_COLOURS = ("#f2a541", "#7d6bb3", "#c8553d", "#5c7ea3", "#9a9a9a")
PART_COLOURS = ("#7d6bb3", "#c8553d", "#5c7ea3", "#f2a541", "#0b7a75")  # in the order of SPLIT
Values = list[dict[str, Any]]
Plot = dict[str, Any]  # Vega-Lite


def times(panel: Panel) -> Plot | None:
    """Bars of each query's hot median by series; of first runs where nothing ran hot."""
    kind = panel.kind
    values: Values = [
        {"query": f"Q{q}", "series": s.name, "ms": seconds * 1e3, "fastest": min(_of(s, kind, q)) * 1e3}
        for s in panel.series
        for q, seconds in s.medians(kind).items()
    ]
    if not values:
        return None
    low = _power_below(min(v["ms"] for v in values))
    chart = (
        alt.Chart(_data(values), title=f"Time of each query, {kind}, {panel.title}", width=WIDTH, height=HEIGHT)
        .mark_bar()
        .encode(
            x=_queries(panel),
            xOffset=alt.XOffset("series:N", sort=_names(panel.series)),
            y=alt.Y(
                "ms:Q",
                title="ms, logarithmic",
                scale=alt.Scale(type="log", domainMin=low),
                stack=None,
                axis=_log_axis(),
            ),
            y2=alt.datum(low),
            color=_colours(panel.series),
            tooltip=["query:N", "series:N", _number("ms", "median, ms"), _number("fastest", "fastest, ms")],
        )
    )
    return _dict(chart)


def speedups(panel: Panel) -> Plot | None:
    """How many times as long as gquery each peer takes."""
    own = panel.own
    if own is None:
        return None
    base = own.medians()
    values: Values = [
        {"query": f"Q{q}", "series": s.name, "times": seconds / base[q]}
        for s in panel.series
        if s is not own
        for q, seconds in s.medians().items()
        if q in base
    ]
    if not values:
        return None
    others = [s for s in panel.series if s is not own]
    bars = (
        alt.Chart(_data(values))
        .mark_bar()
        .encode(
            x=_queries(panel),
            xOffset=alt.XOffset("series:N", sort=_names(others)),
            y=alt.Y(
                "times:Q",
                title=f"times as long as {own.name}",
                scale=alt.Scale(type="log"),
                stack=None,
                axis=_log_axis(),
            ),
            y2=alt.datum(1),
            color=_colours(panel.series),
            tooltip=["query:N", "series:N", _number("times", f"times {own.name}")],
        )
    )
    line = alt.Chart(_data([{"one": 1}])).mark_rule(color="#444").encode(y="one:Q")
    title = f"Speed-up of {own.name}, hot, {panel.title}"
    return _dict(alt.layer(bars, line).properties(title=title, width=WIDTH, height=HEIGHT))


def split(panel: Panel, series: Series, kind: str) -> Plot | None:
    """Where the time of a kind of run goes."""
    found = series.split(kind)
    values: Values = [
        {"query": f"Q{q}", "part": part, "ms": seconds * 1e3, "order": SPLIT.index(part)}
        for q, parts in found.items()
        for part, seconds in parts.items()
    ]
    if not values:
        return None
    chart = (
        alt.Chart(
            _data(values),
            title=f"Where the time of {_KINDS[kind]} goes, {series.name}, {panel.title.split(',')[0]}",
            width=WIDTH,
            height=HEIGHT * 0.75,
        )
        .mark_bar()
        .encode(
            x=_queries(panel),
            y=alt.Y("ms:Q", title="ms", stack="zero"),
            color=_colour("part", SPLIT, PART_COLOURS),
            order="order:Q",
            tooltip=["query:N", "part:N", _number("ms", "ms")],
        )
    )
    return _dict(chart)


_MEASURES = {"columns": "columns, each read once", "moved": "read and written by kernels"}
_KINDS = {
    "cold": "first runs with empty caches",
    "first": "first runs",
    "warm": "first runs with a warm kernel cache",
    "hot": "hot runs",
}


def traffic(panel: Panel, series: Series) -> Plot | None:
    """Bytes of each query."""
    values: Values = [
        {"query": f"Q{q}", "what": text, "GB": account_bytes(account, what) / 1e9}
        for q, account in series.traffic().items()
        for what, text in _MEASURES.items()
    ]
    return _measures(panel, values, "GB", f"Bytes of each query, {series.name}, {panel.title.split(',')[0]}")


def shares(panel: Panel, series: Series) -> Plot | None:
    """Bytes over hot time, as a share of the copy bandwidth."""
    values: Values = [
        {"query": f"Q{q}", "what": text, "percent": share * 100}
        for q in series.traffic()
        for what, text in _MEASURES.items()
        if (share := series.share(q, what)) is not None
    ]
    bandwidth = series.setting.copy_bandwidth or 0.0
    title = f"Share of the copy bandwidth ({bandwidth / 1e9:,.0f} GB/s), {series.name}, {panel.title.split(',')[0]}"
    return _measures(panel, values, "percent", title)


def _measures(panel: Panel, values: Values, field: str, title: str) -> Plot | None:
    if not values:
        return None
    domain = list(_MEASURES.values())
    chart = (
        alt.Chart(_data(values), title=title, width=WIDTH, height=HEIGHT * 0.75)
        .mark_bar()
        .encode(
            x=_queries(panel),
            xOffset=alt.XOffset("what:N", sort=domain),
            y=alt.Y(f"{field}:Q", title="% of a copy" if field == "percent" else field, stack=None),
            color=_colour("what", domain, ("#7fd8c9", OWN_COLOURS[0])),
            tooltip=["query:N", "what:N", _number(field, field)],
        )
    )
    return _dict(chart)


def scaling(panels: Sequence[Panel]) -> Plot | None:
    """The hot total over the scale factor: resident data, validation parameters, where a series has several."""
    chosen = [p for p in panels if p.io == "resident" and p.parameters == "validation"]
    most = max((len(s.medians()) for p in chosen for s in p.series), default=0)
    values: Values = [
        {"sf": p.sf, "series": s.name, "seconds": total}
        for p in chosen
        for s in p.series
        if len(s.medians()) == most and (total := s.total()) is not None
    ]
    names = [n for n in dict.fromkeys(v["series"] for v in values) if sum(v["series"] == n for v in values) > 1]
    values = [v for v in values if v["series"] in names]
    if not values:
        return None
    known = {s.name: s for p in chosen for s in p.series}
    chart = (
        alt.Chart(
            _data(values),
            title=f"Total of the {most} queries over the scale factor, data resident, hot",
            width=WIDTH,
            height=HEIGHT,
        )
        .mark_line(point=alt.OverlayMarkDef(size=60), strokeWidth=2.5)
        .encode(
            x=alt.X("sf:Q", title="scale factor", scale=alt.Scale(type="log"), axis=_axis({v["sf"] for v in values})),
            y=alt.Y("seconds:Q", title="seconds, logarithmic", scale=alt.Scale(type="log"), axis=_log_axis()),
            color=_colours([known[n] for n in names]),
            tooltip=["series:N", alt.Tooltip("sf:Q", title="scale factor"), _number("seconds", "seconds")],
        )
    )
    return _dict(chart)


def _data(values: Values) -> Any:
    return alt.Data(values=values)  # type: ignore[no-untyped-call]


def _dict(chart: Any) -> Plot:
    made: Plot = chart.to_dict()
    return made


def _log_axis() -> alt.Axis:
    """Lines and labels at 1, 2 and 5 times the powers of ten."""
    return alt.Axis(values=[float(f"{m}e{e}") for e in range(-6, 7) for m in (1, 2, 5)], format="~r")


def _axis(values: set[float]) -> alt.Axis:
    return alt.Axis(values=sorted(values), format="~g")


def _of(series: Series, kind: str, query: int) -> list[float]:
    return [s.seconds for s in series.samples if s.kind == kind and s.query == query and s.seconds is not None]


def _queries(panel: Panel) -> alt.X:
    sort = [f"Q{q}" for q in panel.queries]
    return alt.X("query:N", title=None, sort=sort, axis=alt.Axis(labelAngle=0))


def _names(series: Sequence[Series]) -> list[str]:
    return [s.name for s in series]


def _colours(series: Sequence[Series]) -> alt.Color:
    """The same colour for a series in all plots: greens are gquery's."""
    own, peers = 0, 0
    colours = []
    for s in series:
        palette, n = (OWN_COLOURS, own) if s.is_own else (PEER_COLOURS, peers)
        colours.append(palette[n % len(palette)])
        own, peers = (own + 1, peers) if s.is_own else (own, peers + 1)
    return _colour("series", _names(series), colours)


def _colour(field: str, domain: Sequence[str], colours: Sequence[str]) -> alt.Color:
    scale = alt.Scale(domain=list(domain), range=list(colours))
    return alt.Color(f"{field}:N", title=None, scale=scale, legend=alt.Legend(orient="top", labelLimit=400))


def _number(field: str, title: str) -> alt.Tooltip:
    return alt.Tooltip(f"{field}:Q", title=title, format=",.3~g" if field == "percent" else ",.4~g")


def _power_below(value: float) -> float:
    """The power of ten below a value, where bars on a logarithmic axis start.

    >>> _power_below(0.7), _power_below(12.0)
    (0.1, 10.0)
    """
    return float(10.0 ** math.floor(math.log10(value)))
