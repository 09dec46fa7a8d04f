"""Pages of the reference that are made from declarations: SQL, its functions, and settings."""

from __future__ import annotations

import re
from pathlib import Path

import gquery.functions  # declares them all
import gquery.settings
from gquery.functions.aggregates import AGGREGATES
from gquery.functions.registry import DOCS, EXAMPLES, SIGNATURES, declare_all
from gquery.functions.windows import WINDOWS
from gquery.sql.surface import SURFACE

declare_all()

SUBJECTS = {
    "conditional": "Conditional",
    "dates": "Dates and times",
    "numeric": "Numbers",
    "operators": "Operators",
    "strings": "Text",
    "regex": "Regular expressions",
}
# modules that declare functions of another's subject
SUBJECT_OF = {"new_strings": "strings", "date_names": "dates", "rounding": "numeric"}
OPERATOR_NAMES = {
    "add": "a + b", "subtract": "a - b", "multiply": "a * b", "divide": "a / b", "int_divide": "a // b",
    "modulo": "a % b", "negate": "-a", "eq": "a = b", "ne": "a <> b", "lt": "a < b", "le": "a <= b", "gt": "a > b",
    "ge": "a >= b", "is_distinct_from": "a IS DISTINCT FROM b", "is_not_distinct_from": "a IS NOT DISTINCT FROM b",
    "like": "a LIKE b", "ilike": "a ILIKE b",
}  # fmt: skip


def write(folder: Path) -> None:
    """Write every page into a folder."""
    folder.mkdir(exist_ok=True)
    for name, text in (("functions.md", functions()), ("settings.md", settings()), ("sql.md", sql())):
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def functions() -> str:
    """A table a subject: names, signatures, what it does, an example with its value."""
    modules = {n: module.rpartition(".")[2] for n, (module, _) in DOCS.items() if not n.startswith("_")}
    sources = {n: SUBJECT_OF.get(m, m) for n, m in modules.items()}
    parts = []
    for subject, title in SUBJECTS.items():
        names = sorted(n for n, s in sources.items() if s == subject)
        if names:
            parts.append(
                f"## {title}\n\n| function | what it does | example |\n|---|---|---|\n" + "".join(map(_row, names))
            )
    return "\n".join(parts) + "\n" + _aggregates() + _windows()


def settings() -> str:
    """A row a field of `Settings`: its comment is its documentation."""
    text = Path(gquery.settings.__file__).read_text()
    rows = re.findall(r"^    (\w+): ([^=\n]+) = ([^#\n]+?)  # (.+)$", text, re.M)
    lines = [f"| `{name}` | `{kind.strip()}` | `{default}` | {_cell(doc)} |" for name, kind, default, doc in rows]
    return "| setting | type | default | what it is |\n|---|---|---|---|\n" + "\n".join(lines) + "\n"


def sql() -> str:
    """A table a subject: what can be written, and a statement that shows it."""
    parts = []
    for subject, constructs in SURFACE.items():
        rows = "".join(f"| {c.name} | `{_cell(c.sql)}` |\n" for c in constructs)
        parts.append(f"## {subject}\n\n| what | for example |\n|---|---|\n{rows}")
    return "\n".join(parts)


def _row(name: str) -> str:
    shown = f"`{OPERATOR_NAMES[name]}`" if name in OPERATOR_NAMES else f"`{name}`"
    signatures = "<br>".join(f"`{_cell(s)}`" for s in dict.fromkeys(SIGNATURES[name]))
    doc = _cell(DOCS[name][1])
    examples = "<br>".join(f"`{_cell(sql)}` is `{_cell(value)}`" for n, sql, value in EXAMPLES if n == name)
    return f"| {shown} | {signatures}{'<br>' if doc else ''}{doc} | {examples} |\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _aggregates() -> str:
    rows = []
    for a in AGGREGATES.values():
        signatures = "<br>".join(f"`{_cell(s)}`" for s in a.signatures)
        name = a.signatures[0].partition("(")[0]
        rows.append(f"| `{name}` | {signatures}<br>{_cell(a.doc)} | `{_cell(a.example[0])}` |\n")
    head = "Each takes `DISTINCT` and `FILTER (WHERE ...)`, and passes over NULLs.\n\n| aggregate | what it does | example |"
    return f"\n## Aggregates\n\n{head}\n|---|---|---|\n{''.join(rows)}"


def _windows() -> str:
    rows = []
    for w in WINDOWS.values():
        signatures = "<br>".join(f"`{_cell(s)}`" for s in w.signatures)
        rows.append(f"| `{w.name}` | {signatures}<br>{_cell(w.doc)} | `{_cell(w.example[0])}` |\n")
    text = """Each stands before `OVER`, as do aggregates that sums, counts or extremes make. A window is `PARTITION BY`,
`ORDER BY` and a frame, each of which may be left out; `WINDOW name AS (...)` names one, and `QUALIFY` filters by the results."""
    return f"\n## Window functions\n\n{text}\n\n| function | what it does | example |\n|---|---|---|\n{''.join(rows)}"
