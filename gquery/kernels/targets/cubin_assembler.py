"""From PTX to machine code, with no GPU and no driver: by nvJitLink.

Where that library is not installed, `cuda.core` finds what else can do it, the driver at last. It is not asked first: to
import it takes 0.4 s, and a process that has woken the driver cannot be forked.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

_SMALLEST = ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry kernel() { ret; }\n"


def assemble(text: str, cc: tuple[int, int]) -> bytes:
    """The cubin of a PTX text for a compute capability. RuntimeError, with what the assembler says, for text that is none."""
    linker = _linker()
    architecture = f"sm_{cc[0]}{cc[1]}"
    if linker is None:
        from cuda.core import Program, ProgramOptions

        return bytes(Program(text, "ptx", ProgramOptions(arch=architecture)).compile("cubin").code)
    # what it makes is kept by us, sealed: its own cache is a folder that all processes lock
    options = [f"-arch={architecture}", "-no-cache"]
    link = linker.create(len(options), options)
    try:
        data = text.encode()
        try:
            linker.add_data(link, linker.InputType.PTX, data, len(data), "kernel")
            linker.complete(link)
        except linker.nvJitLinkError as error:
            log = bytearray(linker.get_error_log_size(link))
            linker.get_error_log(link, log)
            raise RuntimeError(log.decode(errors="replace").strip("\0\n ") or str(error)) from error
        code = bytearray(linker.get_linked_cubin_size(link))
        linker.get_linked_cubin(link, code)
        return bytes(code)
    finally:
        linker.destroy(link)


def warm_up() -> None:
    """Have the assembler make its tables, for processes that are forked. What wakes the driver is left to them."""
    if _linker() is not None:
        assemble(_SMALLEST, (9, 0))


@cache
def _linker() -> ModuleType | None:
    """The bindings of nvJitLink; None where there is no such library, or one that is too old for them."""
    try:
        linker = importlib.import_module("cuda.bindings.nvjitlink")
        linker.version()
    except (ImportError, RuntimeError):  # those of the loader, which finds no file or no symbol
        return None
    return linker
