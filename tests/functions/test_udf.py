"""Python functions in queries: what they give on every target, how they are found, and what is refused, with its line."""

from __future__ import annotations

import datetime
import gc
import linecache
import math
from collections.abc import Callable, Iterator
from math import pi, sqrt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import gquery
from gquery import Connection, col, udf
from gquery.errors import BindError, CatalogError, InterfaceError, NotSupportedError
from gquery.functions import FUNCTIONS
from gquery.functions.user import UserFunction

RATE = 2
TABLE = pa.table(
    {
        "a": [3, 1, None, 2, -7, 2**62],
        "b": [1.5, -2.0, 0.25, None, 4.0, float("inf")],
        "c": [True, False, None, True, False, True],
        "d": pa.array([datetime.date(2020, 1, n) for n in (1, 2, 3, 4, 5)] + [None], pa.date32()),
        "s": ["x", "y", None, "xyz", "z", ""],
    }
)


@pytest.fixture(params=["python", "cpu"])
def db(request: pytest.FixtureRequest) -> Iterator[Connection]:
    with gquery.connect(device=request.param) as connection:
        connection.sql("SET interpret_limit = 0")
        yield connection.register("t", TABLE)


@udf
def half(x: float) -> float:
    """Half of x."""
    return x / 2


@udf
def first_of(x: int | None, y: int) -> int | None:
    if x is None:
        x = y if y > 0 else -1
        if x == -1:
            return None
    return x


@udf
def weekend(day: datetime.date) -> bool:
    return (day + 3) % 7 >= 5  # type: ignore


@udf
def later(day: datetime.date | None, days: int) -> datetime.date:
    if day is not None:
        return day + days  # type: ignore
    return days  # type: ignore


@udf
def collatz(n: int) -> int:
    """Loops, branches, variables that change places."""
    steps, limit = 0, 1000
    while n > 1 and steps < limit:
        if n % 2 == 0:
            n //= 2
        else:
            n = 3 * n + 1
        steps += 1
    for i in range(2, 5):
        if i == 3:
            continue
        steps, limit = steps + i, steps
    return steps


@udf
def mathematics(x: float) -> float:
    return sqrt(abs(x)) + math.floor(x) * pi + x**2 - 2**x + math.log(x) + min(x, 1, 2.5) + round(x) + max(int(x), 0)


@udf
def same(x: int | None) -> int | None:
    return x


def test_in_sql(db: Connection) -> None:
    assert db.sql("SELECT half(b) FROM t").fetchall() == [(0.75,), (-1.0,), (0.125,), (None,), (2.0,), (math.inf,)]
    assert db.sql("SELECT a, half(a) AS h FROM t WHERE half(a) > 0.5 ORDER BY h LIMIT 1").fetchall() == [(2, 1.0)]
    assert db.sql("SELECT half(length(s)) FROM t").fetchall() == [(0.5,), (0.5,), (None,), (1.5,), (0.5,), (0.0,)]
    assert db.sql("SELECT sum(half(a)), half(sum(a)) FROM t WHERE a < 10").fetchall() == [(-0.5, -0.5)]
    assert db.sql("SELECT half(7), half(NULL), half(1.5)").fetchall() == [(3.5, None, 0.75)]
    relation = db.sql("SELECT Half(b) FROM t")
    assert (relation.columns, [str(t) for t in relation.types]) == (["half(b)"], ["DOUBLE"])


def test_nulls(db: Connection) -> None:
    rows = db.sql("SELECT first_of(a, length(s)), first_of(NULL, 0), first_of(a, NULL), same(a) FROM t").fetchall()
    assert rows == [(3, None, None, 3), (1, None, None, 1), (None, None, None, None), (2, None, None, 2),
                    (-7, None, None, -7), (2**62, None, None, 2**62)]  # fmt: skip
    assert db.sql("SELECT first_of(a, 5), first_of(NULL, length(s)) FROM t").fetchall() == [
        (3, 1), (1, 1), (5, None), (2, 3), (-7, 1), (2**62, None)
    ]  # fmt: skip
    joined = "SELECT count(*) FROM t LEFT JOIN (SELECT 3 AS k, 1 AS v) o ON t.a = o.k WHERE first_of(v, 9) = 9"
    assert db.sql(joined).fetchall() == [(5,)]
    assert db.sql("SELECT first_of(length(s), 4) FROM t").fetchall()[2] == (4,)  # over a dictionary, too


def test_dates(db: Connection) -> None:
    assert db.sql("SELECT weekend(d) FROM t").fetchall() == [(False,), (False,), (False,), (True,), (True,), (None,)]
    first, last = (
        db.sql("SELECT later(d, 31) FROM t").fetchall()[0],
        db.sql("SELECT later(d, 31) FROM t").fetchall()[-1],
    )
    assert (first, last) == ((datetime.date(2020, 2, 1),), (datetime.date(1970, 2, 1),))
    assert str(db.sql("SELECT later(d, 31) FROM t").types[0]) == "DATE"


