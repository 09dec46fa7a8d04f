"""The source of a Python function, checked and rewritten for kernels.

Only what is listed here passes: numbers, variables, arithmetic, comparisons, if, while, for over range, and the functions
of `math` and the few builtins below. Operators whose meaning differs between Python, Numba and a GPU become primitives
(division, powers, shifts, everything of `math`; a GPU would join a product and a sum, and round once), so that a function
gives the same on every target. Variables get a
prefix, so that none can be taken for a primitive; nothing else of the user's text is left.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import textwrap
from types import FunctionType
from typing import Any, TypeVar

from gquery.errors import InterfaceError, NotSupportedError, did_you_mean
from gquery.runtime.records import dataclass
from gquery.runtime.syntax import parse

Node = TypeVar("Node", bound=ast.AST)
_ONE = {  # functions of math over one double
    "sqrt": "sqrt_f64", "exp": "exp_f64", "log": "ln_f64", "log2": "log2_f64", "log10": "log10_f64", "sin": "sin_f64",
    "cos": "cos_f64", "tan": "tan_f64", "asin": "asin_f64", "acos": "acos_f64", "atan": "atan_f64", "fabs": "abs_f64",
    "isnan": "f64_is_nan",
}  # fmt: skip
_TWO = {"atan2": "atan2_f64", "pow": "pow_f64", "fmod": "mod_f64"}
_WHOLE = {"floor": "floor_f64", "ceil": "ceil_f64", "trunc": "trunc_f64"}
_MATH = {*_ONE, *_TWO, *_WHOLE}
_BUILTINS = {"abs", "min", "max", "round", "int", "float", "bool", "range"}
_CONVERT = {"float": "f64", "bool": "user_bool"}
_PLAIN = (ast.BitAnd, ast.BitOr, ast.BitXor)
_CALLED = {
    ast.Add: "user_add", ast.Sub: "user_sub", ast.Mult: "user_mul", ast.FloorDiv: "user_floordiv", ast.Mod: "user_mod",
    ast.LShift: "user_shl", ast.RShift: "shr_i64",
}  # fmt: skip
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_NAMES = {
    ast.List: "a list", ast.Dict: "a dict", ast.Set: "a set", ast.ListComp: "a comprehension", ast.Lambda: "lambda",
    ast.GeneratorExp: "a comprehension", ast.DictComp: "a comprehension", ast.SetComp: "a comprehension",
    ast.JoinedStr: "text", ast.Subscript: "indexing", ast.Raise: "raise", ast.Try: "try", ast.With: "with",
    ast.FunctionDef: "a function inside", ast.ClassDef: "a class", ast.Import: "import", ast.ImportFrom: "import",
    ast.Yield: "yield", ast.Await: "await", ast.Global: "global", ast.Nonlocal: "nonlocal", ast.Assert: "assert",
    ast.Delete: "del", ast.Starred: "a starred argument", ast.NamedExpr: "an assignment inside an expression",
    ast.Match: "match", ast.Attribute: "an attribute",
}  # fmt: skip


STATUS = ("status", "site")  # parameters behind the user's, whose names begin otherwise: where to report an overflow


@dataclass(frozen=True)
class Rewritten:
    """A function ready for kernels: its text, and the same as a tree that has the lines of the user's file."""

    text: str
    tree: ast.Module
    file: str


def rewrite(function: FunctionType, optional: set[str], result: str, gives_null: bool) -> Rewritten:
    """The function over registers: after each ``optional`` parameter comes whether it is there, and with ``gives_null``
    the result is a pair of the value and whether it is there. NotSupportedError, with the line, for what cannot be."""
    file = inspect.getsourcefile(function) or function.__code__.co_filename
    try:
        lines, start = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise InterfaceError(f'"{function.__name__}": its source cannot be read') from None
    tree = parse(textwrap.dedent("".join(lines)))
    ast.increment_lineno(tree, max(start, 1) - 1)
    node = tree.body[0]
    if not isinstance(node, ast.FunctionDef):
        raise InterfaceError(f'"{function.__name__}" is not written with def')
    text = _Text(file, lines, max(start, 1))
    made = _Rewriter(function, text, optional, result, gives_null).function_(node)
    module = ast.fix_missing_locations(ast.Module([made], []))
    return Rewritten(ast.unparse(module) + "\n", module, file)


@dataclass(frozen=True)
class _Text:
    """The lines of a function's source, the first of which is line ``start`` of a file."""

    file: str
    lines: list[str]
    start: int


