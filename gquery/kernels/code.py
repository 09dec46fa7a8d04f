"""Code: a kernel while operators write it, one statement after another.

Operators and `render` share one `Code` a pipeline. It names variables and parameters in the order of their first use (so
that kernels of one structure have one text), remembers which value an expression or column already has, and forgets it
when the block that bound it closes: a load made inside an ``if`` does not exist behind it.

Statements are nodes (`kernels.ir`), which print as text at the end. What a parameter stands for is a `Binding`, resolved when
the kernel is launched; the text never holds values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gquery import tuning
from gquery.device.buffer import Buffer
from gquery.errors import DatabaseError
from gquery.expression.expr import Column, Expr
from gquery.expression.types import Register
from gquery.kernels import checks, ir
from gquery.kernels.bindings import (
    PARTS,
    STATUS,
    Binding,
    BuildPart,
    ColumnPart,
    Constant,
    Content,
    ErrorSite,
    SlotConstant,
    StatePart,
    TextMatches,
)
from gquery.kernels.kernel import ElementType, Kernel, Parameter
from gquery.kernels.scannable import ScannableTexts
from gquery.kernels.values import Value, ValueProperties


class _Open:
    """A block that is open while a ``with`` runs."""

    __slots__ = ("_code", "_head")

    def __init__(self, code: Code, head: ir.Head) -> None:
        self._code, self._head = code, head

    def __enter__(self) -> None:
        self._code.open(self._head)

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None:
            self._code.close()


_NAMES: dict[str, dict[int, ir.Name]] = {}  # by stem and number: kernels share them
_VARIABLES: dict[int, ir.Name] = {}  # of rows, by number
_INTEGERS: dict[int, ir.Call] = {}


class Code:
    """The growing text of one kernel for ``target``. ``described`` are columns of which no more than this is known: for
    a text that is thrown away. ``descriptions`` are values of expressions in such texts: what is known of them is found out
    once, and they are not written again. ``keeps_slots``: who takes the kernel takes ``slots`` too."""

    def __init__(
        self,
        target: str,
        described: dict[int, ValueProperties] | None = None,
        descriptions: dict[Expr, Value] | None = None,
        keeps_slots: bool = False,
    ) -> None:
        self.target = target
        self.keeps_slots = keeps_slots or described is not None
        self.is_thrown_away = described is not None
        self.descriptions: dict[Expr, Value] = {} if descriptions is None else descriptions
        self.prologue: list[ir.Statement] = []
        self.body: list[ir.Statement] = []  # of the block that is open
        self.epilogue: list[ir.Statement] = []
        self.primitives: set[str] = set()
        self.functions: dict[str, Callable[..., Any]] = {}
        self.sites: list[ErrorSite] = []
        self.bindings: dict[str, Binding] = {}
        self.slots: dict[str, SlotConstant] = {}  # of those bindings that depend on slots, by parameter
        self.selectivities: dict[str, float] = {}  # by parameter, the greatest share of rows that it is used for
        self.uses_private = self.uses_block = self.wide_index = False
        self.shared_words = 0  # 64-bit words of shared memory, of a thread or of a block, that are taken so far
        # by the stage of a join table, where a block has its key filter
        self.shared_filters: dict[int, ir.Expression] = {}
        self.selectivity = 1.0  # estimated share of rows that get to where the text stands
        self.hoisted: set[ir.Name] = set()  # variables whose loads an unrolled loop should not wait for
        self.scannable: ScannableTexts | None = None  # of the source
        self._parameters: list[Parameter] = []
        self._parameter_names: dict[tuple[Any, ...], ir.Name] = {}  # the one of all that are bound to the same thing
        # what is known of each column that `provide` named
        self.known: dict[int, ValueProperties] = {} if described is None else described
        self._providers: dict[int, Callable[[], Value]] = {}
        self._memo: dict[Expr, Value] = {}
        self._bound: list[list[tuple[Expr, Value | None]]] = [[]]  # by open block: what it bound, and what stood there before
        self._flags: dict[tuple[Any, ...], ir.Expression] = {}
        self._made: list[list[tuple[Any, ...]]] = [[]]  # by open block, the keys of ``_flags`` that are forgotten with it
        self._heads: list[tuple[ir.Head, list[ir.Statement]]] = []  # of open blocks, and the statements before each
        # at least so many are printed for blocks that are closed, how deep they were, and how many constants there are
        self._lines = self._deepest = self._constants = self._variables = 0
        self._names: dict[str, int] = defaultdict(int)
        self._arrays: dict[ElementType, tuple[ir.Name, list[int | float]]] = {}  # a parameter, and its elements
        self._claims = checks.ENABLED and target == "python"
        self.describer: Code | None = None  # of a text that is thrown away, over the same columns (`render.described`)

    # ---- statements ----

    def let(self, value: ir.Expression) -> ir.Name:
        """A new variable of the row that holds ``value``."""
        var = self.variable()
        self.body.append(ir.Let(var, value))
        return var

    def set(self, target: ir.Expression, value: ir.Expression) -> None:
        """Give a variable, which may be there already, a value."""
        self.body.append(ir.Let(ir.name_of(target), value))

    def swap(self, one: ir.Name, other: ir.Name) -> None:
        """Give two variables each other's value."""
        self.body.append(ir.Unpack((one, other), ir.Tuple((other, one))))

    def do(self, call: ir.Expression) -> None:
        """Make a call for what it does."""
        assert isinstance(call, ir.Call), call
        self.body.append(ir.Store(call))

    def when(self, test: ir.Expression) -> _Open:
        """A block for where ``test`` is true; values bound inside are forgotten when it closes, as in all blocks."""
        return _Open(self, test)

    def otherwise(self) -> _Open:
        """The ``else`` of the block that has just closed."""
        return _Open(self, None)

    def loop(self, test: ir.Expression) -> _Open:
        """A block that is run again as long as ``test`` is true."""
        return _Open(self, ir.While(test, ()))

    def each(self, var: ir.Name, low: ir.Expression, high: ir.Expression) -> _Open:
        """A block for each integer from ``low`` up to ``high``, which is not among them; ``var`` holds it."""
        return _Open(self, ir.For(var, low, high, ()))

    def open_if(self, test: ir.Expression) -> None:
        """As `when`, for blocks that close in another function: pair with `close`."""
        self.open(test)

    def open_else(self) -> None:
        """As `otherwise`, to be paired with `close`."""
        self.open(None)

    def open(self, head: ir.Head) -> None:
        """Begin a block; pair with `close`."""
        heads = self._heads
        heads.append((head, self.body))
        if len(heads) > self._deepest:
            self._deepest = len(heads)
        self.body = []
        self._bound.append([])
        self._made.append([])

    def close(self, levels: int = 1) -> None:
        """Ends so many of the blocks that are open."""
        for _ in range(levels):
            head, before = self._heads.pop()
            block = self.body
            self._lines += 1 + (len(block) or 1)
            before.append(ir.with_block(head, tuple(block), before))
            self.body = before
            if bound := self._bound.pop():
                for e, earlier in reversed(bound):
                    if earlier is None:
                        del self._memo[e]
                    else:
                        self._memo[e] = earlier
            if made := self._made.pop():
                for key in made:
                    del self._flags[key]

    def do_either(self, test: ir.Expression, then: ir.Call, otherwise: ir.Call) -> None:
        """Make one of two calls for what it does: an ``if`` with an ``else``."""
        self._lines += 2 + 2  # of each a head and a line
        self._deepest = max(self._deepest, len(self._heads) + 1)
        self.body.append(ir.If(test, (ir.Store(then),), (ir.Store(otherwise),)))

    def after_rows(self, write: Callable[[], None]) -> None:
        """What ``write`` writes stands behind the loop; of a row's values none is known there."""
        before = self.body, self._heads, self._memo, self._bound, self._flags, self._made
        self.body, self._heads, self._memo, self._bound, self._flags, self._made = [], [], {}, [[]], {}, [[]]
        write()
        self.epilogue += self.body
        self.body, self._heads, self._memo, self._bound, self._flags, self._made = before

    # ---- expressions ----

    def name(self, stem: str, role: ir.Role = "thread") -> ir.Name:
        """A new name."""
        n = self._names[stem]
        self._names[stem] = n + 1
        known = _NAMES[stem] if stem in _NAMES else _NAMES.setdefault(stem, {})
        if (found := known.get(n)) is not None and found.role == role:
            return found
        made = ir.Name(f"{stem}{n}", role)
        if n < tuning.kernel_texts.kept_names:
            known[n] = made
        return made

    def variable(self) -> ir.Name:
        """A new name of a variable of the row: most names are such."""
        n = self._variables
        self._variables = n + 1
        if (found := _VARIABLES.get(n)) is None:
            found = ir.Name(f"v{n}", "row")
            if n < tuning.kernel_texts.kept_names:
                _VARIABLES[n] = found
        return found

    def call(self, primitive: str, *args: ir.Expression) -> ir.Call:
        """A call of a primitive."""
        self.primitives.add(primitive)
        return ir.Call(primitive, args)

    def integer(self, value: int) -> ir.Call:
        """An integer that stands in the text."""
        self.primitives.add("i64")
        if (found := _INTEGERS.get(value)) is None:
            found = ir.Call("i64", (ir.Constant(value),))
            if abs(value) <= tuning.kernel_texts.kept_integers:
                _INTEGERS[value] = found
        return found

    def zero(self, register: Register) -> ir.Expression:
        """A placeholder of the register class, for variables that an ``if`` may leave unset."""
        match register:
            case Register.BOOL:
                return ir.FALSE
            case Register.I64:
                return self.integer(0)
            case Register.F64:
                return self.call("f64", ir.Constant(0.0))
            case Register.I128:
                return self.call("i128_from_i64", self.integer(0))
            case Register.STR:
                return self.call("make_str", self.integer(0), self.integer(0))

    def both(self, *oks: ir.Expression | None) -> ir.Expression | None:
        """The conjunction of validity variables, as a variable; None where none can be NULL."""
        present = tuple(dict.fromkeys([o for o in oks if o is not None]))
        if not present:
            return None
        if ir.FALSE in present:
            return ir.FALSE
        if len(present) == 1:
            return present[0]
        return self.once(("and", *present), lambda: self.let(ir.And(present)))

    def once(self, key: tuple[Any, ...], make: Callable[[], ir.Expression]) -> ir.Expression:
        """A variable that ``make`` writes, unless what is written stands where it has written the one of this key."""
        found = self._flags.get(key)
        if found is None:
            found = self._flags[key] = make()
            self._made[-1].append(key)
        return found

    # ---- parameters ----

    def _parameter(self, stem: str, type_: ElementType, is_pointer: bool, binding: Binding) -> ir.Name:
        kind = binding.__class__
        key = (kind, PARTS[kind](binding), type_, is_pointer)
        name = self._parameter_names.get(key)
        if name is None:
            name = self._parameter_names[key] = self.name(stem, _ROLES[kind] if is_pointer else "scalar")
            self._parameters.append(Parameter(name.id, type_, is_pointer))
            self.bindings[name.id] = binding
            self.selectivities[name.id] = self.selectivity
        elif self.selectivity > self.selectivities[name.id]:
            self.selectivities[name.id] = self.selectivity
        return name

    def pointer(self, type_: ElementType, binding: Binding, stem: str = "p") -> ir.Name:
        """The parameter that points to an array; the same binding gives the same one."""
        return self._parameter(stem, type_, True, binding)

    def scalar(self, binding: Binding, type_: ElementType = "i64", stem: str = "k") -> ir.Name:
        """The parameter that is one number; the same binding gives the same one."""
        return self._parameter(stem, type_, False, binding)

    def constant(self, value: int | float) -> ir.Name | ir.Element:
        """A scalar parameter for a number known now. Each use has its own, so that equal numbers do not change the text. Of many
        the later ones are elements of an array: a kernel with a thousand parameters would take seconds to compile."""
        type_: ElementType = "f64" if isinstance(value, float) else "i64"
        self._constants += 1
        if self._constants > tuning.kernel_texts.own_constants:
            return self._more_constants(type_, value)
        name = self.name("k", "scalar")
        self._parameters.append(Parameter(name.id, type_, False))
        self.bindings[name.id] = Constant(value)
        return name

    def _more_constants(self, type_: ElementType, value: int | float) -> ir.Element:
        found = self._arrays.get(type_)
        if found is None:
            found = self._arrays[type_] = self.name("q", "table"), []
            self._parameters.append(Parameter(found[0].id, type_, True))
            self.selectivities[found[0].id] = 0.0
        found[1].append(value)
        return ir.Element(found[0], len(found[1]) - 1)

    def status(self) -> ir.Name:
        """The pointer to the kernel's status words (uint32)."""
        return self.pointer("u32", STATUS, "status")

    def site(self, error: type[DatabaseError], message: str, retry: bool = False) -> ir.Constant:
        """The number of a status bit that stands for this error."""
        site = ErrorSite(error, message, retry)
        if site not in self.sites:
            self.sites.append(site)
        return ir.Constant(self.sites.index(site))

    # ---- values ----

    def provide(self, column: int, what: ValueProperties, load: Callable[[], Value]) -> None:
        """Say how the column of that id is loaded when it is first used."""
        if column in self.known:  # of which more is known now
            self.descriptions.clear()
        self.known[column] = what
        self._providers[column] = load

    def withdraw(self, column: int) -> None:
        """Behind the text in which a provided column stood: nobody else is to find it."""
        del self.known[column], self._providers[column]

    @contextmanager
    def another_row(self) -> Iterator[None]:
        """Within it, values of the row at hand are those of another one: they are computed anew, in blocks of their own."""
        before, self._memo, self._flags = (self._memo, self._flags), {}, {}
        yield
        self._memo, self._flags = before

    def remember(self, e: Expr, value: Value) -> Value:
        """Keeps the value of an expression for the block that is open, and gives it back."""
        if len(self._bound) > 1:
            self._bound[-1].append((e, self._memo.get(e)))
        self._memo[e] = value
        if self._claims and (test := checks.claim(value)) is not None:
            self.body.append(ir.Claim(test))
        return value

    def recall(self, e: Expr) -> Value | None:
        """The value of an expression that is kept, if it is."""
        return self._memo.get(e)

    def column(self, column: Column) -> Value:
        """The value of a column in the current row, loaded now if it is not at hand."""
        if (found := self.recall(column)) is not None:
            return found
        provider = self._providers.get(column.id)
        if provider is not None:
            return self.remember(column, provider())
        what = self.known[column.id]  # described: it is there, under a name that nobody reads
        ok = ir.Name(f"n{column.id}") if what.nullable else None
        return self.remember(column, Value(ir.Name(f"x{column.id}"), ok, what))

    # ---- the result ----

    def kernel(self) -> Kernel:
        """The kernel of all that was written; nothing is written behind it."""
        self._providers.clear()  # they hold this object, which holds them
        for type_, (name, values) in self._arrays.items():
            self.bindings[name.id] = Content(Buffer(np.array(values, dtype=np.int64 if type_ == "i64" else np.float64)))
        prologue, whole, epilogue = tuple(self.prologue), tuple(self.body), tuple(self.epilogue)
        claimed = (whole, epilogue) if self._claims else None
        if self._claims:
            whole, epilogue = ir.without_claims(whole), ir.without_claims(epilogue)
        limits = tuning.kernel_parts
        return Kernel(
            parameters=tuple(self._parameters),
            prologue=prologue,
            written=whole,
            epilogue=epilogue,
            primitives=frozenset(self.primitives),
            functions=tuple(sorted(self.functions.items())),
            wide_index=self.wide_index,
            uses_private=self.uses_private,
            uses_block=self.uses_block,
            is_long=self._lines + len(whole) > limits.lines or self._deepest > limits.depth,
            claimed=claimed,
        )


_ROLES: dict[type, ir.Role] = {
    ColumnPart: "column", BuildPart: "build", StatePart: "state", Content: "table", TextMatches: "column",
}  # fmt: skip
