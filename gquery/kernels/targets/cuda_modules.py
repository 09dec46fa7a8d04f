"""Machine code in the memory of GPUs: loaded, and unloaded once nothing can run it.

A kernel that nobody holds any longer may still be queued, and unloading code that runs ends all use of the GPU. So the code of a
`Launcher` that is gone is *retired* first. Later, when its GPU has come to the end of what was queued by then, it is unloaded,
with that GPU as the current one.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import Any

from gquery import tuning
from gquery.device.arena import arena_of
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets.cubin import Cubin
from gquery.kernels.targets.cuda_launch import Launcher


class Modules:
    """What is loaded on one GPU, ``ordinal``, which is the current one where its methods are called."""

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal
        self._retired: deque[Any] = deque()  # functions; appended to by whoever lets go of a launcher, without a lock
        self._lock = threading.Lock()

    def load(self, cubin: Cubin, kernel: Kernel) -> Launcher:
        """A kernel's machine code, ready to be launched."""
        import cupy

        if len(self._retired) >= tuning.compiling.retired_kernels:
            self.unload_retired()
        module = cupy.cuda.Module()  # launches in half the time of a RawModule
        module.load(cubin.code)
        return self.keep(Launcher(module.get_function(cubin.entry), kernel))

    def keep(self, launcher: Launcher) -> Launcher:
        """Have its code retired, not unloaded, when the launcher goes."""
        weakref.finalize(launcher, self._retired.append, launcher.function).atexit = False
        return launcher

    def unload_retired(self) -> int:
        """Wait for the GPU, and unload what was retired before; how many kernels. None while runs are recorded on the GPU: nobody
        may wait for it then."""
        arena = arena_of(self._ordinal)
        with self._lock, arena.held() as is_held:
            if not is_held or arena.is_recording:
                return 0
            gone = [self._retired.popleft() for _ in range(len(self._retired))]
            arena.wait()
            return len(gone)