def test_control_flow(db: Connection) -> None:
    rows = db.sql("SELECT range, collatz(range) FROM range(1, 40)").fetchall()
    assert rows == [(n, collatz(n)) for n in range(1, 40)]


def test_mathematics(db: Connection) -> None:
    rows = db.sql("SELECT mathematics(range * 0.7) FROM range(1, 20)").fetchall()
    assert [r[0] for r in rows] == pytest.approx([mathematics(n * 0.7) for n in range(1, 20)], rel=1e-12)


def test_integers_never_wrap(db: Connection) -> None:
    @udf
    def cubed(n: int) -> int:
        return n * n * n

    @udf
    def total(a: int, b: int) -> int:
        return a + b - 1

    @udf
    def fourth(n: int) -> int:
        return n**4

    @udf
    def shifted(n: int) -> int:
        return n << 40

    @udf
    def mixed(n: int, x: float) -> float:
        return n * x + n

    last = 2**63 - 1
    for sql in (
        "cubed(4000000000)", f"total({last}, 2)", f"total(-{last}, -1)", "fourth(55109)", "shifted(8388608)",
        "shifted(-8388609)",
    ):  # fmt: skip
        with pytest.raises(gquery.DataError, match="64 bits"):
            db.sql(f"SELECT {sql} FROM range(3)").fetchall()
    assert db.sql(f"SELECT cubed(-2000000), total({last}, 0), fourth(55108), shifted(-8388608)").fetchall() == [
        (-(2000000**3), last - 1, 55108**4, -(2**63))
    ]
    assert db.sql(f"SELECT mixed({last}, 4.0)").fetchall() == [(last * 5.0,)]
    assert (cubed.name, total.name, fourth.name, shifted.name, mixed.name) is not None


def test_doubles_without_an_integer_raise(db: Connection) -> None:
    @udf
    def cut(x: float) -> int:
        return int(x)

    @udf
    def nearest(x: float) -> int:
        return round(x)

    @udf
    def below(x: float) -> float:
        return math.floor(x)

    @udf
    def returned(x: float | None) -> int | None:
        return None if x is None or x < 0 else x // 1  # type: ignore[return-value]

    @udf
    def counted(x: float) -> int:
        n = 0
        for _ in range(int(x)):
            n += 1
        return n

    for function in ("cut", "nearest", "below", "returned", "counted"):
        for value in ("'nan'::DOUBLE", "'inf'::DOUBLE", "9223372036854775808.0::DOUBLE", "1e300"):
            with pytest.raises(gquery.DataError, match="does not fit 64 bits"):
                db.sql(f"SELECT {function}({value}) FROM range(3)").fetchall()
        assert db.sql(f"SELECT {function}(3.0), {function}(NULL)").fetchall() == [(3, None)]
    least = "-9223372036854775808.0::DOUBLE"
    assert db.sql(f"SELECT cut({least}), nearest({least}), cut(9223372036854774784.0::DOUBLE)").fetchall() == [
        (-(2**63), -(2**63), 2**63 - 1024)
    ]
    with pytest.raises(gquery.DataError, match="does not fit 64 bits"):
        db.sql("SELECT cut(-9223372036854777856.0::DOUBLE) FROM range(3)").fetchall()
    guarded = "SELECT CASE WHEN b < 1e6 THEN cut(b) END FROM t"  # t has an infinity
    assert db.sql(guarded).fetchall() == [(1,), (-2,), (0,), (None,), (4,), (None,)]
    assert (cut.name, nearest.name, below.name, returned.name, counted.name) is not None


def test_what_python_raises_from_has_a_value(db: Connection) -> None:
    @udf
    def edges(x: float, n: int) -> float:
        return x / 0 if n == 0 else math.sqrt(-x) if n == 1 else math.exp(x * 1e5) if n == 2 else x % 0 + n // 0

    @udf
    def cut(x: float) -> int:
        return x  # type: ignore[return-value]

    @udf
    def wide(x: int) -> float:
        return x

    rows = [r[0] for r in db.sql("SELECT edges(1.0, range) FROM range(4)").fetchall()]
    assert (rows[0], math.isnan(rows[1]), rows[2], rows[3]) == (math.inf, True, math.inf, 0.0)
    assert db.sql("SELECT cut(-2.7), wide(3)").fetchall() == [(-2, 3.0)]
    assert (edges.name, cut.name, wide.name) is not None


def test_in_the_dataframe_api(db: Connection) -> None:
    t = db.table("t")
    assert t.filter(half(col("a")) > 0.5).select(x=half(col("a") + 1)).fetchall()[0] == (2.0,)
    assert t.agg(half(col("b")).max()).fetchall() == [(math.inf,)]
    assert t.select(first_of(col("a"), 8)).fetchall()[2] == (8,)
    assert half(3.0) == 1.5  # the Python function itself


