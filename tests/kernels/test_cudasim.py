"""The GPU's primitives without a GPU: their logic under Numba's CUDA simulator, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.paths import ROOT

SLOW = pytest.param("simulated_rows", marks=pytest.mark.slow)


@pytest.mark.parametrize("module", ["simulated", "simulated_groups", "simulated_radix", SLOW])
def test_primitives_in_the_simulator(module: str) -> None:
    pytest.importorskip("numba_cuda")
    root = ROOT
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(root)}
    command = [sys.executable, "-m", f"tests.support.{module}"]
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip().endswith("simulated")
