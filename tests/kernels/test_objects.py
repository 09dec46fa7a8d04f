"""Object code that is put into memory without LLVM does what LLVM's linker makes of it; what is not of that kind LLVM links."""

from __future__ import annotations

import ctypes
import itertools
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from gquery.errors import InternalError
from gquery.kernels.lowering.names import ENTRY
from gquery.kernels.targets import cpu_code, cpu_llvm
from gquery.kernels.targets.cache import kernel_cache
from gquery.kernels.targets.objects import LoadedObject, NotPlainError

pytestmark = pytest.mark.skipif(
    (platform.machine(), sys.platform) != ("x86_64", "linux"), reason="code for x86-64, on Linux"
)

_ENTRY = f"define void @{ENTRY}(i64 %lo, i64 %hi, i64* %words) {{"
PLAIN = """
@table = private constant [4 x i64] [i64 10, i64 20, i64 30, i64 40]
declare double @pow(double, double)
declare double @llvm.sqrt.f64(double)
define internal i64 @own(i64 %x) noinline {
    switch i64 %x, label %other [i64 0, label %a
        i64 1, label %b
        i64 2, label %c
        i64 3, label %d
        i64 4, label %e]
a:
    ret i64 7
b:
    %at = getelementptr [4 x i64], [4 x i64]* @table, i64 0, i64 %x
    %found = load volatile i64, i64* %at
    ret i64 %found
c:
    %y = sitofp i64 %x to double
    %p = call double @pow(double %y, double 3.5)
    %n = fptosi double %p to i64
    ret i64 %n
d:
    %r = call double @llvm.sqrt.f64(double 81.0)
    %s = fptosi double %r to i64
    ret i64 %s
e:
    ret i64 -1
other:
    ret i64 %x
}
ENTRY
    %got = call i64 @own(i64 %lo)
    %sum = add i64 %got, %hi
    %place = load i64, i64* %words
    %pointer = inttoptr i64 %place to i64*
    store i64 %sum, i64* %pointer
    ret void
}
""".replace("ENTRY", _ENTRY)
COUNTING = """
@count = internal global i64 5
ENTRY
    %old = load volatile i64, i64* @count
    %new = add i64 %old, 1
    store volatile i64 %new, i64* @count
    %place = load i64, i64* %words
    %pointer = inttoptr i64 %place to i64*
    store i64 %new, i64* %pointer
    ret void
}
""".replace("ENTRY", _ENTRY)


def code_of(text: str) -> bytes:
    return cpu_code.object_code("\n".join([*cpu_code.head(), text]))


def told(function: object, lo: int, hi: int) -> int:
    """What the entry stores."""
    result = ctypes.c_int64()
    assert callable(function)
    function(lo, hi, ctypes.addressof(result).to_bytes(8, "little"))
    return result.value


def linked(code: bytes) -> object:
    made = cpu_code.Linked(code)
    function = cpu_llvm._PROTOTYPE(made.address(ENTRY))

    def entry(lo: int, hi: int, words: bytes) -> None:
        assert made.address(ENTRY), "the code goes with the last who knows it"
        function(lo, hi, words)

    return entry


def test_it_does_what_the_linker_makes_of_it() -> None:
    code = code_of(PLAIN)
    LoadedObject(code)
    ours, theirs = cpu_llvm.load(code), linked(code)
    got = [told(ours, lo, 100) for lo in range(8)]
    assert got == [107, 120, 111, 109, 99, 105, 106, 107] == [told(theirs, lo, 100) for lo in range(8)]


def test_code_with_data_of_its_own_is_linked() -> None:
    code = code_of(COUNTING)
    with pytest.raises(NotPlainError):
        LoadedObject(code)
    function = cpu_llvm.load(code)
    assert [told(function, 0, 0) for _ in range(3)] == [6, 7, 8]


def test_many_lie_side_by_side_and_go_with_their_functions() -> None:
    code = code_of(PLAIN)
    before = len(Path("/proc/self/maps").read_text().splitlines())
    for _ in range(3):
        functions = [cpu_llvm.load(code) for _ in range(200)]
        assert {told(f, 1, 0) for f in functions} == {20}
        del functions
    assert len(Path("/proc/self/maps").read_text().splitlines()) < before + 100


def test_what_is_not_whole_or_of_another_machine_is_refused() -> None:
    code = code_of(PLAIN)
    for length in range(0, len(code) - 1, 13):
        with pytest.raises(NotPlainError):
            LoadedObject(code[:length])
    for at, byte in ((4, 1), (5, 2), (16, 2), (18, 183)):  # 32 bits, another order of bytes, a library, another machine
        with pytest.raises(NotPlainError):
            LoadedObject(code[:at] + bytes([byte]) + code[at + 1 :])
    with pytest.raises(NotPlainError):
        LoadedObject(code).address("nothing")


def test_flipped_bytes_of_what_describes_the_code_are_refused_or_placed() -> None:
    """Never more than an error: entries of the cache are sealed, so that such code is never run."""
    code = code_of(PLAIN)
    for at in [*range(64), *range(len(code) - 64 * 12, len(code))]:
        damaged = bytearray(code)
        damaged[at] ^= 0x55
        try:
            LoadedObject(bytes(damaged))
        except NotPlainError:
            continue


def test_a_process_with_its_kernels_on_disk_imports_no_llvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GQUERY_CACHE_DIR", str(tmp_path / "kernels"))
    script = (
        "import gquery, sys; db = gquery.connect('cpu'); db.sql('SET interpret_limit = 0');"
        "print(db.sql('SELECT sum(sqrt(i)), max(i % 7) FROM range(1000) t(i)').fetchall(), 'llvmlite' in sys.modules)"
    )
    said = [subprocess.check_output([sys.executable, "-c", script], text=True) for _ in range(2)]
    assert said[0].split()[-1] == "True" and said[1].split()[-1] == "False"
    assert said[0].split()[:-1] == said[1].split()[:-1]


def test_another_start_of_the_machine_asks_llvm_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that several machines see has a line for each."""
    monkeypatch.setenv("GQUERY_CACHE_DIR", str(tmp_path / "kernels"))
    numbers = itertools.count(1)
    monkeypatch.setattr(cpu_code, "processor", lambda: f"processor {next(numbers)}")
    tell = cpu_llvm._processor.__wrapped__
    for started, want in (("one", 1), ("one", 1), ("two", 2), ("one", 1), ("", 3), ("", 4)):
        monkeypatch.setattr(cpu_llvm, "_started", lambda started=started: started)
        assert tell() == f"processor {want}"
    assert kernel_cache().is_usable


def test_no_linker_for_a_symbol_that_nobody_has() -> None:
    text = f"declare void @gquery_nowhere()\n{_ENTRY}\ncall void @gquery_nowhere()\nret void\n}}"
    with pytest.raises(NotPlainError):
        LoadedObject(code_of(text))
    with pytest.raises(InternalError, match="cannot be linked"):
        cpu_llvm.load(code_of(text))
