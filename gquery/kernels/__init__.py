"""Kernels: the text of a loop, how expressions are written into it, and the machines that run it.

Expressions go in; `code` and `render` write the text of a `kernel.Kernel`, `targets` compile and run it, over the
primitives of `primitives`. `builtin` has the kernels that no query writes, `host` what runs over Arrow before or behind one.
Knows no plan: `operators` call it.
"""

from __future__ import annotations

import time

LOADED = time.time()  # before any module of this room: what is newer on disk is not what runs
