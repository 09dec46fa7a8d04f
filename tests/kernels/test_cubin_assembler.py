"""PTX is assembled by nvJitLink, and by what else there is where that is missing: the same machine code."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gquery.kernels.targets import cubin_assembler

pytest.importorskip("cuda.bindings.nvjitlink")

TEXT = """.version 7.0
.target sm_75
.address_size 64
.visible .entry kernel(.param .u64 p) {
    .reg .u64 %a;
    ld.param.u64 %a, [p];
    st.global.u64 [%a], 7;
    ret;
}
"""


@pytest.mark.parametrize("cc", [(7, 5), (9, 0), (12, 0)], ids=str)
def test_both_ways_make_the_same_code(cc: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.core")
    direct = cubin_assembler.assemble(TEXT, cc)
    assert direct.startswith(b"\x7fELF")
    monkeypatch.setattr(cubin_assembler, "_linker", lambda: None)
    assert cubin_assembler.assemble(TEXT, cc) == direct


def test_text_that_is_none_is_an_error_that_says_why() -> None:
    with pytest.raises(RuntimeError, match="unknown_instruction"):
        cubin_assembler.assemble(TEXT.replace("ret;", "unknown_instruction;"), (9, 0))
    assert cubin_assembler.assemble(TEXT, (9, 0))  # the next one is assembled all the same


def test_a_process_that_assembles_has_not_woken_the_driver() -> None:
    """It may be forked."""
    script = (
        "import sys; from gquery.kernels.targets import cubin_assembler as ptx; ptx.warm_up(); "
        "print('cuda.core' in sys.modules, any('libcuda.so' in l for l in open('/proc/self/maps')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
