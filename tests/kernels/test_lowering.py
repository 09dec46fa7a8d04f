"""Lowering: statements mean in LLVM what they mean to the interpreter; what has no meaning is one clear error."""

from __future__ import annotations

import platform
import random
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FunctionType
from typing import cast

import numpy as np
import pytest

import gquery
from gquery import tuning
from gquery.errors import InternalError
from gquery.kernels import ir
from gquery.kernels.builtin.registry import builtin_kernels
from gquery.kernels.ir.read import read_lines
from gquery.kernels.kernel import Kernel, Parameter
from gquery.kernels.lowering.assembler import LoweringError
from gquery.kernels.lowering.bodies import read_body
from gquery.kernels.lowering.library import Library
from gquery.kernels.lowering.module import cpu_module
from gquery.kernels.lowering.names import ENTRY
from gquery.kernels.lowering.user import UserModule
from gquery.kernels.lowering.values import Type
from gquery.kernels.primitives import ALIASES
from gquery.kernels.targets import cpu_code, cpu_llvm, get_target
from gquery.kernels.targets.binding import BODIES, Primitives
from gquery.kernels.targets.compilers import compiler_of, compiling_by
from gquery.kernels.targets.intrinsics import DEFINITIONS
from tests.support import primitives
from tests.support.paths import ROOT
from tests.support.primitives import run
from tests.support.tuned import Tune

COLUMNS = (Parameter("c0", "i64", True), Parameter("c1", "i32", True), Parameter("s0", "i64", True))
ROWS = 64


@pytest.fixture(autouse=True)
def lowered() -> Iterator[None]:
    """Whatever the compiler is that the tests are run with."""
    with compiling_by("llvm"):
        yield


def kernel(*body: str, parts: tuple[ir.Function, ...] = ()) -> Kernel:
    return Kernel(COLUMNS, (), read_lines(*body), (), frozenset(), cut=parts)


def results(target: str, made: Kernel) -> list[int]:
    """What a kernel stores for each row of two columns."""
    r = np.random.default_rng(7)
    wide = r.integers(-(2**63), 2**63 - 1, ROWS)
    wide[:20] = r.integers(-4, 5, 20)
    narrow = r.integers(-5, 6, ROWS, dtype=np.int32)
    *_, out = run(target, made, ROWS, [wide, narrow, np.zeros(ROWS, np.int64)])
    return [int(x) for x in out]


def same(made: Kernel) -> None:
    assert results("cpu", made) == results("python", made), made.text


# ---- statements ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "body",
    [
        ["f = lt_i64(i64(c1[i]), 0)", "if f:", "    a = add_i64(i64(c0[i]), 1)", "x = i64(3)", "if f:", "    x = a",
         "store_i64(s0, i64(i), x)"],
        ["n, x = i64(0), i64(c0[i])", "while lt_i64(n, 5):", "    if lt_i64(x, 0):", "        x = neg_i64(x)",
         "    else:", "        x = sub_i64(x, 7)", "    n = add_i64(n, 1)", "store_i64(s0, i64(i), x)"],
        ["x = i64(0)", "for k in range(2, 9):", "    for l in range(k):", "        x = add_i64(x, xor_i64(k, l))",
         "store_i64(s0, i64(i), x)"],
        ["a, b = i64(1), i64(2)", "a, b = b, a", "store_i64(s0, i64(i), sub_i64(a, b))"],
        ["f = lt_i64(i64(c1[i]), 0) or lt_i64(2, i64(c1[i])) and not lt_i64(4, i64(c1[i]))",
         "store_i64(s0, i64(i), from_bool(f))"],
        ["x = 5 if lt_i64(i64(c1[i]), 0) else i64(c0[i])", "store_i64(s0, i64(i), x)"],
        ["x = i64(0)", "if lt_i64(i64(c1[i]), 0) or (lt_i64(0, i64(c1[i])) and lt_i64(0, i64(c0[i]))):",
         "    x = i64(9)", "store_i64(s0, i64(i), x)"],
        ["n = i64(0)", "if not lt_i64(0, 1):", "    for k in range(3):", "        n = add_i64(n, k)",
         "store_i64(s0, i64(i), n)"],
    ],
)  # fmt: skip
def test_statements(body: list[str]) -> None:
    same(kernel(*body))


def test_a_test_is_looked_at_only_where_it_decides() -> None:
    """Behind a guard stands what would be read out of bounds."""
    wide, out = np.arange(ROWS), np.zeros(ROWS, np.int64)
    made = Kernel(
        (Parameter("c0", "i64", True), Parameter("s0", "i64", True)),
        (),
        read_lines(
            "k = mul_i64(i64(i), 1000000000)",
            "f = lt_i64(k, 5) and eq_i64(i64(c0[k]), 0)",
            "store_i64(s0, i64(i), from_bool(f))",
        ),
        (),
        frozenset(),
    )
    *_, out = run("cpu", made, ROWS, [wide, out])
    assert out.tolist() == [1] + [0] * (ROWS - 1)


