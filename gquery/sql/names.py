"""The name of a result column that has no alias: the expression as DuckDB prints it."""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from gquery.expression.keywords import KEYWORDS
from gquery.sql.definitions import MACRO
from gquery.sql.grammar.tokens import ABS, ARRAY, JSON, marked
from gquery.sql.methods import is_method
from gquery.sql.window_names import keys_name, window_name

_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "//", exp.Mod: "%", exp.EQ: "=", exp.NEQ: "!=",
    exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.And: "AND", exp.Or: "OR", exp.DPipe: "||",
    exp.Pow: "**",
    exp.Like: "~~", exp.ILike: "~~*", exp.BitwiseAnd: "&", exp.BitwiseOr: "|",
    exp.BitwiseLeftShift: "<<", exp.BitwiseRightShift: ">>", exp.Glob: "~~~", exp.StartsWith: "^@",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM", exp.NullSafeNEQ: "IS DISTINCT FROM",
}  # fmt: skip


_INVERSE: dict[type[exp.Expr], str] = {
    exp.EQ: "!=", exp.NEQ: "=", exp.LT: ">=", exp.LTE: ">", exp.GT: "<=", exp.GTE: "<",
}  # fmt: skip
_FORMS = ("substring", "trim")  # of DuckDB's grammar, whose names have a schema then
_QUOTED_TYPES = frozenset((
    "DATE", "DOUBLE", "TINYINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "TIMESTAMP WITH TIME ZONE", "BLOB", "JSON",
    "UUID",
))  # fmt: skip


def column_name(node: exp.Expr) -> str:
    """``sum(x)``, ``(a + 1)``, ``count_star()``: how DuckDB names the column of an expression."""
    match node:
        case exp.Alias():
            return str(node.alias)
        case _ if node._meta is not None and MACRO in node._meta:
            return str(node._meta[MACRO])
        case exp.Column() if not isinstance(node.this, exp.Star):
            return ".".join(_identifier(p.name) for p in node.parts)
        case exp.Column() | exp.Identifier():
            return node.name
        case exp.Paren():
            return column_name(node.this)
        case exp.Literal():
            return f"'{node.name}'" if node.is_string else _number(node.name)
        case exp.Null():
            return "NULL"
        case exp.Boolean():
            return f"CAST('{'t' if node.this else 'f'}' AS BOOLEAN)"
        case exp.And() | exp.Or():
            return f"({f' {_BINARY[type(node)]} '.join(map(column_name, _terms(node)))})"
        case exp.Neg():
            inner = column_name(node.this)
            if isinstance(node.this, exp.Neg) and isinstance(node.this.this, exp.Literal):
                return inner[1:]
            return f"-{inner}" if isinstance(node.this, exp.Literal) else f"-({inner})"
        case exp.BitwiseNot():
            return f"~({column_name(node.this)})"
        case exp.Not():
            return _negation(node.this)
        case exp.Case():
            return _case(node)
        case exp.TryCast() | exp.Cast():
            word = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
            return f"{word}({column_name(node.this)} AS {_type_name(node.to)})"
        case exp.Distinct():
            return "DISTINCT " + ", ".join(map(column_name, node.expressions))
        case exp.Tuple():
            return f'main."row"({", ".join(map(column_name, node.expressions))})'
        case exp.Subquery() | exp.Query() | exp.Interval():
            return _written(node, normalize_functions="lower")
    return _predicate(node) or _call(node) or _nested(node) or _written(node)


def _nested(node: exp.Expr) -> str | None:
    """The name of a list, a struct or a map, or of what is taken out of one."""
    match node:
        case exp.Bracket(expressions=[index]) if not isinstance(index, exp.Slice):
            return f"{column_name(node.this)}[{column_name(index)}]"
        case exp.Dot() if isinstance(node.expression, exp.Identifier):
            return f"({column_name(node.this)}).{_identifier(node.expression.name)}"
        case exp.Array():
            return _list_name(node.expressions)
        case exp.Struct():
            fields = (f"{_identifier(e.this.name)} := {column_name(e.expression)}" for e in node.expressions)
            return f"main.struct_pack({', '.join(fields)})"
        case exp.ToMap() if isinstance(node.this, exp.Bracket):
            return column_name(outside(node.this))
        case exp.ToMap():
            parts = ([getattr(e, part) for e in node.this.expressions] for part in ("this", "expression"))
            return f'main."map"({", ".join(map(_list_name, parts))})'
    return None


def _list_name(values: list[exp.Expr]) -> str:
    return f"main.list_value({', '.join(map(column_name, values))})"


