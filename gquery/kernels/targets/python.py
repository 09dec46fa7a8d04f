"""The python target: the generated text, run as it is.

For small inputs, where compiling would take longer than the work: about 1 us a row and operator chain. Pointers are
memoryviews, because an element of one is a Python int at once, where a NumPy element is an object of its own that
overflows differently.
"""

from __future__ import annotations

import linecache
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import import_module
from types import FunctionType
from typing import Any

from gquery import tuning
from gquery.device.section import Section
from gquery.errors import InternalError
from gquery.kernels import checks
from gquery.kernels.ir import Statement, printed
from gquery.kernels.kernel import Kernel, Parameter
from gquery.kernels.primitives import ALIASES
from gquery.kernels.targets.base import Compiled, Perhaps
from gquery.kernels.targets.python_inline import inlined
from gquery.kernels.targets.python_pace import paced_next, paced_range
from gquery.runtime.recent import Recent
from gquery.runtime.syntax import compiled as compiled_text

_FORMATS = {
    "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
    "f32": "f", "f64": "d",
}  # fmt: skip
BODIES = ("bits", "bit_sets", "checked", "chunks", "dates", "decimals", "floats", "footers", "groups", "held_texts", "moves",
          "packed", "page_list", "page_texts", "pages", "ranges", "tables", "strings", "search", "globs", "json_scan", "uploads",
          "user")  # fmt: skip
INTRINSICS = ("integers", "checked", "wide", "floats", "memory", "bits", "strings", "atomics", "groups", "user")
_OWN = {"refuse": checks.refuse, "range": paced_range, "next_index": paced_next}
"""What kernels find by these names, beside primitives and their functions."""


@cache
def primitives() -> dict[str, Any]:
    """Every primitive by its name. What Python says in fewer calls stands in the place of a body of that name."""
    from gquery.kernels.targets import python_strings

    found: dict[str, Any] = {}
    for module in (
        *(import_module(f"gquery.kernels.primitives.{name}") for name in BODIES),
        *(import_module(f"gquery.kernels.primitives.python.{name}") for name in INTRINSICS),
        python_strings,
    ):
        found |= {k: v for k, v in vars(module).items() if not k.startswith("_") and callable(v)}
    return found | {short: found[name] for short, name in ALIASES.items()}


def _bound(function: Callable[..., Any]) -> Callable[..., Any]:
    """A scalar function's body with primitives for the names it calls; a host function as it is."""
    if not isinstance(function, FunctionType) or function.__closure__:
        return function
    known = function.__globals__
    used = {name: primitives()[name] for name in function.__code__.co_names if name in primitives()}
    missing = {name: f for name, f in used.items() if name not in known}
    if not missing:
        return function
    return FunctionType(function.__code__, known | missing, function.__name__, function.__defaults__)


_Printer = Callable[[Sequence[Statement], int], list[str]]
"""Prints a block at a level of indentation."""


def _stays_whole(kernel: Kernel) -> bool:
    """Whether a long body is run as it is written: Python's compiler takes time with its length alone, and only deep ones have to
    be cut. Under test it runs what is compiled."""
    from gquery.kernels.parts import is_deep  # few kernels are long

    return kernel.claimed is None and not is_deep(kernel.written)


def _text(kernel: Kernel, printer: _Printer) -> str:
    """The text of a kernel's module."""
    body, parts, epilogue = kernel.written, kernel.cut, kernel.epilogue
    if kernel.is_long and not _stays_whole(kernel):
        body, parts = kernel.body, kernel.parts
    if kernel.claimed is not None and not parts:
        body, epilogue = kernel.claimed
    lines: list[str] = []
    for part in parts:
        lines += [part.head, *printer(part.body, 1), ""]
    lines.append(f"def kernel({', '.join(['lo', 'hi', *(p.name for p in kernel.parameters)])}):")
    lines += [*printer(kernel.prologue, 1), "    for i in range(lo, hi):"]
    lines += [*(printer(body, 2) or ("        pass",)), *printer(epilogue, 1)]
    return "\n".join(lines) + "\n"


