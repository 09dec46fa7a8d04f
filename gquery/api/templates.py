"""Templates: plans that serve all texts of one shape, with other constants, as long as their guards hold.

A text that is planned is cut (`gquery.sql.cut`), and a recorder keeps the guards of its plan. Another text of the same shape
gets the same program with its own constants. Kernels have guards of their own (`execution.shared_units.SharedUnits`): they
are written when a program runs, for the values that it has then.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from contextlib import AbstractContextManager
from dataclasses import field
from typing import TYPE_CHECKING, Any

from gquery import tuning
from gquery.api.plan_cache import Parameters, PreparedPlan
from gquery.expression.slots import Recorder, SlotValues, pin, shown
from gquery.runtime.records import cached_property, dataclass
from gquery.settings import Settings

if TYPE_CHECKING:
    from gquery.execution.feedback import RunFeedback
    from gquery.expression.expr import Literal
    from gquery.planner.physical import Program
    from gquery.planner.rebind import Rebinding
    from gquery.sql.cut import Shape, TextSlots
    from gquery.sql.known_shapes import KnownShapes
    from gquery.sql.lexer import Lexed


@dataclass(frozen=True)
class Question:
    """A text that may have a template: its shape, its parameters as literals, and the key of all texts like it."""

    shape: Shape
    parameters: Mapping[str, Literal]
    key: Hashable
    tokens: Lexed | None = field(default=None, repr=False)  # of a text that was lexed, until it is parsed


@dataclass(eq=False)
class Template:
    """A plan, the slots of its text, and its guards. It serves nobody before it was lowered."""

    question: Question
    slots: TextSlots
    reason: str  # why it was made
    recorder: Recorder = field(default_factory=Recorder)
    prepared: PreparedPlan | None = None
    served: int = 0  # texts, of late
    _program: Rebinding[Program] | None = None

    def planning(self) -> AbstractContextManager[Recorder]:
        """Within it, what is made rests on the template's guards."""
        return self.slots.slots.recording(self.recorder)

    def pin(self) -> None:
        """The plan serves no other constants."""
        pin([self.slots.literal(n) for n in range(self._count)])

    def lowered(self, prepared: PreparedPlan, program: Program) -> None:
        """The program is made: kernels of it have guards of their own."""
        from gquery.execution.feedback import Shared, TemplateProgress
        from gquery.execution.shared_units import SharedUnits
        from gquery.execution.stage_scalars import StageScalars

        self.slots.slots.is_closed = True
        self.recorder.made_for = values = SlotValues([shown(self.slots.literal(n)) for n in range(self._count)])
        prepared.feedback.shared = Shared(
            SharedUnits(self.slots.slots), StageScalars(program), values, TemplateProgress()
        )

    @cached_property
    def _fixed(self) -> frozenset[int]:
        """The constants of the text that are no slots."""
        cut = {n for places in self.slots.tokens.values() for n in places}
        return frozenset(range(len(self.slots.shape.constants))) - cut

    @property
    def _count(self) -> int:
        return len(self.slots.tokens) + len(self.slots.parameters)

    def _rebinding(self, made: PreparedPlan) -> Rebinding[Program]:
        from gquery.planner.rebind import Rebinding

        if self._program is None:
            assert made.program is not None
            self._program = Rebinding(made.program)
        return self._program

    def fill(self, question: Question) -> SlotValues | str:
        """The values that a text gives the slots; what is in the way where it cannot be served."""
        from gquery.sql.cut import value_of

        texts, own = question.shape.constants, self.slots.shape.constants
        for n in self._fixed:
            if texts[n] != own[n]:
                return f"{own[n]} is part of the plan, not {texts[n]}"
        given: list[Any] = [None] * self._count
        for number, places in self.slots.tokens.items():
            text = texts[places[0]]
            if len(places) > 1 and any(texts[n] != text for n in places):
                return f"{own[places[0]]} stands in several places, which now differ"
            given[number] = value_of(text)
        for number, name in self.slots.parameters.items():
            given[number] = question.parameters[name].value
        values = SlotValues(given, near=self.recorder.made_for)
        failed = self.recorder.failed(values)
        return values if failed is None else str(failed)

    def is_current(self, catalog_version: int) -> bool:
        """Whether the plan was made of the tables as they are. A file that is not there any more is an error for who asks for it
        alone."""
        from gquery.errors import FileError

        made = self.prepared
        try:
            return made is not None and made.is_current(catalog_version)
        except FileError:
            return False

    def release(self) -> None:
        """Let go of the plan, which is never current again. It holds the template, so that neither would go before the collector
        comes by."""
        self.prepared = None
        self._program = None

    def plan(self, values: SlotValues, catalog_version: int) -> PreparedPlan | None:
        """The plan for other values; None where the tables are not as they were."""
        from gquery.planner.rebind import rebound
        from gquery.runtime.nesting import with_room

        made = self.prepared
        if made is None or not self.is_current(catalog_version):
            return None
        return PreparedPlan(
            lambda: with_room(lambda: rebound(made.made(), values)),
            lambda _: with_room(lambda: rebound(made.query, values)),
            made.settings,
            made.sources,
            made.versions,
            made.catalog_version,
            ProgramOfTemplate(made, self._rebinding(made), values),
            template="hit",
            outline=made.outline or made.made,
        )