def outside(node: exp.Bracket) -> exp.Bracket:
    """``(MAP {...})[k]`` of ``MAP ({...}[k])``, as which sqlglot reads it."""
    made = node.copy()
    braces = made
    while isinstance(braces.this, exp.Bracket):
        braces = braces.this
    braces.set("this", exp.ToMap(this=braces.this))
    return made


def _predicate(node: exp.Expr) -> str | None:
    """The name of a test, or of another operator between two operands."""
    match node:
        case exp.Is(expression=exp.Boolean()):
            return (
                f"(CAST({column_name(node.this)} AS BOOLEAN) IS NOT DISTINCT FROM {str(node.expression.this).lower()})"
            )
        case exp.Is():
            null = isinstance(node.expression, exp.Null)
            return f"({column_name(node.this)} IS {'NULL' if null else node.expression.sql('duckdb')})"
        case exp.Between():
            low, high = column_name(node.args["low"]), column_name(node.args["high"])
            return f"({column_name(node.this)} BETWEEN {low} AND {high})"
        case exp.In() if node.expressions:
            return f"({column_name(node.this)} IN ({', '.join(map(column_name, node.expressions))}))"
        case exp.In() if node.args.get("field") is not None:
            return f"contains({column_name(node.args['field'].expressions[0])}, {column_name(node.this)})"
        case exp.Exists():
            return f"EXISTS({_query(node.this)})"
        case exp.In() if node.args.get("query") is not None:
            return f"({column_name(node.this)} = ANY({_query(node.args['query'])}))"
        case exp.Any(this=exp.Paren(this=value)) if not isinstance(value, exp.Query | exp.Subquery | exp.Array):
            return f"ANY(SELECT unnest({column_name(value)}))"
        case exp.Any():
            return f"ANY({_query(node.this)})"
        case exp.Binary(expression=exp.Anonymous(this="all" | "ALL", expressions=[value])) if type(node) in _INVERSE:
            return f"(NOT ({column_name(node.this)} {_INVERSE[type(node)]} ANY(SELECT unnest({column_name(value)}))))"
    if type(node) in _BINARY and isinstance(node, exp.Binary | exp.Func):
        symbol = ("!" if node.args.get("negate") else "") + _BINARY[type(node)]
        return f"({column_name(node.this)} {symbol} {column_name(node.expression)})"
    return None


def _call(node: exp.Expr) -> str | None:
    """The name of a call; of one that has a syntax of its own too."""
    match node:
        case exp.Anonymous(this=this, expressions=[left, right, *text]) if this == marked(JSON):
            return f"({column_name(left)} {'->>' if text else '->'} {column_name(right)})"
        case exp.Anonymous(this=this, expressions=[value]) if this == marked(ABS):
            return f"@({column_name(value)})"
        case exp.Window():
            return window_name(node, column_name)
        case exp.IgnoreNulls():
            return f"{column_name(node.this)} IGNORE NULLS"
        case exp.RespectNulls():  # which is what is done anyway
            return column_name(node.this)
        case exp.Order() if node.this is not None:
            return f"{column_name(node.this)} ORDER BY {keys_name(node, column_name)}"
        case exp.WithinGroup():
            keys = keys_name(node.expression, column_name)
            if node.this.name.lower() == "mode":
                return f'"mode"() WITHIN GROUP ( ORDER BY {keys})'
            return f"{column_name(node.this)[:-1].replace('percentile', 'quantile', 1)} ORDER BY {keys})"
        case exp.Filter():
            return f"{column_name(node.this)} FILTER (WHERE {column_name(node.expression.this)})"
        case exp.AtTimeZone():
            return f"main.timezone({column_name(node.args['zone'])}, {column_name(node.this)})"
        case exp.Extract():
            return f"main.date_part('{node.name.lower()}', {column_name(node.expression)})"
        case exp.StrPosition():
            return f'main."position"({column_name(node.this)}, {column_name(node.args["substr"])})'
        case exp.RegexpLike() | exp.SimilarTo():
            return f"regexp_full_match({column_name(node.this)}, {column_name(node.expression)})"
        case exp.Anonymous() if is_method(node) and isinstance(node.expressions[0], exp.Column):
            names = [column_name(a) for a in node.expressions[1:]]
            return f"{column_name(node.expressions[0])}.{_quoted(node.name.lower())}({', '.join(names)})"
        case exp.Anonymous(this=name) if name == marked(ARRAY):
            return f"ARRAY({_query(node.expressions[0])})"
        case exp.Lambda():
            given = ", ".join(_identifier(p.name) for p in node.expressions)
            return f"(lambda {given}: {column_name(node.this)})"  # also of ``x -> x + 1``, which the tree does not tell apart
        case exp.PropertyEQ() | exp.Kwarg():
            return f"{_identifier(node.this.name)} := {column_name(node.expression)}"
        case exp.Anonymous():
            return _called(node.name.lower().lstrip("_"), node.expressions)  # a form of the DataFrame API
        case exp.Trim() | exp.Substring():
            from gquery.sql.calls import function_call

            name, args = function_call(node)
            return f"main.{_quoted(name)}({', '.join(map(column_name, args))})"
    return None


