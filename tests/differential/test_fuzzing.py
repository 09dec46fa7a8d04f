"""A minute of the fuzzer: random queries interpreted with checked memory, some compiled, some on a GPU.

``FUZZ=50000 make fuzz`` runs more of them. A failing seed is printed with the smallest query that fails like it.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import get_args

import duckdb
import pytest

from gquery.planner.optimizer import RULES
from tests.fuzzing import campaign
from tests.fuzzing.campaign import Campaign
from tests.fuzzing.check import (
    DATA_ERRORS,
    KINDS,
    MACRO,
    Case,
    Engine,
    Kind,
    Outcome,
    are_same_but_for_ties,
    fault,
    make,
    of_seed,
    run,
)  # fmt: skip
from tests.fuzzing.constructs import CONSTRUCTS
from tests.fuzzing.data import INT, tables
from tests.fuzzing.engines import Choice
from tests.fuzzing.grammar import Grammar
from tests.fuzzing.names import Name
from tests.fuzzing.shrink import shrink
from tests.fuzzing.sizes import TABLE, Sizes
from tests.fuzzing.tape import Tape
from tests.support.faults import break_primitives
from tests.support.harness import compare, oracle

COUNT = int(os.environ.get("GQUERY_FUZZ", "60"))
BATCH = 20
_READS = ("query", "windows", "groups")
OPTIONAL = sorted(rule.name for rule in RULES if not rule.required)


seeded = cache(of_seed)  # several tests look at the same thousands


def check(seed: int, engine: Engine) -> str:
    case = of_seed(seed)
    try:
        outcome = run(case, engine)
        verdict, said = str(outcome.verdict), outcome.said
    except Exception as error:
        verdict, said = "different", f"{type(error).__name__}: {error}"
    if verdict == "different":
        small = shrink(case, engine, 300)
        text = "\n".join(small.sql)
        pytest.fail(f"seed {seed}, tables {case.sets}, {engine}: {said}\nthe smallest that fails like it:\n{text}")
    return verdict


@pytest.mark.parametrize("batch", range(max(1, COUNT // BATCH)))
def test_interpreted(batch: int) -> None:
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        check(seed, Engine("python", 1 + 2 * (seed % 2), writes=seed % 10 == 0))


@pytest.mark.parametrize("batch", range(max(1, COUNT // 3 // BATCH)))
def test_with_a_rule_switched_off(batch: int) -> None:
    for seed in range(1_000_000 + batch * BATCH, 1_000_000 + (batch + 1) * BATCH):
        check(seed, Engine("python", 1 + 2 * (seed % 2), OPTIONAL[seed % len(OPTIONAL)]))


@pytest.mark.parametrize("seed", range(2_000_000, 2_000_000 + max(4, COUNT // 12)))
def test_compiled(seed: int) -> None:
    check(seed, Engine("cpu", 1 + 2 * (seed % 2)))


@pytest.mark.cuda
@pytest.mark.parametrize("batch", range(30))
def test_on_a_gpu(batch: int) -> None:
    for seed in range(3_000_000 + batch * 10, 3_000_000 + (batch + 1) * 10):
        check(seed, Engine("cuda", 1 + 2 * (seed % 2)))


# ---- the fuzzer itself -------------------------------------------------------------------------------------------


def test_the_same_rows_may_be_numbered_in_two_ways() -> None:
    """By two windows, if there are such rows: what each of them gives is the same, and so is the number of rows of QUALIFY."""
    case = Case("windows", 0, ("SELECT",), False, (), ("SELECT",), ties="SELECT TRUE")
    types, want = ["INTEGER", "INTEGER"], [(1, 1), (2, 2)]
    assert are_same_but_for_ties(case, [(1, 2), (2, 1)], want, types)
    assert not are_same_but_for_ties(case, [(1, 2), (2, 2)], want, types)
    assert not are_same_but_for_ties(replace(case, ties="SELECT FALSE"), [(1, 2), (2, 1)], want, types)
    assert not are_same_but_for_ties(replace(case, ties=""), [(1, 2), (2, 1)], want, types)
    qualified = replace(case, sql=("SELECT QUALIFY",))
    assert are_same_but_for_ties(qualified, [(1, 2), (3, 1)], want, types)
    assert not are_same_but_for_ties(qualified, [(1, 2)], want, types)


def test_whether_rows_are_the_same_is_asked_of_windows_with_several_orders() -> None:
    cases, answers = [case for seed in range(3000) if (case := seeded(seed)).ties], set()
    for case in cases:
        with suppress(*DATA_ERRORS):  # of a condition of its rows: then the query fails too
            answers.update(oracle(tables(case.sets)).execute(case.ties).fetchall())
    assert {case.kind for case in cases} == {"windows"} and answers == {(True,), (False,)}


def test_integers_that_are_decimals_are_told_in_scripts_too() -> None:
    sql = ("CREATE OR REPLACE TABLE z AS SELECT i8, eu64 FROM r", "SELECT greatest(i8, eu64) FROM z")
    assert run(Case("changes", 0, sql, False, (), sql), Engine()) == Outcome("same")


def test_rows_of_a_script_are_those_without_a_fault_of_the_oracle() -> None:
    """DuckDB's optimizer drops the rows where it knows that all values are NULL."""
    make_z, change = "CREATE OR REPLACE TABLE z AS SELECT NULL::BOOLEAN AS b FROM r", "UPDATE z SET b = TRUE WHERE {}"
    sql = (make_z, change.format("b IS NOT TRUE OR b IS TRUE"))
    assert run(Case("changes", 0, sql, False, (), sql), Engine()) == Outcome("same")
    other = (make_z, change.format("b IS TRUE"))
    assert run(Case("changes", 0, sql, False, (), other), Engine()).verdict == "different"


