"""Whether a compiler takes a Python function of a user: asked once, and remembered beside the kernels, so that a process which
finds these on disk does not import Numba."""

from __future__ import annotations

from gquery.functions.user_source import Rewritten
from gquery.kernels.targets.cache import kernel_cache, source_name
from gquery.runtime.interrupt import holding


@holding()  # Numba would stay broken where an interrupt ends its import
def check(rewritten: Rewritten, name: str, kinds: tuple[str, ...]) -> None:
    """Compile the function for these parameters, where that was not done before; NotSupportedError where Numba falls over a
    line."""
    entry = f"{source_name('user function', rewritten.text, *kinds)}.checked"
    if kernel_cache().read(entry) is None:
        from gquery.kernels.targets.cpu_check import check

        check(rewritten, name, kinds)
        kernel_cache().write(entry, b"")
