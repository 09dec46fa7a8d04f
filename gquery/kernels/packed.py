"""Kernels as text that another process of this build reads, which lowers them: their modules' text takes four times as long."""

from __future__ import annotations

import pickle
from base64 import b64decode, b64encode
from typing import cast

from gquery.kernels.kernel import Kernel

_NOT_PACKED = (pickle.PicklingError, AttributeError, TypeError, RecursionError)


def packed(kernel: Kernel) -> str | None:
    """The kernel for another process. It is serialized by that. None where it calls what that may not have, functions of users,
    and where its expressions nest too deeply."""
    if any(not str(function.__module__).startswith("gquery.") for _, function in kernel.functions):
        return None
    try:
        return b64encode(pickle.dumps(kernel, pickle.HIGHEST_PROTOCOL)).decode()
    except _NOT_PACKED:
        return None


def unpacked(text: str) -> Kernel:
    """What `packed` gave."""
    return cast(Kernel, pickle.loads(b64decode(text)))
