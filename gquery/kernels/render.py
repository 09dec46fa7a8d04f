"""Render: an expression becomes lines of a kernel, and a `Value`.

Three-valued logic lives here alone. A NULL costs nothing where a column has none: the value's ``ok`` is None then. AND, OR
and CASE become real branches, so what a row does not need is neither loaded nor computed. Arithmetic, comparisons, casts
and dictionary lookups stand in the modules beside this one.
"""

from __future__ import annotations

from typing import assert_never

from gquery import tuning
from gquery.errors import OutOfRangeError
from gquery.expression.expr import (
    And,
    Call,
    Case,
    Cast,
    Column,
    Exists,
    Expr,
    In,
    InSubquery,
    IsNull,
    Literal,
    Not,
    Or,
    ScalarSubquery,
)
from gquery.expression.types import BOOLEAN, INT64, VARCHAR, Bounds, Kind, Register, type_bounds
from gquery.functions import FUNCTIONS
from gquery.kernels import arithmetic, casts, compare, dictionaries, hashes, interval_values, ir, loops, patterns
from gquery.kernels import slot_constants as slots
from gquery.kernels.bindings import NeedsHostError
from gquery.kernels.bodies import ARITHMETIC, EXTREMES, has_body
from gquery.kernels.code import Code
from gquery.kernels.convert import convert, merge
from gquery.kernels.guarded import pair, single
from gquery.kernels.number_registers import exact_constant
from gquery.kernels.text_matches import by_scan
from gquery.kernels.values import Value, ValueProperties, value_properties
from gquery.runtime.interrupt import check
from gquery.runtime.records import dataclass, replace


def render(e: Expr, code: Code) -> Value:
    """Write the lines that compute ``e`` for the current row; its value. A value at hand is not computed again."""
    if isinstance(e, Column):
        return code.column(e)
    if code.is_thrown_away:
        found = code.descriptions.get(e)
        if found is None:
            found = code.descriptions[e] = _render(e, code)
        return found
    if (found := code.recall(e)) is not None:
        return found
    return code.remember(e, _render(e, code))


def _render(e: Expr, code: Code) -> Value:
    check()
    looked_up = dictionaries.lookup(e, code)
    if looked_up is not None:
        return looked_up
    match e:
        case Column():
            return code.column(e)
        case Literal():
            return literal(e, code)
        case Call():
            return _call(e, code)
        case Cast(arg, dtype, try_):
            return casts.cast(render(arg, code), dtype, try_, code)
        case Case():
            return _case(e, code)
        case And(args):
            return _connective(args, code, stops_at=False)
        case Or(args):
            return _connective(args, code, stops_at=True)
        case Not(arg):
            value = render(arg, code)
            return Value(code.let(ir.Not(value.var)), value.ok, replace(value.properties, bounds=Bounds(0, 1)))
        case IsNull(arg):
            value = render(arg, code)
            return Value(
                ir.FALSE if value.ok is None else code.let(ir.Not(value.ok)),
                None,
                value_properties(BOOLEAN, nullable=False),
            )
        case In(arg, items):
            return compare.is_in(render(arg, code), items, code)
        case ScalarSubquery() | Exists() | InSubquery():
            raise AssertionError("a subquery outlived decorrelation")
        case _:
            assert_never(e)


def describe(e: Expr, columns: dict[int, ValueProperties], target: str = "cpu") -> ValueProperties:
    """What is known of an expression's value over columns of which ``columns`` is known: a rendering thrown away. Raises
    `NeedsHostError` where the expression has no kernel body on that target.
    """
    return columns[e.id] if isinstance(e, Column) else render(e, Code(target, columns)).properties


def described(e: Expr, code: Code) -> ValueProperties:
    """`describe` for an expression of ``code``'s kernel, once: a CASE asks for its branches before it renders them, and so do
    those inside it."""
    if isinstance(e, Column):
        return code.known[e.id]
    if not code.is_thrown_away:
        if code.describer is None:
            code.describer = Code(code.target, code.known, code.descriptions)
        code = code.describer
    return render(e, code).properties


