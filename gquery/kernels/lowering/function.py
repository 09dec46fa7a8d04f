"""Function: the statements of one function as instructions of LLVM.

Types follow from the parameters: what a call gives has the type that its callee has, a variable that of what it is set to
first. There is nothing to infer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

from gquery.kernels import ir
from gquery.kernels.lowering.assembler import Assembler, LoweringError
from gquery.kernels.lowering.values import INTEGER_BITS, Operand, Type, constant, is_pointer, items_of, llvm_type
from gquery.kernels.lowering.variables import registers
from gquery.runtime.records import dataclass


@dataclass(frozen=True, eq=False)
class LoweredFunction:
    """A function of an LLVM module as text, the functions that it calls, and the lines that declare what lies outside.

    ``is_convergent``: lanes of a warp, or threads of a block, meet in it, or in what it calls, so that LLVM may not move a call
    of it into a branch. ``module``: the text of one that is linked with that in which the function stands.
    """

    symbol: str
    parameters: tuple[Type, ...]
    result: Type
    text: str
    callees: tuple[LoweredFunction, ...] = ()
    declarations: tuple[str, ...] = ()
    is_convergent: bool = False
    module: str = ""


Find = Callable[[str, tuple[Type, ...]], LoweredFunction]
"""The function of a name for arguments of these types; LoweringError where there is none."""

_CASTS: dict[str, str] = {"i64": "i64", "u64": "u64", "f64": "f64", "row_index": "u64", "uint64": "u64", "uint32": "u32",
                          "int": "i64", "float": "f64"}  # fmt: skip
"""Calls that make another type of a number, whatever it has."""

_UNSIGNED = ("u32", "u64")
"""Types of row indices: where both operands of an operator have one, it wraps as that does. All others make int64."""

_ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "|": "or"}


def lower(function: ir.Function, types: Sequence[Type], find: Find, symbol: str, attributes: str) -> LoweredFunction:
    """A function for arguments of these types. ``attributes`` stand behind its parameters in LLVM's text."""
    return _Lowering(function, types, find).function(symbol, attributes)