def test_functions_of_a_kernel() -> None:
    """Parts return one value, several, or none; early, in branches and in loops."""

    def part(name: str, parameters: str, *lines: str) -> ir.Function:
        body = read_lines("def_ = i64(0)", *lines)[1:]
        return ir.Function(name, tuple(ir.Name(p) for p in parameters.split()), body)

    parts = (
        part("clamp", "x", "if lt_i64(x, 0):", "    return 0", "if lt_i64(100, x):", "    return i64(100)", "return x"),
        part("both", "x y", "if lt_i64(x, y):", "    return x, y, True", "return y, x, False"),
        part("note", "s0 i x", "store_i64(s0, i, x)"),
        part("search", "x", "n = i64(0)", "while True:", "    if lt_i64(x, mul_i64(n, n)):", "        return n",
             "    n = add_i64(n, 1)"),
    )  # fmt: skip
    same(
        kernel(
            "low, high, less = both(clamp(i64(c0[i])), i64(c1[i]))",
            "n = search(clamp(high))",
            "x = add_i64(mul_i64(low, 1000), n)",
            "if less:",
            "    x = neg_i64(x)",
            "note(s0, i64(i), x)",
            parts=parts,
        )
    )


class Programs:
    """Random bodies: variables that are there from the start, ones of a block, ones that only a flag's blocks set and read.
    Numbers stay small, since the interpreter's do not wrap."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.made = 0

    def body(self) -> list[str]:
        lines = ["a = and_i64(i64(c0[i]), 1023)", "b = i64(c1[i])", "n = i64(0)", "f = lt_i64(a, b)"]
        lines += self.block(["a", "b", "n"], ["f"], 3, 0)
        return [*lines, "store_i64(s0, i64(i), xor_i64(a, add_i64(b, n)))"]

    def value(self, numbers: Sequence[str], depth: int = 2) -> str:
        if depth == 0 or self.r.random() < 0.3:
            return self.r.choice([*numbers, "i64(c1[i])", "i64(i)", str(self.r.randint(-9, 9))])
        two = ("add_i64", "sub_i64", "mul_i64", "xor_i64", "min_i64", "max_i64", "div_i64")
        name = self.r.choice((*two, "neg_i64", "from_bool"))
        if name == "from_bool":
            return f"from_bool({self.test(numbers, ())})"
        given = [self.value(numbers, depth - 1) for _ in range(2 if name in two else 1)]
        if name == "div_i64":
            given[1] = f"or_i64({given[1]}, 1)"
        made = f"{name}({', '.join(given)})"
        return f"and_i64({made}, 1023)" if name == "mul_i64" else made

    def test(self, numbers: Sequence[str], flags: Sequence[str], depth: int = 2) -> str:
        kind = self.r.random()
        if depth and kind < 0.35:
            inner = [self.test(numbers, flags, depth - 1) for _ in range(2)]
            return f"({self.r.choice(('and', 'or')).join(f' {x} ' for x in inner).strip()})"
        if depth and kind < 0.45:
            return f"(not {self.test(numbers, flags, depth - 1)})"
        if flags and kind < 0.65:
            return self.r.choice(flags)
        return f"{self.r.choice(('lt_i64', 'eq_i64', 'ge_i64'))}({self.value(numbers, 1)}, {self.value(numbers, 1)})"

    def block(self, numbers: list[str], flags: list[str], depth: int, loops: int) -> list[str]:
        numbers, flags, lines = list(numbers), list(flags), []
        for _ in range(self.r.randint(2, 5)):
            self.made += 1
            kind = self.r.randint(0, 9)
            if kind < 3:
                lines.append(f"{self.r.choice(('a', 'b', 'n'))} = and_i64({self.value(numbers)}, 65535)")
            elif kind == 3:
                lines.append(f"v{self.made} = {self.value(numbers)}")
                numbers.append(f"v{self.made}")
            elif kind == 4:
                lines.append(f"g{self.made} = {self.test(numbers, flags)}")
                flags.append(f"g{self.made}")
            elif kind == 5 and depth:
                flag, own = f"g{self.made}", f"w{self.made}"
                lines += [f"{flag} = {self.test(numbers, flags)}", f"if {flag}:", f"    {own} = {self.value(numbers)}"]
                lines += indented(self.block(numbers, flags, depth - 1, loops))
                lines += [f"if {flag}:", f"    a = and_i64(add_i64(a, {own}), 65535)"]
            elif kind in (6, 7) and depth:
                lines.append(f"if {self.test(numbers, flags)}:")
                lines += indented(self.block(numbers, flags, depth - 1, loops))
                if kind == 7:
                    lines += ["else:", *indented(self.block(numbers, flags, depth - 1, loops))]
            elif kind == 8 and depth and loops < 2:
                lines.append(f"for k{self.made} in range({self.r.randint(0, 3)}, {self.r.randint(0, 5)}):")
                lines += indented(self.block([*numbers, f"k{self.made}"], flags, depth - 1, loops + 1))
            elif depth and loops < 2:
                count = f"c{self.made}_"
                lines += [f"{count} = i64(0)", f"while lt_i64({count}, {self.r.randint(0, 4)}):"]
                lines += [f"    {count} = add_i64({count}, 1)"]
                lines += indented(self.block(numbers, flags, depth - 1, loops + 1))
        return lines or ["n = add_i64(n, 1)"]


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed: int) -> None:
    same(kernel(*Programs(seed).body()))


# ---- primitives ---------------------------------------------------------------------------------------------------
def test_all_primitives_have_a_body_that_can_be_read() -> None:
    """Those of users are Numba's: they are written with Python's operators."""
    library = cpu_llvm.library()
    names = {*DEFINITIONS, *ALIASES}
    for module in BODIES:
        if module != "user":
            names |= vars(sys.modules.get(f"gquery.kernels.primitives.{module}") or pytest.importorskip(
                f"gquery.kernels.primitives.{module}")).keys()  # fmt: skip
    read = 0
    for name in sorted(names):
        meaning = library.primitives.meaning(name)
        if callable(meaning) and meaning.__module__.endswith(tuple(BODIES[:-1])):
            assert read_body(meaning).name
            read += 1
    assert read > 100


def test_no_primitive_calls_what_nobody_has() -> None:
    """The linker looks for all that the code of a kernel needs."""
    library = cpu_llvm.library()
    functions = [*primitives.every_one(library), *primitives.mathematics(library)]
    assert len(functions) > 250
    entry = f"define void @{ENTRY}() {{\nret void\n}}"
    cpu_llvm.load(cpu_code.object_code(primitives.exported(functions, cpu_code.head()) + entry))


def pick(a: int, b: int) -> int:
    return a


def pick_f64(a: int, b: int) -> int:
    return b


def refused(function: object, given: tuple[Type, ...], name: str) -> UserModule:
    raise LoweringError("there are no users")


class Two(Primitives):
    """Two primitives whose names, with those of types behind them, may be one."""

    def __init__(self) -> None:
        super().__init__({})

    def meaning(self, name: str) -> FunctionType:
        return cast(FunctionType, {"pick": pick, "pick_f64": pick_f64}[name])


def test_bodies_have_symbols_of_their_own() -> None:
    """Whatever types they are compiled for."""
    library = Library(Two(), {}, refused)
    types = [(a, b) for a in ("i64", "f64", "i128", "str", "*") for b in ("i64", "f64", "bool", "*")]
    functions = [library.find(name, pair) for name in ("pick", "pick_f64") for pair in types]
    functions += [library.find("pick", ((a, "i64"), "i64")) for a in ("i64", "*")]
    assert len({f.symbol for f in functions}) == len(functions)
    cpu_code.object_code(primitives.exported(functions, cpu_code.head()))


OF_WARPS = {
    "counted_order.CANDIDATES", "order_bits.TIED", "order_bits.UNCHANGED", "order_bits._LEAST", "partition.WORDS",
    "prefix_sums.SCANS", "prefix_sums.SUMS", "ranked.RANKING", "row_partition.COUNT_ROWS", "row_partition.MOVE_ROWS",
    "scans.VOTES", "scans._VOTES_OF_EVERY",
}  # fmt: skip


def test_built_in_kernels_lower() -> None:
    """But for those that speak of warps and blocks, which processors have not."""
    library, alone = cpu_llvm.library(), set()
    for name, made in builtin_kernels().items():
        if not is_for_cpu(made):
            with pytest.raises(LoweringError, match="there is no primitive"):
                cpu_module(made, library, cpu_code.head())
            alone.add(name.partition("[")[0])
        else:
            assert cpu_module(made, library, cpu_code.head()), name
    assert alone == OF_WARPS


# ---- errors -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["store_i64(s0, i64(i), unknown(1))"], "there is no primitive 'unknown'"),
        (["store_i64(s0, i64(i), x)"], "x is not set"),
        (["store_i64(s0, i64(i))"], "takes 3 arguments, not 2"),
        (["a, b = i64(1)", "store_i64(s0, i64(i), a)"], "is no 2 values"),
        (["store_i64(s0, i64(i), add_i64(c0, 1))"], "*i64 as i64"),
        (["x = math_nonsense(f64(1))"], "no function math.nonsense"),
    ],
)
@pytest.mark.parametrize("own", [128, 0], ids=["here", "by a worker"])
def test_what_has_no_meaning(lines: list[str], says: str, own: int, tune: Tune) -> None:
    tune(tuning.compiling, own_kernels=own)  # a process that has compiled as many has workers do it
    with pytest.raises(InternalError) as caught:
        get_target("cpu").compile(kernel(*lines))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    Path(str(caught.value).rpartition("source: ")[2].rstrip(")")).unlink()


def test_broken_text_is_an_error() -> None:
    source = cpu_llvm.source(kernel("store_i64(s0, i64(i), 1)"))
    broken = type(source)("kbroken", lambda: source.text.replace("ret void", "ret i64 %nothing"), ".ll")
    with pytest.raises(InternalError, match="does not compile") as caught:
        cpu_llvm.make_code(broken)
    place = Path(str(caught.value).rpartition("source: ")[2].rstrip(")"))
    assert "%nothing" in place.read_text()
    place.unlink()


def test_a_symbol_that_nobody_has_is_an_error() -> None:
    """And not the end of the process."""
    text = "\n".join(
        [*cpu_code.head(), "declare void @gquery_nowhere()", "define void @kernel(i64 %lo, i64 %hi, i64* %words) {",
         "call void @gquery_nowhere()", "ret void", "}"]
    )  # fmt: skip
    with pytest.raises(InternalError, match="cannot be linked"):
        cpu_llvm.load(cpu_code.object_code(text))


def relocations(code: bytes) -> set[int]:
    """The types of the places in an object file that the linker fills in."""
    (start,) = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    found: set[int] = set()
    for n in range(count):
        _, kind, _, _, at, length = struct.unpack_from("<IIQQQQ", code, start + n * size)
        if kind == 4:  # SHT_RELA: entries of 24 bytes
            found |= {struct.unpack_from("<I", code, at + k + 8)[0] for k in range(0, length, 24)}
    return found


@pytest.mark.skipif(platform.machine() != "x86_64", reason="relocations of x86-64")
def test_code_counts_on_no_distance() -> None:
    """Constants, tables and functions of libm may lie further than 2 GB from the code: every place takes a whole address."""
    far = kernel(
        "x = f64(c0[i])",
        "y = pow(add_f64(x, 0.1), 2.5)",
        "y = add_f64(sin(y), atan2(mul_f64(y, 0.3), 1.7))",
        "store_i64(s0, i64(i), bits_f64(fmod_f64(y, 7.25)))",
    )
    texts = [
        cpu_module(k, cpu_llvm.library(), cpu_code.head()) for k in (far, *list(builtin_kernels().values())[::3]) if is_for_cpu(k)
    ]
    found = set().union(*(relocations(cpu_code.object_code(text)) for text in texts))
    assert found == {1}, "R_X86_64_64"


def is_for_cpu(made: Kernel) -> bool:
    alone = ("members", "radix_partition", "count_rows", "move_rows", "prefix_sum", "shuffle_down_i64")
    return not any(f"{name}(" in made.text for name in alone)


# ---- which compiler -----------------------------------------------------------------------------------------------
def test_a_connection_chooses() -> None:
    made = kernel("store_i64(s0, i64(i), 5)")
    with compiling_by("numba"):
        assert compiler_of("cpu") == "numba"
        compiled = get_target("cpu").compile(made)
    with compiling_by("llvm"):
        assert get_target("cpu").compile(made).name != compiled.name
    with gquery.connect(device="cpu") as db:
        db.sql("SET interpret_limit = 0")
        query = "SELECT sum(x * 3), min(y) FROM (VALUES (1, 0.5), (2, 1.5)) t(x, y)"
        answers = []
        for compiler in ("numba", "LLVM"):
            db.sql(f"SET compiler = '{compiler}'")
            answers.append(db.sql(query).fetchall())
        assert answers[0] == answers[1]
        with pytest.raises(gquery.ProgrammingError, match="no value for the setting compiler"):
            db.sql("SET compiler = 'gcc'")


@pytest.mark.parametrize("udf", [False, True], ids=["plain", "udf"])
def test_numba_is_imported_for_functions_of_users_alone(udf: bool, tmp_path: Path) -> None:
    script = f"""
import os, sys
os.environ["GQUERY_CACHE_DIR"] = {str(tmp_path)!r}
import gquery
@gquery.udf
def twice(x: int) -> int:
    return x * 2
db = gquery.connect("cpu")
db.sql("SET interpret_limit = 0")
print(db.sql("SELECT sum({"twice(i)" if udf else "i * 2"}) FROM range(100) t(i)").fetchall(), "numba" in sys.modules)
"""
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == f"[(9900,)] {udf}", done.stderr