def condition(e: Expr, code: Code) -> ir.Expression:
    """A test that is true where ``e`` is TRUE (a NULL is not)."""
    if isinstance(e, And):
        return code.once((e, "is true"), lambda: _all_true(_grouped(e.args), code))
    if isinstance(e, Or) and e.nullable and any(isinstance(a, And) for a in e.args):
        return code.once((e, "is true"), lambda: _any_true(_grouped(e.args), code))
    return _is_true(render(e, code))


def _is_true(value: Value) -> ir.Expression:
    if value.ok is None:
        return value.var
    return ir.FALSE if value.ok == ir.FALSE else ir.And((value.ok, value.var))


def literal(e: Literal, code: Code) -> Value:
    """A constant as a parameter, so that its value is not part of the text."""
    if e.is_null:
        return casts.null_of(e.dtype, code)
    if e.dtype.kind is Kind.BOOLEAN:
        what = value_properties(e.dtype, Bounds(int(e.value), int(e.value)), nullable=False)
        return Value(ir.TRUE if e.value else ir.FALSE, None, what)
    if e.dtype.is_float:
        return Value(code.constant(float(e.value)), None, value_properties(e.dtype, nullable=False))
    if e.dtype.kind is Kind.VARCHAR:
        return Value(compare.string_constant(e.value.encode(), code), None, value_properties(VARCHAR, nullable=False))
    value = int(e.value)
    what = ValueProperties(e.dtype, Bounds(value, value), nullable=False)
    return Value(exact_constant(value, what.register, code), None, what)


def _call(e: Call, code: Code) -> Value:
    if (matched := by_scan(e, code)) is not None:
        return matched
    if e.function in ARITHMETIC:
        return arithmetic.arithmetic(e, [render(a, code) for a in e.args], code)
    if e.function in compare.COMPARISONS:
        a, b = (slots.operand(x, code) or render(x, code) for x in e.args)
        return compare.comparison(e.function, a, b, code)
    if e.function in ("like", "ilike"):
        return _like(e, code)
    if e.function in EXTREMES:
        return _extreme(e, code)
    if e.function in hashes.FUNCTIONS:
        return hashes.call(e, [dictionaries.as_string(render(a, code), code) for a in e.args], code)
    if e.function == "add_interval":
        interval = e.args[1]
        assert isinstance(interval, Literal)
        return arithmetic.add_interval(render(e.args[0], code), interval, code)
    if e.function == "add_days":
        return arithmetic.add_days(e, [render(a, code) for a in e.args], code)
    if e.function == "days_between":
        days = [arithmetic.finite(render(a, code), "days", code) for a in e.args]
        return arithmetic.exact("subtract", days[0], days[1], e.dtype, code)
    if e.function in interval_values.FUNCTIONS:
        return interval_values.written(e, render, code)
    if e.function in arithmetic.BITS and e.dtype.kind is Kind.UBIGINT:
        return arithmetic.unsigned_bits(e, [render(a, code) for a in e.args], code)
    return _function(e, code)


def _like(e: Call, code: Code) -> Value:
    subject, pattern, escape = e.args[0], e.args[1], e.args[2] if len(e.args) > 2 else Literal("", VARCHAR)
    if not (isinstance(pattern, Literal) and isinstance(escape, Literal)):
        raise NeedsHostError(e.function)
    if pattern.is_null or escape.is_null:
        return literal(Literal(None, BOOLEAN), code)
    value = dictionaries.as_string(render(subject, code), code)
    what = value_properties(BOOLEAN, nullable=value.properties.nullable)
    if e.function == "like":
        from gquery.kernels import like

        return Value(like.like(value.var, pattern, escape, code), value.ok, what)
    text = compare.string_constant(patterns.like_pattern(pattern.value.lower(), escape.value), code)
    return Value(code.let(code.call("str_ilike", value.var, text)), value.ok, what)