def test_the_function_is_in_the_kernel_of_the_query() -> None:
    connection = gquery.connect(device="cpu").register("t", TABLE)
    for target in ("python", "cpu", "cuda"):
        (kernel,) = connection.kernels("SELECT count(*) FROM t WHERE half(b) > 0 AND weekend(d)", target)
        assert [n.rsplit("_", 1)[0] for n, _ in kernel.functions] == ["fn_half", "fn_weekend"]


@pytest.mark.parametrize("function", ["half(b)", "first_of(a, 1)", "later(d, 3)", "collatz(a)", "mathematics(b)"])
def test_compiles_for_a_gpu(function: str) -> None:
    from gquery.kernels.targets.cuda import TARGET

    connection = gquery.connect(device="python").register("t", TABLE)
    for kernel in connection.kernels(f"SELECT count(*), max({function}) FROM t WHERE {function} IS NOT NULL", "cuda"):
        assert TARGET.compile_cubin(kernel, (9, 0)).registers > 0


# ---- names -----------------------------------------------------------------------------------------------------------


def test_names(db: Connection) -> None:
    def double(x: int) -> int:
        return 2 * x

    db.create_function("twice", double).create_function(half)
    assert db.sql("SELECT twice(4), half(1)").fetchall() == [(8, 0.5)]
    triple = udf(name="Triple")(lambda_free)
    assert db.create_function(triple).sql("SELECT triple(4)").fetchall() == [(12,)]
    db.create_function("twice", lambda_free)  # in place of the other; the plan that is kept is not used
    assert db.sql("SELECT twice(4), half(1)").fetchall() == [(12, 0.5)]
    db.sql("CREATE VIEW v AS SELECT twice(5) AS x")
    assert db.sql("SELECT x FROM v").fetchall() == [(15,)]
    with pytest.raises(CatalogError, match='"sqrt" in SQL already'):
        db.create_function("sqrt", double)
    with pytest.raises(BindError, match="there is no scalar function 'thrice'"):
        db.sql("SELECT thrice(1)")
    db.sql("SET python_scan = false")
    with pytest.raises(BindError, match="there is no scalar function 'collatz'"):
        db.sql("SELECT collatz(1)")


def lambda_free(x: int) -> int:
    return x * 3


def test_arguments(db: Connection) -> None:
    for call in ("half('x' || s)", "half(b, b)", "half()", "weekend(a)", "first_of(b, 1)"):
        with pytest.raises(BindError, match=r"no function matches .*\n  candidate: "):
            db.sql(f"SELECT {call} FROM t")


def test_two_functions_of_one_name(db: Connection) -> None:
    mine = udf(name="half")(lambda_free)
    with pytest.raises(InterfaceError, match='two Python functions are called "half"'):
        db.table("t").select(half(col("b")) + mine(col("a")))


# ---- what is refused -------------------------------------------------------------------------------------------------


def made(source: str, folder: Path) -> Callable[..., Any]:
    """A function from a file, as a user has it; its def stands in line 5."""
    file = folder / "users.py"
    file.write_text(f"import math, datetime, os\nfrom math import sqrt\nRATE = 2\n\n{source}")
    namespace: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), namespace)
    function: Callable[..., Any] = namespace["f"]
    return function