def test_no_transaction_outlives_a_script() -> None:
    sql = ("BEGIN", "SELECT CAST(str AS INTEGER) FROM r")
    for _ in range(2):  # the second could not begin another
        assert run(Case("changes", 0, sql, True, (), sql), Engine()) == Outcome("both fail")
    theirs = oracle(tables(0))
    with pytest.raises(duckdb.TransactionException):
        theirs.execute("ROLLBACK")


def test_parts_of_conditions_that_others_decide_may_fail_in_one_engine() -> None:
    """As documented. Of one part alone they may not: all rows of a table are computed."""
    engine, fails = Engine(), "CAST(f32 AS UBIGINT) - 1000000"
    for predicate, may in (
        ("{} = 5", False),
        ("(2, {}) = (3, 0)", True),
        ("(i8 IS NULL AND i8 IS NOT NULL AND {} = 5)", True),
    ):
        sql = (f"SELECT {predicate.format(fails)} AS c0 FROM r",)
        case = Case("flat", 40, sql, True, (), sql)
        assert run(case, engine).verdict == ("different" if may else "both fail")
        assert run(replace(case, skips=True), engine).verdict == ("one fails" if may else "both fail")
    cases = [c for c in map(seeded, range(3000)) if c.kind == "flat"]
    assert {c.skips for c in cases} == {True, False}
    assert all(c.skips for c in cases if re.search(r"\) (AND|OR) \(", c.sql[0]))


def test_what_may_fail_is_told() -> None:
    """Arithmetic of a column that a query made; a constant that no cast takes fails as a statement, so none is made."""
    grammar = Grammar(Tape(1))
    grammar.column(INT, (Name("x.i8", INT),), (), small=True)
    assert not grammar.fails
    grammar.column(INT, (Name("x.c0", INT, made=True),), (), small=True)
    assert grammar.fails
    assert not any(re.search(r"(?<!TRY_)CAST\('[^']*' AS", text) for seed in range(500) for text in seeded(seed).sql)


def test_what_reads_the_widest_numbers_may_fail() -> None:
    """Beside a number with more of a fraction, wherever it stands."""
    cases = [c for c in map(seeded, range(1500)) if any(".ed38" in text for text in c.sql)]
    assert len(cases) > 20
    assert all(c.fails for c in cases)


