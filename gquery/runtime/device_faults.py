"""A GPU that CUDA has given up: one error that says so, where it is first noticed and at every later use in the process.

After some faults (an illegal address, a kernel that ran too long, memory with errors) CUDA answers every call of the process
with the same error until the process ends, and CuPy passes it on from wherever it was called. `Device` asks here what an
exception means: those faults are known by their names in its text, which CuPy, Numba and Thrust all print.
"""

from __future__ import annotations

import re
from functools import cache

from gquery.errors import DeviceError, Error

# Those of which CUDA's documentation says that the process must be ended, as its runtime and its driver call them.
_FAULTS = (
    "IllegalAddress|LaunchTimeout|LaunchFailure|Assert|HardwareStackError|IllegalInstruction|MisalignedAddress|"
    "InvalidAddressSpace|InvalidPc|ECCUncorrectable|NvlinkUncorrectable|Contained|ContextIsDestroyed|MpsClientTerminated|"
    "TensorMemoryLeak"
)
_broken: str | None = None  # what the first fault of this process was


@cache
def _named() -> re.Pattern[str]:
    drivers = "|".join(re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=C)(?=U)", "_", name).upper() for name in _FAULTS.split("|"))
    return re.compile(rf"\b(?:cudaError(?:{_FAULTS})|CUDA_ERROR_(?:{drivers}|LAUNCH_FAILED))\b[^\n]*")


def check() -> None:
    """Raises DeviceError where an earlier fault has broken CUDA in this process."""
    if _broken is not None:
        raise DeviceError(_message(f"an earlier query met {_broken}"))


def named(error: BaseException, task: str) -> DeviceError | None:
    """What to raise in place of an exception, if it says that CUDA cannot be used any more; from then on `check` raises.
    ``task`` is what ran where it was noticed, later perhaps than it happened."""
    global _broken
    if isinstance(error, Error) or not isinstance(error, Exception):
        return None
    found = _named().search(str(error))
    if found is None:
        return None
    if _broken is None:
        _broken = f"{found[0].strip()}{f', noticed in {task}' if task else ''}"
    return DeviceError(_message(f"CUDA reports {_broken}"))


def _message(what: str) -> str:
    return (
        f"The GPU cannot be used any more in this process: {what}. CUDA refuses all further work until the process ends. "
        "Restart it (in a notebook: restart the kernel); connections with device='cpu' still work here. Please report the "
        "query, and what compute-sanitizer --tool memcheck says when it runs your program."
    )
