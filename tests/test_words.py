"""One thing has one name: private terms that the field has words for stand nowhere as names.

`TERMS` is what the code said before and what it says now. A term is looked for in the names of modules, in identifiers
and in the names of record fields, as whole words of them: ``fold`` is in ``emit_folds`` and in ``FoldedSum``, not in ``folder``.
"""

from __future__ import annotations

import re
import tokenize
from dataclasses import dataclass, field
from functools import cache
from typing import get_args

import pytest

from gquery.planner.physical import GroupLayout, JoinLayout
from tests.support.paths import ROOT

BACK = "planner|operators|execution|kernels|profile"  # where the engine's own terms stand


@dataclass(frozen=True)
class Term:
    """A word that is not used: a regular expression over snake case, the word in its place, and in which rooms it is
    looked for. ``but`` names the files where it is plain English or another field's word, each with the reason."""

    word: str
    now: str
    rooms: str = ".*"
    but: dict[str, str] = field(default_factory=dict)


CONSTANTS = "constants are folded: the compilers' own word"
BUILDER = "a builder is finished, as Arrow's are"
DICTIONARY = "entries of a dictionary of texts"
DECIMAL = "digits of decimal numbers"
TERMS = (
    Term("foreseen|foresees?|unforeseen|outlook", "speculation, misspeculation"),
    Term("halt|halting|halted", "abort flag"),
    Term("asking|confirm|settled?", "scalar readback, validate"),
    Term("row_words|patience", "register pre-aggregation, eviction count", "operators|planner|execution"),
    Term("front|fronts", "thread-local aggregation cache", BACK),
    Term(
        "folds?|folded",
        "accumulate, accumulator",
        but={
            "planner/rules/(fold_constants|simplify)": CONSTANTS,
            "planner/optimizer": CONSTANTS,
            "functions/casts": CONSTANTS,
            "planner/rules/filter_shared": CONSTANTS,
            "expression/exact": "datetime.fold of Python",
            "targets/python_strings": "letters are folded to one case",
        },
    ),
    Term(
        "finish|finished",
        "finalize",
        but={
            "columns/": BUILDER,
            "io/": BUILDER,
            "sql/binding/select": "the last step of a binder",
            "planner/logical/verify": "a plan is finished when its rules have run",
            "planner/optimizer": "a plan is finished when its rules have run",
        },
    ),
    Term("limbs?", "multiword sum"),
    Term("bulk", "pipeline breaker"),
    Term("two_pass", "count then scatter"),
    Term("staged|batched", "interleaved probes, unrolling", "kernels|operators"),
    Term(
        "ahead",
        "hoisted loads",
        "kernels|operators",
        {"kernels/builtin/(gathers|row_scatter)": "READ_AHEAD: bytes that are read beyond an end"},
    ),
    Term("narrowed|selected", "compaction by selection vector", "planner|operators|execution|profile"),
    Term("adapt|adapted|adaptive|fitted|attempted", "runtime specialization"),
    Term("carriers?|phys", "physical type, value properties"),
    Term(
        "packings?|unpack|digits?",
        "key encoding",
        BACK,
        but={
            "kernels/targets/": "struct.unpack; digits of a GPU's version",
            "kernels/primitives/": DECIMAL,
            "planner/rules/exists_by_extremes": DECIMAL,
            "kernels/(ir/|lowering/|unroll|code|parts)": "a tuple is unpacked into variables, as in Python",
        },
    ),
    Term("keyed", "inline keys", BACK),
    Term(
        "(?<!in_)places?|entries|entry",
        "slots",
        "operators|planner/(lower.*|physical|layouts|aggregates)",
        but={"operators/host_rows": DICTIONARY},
    ),
    Term("spread", "column statistics; radix partitioning", "columns|" + BACK),
    Term("in_place", "sparse group array", "planner|operators|execution"),
    Term("runs", "clustered groups", "planner|operators", but={"operators/group": "a target that runs morsels"}),
    Term("share$", "selectivity", "planner|operators|execution|kernels"),
    Term("drivers?", "probe side", "planner"),
    Term("proofs?", "plan properties", "planner"),
    Term("lookups?|postponed", "late materialization", "planner"),
    Term("twins?", "common subplan elimination", "planner"),
    Term("reduce_build|reduce_aggregate_input", "semi-join reduction"),
    Term("aggregate_before_join", "eager aggregation"),
    Term("same_value", "any_value"),
    Term("handwritten", "built-in kernels"),
    Term("encode_rows|decode_rows", "rank encoding"),
    Term("relief|relieve|kept_plans|planned", "eviction callback, plan cache, prepared plan", "api|device|columns|io"),
)


