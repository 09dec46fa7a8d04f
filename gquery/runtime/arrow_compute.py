"""Arrow's compute functions, imported when the first of them is called.

``pyarrow.compute`` takes 40 ms to import, as it writes a Python function for each of Arrow's. Functions over text are made
of it, and are declared when gquery is imported; a query that calls none of them should not wait.
"""

from __future__ import annotations

from typing import Any


class _Compute:
    def __getattr__(self, name: str) -> Any:
        import pyarrow.compute

        found = getattr(pyarrow.compute, name)
        setattr(self, name, found)
        return found


pc: Any = _Compute()
