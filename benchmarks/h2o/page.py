"""The page: bars of the hot times by question and engine, in one file that fetches nothing."""

from __future__ import annotations

from collections.abc import Sequence

COLOURS = ("#0b7a75", "#f2a541", "#7d6bb3", "#9a9a9a")


def page(path: str, rows: int, times: Sequence[tuple[str, str, float]], what: str = "hot") -> None:
    """Write a plot of (question, engine, seconds), of ``what``, as HTML, or as SVG where the path ends so."""
    import altair as alt

    values = [{"question": q, "engine": e, "ms": s * 1e3} for q, e, s in times]
    least = 500 * min(s for _, _, s in times)
    order, engines = list(dict.fromkeys(q for q, _, _ in times)), list(dict.fromkeys(e for _, e, _ in times))
    chart = (
        alt.Chart(
            alt.InlineData(values=values),
            title=f"db-benchmark's questions, {rows:,} rows, {what}",
            width=1020,
            height=260,
        )
        .mark_bar()
        .encode(
            x=alt.X("question:N", sort=order, title=None),
            xOffset=alt.XOffset("engine:N", sort=engines),
            y=alt.Y("ms:Q", title="ms, logarithmic", scale=alt.Scale(type="log", domainMin=least), stack=None),
            y2=alt.datum(least),
            color=alt.Color("engine:N", sort=engines, scale=alt.Scale(range=list(COLOURS)), title=None),
            tooltip=["question:N", "engine:N", alt.Tooltip("ms:Q", format=",.1f")],
        )
    )
    chart.save(path, **({} if path.endswith(".svg") else {"inline": True}))