MODULES = re.compile(
    r"(foreseen|front|finish|words|\w+_words|stages|batch|numbers|handwritten|ready|proofs|lookups|spread|in_place)\.py"
    r"|planner/.*statistics\.py"
)
"""Names of modules that were, where the word itself is plain English elsewhere."""
PROSE = ("carriers?", "phys", "limbs?", "handwritten", "kept plans?", "bulk operations?")


def snake(name: str) -> str:
    """
    >>> snake("EmitFolds"), snake("_HELD_FOLDS"), snake("emit_folds")
    ('emit_folds', 'held_folds', 'emit_folds')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_")


@cache
def names() -> dict[str, dict[str, int]]:
    """The identifiers of each module of gquery, in snake case, with the first line of each, and the module's own name."""
    found: dict[str, dict[str, int]] = {}
    for path in sorted((ROOT / "gquery").rglob("*.py")):
        module = path.relative_to(ROOT / "gquery").as_posix()
        mine = found[module] = {snake(path.stem): 0}
        with path.open(encoding="utf-8") as file:
            for token in tokenize.generate_tokens(file.readline):
                if token.type == tokenize.NAME:
                    mine.setdefault(snake(token.string), token.start[0])
    return found


@cache
def all_names() -> frozenset[str]:
    """Most stand in many modules, and are looked at once for each term."""
    return frozenset().union(*names().values())


def uses(term: Term) -> list[str]:
    """Where a term stands in a name."""
    word, rooms = re.compile(rf"(^|_)({term.word})(_|$)"), re.compile(rf"({term.rooms})(/|\.py|$)|^{term.rooms}$")
    found = set(filter(word.search, all_names()))
    return [
        f"gquery/{module}:{mine[name]} {name}"
        for module, mine in names().items()
        if rooms.match(module) and not any(re.search(allowed, module) for allowed in term.but)
        for name in mine
        if name in found
    ]


@pytest.mark.parametrize("term", TERMS, ids=lambda t: t.word.split("|")[0])
def test_a_private_term_is_no_name(term: Term) -> None:
    assert uses(term) == [], f"the field's word: {term.now}"


@cache
def prose() -> dict[str, str]:
    """What is written for readers, and the modules, whose docstrings and errors are."""
    paths = (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "gquery").rglob("*.py"),
    )
    return {p.relative_to(ROOT).as_posix(): p.read_text(encoding="utf-8") for p in paths if p.name != "glossary.md"}


def test_no_module_is_called_so() -> None:
    assert [m for m in names() if MODULES.fullmatch(m.rpartition("/")[2]) or MODULES.fullmatch(m)] == []


def test_layouts_have_the_names_of_the_field() -> None:
    """Direct-address, inline-key and row-id hash tables, sorted rows, as EXPLAIN says them."""
    assert get_args(JoinLayout) == ("one", "loop", "sorted", "direct-address", "hash")
    assert get_args(GroupLayout) == ("direct-address", "hash", "row-id hash")


@pytest.mark.parametrize("word", PROSE)
def test_a_private_term_is_no_term_of_art(word: str) -> None:
    """The terms that mean nothing else in plain English stand in no text either."""
    assert [name for name, text in prose().items() if re.search(rf"\b({word})\b", text, re.I)] == []


@pytest.mark.parametrize("term", [t for t in TERMS if t.but], ids=lambda t: t.word.split("|")[0])
def test_exceptions_are_needed(term: Term) -> None:
    """Each file that is excepted from a term has it, so that the list stays short."""
    word = re.compile(rf"(^|_)({term.word})(_|$)")
    for allowed in term.but:
        assert any(word.search(n) for m, mine in names().items() if re.search(allowed, m) for n in mine), allowed


def test_the_glossary_names_modules() -> None:
    """Each word of the glossary names a module that is there."""
    rows = [line.split("|") for line in (ROOT / "docs/glossary.md").read_text(encoding="utf-8").splitlines()]
    modules = [row[3].strip() for row in rows if len(row) == 5 and "`" in row[3]]
    assert len(modules) > 30
    for module in modules:
        path = ROOT / "gquery" / module.strip("`").replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").is_file(), module


def test_a_term_is_found() -> None:
    """The search sees words of names, not parts of words."""
    assert uses(Term("connection", "")) != [] and uses(Term("onnection", "")) == []
    assert uses(Term("connection", "", rooms="expression")) == []
