"""``python -m tpch``; ``gquery tpch`` is the same."""

from __future__ import annotations

from tpch.commands import main

if __name__ == "__main__":
    main(prog_name="python -m tpch")