class _Rewriter:
    """Makes new nodes of those that it knows, each at its old line, and refuses all others."""

    def __init__(self, function: FunctionType, text: _Text, optional: set[str], result: str, gives_null: bool) -> None:
        self.function, self.text = function, text
        self.optional, self.result, self.gives_null = optional, result, gives_null
        self.locals: set[str] = set()
        self.assigned: set[str] = set()  # variables that have a value wherever the statement at hand is reached

    def refused(self, node: ast.AST, why: str) -> NotSupportedError:
        text = self.text
        line = getattr(node, "lineno", text.start)
        return NotSupportedError(refusal(self.function.__name__, why, text.file, line, text.lines[line - text.start]))

    # ---- statements ------------------------------------------------------------------------------------------------

    def function_(self, node: ast.FunctionDef) -> ast.FunctionDef:
        parameters = [a.arg for a in node.args.args]
        stored = (n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        self.locals, self.assigned = {*parameters, *stored}, set(parameters)
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        made = self.block(body)
        if not _returns(body):
            if not self.gives_null:
                raise self.refused(body[-1] if body else node, "it may end without a return")
            made.append(self.at(ast.Return(self.nothing()), node))
        names = [n for p in parameters for n in ([_own(p), _there(p)] if p in self.optional else [_own(p)])]
        arguments = ast.arguments([], [ast.arg(n) for n in (*names, *STATUS)], None, [], [], None, [])
        node.name, node.args, node.body, node.decorator_list, node.returns = "user_function", arguments, made, [], None
        return node

    def block(self, nodes: list[ast.stmt]) -> list[ast.stmt]:
        return [s for node in nodes for s in self.statement(node)]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        match node:
            case ast.Return(value):
                return [self.at(ast.Return(self.returned(value, node)), node)]
            case ast.Assign([target], value):
                return self.assign(target, value, node)
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                return self.assign(target, value, node)
            case ast.AugAssign(ast.Name(name), op, value):
                left = self.at(ast.Name(name, ast.Load()), node)
                return self.assign(node.target, self.at(ast.BinOp(left, op, value), node), node)
            case ast.If(test, body, orelse):
                made = self.expression(test)
                then, after = self.branch(body)
                otherwise, after_else = self.branch(orelse)
                self.assigned = after & after_else
                return [self.at(ast.If(made, then, otherwise), node)]
            case ast.While(test, body, []):
                return [self.at(ast.While(self.expression(test), self.branch(body)[0], []), node)]
            case ast.For(ast.Name(name), ast.Call(ast.Name("range"), args, []), body, []) if (
                self.outer("range") is range and name not in self.optional
            ):
                counts = [_integer(self.expression(a)) for a in args]
                if len(counts) == 3:  # a step of 0, which Python raises at
                    counts[2] = _call("user_step", counts[2], *_status())
                over = self.at(ast.Call(ast.Name("range", ast.Load()), counts, []), node)
                inside = self.branch(body, {name})[0]
                return [self.at(ast.For(ast.Name(_own(name), ast.Store()), over, inside, []), node)]
            case ast.For():
                raise self.refused(node, "it has a loop over something that is no range(...)")
            case ast.Pass() | ast.Break() | ast.Continue():
                return [node]
        raise self.refused(node, f"it has {_NAMES.get(type(node), 'a statement that is not compiled')}")

    def branch(self, nodes: list[ast.stmt], more: set[str] | None = None) -> tuple[list[ast.stmt], set[str]]:
        """Statements that may not run, and the variables that have a value behind them; all, where none goes on."""
        before = self.assigned
        self.assigned = before | (more or set())
        made = self.block(nodes)
        goes_on = not _returns(nodes) and not (nodes and isinstance(nodes[-1], ast.Break | ast.Continue))
        after, self.assigned = self.assigned if goes_on else self.locals, before
        return made, after

    def assign(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> list[ast.stmt]:
        match target, value:
            case ast.Name(name), ast.Constant(None) if name in self.optional:
                return [self.at(ast.Assign([ast.Name(_there(name), ast.Store())], _truth(False)), node)]
            case ast.Name(name), _:
                names = [name]
                to: ast.expr = ast.Name(_own(name), ast.Store())
                made = self.expression(value)
            case ast.Tuple(targets), ast.Tuple(values) if len(targets) == len(values):
                names = [t.id for t in targets if isinstance(t, ast.Name)]
                if len(names) < len(targets):
                    raise self.refused(node, "it assigns to something that is no variable")
                to = ast.Tuple([ast.Name(_own(n), ast.Store()) for n in names], ast.Store())
                made = ast.Tuple([self.expression(v) for v in values], ast.Load())
            case _:
                raise self.refused(node, "it assigns to something that is no variable")
        self.assigned = self.assigned | set(names)
        there = [n for n in names if n in self.optional]
        return [
            self.at(ast.Assign([to], made), node),
            *(self.at(ast.Assign([ast.Name(_there(n), ast.Store())], _truth(True)), node) for n in there),
        ]

    def returned(self, value: ast.expr | None, node: ast.stmt) -> ast.expr:
        if self.gives_null:
            return self.pair(value)
        if value is None or (isinstance(value, ast.Constant) and value.value is None):
            raise self.refused(node, "it returns None, and its result is not annotated as ... | None")
        return _converted(self.result, self.expression(value))

    def pair(self, value: ast.expr | None) -> ast.expr:
        match value:
            case None | ast.Constant(None):
                return self.nothing()
            case ast.IfExp(test, a, b):
                return ast.IfExp(self.expression(test), self.pair(a), self.pair(b))
            case ast.Name(name) if name in self.optional:
                present: ast.expr = ast.Name(_there(name), ast.Load())
            case _:
                present = _truth(True)
        return ast.Tuple([_converted(self.result, self.expression(value)), present], ast.Load())

    def nothing(self) -> ast.expr:
        """The pair that stands for None."""
        return ast.Tuple([_converted(self.result, ast.Constant(0)), _truth(False)], ast.Load())

    # ---- expressions -----------------------------------------------------------------------------------------------

    def expression(self, node: ast.expr) -> ast.expr:
        return self.at(self._expression(node), node)

    def _expression(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.Constant(bool() | float()):
                return ast.Constant(node.value)
            case ast.Constant(int() as value):
                if not -(2**63) <= value < 2**63:
                    raise self.refused(node, f"{value} does not fit 64 bits")
                return ast.Constant(value)
            case ast.Constant(None):
                raise self.refused(
                    node, "None can be returned, and parameters that are ... | None compared with it by is"
                )
            case ast.Constant():
                raise self.refused(
                    node, f"it has a {type(node.value).__name__}; functions in queries compute with numbers"
                )
            case ast.Name(name) if name in self.locals and name not in self.assigned:
                raise self.refused(node, f"{name} may have no value here")
            case ast.Name(name) if name in self.locals:
                return ast.Name(_own(name), ast.Load())
            case ast.Name(name):
                return self.constant(self.outer(name), node, name)
            case ast.Attribute(ast.Name(module), name) if module not in self.locals and self.outer(module) is math:
                return self.constant(getattr(math, name, None), node, f"math.{name}")
            case ast.BinOp(left, op, right):
                return self.binary(node, self.expression(left), op, self.expression(right))
            case ast.UnaryOp(op, operand):
                return ast.UnaryOp(op, self.expression(operand))
            case ast.BoolOp(op, values):
                return ast.BoolOp(op, [self.expression(v) for v in values])
            case ast.Compare(ast.Name(name), [ast.Is() | ast.IsNot() as op], [ast.Constant(None)]):
                if name not in self.optional:
                    raise self.refused(node, f"{name} is never None: its annotation is not ... | None")
                there = ast.Name(_there(name), ast.Load())
                return there if isinstance(op, ast.IsNot) else ast.UnaryOp(ast.Not(), there)
            case ast.Compare(left, ops, rights):
                if any(not isinstance(op, _COMPARISONS) for op in ops):
                    raise self.refused(
                        node, "is and in are not compiled, but for a parameter that is ... | None compared with None"
                    )
                return ast.Compare(self.expression(left), ops, [self.expression(r) for r in rights])
            case ast.IfExp(test, a, b):
                return ast.IfExp(self.expression(test), self.expression(a), self.expression(b))
            case ast.Call():
                return self.call(node)
        raise self.refused(node, f"it has {_NAMES.get(type(node), 'an expression that is not compiled')}")

    def binary(self, node: ast.BinOp, a: ast.expr, op: ast.operator, b: ast.expr) -> ast.expr:
        match op:
            case ast.Div():
                return _call("div_f64", _call("f64", a), _call("f64", b))
            case ast.Pow():
                if isinstance(b, ast.Constant) and type(b.value) is int and 2 <= b.value <= 4:
                    return _call(f"user_power_{b.value}", a, *_status())
                return _call("pow_f64", _call("f64", a), _call("f64", b))
        if isinstance(op, _PLAIN):
            return ast.BinOp(a, op, b)
        if type(op) in _CALLED:
            checked = type(op) in (ast.Add, ast.Sub, ast.Mult, ast.LShift)
            return _call(_CALLED[type(op)], a, b, *(_status() if checked else ()))
        raise self.refused(node, "it has an operator that is not compiled")

    def call(self, node: ast.Call) -> ast.expr:
        if node.keywords:
            raise self.refused(node, "it passes an argument by name")
        match node.func:
            case ast.Name(name) if name not in self.locals:
                found, shown = self.outer(name), name
            case ast.Attribute(ast.Name(module), name) if module not in self.locals and self.outer(module) is math:
                found, shown = getattr(math, name, None), f"math.{name}"
            case _:
                raise self.refused(node, "it calls something that is neither of math nor a builtin")
        args = [self.expression(a) for a in node.args]
        name = str(getattr(found, "__name__", ""))
        if found is not None and getattr(builtins, name, None) is found and name in _BUILTINS - {"range"}:
            return self.builtin(node, name, args)
        if found is not None and getattr(math, name, None) is found and name in _MATH:
            count = 2 if name in _TWO else 1
            if len(args) != count:
                raise self.refused(node, f"math.{name} takes {count} argument{'s' * (count > 1)} here")
            doubles = [_call("f64", a) for a in args]
            if name in _WHOLE:
                return _integer(_call(_WHOLE[name], *doubles))
            return _call({**_ONE, **_TWO}[name], *doubles)
        known = f"there are {', '.join(sorted(_BUILTINS))}, and of math {', '.join(sorted(_MATH))}"
        hint = did_you_mean(name or shown, _BUILTINS | _MATH)
        raise self.refused(node, f"it calls {shown}, which is not compiled: {known}.{hint}")

    def builtin(self, node: ast.Call, name: str, args: list[ast.expr]) -> ast.expr:
        if name in ("min", "max") and len(args) < 2:
            raise self.refused(node, f"{name} takes two arguments or more here")
        if name not in ("min", "max") and len(args) != 1:
            raise self.refused(node, f"{name} takes one argument here")
        match name:
            case "round":
                return _integer(_call("round_even_f64", _call("f64", args[0])))
            case "int" | "float" | "bool":
                return _converted(name, args[0])
            case _:
                return ast.Call(ast.Name(name, ast.Load()), args, [])

    def constant(self, value: Any, node: ast.expr, shown: str) -> ast.expr:
        """A number of math; any other name from outside is refused, as it may change."""
        for name in ("pi", "e", "tau", "inf", "nan"):
            if value is getattr(math, name):
                return ast.Constant(value)
        raise self.refused(
            node, f"it uses {shown}, which is defined outside of it: pass it as an argument, or write its value"
        )

    def outer(self, name: str) -> Any:
        """What a name means outside of the function."""
        cells = dict(zip(self.function.__code__.co_freevars, self.function.__closure__ or (), strict=True))
        if name in cells:
            try:
                return cells[name].cell_contents
            except ValueError:
                return None
        return self.function.__globals__.get(name, getattr(builtins, name, None))

    def at(self, new: Node, old: ast.AST) -> Node:
        return ast.copy_location(new, old)


def refusal(name: str, why: str, file: str, line: int, text: str) -> str:
    """The message of an error in a function."""
    return f'function "{name}" cannot be compiled: {why}\n  File "{file}", line {line}\n    {text.strip()}'


def _returns(body: list[ast.stmt]) -> bool:
    """Whether every way through statements returns."""
    match body[-1] if body else None:
        case ast.Return():
            return True
        case ast.If(_, then, otherwise):
            return _returns(then) and _returns(otherwise)
        case ast.While(ast.Constant(True)) as loop:
            return not any(isinstance(n, ast.Break) for n in ast.walk(loop))
        case _:
            return False


def _own(name: str) -> str:
    return f"u_{name}"


def _there(name: str) -> str:
    return f"there_{name}"


def _truth(value: bool) -> ast.expr:
    return _call("user_bool", ast.Constant(value))


def _converted(to: str, value: ast.expr) -> ast.expr:
    return _integer(value) if to == "int" else _call(_CONVERT[to], value)


def _integer(value: ast.expr) -> ast.expr:
    return _call("user_int", value, *_status())


def _status() -> list[ast.expr]:
    return [ast.Name(n, ast.Load()) for n in STATUS]


def _call(name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])