def _function(e: Call, code: Code) -> Value:
    """A function with a body of its own: a call under a guard where an argument can be NULL."""
    declared = FUNCTIONS[e.function]
    values = [render(a, code) for a in e.args]
    if e.function not in arithmetic.TAKES_INFINITE:
        values = [arithmetic.finite(v, declared.name.lstrip("_"), code) for v in values]
    bounds = declared.bounds(*(v.properties.bounds for v in values)) if declared.bounds is not None else None
    nullable = declared.body is None or declared.gives_null or any(v.properties.nullable for v in values)
    what = value_properties(e.dtype, bounds, nullable)
    name = f"fn_{declared.name}"
    if declared.body is None:
        if code.target != "python" or declared.host is None:
            raise NeedsHostError(e.function)
        from gquery.kernels.row_calls import row_call

        return row_call(e, values, code)
    takes_null = declared.takes_null or (False,) * len(values)
    arguments: list[ir.Expression] = []
    for v, takes in zip(values, takes_null, strict=True):
        arguments += [_argument(v, code), v.ok or ir.TRUE] if takes else [_argument(v, code)]
    code.functions[name] = declared.body
    if declared.unproved:
        message = "Overflow in a function of Python: an integer does not fit 64 bits, or the step of a range is 0"
        arguments += [code.status(), code.call("i64", code.site(OutOfRangeError, message))]
    result = ir.Call(name, tuple(arguments))
    for n, (raises, message) in enumerate(declared.domain):
        test = ir.Call(f"{name}_raises{n}", tuple(arguments))
        code.functions[f"{name}_raises{n}"] = raises
        given = code.both(*(v.ok for v in values))
        with code.when(ir.And((given, test)) if given else test):
            code.do(code.call("fail", code.status(), code.site(OutOfRangeError, message)))
    if what.dtype.kind is Kind.REAL:
        result = code.call("round_f32", result)
    ok = code.both(*(v.ok for v, takes in zip(values, takes_null, strict=True) if not takes))
    value = pair(result, ok, what, code) if declared.gives_null else single(result, ok, what, code)
    limit, label = type_bounds(e.dtype), declared.name.lstrip("_")
    if declared.unproved and what.register is Register.I64:
        bounds, label = INT64, "a function of Python"
    elif bounds is None or limit is None or bounds.within(limit):  # not so the last day of the last month
        return value
    return arithmetic.checked_range(arithmetic.RawInteger(value.var, value.ok, bounds), e.dtype, label, code)


def _argument(value: Value, code: Code) -> ir.Expression:
    """A value as the body of a function takes it: strings as STR, exact numbers as I64."""
    if value.properties.dtype.is_string:
        return dictionaries.as_string(value, code).var
    if value.properties.register is Register.I128:
        raise NeedsHostError("a 128-bit argument")
    return value.var


def _connective(args: tuple[Expr, ...], code: Code, stops_at: bool) -> Value:
    """AND (stops at FALSE) and OR (stops at TRUE): each further argument is looked at only where the earlier ones leave
    the result open. Written for the value that stops, so that NULL needs no case of its own. Many arguments are taken in
    groups, as Python nests no more than 100 blocks, and those that differ in constants alone in a loop."""
    return _nested(_grouped(args), code, stops_at)


def _all_true(terms: tuple[Term, ...], code: Code) -> ir.Name:
    """A variable that says whether all are TRUE, where no NULL has to be told from FALSE."""
    var = code.let(ir.FALSE)
    for term in terms:
        code.open_if(_test(term, code, False))
    code.set(var, ir.TRUE)
    code.close(len(terms))
    return var


def _any_true(terms: tuple[Term, ...], code: Code) -> ir.Name:
    """The same for whether one is TRUE. An AND among them stops at NULL, too, as one that stands alone does."""
    var = code.let(ir.TRUE)
    for term in terms:
        code.open_if(ir.Not(_test(term, code, True)))
    code.set(var, ir.FALSE)
    code.close(len(terms))
    return var


def _test(term: Term, code: Code, stops_at: bool) -> ir.Expression:
    match term:
        case loops.Run():
            return _is_true(loops.connective(term, code, stops_at, render))
        case _Group(inner):
            return (_any_true if stops_at else _all_true)(inner, code)
        case _:
            return condition(term, code)


def _grouped(args: tuple[Expr, ...]) -> tuple[Term, ...]:
    terms: tuple[Term, ...] = args if len(args) < tuning.kernel_texts.looped_terms else loops.with_runs(args)
    while len(terms) > (most := tuning.kernel_texts.nested_terms):
        groups = [terms[k : k + most] for k in range(0, len(terms), most)]
        terms = tuple(g[0] if len(g) == 1 else _Group(g) for g in groups)
    return terms


