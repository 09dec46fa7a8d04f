"""The cache of compiled kernels: damaged files, files that others planted, folders that cannot be used or trusted."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import random
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import platformdirs
import pytest

from gquery.kernels.targets import cpu_llvm, cpu_numba
from gquery.kernels.targets.cache import KernelCache, kernel_cache, kernel_source
from gquery.kernels.targets.cpu import CpuTarget
from gquery.kernels.targets.cubin import cubin_entry, read_cubin
from tests.kernels.test_targets import columns, expected, filtered_sum, fresh_state
from tests.support.paths import ROOT

module: Any = importlib.import_module("gquery.kernels.targets.cache")
NOBODY = 65534
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="files of another user can be made by root alone")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("GQUERY_CACHE_DIR", str(tmp_path / "cache"))
    yield tmp_path / "cache"
    module._cache_at.cache_clear()


def entry_of(name: str = "k1.cpu", content: bytes = b"machine code") -> Path:
    kernel_cache().write(name, content)
    assert kernel_cache().read(name) == content
    return kernel_cache().path / name


def mutated(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """The content with a fault that a disk, a crash or an enemy may leave."""
    at, end = sorted((rng.randrange(len(content)), rng.randrange(len(content) + 1)))
    match rng.randrange(7):
        case 0:
            return b""
        case 1:
            return content[:at]
        case 2:
            return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]
        case 3:
            return content[:at] + content[at:end] + content[at:]  # a span twice, or one byte
        case 4:
            return content + rng.randbytes(rng.randint(1, 50))
        case 5:
            return other
        case _:
            return content[:48] + other[48:]


@pytest.mark.parametrize("kind", ["llvm", "numba", "cubin", "key"])
def test_mutated_entries_count_as_missing(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing in them is unpickled, executed or parsed."""
    rng = random.Random(7)
    source, cc = kernel_source("a text", "x"), (9, 0)
    name = cubin_entry(source, cc) if kind == "cubin" else cpu_numba.cpu_entry(source.name)
    path = entry_of(
        name, b'{"entry": "kernel", "registers": 8, "local_bytes": 0, "shared_bytes": 0}\n' + rng.randbytes(300)
    )
    if kind == "key":
        path = folder / "key"
    whole, other = path.read_bytes(), entry_of("k2.cpu", rng.randbytes(400)).read_bytes()
    monkeypatch.setattr(json, "loads", lambda _: pytest.fail("parsed"))
    for _ in range(500):
        content = mutated(whole, other, rng)
        if content == whole:
            continue
        path.write_bytes(content)
        if kind == "cubin":
            assert read_cubin(source, cc) is None
        elif kind in ("llvm", "numba"):
            assert (cpu_llvm if kind == "llvm" else cpu_numba).read_code(source) is None
        else:
            module._cache_at.cache_clear()  # a new process
            assert kernel_cache().read(name) is None
    kernel_cache().write(name, b"new")
    assert kernel_cache().read(name) == b"new", "it heals"


@pytest.mark.parametrize("fault", ["empty", "truncated", "flipped", "garbage", "missing"])
def test_a_damaged_kernel_is_compiled_again(fault: str, folder: Path) -> None:
    assert not CpuTarget().compile(filtered_sum()).cached
    (path,) = folder.glob("*.cpu")
    whole = path.read_bytes()
    damaged: dict[str, Callable[[], object]] = {
        "empty": lambda: path.write_bytes(b""),
        "truncated": lambda: path.write_bytes(whole[: len(whole) // 2]),
        "flipped": lambda: path.write_bytes(whole[:-200] + bytes([whole[-200] ^ 4]) + whole[-199:]),
        "garbage": lambda: path.write_bytes(b"\x80\x04N."),
        "missing": path.unlink,
    }
    damaged[fault]()
    again = CpuTarget().compile(filtered_sum())
    assert not again.cached
    check(again.entry)
    assert CpuTarget().compile(filtered_sum()).cached, "it heals"


def check(entry: Any) -> None:
    a, b = columns()
    state = fresh_state()
    entry(0, a.size, a.ctypes.data, b.ctypes.data, 10, state.ctypes.data)
    assert state.tolist() == expected(a, b, 10)


# ---- what others may have put there ------------------------------------------------------------------------------


def test_entries_of_another_key_are_not_ours(folder: Path, tmp_path: Path) -> None:
    """Such as a folder that was copied, key and all but the key's mode, or one without it."""
    mine = entry_of()
    theirs = KernelCache(tmp_path / "theirs")
    theirs.write("k1.cpu", b"planted")
    mine.write_bytes((theirs.path / "k1.cpu").read_bytes())
    assert kernel_cache().read("k1.cpu") is None


def test_an_entry_under_another_name_is_not_taken(folder: Path) -> None:
    entry_of("k1.cpu").rename(folder / "k2.cpu")
    assert kernel_cache().read("k2.cpu") is None


@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "huge"])
def test_what_is_no_plain_file_is_not_read(kind: str, folder: Path, tmp_path: Path) -> None:
    path = entry_of()
    elsewhere = path.rename(tmp_path / "elsewhere")
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "link":
            path.symlink_to(elsewhere)
        case "folder":
            path.mkdir()
        case _:
            with path.open("wb") as file:
                file.truncate(1 << 40)
    assert kernel_cache().read("k1.cpu") is None


