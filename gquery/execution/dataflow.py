"""What the stages of a program read of each other and of tables: found out once a program, asked in each run."""

from __future__ import annotations

from copy import copy

from gquery.planner.physical import HostRows, Pipeline, PipelineBreaker, Probe, Program, RankEncode, ReadTable
from gquery.planner.stage_inputs import stage_inputs
from gquery.runtime.records import cached_property

Work = Pipeline | PipelineBreaker


class Dataflow:
    """That of one program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._works = [stage.work for stage in program.stages]
        self._fields: dict[frozenset[int], dict[int, list[int]]] = {}

    def of_like(self, program: Program) -> Dataflow:
        """That of a program with other constants alone, whose stages read the same."""
        made = copy(self)
        made.program = program
        return made

    @cached_property
    def released(self) -> list[list[int]]:
        """By stage, those whose results no later stage reads; the last stage's is the program's."""
        last: dict[int, int] = {}
        for number, inputs in enumerate(self._inputs):
            last |= dict.fromkeys(inputs, number)
        return [[n for n, reader in last.items() if reader == number] for number in range(len(self._works))]

    @cached_property
    def readers(self) -> list[list[Work]]:
        """By stage, the work that reads its columns, that which reads them beside their ranks too."""
        found: list[list[Work]] = [[] for _ in self._works]
        for number in reversed(range(len(self._works))):
            for later in range(number + 1, len(self._works)):
                if number in self._inputs[later]:
                    work = self._works[later]
                    found[number] += [work, *found[later]] if isinstance(work, RankEncode) else [work]
        return found

    @cached_property
    def null_tested(self) -> frozenset[int]:
        """The join tables of which a probe asks if a build key is NULL, by their stages."""
        steps = [step for work in self._works if isinstance(work, Pipeline) for step in work.steps]
        return frozenset(s.table.stage for s in steps if isinstance(s, Probe) and s.null_key)

    def fields(self, left: frozenset[int] = frozenset()) -> dict[int, list[int]]:
        """The fields of each table that are read, by the id of its source; not by the stages that are ``left`` to others."""
        known = self._fields.get(left)
        if known is None:
            found: dict[int, set[int]] = {}
            for number, work in enumerate(self._works):
                if number not in left and isinstance(work, Pipeline | HostRows) and isinstance(work.source, ReadTable):
                    found.setdefault(id(work.source.source), set()).update(work.source.fields)
            known = self._fields[left] = {source: sorted(fields) for source, fields in found.items()}
        return known

    @cached_property
    def _inputs(self) -> list[list[int]]:
        return [stage_inputs(work) for work in self._works]