REFUSED = [
    ("def f(a: int) -> int:\n    return a * RATE\n", 6, "it uses RATE, which is defined outside"),
    ("def f(a: int) -> int:\n    return [a][0]\n", 6, "indexing"),
    ("def f(a: int) -> int:\n    b = [a]\n    return a\n", 6, "a list"),
    ("def f(a: int) -> int:\n    return len(a)\n", 6, "it calls len"),
    ("def f(a: int) -> int:\n    return os.getpid()\n", 6, "neither of math nor a builtin"),
    ("def f(a: int) -> int:\n    return a.real\n", 6, "an attribute"),
    ("def f(a: int) -> int:\n    return math.gamma(a)\n", 6, "it calls math.gamma"),
    ("def f(a: int) -> int:\n    return sqrt(a, a)\n", 6, "takes 1 argument"),
    ("def f(a: int) -> int:\n    return open('x')\n", 6, "it has a str"),
    ("def f(a: int) -> int:\n\n    return f'{a}'\n", 7, "text"),
    ("def f(a: int) -> int:\n    try:\n        return 1\n    except ValueError:\n        return 2\n", 6, "try"),
    ("def f(a: int) -> int:\n    raise ValueError\n", 6, "raise"),
    ("def f(a: int) -> int:\n    import os\n    return 1\n", 6, "import"),
    ("def f(a: int) -> int:\n    if a > 1:\n        return 1\n", 6, "end without a return"),
    ("def f(a: int) -> int:\n    if a > 1:\n        b = 1\n    return b\n", 8, "b may have no value here"),
    ("def f(a: int) -> int:\n    while a > 1:\n        b = 1\n        a -= 1\n    return b\n", 9, "b may have no value"),
    ("def f(a: int) -> int:\n    for x in (1, 2):\n        pass\n    return a\n", 6, "no range"),
    ("def f(a: int) -> int:\n    return None\n", 6, "returns None"),
    ("def f(a: int) -> int:\n    return 1 if a is None else 2\n", 6, "a is never None"),
    ("def f(a: int) -> int:\n    return lambda: a\n", 6, "lambda"),
    ("def f(a: int) -> int:\n    return 2**70 + 99999999999999999999\n", 6, "does not fit 64 bits"),
    ("def f(a: int) -> int:\n    return max(a)\n", 6, "two arguments or more"),
    ("def f(a: int) -> int:\n    return round(a, ndigits=1)\n", 6, "by name"),
    ("def f(a: int) -> int:\n    return (b := a)\n", 6, "an assignment inside"),
    ("def f(a: int) -> int:\n    return eval('1')\n", 6, "it has a str"),
    ("def f(a: int) -> int:\n    return __import__(a)\n", 6, "it calls __import__"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "line", "why"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_refused_where_it_is_defined(source: str, line: int, why: str, tmp_path: Path) -> None:
    with pytest.raises(NotSupportedError) as raised:
        udf(made(source, tmp_path))
    text = str(raised.value)
    assert text.startswith('function "f" cannot be compiled: ') and why in text
    shown = (tmp_path / "users.py").read_text().splitlines()[line - 1].strip()
    assert f'users.py", line {line}\n    {shown}' in text


@pytest.mark.parametrize(
    ("source", "line", "why"),
    [
        ("def f(a: float) -> float:\n    b = a + 1\n    return ~b\n", 7, "invert"),
        ("def f(a: float) -> float:\n    b = a & 1\n    return b\n", 6, "and_"),
    ],
)
def test_refused_by_numba(source: str, line: int, why: str, tmp_path: Path) -> None:
    broken = udf(made(source, tmp_path))
    connection = gquery.connect(device="cpu")
    for use in (lambda: connection.create_function(broken), lambda: connection.sql("SELECT broken(1.0)"),
                lambda: connection.sql("SELECT 1.0 AS a").select(broken(col("a")))):  # fmt: skip
        with pytest.raises(NotSupportedError) as raised:
            use()
        assert why in str(raised.value) and f'users.py", line {line}\n' in str(raised.value)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def f(a) -> int:\n    return 1\n", "a has no annotation"),
        ("def f(a: int):\n    return 1\n", "return has no annotation"),
        ("def f(a: str) -> int:\n    return 1\n", "a is annotated str"),
        ("def f(a: int | float) -> int:\n    return 1\n", "a is annotated"),
        ("def f(a: int = 1) -> int:\n    return 1\n", "without defaults"),
        ("def f(*a: int) -> int:\n    return 1\n", "plain"),
        ("f = lambda a: a\n", "written with def"),
        ("f = sqrt\n", "written with def"),
    ],
)
def test_wrong_signatures(source: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(InterfaceError, match=why):
        udf(made(source, tmp_path))


def test_equal_functions_share_what_was_compiled(tmp_path: Path) -> None:
    source = "def f(a: int) -> int:\n    return a + 1\n"
    one, two = udf(made(source, tmp_path)), udf(made(source, tmp_path))
    assert isinstance(one, UserFunction) and one.scalar is two.scalar
    assert udf(made(source.replace("1", "2"), tmp_path)).scalar is not one.scalar


def test_declarations_go_with_the_last_call() -> None:
    """Also where a plan alone has it; one that is declared again is found."""
    source = "def f{0}(x: int) -> int:\n    return x * {0} + 7\n"

    def made(n: int) -> UserFunction:
        file, text = f"<test of declarations {n}>", source.format(n)
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        names: dict[str, Any] = {}
        exec(compile(text, file, "exec"), names)
        return udf(names[f"f{n}"])

    with gquery.connect("python") as db:
        db.register("t", pa.table({"x": [1]}))
        before = set(FUNCTIONS)
        relation = db.table("t").select(made(1)(col("x")).alias("v"))
        for n in range(2, 30):
            db.create_function("f", made(n))
            assert db.sql("SELECT f(x) FROM t").fetchall() == [(n + 7,)]
        assert relation.fetchall() == [(8,)]
        db._plans.clear()
        gc.collect()
        assert len(set(FUNCTIONS) - before) <= 3
        assert relation.fetchall() == [(8,)]
        db.create_function("f", made(2))
        assert db.sql("SELECT f(x) FROM t").fetchall() == [(9,)]