class _Lowering:
    """One function on its way."""

    def __init__(self, function: ir.Function, types: Sequence[Type], find: Find) -> None:
        self._source, self._types, self._find = function, tuple(types), find
        self._out = Assembler()
        self._registers = registers(function.parameters, function.body)
        self._known: dict[str, Operand] = {}  # what stands in a register
        self._variables: dict[str, Type] = {}  # what lies on the stack
        self._callees: dict[LoweredFunction, None] = {}
        self._result: Type | None = None

    def function(self, symbol: str, attributes: str) -> LoweredFunction:
        parameters = list(zip(self._source.parameters, self._types, strict=True))
        for p, type_ in parameters:
            self._set(p, Operand(type_, f"%{p.id}"))
        self._block(self._source.body)
        if self._out.is_open:
            self._return(Operand("void", ""))
        assert self._result is not None
        given = ", ".join([f"{llvm_type(t)} %{p.id}" for p, t in parameters])
        is_convergent = any(callee.is_convergent for callee in self._callees)
        head = f"define internal {llvm_type(self._result)} @{symbol}({given}) {'convergent ' * is_convergent}{attributes} {{"
        text = "\n".join([head, "entry:", *self._out.variables, *self._out.lines, "}"])
        return LoweredFunction(
            symbol, self._types, self._result, text, tuple(self._callees), is_convergent=is_convergent
        )

    # ---- statements ----

    def _block(self, block: ir.Block) -> None:
        for s in block:
            if self._out.is_open:  # what stands behind a return is never reached
                self._statement(s)

    def _statement(self, s: ir.Statement) -> None:
        match s:
            case ir.Let(target, value):
                self._set(target, self._value(value))
            case ir.Unpack(targets, ir.Tuple(items)):
                for target, given in zip(targets, [self._value(i) for i in items], strict=True):
                    self._set(target, given)
            case ir.Unpack(targets, value):
                several = self._value(value)
                if len(items_of(several.type)) != len(targets):
                    raise LoweringError(f"{value.text()} is no {len(targets)} values")
                for n, target in enumerate(targets):
                    self._set(target, self._out.item(several, n))
            case ir.Store(call):
                self._call(call)
            case ir.If(test, then, otherwise):
                self._if(test, then, otherwise or ())
            case ir.While(test, body):
                self._while(test, body)
            case ir.For(target, low, high, body):
                self._for(target, low, high, body)
            case ir.Return(value):
                self._return(self._value(value))
            case ir.Claim():
                raise LoweringError("a claim is for the interpreter alone")
            case _:
                assert_never(s)

    def _set(self, target: ir.Name, value: Operand) -> None:
        name = target.id
        if name in self._registers:
            self._known[name] = value
            return
        type_ = self._variables.get(name)
        if type_ is None:
            type_ = self._variables[name] = value.type
            self._out.variable(name, type_)
        self._out.set(name, type_, self._out.cast(value, type_))

    def _if(self, test: ir.Expression, then: ir.Block, otherwise: ir.Block) -> None:
        out = self._out
        yes, no, end = out.labels("then", "else", "end")
        self._condition(test, yes, no if otherwise else end)
        out.start(yes)
        self._block(then)
        goes_on = out.is_open or not otherwise
        out.branch(end)
        if otherwise:
            out.start(no)
            self._block(otherwise)
            goes_on = goes_on or out.is_open
            out.branch(end)
        if goes_on:
            out.start(end)

    def _while(self, test: ir.Expression, body: ir.Block) -> None:
        out = self._out
        head, inside, end = out.labels("while", "do", "done")
        out.branch(head)
        out.start(head)
        if test != ir.TRUE:
            self._condition(test, inside, end)
            out.start(inside)
        self._block(body)
        out.branch(head)
        if test != ir.TRUE:
            out.start(end)

    def _for(self, target: ir.Name, low: ir.Expression | None, high: ir.Expression, body: ir.Block) -> None:
        out = self._out
        first = constant(0) if low is None else self._value(low)
        last = self._value(high)
        type_ = "u64" if {first.type, last.type} == {"u64"} else "i64"
        begin, end = out.cast(first, type_), out.cast(last, type_)
        head, inside, done = out.labels("for", "do", "done")
        before = out.label
        out.branch(head)
        out.start(head)
        index = out.register()
        place = len(out.lines)
        out.do("")  # the index, once it is known where the loop comes back from
        out.choose(out.emit(f"icmp {'ult' if type_ == 'u64' else 'slt'} i64 {index}, {end}"), inside, done)
        out.start(inside)
        self._set(target, Operand(type_, index))
        self._block(body)
        if out.is_open:
            following = out.emit(f"add {'nuw' if type_ == 'u64' else 'nsw'} i64 {index}, 1")
            out.lines[place] = f"{index} = phi i64 [{begin}, %{before}], [{following}, %{out.label}]"
            out.branch(head)
        else:
            out.lines[place] = f"{index} = phi i64 [{begin}, %{before}]"
        out.start(done)

    def _return(self, value: Operand) -> None:
        if self._result is None:
            self._result = value.type
        if self._result == "void" or value.type == "void":
            if self._result != value.type:
                raise LoweringError(f"{self._source.name} returns {self._result} and {value.type}")
            self._out.do("ret void")
        else:
            self._out.do(f"ret {llvm_type(self._result)} {self._out.cast(value, self._result)}")
        self._out.is_open = False

    # ---- expressions ----

    def _value(self, e: ir.Expression) -> Operand:
        match e:
            case ir.Name(id=name):
                return self._name(name)
            case ir.Constant(value):
                if value is None:
                    raise LoweringError("None is for the interpreter alone")
                return constant(value)
            case ir.Call():
                return self._call(e)
            case ir.Load(pointer, index):
                return self._load(self._name(pointer.id), self._value(index))
            case ir.Element(array, place):
                return self._load(self._name(array.id), constant(place))
            case ir.Item(tuple_, place):
                return self._out.item(self._name(tuple_.id), place)
            case ir.Not(operand):
                return Operand("bool", self._out.emit(f"xor i1 {self._test(operand)}, true"))
            case ir.And(terms) | ir.Or(terms):
                return self._connective(e, terms)
            case ir.Parenthesized(inner):
                return self._value(inner)
            case ir.Operation():
                return self._operation(e)
            case ir.Choice():
                return self._choice(e)
            case ir.Tuple(items):
                return self._out.several([self._value(i) for i in items])
            case _:
                assert_never(e)

    def _name(self, name: str) -> Operand:
        known = self._known.get(name)
        if known is not None:
            return known
        if name not in self._variables:
            raise LoweringError(f"{name} is not set in {self._source.name}")
        return self._out.get(name, self._variables[name])

    def _load(self, pointer: Operand, index: Operand) -> Operand:
        if not isinstance(pointer.type, str) or not is_pointer(pointer.type) or pointer.type == "*":
            raise LoweringError(f"an element of {pointer.type}")
        element, spelled = pointer.type[1:], llvm_type(pointer.type[1:])
        place = self._out.emit(
            f"getelementptr {spelled}, {spelled}* {pointer.text}, i64 {self._out.cast(index, 'i64')}"
        )
        return Operand(element, self._out.emit(f"load {spelled}, {spelled}* {place}"))

    def _test(self, e: ir.Expression) -> str:
        """An expression as an i1."""
        return self._out.cast(self._value(e), "bool")

    def _condition(self, e: ir.Expression, yes: str, no: str) -> None:
        """End the block by a test."""
        match e:
            case ir.Not(operand):
                self._condition(operand, no, yes)
            case ir.Parenthesized(inner):
                self._condition(inner, yes, no)
            case ir.And(terms) | ir.Or(terms) if not all(isinstance(t, ir.Name) for t in terms):
                for t in terms[:-1]:
                    (following,) = self._out.labels("next")
                    self._condition(t, *((following, no) if isinstance(e, ir.And) else (yes, following)))
                    self._out.start(following)
                self._condition(terms[-1], yes, no)
            case _:
                self._out.choose(self._test(e), yes, no)

    def _connective(self, e: ir.And | ir.Or, terms: Sequence[ir.Expression]) -> Operand:
        out = self._out
        if all(isinstance(t, ir.Name | ir.Constant) for t in terms):  # nothing is gained by a look at fewer
            made, *others = [self._test(t) for t in terms]
            for other in others:
                made = out.emit(f"{'and' if isinstance(e, ir.And) else 'or'} i1 {made}, {other}")
            return Operand("bool", made)
        (end,) = out.labels("both")
        ways: list[str] = []
        for t in terms[:-1]:
            test = self._test(t)
            (following,) = out.labels("next")
            ways.append(f"[{'false' if isinstance(e, ir.And) else 'true'}, %{out.label}]")
            out.choose(test, *((following, end) if isinstance(e, ir.And) else (end, following)))
            out.start(following)
        test = self._test(terms[-1])
        ways.append(f"[{test}, %{out.label}]")
        out.branch(end)
        out.start(end)
        return Operand("bool", out.emit(f"phi i1 {', '.join(ways)}"))

    def _choice(self, e: ir.Choice) -> Operand:
        out = self._out
        yes, no, end = out.labels("then", "else", "end")
        self._condition(e.test, yes, no)
        out.start(yes)
        then = self._value(e.then)
        before = out.label
        out.branch(end)
        out.start(no)
        otherwise = out.cast(self._value(e.otherwise), then.type)
        ways = f"[{then.text}, %{before}], [{otherwise}, %{out.label}]"
        out.branch(end)
        out.start(end)
        return Operand(then.type, out.emit(f"phi {llvm_type(then.type)} {ways}"))

    def _operation(self, e: ir.Operation) -> Operand:
        left, right = self._value(e.left), self._value(e.right)
        if left.type not in INTEGER_BITS or right.type not in INTEGER_BITS:
            raise LoweringError(f"{e.text()} of {left.type} and {right.type}")
        out = self._out
        type_ = left.type if left.type == right.type and left.type in _UNSIGNED else "i64"
        spelled, a, b = llvm_type(type_), out.cast(left, type_), out.cast(right, type_)
        match e.operator:
            case "<":
                return Operand("bool", out.emit(f"icmp {'ult' if type_ in _UNSIGNED else 'slt'} {spelled} {a}, {b}"))
            case "+" | "-" | "*" | "|":
                return Operand(type_, out.emit(f"{_ARITHMETIC[e.operator]} {spelled} {a}, {b}"))
            case "is not":
                raise LoweringError(f"{e.text()} is for the interpreter alone")
            case _:
                assert_never(e.operator)

    def _call(self, e: ir.Call) -> Operand:
        out = self._out
        arguments = [self._value(a) for a in e.arguments]
        to = _CASTS.get(e.function)
        if to is not None and len(arguments) == 1:
            return Operand(to, out.cast(arguments[0], to))
        callee = self._find(e.function, tuple([a.type for a in arguments]))
        if len(arguments) != len(callee.parameters):
            raise LoweringError(f"{e.function} takes {len(callee.parameters)} arguments, not {len(arguments)}")
        self._callees[callee] = None
        given = [f"{llvm_type(t)} {out.cast(a, t)}" for a, t in zip(arguments, callee.parameters, strict=True)]
        call = f"call {llvm_type(callee.result)} @{callee.symbol}({', '.join(given)})"
        if callee.result == "void":
            out.do(call)
            return Operand("void", "")
        return Operand(callee.result, out.emit(call))
