"""Amounts as people read them."""

from __future__ import annotations


def format_bytes(size: int) -> str:
    """
    >>> format_bytes(1_500_000)
    '1.5 MB'
    """
    value = float(size)
    for unit in ("bytes", "kB", "MB", "GB"):
        if abs(value) < 1000:
            return f"{int(value)} bytes" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