class ProgramOfTemplate:
    """The program of a template's plan with other values, which is made when somebody asks for it."""

    def __init__(self, made: PreparedPlan, rebinding: Rebinding[Program], values: SlotValues) -> None:
        assert made.feedback.shared is not None, "a template's plan"
        self.values, self.replay = values, made.feedback.shared.replay
        self._made, self._rebinding = made, rebinding
        self.has_played = False

    def bound(self) -> tuple[Program, RunFeedback]:
        """See `LaterProgram`."""
        from gquery.planner.later import bound_later

        program = bound_later(self._rebinding, self.values)
        feedback = self._made.feedback.for_values(self.values, program)
        feedback.replay.runs = int(self.has_played)
        return program, feedback


class Templates:
    """The templates of the texts that were asked last, by shape, types of parameters and settings; several of one shape where
    constants decide how it is planned."""

    def __init__(self) -> None:
        self._found: OrderedDict[Hashable, tuple[Template, ...]] = OrderedDict()
        self._lock = threading.RLock()  # what goes meanwhile may run code that comes back here
        self._shapes: KnownShapes | None = None

    def question(self, text: str, params: Parameters, settings: Settings) -> Question | None:
        """What is asked; None for a text without tokens, and for parameters that cannot be kept."""
        from gquery.errors import ParseError, ProgrammingError
        from gquery.sql.cut import parameter_types, shape_of
        from gquery.sql.known_shapes import KnownShapes
        from gquery.sql.lexer import lex
        from gquery.sql.types import python_literals

        if not text.lstrip()[:6].lower().startswith(("select", "with", "(")):
            return None
        if self._shapes is None:
            self._shapes = KnownShapes()
        tokens = None
        try:
            shape = self._shapes.find(text)
            if shape is None:
                tokens = lex(text)
                shape = shape_of(tokens, text)
                self._shapes.keep(text, shape)
            literals = python_literals(params)
            key = (shape.key, parameter_types(literals), settings)
            hash(key)
        except (ParseError, ProgrammingError, TypeError):  # it is told when the text is bound
            return None
        return Question(shape, literals, key, tokens)

    def find(self, question: Question, catalog_version: int) -> PreparedPlan | str:
        """A plan for a text, or why there is none."""
        reason, templates = "none of this shape", self._found.get(question.key, ())
        for template in templates:
            made = template.prepared
            if made is None or made.program is None:
                continue
            found = template.fill(question)
            if isinstance(found, str):
                reason = found
            elif (plan := template.plan(found, catalog_version)) is not None:
                template.served += 1
                if template.served > templates[0].served:
                    self._reorder(question.key, templates)
                return plan
            else:
                reason = "a table has changed"
        return f"miss ({reason})"

    def keep(self, template: Template, prepared: PreparedPlan) -> None:
        """Keep the template of a plan, as the last of its shape: constants that come rarely had it made, and most are served by
        the others, too, whose kernels are compiled and whose runs are recorded."""
        template.prepared, version, key = prepared, prepared.catalog_version, template.question.key
        prepared.template = template.reason
        with self._lock:
            others = [t for t in self._found.pop(key, ()) if t.is_current(version)]
            for other in others:  # those that serve no more are the first to go
                other.served //= 2
            others.sort(key=_rarity)
            self._found[key] = (*others[: tuning.memory.templates - 1], template)
            while len(self._found) > tuning.memory.plans:
                self._found.popitem(last=False)

    def _reorder(self, key: Hashable, templates: tuple[Template, ...]) -> None:
        """Have the templates of a shape asked first that serve most texts, where they are still these."""
        with self._lock:
            if self._found.get(key) is templates:
                self._found[key] = tuple(sorted(templates, key=_rarity))

    def forget(self, version: int) -> None:
        """Forget the plans of other versions of the catalog."""
        with self._lock:
            for key, templates in list(self._found.items()):
                kept = tuple(t for t in templates if t.prepared is not None and t.prepared.catalog_version == version)
                for t in set(templates).difference(kept):
                    t.release()
                if kept:
                    self._found[key] = kept
                else:
                    self._found.pop(key, None)

    def clear(self) -> None:
        with self._lock:
            self._found.clear()


def _rarity(template: Template) -> int:
    """Least for the template that serves most texts."""
    return -template.served