def _query(node: exp.Expr) -> str:
    inner = node.this if isinstance(node, exp.Subquery) else node
    return _written(inner, normalize_functions="lower")


def _called(name: str, args: list[exp.Expr]) -> str:
    if name == "count" and (not args or isinstance(args[0], exp.Star)):
        return "count_star()"
    names = [column_name(a) for a in args]
    match name:
        case "grouping" | "grouping_id":
            return f"GROUPING({', '.join(names)})"
        case "coalesce" | "ifnull":
            return f"COALESCE({', '.join(names)})"
        case "if" if len(names) == 3:
            return f"CASE  WHEN ({names[0]}) THEN ({names[1]}) ELSE {names[2]} END"
    schema = "main." if name in _FORMS else ""
    return f"{schema}{_quoted(name)}({', '.join(names)})"


def _quoted(name: str) -> str:
    return f'"{name}"' if name in KEYWORDS else name


def _identifier(name: str) -> str:
    """A name as a text has to have it."""
    is_plain = re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", name) is not None and name.lower() not in KEYWORDS
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def _number(text: str) -> str:
    text = text.replace("_", "")
    return repr(float(text)) if "e" in text.lower() else text.removesuffix(".")


def _negation(node: exp.Expr) -> str:
    match node:
        case exp.Is(expression=exp.Null()):
            return f"({column_name(node.this)} IS NOT NULL)"
        case exp.Is(expression=exp.Boolean()):
            return column_name(node).replace(" IS NOT DISTINCT FROM ", " IS DISTINCT FROM ")
        case exp.In() if node.expressions:
            return column_name(node).replace(" IN (", " NOT IN (", 1)
    inner = _bare(node)
    if isinstance(inner, exp.Not) and isinstance(bare := _bare(inner.this), exp.Binary) and type(bare) in _INVERSE:
        return column_name(bare)
    inverse = _INVERSE.get(type(inner))
    if inverse is not None and isinstance(inner, exp.Binary) and not isinstance(inner.expression, exp.Any | exp.All):
        return f"({column_name(inner.this)} {inverse} {column_name(inner.expression)})"
    return f"(NOT {column_name(node)})"


def _bare(node: exp.Expr) -> exp.Expr:
    """What stands in parentheses."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _terms(node: exp.Expr) -> list[exp.Expr]:
    """The terms of a chain of AND or OR, which is one whatever its parentheses."""
    terms: list[exp.Expr] = []
    stack = [node]
    while stack:
        e = _bare(stack.pop())
        if type(e) is type(node):
            stack += [e.expression, e.this]
        else:
            terms.append(e)
    return terms


def _case(node: exp.Case) -> str:
    text = "CASE "
    for branch in node.args["ifs"]:
        test = column_name(branch.this)
        if node.this is not None:
            test = f"({column_name(node.this)} = {test})"
        text += f" WHEN ({test}) THEN ({column_name(branch.args['true'])})"
    default = node.args.get("default")
    return f"{text} ELSE {column_name(default) if default is not None else 'NULL'} END"


def _type_name(node: exp.DataType) -> str:
    from gquery.errors import Error
    from gquery.sql.types import sql_type

    try:
        found = str(sql_type(node)).replace(",", ", ")
        return f'"{found}"' if found in _QUOTED_TYPES else found
    except Error:
        return _written(node)


def unique_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of a table's columns: they have to differ, so a later equal one gets ``_1``, ``_2``, ..."""
    seen: set[str] = set()
    result: list[str] = []
    for name in names:
        candidate, n = name, 0
        while candidate.lower() in seen:
            n += 1
            candidate = f"{name}_{n}"
        seen.add(candidate.lower())
        result.append(candidate)
    return tuple(result)


def _written(node: exp.Expr, **options: Any) -> str:
    """As sqlglot writes it, without its word on stderr of what it leaves out: a name may be short. What a macro gives is
    written as its call."""
    if any(MACRO in (n._meta or ()) for n in node.walk()):
        node = node.transform(lambda n: exp.Var(this=shown) if (shown := (n._meta or {}).get(MACRO)) else n)
    return str(node.sql("duckdb", unsupported_level=ErrorLevel.IGNORE, **options))