@dataclass(frozen=True)
class _Group:
    """Neighbours among the arguments of an AND or OR."""

    terms: tuple[Term, ...]


Term = Expr | loops.Run | _Group


def _term(term: Term, code: Code, stops_at: bool) -> Value:
    match term:
        case loops.Run():
            return loops.connective(term, code, stops_at, render)
        case _Group(terms):
            if any(isinstance(t, loops.Run | _Group) for t in terms):
                return _nested(terms, code, stops_at)
            return render((Or if stops_at else And)(terms), code)  # type: ignore[arg-type]
        case _:
            return render(term, code)


def _nested(args: tuple[Term, ...], code: Code, stops_at: bool) -> Value:
    """The arguments one inside another."""
    var, ok = code.let(ir.TRUE if stops_at else ir.FALSE), code.let(ir.TRUE)
    oks: list[ir.Expression] = []
    depth = 0
    for arg in args:
        value = _term(arg, code, stops_at)
        if value.ok is not None:
            oks.append(value.ok)
            code.open_if(ir.Not(ir.And((value.ok, value.var if stops_at else ir.Not(value.var)))))
        else:
            code.open_if(value.var if not stops_at else ir.Not(value.var))
        depth += 1
    code.set(var, ir.FALSE if stops_at else ir.TRUE)
    if oks:
        code.set(ok, ir.conjunction(*oks))
    code.close(depth)
    if not oks:
        return Value(var, None, value_properties(BOOLEAN, nullable=False))
    return Value(var, ok, value_properties(BOOLEAN, nullable=True))


def _case(e: Case, code: Code) -> Value:
    """CASE as nested ifs. What is known of the result is the union of what is known of its branches."""
    results = [value for _, value in e.branches] + [e.otherwise]
    there = [r for r in results if not (isinstance(r, Literal) and r.is_null)]
    what = merge([described(r, code) for r in there or results])
    if len(there) < len(results) and not what.nullable:  # a NULL tells of no value: codes of texts stay codes
        what = replace(what, nullable=True)
    if code.is_thrown_away and all(has_body(test) for test, _ in e.branches):  # tests tell nothing of the value
        return Value(code.variable(), code.variable() if what.nullable else None, what)
    var, ok = code.let(code.zero(what.register)), code.let(ir.FALSE) if what.nullable else None

    def assign(result: Expr) -> None:
        if isinstance(result, Literal) and result.value is None:
            return
        value = convert(render(result, code), what, code)
        code.set(var, value.var)
        if ok is not None:
            code.set(ok, value.ok or ir.TRUE)

    most = tuning.kernel_texts.nested_terms  # see `_connective`
    groups = [e.branches[k : k + most] for k in range(0, len(e.branches), most)]
    done = code.let(ir.FALSE) if len(groups) > 1 else None
    for k, group in enumerate(groups):
        if done is not None and k > 0:
            code.open_if(ir.Not(done))
        for test, result in group:
            with code.when(condition(test, code)):
                assign(result)
                if done is not None:
                    code.set(done, ir.TRUE)
            code.open_else()
        if k == len(groups) - 1:
            assign(e.otherwise)
        code.close(len(group) + (k > 0))
    return Value(var, ok, what)


def _extreme(e: Call, code: Code) -> Value:
    """GREATEST and LEAST: the first value that is not NULL, in place of which comes each one that beats it."""
    values = [render(a, code) for a in e.args]
    what = merge([v.properties for v in values])
    first, *others = (convert(v, what, code) for v in values)
    var, ok = code.let(first.var), first.ok
    if ok is not None:
        ok = code.let(ok)
    for value in others:
        beats = compare.test(EXTREMES[e.function], value, Value(var, None, what), code)
        takes = beats if ok is None else ir.Parenthesized(ir.Or((ir.Not(ok), beats)))
        with code.when(takes if value.ok is None else ir.And((value.ok, takes))):
            code.set(var, value.var)
            if ok is not None and value.ok is not None:
                code.set(ok, ir.TRUE)
        if value.ok is None:  # there is a value from here on
            ok = None
    return Value(var, ok, replace(what, nullable=ok is not None))
