"""From a kernel's module to a cubin, with no GPU: PTX by one of two compilers, then `cubin_assembler`. CI compiles this way.

A cubin rather than PTX, because a driver assembles PTX anew in each process (0.4 s) and only if it knows the version
that the compiler wrote. What a kernel uses is read off the cubin, an ELF file.
"""

from __future__ import annotations

import importlib
import json
import struct
from dataclasses import asdict
from typing import Literal, Protocol, cast

from gquery.errors import InternalError
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets.cache import KernelSource, compile_error, kernel_cache
from gquery.kernels.targets.compilers import Compiler
from gquery.kernels.targets.cubin_assembler import assemble
from gquery.runtime.interrupt import holding
from gquery.runtime.records import dataclass

_FRAME_SIZE, _REGISTERS = 0x11, 0x2F  # attributes of the section .nv.info
_NUMBER_PAIR = 4  # format of an attribute: its value follows, (symbol, number) for these


@dataclass(frozen=True)
class Cubin:
    """Machine code of one kernel: the name of its entry, and what it uses, per thread and (shared) block.

    ``local_bytes`` is the stack frame: arrays that are indexed, and registers that were spilled.
    """

    code: bytes
    entry: str
    registers: int
    local_bytes: int
    shared_bytes: int


def read_cubin(source: KernelSource, cc: tuple[int, int]) -> Cubin | None:
    """The cubin of a kernel's module from the cache."""
    content = kernel_cache().read(cubin_entry(source, cc))
    if content is None:
        return None
    facts, _, code = content.partition(b"\n")
    return Cubin(code, **json.loads(facts))


class CudaCompiler(Protocol):
    """A module that makes PTX: `cuda_llvm`, `cuda_numba`, `cuda_draft`. Neither needs a GPU."""

    def source(self, kernel: Kernel) -> KernelSource:
        """What is compiled, by its name in the cache."""
        ...

    def ptx(self, source: KernelSource, cc: tuple[int, int], is_careful: bool = False) -> tuple[str, str]:
        """PTX of a kernel's module for a compute capability, and the name of its entry. With ``is_careful`` it is not optimized:
        a fault of the optimizer may end the process."""
        ...


CubinCompiler = Compiler | Literal["draft"]


def cuda_compiler(name: CubinCompiler) -> CudaCompiler:
    """The compiler of that name. What it compiles with is imported when it is given something."""
    return cast(CudaCompiler, importlib.import_module(f"gquery.kernels.targets.cuda_{name}"))


@holding()  # the compiler would stay broken where an interrupt ends its import
def make_cubin(
    name: CubinCompiler, source: KernelSource, cc: tuple[int, int], is_careful: bool = False, is_kept: bool = True
) -> Cubin:
    """Compile a kernel's module by the compiler of that name, and keep the result in the cache, unless told otherwise.
    InternalError where that fails. ``is_careful``: see `CudaCompiler.ptx`."""
    try:
        text, entry = cuda_compiler(name).ptx(source, cc, is_careful)
        code = assemble(text, cc)
    except InternalError:
        raise
    except Exception as e:
        raise compile_error(source, e) from e
    cubin = Cubin(code, entry, *_resources(code, entry))
    facts = asdict(cubin)
    del facts["code"]
    # one entry: several processes may compile a kernel at once, and each names its entry differently
    if is_kept:
        kernel_cache().write(cubin_entry(source, cc), json.dumps(facts).encode() + b"\n" + code)
    return cubin


def cubin_entry(source: KernelSource, cc: tuple[int, int]) -> str:
    """The name in the cache of a kernel's machine code: a line of JSON with what `Cubin` says of it, then the code."""
    return f"{source.name}-sm{cc[0]}{cc[1]}.cubin"


def _resources(code: bytes, entry: str) -> tuple[int, int, int]:
    """(registers, local bytes, static shared bytes) of the kernel in a cubin."""
    sections = _sections(code)
    registers = local = 0
    info = sections.get(".nv.info", b"")
    place = 0
    while place + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, place)
        place += 4
        if form != _NUMBER_PAIR:
            continue
        if size == 8 and attribute == _REGISTERS:
            registers = max(registers, struct.unpack_from("<II", info, place)[1])
        if size == 8 and attribute == _FRAME_SIZE:
            local = max(local, struct.unpack_from("<II", info, place)[1])
        place += size
    return registers, local, _section_sizes(code).get(f".nv.shared.{entry}", 0)


def _headers(code: bytes) -> list[tuple[str, int, int, int]]:
    """(name, type, offset, size) of each section of a 64-bit ELF file."""
    (start,) = struct.unpack_from("<Q", code, 40)
    entry_size, count, names_at = struct.unpack_from("<HHH", code, 58)
    rows = [struct.unpack_from("<IIQQQQ", code, start + k * entry_size) for k in range(count)]
    names = rows[names_at][4]
    return [(code[names + r[0] : code.index(b"\0", names + r[0])].decode(), r[1], r[4], r[5]) for r in rows]


def _sections(code: bytes) -> dict[str, bytes]:
    no_bits = 8
    return {name: code[at : at + size] for name, type_, at, size in _headers(code) if type_ != no_bits}


def _section_sizes(code: bytes) -> dict[str, int]:
    return {name: size for name, _, _, size in _headers(code)}
