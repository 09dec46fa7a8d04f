"""Constants and expressions of each type over the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzzing.sessions.catalog import Catalog, Column, said
from tests.fuzzing.tape import Tape

INT, BIG, SMALL, DBL, DEC, STR, BOOL, DATE, TIME, JSON, LIST, TEXTS, STRUCT, MAP, BLOB = (
    "INTEGER",
    "BIGINT",
    "SMALLINT",
    "DOUBLE",
    "DECIMAL(9,2)",
    "VARCHAR",
    "BOOLEAN",
    "DATE",
    "TIMESTAMP",
    "JSON",
    "INTEGER[]",
    "VARCHAR[]",
    'STRUCT(x INTEGER, "from" VARCHAR)',
    "MAP(VARCHAR, INTEGER)",
    "BLOB",
)
KINDS = (INT, STR, INT, JSON, BIG, DBL, DEC, BOOL, DATE, TIME, SMALL, LIST, TEXTS, STRUCT, MAP, BLOB)
NUMBERS = INT, BIG, SMALL, DEC, DBL

_CONSTANTS: dict[str, tuple[str, ...]] = {
    INT: ("1", "0", "2", "3", "-1", "7", "2147483"),
    BIG: ("1::BIGINT", "2::BIGINT", "3000000000", "-1::BIGINT"),
    SMALL: ("1::SMALLINT", "3::SMALLINT", "-2::SMALLINT"),
    DBL: ("0.5::DOUBLE", "2.0::DOUBLE", "-1.25::DOUBLE", "1e10"),
    DEC: ("1.25::DECIMAL(9,2)", "0::DECIMAL(9,2)", "-3.10::DECIMAL(9,2)"),
    STR: ("'a'", "''", "'b'", "'A'", "'select'", "'it''s'", "'ä'", "'12'", "'[1, 2]'", "'2020-01-02'", "'true'"),
    BOOL: ("true", "false"),
    DATE: ("DATE '2020-01-02'", "DATE '1999-12-31'", "DATE '2024-02-29'"),
    TIME: ("TIMESTAMP '2020-01-02 03:04:05'", "TIMESTAMP '1999-12-31 23:59:59.5'"),
    JSON: (
        """'{"a": 1, "b": [1, 2, null]}'::JSON""",
        "'[]'::JSON",
        "'null'::JSON",
        """'{"a": {"from": "x"}}'::JSON""",
        '\'[1, "two", {"a": 3}]\'::JSON',
        "'12'::JSON",
        "'\"a\"'::JSON",
        "'{}'::JSON",
    ),
    LIST: ("[1, 2]", "([]::INTEGER[])", "[3, NULL, 1]", "([NULL]::INTEGER[])"),
    TEXTS: ("['a', 'b']", "([]::VARCHAR[])", "['select', NULL]"),
    STRUCT: (
        """{'x': 1, 'from': 'a'}""",
        """{'x': NULL::INTEGER, 'from': 'b'}""",
        """{'x': 2, 'from': NULL::VARCHAR}""",
    ),
    MAP: ("MAP {'a': 1}", "MAP {'a': 2, 'b': NULL}", "MAP([]::VARCHAR[], []::INTEGER[])"),
    BLOB: ("'ab'::BLOB", "'\\x00\\xFF'::BLOB"),
}

_FORMS: dict[str, tuple[str, ...]] = {  # of other values: {I} is an INTEGER, and so on
    INT: (
        "({I} + {I})",
        "abs({I})",
        "({I} % 3)",
        "{L}[1]",
        "({T}).x",
        "json_array_length({J})::INTEGER",
        "{M}['a']",
        "year({D})",
        "greatest({I}, {I})",
        "list_max({L})",
        "({J}->>'a')::INTEGER",
        "month({W})",
        "sign({I})::INTEGER",
        "{L}[-1]",
        "CAST({B} AS INTEGER)",
        "({I} & 3)",
        "struct_extract({T}, 'x')",
        "TRY_CAST({S} AS INTEGER)",
    ),
    BIG: (
        "length({S})",
        "({I}::BIGINT * 2)",
        "len({L})",
        "datediff('day', {D}, {D})",
        "strpos({S}, {S})",
        "cardinality({M})::BIGINT",
    ),
    SMALL: ("({I} % 7)::SMALLINT",),
    DBL: ("({I} / 2)", "sqrt(abs({F}))", "({F} + {I})", "round({F}, 1)", "{N}::DOUBLE"),
    DEC: ("({I} % 10)::DECIMAL(9,2)", "CAST({N} AS DECIMAL(9,2))"),
    STR: (
        "upper({S})",
        "({S} || {S})",
        "substring({S}, 1, 2)",
        "CAST({I} AS VARCHAR)",
        "({J}->>'a')",
        "concat({S}, {I})",
        "json_type({J})",
        "{X}[1]",
        "replace({S}, 'a', 'z')",
        '({T})."from"',
        "strftime({D}, '%Y/%m')",
        "{J}::VARCHAR",
        "trim({S})",
        "json_extract_string({J}, '$.b[0]')",
        "array_to_string({X}, ',')",
        "{L}::VARCHAR",
        "{T}::VARCHAR",
        "{M}::VARCHAR",
        "lower({S})",
        "json_value({J}, '$.a')::VARCHAR",
        "left({S}, 1)",
        "{D}::VARCHAR",
        "{N}::VARCHAR",
        "{F}::VARCHAR",
        "{W}::VARCHAR",
        "chr(97)",
        "hex({O})",
        "{S}[1:1]",
        "concat_ws('-', {S}, {S})",
        "CASE {S} WHEN 'a' THEN 'b' ELSE {S} END",
        "printf('%s', {S})",
        "reverse({S})",
    ),
    BOOL: (
        "({I} > {I})",
        "({S} = {S})",
        "({S} LIKE 'a%')",
        "({I} IS NULL)",
        "({B} AND {B})",
        "(NOT {B})",
        "({I} BETWEEN 0 AND {I})",
        "({I} IN (1, 2, NULL))",
        "({D} < {D})",
        "({S} IS DISTINCT FROM {S})",
        "list_contains({L}, {I})",
        "json_valid({S})",
        "json_contains({J}, '1')",
        "({T} = {T})",
        "({L} < {L})",
        "json_exists({J}, '$.a')",
        "({N} >= {I})",
        "starts_with({S}, 'a')",
        "({S} SIMILAR TO '[a-z]+')",
        "({I} = ANY (SELECT 1))",
        "map_contains({M}, 'a')",
        "({S} ILIKE 'A_')",
    ),
    DATE: ("({D} + 1)", "date_trunc('month', {D})::DATE", "{W}::DATE", "last_day({D})", "make_date(2020, 1, 1)"),
    TIME: ("({W} + INTERVAL 1 DAY)", "{D}::TIMESTAMP", "date_trunc('hour', {W})"),
    JSON: (
        "({J}->'a')",
        "json_extract({J}, '$.b[1]')",
        "json_object('k', {I}, 'v', {S})",
        "to_json({T})",
        "json_array({I}, {S}, NULL)",
        "json_merge_patch({J}, '{{\"a\": 2}}')",
        "to_json({L})",
        "json_extract({J}, '$[0]')",
        "json_object('select', {J})",
        "to_json({S})",
        "json({J})",
        "({J}->0)",
        "json_quote({S})",
        "to_json({D})",
        "json_merge_patch({J}, {J})",
        "json_array()",
        "to_json({M})",
        "({J}->'$.a.from')",
        "row_to_json({T})",
        "to_json({N})",
    ),
    LIST: (
        "[{I}, {I}]",
        "list_sort({L})",
        "list_concat({L}, {L})",
        "list_transform({L}, lambda x: x + 1)",
        "list_filter({L}, lambda x: x > 1)",
        "(({J}->'b')::INTEGER[])",
        "(range(2)::INTEGER[])",
        "{L}[1:1]",
        "list_distinct({L}).list_sort()",
        "map_values({M})",
        "list_reverse({L})",
    ),
    TEXTS: (
        "[{S}, {S}]",
        "json_keys({J})",
        "string_split({S}, 'a')",
        "list_append({X}, {S})",
        "map_keys({M})",
        "str_split({S}, '')",
    ),
    STRUCT: (
        "{{'x': {I}, 'from': {S}}}",
        'struct_pack(x := {I}, "from" := {S})',
        '{J}::STRUCT(x INTEGER, "from" VARCHAR)',
    ),
    MAP: ("MAP {{{S}: {I}}}", "map([{S}], [{I}])", "map_from_entries([('k', {I})])"),
    BLOB: ("encode({S})", "{S}::BLOB"),
}
_MARKS = {
    "I": INT,
    "G": BIG,
    "F": DBL,
    "N": DEC,
    "S": STR,
    "B": BOOL,
    "D": DATE,
    "W": TIME,
    "J": JSON,
    "L": LIST,
    "X": TEXTS,
    "T": STRUCT,
    "M": MAP,
    "O": BLOB,
}
_OF_ANY_CALL = INT, STR, BOOL, DEC, DBL  # of which NULL without a type has one function in most calls
_ANY = (
    "coalesce({0}, {1})",
    "CASE WHEN {b} THEN {0} ELSE {1} END",
    "nullif({0}, {1})",
    "if({b}, {0}, {1})",
    "ifnull({0}, {1})",
)


def constant(tape: Tape, kind: str) -> str:
    if kind not in _CONSTANTS:  # of a struct whose fields ALTER TABLE changed
        return "NULL"
    if tape.chance(12):
        return "NULL" if kind in _OF_ANY_CALL else f"(NULL::{kind})"
    return tape.one(_CONSTANTS[kind])


class Values:
    """Writes expressions over columns, which may be those of a table that a name stands before."""

    def __init__(self, tape: Tape, catalog: Catalog, columns: Sequence[Column], table: str = "") -> None:
        self.tape, self.catalog, self.columns, self.table = tape, catalog, columns, table

    def column(self, column: Column) -> str:
        name = said(self.tape, column.name)
        return f"{self.table}.{name}" if self.table and self.tape.chance(30) else name

    def of(self, kind: str, depth: int = 2) -> str:
        """An expression of a type. One that ALTER made is nobody's else: NULL has it."""
        if kind not in KINDS:
            return "NULL"
        tape = self.tape
        own = [c for c in self.columns if c.kind == kind]
        if own and (depth == 0 or tape.chance(60)):
            return self.column(tape.one(own))
        if depth == 0 or tape.chance(25):
            return self._kept(kind) or constant(tape, kind)
        if tape.chance(15):
            return tape.one(_ANY).format(self.of(kind, depth - 1), self.of(kind, depth - 1), b=self.of(BOOL, depth - 1))
        return tape.one(_FORMS[kind]).format_map(_Marks(self, depth - 1))

    def _kept(self, kind: str) -> str | None:
        """A variable or the call of a macro with a value of the type."""
        tape = self.tape
        made = [f"getvariable({text(n)})" for n, k in self.catalog.variables.items() if k == kind]
        made += [f"{said(tape, n)}({constant(tape, INT)})" for n, k in self.catalog.macros.items() if k == kind]
        return tape.one(made) if made and tape.chance(60) else None


class _Marks(dict[str, str]):
    """What a form's marks stand for, each written anew as `format_map` asks for it."""

    def __init__(self, values: Values, depth: int) -> None:
        super().__init__()
        self.made, self.depth = values, depth

    def __missing__(self, mark: str) -> str:
        return self.made.of(_MARKS[mark], self.depth)


def text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"
