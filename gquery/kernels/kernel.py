"""A kernel: the text of one generated loop, and what it needs to be compiled and launched.

`operators` write it (through `kernels.code`), `kernels.targets` wrap it in the loop of their machine, compile and run it.
The text holds decisions, never values: sizes, bases, literals and patterns are parameters, so that queries that differ
only in constants share a kernel. No user text enters it: names are ids.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import lru_cache
from types import CodeType
from typing import Any, Literal

from gquery.expression.frozen import Serializable, frozen, frozen_open
from gquery.kernels import ir
from gquery.kernels.ir.walk import statements
from gquery.kernels.unroll import UnrolledLoop
from gquery.runtime.digests import hex_digest
from gquery.runtime.records import cached_property

Blocks = tuple[ir.Block, ir.Block, ir.Block]
ElementType = Literal["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64"]


@frozen
class Parameter:
    """One parameter of a kernel: a pointer to elements, or a scalar (``i64`` or ``f64``; an address is an ``i64``)."""

    name: str
    type: ElementType
    is_pointer: bool

    def number(self, value: float) -> int | float:
        """A number as a launch takes it for this scalar."""
        return float(value) if self.type == "f64" else int(value)


@frozen_open
class Kernel(Serializable):
    """The loop over rows ``lo <= i < hi`` of one pipeline.

    ``written`` runs once a row, with the row's index in ``i``; ``prologue`` and ``epilogue`` run once a thread, before and
    after its rows, and share its variables (accumulators). All are statement nodes (`kernels.ir`). Variables
    ``lo`` and ``hi`` are in scope everywhere. ``body`` is what a compiler is given of it: where ``written`` is long, a part of
    it is in functions, ``parts`` (see `kernels.parts`). That is done when it is asked for: a kernel that is found in a cache
    is never cut.

    ``unrolled`` is the same work for several rows at once: targets that gain from loads in flight (cuda) run it while a
    full unrolled iteration is left; others ignore it.
    ``uses_private``: threads have private accumulators (``private_*``); ``uses_block``: blocks have shared ones,
    or copies of small bitmaps (``shared_*``). How many 64-bit words, of a thread or of a block, is said at launch.
    ``marked_rows``: a processor computes the first filters for blocks of so many rows before it does the rest (`kernels.marks`).
    ``lookup_rows``: a processor looks rows up in blocks of so many (`kernels.prefetch`).
    ``functions`` are bodies of scalar functions from `gquery.functions` that the text calls by name: plain Python
    functions over registers that call primitives by name.
    ``cut`` are functions that ``written`` calls already.
    ``is_draft``: it runs over few rows, so that a compiler for a processor leaves out what takes it long.
    ``claimed`` are body and epilogue with the tests of `kernels.checks` between them, for the interpreter
    under test.
    """

    BLOCKS = "prologue", "written", "epilogue"
    KEPT = ("digest",)
    DERIVED = ("_parted",)

    parameters: tuple[Parameter, ...]
    prologue: ir.Block
    written: ir.Block
    epilogue: ir.Block
    primitives: frozenset[str]
    functions: tuple[tuple[str, Callable[..., Any]], ...] = ()
    unrolled: UnrolledLoop | None = None
    wide_index: bool = False  # row indices need 64 bits on cuda (2^32 rows and more)
    uses_private: bool = False
    uses_block: bool = False
    marked_rows: int = 0
    lookup_rows: int = 0
    cut: tuple[ir.Function, ...] = ()
    is_long: bool = False
    is_draft: bool = False
    claimed: tuple[ir.Block, ir.Block] | None = field(default=None, compare=False, repr=False)

    def serialize(self) -> None:
        super().serialize()
        if self.unrolled is not None:
            self.unrolled.serialize()

    def __eq__(self, other: object) -> bool:
        """Whether the machine code is the same: their statements need not be looked at."""
        return self is other or (isinstance(other, Kernel) and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def _parted(self) -> tuple[ir.Block, tuple[ir.Function, ...]]:
        from gquery.kernels.parts import parted

        return parted(self.written, (*self.prologue, *self.epilogue)) if self.is_long else (self.written, self.cut)

    @property
    def body(self) -> ir.Block:
        """The loop's statements, long runs of them as calls of ``parts``."""
        return self._parted[0]

    @property
    def parts(self) -> tuple[ir.Function, ...]:
        """The functions that the body calls."""
        return self._parted[1]

    @cached_property
    def claims(self) -> tuple[str, ...]:
        """The tests of ``claimed``: what two kernels of one text may differ in."""
        return tuple([s.line for block in self.claimed or () for s in statements(block) if isinstance(s, ir.Claim)])

    @cached_property
    def text(self) -> str:
        """The whole kernel as readable text, the same on every target (golden tests pin it)."""
        return self._text(self.body, self.parts)

    def _text(self, body: ir.Block, parts: tuple[ir.Function, ...]) -> str:
        names = ", ".join([f"{p.name}: {'*' if p.is_pointer else ''}{p.type}" for p in self.parameters])
        lines = [line for part in parts for line in (*part.lines, "")]
        lines += [f"def kernel(lo, hi, {names}):", *ir.printed(self.prologue, 1)]
        lines += ["    for i in rows(lo, hi):", *ir.printed_body(body, 2), *ir.printed(self.epilogue, 1)]
        return "\n".join(lines) + "\n"

    @cached_property
    def digest(self) -> str:
        """Content hash of everything that decides the machine code, but for target and versions (see `targets`): of a long body
        as it was written, which decides how it is cut."""
        text = self._text(self.written, self.cut) if self.is_long else self.text
        parts = [text, repr((self.wide_index, self.uses_private, self.uses_block))]
        if self.marked_rows:
            parts.append(f"{self.marked_rows} rows are marked")
        if self.lookup_rows:
            parts.append(f"{self.lookup_rows} rows are looked up together")
        if self.is_draft:
            parts.append("a draft")
        if self.unrolled is not None:
            parts += [*self.unrolled.text, *ir.printed(self.unrolled.single)]
        parts += [f"{name}\n{function_source(f)}" for name, f in self.functions]
        return hex_digest("\0".join(parts))


def read_later(parameters: tuple[Parameter, ...], uses_block: bool, digest: str, read: Callable[[], Blocks]) -> Kernel:
    """A kernel whose prologue, body and epilogue are read when somebody looks at them: one that is found in a cache by its
    ``digest``, which stands for what is read, is launched without."""
    made = object.__new__(Kernel)
    vars(made).update(parameters=parameters, primitives=frozenset(), uses_block=uses_block, digest=digest, read=read)
    return made


def function_source(function: Callable[..., Any]) -> str:
    """The text of a function of a file, as `inspect.getsource` gives it."""
    return _source(function.__code__.co_filename, function.__code__)


@lru_cache(maxsize=1024)
def _source(file: str, code: CodeType) -> str:
    """Read once; equal code of two files is told apart."""
    import inspect
    import linecache

    lines = linecache.getlines(file)
    if not lines:  # in an archive: `inspect` finds the module first, which takes it 0.1 s at its first call
        return inspect.getsource(code)
    return "".join(inspect.getblock(lines[code.co_firstlineno - 1 :]))