@needs_root
def test_a_file_of_another_user_is_not_read(folder: Path) -> None:
    path = entry_of()
    os.chown(path, NOBODY, NOBODY)
    assert kernel_cache().read("k1.cpu") is None
    key = folder / "key"
    before = key.read_bytes()
    os.chown(key, NOBODY, NOBODY)
    module._cache_at.cache_clear()
    kernel_cache().write("k1.cpu", b"new")
    assert key.read_bytes() != before, "a key that another user may know seals nothing"
    assert key.stat().st_uid == 0


def test_a_key_that_others_can_read_is_replaced(folder: Path) -> None:
    entry_of()
    key = folder / "key"
    before = key.read_bytes()
    key.chmod(0o644)
    module._cache_at.cache_clear()
    assert kernel_cache().read("k1.cpu") is None
    assert key.read_bytes() != before
    assert key.stat().st_mode & 0o777 == 0o600


@needs_root
def test_two_users(folder: Path, tmp_path: Path) -> None:
    """Another user plants what gquery would unpickle, while the folder is open to all."""
    CpuTarget().compile(filtered_sum())
    (path,) = folder.glob("*.cpu")
    folder.chmod(0o777)
    tmp_path.chmod(0o711)
    for above in tmp_path.parents:  # pytest's own folders, a worker's among them, are 0700
        if above.stat().st_mode & 0o777 == 0o700 and above.stat().st_uid == 0 and above != Path("/root"):
            above.chmod(0o711)
    script = f"""
import os, pickle
path = {str(path)!r}
class Planted:
    def __reduce__(self):
        return os.system, ("touch {tmp_path}/run",)
os.unlink(path)
open(path, "wb").write(b"gquery kernel 1\\n" + bytes(32) + pickle.dumps(Planted()))
"""

    def become() -> None:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)

    subprocess.run(["/usr/bin/env", "python3", "-c", script], preexec_fn=become, check=True)
    assert path.stat().st_uid == NOBODY, "it was planted"
    folder.chmod(0o700)
    module._cache_at.cache_clear()
    again = CpuTarget().compile(filtered_sum())
    assert not again.cached
    check(again.entry)
    assert not (tmp_path / "run").exists()
    assert path.stat().st_uid == 0


# ---- folders -----------------------------------------------------------------------------------------------------


def refused(match: str) -> None:
    module._cache_at.cache_clear()
    with pytest.warns(RuntimeWarning, match=match):
        assert not kernel_cache().is_usable


@pytest.mark.parametrize("place", ["", ".."])
def test_a_folder_that_others_can_write(place: str, folder: Path) -> None:
    entry_of()
    (folder / place).chmod(0o777)
    refused("can be written by others; run: chmod go-w")
    (folder / place).chmod(0o1777)
    if place:  # sticky, as /tmp is: nobody can move what is another's
        module._cache_at.cache_clear()
        assert kernel_cache().read("k1.cpu")
    else:
        refused("can be written by others")


