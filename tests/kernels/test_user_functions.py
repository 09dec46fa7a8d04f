"""Python functions of users in lowered kernels: their modules are linked in, on both targets, whatever the caches hold."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import gquery
from gquery import udf
from gquery.errors import InternalError
from gquery.kernels.lowering.assembler import LoweringError
from gquery.kernels.lowering.names import LINKED
from gquery.kernels.lowering.user import UserModule
from gquery.kernels.targets import cpu_llvm, cubin, cuda_llvm
from gquery.kernels.targets.compilers import compiling_by
from gquery.kernels.targets.cubin_assembler import assemble
from tests.support.paths import ROOT

TABLE = pa.table(
    {
        "a": [3, 1, None, 2, -7, 2**62, 0, -(2**63)],
        "n": [1, None, 5, -2, 8, 3, 4, 6],
        "b": [1.5, -2.0, 0.25, None, float("nan"), float("inf"), -0.0, 1e300],
        "c": [True, False, None, True, False, True, None, False],
    }
)


@udf
def whole(x: int, y: int) -> int:
    return x // y + x % y - (y if x > y else 0)


@udf
def weighed(x: float, y: float) -> float:
    z = 0.0
    for i in range(3):
        z = z + x * y + i
    return z - y / 2


@udf
def truth(x: int, y: bool) -> bool:
    return y and x > 0


@udf
def either(x: int | None, y: float | None) -> float | None:
    if x is None:
        return y
    return x + 0.5 if y is None else None


@udf
def given(x: int | None, y: int | None) -> int | None:
    return y if x is None else x


@udf
def twice(x: int) -> int:
    return x * 2


CALLS = {
    "integers": "whole(a, n)",
    "doubles": "weighed(b, b), weighed(n, 0.5)",
    "truths": "truth(a, c), truth(n, NOT c)",
    "NULL": "either(a, b), either(NULL, b), given(a, n), given(NULL, n)",
    "two": "whole(n, 3) + twice(n), weighed(b, 2) > 0 AND truth(n, c)",
    "types": "weighed(a, n), whole(n, 2), either(n, a)",
}


def connect(device: str) -> gquery.Connection:
    made = gquery.connect(device=device).register("t", TABLE)
    made.sql("SET interpret_limit = 0")
    return made


def rows(device: str, sql: str, compiler: str = "auto") -> list[str]:
    connection = connect(device)
    connection.sql(f"SET compiler = '{compiler}'")
    return [repr(row) for row in connection.sql(sql).fetchall()]


@pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS)
def test_all_compilers_and_the_interpreter_agree(calls: str) -> None:
    sql = f"SELECT {calls} FROM t"
    assert rows("cpu", sql) == rows("python", sql) == rows("cpu", sql, "numba")


def test_one_function_in_two_kernels() -> None:
    sql = "SELECT twice(a // 4), twice(n) FROM t WHERE twice(n) > 2"
    grouped = "SELECT twice(n), sum(twice(n)) FROM t GROUP BY twice(n) ORDER BY 1"
    assert (rows("cpu", sql), rows("cpu", grouped)) == (rows("python", sql), rows("python", grouped))


@pytest.mark.parametrize("sql", ["SELECT twice(a) FROM t", "SELECT steps(n) FROM t"])
def test_what_does_not_fit_is_an_error(sql: str) -> None:
    connection = connect("cpu").create_function("steps", steps)
    with pytest.raises(gquery.OutOfRangeError, match="a function of Python"):
        connection.sql(sql).fetchall()


@udf
def steps(n: int) -> int:
    found = 0
    for i in range(0, 10, n - 4):  # 0 once
        found += i
    return found


@pytest.mark.parametrize("cc", [(7, 5), (9, 0), (10, 0)], ids=str)
@pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS)
def test_a_gpu_has_them_inlined(calls: str, cc: tuple[int, int]) -> None:
    """With the registers that Numba's whole kernel has, or a few more."""
    pytest.importorskip("numba.cuda")
    for kernel in connect("python").kernels(f"SELECT {calls} FROM t", "cuda"):
        source = cuda_llvm.source(kernel)
        assert len(source.text.split(LINKED)) > 1
        text, entry = cuda_llvm.ptx(source, cc)
        assert "user_" not in text and "call" not in text.replace("calls", "")
        assert cubin._resources(assemble(text, cc), entry)[1] == 0