def _forget_text(key: object, compiled: Compiled) -> None:
    linecache.cache.pop(compiled.name, None)


class _Entry:
    """A kernel's function of rows and arguments: the text as it is for few rows, else one with operators for primitives. Each is
    made when it is first called for: most kernels run as one of them alone."""

    def __init__(self, function: Callable[[_Printer], Any]) -> None:
        self._of = cache(function)

    def __call__(self, lo: int, hi: int, *arguments: Any) -> None:
        self.of(hi - lo)(lo, hi, *arguments)

    def of(self, rows: int) -> Any:
        """What a call of so many rows runs."""
        return self._of(printed if rows <= tuning.interpreting.plain_rows else inlined)


def make_ready(compiled: Compiled, rows: int) -> None:
    """Make what calls of so many rows need of an interpreted kernel, which takes longer than they may take."""
    if isinstance(compiled.entry, _Entry):
        compiled.entry.of(rows)


class PythonTarget:
    """Runs kernels in the interpreter. See `Target`."""

    name = "python"

    def __init__(self) -> None:
        self._compiled = Recent[tuple[str, Any], Compiled](tuning.compiling.kept_kernels, _forget_text)

    def source(self, kernel: Kernel) -> str:
        return _text(kernel, printed)

    def held(self) -> list[Compiled]:
        return list({digest: made for (digest, _), made in self._compiled.items()}.values())

    def is_ready(self, kernel: Kernel) -> bool:
        return True

    def is_cached(self, kernel: Kernel) -> bool:
        return True

    def compile(self, kernel: Kernel) -> Compiled:
        if any(f.__closure__ for _, f in kernel.functions):
            return self._make(kernel)  # two closures of one text may hold different values
        key = kernel.digest, kernel.claims  # under test, kernels of one text may promise different bounds
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = self._make(kernel)
        return compiled

    def compile_many(self, kernels: Sequence[Kernel], perhaps: Perhaps = tuple) -> list[Compiled]:
        return [self.compile(k) for k in kernels]

    def begin(self, kernels: Iterable[Kernel], perhaps: Perhaps = tuple) -> None:
        """Nothing: a kernel is ready within the time that it takes to say so."""

    def _make(self, kernel: Kernel) -> Compiled:
        start = time.perf_counter()
        file = f"<gquery {kernel.digest}>"

        def function(printer: _Printer) -> Any:
            text = _text(kernel, printer)
            namespace = primitives() | {name: _bound(f) for name, f in kernel.functions} | _OWN
            try:
                exec(compiled_text(text, file), namespace)  # our own text: no user text enters it
            except SyntaxError as e:
                raise InternalError(f"a kernel is not Python: {e} (text: {text!r})") from e
            linecache.cache[file] = (len(text), None, text.splitlines(True), file)  # for tracebacks
            return namespace["kernel"]

        return Compiled(kernel, _Entry(function), file, time.perf_counter() - start, cached=False)

    def argument(self, parameter: Parameter, value: Any) -> Any:
        if not parameter.is_pointer:
            return value if isinstance(value, checks.Span) else parameter.number(value)
        code = _FORMATS[parameter.type]
        if isinstance(value, Section):
            return checks.Part(self._elements(value.array, code), parameter.name, value.first)
        empty = value is None or value.nbytes == 0
        elements = self._elements(bytearray(0 if checks.ENABLED else 8) if empty else value, code)
        return checks.View(elements, parameter.name) if checks.ENABLED else elements

    def _elements(self, value: Any, code: Any) -> Any:
        elements = memoryview(value)
        if elements.format != code or elements.ndim != 1:  # a view as other elements, or rows of several words
            return elements.cast("B").cast(code)
        return elements

    def run(self, compiled: Compiled, lo: int, hi: int, arguments: Sequence[Any], shared_words: int = 0) -> None:
        compiled.entry(lo, hi, *arguments)


TARGET = PythonTarget()
