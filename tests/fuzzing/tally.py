"""What has come of many seeds: verdicts, faults, how often each construct and each rule has run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gquery.errors import NotSupportedError
from tests.fuzzing.check import Engine, of_seed, run
from tests.fuzzing.constructs import CONSTRUCTS, constructs_of
from tests.fuzzing.data import SETS
from tests.fuzzing.engines import Choice, engine_of
from tests.fuzzing.shrink import shrink


@dataclass
class Tally:
    """Of one process, or of all together."""

    outcomes: Counter[str] = field(default_factory=Counter)
    constructs: Counter[str] = field(default_factory=Counter)  # in queries with DuckDB's rows
    rules: Counter[str] = field(default_factory=Counter)  # switched off in queries with DuckDB's rows
    engines: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    invalid: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)  # what gquery has not
    answered: Counter[str] = field(default_factory=Counter)  # what DuckDB does not take, by what it says
    failed: Counter[str] = field(default_factory=Counter)  # what DuckDB answers and may fail, by what gquery says

    def add(self, other: Tally) -> None:
        """Take in what another has counted."""
        for mine, theirs in zip(self._counters(), other._counters(), strict=True):
            mine.update(theirs)
        self.faults += other.faults
        self.invalid += other.invalid

    def _counters(self) -> tuple[Counter[str], ...]:
        return self.outcomes, self.constructs, self.rules, self.engines, self.refused, self.answered, self.failed

    def seed(self, seed: int, choice: Choice, tries: int) -> str:
        """Run a seed. What is wrong with it, and the smallest statement found in so many tries; nothing where all is well."""
        shape, number = divmod(seed, choice.sets)
        case, engine = of_seed(shape), engine_of(shape, choice)
        case = replace(case, sets=(case.sets + number) % SETS)
        try:
            outcome = run(case, engine)
            verdict, said = str(outcome.verdict), outcome.said
        except NotSupportedError as error:
            verdict, said = "refused", str(error).partition("\n")[0]
            self.refused[re.sub(r"'[^']*'|\d+", "_", said)[:120]] += 1
            self.invalid.append(f"seed {seed} is refused: {said[:200]}")
        except Exception as error:
            verdict, said = "different", f"{type(error).__name__}: {error}"
        self.outcomes[verdict] += 1
        self.engines[_shown(engine)] += 1
        if verdict == "same":
            self.constructs.update(constructs_of(*case.sql))
            self.rules.update([engine.disabled] if engine.disabled else ())
        if verdict in ("invalid", "answered"):
            self.invalid.append(f"seed {seed} is {'no SQL' if verdict == 'invalid' else 'SQL here alone'}: {said[:200]}")
        if verdict == "answered":
            self.answered[_kind(said)] += 1
        if verdict == "one fails" and said.startswith("we fail: "):
            self.failed[_kind(said)] += 1
        if verdict != "different":
            return ""
        small = shrink(case, engine, tries) if tries else case
        self.faults.append("\n  ".join((f"seed {seed}, tables {case.sets}, {engine}: {said[:400]}", *small.sql)))
        return self.faults[-1]

    def table(self, seconds: float) -> Sequence[str]:
        """The lines that say all of it; constructs and rules begin with the rarest."""
        total = self.outcomes.total()
        lines = [f"{self.constructs[c]:8} {c}" for c in sorted(CONSTRUCTS, key=lambda c: (self.constructs[c], c))]
        lines += [f"{n:8} without {rule}" for rule, n in sorted(self.rules.items(), key=lambda x: x[1])]
        lines += [f"{n:8} on {engine}" for engine, n in sorted(self.engines.items())]
        lines += ["", *self.invalid[:5], "", *self.faults, ""]
        lines += [f"{n:8} answered where DuckDB says: {said}" for said, n in self.answered.most_common()]
        lines += [f"{n:8} {said}, where DuckDB answers" for said, n in self.failed.most_common()]
        rare = [c for c in CONSTRUCTS if self.constructs[c] < 0.005 * total]
        lines.append(f"\n{len(rare)} of {len(CONSTRUCTS)} constructs in fewer than one query in 200")
        few = [f"{c} {self.constructs[c]}" for c in CONSTRUCTS if self.constructs[c] < 500]
        refused = "; ".join(f"{why}: {n}" for why, n in self.refused.most_common(5)) or "nothing"
        lines.append(
            f"{total} seeds in {seconds:.0f} s: {len(self.faults)} differences, {self.outcomes['crashed']} of them crashed or "
            f"never ended; {dict(self.outcomes)}; refused: {refused}; constructs in fewer than 500: {len(few)} of "
            f"{len(CONSTRUCTS)}{': ' if few else ''}{', '.join(few[:40])}"
        )
        return lines


def _kind(said: str) -> str:
    """A message without its names, texts and numbers."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|\d+", "_", said.partition("\n")[0])[:160]


def _shown(engine: Engine) -> str:
    kind = f"{engine.target}, {engine.ranks} rank{'s' * (engine.ranks > 1)}"
    return (
        kind
        + (", in parts" if engine.in_parts else "")
        + (", of files" if engine.is_stored else "")
        + (", and a GPU's kernels written" if engine.writes else "")
    )
