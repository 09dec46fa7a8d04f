"""The table of rules, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, log

from benchmarks.rules.measure import Firing, Refused
from benchmarks.rules.workloads import Workload
from gquery.planner.optimizer import RULES

KEPT = {  # rules that no query of the workloads needs, with what they are for
    "recursive_steps": "it plans what a recursion does in each round, which none of the queries has",
    "draw_random": "it gives random() a row's own number, which none of the queries asks for",
    "comparison_keys": "it compares intervals and lists by keys, and none of the queries has any",
    "nested_conditions": "it tests conditions of outer joins that look into lists of both sides, which none of the queries has",
    "fix_moment": "it gives now() and current_date one moment a query, which none of the queries asks for",
    "group_by_arguments": "`GROUP BY strftime(ts, '%Y-%m')` of 2 M rows takes 8 times as long without it, a text joined of two "
    "columns 33 times; none of the queries groups by a text that the host makes of other values",
    "number_rows": "`count(*)` of 10 M rows joined with the rows before them by `rowid` takes 37 times as long without it, "
    "a filter on `rowid` 6 times",
    "anti_join": "`LEFT JOIN orders ... WHERE o_custkey IS NULL` over TPC-H's customers takes 3.0 times as long without it "
    "(scale factor 1, processor time); the workloads write NOT EXISTS",
    "propagate_empty": "a join with a relation that is empty whatever the data, as generated text has them, reads neither "
    "side: lineitem with `orders WHERE 1 = 0` takes 14 times as long without it",
}
SHOWN = 8  # queries of one workload that are named
HEAD = """# What each optimizer rule gains

`python -m benchmarks.rules --write docs/reference/rules.md` writes this page. A number below a workload counts the queries
that the rule changes. *Matters* counts those whose finished plan is another one without the rule. *Rows* is what leaving
it out costs by the optimizer's own estimate: the rows of all operators of the finished plan without the rule over those with
it, the geometric mean over the queries where it matters. *Bytes* and *time* are the same quotients of what kernels read and
write, and of processor time, measured over {run}; *most* is the query that loses most. Above 1 the rule wins.
"""


def markdown(workloads: Sequence[Workload], found: Iterable[Firing | Refused], run: str) -> str:
    """The page: the table, the queries behind it, and what the workloads are."""
    found = list(found)
    fired = [f for f in found if isinstance(f, Firing)]
    names = [w.name for w in workloads]
    head = ["rule", *names, "matters", "rows", "bytes", "time", "most"]
    lines = [HEAD.format(run=run), "|" + "|".join(head) + "|", "|" + "---|" * len(head)]
    for rule in RULES:
        of_rule = [f for f in fired if f.rule == rule.name]
        counts = [str(sum(f.workload == n for f in of_rule) or "") for n in names]
        name = f"`{rule.name}`" + (" (required)" if rule.required else "")
        lines.append("|" + "|".join([name, *counts, *_gains(of_rule)]) + "|")
    lines += ["", "## Queries", ""]
    for rule in RULES:
        parts = [_named(n, [f.query for f in fired if f.rule == rule.name and f.workload == n]) for n in names]
        lines.append(f"- `{rule.name}`: {'; '.join(p for p in parts if p) or 'none'}")
    unused = [r.name for r in RULES if not any(f.rule == r.name for f in fired)]
    lines += ["", "## Rules that none of these queries needs", ""]
    lines += [f"- `{name}`: {KEPT.get(name, 'nothing is known of its use')}." for name in unused]
    lines += ["", "## Workloads", ""]
    for w in workloads:
        refused = [r for r in found if isinstance(r, Refused) and r.workload == w.name]
        lines.append(f"- {w.name}: {len(w.texts) - len(refused)} of {len(w.texts)} queries, {w.data}.")
        reasons = dict.fromkeys(r.reason for r in refused)
        lines += [f"  - {', '.join(r.query for r in refused if r.reason == why)}: {why}" for why in reasons]
    return "\n".join(lines) + "\n"


def _gains(fired: list[Firing]) -> list[str]:
    mattering = [f for f in fired if f.matters]
    rows = [f.rows_without / max(f.rows, 1.0) for f in mattering if f.rows_without is not None]
    ran = [(f, f.cost, f.cost_without) for f in mattering if f.cost is not None and f.cost_without is not None]
    times = [without.seconds / cost.seconds for _, cost, without in ran]
    moved = [max(without.bytes, 1) / max(cost.bytes, 1) for _, cost, without in ran]
    most = max(ran, key=lambda r: r[2].seconds / r[1].seconds, default=None)
    text = "" if most is None else f"{most[0].workload} {most[0].query}: {most[2].seconds / most[1].seconds:.2f}"
    return [str(len(mattering) or ""), _mean(rows), _mean(moved), _mean(times), text]


def _mean(factors: list[float]) -> str:
    return f"{exp(sum(log(max(f, 1e-9)) for f in factors) / len(factors)):.3g}" if factors else ""


def _named(workload: str, names: list[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{workload} {', '.join(names[:SHOWN])}{more}"