def test_no_query_multiplies_what_is_large() -> None:
    """A product of three tables is drawn, of two such products none; within a subquery less, as it is asked for each row."""
    sizes, three = Sizes(), TABLE**3
    assert sizes.joined(TABLE**2, TABLE, "CROSS JOIN", "") == three
    assert sizes.joined(three, TABLE, "JOIN", "a.x IS NULL OR a.x = b.x") is None
    assert sizes.joined(three, 3.0, "LEFT JOIN", "a.x = b.x AND a.y > b.y") == three
    assert sizes.joined(three, 3.0, "SEMI JOIN", "a.x < b.x") == three
    assert sizes.joined(three, three, "ANTI JOIN", "a.x < b.x") is None
    with sizes.within(three):
        assert sizes.fit(TABLE) and not sizes.fit(TABLE**2)
    assert sizes.fit(TABLE**2)


def test_rows_that_differ_in_late_digits_are_paired() -> None:
    """They stand in any order; a digit that is compared is not lost by that."""
    want = [(1, 6.116406827), (1, 6.116406169), (2, 1.0), (1, None)]
    types = ["INTEGER", "DOUBLE"]
    assert compare([want[1], want[3], want[0], want[2]], want, False, types) is None
    assert compare([want[1], want[3], (1, 6.1164065), want[2]], want, False, types) is not None
    assert compare([want[1], want[3], want[1], want[2]], want, False, types) is not None


def test_most_queries_are_sql_and_find_rows() -> None:
    """As DuckDB takes them: whether gquery does, the tests above tell."""
    outcomes: Counter[str] = Counter()
    for case in (c for c in map(seeded, range(300)) if c.kind not in ("tlp", "norec")):
        oracle(tables(case.sets)).execute(MACRO)
        try:
            outcomes["rows" if oracle(tables(case.sets)).execute(case.theirs[0]).fetchall() else "none"] += 1
        except duckdb.Error as error:
            outcomes["fails" if isinstance(error, DATA_ERRORS) else "invalid"] += 1
    assert outcomes["invalid"] <= 0.05 * outcomes.total()
    assert outcomes["rows"] >= 0.5 * outcomes.total()


def test_every_construct_comes_up() -> None:
    """In what is said to be random queries of them: a pattern that finds nothing would count for nothing."""
    missing = set(CONSTRUCTS)
    for seed in range(6_000):
        texts = seeded(seed).sql
        missing.difference_update([c for c in missing if any(CONSTRUCTS[c].search(text) for text in texts)])
        if not missing:
            break
    assert not missing


def test_a_seed_makes_the_same_query() -> None:
    assert of_seed(5) == of_seed(5)
    case = of_seed(8)
    assert make(case.kind, case.sets, Tape(numbers=case.tape)) == case, "and its tape too"
    assert set(KINDS) == set(get_args(Kind))
    assert all(table.num_columns > 20 for table in tables(1).values())


@pytest.mark.slow
def test_many_processes_count_together() -> None:
    total = Campaign(7_000_000, 7_000_030, 2, 300, Choice(rules=True)).run()
    assert total.outcomes.total() == 30
    assert sum(total.engines.values()) == 30
    assert not total.faults
    assert total.constructs["join"] >= 10
    assert any("join" in line for line in total.table(1.0))


@pytest.mark.slow
def test_a_seed_that_takes_too_long_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process goes on behind it."""
    monkeypatch.setattr(campaign, "_BUSY", 0.01)
    total = Campaign(0, 2, 1, 300, Choice()).run()
    assert [f.partition(" after")[0] for f in total.faults] == ["seed 0 has not ended", "seed 1 has not ended"]
    assert total.outcomes["crashed"] == 2


@pytest.mark.faulty
def test_a_fault_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of kernels that take all doubles for one: the query that is left groups, joins or orders by some, and does little else. Of
    integers no loop would end, as searches compare and count with them."""
    break_primitives(monkeypatch, {"f64_order": lambda x: 0})
    failing = next(c for c in map(seeded, range(500)) if c.kind in _READS and fault(c, Engine()) is not None)
    small = shrink(failing, Engine(), 40)
    assert fault(small, Engine()) is not None
    assert len(small.sql[0]) <= len(failing.sql[0])