def test_a_group_of_the_users_own_may_write(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry_of()
    folder.parent.chmod(0o775)
    monkeypatch.setattr("gquery.kernels.targets.folder._is_own_group", lambda _: False)
    refused("can be written by others")
    monkeypatch.setattr("gquery.kernels.targets.folder._is_own_group", lambda _: True)
    module._cache_at.cache_clear()
    assert kernel_cache().is_usable


@needs_root
@pytest.mark.parametrize("place", ["", ".."])
def test_a_folder_of_another_user(place: str, folder: Path) -> None:
    entry_of()
    os.chown(folder / place, NOBODY, NOBODY)
    refused("belongs to another user")


def test_a_folder_that_is_swapped_behind_the_check(folder: Path, tmp_path: Path) -> None:
    entry_of()
    folder.rename(tmp_path / "moved")
    folder.mkdir()
    (folder / "k1.cpu").write_bytes(b"planted")
    assert kernel_cache().read("k1.cpu") == b"machine code", "it is held by its descriptor"
    kernel_cache().write("k3.cpu", b"more")
    assert not (folder / "k3.cpu").exists()


def test_a_link_on_the_way_is_followed_once(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    found = KernelCache(tmp_path / "link" / "cache")
    found.write("k1.cpu", b"x")
    assert (tmp_path / "real" / "cache" / "k1.cpu").exists()


def test_a_cache_that_is_cleared_while_it_is_used(folder: Path) -> None:
    entry_of()
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    assert kernel_cache().read("k1.cpu") is None
    entry_of("k4.cpu")


def test_processes_that_start_at_once_share_a_key(folder: Path) -> None:
    script = (
        "from gquery.kernels.targets.cache import kernel_cache; import os, sys; kernel_cache().write(sys.argv[1], b'x')"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", "-c", script]
    running = [subprocess.Popen([*command, f"k{n}.cpu"], env=environment) for n in range(6)]
    assert [process.wait(60) for process in running] == [0] * 6
    assert [kernel_cache().read(f"k{n}.cpu") for n in range(6)] == [b"x"] * 6


# ---- folders that cannot be used: memory alone, one warning --------------------------------------------------------

QUERIES = """
import gquery, warnings, sys
db = gquery.connect(device="cpu")
db.sql("SET interpret_limit = 0")
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for n in (3, 4):
        assert db.sql(f"SELECT sum(x * {n}), count(*) FROM range(1000) t(x) WHERE x > 11").fetchall() == [(n * 499434, 988)]
        assert db.sql(f"SELECT x % 7 AS g, max(x) FROM range(1000) t(x) GROUP BY g ORDER BY g LIMIT 1").fetchall() == [(0, 994)]
print(*[str(w.message).partition(",")[0] for w in seen if w.category is RuntimeWarning], sep="|")
"""


@pytest.mark.parametrize("fault", ["no folder", "full disk", "read-only"])
def test_queries_run_without_a_cache(fault: str, folder: Path, tmp_path: Path) -> None:
    place = str(folder)
    if fault == "no folder":
        (tmp_path / "file").write_text("")
        place = str(tmp_path / "file" / "cache")
    if fault == "read-only":
        place = "/proc/gquery"

    def limit() -> None:
        if fault == "full disk":  # a file may have 100 bytes: the key fits, no kernel does
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    environment = {**os.environ, "GQUERY_CACHE_DIR": place, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        [sys.executable, "-c", QUERIES], env=environment, capture_output=True, text=True, preexec_fn=limit, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "gquery keeps compiled kernels in memory alone"
    if fault == "full disk":
        assert [file.name for file in folder.iterdir()] == ["key"], "nothing half written is left"


def test_a_write_that_fails_warns_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    entry_of()
    monkeypatch.setattr(module, "write_file", full)
    with pytest.warns(RuntimeWarning, match="No space left on device"):
        kernel_cache().write("k2.cpu", b"x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel_cache().write("k3.cpu", b"x")
        assert kernel_cache().read("k1.cpu") is None


def test_the_hash_of_sources_is_kept_and_made_anew_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GQUERY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "_PACKAGE", tmp_path)
    monkeypatch.setattr("gquery.kernels.LOADED", float("inf"))  # the files are younger than what runs
    for name in ("primitives", "targets", "lowering", "ir"):
        (tmp_path / name).mkdir()
    file = tmp_path / "targets" / "x.py"
    file.write_text("one")
    first = module._hash_of_sources()
    (kept,) = (tmp_path / "cache").glob("b*")
    assert module._hash_of_sources() == first
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-1] + b"x")  # damaged
    assert module._hash_of_sources() == first
    assert kept.read_bytes() == whole
    for content in ("two", "three"):  # of the same length, and of another
        file.write_text(content)
        assert (
            module._hash_of_sources() == hashlib.blake2b(content.encode() + b"\0", digest_size=32).hexdigest() != first
        )
    file.write_text("one")
    assert module._hash_of_sources() == first


@pytest.mark.skipif(sys.platform != "linux", reason="the XDG folders")
@pytest.mark.parametrize("own", [None, "", "/somewhere", "not/absolute"])
def test_the_folder_is_the_one_of_platformdirs(own: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if own is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", own)
    assert module._user_folder() == platformdirs.user_cache_dir("gquery")


def test_a_process_whose_sources_were_replaced_keeps_to_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upgrade beneath a running process: what it compiles is of the old sources, under whatever name."""
    monkeypatch.setenv("GQUERY_CACHE_DIR", str(tmp_path / "cache"))
    before = module.kernel_source("text", "cpu").name
    assert not module.is_replaced()
    monkeypatch.setattr("gquery.kernels.LOADED", 0.0)
    module.kernel_cache().write("entry", b"content")
    assert module.kernel_cache().read("entry") is None
    module.build_hash.cache_clear()
    try:
        assert module.kernel_source("text", "cpu").name != before
    finally:
        module.build_hash.cache_clear()