SCRIPT = """
import json, sys
import pyarrow as pa
import gquery

@gquery.udf
def shifted(x: int | None, y: float) -> float:
    return {body}

found = []
with gquery.connect(device="cpu") as db:
    db.sql("SET interpret_limit = 0")
    db.register("t", pa.table({{"x": [1, None, 3], "y": [0.5, 1.5, None]}}))
    found.append(db.sql("SELECT shifted(x, y) FROM t").fetchall())
    found.append(db.sql("SELECT sum(shifted(x, y)) FROM t WHERE shifted(x, 2.0) > 1").fetchall())
print(json.dumps([found, "numba" in sys.modules]))
"""


def in_a_process(body: str, folder: Path) -> Any:
    script = folder / "script.py"
    script.write_text(SCRIPT.format(body=body))
    environment = {"GQUERY_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_the_cache_knows_what_a_function_does(tmp_path: Path) -> None:
    """A fresh process takes the kernel from the disk, without Numba; where the function has changed, it is another one."""
    first_body, other_body = "y if x is None else x + y", "y if x is None else x - y"
    one = [[[1.5], [1.5], [None]], [[3.0]]]
    assert in_a_process(first_body, tmp_path) == [one, True]
    assert in_a_process(first_body, tmp_path) == [one, False]
    assert in_a_process(other_body, tmp_path) == [[[[0.5], [1.5], [None]], [[1.5]]], True]
    assert in_a_process(first_body, tmp_path) == [one, False]


# ---- what cannot be linked ------------------------------------------------------------------------------------------
def broken(monkeypatch: pytest.MonkeyPatch, make: Callable[..., UserModule]) -> str:
    """What a query says where Numba's module is another one."""
    cpu_llvm.library.cache_clear()
    try:
        with monkeypatch.context() as patched, pytest.raises(InternalError) as caught:
            patched.setattr(cpu_llvm, "_user_module", make)
            rows("cpu", "SELECT twice(n) + 12345 FROM t WHERE n < 99")
    finally:
        cpu_llvm.library.cache_clear()
    said, _, place = str(caught.value).partition(" (source: ")
    Path(place.rstrip(")")).unlink()
    return said


def test_a_refusal_is_one_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GQUERY_CACHE_DIR", str(tmp_path))

    def refuse(function: object, given: object, name: str) -> UserModule:
        raise LoweringError("Numba: no such thing")

    assert "a kernel does not compile: LoweringError: Numba: no such thing" in broken(monkeypatch, refuse)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("define void @{name}(i64 %x, i32* %s, i64 %n, i64* %o) {{\nret i64\n}}", "a kernel does not compile"),
        (
            "declare i64 @nobody_has_this(i64)\n"
            "define void @{name}(i64 %x, i32* %s, i64 %n, i64* %o) {{\n"
            "%y = call i64 @nobody_has_this(i64 %x)\nstore i64 %y, i64* %o\nret void\n}}",
            "calls nobody_has_this",
        ),
        ("", "which nobody has"),
    ],
    ids=["broken", "unknown symbol", "no entry"],
)
def test_a_module_that_cannot_be_linked_is_one_error(
    text: str, says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The process goes on, and the next query is right."""
    monkeypatch.setenv("GQUERY_CACHE_DIR", str(tmp_path))
    assert says in broken(monkeypatch, lambda f, given, name: UserModule("i64", text.format(name=name) or "; none"))
    with compiling_by("auto"):
        assert rows("cpu", "SELECT twice(n) FROM t LIMIT 1") == ["(2,)"]
