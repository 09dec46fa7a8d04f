"""The type of an array on any device, for signatures."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

ElementDType: TypeAlias = np.dtype[Any]
Array: TypeAlias = np.ndarray[Any, ElementDType]
"""An array of NumPy, on the host, or of CuPy, on a GPU. CuPy has NumPy's interface and no types of its own, so NumPy's stand for
both. What elements it has, and who may write to it, is said where it is made."""
